"""From runs and gold to the values of every setting, and of each run alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from findwell.core.errors import InputError, OptionError, naming_files
from findwell.evaluation.assessment import (
    assess,
    chosen_relation,
    find_matchers,
    reads_texts,
    with_missing,
)
from findwell.evaluation.inputs import files_of, load_inputs, with_columns
from findwell.evaluation.results.store import Input
from findwell.io.read.corpus import load_corpus
from findwell.judges.find import find_judge, on_server
from findwell.judges.limits import limit_findings
from findwell.loop.tuning.grid import STEPS
from findwell.loop.tuning.pool import Pool
from findwell.loop.tuning.pooled import (
    FusedLists,
    PooledEngine,
    deepest,
    refuse_lists,
    setting_values,
)
from findwell.measures.dialects import dialect as find_dialect
from findwell.measures.dialects import expand_measures
from findwell.relations.match.matcher import MatchContext
from findwell.relations.preflight import only_ids

if TYPE_CHECKING:
    from findwell.core.data import Floats, Gold, Run
    from findwell.core.findings import Finding
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.loop.tuning.engines import Engine, Setting
    from findwell.measures import Measure

MOST_RUNS = max(STEPS)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSettings:
    """The values of every setting, and of each run alone."""

    lists: FusedLists
    loaded: tuple[Run, ...]  # what was read
    gold: Gold
    result: Result  # over all candidates
    drawing: PooledEngine  # which moves them
    measures: tuple[Measure, ...]
    values: Mapping[Measure, Floats]  # settings and single runs × queries
    queries: pl.DataFrame
    findings: tuple[Finding, ...]
    matched_by: str

    def measure(self, setting: Setting) -> dict[Measure, Floats]:
        """Return the values of a further setting of the same engine, one for each query."""
        self.lists.settings = [setting]
        found = setting_values(self.result, self.drawing, self.measures, lists=1)
        return {measure: values[0] for measure, values in found.items()}


def name_runs(runs: Sequence[RunLike] | Mapping[str, RunLike]) -> dict[str, Any]:
    """Return the runs by name; a name that is empty is that of the file."""
    if isinstance(runs, Mapping):
        named = {str(name): data for name, data in runs.items()}
    else:
        given = [runs] if isinstance(runs, str | bytes) else list(runs)
        named = {f"run {number}": data for number, data in enumerate(given, start=1)}
    if not 2 <= len(named) <= MOST_RUNS:
        raise OptionError(
            f"{len(named)} run{'s' * (len(named) != 1)} to fuse", fix=f"give 2 to {MOST_RUNS} runs"
        )
    return named


def measure_settings(  # noqa: PLR0917
    named: Mapping[str, Any],
    gold: GoldLike | None,
    measures: Iterable[str | Measure] | str,
    engine: Engine,
    settings: Sequence[Setting],
    options: Mapping[str, Any],
) -> MeasuredSettings:
    """Read the inputs, draw the relations of all candidates, and measure every setting."""
    found = find_dialect(options["dialect"])
    wanted = expand_measures(measures, found, options["rel"])
    matchers = find_matchers(options.get("by") or "ids", wanted, found)
    refuse_lists(list(matchers.values()))
    judging = [matcher for matcher in matchers.values() if matcher.judged]
    judge, server = on_server(options.get("judge", "local"), options.get("base_url"))
    corpus, id_from = options.get("corpus"), options.get("id_from")
    with ExitStack() as reading:
        streams, known, inputs, by = load_inputs(
            _as_given(named),
            gold,
            options.get("run_format"),
            options.get("gold_format"),
            reading,
            by=chosen_relation(options.get("by"), wanted),
            corpus=corpus,
            skip_bad=options.get("skip_bad", False),
            texts=reads_texts(matchers.values(), wanted),
            id_from=id_from,
            query_from=options.get("query_from"),
            unlabelled=len(judging) == len(matchers),
            queries=options["queries"],
        )
        inputs += [] if corpus is None else [Input.of("corpus", corpus)]
        reading.enter_context(naming_files(files_of(streams, inputs)))
        described = with_columns(known, options["queries"])
        loaded = [stream.collect() for stream in streams]
        pool = engine.arranged(Pool.of(loaded, disjoint=options.get("disjoint", False)))
        unshared = _check_queries(pool)
        lists = FusedLists(engine, pool, settings)
        drawing = PooledEngine(lists, deepest(wanted))
        result = assess(
            [lists.candidates().stream()],
            described,
            wanted,
            with_missing(found, options.get("missing")),
            by,
            MatchContext(
                corpus=None if corpus is None else load_corpus(corpus, id_from=id_from),
                embedder=options.get("embedder"),
                ids=options.get("ids", "identity"),
                base_url=server,
                tokenizer=options.get("tokenizer"),
                chosen=options.get("by") is not None,
            ),
            judge=find_judge(judge) if judging else None,
            engine=drawing,
            progress=options.get("progress"),
        )
        values = setting_values(result, drawing, wanted)
    forgotten = options.get("by") is None and by == "ids"
    findings = [replace(each, run="") for each in result.findings]
    findings += unshared
    findings += limit_findings(result.judge, result.matched_by)
    findings += only_ids(streams, known) if forgotten else []
    names = pl.DataFrame({"query": result.relation(result.runs[0]).queries})
    return MeasuredSettings(
        lists=lists,
        loaded=tuple(loaded),
        gold=described,
        result=result,
        drawing=drawing,
        measures=wanted,
        values=values,
        queries=names.join(result.queries, on="query", how="left", maintain_order="left"),
        findings=tuple(findings),
        matched_by=result.matched_by[str(wanted[0])],
    )


def _as_given(named: Mapping[str, Any]) -> object:
    """Return runs as they are read: files under their own names."""
    files = all(isinstance(data, str | os.PathLike) for data in named.values())
    return list(named.values()) if files else dict(named)


def _check_queries(pool: Pool) -> list[Finding]:
    """Refuse runs that share no query, and report queries that only some of them have."""
    answered = pool.answered()
    for number, name in enumerate(pool.runs[1:], start=1):
        if not (answered[0] & answered[number]).any():
            raise InputError(
                f"it shares no query with {pool.runs[0]}",
                where=f"run {name}",
                fix="fuse runs of the same queries",
            )
    return pool.unshared_queries()

"""The main function: run and gold in, result out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from karat.data import Gold, Run, RunStream, query_index
from karat.dialects import Dialect, speak
from karat.dialects import dialect as find_dialect
from karat.engines.ahead import ReadAhead
from karat.engines.stream import relate
from karat.errors import InputError, choose
from karat.findings import Finding, merge_findings
from karat.match.ids import normalise_gold
from karat.measures import DEFAULTS, Measure
from karat.preflight import check_gold
from karat.read import is_several, load_gold, load_run, load_samples
from karat.read.position import join_by_position
from karat.read.queries import load_queries
from karat.result import Result
from karat.store import Input

if TYPE_CHECKING:
    from karat.align import Missing, Policy
    from karat.match.ids import Normaliser
    from karat.relation import Relation

RELATIONS = ("ids",)


def evaluate(
    run: object,
    gold: object = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    by: str = "ids",
    dialect: str | Dialect = "karat",
    rel: float | None = None,
    ids: Normaliser = "identity",
    missing: str | None = None,
    queries: object = None,
    bounds: bool = False,
    run_format: str | None = None,
    gold_format: str | None = None,
    skip_bad: bool = False,
) -> Result:
    """Measure how well one or several runs found the gold.

    `run` is a path, `{query: {doc: score}}`, `{query: [doc, …]}` in rank order, a data frame, a
    list of records, a `Run`, or several of these as a dict by name or a list of paths. Without
    `gold` the records hold both. `rel` is the grade from which an item counts as relevant, `ids`
    how document ids are normalised, `queries` a table that adds columns to slice by, `bounds`
    asks for the values if all unjudged documents were relevant, or all were not. `skip_bad` leaves
    out records that cannot be read and says so in the findings. `dialect` and `missing` decide
    what tools decide differently; see `karat.align.Policy`.

    >>> result = evaluate({"q1": ["a", "b"]}, {"q1": ["b", "c"]}, measures=["P@2", "RR"])
    >>> result["P@2"], result["RR"]
    (0.5, 0.5)
    """
    choose("relation", by, RELATIONS)
    speaks = find_dialect(dialect)
    policy = _with_missing(speaks.policy, missing)
    wanted = _known_relations(speak(measures, speaks, rel))
    streams, gold_data, inputs, reading = _load(
        run, gold, run_format, gold_format, skip_bad=skip_bad
    )
    gold_data = _with_columns(gold_data, queries)
    if ids == "identity":
        ids = speaks.run_ids
    else:
        gold_data = normalise_gold(gold_data, ids)
    levels = {str(measure): measure.level() for measure in wanted if measure.needs_relevant}
    findings = [*gold_data.findings, *check_gold(gold_data, policy, levels)]
    relations: dict[str, Relation] = {}
    for stream in streams:
        relation, found = relate(stream, gold_data, policy, ids, reading=reading)
        reading = None
        relations[stream.name] = relation
        findings += (replace(finding, run=stream.name) for finding in found)
    return Result(
        relations=relations,
        measures=wanted,
        queries=gold_data.queries,
        findings=merge_findings(findings),
        dialect=speaks.name,
        policy=policy,
        bounds=bounds,
        ids=ids if isinstance(ids, str) else getattr(ids, "__qualname__", repr(ids)),
        inputs=tuple(inputs),
    )


def check(
    run: object,
    gold: object = None,
    *,
    dialect: str | Dialect = "karat",
    ids: Normaliser = "identity",
    run_format: str | None = None,
    gold_format: str | None = None,
    skip_bad: bool = False,
) -> tuple[Finding, ...]:
    """Return what is odd about a run and its gold, without measuring anything.

    >>> [finding.kind for finding in check({"q1": ["a", "a"], "q2": ["b"]}, {"q1": ["a"]})]
    ['extra-query', 'duplicate-document']
    """
    return evaluate(
        run,
        gold,
        ["recall"],
        dialect=dialect,
        ids=ids,
        missing="zero",
        run_format=run_format,
        gold_format=gold_format,
        skip_bad=skip_bad,
    ).findings


def _with_missing(policy: Policy, missing: str | None) -> Policy:
    if missing is None:
        return policy
    choose("choice for missing queries", missing, ("zero", "skip", "error"))
    return replace(policy, missing=cast("Missing", missing))


def _known_relations(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    for measure in measures:
        if measure.relation is not None:
            choose("relation", measure.relation, RELATIONS)
    return measures


def _load(
    run: object,
    gold: object,
    run_format: str | None,
    gold_format: str | None,
    *,
    skip_bad: bool,
) -> tuple[list[RunStream], Gold, list[Input], ReadAhead | None]:
    """Open the runs, begin to read the first, and read the gold meanwhile."""
    if gold is None:
        samples = load_samples(run, format=run_format, skip_bad=skip_bad)
        return [samples.run.stream()], samples.gold, [Input.of("samples", run)], None
    named: Iterable[tuple[str, object]]
    if is_several(run) and isinstance(run, Mapping):
        named = [(str(name), data) for name, data in run.items()]
    elif isinstance(run, list | tuple) and run and _is_run(run[0]):
        named = [("", data) for data in run]
    else:
        named = [("", run)]
    streams = [
        load_run(data, name=name, format=run_format, skip_bad=skip_bad) for name, data in named
    ]
    inputs = [Input.of("run", data) for _, data in named]
    reading = ReadAhead(streams[0].batches())
    try:
        loaded = load_gold(gold, format=gold_format, skip_bad=skip_bad)
    except BaseException:
        reading.close()
        raise
    joined = [join_by_position(stream, loaded) for stream in streams]
    inputs.append(Input.of("gold", gold))
    if joined[0] is not streams[0]:  # what is being read carries other ids
        reading.close()
        return _unique_names(joined), loaded, inputs, None
    return _unique_names(joined), loaded, inputs, reading


def _is_run(data: object) -> bool:
    """Tell an element of a list of runs from a record."""
    return isinstance(data, str | os.PathLike | Run | RunStream)


def _unique_names(streams: list[RunStream]) -> list[RunStream]:
    """Number runs of the same name: run, run-2, run-3."""
    seen: dict[str, int] = {}
    named = []
    for stream in streams:
        seen[stream.name] = seen.get(stream.name, 0) + 1
        again = seen[stream.name]
        named.append(stream if again == 1 else replace(stream, name=f"{stream.name}-{again}"))
    return named


def _with_columns(gold: Gold, queries: object) -> Gold:
    """Add the columns of a table about the queries, to slice by."""
    if queries is None:
        return gold
    table = load_queries(queries)
    index = query_index(table["query"], gold.query_numbers)
    if not (index >= 0).any():
        raise InputError(
            f"no query of this table is in the gold: it has {table['query'][0]!r}",
            where="queries",
            fix="use the query ids of the gold",
        )
    joined = gold.queries.join(
        table.unique("query", keep="last"), on="query", how="left", maintain_order="left"
    )
    return replace(gold, queries=joined)


__all__ = ["check", "evaluate"]

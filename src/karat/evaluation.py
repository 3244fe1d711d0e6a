"""The main function: run and gold in, result out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from karat.dialects import Dialect, speak
from karat.dialects import dialect as find_dialect
from karat.engines.stream import relate
from karat.errors import OptionError, choose
from karat.findings import Finding, merge_findings
from karat.inputs import load_inputs, with_columns
from karat.match import Matcher, find_matcher
from karat.match.ids import normalise_gold
from karat.match.matcher import Material
from karat.measures import DEFAULTS, Measure
from karat.preflight import check_gold
from karat.read.corpus import load_corpus
from karat.result import Result
from karat.store import Input

if TYPE_CHECKING:
    import polars as pl

    from karat.align import Missing, Policy
    from karat.data import Gold, RunStream
    from karat.engines.ahead import ReadAhead
    from karat.engines.stream import Progress
    from karat.match.ids import Normaliser
    from karat.relation import Relation


def evaluate(
    run: object,
    gold: object = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    by: str | Matcher = "ids",
    dialect: str | Dialect = "karat",
    rel: float | None = None,
    ids: Normaliser = "identity",
    missing: str | None = None,
    queries: object = None,
    corpus: object = None,
    embedder: object = None,
    bounds: bool = False,
    level: float | None = 0.95,
    cluster: str | None = None,
    run_format: str | None = None,
    gold_format: str | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Measure how well one or several runs found the gold.

    `run` is a path, `{query: {doc: score}}`, `{query: [doc, …]}` in rank order, a data frame, a
    list of records, a `Run`, or several of these as a dict by name or a list of paths. Without
    `gold` the records hold both. `rel` is the grade from which an item counts as relevant, `ids`
    how document ids are normalised, `queries` a table that adds columns to slice by, `bounds`
    asks for the values if all unjudged documents were relevant, or all were not. `skip_bad` leaves
    out records that cannot be read and says so in the findings. `dialect` and `missing` decide
    what tools decide differently; see `karat.align.Policy`.

    `by` says what makes a retrieved unit cover a gold item: equal `ids`, or texts: `exact`,
    `rouge`, `rouge-sentence(threshold=0.9)`, … (`karat measures --relations` lists them). Texts
    stand beside the ids, or `corpus` gives them; `embedder` is what `semantic` embeds texts with.
    A measure may name a relation of its own, such as `recall@5/rouge`. `progress` is called with
    the number of queries done and of all.

    Every aggregated number has an interval of this `level` (None: none). Queries that share the
    value of the column `cluster` are not independent and are resampled together; without it a
    column `source` in which values repeat is taken for one.

    >>> result = evaluate({"q1": ["a", "b"]}, {"q1": ["b", "c"]}, measures=["P@2", "RR"])
    >>> result["P@2"], result["RR"]
    (0.5, 0.5)
    """
    speaks = find_dialect(dialect)
    wanted = speak(measures, speaks, rel)
    matchers = find_matchers(by, wanted, speaks)
    texts = any(matcher.reads_texts for matcher in matchers.values())
    streams, known, inputs, reading = load_inputs(
        run, gold, run_format, gold_format, skip_bad=skip_bad, texts=texts
    )
    table = None if corpus is None else load_corpus(corpus)
    inputs += [] if corpus is None else [Input.of("corpus", corpus)]
    result = assess(
        streams,
        with_columns(known, queries),
        wanted,
        replace(speaks, policy=_with_missing(speaks.policy, missing)),
        matchers,
        Material(corpus=table, embedder=embedder, ids=ids),
        reading=reading,
        progress=progress,
    )
    return replace(
        result,
        bounds=bounds,
        inputs=tuple(inputs),
        level=_checked_level(level),
        cluster=_cluster(result.queries, cluster),
    )


def _checked_level(level: float | None) -> float | None:
    if level is None or 0 < level < 1:
        return level
    raise OptionError(f"{level} is not the level of an interval", fix="for example 0.95")


def _cluster(queries: pl.DataFrame, named: str | None) -> str | None:
    """Return the column that tells which queries are not independent of each other."""
    if named is not None:
        return choose("column", named, [name for name in queries.columns if name != "query"])
    shared = "source" in queries.columns and queries["source"].drop_nulls().is_duplicated().any()
    return "source" if shared else None


def assess(  # noqa: PLR0917
    streams: list[RunStream],
    gold: Gold,
    measures: tuple[Measure, ...],
    speaks: Dialect,
    matchers: Mapping[str, Matcher],
    material: Material,
    *,
    reading: ReadAhead | None = None,
    progress: Progress | None = None,
) -> Result:
    """Draw every relation of every run, and return what can be measured over them."""
    if material.ids == "identity":
        material = replace(material, ids=speaks.run_ids)
    else:
        gold = normalise_gold(gold, material.ids)
    findings: list[Finding] = []
    relations: dict[tuple[str, str], Relation] = {}
    for name, matcher in matchers.items():
        drawing = matcher.against(gold, material)
        levels = {
            str(measure): measure.level()
            for measure in measures
            if measure.needs_relevant and (measure.relation or next(iter(matchers))) == name
        }
        news = [*drawing.gold.findings, *check_gold(drawing.gold, speaks.policy, levels)]
        news += matcher.findings()
        for stream in streams:
            relation, found = relate(
                stream, drawing, speaks.policy, reading=reading, progress=progress
            )
            reading = None
            relations[stream.name, name] = relation
            news += (replace(finding, run=stream.name) for finding in found)
        findings += _unsaid(news, findings)
    abouts = {stream.name: stream.about() for stream in streams}
    ids = material.ids
    return Result(
        relations=relations,
        measures=measures,
        queries=gold.queries,
        findings=tuple(findings),
        dialect=speaks.name,
        policy=speaks.policy,
        drawn_by=next(iter(matchers)),
        settings={name: matcher.settings() for name, matcher in matchers.items()},
        ids=ids if isinstance(ids, str) else getattr(ids, "__qualname__", repr(ids)),
        about={
            name: about for name, about in abouts.items() if about is not None and about.width > 1
        },
    )


def find_matchers(
    by: str | Matcher, measures: tuple[Measure, ...], speaks: Dialect
) -> dict[str, Matcher]:
    """Return what draws the relations that measures read, first the one of those naming none."""
    first = find_matcher(by, speaks.relations)
    named = [measure.relation for measure in measures if measure.relation is not None]
    every = {str(first): first} | {name: find_matcher(name) for name in named}
    used = {str(first) if each.relation is None else each.relation for each in measures}
    return {name: matcher for name, matcher in every.items() if name in used}


def _unsaid(news: list[Finding], before: list[Finding]) -> list[Finding]:
    """Leave out what another relation of the same input has said already."""
    said = {(found.run, found.kind, found.message) for found in before}
    return [
        found
        for found in merge_findings(news)
        if (found.run, found.kind, found.message) not in said
    ]


def check(
    run: object,
    gold: object = None,
    *,
    by: str | Matcher = "ids",
    dialect: str | Dialect = "karat",
    ids: Normaliser = "identity",
    corpus: object = None,
    embedder: object = None,
    run_format: str | None = None,
    gold_format: str | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """Return what is odd about a run and its gold, without measuring anything.

    >>> [finding.kind for finding in check({"q1": ["a", "a"], "q2": ["b"]}, {"q1": ["a"]})]
    ['extra-query', 'duplicate-document']
    """
    return evaluate(
        run,
        gold,
        ["recall"],
        by=by,
        dialect=dialect,
        ids=ids,
        missing="zero",
        corpus=corpus,
        embedder=embedder,
        run_format=run_format,
        gold_format=gold_format,
        skip_bad=skip_bad,
        progress=progress,
    ).findings


def _with_missing(policy: Policy, missing: str | None) -> Policy:
    if missing is None:
        return policy
    choose("choice for missing queries", missing, ("zero", "skip", "error"))
    return replace(policy, missing=cast("Missing", missing))


__all__ = ["assess", "check", "evaluate", "find_matchers"]

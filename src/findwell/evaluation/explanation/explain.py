"""Explanations: one query step by step, under one dialect or side by side under several.

What is explained is a `Result`, whether it was just measured or saved long ago.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import polars as pl

from findwell.core import display
from findwell.core.data import Gold, Run, RunStream
from findwell.core.errors import (
    InputError,
    OptionError,
    choose,
    naming_files,
    nearest,
    takes_options,
)
from findwell.core.findings import Finding, merge_findings
from findwell.core.forks import refuse_after_fork
from findwell.evaluation.assessment import (
    assess,
    chosen_relation,
    find_matchers,
    reads_texts,
    with_missing,
)
from findwell.evaluation.evaluate import InputOptions
from findwell.evaluation.explanation.calculation import Calculation, Calculations, differences
from findwell.evaluation.explanation.ranking import Item, Ranking, Step, Unit, views
from findwell.evaluation.explanation.units import ExplainedVerdict, KeptRun, bound_units
from findwell.evaluation.inputs import files_of, load_inputs
from findwell.evaluation.results.reuse import as_result, refuse_inputs, rescore, same_dialect
from findwell.evaluation.results.store import Input
from findwell.io.read.corpus import load_corpus
from findwell.judges.find import find_judge, on_server
from findwell.judges.limits import judge_limits
from findwell.judges.settings import Judge
from findwell.judges.verdicts import Judged
from findwell.measures import DEFAULTS
from findwell.measures.dialects import Dialect, dialect, resolve_measures
from findwell.relations.align import align
from findwell.relations.match.matcher import BoundByRule, MatchContext

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.progress import Report
    from findwell.evaluation.explanation.ranking import RelationView
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.judges.verdicts import JudgeProtocol, Sample
    from findwell.measures import Measure
    from findwell.relations.match import Matcher

Measures: TypeAlias = "Iterable[str | Measure] | str"
UnitLists: TypeAlias = dict[str, dict[str, list[Unit]]]  # by relation and query

EVERY = 1 << 31  # documents of a list that are kept: all of them


@dataclass(frozen=True, slots=True)
class Explanation:
    """How the numbers of one query come about.

    Measures that do not count the same items, or that read different relations, see different
    lists: there is a ranking for each.
    """

    query: str
    about: dict[str, Any]
    dialects: tuple[str, ...]
    rankings: tuple[Ranking, ...]
    calculations: tuple[Calculation, ...]
    differences: tuple[str, ...]
    judge: str = ""
    judge_limits: str = ""  # what its verdicts are worth
    verdicts: tuple[ExplainedVerdict, ...] = ()  # of the judge, if there is one
    findings: tuple[Finding, ...] = ()  # problems in the inputs

    @property
    def ranking(self) -> tuple[Step, ...]:
        """The list as the first measure sees it."""
        return self.rankings[0].steps

    @property
    def items(self) -> tuple[Item, ...]:
        """The gold as the first measure sees it."""
        return self.rankings[0].items

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as the JSON output prints it."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """Return the explanation as notebooks show it."""
        return display.render(self, "html")


class Explanations(list[Explanation]):
    """Explanations of several queries: a list that notebooks show."""

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self)


@takes_options(InputOptions)
def explain(
    run: Result | RunLike | Mapping[str, RunLike],
    gold: GoldLike | None = None,
    measures: Measures | None = None,
    *,
    query: str | None = None,
    worst: int = 1,
    system: str | None = None,
    dialects: str | Dialect | Sequence[str | Dialect] | None = None,
    rel: float | None = None,
    **options: Unpack[InputOptions],
) -> Explanations:
    """Explain one query of a run, or the `worst` ones by the first measure.

    The options (`by`, `ids`, `corpus`, `judge`, …) are those of `findwell.evaluate`, and the values
    are those that it gives. Of several runs, `system` names the one to explain. Where a judge draws
    the relation, its verdicts are explained too, with reasons and quotes.

    Instead of a run there may be a `Result`, or the folder of a saved one: it is explained from
    what it keeps, by default with its own measures. Options that say how inputs are read
    (`gold`, `by`, `ids`, `corpus`, …) are then refused.

    >>> gold = {"q": [["a", "b"], ["c"]]}
    >>> (found,) = explain({"q": ["a", "x", "b"]}, gold, "AP", dialects=["findwell", "autorag"])
    >>> [calculation.value for calculation in found.calculations]
    [0.5, 0.41666666666666663]
    >>> print(found.differences[1])
    AP: autorag divides by groups, findwell by relevant items
    """
    refuse_after_fork()
    result = as_result(run)
    if result is not None:
        refuse_inputs(name for name, each in {"gold": gold, **options}.items() if _is_set(each))
        for name in _several(dialects, result.dialect):
            same_dialect(result, dialect(name).name)
        result = rescore(result, measures, rel=rel)
        chosen = _choose_run(result.runs, system)
        queries = worst_queries(result, chosen, worst) if query is None else [query]
        _require(queries, result.queries)
        findings = tuple(found for found in result.findings if found.run in ("", chosen))
        measured = [_Measured.of(result, chosen, queries, {})]
        return _explanations(queries, measured, [dialect(result.dialect)], findings)
    listed = _several(DEFAULTS if measures is None else measures)

    def read_by(relation: str | Matcher) -> list[_DialectMeasures]:
        found = []
        for each in map(dialect, _several(dialects, "findwell")):
            wanted = resolve_measures(listed, each, rel)
            matchers = find_matchers(relation, wanted, each)
            chosen_dialect = with_missing(each, options.get("missing"))
            found.append(_DialectMeasures(chosen_dialect, wanted, matchers))
        return found

    readings = read_by(options.get("by") or "ids")
    every = [matcher for reading in readings for matcher in reading.matchers.values()]
    judged = [matcher.judged for matcher in every]
    asked = [each for reading in readings for each in reading.measures]
    with ExitStack() as prefetching:
        streams, known, inputs, by = load_inputs(
            run,
            gold,
            options.get("run_format"),
            options.get("gold_format"),
            prefetching,
            by=chosen_relation(options.get("by"), asked),
            corpus=options.get("corpus"),
            skip_bad=options.get("skip_bad", False),
            id_from=options.get("id_from"),
            query_from=options.get("query_from"),
            texts=reads_texts(every, asked),
            unlabelled=all(judged),
        )
    readings = read_by(by)
    chosen = _choose_run([stream.name for stream in streams], system)
    corpus = options.get("corpus")
    judge, server = on_server(options.get("judge", "local"), options.get("base_url"))
    explainer = _Explainer(
        next(stream for stream in streams if stream.name == chosen),
        known,
        MatchContext(
            corpus=None if corpus is None else load_corpus(corpus, id_from=options.get("id_from")),
            embedder=options.get("embedder"),
            ids=options.get("ids", "identity"),
            base_url=server,
            tokenizer=options.get("tokenizer"),
            chosen=options.get("by") is not None,
        ),
        find_judge(judge) if any(judged) else None,
        by,
        readings,
    )
    inputs += [] if corpus is None else [Input.of("corpus", corpus)]
    with naming_files(files_of(streams, inputs)):
        return explainer.explain(explainer.worst(worst) if query is None else [query])


def _is_set(option: object) -> bool:
    """Tell whether an option has another value than its default."""
    if isinstance(option, str | Judge):
        return option not in ("identity", "local", Judge())
    return option is not None and option is not False


def worst_queries(result: Result, run: str, count: int) -> list[str]:
    """Return the queries with the lowest values of the first measure; last those without."""
    measure = result.measures[0]
    rows = result.score([measure]).per_query.filter(pl.col("run") == run)
    order = rows.sort(
        "value", descending=not measure.higher_is_better, nulls_last=True, maintain_order=True
    )
    return list(order["query"].head(count))


def _explanations(
    queries: list[str],
    measured: list[_Measured],
    dialects: list[Dialect],
    findings: tuple[Finding, ...],
) -> Explanations:
    """Explain queries under dialects side by side."""
    first = measured[0].result
    abouts = {row["query"]: row for row in first.queries.to_dicts() if row["query"] in set(queries)}
    found = Explanations()
    for query in queries:
        calculations = [each for one in measured for each in one.calculations.of(query)]
        rankings: dict[Ranking, list[tuple[str, str]]] = {}  # each list once
        for one in measured:
            for ranking, read_by in one.rankings(query):
                rankings.setdefault(ranking, []).extend(read_by)
        found.append(
            Explanation(
                query=query,
                about={name: each for name, each in abouts[query].items() if name != "query"},
                dialects=tuple(each.name for each in dialects),
                rankings=tuple(
                    replace(each, read_by=tuple(read_by)) for each, read_by in rankings.items()
                ),
                calculations=tuple(calculations),
                differences=tuple(differences(calculations, dialects)),
                judge=first.judge.get("name", ""),
                judge_limits=judge_limits(first.judge),
                verdicts=measured[0].kept.explained_verdicts(query),
                findings=findings,
            )
        )
    return found


def _require(queries: list[str], table: pl.DataFrame) -> None:
    known = set(table["query"])
    for query in queries:
        if query not in known:
            raise InputError(
                f"the gold has no query {query!r}",
                fix=nearest(query, known) or "findwell score --per-query lists them",
            )


@dataclass(frozen=True, slots=True)
class _Measured:
    """A run as a dialect measures it, ready to explain its queries."""

    result: Result
    calculations: Calculations
    views: list[RelationView]
    kept: KeptRun
    lists: UnitLists  # where the inputs are at hand

    @classmethod
    def of(cls, result: Result, run: str, queries: list[str], lists: UnitLists) -> _Measured:
        calculations = Calculations(result, run)
        seen = views(result, run, calculations.names)
        return cls(result, calculations, seen, KeptRun(result, run, queries), lists)

    def rankings(self, query: str) -> Iterable[tuple[Ranking, list[tuple[str, str]]]]:
        """Lay out the list of a query as the measures see it, and say which of them do."""
        for view in self.views:
            if view.relation in self.lists:
                units = self.lists[view.relation].get(query, [])
            else:
                units = self.kept.units(view, query)
            relation = self.result.relation_name(view.measures[0])
            names = [self.calculations.names[measure] for measure in view.measures]
            yield view.rank(query, units, relation), [(name, self.result.dialect) for name in names]


@dataclass(frozen=True, slots=True)
class _DialectMeasures:
    """A dialect, measures as it means them, and what draws the relations that they read."""

    dialect: Dialect
    measures: tuple[Measure, ...]
    matchers: Mapping[str, Matcher]


@dataclass(frozen=True, slots=True)
class _Explainer:
    """A run, a gold, and how they are brought together.

    The whole run is measured, though few queries are explained: what is a text and what an id may
    depend on the others, and an explained number is the one that was measured.
    """

    stream: RunStream
    gold: Gold
    context: MatchContext
    judge: JudgeProtocol | None
    by: str | Matcher
    readings: list[_DialectMeasures]

    def worst(self, count: int) -> list[str]:
        """Return the queries with the lowest values of the first measure; last those without."""
        first = self.readings[0]
        result = self._result(replace(first, measures=first.measures[:1]), self.judge)
        return worst_queries(result, self.stream.name, count)

    def explain(self, queries: list[str]) -> Explanations:
        """Explain some queries."""
        _require(queries, self.gold.queries)
        # the other queries cost money, and change nothing
        judge = None if self.judge is None else _OnlyQueries(self.judge, queries)
        measured = []
        for reading in self.readings:
            result, lists = self._result(reading, judge), self._lists(reading, queries)
            measured.append(_Measured.of(result, self.stream.name, queries, lists))
        findings = merge_findings((*self.stream.findings, *self.gold.findings))
        dialects = [reading.dialect for reading in self.readings]
        return _explanations(queries, measured, dialects, findings)

    def _result(self, reading: _DialectMeasures, judge: JudgeProtocol | None) -> Result:
        """Measure the run; a query that it lacks is explained, not refused."""
        policy = reading.dialect.policy
        kind = replace(policy, missing="skip" if policy.missing == "error" else policy.missing)
        result = assess(
            [self.stream],
            self.gold,
            reading.measures,
            replace(reading.dialect, policy=kind),
            self.by,
            self.context,
            judge=judge,
            keep=EVERY if judge else 0,
        )
        return replace(result, provenance=replace(result.provenance, policy=policy))

    def _lists(self, reading: _DialectMeasures, queries: list[str]) -> UnitLists:
        """Return the units of queries as rules compare them with the gold, by relation."""
        context = replace(self.context, run_ids=reading.dialect.run_ids)
        policy = replace(reading.dialect.policy, blank="kept")
        found = {}
        for name, matcher in reading.matchers.items():
            bound = None if matcher.judged else matcher.bind(self.gold, context)
            if not isinstance(bound, BoundByRule):
                continue
            batches = (bound.rows(batch)[0] for batch in self.stream.batches())
            mine = pl.col("query").is_in(queries)
            rows = pl.concat([batch.filter(mine) for batch in batches], how="diagonal")
            run = Run(self.stream.name, rows, self.stream.order)
            aligned = align(run, bound.gold, policy, by_id=not bound.blank_is_unit)
            found[name] = bound_units(aligned, bound)
        return found


class _OnlyQueries:
    """A judge that is asked about some queries only; the others get no verdict."""

    def __init__(self, judge: JudgeProtocol, queries: Iterable[str]) -> None:
        self._judge = judge
        self._queries = set(queries)
        self.name = judge.name
        self.about = judge.about
        self.findings = getattr(judge, "findings", list)

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Pass on the samples of the queries."""
        wanted = [sample.query in self._queries for sample in samples]
        judged = iter(self._judge.judge([*compress(samples, wanted)], aspects, progress))
        return [next(judged) if each else Judged() for each in wanted]


def _several(values: Any, default: str = "") -> list[Any]:  # noqa: ANN401
    """Return one value or several as a list."""
    if values is None:
        return [default]
    one = isinstance(values, str) or not isinstance(values, Iterable)
    return [values] if one else list(values)


def _choose_run(runs: list[str], wanted: str | None) -> str:
    if wanted is not None:
        return choose("system", wanted, runs)
    if len(runs) > 1:
        raise OptionError(
            f"{len(runs)} runs cannot be explained at once: {', '.join(runs)}",
            fix=f"name one, for example system={runs[0]!r} (--system {runs[0]})",
        )
    return runs[0]

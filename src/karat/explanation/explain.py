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

from karat import display
from karat.align.align import align
from karat.core.data import Gold, Run, RunStream
from karat.dialects import Dialect, dialect, resolve_measures
from karat.errors import InputError, OptionError, choose, nearest
from karat.evaluation.assessment import assess, find_matchers, with_missing
from karat.evaluation.inputs import load_inputs
from karat.explanation.calculation import Calculation, Calculations, differences
from karat.explanation.ranking import Item, Ranking, Step, Unit, views
from karat.explanation.units import ExplainedVerdict, KeptRun, bound_units
from karat.findings import Finding, merge_findings
from karat.judges.find import find_judge, on_server
from karat.judges.settings import Judge
from karat.judges.verdicts import Judged
from karat.measures import DEFAULTS
from karat.read.corpus import load_corpus
from karat.relate.match.matcher import BoundByRule, MatchContext
from karat.results.reuse import as_result, refuse_inputs, rescore, same_dialect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from karat.evaluation.evaluate import InputOptions
    from karat.explanation.ranking import RelationView
    from karat.judges.verdicts import JudgeProtocol, Sample
    from karat.measures import Measure
    from karat.progress import Report
    from karat.read import GoldLike, RunLike
    from karat.relate.match import Matcher
    from karat.results.result import Result

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
) -> list[Explanation]:
    """Explain one query of a run, or the `worst` ones by the first measure.

    The options (`by`, `ids`, `corpus`, `judge`, …) are those of `karat.evaluate`, and the values
    are those that it gives. Of several runs, `system` names the one to explain. Where a judge draws
    the relation, its verdicts are explained too, with reasons and quotes.

    In the place of a run there may be a `Result`, or the folder of a saved one: it is explained
    from what it keeps, by default with its own measures. Options that say how inputs are read
    (`gold`, `by`, `ids`, `corpus`, …) are then refused.

    >>> gold = {"q": [["a", "b"], ["c"]]}
    >>> (found,) = explain({"q": ["a", "x", "b"]}, gold, "AP", dialects=["karat", "autorag"])
    >>> [calculation.value for calculation in found.calculations]
    [0.5, 0.41666666666666663]
    >>> print(found.differences[1])
    AP: autorag divides by groups, karat by relevant items
    """
    result = as_result(run)
    if result is not None:
        refuse_inputs(name for name, each in {"gold": gold, **options}.items() if _is_set(each))
        for name in _several(dialects, result.dialect):
            same_dialect(result, dialect(name).name)
        scored = rescore(result, measures, rel=rel)
        return _explain_result(scored, _choose_run(scored.runs, system), query, worst)
    by = options.get("by") or "ids"
    listed = _several(DEFAULTS if measures is None else measures)
    spoken = [
        _DialectMeasures.of(with_missing(dialect(name), options.get("missing")), listed, rel, by)
        for name in _several(dialects, "karat")
    ]
    matchers = [matcher for each in spoken for matcher in each.matchers.values()]
    judged = [matcher.judged for matcher in matchers]
    with ExitStack() as prefetching:
        streams, known, _ = load_inputs(
            run,
            gold,
            options.get("run_format"),
            options.get("gold_format"),
            prefetching,
            skip_bad=options.get("skip_bad", False),
            texts=any(matcher.reads_texts for matcher in matchers),
            unlabelled=all(judged),
        )
    chosen = _choose_run([stream.name for stream in streams], system)
    corpus = options.get("corpus")
    judge, server = on_server(options.get("judge", "local"), options.get("base_url"))
    explainer = _Explainer(
        next(stream for stream in streams if stream.name == chosen),
        known,
        MatchContext(
            corpus=None if corpus is None else load_corpus(corpus),
            embedder=options.get("embedder"),
            ids=options.get("ids", "identity"),
            base_url=server,
        ),
        find_judge(judge) if any(judged) else None,
        spoken,
    )
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


def _explain_result(result: Result, run: str, query: str | None, worst: int) -> list[Explanation]:
    """Explain queries of a run from what a result keeps."""
    queries = worst_queries(result, run, worst) if query is None else [query]
    _require(queries, result.queries)
    measured = [_Measured.of(result, run, queries, {})]
    findings = tuple(found for found in result.findings if found.run in ("", run))
    return _explanations(queries, measured, [dialect(result.dialect)], findings)


def _explanations(
    queries: list[str],
    measured: list[_Measured],
    dialects: list[Dialect],
    findings: tuple[Finding, ...],
) -> list[Explanation]:
    """Explain queries under dialects side by side."""
    first = measured[0].result
    abouts = {row["query"]: row for row in first.queries.to_dicts() if row["query"] in set(queries)}
    found = []
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
                fix=nearest(query, known) or "karat score --per-query lists them",
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
    """Measures as a dialect speaks them, and what draws the relations that they read."""

    dialect: Dialect
    measures: tuple[Measure, ...]
    by: str | Matcher
    matchers: Mapping[str, Matcher]

    @classmethod
    def of(
        cls, speaks: Dialect, measures: list[str | Measure], rel: float | None, by: str | Matcher
    ) -> _DialectMeasures:
        wanted = resolve_measures(measures, speaks, rel)
        return cls(speaks, wanted, by, find_matchers(by, wanted, speaks))


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
    spoken: list[_DialectMeasures]

    def worst(self, count: int) -> list[str]:
        """Return the queries with the lowest values of the first measure; last those without."""
        first = self.spoken[0]
        result = self._result(replace(first, measures=first.measures[:1]), self.judge)
        return worst_queries(result, self.stream.name, count)

    def explain(self, queries: list[str]) -> list[Explanation]:
        """Explain some queries."""
        _require(queries, self.gold.queries)
        # the other queries cost money, and change nothing
        judge = None if self.judge is None else _OnlyQueries(self.judge, queries)
        measured = []
        for each in self.spoken:
            result, lists = self._result(each, judge), self._lists(each, queries)
            measured.append(_Measured.of(result, self.stream.name, queries, lists))
        findings = merge_findings((*self.stream.findings, *self.gold.findings))
        return _explanations(queries, measured, [each.dialect for each in self.spoken], findings)

    def _result(self, spoken: _DialectMeasures, judge: JudgeProtocol | None) -> Result:
        """Measure the run; a query that it lacks is explained, not refused."""
        policy = spoken.dialect.policy
        kind = replace(policy, missing="skip" if policy.missing == "error" else policy.missing)
        result = assess(
            [self.stream],
            self.gold,
            spoken.measures,
            replace(spoken.dialect, policy=kind),
            spoken.by,
            self.context,
            judge=judge,
            keep=EVERY if judge else 0,
        )
        return replace(result, provenance=replace(result.provenance, policy=policy))

    def _lists(self, spoken: _DialectMeasures, queries: list[str]) -> UnitLists:
        """Return the units of queries as rules compare them with the gold, by relation."""
        context = replace(self.context, run_ids=spoken.dialect.run_ids)
        policy = replace(spoken.dialect.policy, blank="kept")
        found = {}
        for name, matcher in spoken.matchers.items():
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
    """A judge that is asked about some queries; about the others it says nothing."""

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
        asked = [sample.query in self._queries for sample in samples]
        given = iter(self._judge.judge([*compress(samples, asked)], aspects, progress))
        return [next(given) if wanted else Judged() for wanted in asked]


def _several(given: Any, default: str = "") -> list[Any]:  # noqa: ANN401
    """Return what was given once or several times as a list."""
    if given is None:
        return [default]
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def _choose_run(runs: list[str], wanted: str | None) -> str:
    if wanted is not None:
        return choose("system", wanted, runs)
    if len(runs) > 1:
        raise OptionError(
            f"{len(runs)} runs cannot be explained at once: {', '.join(runs)}",
            fix=f"name one, for example system={runs[0]!r} (--system {runs[0]})",
        )
    return runs[0]


__all__ = ["Explanation", "explain", "worst_queries"]

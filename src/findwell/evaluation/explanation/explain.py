"""Explanations: one query step by step, under one dialect or side by side under several.

What is explained is a `Result`, whether it was just measured or saved long ago.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from findwell.core import display
from findwell.core.data import Run
from findwell.core.errors import InputError, OptionError, choose, nearest
from findwell.core.findings import Finding, merge_findings
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.evaluation.evaluate import assess
from findwell.evaluation.explanation.calculation import Calculation, Calculations, differences
from findwell.evaluation.explanation.ranking import Item, Ranking, Step, Unit, views
from findwell.evaluation.explanation.units import ExplainedVerdict, KeptRun, bound_units
from findwell.evaluation.inputs import read_inputs
from findwell.evaluation.plan import InputOptions, Plan, flat_options, takes_plan
from findwell.evaluation.results.result import as_result, refuse_inputs, rescore, same_dialect
from findwell.judges.limits import judge_limits
from findwell.judges.verdicts import Judged
from findwell.measures import DEFAULTS
from findwell.measures.dialects import Dialect, dialect, resolve_measures
from findwell.relations.align import align
from findwell.relations.match.matcher import BoundByRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.data import RunStream
    from findwell.core.progress import Report
    from findwell.evaluation.inputs import Inputs
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.judges.verdicts import JudgeProtocol, Sample
    from findwell.measures import Measure

Measures: TypeAlias = "Iterable[str | Measure] | str"
UnitLists: TypeAlias = dict[str, dict[str, list[Unit]]]  # by relation and query

ALL_DOCUMENTS = 1 << 31  # how many of a list are kept


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(display.Shown):
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


class Explanations(list[Explanation]):
    """Explanations of several queries: a list that shows itself."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self)


@takes_plan(InputOptions)
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
    """Explain the values of one query of a run, or of the `worst` ones by the first measure.

    The options (`by`, `corpus`, `judge`, `reading`, …) are those of `findwell.evaluate`, and the
    values are the same. If there are several runs, `system` names the one to explain. If a judge
    was asked, its verdicts are explained too, with reasons and quotes.

    `run` may also be a `Result`, or the folder of a saved one. It is then explained from what it
    keeps, by default with its own measures. Options that say how inputs are read (`gold`, `by`,
    `corpus`, `reading`, …) are then refused.

    >>> gold = {"q": [["a", "b"], ["c"]]}
    >>> (found,) = explain({"q": ["a", "x", "b"]}, gold, "AP", dialects=["findwell", "autorag"])
    >>> [calculation.value for calculation in found.calculations]
    [0.5, 0.41666666666666663]
    >>> print(found.differences[1])
    AP: autorag divides by groups, findwell by relevant items
    """
    refuse_after_fork()
    chosen_options = flat_options(options)
    result = as_result(run)
    if result is not None:
        given = {"gold": gold, **chosen_options}
        refuse_inputs(name for name, each in given.items() if each is not None)
        for name in _several(dialects, result.dialect):
            same_dialect(result, dialect(name).name)
        result = rescore(result, measures, rel=rel)
        chosen = _choose_run(result.runs, system)
        queries = worst_queries(result, chosen, worst) if query is None else [query]
        _require(queries, result.queries)
        findings = tuple(found for found in result.findings if found.run in ("", chosen))
        measured = [_Measured(result, chosen, queries, {})]
        return _explanations(queries, measured, [dialect(result.dialect)], findings)
    asked = _several(DEFAULTS if measures is None else measures)
    plans: list[Plan] = []
    for each in map(dialect, _several(dialects, "findwell")):
        plans.append(Plan.of(resolve_measures(asked, each, rel), dialect=each, **chosen_options))
        # one for all
        chosen_options["judge"] = plans[-1].judge or chosen_options.get("judge")
    with ExitStack() as held:
        inputs = read_inputs(_together(plans), run, gold, held)
        chosen = _choose_run([each.name for each in inputs.runs], system)
        explained = _ExplainedRun(
            inputs,
            next(each for each in inputs.runs if each.name == chosen),
            [plan.over(inputs.plan.by or "ids") for plan in plans],
        )
        return explained.explain(explained.worst(worst) if query is None else [query])


def _together(plans: list[Plan]) -> Plan:
    """Return a plan to read inputs by that serve all of these plans."""
    measures = tuple(measure for plan in plans for measure in plan.measures)
    texts = any(plan.reading.texts for plan in plans)
    return replace(plans[0], measures=measures, reading=replace(plans[0].reading, texts=texts))


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


class _Measured:
    """A run as a dialect measures it, ready to explain its queries."""

    def __init__(self, result: Result, run: str, queries: list[str], lists: UnitLists) -> None:
        self.result = result
        self.calculations = Calculations(result, run)
        self.kept = KeptRun(result, run, queries)
        self._views = views(result, run, self.calculations.names)
        self._lists = lists  # where the inputs are at hand

    def rankings(self, query: str) -> Iterable[tuple[Ranking, list[tuple[str, str]]]]:
        """Lay out the list of a query as the measures see it, and say which of them do."""
        for view in self._views:
            if view.relation in self._lists:
                units = self._lists[view.relation].get(query, [])
            else:
                units = self.kept.units(view, query)
            relation = self.result.relation_name(view.measures[0])
            names = [self.calculations.names[measure] for measure in view.measures]
            yield view.rank(query, units, relation), [(name, self.result.dialect) for name in names]


@dataclass(frozen=True, slots=True)
class _ExplainedRun:
    """A run, what else was read, and a plan for each dialect.

    The whole run is measured, though few queries are explained: what is a text and what an id may
    depend on the others, and an explained number is the one that was measured.
    """

    inputs: Inputs
    run: RunStream
    plans: list[Plan]

    def worst(self, count: int) -> list[str]:
        """Return the queries with the lowest values of the first measure; last those without."""
        first = self.plans[0]
        result = self._result(replace(first, measures=first.measures[:1]))
        return worst_queries(result, self.run.name, count)

    def explain(self, queries: list[str]) -> Explanations:
        """Explain some queries."""
        gold = self.inputs.gold
        _require(queries, gold.queries)
        measured = []
        for plan in self.plans:
            # the other queries cost money, and change nothing
            judge = None if plan.judge is None else _OnlyQueries(plan.judge, queries)
            keep = ALL_DOCUMENTS if judge else 0
            result = self._result(replace(plan, judge=judge, keep=keep))
            measured.append(_Measured(result, self.run.name, queries, self._lists(plan, queries)))
        findings = merge_findings((*self.run.findings, *gold.findings))
        return _explanations(queries, measured, [plan.dialect for plan in self.plans], findings)

    def _result(self, plan: Plan) -> Result:
        """Measure the run; a query that it lacks is explained, not refused."""
        policy = plan.policy
        kind = replace(policy, missing="skip" if policy.missing == "error" else policy.missing)
        lenient = replace(plan, dialect=replace(plan.dialect, policy=kind))
        result = assess(lenient, [self.run], self.inputs.gold, corpus=self.inputs.corpus)
        return replace(result, provenance=replace(result.provenance, policy=policy))

    def _lists(self, plan: Plan, queries: list[str]) -> UnitLists:
        """Return the units of queries as rules compare them with the gold, by relation."""
        context = plan.context(self.inputs.corpus)
        policy = replace(plan.policy, blank="kept")
        found = {}
        for name, matcher in plan.matchers.items():
            bound = None if matcher.judged else matcher.bind(self.inputs.gold, context)
            if not isinstance(bound, BoundByRule):
                continue
            batches = (bound.rows(batch)[0] for batch in self.run.batches())
            mine = pl.col("query").is_in(queries)
            rows = pl.concat([batch.filter(mine) for batch in batches], how="diagonal")
            run = Run(self.run.name, rows, self.run.order)
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

"""Explanations: one query step by step, under one dialect or side by side under several."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from karat.align import align
from karat.data import Gold, Run, RunStream
from karat.dialects import Dialect, dialect, speak
from karat.errors import InputError, OptionError, choose, nearest
from karat.evaluation.assessment import assess, find_matchers
from karat.evaluation.inputs import load_inputs
from karat.explanation.accounts import Account, Accounts, with_parts
from karat.explanation.differences import differences
from karat.explanation.judged import Said, SomeQueries, judged_units, verdicts_of
from karat.explanation.marks import Item, views
from karat.explanation.ranking import Ranking, Step, Unit, lay_out, units_of
from karat.findings import Finding, merge_findings
from karat.judges.find import find_judge
from karat.match.ids import normalise_gold
from karat.match.judged import Judged
from karat.match.matcher import Material
from karat.measures import DEFAULTS
from karat.read.corpus import load_corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from karat.align import Missing
    from karat.judges.verdicts import Judge
    from karat.match import Matcher
    from karat.match.ids import Normaliser
    from karat.measures import Measure
    from karat.results.result import Result


MISSING = ("zero", "skip", "error")
EVERY = 1 << 31  # documents of a list that are kept: all of them


@dataclass(frozen=True, slots=True)
class Explanation:
    """All there is to say about one query.

    Measures that do not count the same items, or that read different relations, see different
    lists: there is a ranking for each.
    """

    query: str
    about: dict[str, Any]
    dialects: tuple[str, ...]
    rankings: tuple[Ranking, ...]
    accounts: tuple[Account, ...]
    differences: tuple[str, ...]
    judge: str = ""
    verdicts: tuple[Said, ...] = ()  # of the judge, if there is one
    findings: tuple[Finding, ...] = ()  # what is odd about the inputs

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
        # reports stand behind explanations on the path, so nothing here may know them before
        return str(importlib.import_module("karat.report.notebook").explanation_html(self))


def explain(
    run: object,
    gold: object = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    query: str | None = None,
    worst: int = 1,
    by: str | Matcher = "ids",
    dialects: str | Dialect | Sequence[str | Dialect] = "karat",
    ids: Normaliser = "identity",
    rel: float | None = None,
    missing: str | None = None,
    corpus: object = None,
    embedder: object = None,
    judge: object = "local",
    judge_options: Mapping[str, Any] | None = None,
    run_format: str | None = None,
    gold_format: str | None = None,
    skip_bad: bool = False,
) -> list[Explanation]:
    """Explain one query of a run, or the `worst` ones by the first measure.

    The options are those of `karat.evaluate`, and the values are those that it gives. Where a
    judge draws the relation, its verdicts are told too, with reasons and quotes.

    >>> gold = {"q": [["a", "b"], ["c"]]}
    >>> (told,) = explain({"q": ["a", "x", "b"]}, gold, "AP", dialects=["karat", "autorag"])
    >>> [account.value for account in told.accounts]
    [0.5, 0.41666666666666663]
    >>> print(told.differences[1])
    AP: autorag divides by groups, karat by relevant items
    """
    named = [dialects] if isinstance(dialects, str | Dialect) else list(dialects)
    listed = [measures] if isinstance(measures, str) else list(measures)
    spoken = [_Spoken.of(_with_missing(dialect(name), missing), listed, rel, by) for name in named]
    matchers = [matcher for each in spoken for matcher in each.matchers.values()]
    judged = [isinstance(matcher, Judged) for matcher in matchers]
    streams, known, _, reading = load_inputs(
        run,
        gold,
        run_format,
        gold_format,
        skip_bad=skip_bad,
        texts=any(matcher.reads_texts for matcher in matchers),
        unlabelled=all(judged),
    )
    if reading is not None:
        reading.close()
    if len(streams) > 1:
        raise OptionError(
            f"{len(streams)} runs cannot be explained at once", fix="explain one run at a time"
        )
    table = None if corpus is None else load_corpus(corpus)
    case = _Case(
        streams[0],
        known,
        Material(corpus=table, embedder=embedder, ids=ids),
        find_judge(judge, **(judge_options or {})) if any(judged) else None,
        spoken,
    )
    return case.explain(case.worst(worst) if query is None else [query])


def _with_missing(speaks: Dialect, missing: str | None) -> Dialect:
    if missing is None:
        return speaks
    chosen = cast("Missing", choose("choice for missing queries", missing, MISSING))
    return replace(speaks, policy=replace(speaks.policy, missing=chosen))


@dataclass(frozen=True, slots=True)
class _Spoken:
    """Measures as a dialect speaks them, and what draws the relations that they read."""

    dialect: Dialect
    measures: tuple[Measure, ...]
    by: str | Matcher
    matchers: Mapping[str, Matcher]

    @classmethod
    def of(
        cls, speaks: Dialect, measures: list[str | Measure], rel: float | None, by: str | Matcher
    ) -> _Spoken:
        wanted = speak(measures, speaks, rel)
        return cls(speaks, wanted, by, find_matchers(by, wanted, speaks))


@dataclass(frozen=True, slots=True)
class _Case:
    """A run, a gold, and how they are brought together.

    The whole run is measured, though few queries are told: what a text is, or what the scale of
    grades is, may hang on the others, and an explained number is the one that was measured.
    """

    stream: RunStream
    gold: Gold
    material: Material
    judge: Judge | None
    spoken: list[_Spoken]

    def worst(self, count: int) -> list[str]:
        """Return the queries with the lowest values of the first measure; last those without."""
        first = self.spoken[0]
        measure = first.measures[0]
        result = self._result(replace(first, measures=(measure,)), self.judge)
        order = result.per_query.sort(
            "value", descending=not measure.higher_is_better, nulls_last=True, maintain_order=True
        )
        return list(order["query"].head(count))

    def explain(self, queries: list[str]) -> list[Explanation]:
        """Tell all about some queries."""
        for query in queries:
            if query not in self.gold.query_numbers:
                raise InputError(
                    f"the gold has no query {query!r}",
                    fix=nearest(query, self.gold.query_numbers)
                    or "karat score --per-query lists them",
                )
        judge = self.judge
        if judge is not None and all(
            measure.alone() for each in self.spoken for measure in each.measures
        ):
            judge = SomeQueries(judge, queries)  # the others cost money, and change nothing
        results = [self._result(each, judge) for each in self.spoken]
        return [self._tell(query, results) for query in queries]

    def _tell(self, query: str, results: list[Result]) -> Explanation:
        run = self.stream.name
        accounts = [account for each in results for account in Accounts(each, run).tell(query)]
        about = self.gold.queries.row(self.gold.query_numbers[query], named=True)
        return Explanation(
            query=query,
            about={name: value for name, value in about.items() if name != "query"},
            dialects=tuple(each.dialect.name for each in self.spoken),
            rankings=tuple(self._rankings(query, results)),
            accounts=tuple(accounts),
            differences=tuple(differences(accounts, [each.dialect for each in self.spoken])),
            judge=self.judge.name if self.judge else "",
            verdicts=verdicts_of(results[0], query) if self.judge else (),
            findings=merge_findings((*self.stream.findings, *self.gold.findings)),
        )

    def _result(self, spoken: _Spoken, judge: Judge | None) -> Result:
        """Measure the run; a query that it lacks is told of, not refused."""
        policy = spoken.dialect.policy
        kind = replace(policy, missing="skip" if policy.missing == "error" else policy.missing)
        result = assess(
            [self.stream],
            self.gold,
            spoken.measures,
            replace(spoken.dialect, policy=kind),
            spoken.by,
            self.material,
            judge=judge,
            keep=EVERY if judge else 0,
        )
        return replace(result, policy=policy)

    def _rankings(self, query: str, results: list[Result]) -> Iterable[Ranking]:
        """Lay out the list of a query as the measures of every dialect see it, each list once."""
        found: dict[Ranking, list[tuple[str, str]]] = {}
        for spoken, result in zip(self.spoken, results, strict=True):
            units: dict[str, list[Unit]] = {}
            for view in views(result, self.stream.name, with_parts(spoken.measures)):
                matcher = spoken.matchers[view.relation]
                if view.relation not in units:
                    units[view.relation] = (
                        judged_units(result, query, view.marks)
                        if isinstance(matcher, Judged)
                        else self._units(query, spoken.dialect, matcher)
                    )
                relation = result.relation_name(view.measures[0])
                shown = lay_out(view, relation, query, units[view.relation])
                read_by = found.setdefault(shown, [])
                read_by += ((str(measure), result.dialect) for measure in view.measures)
        return (replace(shown, read_by=tuple(read_by)) for shown, read_by in found.items())

    def _units(self, query: str, speaks: Dialect, matcher: Matcher) -> list[Unit]:
        """Return the units of a query, as a rule compares them with the gold."""
        ids = self.material.ids
        gold = self.gold if ids == "identity" else normalise_gold(self.gold, ids)
        given = ids if ids != "identity" else speaks.run_ids
        drawing = matcher.against(gold, replace(self.material, ids=given))
        batches = (drawing.rows(batch)[0] for batch in self.stream.batches())
        rows = pl.concat([batch.filter(query=query) for batch in batches], how="diagonal")
        run = Run(self.stream.name, rows, self.stream.order)
        return units_of(align(run, drawing.gold, replace(speaks.policy, blank="kept")), drawing)

"""Some queries of a run, and all there is to say about them."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from karat.align.align import align
from karat.core.data import Gold, Run, RunStream
from karat.dialects import Dialect, resolve_measures
from karat.errors import InputError, nearest
from karat.evaluation.assessment import assess, find_matchers
from karat.explanation.accounts import Account, Accounts
from karat.explanation.differences import differences
from karat.explanation.judged import Said, SomeQueries, judged_units, verdicts_of
from karat.explanation.marks import Item, views
from karat.explanation.ranking import Ranking, Step, Unit, lay_out, units_of
from karat.findings import Finding, merge_findings
from karat.relate.match.matcher import BoundByRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from karat.explanation.marks import View
    from karat.judges.verdicts import JudgeProtocol
    from karat.measures import Measure
    from karat.relate.match import Matcher
    from karat.relate.match.matcher import MatchContext
    from karat.results.result import Result

Lists: TypeAlias = dict[str, dict[int, list[Unit]]]  # by relation and number of the query

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


@dataclass(frozen=True, slots=True)
class Spoken:
    """Measures as a dialect speaks them, and what draws the relations that they read."""

    dialect: Dialect
    measures: tuple[Measure, ...]
    by: str | Matcher
    matchers: Mapping[str, Matcher]

    @classmethod
    def of(
        cls, speaks: Dialect, measures: list[str | Measure], rel: float | None, by: str | Matcher
    ) -> Spoken:
        """Speak measures in a dialect."""
        wanted = resolve_measures(
            measures, speaks, rel
        )  # one name, one measure, to stand side by side
        return cls(speaks, wanted, by, find_matchers(by, wanted, speaks))


@dataclass(frozen=True, slots=True)
class _Measured:
    """A run as a dialect measures it, ready to tell of its queries."""

    result: Result
    accounts: Accounts
    views: list[View]
    lists: Lists

    @classmethod
    def of(cls, result: Result, lists: Lists) -> _Measured:
        (run,) = result.runs
        accounts = Accounts(result, run)
        return cls(result, accounts, views(result, run, accounts.names), lists)

    def rankings(self, query: str, number: int) -> Iterator[tuple[Ranking, list[tuple[str, str]]]]:
        """Lay out the list of a query as the measures see it, and say which of them do."""
        for view in self.views:
            if view.relation in self.lists:
                units = self.lists[view.relation].get(number, [])
            else:
                units = judged_units(self.result, query, view.marks)
            relation = self.result.relation_name(view.measures[0])
            names = [self.accounts.names[measure] for measure in view.measures]
            read_by = [(name, self.result.dialect) for name in names]
            yield lay_out(view, relation, query, units), read_by


@dataclass(frozen=True, slots=True)
class Explainer:
    """A run, a gold, and how they are brought together.

    The whole run is measured, though few queries are told: what is a text and what an id may hang
    on the others, and an explained number is the one that was measured.
    """

    stream: RunStream
    gold: Gold
    context: MatchContext
    judge: JudgeProtocol | None
    spoken: list[Spoken]

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
        # the other queries cost money, and change nothing
        judge = None if self.judge is None else SomeQueries(self.judge, queries)
        measured = [
            _Measured.of(self._result(each, judge), self._lists(each, queries))
            for each in self.spoken
        ]
        return [self._tell(query, measured) for query in queries]

    def _tell(self, query: str, measured: list[_Measured]) -> Explanation:
        number = self.gold.query_numbers[query]
        accounts = [account for each in measured for account in each.accounts.tell(query)]
        rankings: dict[Ranking, list[tuple[str, str]]] = {}  # each list once
        for each in measured:
            for ranking, read_by in each.rankings(query, number):
                rankings.setdefault(ranking, []).extend(read_by)
        return Explanation(
            query=query,
            about={
                name: value
                for name, value in self.gold.queries.row(number, named=True).items()
                if name != "query"
            },
            dialects=tuple(each.dialect.name for each in self.spoken),
            rankings=tuple(
                replace(each, read_by=tuple(read_by)) for each, read_by in rankings.items()
            ),
            accounts=tuple(accounts),
            differences=tuple(differences(accounts, [each.dialect for each in self.spoken])),
            judge=self.judge.name if self.judge else "",
            verdicts=verdicts_of(measured[0].result, query) if self.judge else (),
            findings=merge_findings((*self.stream.findings, *self.gold.findings)),
        )

    def _result(self, spoken: Spoken, judge: JudgeProtocol | None) -> Result:
        """Measure the run; a query that it lacks is told of, not refused."""
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

    def _lists(self, spoken: Spoken, queries: list[str]) -> Lists:
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
            found[name] = units_of(aligned, bound)
        return found

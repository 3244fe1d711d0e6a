"""Explanations: one query step by step, under one dialect or side by side under several."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.align import align
from karat.data import Gold, Run, RunStream
from karat.dialects import Dialect, dialect, speak
from karat.engines.stream import relate
from karat.errors import InputError, nearest
from karat.evaluation.assessment import assess, find_matchers
from karat.evaluation.inputs import load_inputs
from karat.explanation.differences import differences
from karat.explanation.judged import Said, judged_units, verdicts_of
from karat.explanation.ranking import Item, Step, lay_out, units_of
from karat.judges.find import asked_at, find_judge
from karat.match.ids import normalise_gold
from karat.match.judged import Judged
from karat.match.matcher import Material
from karat.measures import DEFAULTS
from karat.read.corpus import load_corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from karat.judges.verdicts import Judge
    from karat.match import Matcher
    from karat.match.ids import Normaliser
    from karat.measures import Measure
    from karat.relation import Relation
    from karat.results.result import Result


@dataclass(frozen=True, slots=True)
class Account:
    """How a measure comes about under a dialect: terms, sum, divisor, value."""

    measure: str
    dialect: str
    adds: str  # what is added up, in words
    terms: tuple[tuple[int, float], ...]  # rank and value
    divisor: float | None
    divided_by: str
    ideal: tuple[tuple[int, float], ...]  # rank and gain of the ideal list, for nDCG
    value: float | None
    reason: str | None

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return sum(value for _, value in self.terms)


@dataclass(frozen=True, slots=True)
class Explanation:
    """All there is to say about one query."""

    query: str
    about: dict[str, Any]
    dialects: tuple[str, ...]
    relation: str
    ranking: tuple[Step, ...]
    items: tuple[Item, ...]
    accounts: tuple[Account, ...]
    differences: tuple[str, ...]
    judge: str = ""
    verdicts: tuple[Said, ...] = ()  # of the judge, if there is one

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as the JSON output prints it."""
        return asdict(self)


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
    corpus: object = None,
    embedder: object = None,
    judge: object = "local",
    judge_options: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    run_format: str | None = None,
    gold_format: str | None = None,
) -> list[Explanation]:
    """Explain one query, or the `worst` ones by the first measure.

    Where a judge draws the relation, its verdicts are told too, with reasons and quotes.

    >>> gold = {"q": [["a", "b"], ["c"]]}
    >>> (told,) = explain({"q": ["a", "x", "b"]}, gold, "AP", dialects=["karat", "autorag"])
    >>> [account.value for account in told.accounts]
    [0.5, 0.41666666666666663]
    >>> print(told.differences[1])
    AP: autorag divides by groups, karat by relevant items
    """
    named = [dialects] if isinstance(dialects, str | Dialect) else list(dialects)
    speaks = [_kind_to_missing(dialect(name)) for name in named]
    listed = [measures] if isinstance(measures, str) else list(measures)
    spoken = [(each, speak(listed, each, rel)) for each in speaks]
    matchers = [
        matcher for each, wanted in spoken for matcher in find_matchers(by, wanted, each).values()
    ]
    judged = [isinstance(matcher, Judged) for matcher in matchers]
    streams, known, _, reading = load_inputs(
        run,
        gold,
        run_format,
        gold_format,
        skip_bad=False,
        texts=any(matcher.reads_texts for matcher in matchers),
        unlabelled=all(judged),
    )
    if reading is not None:
        reading.close()
    table = None if corpus is None else load_corpus(corpus)
    server, options = asked_at(base_url, judge, judge_options)
    case = _Case(
        streams[0],
        known,
        by,
        Material(corpus=table, embedder=embedder, ids=ids, base_url=server),
        find_judge(judge, **options) if any(judged) else None,
    )
    chosen = [query] if query is not None else case.worst(*spoken[0], worst)
    return [case.explain(name, spoken) for name in chosen]


def _kind_to_missing(speaks: Dialect) -> Dialect:
    """Return the dialect that explains a query the run lacks instead of refusing it."""
    return replace(speaks, policy=replace(speaks.policy, missing="zero"))


@dataclass(frozen=True, slots=True)
class _Case:
    """A run, a gold, and how they are brought together."""

    stream: RunStream
    gold: Gold
    by: str | Matcher
    material: Material
    judge: Judge | None

    def worst(self, speaks: Dialect, measures: tuple[Measure, ...], count: int) -> list[str]:
        """Return the queries with the lowest values of the first measure."""
        result = self._result(self.stream, self.gold, speaks, measures[:1])
        table = result.per_query.filter(pl.col("value").is_not_null())
        higher = measures[0].higher_is_better
        order = table.sort("value", descending=not higher, maintain_order=True)
        return list(order["query"].head(count))

    def explain(self, query: str, spoken: list[tuple[Dialect, tuple[Measure, ...]]]) -> Explanation:
        """Tell all about one query."""
        if query not in self.gold.query_numbers:
            raise InputError(
                f"the gold has no query {query!r}",
                fix=nearest(query, self.gold.query_numbers) or "karat score --per-query lists them",
            )
        mine = pl.col("query") == query
        rows = pl.concat([batch.filter(mine) for batch in self.stream.batches()])
        alone = Run(self.stream.name, rows, self.stream.order)
        gold = self.gold.only(query)
        keep = max(len(rows), 1)
        results = [
            self._result(alone.stream(), gold, speaks, _with_parts(measures), keep)
            for speaks, measures in spoken
        ]
        accounts = [_account(each, measure) for each in results for measure in each.measures]
        first, measures = spoken[0]
        name, matcher = next(iter(find_matchers(self.by, measures, first).items()))
        if isinstance(matcher, Judged):
            relation = results[0].relations[alone.name, name]
            units = judged_units(results[0], matcher.name, relation.judged_to)
            ranking, items = lay_out(units, relation)
        else:
            ranking, items = self._ranking(alone, gold, first, matcher)
        (about,) = gold.queries.to_dicts()
        return Explanation(
            query=query,
            about={name: value for name, value in about.items() if name != "query"},
            dialects=tuple(speaks.name for speaks, _ in spoken),
            relation=name,
            ranking=ranking,
            items=items,
            accounts=tuple(accounts),
            differences=tuple(differences(accounts, [speaks for speaks, _ in spoken])),
            judge=self.judge.name if self.judge else "",
            verdicts=verdicts_of(results[0]) if self.judge else (),
        )

    def _result(
        self,
        stream: RunStream,
        gold: Gold,
        speaks: Dialect,
        measures: tuple[Measure, ...],
        keep: int = 0,
    ) -> Result:
        how = (speaks, self.by, self.material)
        return assess([stream], gold, measures, *how, judge=self.judge, keep=keep)

    def _ranking(
        self, run: Run, gold: Gold, speaks: Dialect, matcher: Matcher
    ) -> tuple[tuple[Step, ...], tuple[Item, ...]]:
        """Lay out the list of one query and its items, as a rule relates them."""
        ids = self.material.ids
        gold = gold if ids == "identity" else normalise_gold(gold, ids)
        material = (
            replace(self.material, ids=speaks.run_ids) if ids == "identity" else self.material
        )
        drawing = matcher.against(gold, material)
        relation = relate(run.stream(), drawing, speaks.policy).relation
        rows, _ = drawing.rows(run.rows)
        policy = replace(speaks.policy, blank="kept")
        aligned = align(replace(run, rows=rows), drawing.gold, policy)
        return lay_out(units_of(aligned, drawing), relation)


def _with_parts(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """Put before each measure those that it is made of."""
    every = (each for measure in measures for each in (*measure.parts(), measure))
    return tuple(dict.fromkeys(every))


def _account(result: Result, measure: Measure) -> Account:
    relation = result.relation(result.runs[0], measure)
    value, reason = result.score([measure]).per_query.select("value", "reason").row(0)
    terms: tuple[tuple[int, float], ...] = ()
    divisor, divided_by, adds = None, "", ""
    if measure.is_sum():
        found = measure.terms(relation)
        values = np.ones(len(found.rank)) if found.value is None else found.value
        terms = tuple(zip(found.rank.tolist(), values.tolist(), strict=True))
        by = measure.divisor(relation)
        divisor, divided_by = float(np.ravel(by.value)[0]), by.name
        adds = (inspect.getdoc(type(measure).terms) or "").splitlines()[0].rstrip(".")
    return Account(
        measure=str(measure),
        dialect=result.dialect,
        adds=adds,
        terms=terms,
        divisor=divisor,
        divided_by=divided_by,
        ideal=_ideal(measure, relation),
        value=value,
        reason=reason,
    )


def _ideal(measure: Measure, relation: Relation) -> tuple[tuple[int, float], ...]:
    """Return the ranks and grades of the ideal list, for measures that have one."""
    if measure.name != "nDCG":
        return ()
    _, rank, item = relation.ideal(measure.k)
    grade = relation.item_grade[item]
    return tuple(zip(rank[grade > 0].tolist(), grade[grade > 0].tolist(), strict=True))

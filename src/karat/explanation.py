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
from karat.differences import differences
from karat.engines.stream import relate
from karat.errors import InputError, nearest
from karat.match.ids import normalise_gold, normalise_run
from karat.measures import DEFAULTS
from karat.read import load_gold, load_run, load_samples
from karat.result import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karat.match.ids import Normaliser
    from karat.measures import Measure
    from karat.relation import Relation


@dataclass(frozen=True, slots=True)
class Step:
    """One rank of the list: what stands there and what it covers."""

    rank: int
    doc: str
    mark: str  # hit, again (covers only what was covered before), repeated, rejected, unjudged
    covers: tuple[int, ...]  # numbers of the items, from 1
    precision: float  # relevant units down to here ÷ rank


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that should be found, and the rank at which it was."""

    number: int
    docs: tuple[str, ...]
    grade: float
    rank: int | None


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
    ranking: tuple[Step, ...]
    items: tuple[Item, ...]
    accounts: tuple[Account, ...]
    differences: tuple[str, ...]

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
    dialects: str | Dialect | Sequence[str | Dialect] = "karat",
    ids: Normaliser = "identity",
    rel: float | None = None,
    run_format: str | None = None,
    gold_format: str | None = None,
) -> list[Explanation]:
    """Explain one query, or the `worst` ones by the first measure.

    >>> gold = {"q": [["a", "b"], ["c"]]}
    >>> (told,) = explain({"q": ["a", "x", "b"]}, gold, "AP", dialects=["karat", "autorag"])
    >>> [account.value for account in told.accounts]
    [0.5, 0.41666666666666663]
    >>> print(told.differences[1])
    AP: autorag divides by groups, karat by relevant items
    """
    named = [dialects] if isinstance(dialects, str | Dialect) else list(dialects)
    speaks = [dialect(name) for name in named]
    if gold is None:
        samples = load_samples(run, format=run_format)
        stream, known = samples.run.stream(), samples.gold
    else:
        stream, known = load_run(run, format=run_format), load_gold(gold, format=gold_format)
    listed = [measures] if isinstance(measures, str) else list(measures)
    chosen = [query] if query is not None else _worst(stream, known, listed, speaks[0], ids, worst)
    return [_explain(stream, known, name, listed, speaks, ids, rel) for name in chosen]


def _worst(  # noqa: PLR0917
    stream: RunStream,
    gold: Gold,
    measures: list[Any],
    first: Dialect,
    ids: Normaliser,
    count: int,
) -> list[str]:
    """Return the queries with the lowest values of the first measure."""
    result = _result(stream, gold, speak(measures[:1], first), first, ids)
    table = result.per_query.filter(pl.col("value").is_not_null())
    higher = result.measures[0].higher_is_better
    order = table.sort("value", descending=not higher, maintain_order=True)
    return list(order["query"].head(count))


def _result(
    stream: RunStream,
    gold: Gold,
    measures: tuple[Measure, ...],
    speaks: Dialect,
    ids: Normaliser,
) -> Result:
    policy = replace(speaks.policy, missing="zero")
    ids, gold = _normalised(gold, speaks, ids)
    relation, findings = relate(stream, gold, policy, ids)
    return Result(
        relations={stream.name: relation},
        measures=measures,
        queries=gold.queries,
        findings=findings,
        dialect=speaks.name,
        policy=policy,
    )


def _normalised(gold: Gold, speaks: Dialect, ids: Normaliser) -> tuple[Normaliser, Gold]:
    if ids == "identity":
        return speaks.run_ids, gold
    return ids, normalise_gold(gold, ids)


def _explain(  # noqa: PLR0917
    stream: RunStream,
    gold: Gold,
    query: str,
    measures: list[Any],
    dialects: list[Dialect],
    ids: Normaliser,
    rel: float | None,
) -> Explanation:
    if query not in gold.query_numbers:
        raise InputError(
            f"the gold has no query {query!r}",
            fix=nearest(query, gold.query_numbers) or "karat score --per-query lists them",
        )
    rows = pl.concat([batch.filter(pl.col("query") == query) for batch in stream.batches()])
    alone = Run(stream.name, rows, stream.order)
    accounts: list[Account] = []
    shown: tuple[tuple[Step, ...], tuple[Item, ...]] | None = None
    for speaks in dialects:
        wanted = _with_parts(speak(measures, speaks, rel))
        result = _result(alone.stream(), gold, wanted, speaks, ids)
        (relation,) = result.relations.values()
        single = relation.select(np.arange(relation.n) == gold.query_numbers[query])
        result = replace(result, relations={stream.name: single})
        accounts += (_account(result, measure) for measure in wanted)
        shown = shown or _ranking(alone, gold, single, speaks, ids)
    ranking, items = shown or ((), ())
    (about,) = gold.queries.filter(pl.col("query") == query).to_dicts()
    return Explanation(
        query=query,
        about={name: value for name, value in about.items() if name != "query"},
        dialects=tuple(speaks.name for speaks in dialects),
        ranking=ranking,
        items=items,
        accounts=tuple(accounts),
        differences=tuple(differences(accounts, dialects)),
    )


def _with_parts(measures: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """Put before each measure those that it is made of."""
    every = (each for measure in measures for each in (*measure.parts(), measure))
    return tuple(dict.fromkeys(every))


def _account(result: Result, measure: Measure) -> Account:
    (relation,) = result.relations.values()
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


def _ranking(
    run: Run, gold: Gold, relation: Relation, speaks: Dialect, ids: Normaliser
) -> tuple[tuple[Step, ...], tuple[Item, ...]]:
    """Lay out the list of one query and its items."""
    ids, gold = _normalised(gold, speaks, ids)
    normal = normalise_run(run, ids)
    aligned = align(normal, gold, speaks.policy)
    names = aligned.doc.to_list()
    covers: dict[int, list[int]] = {}
    for rank, item in zip(relation.edge_rank.tolist(), relation.edge_item.tolist(), strict=True):
        covers.setdefault(rank, []).append(item)
    repeats = set(relation.unit_rank[relation.unit_repeat > 0].tolist())
    first: dict[int, int] = {}
    steps, hits = [], 0
    for rank, doc in enumerate(names, start=1):
        items = covers.get(rank, [])
        relevant = [item for item in items if relation.item_grade[item] >= 1]
        mark = _mark(items, relevant, first, repeated=rank in repeats)
        hits += mark in ("hit", "again")
        if rank not in repeats:
            for item in items:
                first.setdefault(item, rank)
        numbers = tuple(item + 1 for item in items)
        steps.append(Step(rank, doc, mark, numbers, hits / rank))
    members = relation.member_doc.to_list()
    docs: dict[int, list[str]] = {}
    for item, doc in zip(relation.member_item.tolist(), members, strict=True):
        docs.setdefault(item, []).append(doc)
    listed = [
        Item(item + 1, tuple(docs[item]), grade, first.get(item))
        for item, grade in enumerate(relation.item_grade.tolist())
    ]
    return tuple(steps), tuple(listed)


def _mark(items: list[int], relevant: list[int], first: dict[int, int], *, repeated: bool) -> str:
    if repeated:
        return "repeated"
    if relevant:
        return "hit" if any(item not in first for item in relevant) else "again"
    return "rejected" if items else "unjudged"

"""Inputs that several test modules share: seeded random data and hypothesis strategies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import findwell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hypothesis.strategies import DrawFn, SearchStrategy

Scored: TypeAlias = dict[str, dict[str, float]]
Graded: TypeAlias = dict[str, dict[str, int]]
Values: TypeAlias = dict[str, dict[str, float | None]]  # measure → query → value

# Order matters for ties: prefixes of each other, every length of UTF-8, ids that differ only in
# normalisation, right-to-left, case, digits that sort differently as numbers.
TRICKY_IDS = [
    "d",
    "d1",
    "d10",
    "d2",
    "D1",
    "doc-1#0",
    "doc-1#00",
    "é",
    "e\u0301",
    "ß",
    "文档一",
    "文档",
    "\uffe6",  # above the emoji in UTF-16, below it in UTF-8
    "😀",
    "😀😀",
    "👩\u200d🔬",
    "مستند",
    "מסמך",
    "\u202eabc",
    "~",
]


def examples(number: int) -> settings:
    """Ask for so many examples in the profile `ci`, and for its share of them in another one."""
    profile = settings.default or settings.get_profile("ci")
    share = profile.max_examples / settings.get_profile("ci").max_examples
    return settings(max_examples=max(3, round(number * share)))


def without_facts() -> dict[str, type[findwell.Measure]]:
    """Return the measures that need nothing but the relation: no texts, dates or marks."""
    return {
        name: cls for name, cls in findwell.plugins.known_measures().items() if not cls().facts()
    }


def by_measure(result: findwell.Result) -> Values:
    """Return the values of a result of one run as {measure: {query: value}}."""
    (run,) = result.runs
    queries = result.relation(run).queries.to_list()
    return {
        str(measure): {
            query: None if math.isnan(value) else value
            for query, value in zip(queries, result.arrays[run, measure].tolist(), strict=True)
        }
        for measure in result.measures
    }


def random_scored(
    seed: int,
    *,
    queries: int = 20,
    pool: int = 40,
    depth: int = 25,
    judged: int = 20,
    grades: Iterable[int] = (-1, 0, 0, 0, 1, 1, 2, 3),
    levels: int | None = None,
    ids: Iterable[str] | None = None,
) -> tuple[Scored, Graded]:
    """Return a random run and gold; scores take so many `levels`, None means that none ties.

    Scores are multiples of 1/8 below 2^17, so they are the same number in 32 and 64 bits.
    """
    rng = np.random.default_rng(seed)
    docs = [f"d{number}" for number in range(pool)] if ids is None else list(ids)
    choice = list(grades)
    run: Scored = {}
    gold: Graded = {}
    for number in range(1, queries + 1):
        retrieved = rng.permutation(len(docs))[: rng.integers(1, depth + 1)]
        size = len(retrieved)
        scores = rng.permutation(size) if levels is None else rng.integers(levels, size=size)
        run[str(number)] = {
            docs[doc]: float(score) / 8 for doc, score in zip(retrieved, scores, strict=True)
        }
        pooled = rng.permutation(len(docs))[: rng.integers(1, judged + 1)]
        gold[str(number)] = {docs[doc]: int(rng.choice(choice)) for doc in pooled}
    return run, gold


@st.composite
def scored_cases(draw: DrawFn) -> tuple[Scored, Graded]:
    """Draw a scored run and graded judgements as trec_eval takes them, with everything odd.

    Ties, negative grades, queries without a relevant document, queries on one side only,
    unjudged documents and tricky ids. The query `anchor` always has a relevant document.
    """
    ids = st.sampled_from(TRICKY_IDS)
    names = st.sampled_from(["q1", "q2", "q10", "ф", "only-here"])
    grades = st.dictionaries(ids, st.integers(-2, 10), min_size=1, max_size=12)
    scores = st.dictionaries(ids, st.integers(-3, 3).map(float), max_size=len(TRICKY_IDS))
    gold = {**draw(st.dictionaries(names, grades, max_size=4)), "anchor": {"d": 10, "~": 0}}
    run = {**draw(st.dictionaries(names, scores, max_size=5)), "anchor": draw(scores) or {"d": 1.0}}
    return run, gold


def grouped_gold(rows: Iterable[tuple[str, list[str], float]]) -> list[dict[str, Any]]:
    """Return records of a gold from (query, documents of one item, grade)."""
    records: dict[str, list[dict[str, Any]]] = {}
    for query, docs, grade in rows:
        records.setdefault(query, []).append({"docs": docs, "grade": grade})
    return [{"query": query, "gold": items} for query, items in records.items()]


def _documents() -> SearchStrategy[str]:
    return st.sampled_from("abcdefghij")


@st.composite
def grouped_cases(
    draw: DrawFn, *, integer_grades: bool = False
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw a run and a gold with groups: the whole of what findwell accepts, small.

    Runs are lists with repetitions or scores with ties; items are documents or groups, which may
    share documents; grades are negative, zero, fractional or up to 4; the run knows documents
    that nobody judged. Queries may lack a relevant item; `anchor` never does.
    """
    whole = [-1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 4.0]
    grade = st.sampled_from(whole if integer_grades else [*whole, 0.5, 1.5])
    item = st.fixed_dictionaries(
        {"docs": st.lists(_documents(), min_size=1, max_size=3, unique=True), "grade": grade}
    )
    items = st.lists(item, min_size=1, max_size=6)
    names = ["q1", "q2", "q3"]
    gold = [{"query": name, "gold": draw(items)} for name in names if draw(st.booleans())]
    must = {"docs": [draw(_documents())], "grade": 4.0}
    gold.append({"query": "anchor", "gold": [*draw(items), must]})
    retrieved = st.one_of(_documents(), st.sampled_from("uvwxyz"))
    run: dict[str, Any]
    if draw(st.booleans()):
        listed = st.lists(retrieved, max_size=9)
        run = {name: draw(listed) for name in names}
        run["anchor"] = draw(listed) or ["a"]
    else:
        scored = st.dictionaries(retrieved, st.integers(0, 4).map(float), max_size=9)
        run = {name: draw(scored) for name in names}
        run["anchor"] = draw(scored) or {"a": 1.0}
    return run, gold

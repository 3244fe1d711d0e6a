"""Every measure of the registry against its second, plain implementation in `tests/oracle`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
from hypothesis import given

import findwell
from findwell.core.measure import Budget
from tests.measures.test_registry import ALL, CHOICES
from tests.oracle import FORMULAS, Query, value
from tests.strategies import by_measure, examples, grouped_cases, scored_cases

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from findwell import Measure

# ids are compared even where run and gold share none
BY_IDS: dict[str, Any] = {"by": "ids", "reading": findwell.Reading(tokenizer=str.split)}
CLOSE = 1e-12  # sums in another order
WORDS = ["press", "the", "red", "button", "twice", "and", "wait"]
# every measure with every choice of its parameters, at cutoffs and within budgets
MEASURES = (*ALL, findwell.plugins.parse_measure("cost_to(unit=tokens,recall=0.5)"))
WHOLE_GRADES = tuple(map(findwell.plugins.parse_measure, ("nDCG(gain=0:1:3)@3", "DCG(gain=0:2:2)")))
SEARCHES = tuple(
    map(
        findwell.plugins.parse_measure,
        (
            "recall@2hops",
            "nDCG@1hops",
            "items_per(unit=hops)",
            "context_cost(unit=hops)@3",
            "cost_to(unit=hops,recall=0.5)",
        ),
    )
)


def test_every_measure_has_a_second_implementation() -> None:
    assert FORMULAS.keys() == findwell.plugins.known_measures().keys()


def plain(measure: Measure, query: Query) -> float | None:
    """Return what the oracle says."""
    parameters = {name: getattr(measure, name) for name in measure.parameters()}
    k: object = (measure.k.amount, measure.k.unit) if isinstance(measure.k, Budget) else measure.k
    return value(FORMULAS, query, measure.name, k, **parameters)


def differences(
    result: findwell.Result, queries: dict[str, Query], measures: tuple[Measure, ...]
) -> list[tuple[str, str, float | None, float | None]]:
    """Return where the two differ: measure, query, findwell's value, the oracle's."""
    values = by_measure(result)
    wrong = []
    for measure in measures:
        for name, query in queries.items():
            fast, slow = values[str(measure)][name], plain(measure, query)
            same = (
                fast is slow
                if fast is None or slow is None
                else math.isclose(fast, slow, rel_tol=CLOSE, abs_tol=CLOSE)
            )
            if not same:
                wrong.append((str(measure), name, fast, slow))
    return wrong


@st.composite
def corpora(draw: DrawFn, docs: list[str]) -> list[dict[str, Any]]:
    """Draw texts that repeat each other, dates of which some are missing, and marks."""
    text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
    few = draw(st.lists(text, min_size=1, max_size=4))
    day = st.one_of(st.none(), st.integers(1, 28).map(lambda day: f"2026-01-{day:02}"))
    rows = [
        {
            "doc": doc,
            "text": draw(st.sampled_from(few)),
            "date": draw(day),
            "forbidden": draw(st.booleans()),
        }
        for doc in docs
    ]
    return [*rows, {"doc": "any", "text": "Any.", "date": "2026-06-01", "forbidden": False}]


def by_documents(item: dict[str, Any]) -> frozenset[str]:
    return frozenset(item["docs"])


@st.composite
def supported_cases(draw: DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw lists and items whose documents support them partly."""
    docs = st.sampled_from("abcdef")
    support = st.sampled_from([0.25, 0.5, 1.0])
    item = st.fixed_dictionaries(
        {
            "docs": st.dictionaries(docs, support, min_size=1, max_size=3),
            "grade": st.sampled_from([0.0, 1.0, 1.0, 2.0]),
        }
    )
    items = st.lists(item, min_size=1, max_size=4, unique_by=by_documents)
    gold = [{"query": name, "gold": draw(items)} for name in "pq"]
    gold.append({"query": "anchor", "gold": [{"docs": {"a": 1.0}, "grade": 2.0}]})
    run = {name: draw(st.lists(st.sampled_from("abcdefxy"), max_size=7)) for name in "pq"}
    return {name: found or ["x"] for name, found in run.items()}, gold


def as_queries(
    run: dict[str, Any], gold: list[dict[str, Any]], corpus: list[dict[str, Any]]
) -> dict[str, Query]:
    about = {row["doc"]: row for row in corpus}
    return {
        record["query"]: Query.of(
            run.get(record["query"], []),
            [(item["docs"], item["grade"]) for item in record["gold"]],
            corpus=about,
            tokens=lambda text: len(text.split()),
        )
        for record in gold
    }


def documents(run: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(doc for found in run.values() for doc in found))


@given(data=st.data(), case=grouped_cases())
@examples(25)
def test_lists_and_scores_with_groups_and_grades(data: Any, case: tuple[Any, Any]) -> None:
    run, gold = case
    corpus = data.draw(corpora(documents(run)))
    result = findwell.evaluate(run, gold, MEASURES, corpus=corpus, **BY_IDS)
    assert not differences(result, as_queries(run, gold, corpus), MEASURES)


@given(data=st.data(), case=supported_cases())
@examples(15)
def test_items_that_documents_support_partly(data: Any, case: tuple[Any, Any]) -> None:
    run, gold = case
    corpus = data.draw(corpora(documents(run)))
    measures = (*MEASURES, *WHOLE_GRADES)
    result = findwell.evaluate(run, gold, measures, corpus=corpus, **BY_IDS)
    assert not differences(result, as_queries(run, gold, corpus), measures)


@given(case=scored_cases())
@examples(15)
def test_scores_that_tie_and_ids_that_sort_oddly(case: tuple[Any, Any]) -> None:
    run, graded = case
    measures = tuple(measure for measure in MEASURES if not measure.facts())
    result = findwell.evaluate(run, graded, measures, by="ids")
    queries = {
        name: Query.of(run.get(name, {}), [([doc], grade) for doc, grade in docs.items()])
        for name, docs in graded.items()
    }
    assert not differences(result, queries, measures)


@given(data=st.data())
@examples(10)
def test_several_searches(data: Any) -> None:
    docs = st.lists(st.sampled_from("abcdx"), max_size=3)
    hops = data.draw(st.lists(docs, min_size=1, max_size=4))
    gold = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    corpus = data.draw(corpora(list("abcdx")))
    graded = [{"docs": [doc], "grade": 2.0} for doc in gold]
    record = {"query": "q", "hops": [{"retrieved": each} for each in hops], "gold": graded}
    measures = (*MEASURES, *SEARCHES)
    result = findwell.evaluate([record], None, measures, corpus=corpus, **BY_IDS)
    query = Query.of(
        [doc for each in hops for doc in each],
        [([doc], 2.0) for doc in gold],
        corpus={row["doc"]: row for row in corpus},
        hops=[number + 1 for number, each in enumerate(hops) for _ in each],
        tokens=lambda text: len(text.split()),
    )
    query = replace(query, searches=len(hops))
    assert not differences(result, {"q": query}, measures)


def test_the_choices_of_parameters_are_those_of_the_registry() -> None:
    """So that a new parameter is compared with the oracle, too."""
    assert {
        name for cls in findwell.plugins.known_measures().values() for name in cls.parameters()
    } <= {*CHOICES}

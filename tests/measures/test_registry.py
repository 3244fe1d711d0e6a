"""What holds for every measure of the registry, so that a new one is tested by existing.

The measures are taken from `findwell.plugins.known_measures()`: each with its defaults, at some
cutoffs, and with every choice of `CHOICES` for the parameters that it has.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import re
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

import findwell
from findwell.core.errors import MeasureError
from findwell.core.measure import Budget
from tests.members import over
from tests.strategies import by_measure, examples, grouped_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from findwell import Measure

CHOICES: dict[str, tuple[Any, ...]] = {
    "rel": (0.5, 2.0),
    "beta": (0.5, 3.0),
    "p": (0.1, 0.5, 0.95),
    "alpha": (0.0, 1.0),
    "gain": ("exp",),
    "over": ("retrieved", "min"),
    "recall": (0.0, 0.5, 1.0),
    "max": (1.0,),
    "multiple": (0.2, 2.0),
    "hit": (2.0,),
    "noise": (-0.5,),
    "miss": (-1.0,),
    "rest": (0.25,),
    "docs": (1000.0,),
    "unit": ("chars", "ranks"),
    "of": ("last", "median"),
    "support": (0.5, 1.0),
    "third": ("first", "last"),
    "on": ("2026-05-31",),
}
# all documents cost the same, so that what holds for ranks must hold for budgets
TEXT = "Three plain words."
BUDGETS = (Budget(4, "tokens"), Budget(60, "chars"))
# that may be undefined though an item is relevant: recall is not reached, nothing has a date
SOMETIMES = {"cost_to", "age"}
BELOW_ZERO = {"utility"}  # what noise costs may be more than what hits are worth
CLASSES = findwell.plugins.known_measures()
CUT = [cls for cls in CLASSES.values() if cls.at == "k"]
each_class = over(cls=CLASSES.values())
ORDER_NOISE = 1e-12  # sums in another order


def variants(cls: type[Measure]) -> Iterator[Measure]:
    """Go through a measure with its defaults and with every choice, at some cutoffs."""
    cutoffs = (None, 1, 3, 20) if cls.at == "k" else (None,)
    yield from (cls(k=k) for k in (*cutoffs, *(BUDGETS if cls.at == "k" else ())))
    for parameter in cls.parameters():
        for value in CHOICES.get(parameter, ()):
            with contextlib.suppress(MeasureError):  # a name may mean something else elsewhere
                yield from (cls(k=k, **{parameter: value}) for k in cutoffs[::2])


ALL = tuple(dict.fromkeys(itertools.chain.from_iterable(map(variants, CLASSES.values()))))
DEFINED = tuple(measure for measure in ALL if measure.name not in SOMETIMES)
each_measure = over(measure=ALL)


def evaluate(run: Any, gold: Any, measures: Any, **options: Any) -> findwell.Result:
    """Evaluate a run whose documents have texts, which cost something, and dates and marks."""
    docs = dict.fromkeys(("any", *itertools.chain.from_iterable(run.values())))
    corpus = [
        {"doc": doc, "text": TEXT, "date": f"2026-01-{1 + at % 28:02}", "forbidden": at % 3 == 1}
        for doc, at in ((doc, sum(map(ord, doc))) for doc in docs)
    ]
    corpus[0]["date"] = "2026-06-01"  # the newest, whatever was retrieved
    return findwell.evaluate(run, gold, measures, corpus=corpus, **options)


def is_count(measure: Measure) -> bool:
    return measure.aggregation == "sum"


def rewards_relevance(measure: Measure) -> bool:
    """Tell whether a measure grows with relevant units (and not with judged or with any units)."""
    return measure.higher_is_better and not is_count(measure) and measure.name != "judged"


def holds(
    measures: tuple[Measure, ...],
    found: findwell.Result,
    other: findwell.Result,
    test: Callable[[float, float], bool],
) -> None:
    """Assert that a test holds for the two values of every measure and query."""
    first, second = by_measure(found), by_measure(other)
    wrong = [
        (str(measure), query, value, second[str(measure)][query])
        for measure in measures
        for query, value in first[str(measure)].items()
        if (value is None) != (second[str(measure)][query] is None)
        or (value is not None and not test(value, second[str(measure)][query] or 0.0))
    ]
    assert not wrong


# ---- what a measure is


def test_the_choices_reach_every_parameter() -> None:
    known = {parameter for cls in CLASSES.values() for parameter in cls.parameters()}
    assert known <= CHOICES.keys(), "give CHOICES some values for the new parameter"


@each_measure
def test_the_name_spells_the_measure(measure: Measure) -> None:
    again = findwell.plugins.parse_measure(str(measure))
    assert again == measure
    assert hash(again) == hash(measure)
    assert str(again) == str(measure)
    assert findwell.plugins.parse_measure(measure) is measure


@each_class
def test_lookup_ignores_case(cls: type[Measure]) -> None:
    for spelling in (cls.name, cls.name.lower(), cls.name.upper(), f"  {cls.name} "):
        assert findwell.plugins.parse_measure(spelling) == cls()


@each_class
def test_every_alias_is_an_alias_of_this_measure(cls: type[Measure]) -> None:
    for alias in cls.aliases:
        written = re.sub(r"\{\w+\}", "0.5", alias.replace("{k}", "7"))
        assert type(findwell.plugins.parse_measure(written)) is cls, written


@each_class
def test_a_measure_is_a_value(cls: type[Measure]) -> None:
    measure = cls()
    assert measure == cls()
    assert len({measure, cls()}) == 1
    with pytest.raises(AttributeError):
        measure.k = 3  # type: ignore[misc]


@over(
    cls=CUT,
    cutoff=["0", "-1", "2.5", "1e1", "nan", "", "x", "0tokens", "-5chars", "2.5tokens", "7pages"],
)
def test_a_cutoff_is_a_whole_number_from_one(cls: type[Measure], cutoff: str) -> None:
    with pytest.raises(MeasureError):
        findwell.plugins.parse_measure(f"{cls.name}@{cutoff}")


@over(cls=CUT, k=[0, -1])
def test_a_cutoff_below_one_cannot_be_made(cls: type[Measure], k: int) -> None:
    with pytest.raises(MeasureError):
        cls(k=k)


@each_class
def test_a_cutoff_where_none_is_taken_is_refused(cls: type[Measure]) -> None:
    if cls.at is None:
        with pytest.raises(MeasureError, match="no cutoff"):
            findwell.plugins.parse_measure(f"{cls.name}@5")


@each_class
def test_an_unknown_parameter_is_refused(cls: type[Measure]) -> None:
    with pytest.raises(MeasureError, match="no parameter 'nonsense'"):
        findwell.plugins.parse_measure(f"{cls.name}(nonsense=1)")


@over(cls=CLASSES.values(), rel=["0", "-1", "nan", "inf", "many"])
def test_a_relevance_level_is_a_positive_number(cls: type[Measure], rel: str) -> None:
    if "rel" in cls.parameters():
        with pytest.raises(MeasureError):
            findwell.plugins.parse_measure(f"{cls.name}(rel={rel})")


@each_class
def test_the_docstring_defines_the_measure(cls: type[Measure]) -> None:
    text = cls.__doc__ or ""
    assert ">>> " in text
    assert "evaluate(" in text
    assert len(text.splitlines()[0]) > 20
    if cls.aggregation != "sum":
        assert "Citation:" in text


# ---- what its values are


@given(case=grouped_cases())
@examples(40)
def test_values_stay_in_range(case: tuple[Any, Any]) -> None:
    result = evaluate(*case, ALL)
    wrong = [
        (str(measure), value)
        for (_, measure), values in result.arrays.items()
        for value in values[~np.isnan(values)].tolist()
        if not (measure.name in BELOW_ZERO or value >= 0)
        or not value <= (1 if measure.unit_interval else np.inf)
    ]
    assert not wrong


@pytest.mark.parametrize("depth", [1, 2, 10, 100, 1000])
def test_values_of_long_perfect_lists_stay_in_range(depth: int) -> None:
    docs = [f"d{number}" for number in range(depth)]
    measures = [
        measure
        for p in ("0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "0.8", "0.9", "0.95", "0.99")
        for measure in (f"RBP(p={p})", f"RBP_residual(p={p})")
    ]
    gold = {"q": dict.fromkeys(docs, 4)}
    result = evaluate({"q": docs}, gold, [*ALL, *measures])
    wrong = [
        (str(measure), float(values[0]))
        for (_, measure), values in result.arrays.items()
        if measure.unit_interval and not 0 <= values[0] <= 1
    ]
    assert not wrong


@functools.cache
def without_relevant(judged: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rows of a query without a relevant item, and those of the summary."""
    gold = {"q": {"a": 0, "b": -1} if judged else {"b": -1}, "anchor": {"a": 4}}
    run = {"q": ["a", "b", "x"], "anchor": ["a"]}
    result = evaluate(run, gold, ALL)
    rows = (row for row in result.per_query.iter_rows(named=True) if row["query"] == "q")
    return tuple(  # type: ignore[return-value]
        {row["measure"]: row for row in table}
        for table in (rows, result.summary.iter_rows(named=True))
    )


@over(measure=ALL, judged=[True, False])
def test_a_query_without_a_relevant_item_is_undefined(measure: Measure, judged: bool) -> None:
    """Unless documents were judged and the measure looks at nothing but the list."""
    row, summary = (table[str(measure)] for table in without_relevant(judged))
    undefined = measure.needs_relevant and (measure.counts_items or not judged)
    if undefined:
        assert row["value"] is None
        assert row["reason"] == measure.why_undefined
        assert row["reason"].startswith("no relevant item")
    else:
        assert row["value"] is not None
        assert row["reason"] is None
    assert summary["n"] + summary["undefined"] == 2
    assert summary["undefined"] == (1 if undefined else 0)


@pytest.mark.parametrize("run", [{"anchor": ["a"]}, {"anchor": ["a"], "q": []}])
def test_retrieving_nothing_scores_nothing(run: dict[str, list[str]]) -> None:
    gold = {"q": {"a": 4, "b": 1}, "anchor": {"a": 4}}
    found = by_measure(evaluate(run, gold, ALL))
    rising = [each for each in ALL if each.unit_interval and each.higher_is_better]
    assert {str(each) for each in rising if found[str(each)]["q"] != 0} == set()


@given(case=grouped_cases())
@examples(30)
def test_fractional_grades_are_accepted(case: tuple[Any, Any]) -> None:
    run, gold = case
    items = [
        {**record, "gold": [{**item, "grade": item["grade"] + 0.25} for item in record["gold"]]}
        for record in gold
    ]
    result = evaluate(run, items, DEFINED)
    for measure, values in by_measure(result).items():
        assert values["anchor"] is not None, measure


def as_documents(gold: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Turn every document of a gold into an item of its own."""
    return {
        record["query"]: {doc: item["grade"] for item in record["gold"] for doc in item["docs"]}
        for record in gold
    }


@given(case=grouped_cases(), data=st.data())
@examples(40)
def test_the_ideal_order_is_the_best(case: tuple[Any, Any], data: st.DataObject) -> None:
    gold = as_documents(case[1]) | {"anchor": {"a": 4.0, "b": 1.0, "c": 0.0}}
    measures = tuple(m for m in ALL if rewards_relevance(m) or m.name == "judged")
    ideal = {q: sorted(docs, key=lambda d, g=docs: -g[d]) for q, docs in gold.items()}  # type: ignore[misc]
    shuffled = {query: data.draw(st.permutations(docs)) for query, docs in ideal.items()}
    best = evaluate(ideal, gold, measures)
    other = evaluate(shuffled, gold, measures)
    holds(measures, best, other, lambda top, value: top >= value - ORDER_NOISE)


@given(case=grouped_cases(), data=st.data())
@examples(40)
def test_noise_never_helps(case: tuple[Any, Any], data: st.DataObject) -> None:
    run, gold = case
    listed = {
        query: sorted(docs) if isinstance(docs, dict) else docs for query, docs in run.items()
    }
    rejected = {"docs": ["n1"], "grade": 0.0}, {"docs": ["n2"], "grade": 0.0}
    judged = [{**record, "gold": [*record["gold"], *rejected]} for record in gold]
    noisy = {}
    for query, docs in listed.items():
        noise = data.draw(st.lists(st.sampled_from(["n1", "n2", "?1", "?2", "?3"]), unique=True))
        with_noise = list(docs)
        for doc in noise:
            with_noise.insert(data.draw(st.integers(0, len(with_noise))), doc)
        noisy[query] = with_noise
    # pushing a late hit over the cutoff raises AP(over=retrieved)@k: it is blind to what is missed
    measures = tuple(
        measure
        for measure in ALL
        if rewards_relevance(measure)
        and not (getattr(measure, "over", "") == "retrieved" and measure.k is not None)
    )
    clean_values = evaluate(listed, judged, measures)
    noisy_values = evaluate(noisy, judged, measures)
    holds(measures, clean_values, noisy_values, lambda clean, dirty: clean >= dirty - ORDER_NOISE)


@given(case=grouped_cases(), data=st.data())
@examples(40)
def test_the_order_of_the_queries_does_not_matter(
    case: tuple[Any, Any], data: st.DataObject
) -> None:
    run, gold = case
    other_run = {query: run[query] for query in data.draw(st.permutations(list(run)))}
    other_gold = data.draw(st.permutations(gold))
    before = by_measure(evaluate(run, gold, ALL))
    after = by_measure(evaluate(other_run, other_gold, ALL))
    assert before == after


@given(case=grouped_cases())
@examples(30)
def test_a_query_scores_the_same_alone(case: tuple[Any, Any]) -> None:
    run, gold = case
    together = by_measure(evaluate(run, gold, ALL))
    alone = by_measure(
        evaluate({"anchor": run["anchor"]}, [r for r in gold if r["query"] == "anchor"], ALL)
    )
    for measure, values in alone.items():
        mine, expected = values["anchor"], together[measure]["anchor"]
        assert (mine is None) == (expected is None), measure
        assert mine is None or mine == pytest.approx(expected, rel=0, abs=ORDER_NOISE), measure


@given(case=grouped_cases())
@example(case=({"anchor": ["a"]}, {"anchor": {"a": 4}}))
@examples(40)
def test_bounds_enclose_the_value(case: tuple[Any, Any]) -> None:
    result = evaluate(*case, ALL, bounds=True)
    wrong = [
        (str(measure), query, low, value, high)
        for (run, measure), values in result.arrays.items()
        for query, low, value, high in zip(
            result.relation(run).queries,
            result.measured.bounds_of(run, measure)[0],
            values,
            result.measured.bounds_of(run, measure)[1],
            strict=True,
        )
        if (not np.isnan(value) and not (low <= value <= high))
        or (measure.unit_interval and (low < 0 or high > 1))
    ]
    assert not wrong


@given(case=grouped_cases())
@examples(25)
def test_bounds_enclose_the_aggregate(case: tuple[Any, Any]) -> None:
    # "anchor" has a relevant item for every measure, so each has an aggregate
    result = evaluate(*case, DEFINED, bounds=True)
    wrong = [
        (row["measure"], row["lower"], row["value"], row["upper"])
        for row in result.summary.iter_rows(named=True)
        if not row["lower"] - ORDER_NOISE <= row["value"] <= row["upper"] + ORDER_NOISE
    ]
    assert not wrong


@given(case=grouped_cases())
@examples(40)
def test_bounds_meet_where_everything_is_judged(case: tuple[Any, Any]) -> None:
    run, gold = case
    judged = {
        record["query"]: {
            doc for item in record["gold"] if item["grade"] >= 0 for doc in item["docs"]
        }
        for record in gold
    }
    known = {
        query: [doc for doc in docs if doc in judged.get(query, ())] for query, docs in run.items()
    }
    known["anchor"] = known["anchor"] or sorted(judged["anchor"])
    result = evaluate(known, gold, ALL, bounds=True)
    for (name, measure), values in result.arrays.items():
        low, high = result.measured.bounds_of(name, measure)
        assert np.array_equal(low, values, equal_nan=True), str(measure)
        assert np.array_equal(high, values, equal_nan=True), str(measure)


def test_bounds_are_in_the_frames() -> None:
    result = evaluate({"q": ["x", "a"]}, {"q": {"a": 4}}, DEFINED, bounds=True)
    for table in (result.per_query, result.summary):
        for row in table.iter_rows(named=True):
            assert row["lower"] <= row["value"] <= row["upper"]


@given(case=grouped_cases())
@examples(25)
def test_scoring_again_is_the_same_as_evaluating(case: tuple[Any, Any]) -> None:
    asking = [cls() for cls in CLASSES.values() if cls().facts()]
    first = evaluate(*case, ["recall", *asking, *(f"recall@{budget}" for budget in BUDGETS)])
    again = first.score(ALL)
    fresh = evaluate(*case, ALL)
    assert by_measure(again) == by_measure(fresh)
    assert again.values == fresh.values
    # and whatever was computed before leaves no trace
    assert by_measure(fresh.score(ALL[::-1])) == dict(by_measure(fresh))


@given(case=grouped_cases())
@examples(25)
def test_inputs_are_not_changed(case: tuple[Any, Any]) -> None:
    run, gold = case
    before = copy.deepcopy((run, gold))
    _ = evaluate(run, gold, ALL, bounds=True).per_query
    assert (run, gold) == before
    assert [list(docs) for docs in run.values()] == [list(docs) for docs in before[0].values()]


@given(case=grouped_cases(integer_grades=True))
@examples(25)
def test_the_frame_holds_the_arrays(case: tuple[Any, Any]) -> None:
    result = evaluate(*case, ALL)
    table: dict[str, dict[str, float | None]] = {}
    why = {str(measure): measure.why_undefined for measure in ALL}
    for row in result.per_query.iter_rows(named=True):
        table.setdefault(row["measure"], {})[row["query"]] = row["value"]
        assert row["reason"] == (why[row["measure"]] if row["value"] is None else None)
    assert table == by_measure(result)

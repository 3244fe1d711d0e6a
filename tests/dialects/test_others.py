"""Properties of all dialects, and the rules of ragas and continuous-eval."""

import random
from typing import Any

import pytest

import findwell
from findwell.measures.dialects import known_dialects
from tests.dialects.golden import cases, same

RUN = {"q1": ["a", "x", "a", "b"], "q2": ["y"], "q3": []}
GOLD = {"q1": ["a", "b", "c"], "q2": ["y"], "q3": ["z"]}


def values(dialect: str, *measures: str) -> list[float | None]:
    return list(findwell.evaluate(RUN, GOLD, measures, dialect=dialect).values.values())


def context_precision(verdicts: list[int]) -> float:
    """Return what ragas makes of its verdicts about the chunks of a list, one by one."""
    above = [sum(verdicts[: rank + 1]) / (rank + 1) for rank in range(len(verdicts))]
    added = sum(each * verdict for each, verdict in zip(above, verdicts, strict=True))
    return added / (sum(verdicts) + 1e-10)


def test_context_precision_of_ragas_adds_up_over_chunks() -> None:
    record = {"user_input": "q", "retrieved_contexts": ["a1 b", "x y", "a1 b"]}
    record["reference_contexts"] = ["a1 b"]
    found = findwell.evaluate([record], measures="AP", by="exact", dialect="ragas")
    assert found["AP"] == pytest.approx(0.83333333333, abs=1e-10)
    pick = random.Random(4)
    run, gold, expected = {}, {}, {}
    for query in map(str, range(200)):
        docs = pick.sample("abc", pick.randint(1, 3))
        gold[query] = [docs] if pick.random() < 0.3 else docs  # each document of a group counts
        run[query] = pick.choices("abcxy", k=pick.randint(1, 7))
        expected[query] = context_precision([int(doc in docs) for doc in run[query]])
    table = findwell.evaluate(run, gold, "AP", dialect="ragas").per_query
    assert dict(table.select("query", "value").iter_rows()) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("case", cases("ragas"), ids=lambda case: case["id"])
def test_ids_of_ragas(case: Any) -> None:
    """What ragas itself computed, with ids as numbers on one side and texts on the other."""
    found = findwell.evaluate([case["inputs"]], None, case["metric"], dialect="ragas")
    (measure,) = found.measures
    if not case["inputs"]["retrieved_context_ids"] and measure.name == "P":
        assert case["expected"] is None  # documented: the dialect counts 0
        assert found[str(measure)] == 0
    else:
        assert same(found[str(measure)], case["expected"])


def test_ragas() -> None:
    perfect = findwell.evaluate({"q": ["a", "b"]}, {"q": ["a", "b"]}, "AP", dialect="ragas")["AP"]
    assert perfect == pytest.approx(2 / (2 + 1e-10), abs=1e-15)
    one = findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, "AP", dialect="ragas")["AP"]
    assert one == pytest.approx(0.9999999999, abs=1e-15)
    # distinct: a, x, b of which two are relevant; q3 retrieved nothing
    assert values("ragas", "P", "recall") == pytest.approx([(2 / 3 + 1 + 0) / 3, (2 / 3 + 1) / 3])


def test_continuous_eval() -> None:
    # a counts twice: three of four components match
    assert values("continuous-eval", "P", "recall") == pytest.approx(
        [(3 / 4 + 1 + 0) / 3, (2 / 3 + 1 + 0) / 3]
    )
    one = findwell.evaluate(
        {"q": ["x", "a"]}, {"q": ["a", "b"]}, ["AP", "F"], dialect="continuous-eval"
    )
    assert one["AP"] == 0.5
    assert one["F"] == 0.5


def test_a_dialect_never_changes_findwells_own_numbers() -> None:
    measures = ["P", "recall", "F", "RR", "AP", "nDCG", "P@2"]
    before = findwell.evaluate(RUN, GOLD, measures).values
    for dialect in known_dialects():
        if not dialect.startswith("trec_eval"):  # which refuses the repetition
            assert findwell.evaluate(RUN, GOLD, measures, dialect=dialect).dialect == dialect
    assert findwell.evaluate(RUN, GOLD, measures).values == before


def test_names_stay_what_they_are() -> None:
    for dialect in known_dialects():
        result = findwell.evaluate(
            {"q": ["a"]}, {"q": ["a"]}, ["map", "p@5", "ndcg@3"], dialect=dialect
        )
        assert list(result.values) == ["AP", "P@5", "nDCG@3"]

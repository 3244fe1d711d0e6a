"""Properties of all dialects, and the rules of ragas and continuous-eval."""

import pytest

import karat
from karat.dialects import known_dialects

RUN = {"q1": ["a", "x", "a", "b"], "q2": ["y"], "q3": []}
GOLD = {"q1": ["a", "b", "c"], "q2": ["y"], "q3": ["z"]}


def values(dialect: str, *measures: str) -> list[float | None]:
    return list(karat.evaluate(RUN, GOLD, measures, dialect=dialect).values.values())


def test_ragas() -> None:
    perfect = karat.evaluate({"q": ["a", "b"]}, {"q": ["a", "b"]}, "AP", dialect="ragas")["AP"]
    assert perfect == pytest.approx(2 / (2 + 1e-10), abs=1e-15)
    one = karat.evaluate({"q": ["a"]}, {"q": ["a"]}, "AP", dialect="ragas")["AP"]
    assert one == pytest.approx(0.9999999999, abs=1e-15)
    # distinct: a, x, b of which two are relevant; q3 retrieved nothing
    assert values("ragas", "P", "recall") == pytest.approx([(2 / 3 + 1 + 0) / 3, (2 / 3 + 1) / 3])


def test_continuous_eval() -> None:
    # a counts twice: three of four components match
    assert values("continuous-eval", "P", "recall") == pytest.approx(
        [(3 / 4 + 1 + 0) / 3, (2 / 3 + 1 + 0) / 3]
    )
    one = karat.evaluate(
        {"q": ["x", "a"]}, {"q": ["a", "b"]}, ["AP", "F"], dialect="continuous-eval"
    )
    assert one["AP"] == 0.5
    assert one["F"] == 0.5


def test_a_dialect_never_changes_karats_own_numbers() -> None:
    measures = ["P", "recall", "F", "RR", "AP", "nDCG", "P@2"]
    before = karat.evaluate(RUN, GOLD, measures).values
    for dialect in known_dialects():
        if not dialect.startswith("trec_eval"):  # which refuses the repetition
            assert karat.evaluate(RUN, GOLD, measures, dialect=dialect).dialect == dialect
    assert karat.evaluate(RUN, GOLD, measures).values == before


def test_names_stay_what_they_are() -> None:
    for dialect in known_dialects():
        result = karat.evaluate(
            {"q": ["a"]}, {"q": ["a"]}, ["map", "p@5", "ndcg@3"], dialect=dialect
        )
        assert list(result.values) == ["AP", "P@5", "nDCG@3"]

"""Measures at many cutoffs, the curve, and the smallest cutoff that is enough."""

from pathlib import Path

import pytest

import findwell
from tests.conftest import Findwell

DEMO = Path(findwell.__file__).parent / "demo"
RUN = {"q1": ["x", "a", "y", "b"], "q2": ["c", "z"]}
GOLD = {"q1": ["a", "b"], "q2": ["c"]}


def test_many_cutoffs_in_one_name() -> None:
    result = findwell.evaluate(RUN, GOLD, ["recall@1,2,4", "P(rel=1)@3"])
    assert list(result.values) == ["recall@1", "recall@2", "recall@4", "P@3"]
    with pytest.raises(findwell.FindwellError, match="whole number"):
        findwell.evaluate(RUN, GOLD, "recall@1,x")


def test_curve_is_the_measure_at_each_cutoff() -> None:
    result = findwell.evaluate(RUN, GOLD)
    table = findwell.statistics.curve(result, ["recall", "nDCG(gain=exp)"], [1, 2, 5])
    assert table.columns == ["run", "measure", "k", "value", "n", "undefined"]
    for row in table.to_dicts():
        name = f"{row['measure']}@{row['k']}"
        assert row["value"] == findwell.evaluate(RUN, GOLD, name)[name]
    with pytest.raises(findwell.FindwellError, match="Rprec takes no cutoff"):
        findwell.statistics.curve(result, "Rprec")


@pytest.mark.parametrize(
    ("measure", "target", "k"),
    [("recall", 0.5, 1), ("recall", 0.75, 2), ("recall", 1, 4), ("recall", 1.1, None)],
)
def test_smallest_k(measure: str, target: float, k: int | None) -> None:
    assert findwell.statistics.smallest_k(findwell.evaluate(RUN, GOLD), measure, target) == k


def test_smallest_k_agrees_with_looking_at_every_cutoff() -> None:
    result = findwell.evaluate(DEMO / "minilm.trec", DEMO / "questions.jsonl")
    for target in (0.3, 0.6, 0.8, 0.9, 0.99):
        values = findwell.statistics.curve(result, "recall", range(1, 21))["value"].to_list()
        expected = next((k for k, value in enumerate(values, start=1) if value >= target), None)
        assert findwell.statistics.smallest_k(result, "recall", target) == expected
    precision = findwell.statistics.curve(result, "P", range(1, 21))["value"].to_list()
    assert findwell.statistics.smallest_k(result, "P", 0.5) == (1 if precision[0] >= 0.5 else None)


CURVE = ("curve", DEMO / "bm25.trec", "--gold", DEMO / "questions.jsonl")


def test_command_line(cli: Findwell) -> None:
    done = cli(*CURVE, "--at", "1,5,10", "--reach", "recall>=0.7")
    assert done.code == 0, done.err
    assert "@10" in done.out
    assert "recall >= 0.7 is reached at K = 10" in done.out
    shown = cli(*CURVE, "--format", "json", "--at", "5", "--reach", "P>=0.9").answer
    assert [row["k"] for row in shown["curve"]] == [5, 5]
    assert shown["reach"][0]["k"] is None
    assert cli(*CURVE, "--format", "csv").out.startswith("run,measure,k,value")
    assert "| run | measure |" in cli(*CURVE, "--format", "markdown").out


@pytest.mark.parametrize("arguments", [["--at", "0"], ["--at", "a"], ["--reach", "recall"]])
def test_bad_usage(arguments: list[str], cli: Findwell) -> None:
    done = cli(*CURVE, *arguments)
    assert done.code == 2
    assert "Traceback" not in done.err

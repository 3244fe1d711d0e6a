"""Several searches for one question: what all of them found, what each of them added."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Save

RECORDS: list[dict[str, Any]] = [
    {
        "query": "q1",
        "hops": [
            {"query": "who wrote it", "retrieved": ["a", "x"]},
            {"query": "where was she born", "retrieved": ["a", "b"]},
            {"query": "nothing", "retrieved": []},
        ],
        "gold": ["a", "b", "c"],
        "topic": "books",
    },
    {"query": "q2", "hops": [{"retrieved": ["y"]}, {"retrieved": ["d"]}], "gold": ["d"]},
]


def per_query(records: Any, *measures: str, **options: Any) -> dict[str, list[float | None]]:
    table = findwell.evaluate(records, None, measures, **options).per_query
    return {name: table.filter(pl.col("measure") == name)["value"].to_list() for name in measures}


@pytest.mark.parametrize(
    ("measure", "values"),
    [
        ("recall", [2 / 3, 1]),
        ("recall@1hops", [1 / 3, 0]),
        ("recall@2hops", [2 / 3, 1]),
        ("recall@9hops", [2 / 3, 1]),
        ("P@2hops", [2 / 4, 1 / 2]),  # a is found again: noise, as any repetition
        ("redundancy", [1 / 4, 0]),
        ("items_per(unit=hops)", [2 / 3, 1 / 2]),  # the search that found nothing was made
        ("items_per(unit=hops)@1hops", [1, 0]),
        ("context_cost(unit=hops)", [3, 2]),
        ("cost_to(recall=0.3,unit=hops)", [1, 2]),
        ("cost_to(recall=0.6,unit=hops)", [2, 2]),
        ("cost_to(unit=hops)", [None, 2]),
        ("cost_to(recall=0.6)", [4, 2]),
    ],
)
def test_worked_examples(measure: str, values: list[float | None]) -> None:
    assert per_query(RECORDS, measure)[measure] == pytest.approx(values)


def test_tokens_until_a_recall() -> None:
    texts = {"a": "one two", "x": "three", "b": "four", "y": "five", "d": "six seven eight"}
    found = per_query(RECORDS, "cost_to(recall=0.6,unit=tokens)", corpus=texts)
    assert found["cost_to(recall=0.6,unit=tokens)"] == [2 + 1 + 2 + 1, 1 + 3]


def test_curve_over_hops() -> None:
    result = findwell.evaluate(RECORDS, None, "recall@1hops")
    table = findwell.statistics.curve(result, "recall", [1, 2, 3], over="hops")
    assert table["value"].to_list() == pytest.approx([1 / 6, 5 / 6, 5 / 6])
    assert findwell.statistics.smallest_k(result, "recall", 0.5, over="hops") == 2


def test_formats(save: Save, tmp_path: Path) -> None:
    expected = findwell.evaluate(RECORDS, None, ["recall@1hops", "calls"]).values
    lines = save("a.jsonl", "\n".join(map(json.dumps, RECORDS)))
    assert findwell.evaluate(lines, None, ["recall@1hops", "calls"]).values == expected
    run = [{"query": each["query"], "hops": each["hops"]} for each in RECORDS]
    gold = {each["query"]: each["gold"] for each in RECORDS}
    assert findwell.evaluate(run, gold, ["recall@1hops", "calls"]).values == expected
    findwell.evaluate(lines, None, ["recall@1hops", "calls"]).save(tmp_path / "saved")
    assert findwell.load(tmp_path / "saved").values == expected
    assert list(findwell.evaluate(RECORDS, None, "recall").by("topic")["slice"]) == ["books", None]


def test_hops_of_other_tools_and_with_texts() -> None:
    hops = [
        {"contexts": ["The red button."]},
        ["Call us."],
        {"retrieved": [{"id": "7", "text": "A b"}]},
    ]
    record = {"query": "q", "hops": hops, "gold": ["Call us."]}
    assert per_query([record], "recall@1hops/exact", "recall@2hops/exact") == {
        "recall@1hops/exact": [0],
        "recall@2hops/exact": [1],
    }


def test_mistakes() -> None:
    for hops in ([{"documents": 5}], ["d1"], [{"retrieved": "d1"}]):
        with pytest.raises(FindwellError, match=r"hop 1 holds no list|is of type str, not a list"):
            findwell.evaluate([{"query": "q", "hops": hops, "gold": ["a"]}], None, "recall")
    with pytest.raises(FindwellError, match="does not say which search found what"):
        findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, "recall@1hops")

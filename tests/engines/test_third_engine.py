"""The engine that ARCHITECTURE.md shows is one: it gives the numbers of the local one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import findwell
from findwell.evaluation.evaluate import assess
from findwell.evaluation.plan import Plan
from tests.spark.frames import assert_same, hard_case, records

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def shown_engine() -> Any:
    """Return the engine of the page."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    made: dict[str, Any] = {}
    exec(code, made)
    return made["BackwardsEngine"]()


@pytest.mark.parametrize("by", ["ids", "rouge", "claims"])
def test_an_engine_of_ten_lines(by: str) -> None:
    if by == "ids":
        run, gold = hard_case(3)
        local = findwell.evaluate(run, gold, ["nDCG@5", "AP", "recall@3"])
        streams, known = findwell.io.load_run(run), findwell.io.load_gold(gold)
    else:
        given = records(2)
        local = findwell.evaluate(given, measures=["recall@3", "P@2"], by=by, judge="local:text")
        runs = [{"query": each["query"], "retrieved": each["retrieved"]} for each in given]
        golds = [{name: each[name] for name in each if name != "retrieved"} for each in given]
        streams, known = (
            findwell.io.load_run(runs, texts=True),
            findwell.io.load_gold(golds, texts=True),
        )
    plan = Plan.of(local.measures, by=by, judge="local:text")
    found = assess(plan, [streams], known, engine=shown_engine())
    assert_same(found.per_query, local)

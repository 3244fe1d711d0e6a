"""What the documentation says about calls and tokens is what is counted."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.judge_calls import RECORDED, SIZES, judge_calls

PAGE = Path(__file__).parents[2] / "docs" / "judging.md"


def test_fewer_calls_and_tokens_than_the_others() -> None:
    table, found = judge_calls()
    mine = found["findwell"]
    assert mine["short"].calls == mine["long"].calls == 3
    for name in RECORDED:
        for size in SIZES:
            assert mine[size].calls < found[name][size].calls
            assert mine[size].tokens < found[name][size].tokens
    rows = re.findall(r"\| of [\d,]+ tokens \|(.*)\|", PAGE.read_text(encoding="utf-8"))
    for size, row in zip(SIZES, rows, strict=True):
        shown = [
            f"{each[size].calls:g} calls, {each[size].tokens:,.0f} tokens"
            for each in found.values()
        ]
        assert [cell.strip() for cell in row.split("|")] == shown
    assert "findwell" in table.text()

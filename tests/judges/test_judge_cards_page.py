"""The page with cards of judges: what the command writes there."""

from __future__ import annotations

from benchmarks.judge_cards import HEADER, PAGE, SETS, written


def test_the_page_has_the_tables_of_the_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = written(page, {"all labels": ["| new |"], "a sample": ["| other |"]})
    assert (found.count("| new |"), found.count("| other |")) == (1, 1)
    assert page.count(f"| {' | '.join(HEADER)} |") == 2
    assert not any(f"| {name} | `" in found for name in SETS)
    assert all(page.count(f"| {name} | `local` |") == 2 for name in SETS)

"""Nothing grows beyond its budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.budgets.__main__ import budgets, over
from tests.budgets.figures import code_lines, figures

if TYPE_CHECKING:
    from pathlib import Path


def test_the_budgets(tmp_path: Path) -> None:
    """Nothing is over its budget, and a room or command that goes takes its budget with it."""
    found = figures(tmp_path)
    assert not over(found, budgets())
    assert not {
        (group, name)
        for group, row in budgets().items()
        for name in row
        if name not in found.get(group, {})
    }


def test_what_counts_as_a_line_of_code() -> None:
    text = '''"""Doc
string."""

# comment
x = (  # why
    1,
)


def f():
    """One."""
    return """two
lines"""
'''
    assert code_lines(text) == 6

"""The table of docs/fusion-formulas.md says what the entries say."""

from __future__ import annotations

from pathlib import Path

from findwell.loop.tuning import ENGINES, Engine

PAGE = Path(__file__).parents[2] / "docs" / "fusion-formulas.md"
HEADER = (
    "| engine | formula | defaults | what else it does | not reproduced |\n|---|---|---|---|---|"
)


def row(engine: Engine) -> str:
    """Return the row of an engine."""
    notes = [f"runs: {', '.join(engine.roles)}"] if engine.roles else []
    cells = (
        f"`{engine.name}`",
        engine.formula,
        f"`{engine.setting(2)}`" if str(engine.setting(2)) else "",
        "; ".join([*notes, *engine.notes]),
        engine.exact,
    )
    return "| " + " | ".join(cells) + " |"


def table() -> str:
    """Return the whole table."""
    return "\n".join([HEADER, *map(row, ENGINES.known().values())])


def test_the_table_is_that_of_the_engines() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), (
        f"put this into docs/fusion-formulas.md:\n{table()}"
    )

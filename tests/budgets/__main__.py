"""Print today's figures beside the budgets, or lower the budgets: see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.budgets.figures import Figures, figures

TABLE = Path(__file__).parent / "budgets.toml"


def budgets() -> Figures:
    """Read the table."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def over(found: Figures, allowed: Figures) -> list[str]:
    """Return what exceeds its budget, or has none."""
    return [
        f"{group}, {name}: {figure}, allowed {allowed.get(group, {}).get(name, 'nothing')}"
        for group, row in found.items()
        for name, figure in row.items()
        if figure > allowed.get(group, {}).get(name, -1)
    ]


def spelled(table: Figures) -> str:
    """Write a table as TOML."""
    lines = ["# Only goes down: python -m tests.budgets --lower"]
    for group, row in table.items():
        lines += ["", f'["{group}"]', *(f'"{name}" = {figure}' for name, figure in row.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Compare or lower."""
    parser = argparse.ArgumentParser(prog="python -m tests.budgets", description=__doc__)
    parser.add_argument("--lower", action="store_true", help="write lower figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = figures(Path(folder))
    allowed = budgets() if TABLE.exists() else {}
    too_much = over(found, allowed)
    if given.lower and (not too_much or not allowed):
        TABLE.write_text(spelled(found), encoding="utf-8")
        return 0
    for group, row in found.items():
        print(f"{group}:")
        for name, figure in row.items():
            print(f"  {name:30} {figure:7} of {allowed.get(group, {}).get(name, 'nothing')}")
    print("\n".join(["over budget:", *too_much]) if too_much else "all within their budgets")
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())

"""The facts about other tools that the dialects must reproduce: inputs and what came out."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "golden"
ASKED: set[str] = set()  # the ids of all cases that some test has asked for


def cases(system: str, *metrics: str) -> list[Any]:
    """Return the cases of a system, of these metrics if any are named."""
    found = json.loads((FOLDER / f"{system}.json").read_text(encoding="utf-8"))
    wanted = [case for case in found if not metrics or case["metric"] in metrics]
    ASKED.update(case["id"] for case in wanted)
    return wanted


def same(value: float | None, expected: float | None) -> bool:
    """Tell whether two values agree to 1e-9; None agrees with None only."""
    if value is None or expected is None:
        return value is expected
    return abs(value - expected) <= 1e-9

"""The parts that configurations to paste are made of: comments, numbers, names."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.loop.tuning.engines.engine import Setting

ROWS = 100  # how many hits are read where the setting does not say


def request(
    setting: Setting, runs: Sequence[str], line: str, body: dict[str, Any], mark: str = "#"
) -> str:
    """Return a line such as POST PATH and its JSON body, under a comment."""
    return lines(comment(setting, runs, mark), line, as_json(body))


def comment(setting: Setting, runs: Sequence[str], mark: str = "#") -> str:
    """Return the line that says which run has which weight."""
    if not setting.weights:
        return f"{mark} lists: {', '.join(runs)}"
    named = [
        f"{name} = {short_number(weight)}"
        for name, weight in zip(runs, setting.weights, strict=True)
    ]
    return f"{mark} weights: {', '.join(named)}"


def lines(*parts: str) -> str:
    """Return a text of these lines."""
    return "\n".join(parts) + "\n"


def as_json(value: Any) -> str:  # noqa: ANN401
    """Return indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def number_list(numbers: Sequence[float]) -> str:
    """Return numbers with commas between them."""
    return ", ".join(map(short_number, numbers))


def short_number(number: float | None) -> str:
    """Return a number without what 64 bits add to it: 0.3, not 0.30000000000000004."""
    return f"{number:.10g}"


def identifiers(runs: Sequence[str]) -> list[str]:
    """Return names that can stand in code, all different.

    >>> identifiers(["bm25", "my dense", "2nd", "bm25"])
    ['bm25', 'my_dense', 'run_2nd', 'bm25_4']
    """
    names: list[str] = []
    for number, run in enumerate(runs, start=1):
        name = re.sub(r"\W", "_", run, flags=re.ASCII)
        name = name if name[:1].isalpha() else f"run_{name}"
        names.append(f"{name}_{number}" if name in names else name)
    return names

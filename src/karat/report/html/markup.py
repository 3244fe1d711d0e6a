"""A few words of HTML: text that is only text, tables, data for scripts, and who may run what."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from karat.report.charts.svg import text

if TYPE_CHECKING:
    from karat.report.charts import Figure
    from karat.report.layout import Grid

# what could end a script element, or a line of JavaScript
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def as_json(data: object) -> str:
    r"""Return JSON that can stand within a script element, whatever it holds.

    >>> as_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    found = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return found.translate({ord(letter): code for letter, code in _ESCAPES.items()})


def policy(style: str, script: str, *, live: bool) -> str:
    """Return a content security policy under which only this style and this script count."""
    allowed = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'self'" if live else "'none'",
    }
    if live:
        allowed["connect-src"] = "'self'"
    return "; ".join(f"{what} {whom}" for what, whom in allowed.items())


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def table(grid: Grid, *, id_: str = "", caption: str = "") -> str:
    """Return a table whose columns sort; the first columns are text."""
    heads = "".join(
        f'<th scope="col"{_left(at < grid.left)}>{text(cell)}</th>'
        for at, cell in enumerate(grid.header)
    )
    rows = "".join(f"<tr>{_cells(grid, cells)}</tr>" for cells in grid.rows)
    name = f' id="{id_}"' if id_ else ""
    told = f"<caption>{text(caption)}</caption>" if caption else ""
    return (
        f'<table class="sortable"{name}>{told}<thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _cells(grid: Grid, cells: list[str]) -> str:
    first = f'<th scope="row" class="left">{text(cells[0])}</th>' if cells else ""
    return first + "".join(
        f"<td{_left(at < grid.left)}>{text(cell)}</td>"
        for at, cell in enumerate(cells[1:], start=1)
    )


def _left(left: bool) -> str:
    return ' class="left"' if left else ""


def scroll(content: str, label: str) -> str:
    """Return something wide that scrolls within its own frame, by keyboard too."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(label)}">{content}</div>'
    )


def figure(each: Figure) -> str:
    """Return a chart with its numbers behind it."""
    numbers = scroll(table(each.table), f"{each.title}: the numbers")
    return (
        f'<figure class="card" id="{each.slug}">{scroll(each.svg, each.title)}'
        f"<details><summary>Show the numbers<span class=sr> of {text(each.title)}</span></summary>"
        f"{numbers}</details></figure>"
    )


def definitions(pairs: list[tuple[str, str]]) -> str:
    """Return names and what they stand for."""
    inner = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in pairs)
    return f"<dl>{inner}</dl>"

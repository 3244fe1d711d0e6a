"""The parts of charts: SVG elements, labels, scales, a legend, and the style."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from itertools import takewhile
from typing import TypeAlias
from urllib.parse import urlencode

from findwell.show.escape import xml

Scale: TypeAlias = Callable[[float], float]

LETTER = 6.4  # pixels of a letter, about
SYSTEMS = 8  # colours for systems, and systems that charts show
STRIP_HEIGHT = 22  # of a row of a chart on its own
_VARIABLE = re.compile(r"var\(--([\w-]+)\)")
_COLOR = re.compile(r"--([\w-]+): (#\w+);")


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; `class_` and `stroke_width` are spelled class and stroke-width."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return xml(str(value))


def short(content: str, most: int) -> str:
    """Return a text of at most this many letters; names often differ at their end.

    >>> short("embedding-large/chunk-512/rerank-3", 20)
    'embeddi…512/rerank-3'
    """
    if len(content) <= most:
        return content
    head = (most - 1) * 2 // 5
    return f"{content[:head]}…{content[len(content) - (most - 1 - head) :]}"


def distinct(names: Sequence[str], most: int) -> list[str]:
    """Return names of at most this many letters: without what all of them begin with, if need be.

    >>> distinct(["trial/chunks-512/bm25", "trial/chunks-512/dense"], 12)
    ['…bm25', '…dense']
    >>> distinct(["P@5", "recall@5"], 12)
    ['P@5', 'recall@5']
    """
    if len(names) > 1 and max(map(len, names)) > most:
        alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
        ends = (at for at, letters in enumerate(alike, 1) if letters[0] in "/-_. :")
        if same := max(ends, default=0):
            names = [f"…{name[same:]}" for name in names]
    return [short(name, most) for name in names]


def label(content: str, x: float | str, y: float, *, most: int = 0, **attributes: object) -> str:
    """Return a label; one longer than `most` letters is shortened, with the whole as a tooltip."""
    if most and len(content) > most:
        both = xml(short(content, most)) + title(content)
        return element("text", both, x=x, y=y, **attributes)
    return element("text", xml(content), x=x, y=y, **attributes)


def centered(content: str, x: float | str, y: float, class_: str = "muted") -> str:
    """Return a label in the middle of a place."""
    return label(content, x, y, class_=class_, text_anchor="middle")


def title(content: str) -> str:
    """Return a tooltip."""
    return element("title", xml(content))


def drawing(
    width: float, height: float, says: str, parts: Iterable[str], *, linked: bool = False
) -> str:
    """Return the whole drawing, which says in words what it shows; one with links is a group."""
    role = "group" if linked else "img"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="{role}" '
        f'aria-label="{xml(says)}">{"".join(parts)}</svg>'
    )


def queries_link(column: str, value: str) -> str:
    """Return the link to the queries of a slice.

    >>> queries_link("topic", "bills & fees")
    '#in+topic=bills+%26+fees&show=all'
    """
    return link_to(**{f"in {column}": value, "show": "all"})


def link_to(**chosen: str) -> str:
    """Return the link to queries of the page: what is chosen there, by name."""
    return "#" + urlencode(chosen)


def linear(domain: tuple[float, float], reach: tuple[float, float]) -> Scale:
    """Return the function from numbers to places.

    >>> linear((0, 1), (10, 20))(0.5)
    15.0
    """
    (low, high), (start, end) = domain, reach
    size = (high - low) or 1.0
    return lambda value: start + (value - low) / size * (end - start)


def color(system: int) -> str:
    """Return the class of a system's colour; beyond the palette colours repeat."""
    return f"c{system % SYSTEMS}"


def marker(system: int, x: float, y: float, size: float = 4.0, **attributes: object) -> str:
    """Return the mark of a system: its shape is distinct where the colour is not."""
    shape, paint = system % 4, attributes.pop("class_", color(system))
    if shape == 0:
        return element("circle", cx=x, cy=y, r=size, class_=paint, **attributes)
    corners = {
        1: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        2: ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
        3: ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    }[shape]
    points = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in corners)
    return element("polygon", points=points, class_=paint, **attributes)


def line(points: Sequence[tuple[float, float]], class_: str) -> str:
    """Return a line through points."""
    if len(points) < 2:
        return ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", points=path, class_=class_)


def strip(parts: Iterable[str]) -> str:
    """Return one row of a chart on its own, for a page, which has its numbers next to it."""
    head = f'<svg class="chart strip" width="100%" height="{STRIP_HEIGHT}" aria-hidden="true">'
    return f"{head}{''.join(parts)}</svg>"


def across_strip(reach: tuple[float, float]) -> Callable[[float], str]:
    """Return the scale of a strip: in shares of its width, which is that of its column."""
    place = linear(reach, (3, 97))
    return lambda value: f"{place(value):.2f}%"


def strip_axis(reach: tuple[float, float], sign: str = "") -> str:
    """Return the axis above a column of strips."""
    across = across_strip(reach)
    return strip(
        centered(f"{tick:{sign}g}".replace("-", "−") if tick else "0", across(tick), 12)
        + element("line", x1=across(tick), x2=across(tick), y1=17, y2=22, class_="axis")
        for tick in ticks(*reach, about=3 if sign else 4)
    )


def legend(systems: Sequence[str], x: float, y: float, width: float) -> tuple[str, float]:
    """Return a legend, wrapped to a width, and its height."""
    parts, at, row = [], x, 0
    for number, shown in enumerate(distinct(systems, 30)):
        size = 30 + LETTER * len(shown)
        if at > x and at + size > x + width:
            at, row = x, row + 1
        parts += [marker(number, at + 5, y + 18 * row - 4), label(shown, at + 14, y + 18 * row)]
        at += size
    return "".join(parts), 18.0 * (row + 1)


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return about this many steps of round numbers between two numbers.

    >>> ticks(0, 1)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> ticks(-0.03, 0.21)
    [0.0, 0.1, 0.2]
    """
    size = (high - low) / about
    if not size > 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(size))
    step = next(nice * power for nice in (1, 2, 2.5, 5, 10) if nice * power >= size * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


@functools.cache
def asset(name: str) -> str:
    """Return a file that comes with the package."""
    return (files("findwell.show") / "assets" / name).read_text(encoding="utf-8")


def colors(theme: str) -> dict[str, str]:
    """Return the colours of the theme `light` or `dark` by name.

    >>> colors("light")["surface"]
    '#ffffff'
    """
    return dict(_COLOR.findall(asset(f"{theme}.css")))


def light_css() -> str:
    """Return the style of charts with the light colours written out, for images.

    >>> ".c0" in light_css(), "var(" in light_css()
    (True, False)
    """
    light = colors("light")
    return _VARIABLE.sub(lambda found: light[found[1]], asset("chart.css"))

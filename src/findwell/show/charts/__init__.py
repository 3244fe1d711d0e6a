"""Charts as SVG: small, offline, readable by machines, in the colours of the page; and as images.

A chart is a drawing that says what it shows, and the same as a table. Kinds of charts are
registered: `register_chart`, or the entry point `findwell.charts` of an installed package.
"""

from __future__ import annotations

import os
import re
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from findwell.core.errors import OptionError, needs_package
from findwell.core.plugins import Registry
from findwell.io.storage.files import write_bytes, write_text
from findwell.show.charts.svg import LETTER, label, light_css, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from findwell.show.grid import Grid

Draw = TypeVar("Draw", bound=Callable[[Any], Any])

MORE = "more"  # the section of charts that have none of their own
SEPARATOR = " · "
FOOT = 16  # pixels of a line below a chart
BOXES = (
    "no font here has letters such as {}, so the image shows boxes; install one that has them "
    "(such as Noto), or write an .svg"
)
SCALE = 2  # pixels of an image for each of the chart: sharp on slides
FONT = "Arimo"  # in PNG images, so that they are the same on every machine
SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "HEBREW")  # that the font has
_LETTER = (
    '<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="40" height="20">'
    '<text x="2" y="15">{}</text></svg>'
)
_SIZE = re.compile(r'width="(\d+)" height="(\d+)" viewBox="[^"]*"')
_LINK = re.compile(r"<a [^>]*>|</a>")  # a quote or > in an attribute is escaped
_UNASSIGNED = "\u0378"  # what no font has


@dataclass(frozen=True, slots=True)
class ChartRow:
    """How a page shows a row of the table of a chart: with the row alone, drawn, as a column."""

    strip: str  # the drawing, an SVG
    links: tuple[str, ...] = ()  # from the cells of the row to queries, as far as there are some
    marked: bool = False  # whether it stands out
    few: bool = False  # whether it is about too few queries to stand among the others


@dataclass(frozen=True, slots=True, repr=False)
class Chart:
    """A chart: what it is called, what it says in a sentence, the drawing, and the numbers."""

    name: str  # for --chart
    title: str  # names what is drawn; charts of a group have it as the name of their tab
    says: str  # for those who cannot see it
    svg: str
    table: Grid
    rows: tuple[ChartRow, ...] = ()  # for pages: those of the table, each with its drawing
    axes: tuple[str, ...] = ("", "")  # above the drawings of rows, and of those about few queries
    about: str = ""  # queries, level and data set: at the foot of images, which stand alone
    group: str = ""  # charts of one group are shown one at a time

    def with_about(self, about: str, name: str = "") -> Chart:
        """Return the chart with what it is about, perhaps under another name."""
        return replace(self, about=about, name=name or self.name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart as an .svg or a .png file, whole or not at all."""
        if letters := write_image(self, os.fspath(path)):
            warnings.warn(BOXES.format(letters), stacklevel=2)

    def _repr_svg_(self) -> str:
        """Return the chart as notebooks show it."""
        return standalone(self)

    def __repr__(self) -> str:
        return f"<chart {self.name}: {self.says}>"

    @property
    def slug(self) -> str:
        """The name as an HTML id.

        >>> Chart("distribution recall@5", "", "", "", None).slug
        'distribution-recall-5'
        """
        return re.sub(r"[^A-Za-z0-9]+", "-", self.name).strip("-")


@dataclass(frozen=True, slots=True)
class ChartKind:
    """Charts of one kind: in which section of a report they stand, and how they are drawn."""

    name: str
    section: str
    draw: Callable[[Any], Iterable[Chart | str]]


def _accept(loaded: object) -> object:
    return CHARTS.register(loaded.name, loaded) if isinstance(loaded, ChartKind) else loaded


CHARTS: Registry[ChartKind] = Registry(
    "kind of chart", package="findwell.show.charts", group="findwell.charts", accept=_accept
)


def register_chart(name: str, *, section: str = MORE) -> Callable[[Draw], Draw]:
    """Register the function that draws charts of a kind, for reports and `plot`.

    It is given a `findwell.show.panel.Panel`, the systems side by side; kinds of the sections
    `comparison` and `where` also a `Comparison`. It returns charts, and sentences about what it
    leaves out.
    """

    def register(draw: Draw) -> Draw:
        CHARTS.register(name, ChartKind(name, section, draw), replaces=True)
        return draw

    return register


def draw_charts(shown: object, sections: Sequence[str]) -> dict[str, list[Chart | str]]:
    """Return the charts of each section, and sentences about what they leave out."""
    return {
        section: [
            each for kind in CHARTS.values() if kind.section == section for each in kind.draw(shown)
        ]
        for section in sections
    }


def caption(
    counts: Sequence[int], every: int, level: float | None, data_sets: Sequence[str]
) -> str:
    """Say how many queries a chart is about, the level of its intervals, and the data set.

    >>> caption([91, 91], 95, 0.95, ["qrels.txt 01234567"])
    '91 of 95 queries · 95% intervals · qrels.txt 01234567'
    """
    least, most = min(counts, default=0), max(counts, default=0)
    shown = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    of = "" if least == most == every else f" of {every:,}"
    parts = [
        f"{shown}{of} {'query' if every == 1 else 'queries'}",
        "" if level is None else f"{level:.0%} intervals",
        data_sets[0] if len(data_sets) == 1 else f"{len(data_sets)} data sets" if data_sets else "",
    ]
    return SEPARATOR.join(filter(None, parts))


def left_out(what: str, names: Sequence[str]) -> list[str]:
    """Say what is not drawn, if anything."""
    return [f"Not drawn here, to keep this short: the {what} {', '.join(names)}."] if names else []


def standalone(chart: Chart) -> str:
    """Return a chart as an SVG file with its own style, on white, and what it is about below."""
    head, body = chart.svg.removesuffix("</svg>").split(">", 1)
    head, body = head.replace('role="group"', 'role="img"'), _LINK.sub("", body)  # of pages
    size = _SIZE.search(head)
    if chart.about and size is not None:
        width, height = (int(each) for each in size.groups()[:2])
        lines = _wrapped(chart.about, width)
        tall = height + 6 + FOOT * len(lines)
        head = _SIZE.sub(f'width="{width}" height="{tall}" viewBox="0 0 {width} {tall}"', head)
        body += "".join(
            label(line, 12, height + FOOT * at, class_="muted small")
            for at, line in enumerate(lines, 1)
        )
    white = '<rect width="100%" height="100%" fill="#fff"/>'
    return f"{head}><style>{light_css()}</style>{white}{body}</svg>\n"


def _wrapped(about: str, width: int) -> list[str]:
    """Break a line between its parts where a chart is too narrow."""
    lines: list[str] = []
    most = int((width - 20) / LETTER)
    for part in about.split(SEPARATOR):
        if lines and len(lines[-1] + SEPARATOR + part) <= most:
            lines[-1] += SEPARATOR + part
        else:
            lines.append(short(part, most))
    return lines


def write_image(chart: Chart, path: str) -> str:
    """Write a chart as an image, whole or not at all; the name's ending says which kind.

    Returns letters that the image shows as boxes, see `boxed`.
    """
    kind = Path(path).suffix.lower()
    if kind == ".svg":
        write_text(path, standalone(chart))
        return ""
    if kind != ".png":
        raise OptionError(
            f"{path} is not an image that findwell writes", fix="name an .svg or a .png"
        )
    write_bytes(path, png(chart))
    return boxed(chart)


def png(chart: Chart) -> bytes:
    """Return a chart as a PNG file."""
    return _render(standalone(chart))


def boxed(chart: Chart) -> str:
    """Return letters that an image can only show as boxes, as no font here has them.

    One letter stands for its script: the font of the images has Latin, Greek, Cyrillic and Hebrew
    letters, all others come from the fonts of the machine.
    """
    letters = {
        unicodedata.name(letter, "").partition(" ")[0]: letter
        for letter in reversed(chart.svg)
        if letter.isalpha() and not letter.isascii()
    }
    foreign = [letter for script, letter in letters.items() if script not in SCRIPTS]
    if not foreign:
        return ""
    box = _render(_LETTER.format(_UNASSIGNED))
    return "".join(letter for letter in foreign if _render(_LETTER.format(letter)) == box)


def _render(svg: str) -> bytes:
    instead = "write an .svg, which needs nothing"
    with needs_package("a PNG image", "report", instead=instead):
        from resvg_py import svg_to_bytes  # noqa: PLC0415

        font = str(files("fontpkg_arimo"))
    style = f".chart text {{ font-family: {FONT} !important }}"
    return bytes(svg_to_bytes(svg_string=svg, zoom=SCALE, font_dirs=[font], style_sheet=style))

"""What a chart is: an SVG that says what it shows, and the same as a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import OptionError
from karat.report.charts.palette import LIGHT, fixed_css
from karat.results.store import write_bytes, write_text

if TYPE_CHECKING:
    from karat.report.layout import Grid

SCALE = 2  # pixels of an image for each of the chart: sharp on slides
_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
    '<text x="2" y="15">M</text></svg>'
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart: what it is called, what it says in a sentence, the drawing, and the numbers."""

    name: str  # for --chart
    title: str
    says: str  # for those who cannot see it
    svg: str
    table: Grid

    @property
    def slug(self) -> str:
        """The name as an HTML id.

        >>> Figure("distribution recall@5", "", "", "", None).slug
        'distribution-recall-5'
        """
        return re.sub(r"[^A-Za-z0-9]+", "-", self.name).strip("-")


def standalone(figure: Figure) -> str:
    """Return a chart as an SVG file with its own style, on white."""
    head, body = figure.svg.split(">", 1)
    white = '<rect width="100%" height="100%" fill="#fff"/>'
    return f"{head}><style>{fixed_css(LIGHT)}</style>{white}{body}\n"


def write_image(figure: Figure, path: str) -> None:
    """Write a chart as an image, whole or not at all; the name's ending says which kind."""
    kind = Path(path).suffix.lower()
    if kind == ".svg":
        write_text(path, standalone(figure))
        return
    if kind != ".png":
        raise OptionError(f"{path} is no image that karat writes", fix="name an .svg or a .png")
    write_bytes(path, png(figure))


def png(figure: Figure) -> bytes:
    """Return a chart as a PNG file."""
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415
    except ImportError:
        raise OptionError(
            "PNG images need the package resvg-py",
            fix="pip install 'karat[report]', or write an .svg, which needs nothing",
        ) from None
    empty = svg_to_bytes(svg_string=_PROBE.replace("M", ""))
    if bytes(svg_to_bytes(svg_string=_PROBE)) == bytes(empty):
        raise OptionError(
            "this machine has no fonts, so the image would have no text",
            fix="install some (such as the package fonts-dejavu), or write an .svg",
        )
    return bytes(svg_to_bytes(svg_string=standalone(figure), zoom=SCALE))

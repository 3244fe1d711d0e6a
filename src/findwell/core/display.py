"""How results, comparisons and explanations show themselves in notebooks, papers and terminals.

The room `show` renders them. It comes after them on the path of the data, so that they reach it
only through the renderer that `findwell/__init__.py` registers here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

Format: TypeAlias = Literal["html", "markdown", "latex", "text"]
Renderer: TypeAlias = Callable[..., str]


class Picture(Protocol):
    """A chart: what it is called, what it says in words, and how many queries of what it is about.

    Notebooks show it.
    """

    @property
    def name(self) -> str:
        """What it is called, as in `findwell report --chart`."""

    @property
    def says(self) -> str:
        """What it shows, for those who cannot see it."""

    @property
    def about(self) -> str:
        """How many queries it is about, the level of its intervals, and the data set."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as an .svg or a .png file, whole or not at all."""

    def _repr_svg_(self) -> str: ...


Plotter: TypeAlias = Callable[..., Picture]

_registered: list[Renderer] = []
_plotters: list[Plotter] = []


def register_renderer(renderer: Renderer) -> None:
    """Make this the function that renders whatever `render` is given."""
    _registered[:] = [renderer]


def render(shown: object, how: Format, **choices: Any) -> str:  # noqa: ANN401
    """Return a result, a comparison or an explanation in a format; `choices` are its own."""
    if not _registered:
        raise RuntimeError("no renderer is registered: import findwell first")
    return _registered[0](shown, how, **choices)


class Shown:
    """What shows itself: printed as in a terminal, as tables in notebooks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return render(self, "text")

    def _repr_html_(self) -> str:
        return render(self, "html")

    def to_markdown(self) -> str:
        """Return tables for a pull request."""
        return render(self, "markdown")


def register_plotter(plotter: Plotter) -> None:
    """Make this the function that draws whatever `plot` is given."""
    _plotters[:] = [plotter]


def plot(shown: object, chart: str | None, **choices: Any) -> Picture:  # noqa: ANN401
    """Return a chart of a result or a comparison: the one of this name, or the first."""
    if not _plotters:
        raise RuntimeError("no plotter is registered: import findwell first")
    return _plotters[0](shown, chart, **choices)

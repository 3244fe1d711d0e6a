"""How results, comparisons and explanations show themselves in notebooks, papers and terminals.

The room `reports` renders them. It comes after them on the path of the data, so that they reach it
only through the renderer that `karat/__init__.py` registers here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

Format: TypeAlias = Literal["html", "markdown", "latex", "text"]
Renderer: TypeAlias = Callable[[object, Format], str]

_registered: list[Renderer] = []


def register_renderer(renderer: Renderer) -> None:
    """Make this the function that renders whatever `render` is given."""
    _registered[:] = [renderer]


def render(shown: object, how: Format) -> str:
    """Return a result, a comparison or an explanation in a format."""
    if not _registered:
        raise RuntimeError("no renderer is registered: import karat first")
    return _registered[0](shown, how)

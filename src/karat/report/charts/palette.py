"""The colours: distinguishable for colour-blind readers, in a light and a dark version."""

from __future__ import annotations

import re
from importlib.resources import files

# after Okabe and Ito; yellow is darkened so that it stands out on white
LIGHT = {
    "c0": "#0072b2",
    "c1": "#d55e00",
    "c2": "#009e73",
    "c3": "#b4578a",
    "c4": "#b58a00",
    "c5": "#3a94cc",
    "c6": "#6b5b95",
    "c7": "#4d4d4d",
    "surface": "#ffffff",
    "text": "#1c2127",
    "muted": "#5a6472",
    "grid": "#e3e7ec",
    "axis": "#8b95a3",
    "h0": "#f3f8fc",
    "h1": "#dfecf6",
    "h2": "#c8def0",
    "h3": "#aacde7",
    "h4": "#86b8db",
    "h5": "#5e9fcc",
    "h6": "#2c77ac",
    "h7": "#1c6499",
    "h8": "#0e5283",
    "h9": "#07406b",
    "heat-dark": "#ffffff",  # text on the upper half of the scale
    "heat-light": "#1c2127",
}
DARK = {
    "c0": "#56b4e9",
    "c1": "#f0883e",
    "c2": "#2fc79b",
    "c3": "#e08bbd",
    "c4": "#e6c229",
    "c5": "#8ecbf0",
    "c6": "#a99bd6",
    "c7": "#c3c9d1",
    "surface": "#161b22",
    "text": "#e6eaf0",
    "muted": "#a0aab8",
    "grid": "#2b333e",
    "axis": "#6d7886",
    "h0": "#18222d",
    "h1": "#1a2d3d",
    "h2": "#1b394f",
    "h3": "#1c4662",
    "h4": "#1d5579",
    "h5": "#226893",
    "h6": "#4b94c0",
    "h7": "#6fb0d8",
    "h8": "#97cbe9",
    "h9": "#c3e3f6",
    "heat-dark": "#0d1117",
    "heat-light": "#e6eaf0",
}
SYSTEMS = 8  # colours for systems
HEAT = 10  # steps of the heat map
_VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")


def variables(theme: dict[str, str]) -> str:
    """Return the colours as declarations of CSS variables."""
    return "".join(f"--{name}:{value};" for name, value in theme.items())


def chart_css() -> str:
    """Return the style of charts, which names colours by variables."""
    return (files(__package__) / "chart.css").read_text(encoding="utf-8")


def fixed_css(theme: dict[str, str]) -> str:
    """Return the style of charts with the colours written out, for images.

    >>> ".c0" in fixed_css(LIGHT), "var(" in fixed_css(LIGHT)
    (True, False)
    """
    return _VARIABLE.sub(lambda found: theme[found[1]], chart_css())

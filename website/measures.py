"""The reference of measures, from the registry."""

from __future__ import annotations

from karat.measures import known_measures


def page() -> str:
    """Return the page."""
    return "\n".join(["# Measures", "", *(f"- `{name}`" for name in known_measures())])

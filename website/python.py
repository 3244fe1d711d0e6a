"""The reference of the Python functions and classes, from their docstrings."""

from __future__ import annotations

import findwell


def page() -> str:
    """Return the page; mkdocstrings puts the docstrings in."""
    functions = [name for name in findwell.__all__ if name[0].islower()]
    classes = [name for name in findwell.__all__ if name[0].isupper()]
    return "\n".join([
        "# Python", "",
        "All of findwell's public names; others may change without notice.", "",
        *(f"::: findwell.{name}\n" for name in [*functions, *classes]),
    ])  # fmt: skip

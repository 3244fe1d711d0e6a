"""The reference of the Python functions and classes, from their docstrings."""

from __future__ import annotations

import karat


def page() -> str:
    """Return the page; mkdocstrings puts the docstrings in."""
    functions = [name for name in karat.__all__ if name[0].islower()]
    classes = [name for name in karat.__all__ if name[0].isupper()]
    return "\n".join([
        "# Python", "",
        "All of karat's public names; others may change without notice.", "",
        *(f"::: karat.{name}\n" for name in [*functions, *classes]),
    ])  # fmt: skip

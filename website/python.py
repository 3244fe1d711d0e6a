"""The reference of the Python functions and classes, from their docstrings."""

from __future__ import annotations

import importlib

from findwell.core.namespaces import NAMESPACES, names_of


def page() -> str:
    """Return the page; mkdocstrings puts the docstrings in."""
    lines = [
        "# Python",
        "",
        "All of findwell's public names; others may change without notice.",
        "",
    ]
    for namespace in NAMESPACES:
        lines += [f"## {namespace}", "", _title(namespace), ""]
        functions = sorted(names_of(namespace), key=lambda name: (name[0].isupper(), name))
        lines += [f"::: {namespace}.{name}\n" for name in functions]
    return "\n".join(lines)


def _title(namespace: str) -> str:
    """Return the first line of the docstring of a namespace."""
    return (importlib.import_module(namespace).__doc__ or "").partition("\n")[0]

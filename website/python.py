"""The reference of the Python functions and classes, from their docstrings."""

from __future__ import annotations

import importlib
import inspect

from findwell.core.namespaces import NAMESPACES, names_of
from website.commands import cell

FOLDER = "reference/python"
INTRODUCTION = """# Python

Look here for the arguments of a function. These are all public names; others may change without
notice.
"""


def pages() -> dict[str, str]:
    """Return the pages: an overview, one per namespace, and one per name."""
    overview, found = INTRODUCTION.splitlines(), {}
    for namespace in NAMESPACES:
        names = sorted(names_of(namespace), key=lambda name: (name[0].isupper(), name))
        folder = namespace.rpartition(".")[2]
        links = ", ".join(f"[`{name}`]({folder}/{name}.md)" for name in names)
        overview += [f"## [{namespace}]({folder}.md)", "", _title(namespace), "", links, ""]
        lines = [f"# {namespace}", "", _title(namespace), "", "| name | what it is |", "|---|---|"]
        for name in names:
            value = getattr(importlib.import_module(namespace), name)
            lines.append(f"| [`{name}`]({folder}/{name}.md) | {_first_line(value)} |")
            page = f"---\ntitle: {namespace}.{name}\n---\n\n::: {namespace}.{name}\n"
            found[f"{FOLDER}/{folder}/{name}.md"] = page
        found[f"{FOLDER}/{folder}.md"] = "\n".join([*lines, ""])
    return {f"{FOLDER}/README.md": "\n".join(overview), **found}


def _first_line(value: object) -> str:
    """Return what a name is: the first line of its docstring, or the value of a constant."""
    own = callable(value) or isinstance(value, type)
    return cell((inspect.getdoc(value) or "").partition("\n")[0]) if own else "a constant"


def _title(namespace: str) -> str:
    """Return the first line of the docstring of a namespace."""
    return (importlib.import_module(namespace).__doc__ or "").partition("\n")[0]

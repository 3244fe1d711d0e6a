"""Lets mkdocstrings show examples in docstrings as blocks of code."""

from __future__ import annotations

import re

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


def fenced(docstring: str) -> str:
    """Put the examples of a docstring into blocks of code, which findwell does not mark."""
    return _EXAMPLE.sub(r"```pycon\n\g<0>\n```", docstring)


class Doctests(griffe.Extension):
    """Fences the examples of every docstring."""

    def on_instance(self, *, obj: griffe.Object | griffe.Alias, **_: object) -> None:
        """Rewrite the docstring of an object."""
        if not isinstance(obj, griffe.Alias) and obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)

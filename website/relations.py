"""The reference of relations, from the registry."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from findwell.relations.match import known_matchers
from website.commands import cell
from website.doctests import fenced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.relations.match import Matcher

INTRODUCTION = """# Relations

Look here for what counts as a match, and for the parameters of each kind of match. To choose one,
see [matching by text](../matching.md), [character spans](../spans.md) and [judging](../judging.md).

A relation says which retrieved unit covers which gold item: by id, by text, by place, by
embeddings, or by a judge. Every measure works with every relation for which your files have the
data. `--by rouge` sets the relation of a whole command, `recall@5/rouge` that of one measure, and
`rouge(threshold=0.5)` a parameter. `findwell measures --relations NAME` prints these definitions.

| relation | what matches |
|---|---|"""


def page() -> str:
    """Return the page."""
    known = known_matchers()
    lines = [
        INTRODUCTION,
        *(f"| [{name}](#{name}) | {cell(cls.about)} |" for name, cls in known.items()),
        "",
    ]
    for name, cls in known.items():
        lines += section(name, cls)
    return "\n".join(lines)


def section(name: str, cls: type[Matcher]) -> Iterator[str]:
    """Go through the lines about a relation."""
    yield from (f"## {name} {{ #{name} }}", "", f"**{sentence(cls.about)}**", "")
    definition = inspect.getdoc(cls) or ""
    if definition != cls.about:  # a judged relation has no more to say than what is judged
        yield from (fenced(definition), "")
    if parameters := cls.parameters():
        shown = ", ".join(f"`{key}={value}`" for key, value in parameters.items())
        yield from (f"Parameters: {shown}.", "")


def sentence(text: str) -> str:
    """Return a text as a sentence."""
    return f"{text[0].upper()}{text[1:]}."

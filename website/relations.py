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

A relation says when something retrieved matches something in the gold: by id, by text, by place, by
resemblance, or because a judge says so. Measures can be taken over any of them, as far as your
files hold what it needs. `--by rouge` chooses one for all measures of a command, `recall@5/rouge`
for one of them, and
`rouge(threshold=0.5)` sets a parameter. Which one fits your data is explained in
[matching by text](../matching.md), [character spans](../spans.md) and
[judging](../judging.md). `findwell measures --relations NAME` prints what stands here.

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

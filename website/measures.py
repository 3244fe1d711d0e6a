"""The reference of measures, from the registry."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from latex2mathml.converter import convert

from findwell.cli.measures import facts_about
from findwell.core.errors import FindwellError
from findwell.measures import known_measures, parse_measure
from findwell.measures.dialects import known_dialects, resolve_measures
from website.doctests import fenced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.measures import Measure

INTRODUCTION = r"""# Measures

A measure is written `NAME(parameter=value)@K/RELATION`: `nDCG@10`, `P(rel=2)@5`, `recall@5/rouge`.
Case, spaces, `-` and `_` do not matter, and the names of other tools are understood.
`findwell measures NAME` prints what stands here; `findwell explain` computes it step by step for
one of your queries.

In the formulas $d_1, d_2, …$ is the list, $i$ a rank, $k$ the cutoff and $n_k$ how many units stand
above it; $j$ is an item of the gold, $r_j$ the rank at which it is found first, $R$ how many
relevant items there are, $g$ a gain. $[\ldots]$ is 1 where it holds, and else 0. What happens with
ties, duplicates and missing queries is settled by [policies](../policies.md).
"""


def page() -> str:
    """Return the page."""
    lines = [typeset(INTRODUCTION), "| measure | what it says |", "|---|---|"]
    known = known_measures()
    for name, cls in known.items():
        first = (inspect.getdoc(cls) or "").partition("\n")[0]
        lines.append(f"| [{name}](#{name.lower()}) | {first.replace('|', chr(92) + '|')} |")
    lines.append("")
    for name, cls in known.items():
        lines += section(name, cls)
    return "\n".join(lines)


def section(name: str, cls: type[Measure]) -> Iterator[str]:
    """Go through the lines about a measure."""
    facts = facts_about(cls)
    yield from (f"## {name} {{ #{name.lower()} }}", "", f"`{facts['spelling']}`", "")
    if cls.formula:
        yield from (typeset(f"$${cls.formula}$$"), "")
    yield from (fenced(inspect.getdoc(cls) or ""), "")
    if facts["parameters"]:
        shown = ", ".join(f"`{key}={value}`" for key, value in facts["parameters"].items())
        yield from (f"Parameters: {shown}.", "")
    if facts["aliases"]:
        yield from (
            "Also known as: " + ", ".join(f"`{alias}`" for alias in facts["aliases"]) + ".",
            "",
        )
    others = list(other_dialects(name))
    if others:
        yield from ("In other dialects:", "", *others, "")


def other_dialects(name: str) -> Iterator[str]:
    """Go through the dialects in which the name stands for another formula."""
    usual = parse_measure(name)
    for dialect in known_dialects():
        try:
            (found,) = resolve_measures(name, dialect)
        except FindwellError:
            continue
        if type(found) is not type(usual):
            first = (inspect.getdoc(type(found)) or "").partition("\n")[0]
            yield f"- [{dialect}](../dialects.md): {first}"
        elif found != usual:
            yield f"- [{dialect}](../dialects.md): `{found}`"


def typeset(text: str) -> str:
    """Replace formulas between dollars by MathML, which browsers draw without any script."""
    blocks = re.sub(
        r"\$\$(.+?)\$\$",
        lambda match: f'<div class="formula">{convert(match[1], display="block")}</div>',
        text,
    )
    return re.sub(r"\$(.+?)\$", lambda match: convert(match[1]), blocks)

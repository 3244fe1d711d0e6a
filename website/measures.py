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

FOLDER = "reference/measures"
INTRODUCTION = r"""# Measures

Look here for what a measure computes, when to use it, and what other tools call it. To choose
one, answer the four questions of [`findwell choose`](../learn/choosing.md).

Write a measure as `NAME(parameter=value)@K/RELATION`: `nDCG@10`, `P(rel=2)@5`,
`recall@5/rouge`. Case, spaces, `-` and `_` do not matter, and findwell understands the names of
other tools. `findwell measures NAME` prints these definitions; `findwell explain` computes one
step by step for one of your queries.
"""
SYMBOLS = r"""In the formulas, $d_1, d_2, …$ is the list, $i$ a rank, $k$ the cutoff, $n_k$ the
number of units above it. Further, $j$ is an item of the gold labels, $r_j$ the rank at which it is
first found, $R$ the number of relevant items, $g$ a gain. $[\ldots]$ is 1 if the condition holds,
else 0. [Policies](../../policies.md) say what happens with ties, duplicates and missing queries."""
LEADS = {  # when a page is needed, and its picture
    "found": (
        "A passage that is not retrieved cannot be in the answer: how much was found?",
        "ingredients",
    ),
    "noise": (
        "Passages that do not help cost tokens and mislead a model: how many are there?",
        "ranked-list",
    ),
    "ranking": ("The reader stops early: how near the top are the needed passages?", "failures"),
    "grades": ("Some passages are better than others: are the better ones higher?", "readers"),
    "labels": ("Not everything was labelled: how much could that change a value?", "pooling"),
    "cost": ("Contexts differ in length: what does a result cost?", "spans"),
    "counts": ("You want to check a run or its gold labels: how many are there?", "ingredients"),
}
IDEAS = {  # a measure that no idea names is listed with the counts
    "found": ("Was it found?", "recall success all_found F set_map Rprec Rprec_mult IoU"),
    "noise": (
        "How much noise came along?",
        "P relative_P redundancy near_duplicates forbidden age rejected_retrieved",
    ),
    "ranking": ("Is it near the top?", "RR AP GMAP IPrec 11pt position in_third"),
    "grades": (
        "Are the better ones higher?",
        "nDCG DCG ERR RBP RBP_residual alpha_nDCG G binG ndcg_rel Rndcg utility",
    ),
    "labels": ("How complete are the labels?", "judged unjudged bpref gm_bpref infAP"),
    "cost": ("What does it cost?", "context_cost cost_to items_per"),
}


def pages() -> dict[str, str]:
    """Return the pages: an overview, and one per idea."""
    known, overview, found = dict(known_measures()), [INTRODUCTION], {}
    ideas = {page: (title, names.split()) for page, (title, names) in IDEAS.items()}
    named = {name for _, names in ideas.values() for name in names}
    ideas["counts"] = ("Counts", [name for name in known if name not in named])
    for page, (title, names) in ideas.items():
        overview += [f"## {title}", "", "| measure | what it says |", "|---|---|"]
        lead, picture = LEADS[page]
        lines = [f"# {title}", "", f"{lead} [All measures](../measures.md)", ""]
        lines += [f"![{title}](../../images/learn/{picture}.svg)", "", typeset(SYMBOLS), ""]
        for name in names:
            first = (inspect.getdoc(known[name]) or "").partition("\n")[0].replace("|", "\\|")
            overview.append(f"| [{name}](measures/{page}.md#{name.lower()}) | {first} |")
            lines += section(name, known[name])
        overview.append("")
        found[f"{FOLDER}/{page}.md"] = "\n".join(lines)
    return {f"{FOLDER}.md": "\n".join(overview), **found}


def section(name: str, cls: type[Measure]) -> Iterator[str]:
    """Go through the lines about a measure."""
    facts = facts_about(cls)
    yield from (f"## {name} {{ #{name.lower()} }}", "", f"`{facts['spelling']}`", "")
    if cls.formula:
        yield from (typeset(f"$${cls.formula}$$"), "")
    text = re.sub(r"(?m)^(When to use|Citation):", r"**\1:**", inspect.getdoc(cls) or "")
    yield from (fenced(text), "")
    if facts["parameters"]:
        shown = ", ".join(f"`{key}={value}`" for key, value in facts["parameters"].items())
        yield from (f"Parameters: {shown}.", "")
    if facts["aliases"]:
        yield from (
            "Names in other tools: " + ", ".join(f"`{alias}`" for alias in facts["aliases"]) + ".",
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
            yield f"- [{dialect}](../../dialects.md): {first}"
        elif found != usual:
            yield f"- [{dialect}](../../dialects.md): `{found}`"


def typeset(text: str) -> str:
    """Replace formulas between dollars by MathML, which browsers draw without any script."""
    blocks = re.sub(
        r"\$\$(.+?)\$\$",
        lambda match: f'<div class="formula">{convert(match[1], display="block")}</div>',
        text,
    )
    return re.sub(r"\$(.+?)\$", lambda match: convert(match[1]), blocks)

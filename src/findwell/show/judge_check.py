"""The check of a model as a document: what it can do, and how it is asked best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.judges.limits import CHANCE
from findwell.show.document import Document
from findwell.show.grid import Grid
from findwell.show.tables import interval, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.judges.llm.check import JudgeCheck

CHECK_FORMATS = ("table", "json", "markdown")
IN_WORDS = {"matrix": "all verdicts about a sample at once", "single": "one verdict at a time"}


def document(check: JudgeCheck) -> Document:
    """Return how each way of asking did, and what was seen of the server."""
    return Document(_grids(check), data=check.as_dict)


def _grids(check: JudgeCheck) -> Iterator[Grid]:
    ways = [each.way for each in check.ways]
    best = {(ways.index(check.recommended), 0)} if check.recommended else set()
    note = f"{check.judge} is {CHANCE}"
    if check.recommended:
        note = f"ask it for {IN_WORDS[check.recommended]}: -J ask={check.recommended}"
        worthless = [each.way for each in check.ways if each.is_chance]
        note += f"; no better than chance: {', '.join(worthless)}" if worthless else ""
        if check.left_to_local:
            note += f"; leave {' and '.join(check.left_to_local)} to --judge local"
    yield Grid.of(
        f"{check.judge} · {check.ways[0].verdicts} labelled verdicts",
        {
            "ask": lambda each: each.way,
            "right": lambda each: f"{each.right_share:.1%}",
            "failed": lambda each: f"{each.failed_share:.1%}",
            "kappa": lambda each: number(each.kappa),
            "95% interval": lambda each: interval(each.kappa_low, each.kappa_high),
            "calls": lambda each: f"{each.calls:,}",
            "tokens": lambda each: f"{each.prompt_tokens:,}",
            "answered": lambda each: f"{each.completion_tokens:,}",
            "seconds": lambda each: f"{each.seconds:.1f}",
        },
        check.ways,
        best=best,
        note=note,
    )
    yield Grid.of(
        "by aspect",
        {
            "ask": lambda each: each[0].way,
            "aspect": lambda each: each[1].aspect,
            "kappa": lambda each: number(each[1].kappa),
            "95% interval": lambda each: interval(each[1].kappa_low, each[1].kappa_high),
            "cutoff": lambda each: "" if each[1].cutoff is None else f"{each[1].cutoff:.2f}",
            "held out": lambda each: number(each[1].kappa_held_out),
            "local": lambda each: number(each[1].kappa_local),
            "verdicts": lambda each: str(each[1].verdicts),
        },
        [(way, aspect) for way in check.ways for aspect in way.aspects],
        left=2,
        note="cutoff: the probability from which a yes counts, where another than 0.5 is better on "
        "cases that did not choose it (held out); local: κ of the embedded judge on these cases",
    )
    accepted = ", ".join(check.left_out) or "none"
    rows = [
        ["server", check.endpoint],
        ["structured output", check.output],
        ["probabilities (logprobs)", "yes" if check.logprobs else "no"],
        ["longest complete answer", f"{check.longest:,} tokens"],
        ["fields turned down", accepted],
        *(
            [
                f"failures of {each.way}",
                ", ".join(f"{n} {why}" for why, n in each.reasons.items())
                + (", then given up" if each.given_up else ""),
            ]
            for each in check.ways
            if each.reasons
        ),
    ]
    yield Grid("what was seen", ["", "seen"], rows, left=2)

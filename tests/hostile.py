"""Texts that would do something if anybody obeyed them, and a result full of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import findwell
from findwell.judges.verdicts import Judged, Judgement
from tests.judges.building import judged_of

if TYPE_CHECKING:
    from findwell.core.progress import Report
    from findwell.judges.verdicts import Sample

ATTACKS = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "<!--<script>",
    "<img src=x onerror='window.hacked=1'>",
    '"><svg onload=window.hacked=1>',
    "javascript:window.hacked=1",
    "[click](javascript:window.hacked=1)",
    "&lt;b&gt; &amp; &#60;i&#62;",
    "\u202egnp.exe\u2066 \u2028 \u2029",
    "\x1b[31mred\x07",
    "`${window.hacked=1}` {{7*7}}",
    "__proto__",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 😀",
)
LONG = "A sentence that goes on. " * 42_000  # more than a million letters


class Jury:
    """A judge that finds the first chunk relevant, and says so in the words of an attacker."""

    name = "<b>jury</b>"

    def judge(
        self,
        samples: Sequence[Sample],
        aspects: frozenset[str],
        progress: Report | None = None,
    ) -> list[Judged]:
        del aspects, progress
        return [
            judged_of(
                relevance=tuple(
                    Judgement(2 - min(at, 2), f"{ATTACKS[1]} because", chunk[:40])
                    for at, chunk in enumerate(sample.chunks)
                )
            )
            for sample in samples
        ]

    def about(self) -> dict[str, Any]:
        return {"model": ATTACKS[0], "prompts": {"relevance": ATTACKS[5]}, "cost": 0.25}


def records() -> list[dict[str, Any]]:
    """Return records whose every field is an attack."""
    return [
        {
            "query": attack,
            "question": f"{attack} {number}?",
            "retrieved": [
                {"doc": f"d{number}{attack}", "text": f"{attack} is text.", "score": 2.0},
                {"doc": f"long{number}", "text": LONG if number == 0 else "short", "score": 1.0},
            ],
            "gold": [f"d{number}{attack}", attack] if number % 2 else [attack],
            "<b>kind</b>": ATTACKS[number % 3],
        }
        for number, attack in enumerate(ATTACKS)
    ]


def result() -> findwell.Result:
    """Return a result of two runs with hostile names, by ids and by a judge."""
    rows = records()
    gold = [{key: row[key] for key in ("query", "question", "gold", "<b>kind</b>")} for row in rows]
    runs = {
        ATTACKS[0]: [{key: row[key] for key in ("query", "retrieved")} for row in rows],
        "plain": [{"query": row["query"], "retrieved": [*row["retrieved"][::-1]]} for row in rows],
    }
    return findwell.evaluate(
        runs,
        gold,
        ["recall@1", "RR", "P/relevance"],
        judge=Jury(),
        reading=findwell.Reading(keep=10),
    )

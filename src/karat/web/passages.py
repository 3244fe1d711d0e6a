"""Pairs, labels and progress as the script of `karat label` reads them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.errors import KaratError
from karat.reports.escape import multiline, same_length, visible
from karat.spans.locate import locate

if TYPE_CHECKING:
    from karat.labels.labels import Labels
    from karat.labels.pairs import Disagreement, LabellingProgress, Pair


def pair_json(pair: Pair, *, quotes: bool) -> dict[str, Any]:
    """Return a pair; `query` and `doc` are sent back as they are, all else is to be read."""
    return {
        "query": pair.query,
        "doc": pair.doc,
        "name": visible(pair.doc),
        "question": multiline(pair.question),
        "text": same_length(pair.text),
        "quote": place_of(pair.quote, pair.text) if quotes else None,
        "label": label_json(pair),
    }


def label_json(pair: Pair) -> dict[str, Any] | None:
    """Return what the annotator said about a pair, None if nothing."""
    if not pair.state:
        return None
    grade = None if pair.grade is None else int(pair.grade)
    return {
        "state": pair.state, "grade": grade, "note": pair.note,
        "start": pair.start, "end": pair.end,
    }  # fmt: skip


def progress_json(known: LabellingProgress, disagreements: int) -> dict[str, Any]:
    """Return how far an annotator has come; what was skipped or left in doubt is done."""
    return {
        "done": known.total - known.left,
        "total": known.total,
        "skipped": known.skipped,
        "unsure": known.unsure,
        "seconds_left": known.seconds_left,
        "disagreements": disagreements,
    }


def disagreement_json(found: Disagreement, labels: Labels, *, quotes: bool) -> dict[str, Any]:
    """Return a pair on which annotators differ, with what each of them said."""
    pair = labels.pair(found.query, found.doc, annotator="")
    said = [
        {
            "annotator": visible(name),
            "state": "unsure" if grade is None else "labelled",
            "grade": None if grade is None else int(grade),
            "note": multiline(found.notes.get(name, "")),
        }
        for name, grade in found.grades.items()
    ]
    return pair_json(pair, quotes=quotes) | {"label": None, "labels": said}


def place_of(quote: str, text: str) -> tuple[int, int] | None:
    """Return where a text has a quote, in characters; None if it has not.

    >>> place_of("red  Button", "Press the red button.")
    (10, 20)
    """
    if not quote:
        return None
    with suppress(KaratError):
        found = locate([quote], None, pl.DataFrame({"doc": ["text"], "text": [text]}))
        start, end = found.select("start", "end").row(0)
        return None if start is None else (start, end)
    return None

"""Pairs, labels and progress as the script of `findwell labels serve` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.frames import pl
from findwell.loop.labels.labels import Pair
from findwell.relations.spans.locate import place_of
from findwell.show.escape import multiline, same_length, visible

if TYPE_CHECKING:
    from findwell.loop.labels.labels import Disagreement, LabellingProgress


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


def disagreement_json(found: Disagreement, said: pl.DataFrame) -> dict[str, Any]:
    """Return a pair on which annotators differ, with what each of them said and marked."""
    here = said.filter(pl.col("query") == found.query, pl.col("doc") == found.doc)
    marks = {
        name: same_length(found.text)[start:end]
        for name, start, end in here.select("annotator", "start", "end").iter_rows()
        if start is not None
    }
    voices = [
        {
            "annotator": visible(name),
            "state": "unsure" if grade is None else "labelled",
            "grade": None if grade is None else int(grade),
            "note": multiline(found.notes.get(name, "")),
            "quoted": marks.get(name, ""),
        }
        for name, grade in found.grades.items()
    ]
    pair = Pair(found.query, found.question, found.doc, found.text)
    return pair_json(pair, quotes=False) | {"labels": voices}

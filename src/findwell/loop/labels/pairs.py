"""What annotators see, and what they said about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a passage that was retrieved for it, as it is shown to an annotator."""

    query: str
    question: str
    doc: str
    text: str
    position: int = 0  # from 1, among what this annotator has done and has to do
    total: int = 0
    source: str | None = None  # the document of the passage, and where it stands in it
    source_start: int | None = None
    quote: str = ""  # what the judge quoted; to be shown only on request, since it biases
    # what this annotator said before
    state: str = ""  # labelled, skipped, unsure, or nothing
    grade: float | None = None
    note: str = ""
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class LabellingProgress:
    """How far an annotator has come."""

    labelled: int
    skipped: int
    unsure: int
    left: int
    seconds_left: float | None  # None: too little is known about the pace

    @property
    def total(self) -> int:
        """What was done and what is left."""
        return self.labelled + self.skipped + self.unsure + self.left


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pair that annotators label differently, or of which one is not sure."""

    query: str
    question: str
    doc: str
    text: str
    grades: dict[str, float | None]  # of each annotator; None: not sure
    notes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """The last thing that an annotator said about a pair."""

    annotator: str
    kind: str
    grade: float | None
    note: str
    start: int | None
    end: int | None
    number: int

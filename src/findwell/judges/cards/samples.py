"""Labelled pairs as samples that a judge is asked about, and its verdicts, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from findwell.judges.aspects import VerdictShape, find_aspect
from findwell.judges.verdicts import Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Ints
    from findwell.core.progress import Report
    from findwell.judges.cards.labels import LabelledPairs
    from findwell.judges.verdicts import Judged, Judgement, JudgeProtocol


@dataclass(frozen=True, slots=True, eq=False)
class LabelledSamples:
    """One sample per question, of all its chunks; of each text, where verdicts are about lists."""

    aspect: str
    samples: tuple[Sample, ...]
    sample: Ints  # of each pair
    place: Ints  # of the chunk of each pair in its sample

    @classmethod
    def of(cls, labels: LabelledPairs, aspect: str) -> LabelledSamples:
        """Put labelled pairs together."""
        alone = find_aspect(aspect).shape is VerdictShape.LIST
        numbers: dict[tuple[str, str, str], int] = {}
        chunks: list[dict[str, int]] = []
        sample, place = [], []
        pairs = zip(labels.queries, labels.questions, labels.chunks, strict=True)
        for query, question, chunk in pairs:
            number = numbers.setdefault((query, question, chunk if alone else ""), len(chunks))
            if number == len(chunks):
                chunks.append({})
            sample.append(number)
            place.append(chunks[number].setdefault(chunk, len(chunks[number])))
        made = tuple(
            _sample(query, question, tuple(texts), aspect)
            for (query, question, _), texts in zip(numbers, chunks, strict=True)
        )
        return cls(aspect, made, np.array(sample, dtype=np.int64), np.array(place, dtype=np.int64))

    def ask(self, judge: JudgeProtocol, progress: Report | None = None) -> list[Judgement | None]:
        """Return the verdict about each pair; None if the judge was asked something else."""
        judged = judge.judge(list(self.samples), frozenset({self.aspect}), progress)
        places = zip(self.sample.tolist(), self.place.tolist(), strict=True)
        return [_verdict(judged[number], self.aspect, place) for number, place in places]

    def shuffled(self, seed: int = 0) -> LabelledSamples:
        """Return the same samples with other orders of chunks: each chunk moves.

        >>> from findwell.judges.cards.labels import load_labels
        >>> rows = [{"question": "?", "chunk": chunk, "label": 1} for chunk in "abc"]
        >>> LabelledSamples.of(load_labels(rows), "relevance").shuffled().samples[0].chunks
        ('c', 'a', 'b')
        """
        rng = np.random.default_rng(seed)
        moved: list[Sample] = []
        places: list[Ints] = []
        for sample in self.samples:
            order = np.arange(len(sample.chunks))
            for at in range(len(order) - 1, 0, -1):  # Sattolo's: one cycle of all
                other = int(rng.integers(at))
                order[[at, other]] = order[[other, at]]
            texts = tuple(sample.chunks[at] for at in order.tolist())
            parts = {self.aspect: tuple((text,) for text in texts)} if sample.parts else {}
            moved.append(replace(sample, chunks=texts, parts=parts))
            places.append(np.argsort(order))
        start = np.cumsum([0, *map(len, places)])[self.sample]
        place = np.concatenate(places)[start + self.place] if places else self.place
        return replace(self, samples=tuple(moved), place=place)

    @property
    def sizes(self) -> Ints:
        """How many chunks the sample of each pair has."""
        return np.array([len(each.chunks) for each in self.samples], dtype=np.int64)[self.sample]


def _sample(query: str, question: str, chunks: tuple[str, ...], aspect: str) -> Sample:
    shape = find_aspect(aspect).shape
    if shape is VerdictShape.ITEMS:
        return Sample(query, "", chunks, reference=question, items={aspect: (question,)})
    parts = {aspect: tuple((chunk,) for chunk in chunks)} if shape is VerdictShape.PARTS else {}
    return Sample(query, question, chunks, parts=parts)


def _verdict(judged: Judged, aspect: str, place: int) -> Judgement | None:
    """Return the verdict about a chunk; None if it failed, or if the judge asked something else."""
    if aspect in judged.failures:
        return None
    rows = judged[aspect].rows
    if find_aspect(aspect).shape is VerdictShape.PARTS:
        own = rows[place] if place < len(rows) else ()
        return own[0] if len(own) == 1 else None
    row: Sequence[Judgement] = rows[0] if len(rows) == 1 else ()
    return row[place] if place < len(row) else None

"""A judge that is asked about each chunk once, however often it stands in some list."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from findwell.judges.aspects import VerdictShape, find_aspect
from findwell.judges.verdicts import AspectVerdicts, Judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.progress import Report
    from findwell.judges.verdicts import JudgeFailure, JudgeProtocol, Sample

Key = tuple[str, str]  # the query and the aspect


@dataclass(slots=True)
class _Known:
    """What a judge said about one aspect of a query, chunk by chunk."""

    sample: Sample  # what it was asked about
    found: AspectVerdicts | JudgeFailure
    place: dict[str, int] = field(default_factory=dict)  # of each chunk


@dataclass(slots=True)
class OnceJudge:
    """Asks a judge about a list, and answers about other orders and parts of it from memory.

    A verdict about a chunk does not depend on those beside it; one about a whole list does, and is
    asked for again.
    """

    inner: JudgeProtocol
    _known: dict[Key, _Known] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What results call the judge that is asked."""
        return self.inner.name

    def about(self) -> dict[str, Any]:
        """Return what the manifest says about it."""
        return self.inner.about()

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample; only what is new is asked."""
        new = [
            sample
            for sample in samples
            if any(self._answer(sample, aspect) is None for aspect in aspects)
        ]
        if new:
            for sample, judged in zip(new, self.inner.judge(new, aspects, progress), strict=True):
                for aspect in aspects:
                    found = judged.failures.get(aspect) or judged[aspect]
                    places = {chunk: place for place, chunk in enumerate(sample.chunks)}
                    self._known[sample.query, aspect] = _Known(sample, found, places)
        return [self._judged(sample, aspects) for sample in samples]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Cut references as the judge that is asked does, where it has a way of its own."""
        if name.endswith("_of"):
            return getattr(self.inner, name)
        raise AttributeError(name)

    def findings(self) -> list[Any]:
        """Return what only the judge that is asked can know."""
        return list(getattr(self.inner, "findings", list)())

    def _judged(self, sample: Sample, aspects: frozenset[str]) -> Judged:
        verdicts, failures = {}, {}
        for aspect in sorted(aspects):
            answer = self._answer(sample, aspect)
            if isinstance(answer, AspectVerdicts):
                verdicts[aspect] = answer
            elif answer is not None:
                failures[aspect] = answer
        return Judged(verdicts, failures)

    def _answer(self, sample: Sample, aspect: str) -> AspectVerdicts | JudgeFailure | None:
        """Return what is known about an aspect of a sample; None if something is not."""
        known = self._known.get((sample.query, aspect))
        if known is None or not _same(known.sample, sample, aspect):
            return None
        found = known.found
        if known.sample.chunks == sample.chunks or not isinstance(found, AspectVerdicts):
            return found
        places = [known.place.get(chunk, -1) for chunk in sample.chunks]
        shape = find_aspect(aspect).shape
        if shape is VerdictShape.LIST or -1 in places:
            return None
        if shape is VerdictShape.PARTS:
            return replace(
                found,
                rows=tuple(found.rows[place] for place in places),
                parts=tuple(found.parts[place] for place in places),
            )
        return replace(
            found, rows=tuple(tuple(row[place] for place in places) for row in found.rows)
        )


def _same(known: Sample, asked: Sample, aspect: str) -> bool:
    """Tell whether two samples are about one question, with the same items."""
    return (known.question, known.reference, known.items[aspect]) == (
        asked.question,
        asked.reference,
        asked.items[aspect],
    )

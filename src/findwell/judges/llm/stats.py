"""Counts of how verdicts came about, for the manifest and the findings, and when to stop.

Judging stops when too much of it fails, before an hour is spent on nothing: while at least half of
the samples are still to be judged. Later the rest is judged, and a finding says what to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median_low
from typing import TYPE_CHECKING, Any

from findwell.core.errors import JudgeError
from findwell.core.findings import EXAMPLES, Finding
from findwell.judges.aspects import all_verdicts
from findwell.judges.client.protocol import Reason
from findwell.judges.verdicts import JudgeReason

if TYPE_CHECKING:
    from findwell.judges.llm.judge import LLMJudge
    from findwell.judges.verdicts import Judged, JudgeFailure, Judgement, Sample

MESSAGES = {
    "cut-text": (
        "# text|texts is|are too long for one call of the judge and judged by the beginning.",
        "raise call_tokens if the model takes more at once",
    ),
    "invented-item": (
        "# item|items that the judge listed is|are not in the reference and left out.",
        "use a stronger model",
    ),
    "way-to-ask": (
        "The judge was asked in the way that a check with labelled cases found best.",
        "choose another with -J ask; findwell judge check shows the check",
    ),
    "many-failures": (
        "The model failed to give many of the verdicts.",
        "findwell judge check finds the best way to ask it",
    ),
    "unsaved-answer": (
        "# answer|answers of the judge could not be kept on disk and will be asked for again.",
        "set FINDWELL_CACHE_DIR to a folder on a local disk that you may write to",
    ),
}


@dataclass(slots=True)
class JudgeStats:
    """Counts over all samples of a judge."""

    verdicts: Counter[str] = field(default_factory=Counter)  # by aspect, also failed ones
    failed: Counter[str] = field(default_factory=Counter)  # by reason
    unproven: Counter[str] = field(default_factory=Counter)  # by aspect
    malformed: Counter[str] = field(default_factory=Counter)  # by what was wrong
    asked_again: int = 0  # calls that repeat a part of another
    longest: int = 0  # tokens of the longest answer that was complete
    single: Counter[bool] = field(default_factory=Counter)  # with probabilities, and without
    _noted: dict[str, list[str]] = field(default_factory=dict)  # since the last beginning
    _reported: Counter[str] = field(default_factory=Counter)  # the same, of all times
    _pairs: Counter[str] = field(default_factory=Counter)
    _agreeing: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, example: str) -> None:
        """Remember what should be reported as a finding."""
        self._noted.setdefault(kind, []).append(example)
        self._reported[kind] += 1

    def begin(self) -> None:
        """Forget what was noted about earlier samples; the counts stay."""
        self._noted.clear()

    def decide(self, aspect: str, votes: Sequence[Judgement]) -> Judgement:
        """Make one verdict of several votes: the median, which of yes and no is the majority.

        An even split goes to the lower one. Of equal votes the first that is proven is taken.
        Votes that failed do not count, unless all did.
        """
        given = [vote for vote in votes if vote.value is not None]
        self.verdicts[aspect] += 1
        for one, other in combinations(given, 2):
            self._pairs[aspect] += 1
            self._agreeing[aspect] += one.value == other.value
        if not given:
            self.lose(votes[0].failure)
            return votes[0]
        value = median_low(vote.value for vote in given if vote.value is not None)
        same = [vote for vote in given if vote.value == value]
        chosen = next((vote for vote in same if not vote.unproven), same[0])
        self.unproven[aspect] += chosen.unproven
        return chosen

    def lose(self, failure: JudgeFailure | None) -> None:
        """Count a verdict that failed, or an aspect that failed as a whole."""
        if failure is not None:
            self.failed[str(failure.reason)] += 1

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        agreement = {
            aspect: self._agreeing[aspect] / pairs for aspect, pairs in sorted(self._pairs.items())
        }
        return {
            "verdicts": dict(sorted(self.verdicts.items())),
            "failed_verdicts": dict(sorted(self.failed.items())),
            "unproven": dict(sorted((+self.unproven).items())),
            "malformed": dict(sorted(self.malformed.items())),
            "asked_again": self.asked_again,
            "cut": self._reported["cut-text"],
            "invented": self._reported["invented-item"],
            "agreement": agreement,
        } | (
            {"single": {"with_probability": self.single[True], "by_text": self.single[False]}}
            if self.single
            else {}
        )

    def findings(self) -> tuple[Finding, ...]:
        """Return what the user should see next to the result, since the last beginning."""
        return tuple(
            Finding(kind, len(noted), tuple(sorted(set(noted)))[:EXAMPLES], *MESSAGES[kind])
            for kind, noted in sorted(self._noted.items())
        )


FIRST_SAMPLES, FIRST_VERDICTS = 4, 20  # before that nothing is concluded
# what a model that is asked for less at once may do better
MODEL_REASONS = frozenset(
    {JudgeReason.MALFORMED, Reason.CUT_OFF, Reason.EMPTY, Reason.TIMEOUT, Reason.TOO_LONG}
)
ADVICE = {
    "matrix": "ask for one verdict at a time: -J ask=single; -J ask=auto finds what suits it",
    "single": "use another model",
}


@dataclass(slots=True)
class FailureGuard:
    """Counts the verdicts about the samples of one job, and those that the model failed to give."""

    judge: LLMJudge
    samples: int
    _done: int = 0
    _verdicts: int = 0
    _failed: Counter[str] = field(default_factory=Counter)

    def note(self, sample: Sample, judged: Judged) -> None:
        """Count the verdicts about a sample; raise an error when too many failed."""
        self._done += 1
        for aspect in judged.verdicts:
            for verdict in all_verdicts(judged, aspect):
                self._count(verdict.failure, 1)
        for failure in judged.failures.values():  # of at least one item or part for each chunk
            self._count(failure, len(sample.chunks))
        enough = self._done >= FIRST_SAMPLES and self._verdicts >= FIRST_VERDICTS
        if enough and 2 * self._done <= self.samples and self._too_many:
            raise self._error()

    def end(self) -> None:
        """Say what to do if too many failed, when all samples are judged."""
        if self._verdicts >= FIRST_VERDICTS and self._too_many:
            self.judge.stats.note("many-failures", f"{self._counted()}: {ADVICE[self.judge.way]}")

    @property
    def _too_many(self) -> bool:
        most = self.judge.settings.max_failures
        return most < 1 and self._failed.total() > most * self._verdicts

    def _count(self, failure: JudgeFailure | None, verdicts: int) -> None:
        self._verdicts += verdicts
        if failure is not None and failure.reason in MODEL_REASONS:
            self._failed[str(failure.reason)] += verdicts

    def _counted(self) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in self._failed.most_common())
        return f"{self._failed.total()} of {self._verdicts} verdicts failed ({reasons})"

    def _error(self) -> JudgeError:
        return JudgeError(
            f"{self._counted()} in the first {self._done} of {self.samples} samples; "
            "what was answered is in the cache",
            where=self.judge.name,
            fix=f"{ADVICE[self.judge.way]} (findwell judge check {self.judge.name} measures it); "
            "-J max_failures=1 goes on regardless",
        )

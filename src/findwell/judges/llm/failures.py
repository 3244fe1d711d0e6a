"""Stops judging when too much of it fails, before an hour is spent on nothing.

It stops while at least half of the samples are still to be judged; later the rest is judged, and
what to do is said in a finding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from findwell.core.errors import JudgeError
from findwell.judges.aspects import all_verdicts
from findwell.judges.client.protocol import Reason
from findwell.judges.verdicts import JudgeReason

if TYPE_CHECKING:
    from findwell.judges.llm.judge import LLMJudge
    from findwell.judges.verdicts import Judged, JudgeFailure, Sample

FIRST_SAMPLES, FIRST_VERDICTS = 4, 20  # before that nothing is concluded
# what a model that is asked for less at once may do better
FROM_MODEL = frozenset(
    {JudgeReason.MALFORMED, Reason.CUT_OFF, Reason.EMPTY, Reason.TIMEOUT, Reason.TOO_LONG}
)
ADVICE = {
    "matrix": "ask for less at once: --ask single, or --ask auto for what suits the model",
    "pieces": "ask for one verdict at a time: --ask single",
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
        if failure is not None and failure.reason in FROM_MODEL:
            self._failed[str(failure.reason)] += verdicts

    def _counted(self) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in self._failed.most_common())
        return f"{self._failed.total()} of {self._verdicts} verdicts failed ({reasons})"

    def _error(self) -> JudgeError:
        return JudgeError(
            f"{self._counted()} in the first {self._done} of {self.samples} samples; "
            "what was answered is in the cache",
            where=self.judge.name,
            fix=f"{ADVICE[self.judge.way]} (findwell judge-check {self.judge.name} measures it); "
            "--max-failures 1 goes on regardless",
        )

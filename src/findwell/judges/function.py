"""A judge made of a Python function: it sees a sample and returns verdicts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError, OptionError
from findwell.core.progress import Progress
from findwell.judges.recorded import as_judged, as_record
from findwell.judges.verdicts import Judged, JudgeFailure, JudgeReason, Sample

if TYPE_CHECKING:
    from findwell.core.progress import Report


class FunctionJudge:
    """Asks a function from a `Sample` to a dict of verdicts by aspect, or to a `Judged`.

    `findwell.judges.recorded` describes the dict. It is checked against the sample: what does not
    fit, and what the function raises, is a failure with a reason and does not affect other samples.

    >>> def first_is_best(sample):
    ...     return {"relevance": [3] + [0] * (len(sample.chunks) - 1)}
    >>> judge = FunctionJudge(first_is_best)
    >>> judged = judge.judge([Sample("q1", "Why?", ("a", "b"))], frozenset({"relevance"}))
    >>> [verdict.value for verdict in judged[0]["relevance"].row]
    [3, 0]
    """

    def __init__(self, function: Callable[[Sample], Any], *, name: str = "") -> None:
        if inspect.iscoroutinefunction(function):
            raise OptionError(
                "a judge's function cannot be async", fix="call asyncio.run(...) inside of it"
            )
        own = getattr(function, "__qualname__", type(function).__qualname__)
        self.name = name or f"function:{own}"
        self._function = function
        self._asked = self._failed = 0

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {"judge": self.name, "calls": self._asked, "failed": self._failed}

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""
        judged = []
        for sample in samples:
            judged.append(self._ask(sample, aspects))
            if progress is not None:
                progress(Progress(len(judged), len(samples)))
        return judged

    def _ask(self, sample: Sample, aspects: frozenset[str]) -> Judged:
        self._asked += 1
        try:
            found = self._function(sample)
        except FindwellError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the function does wrong
            return self._failure(aspects, f"{type(error).__name__}: {error}")
        if isinstance(found, Judged):
            found = as_record(found)
        if not isinstance(found, Mapping):
            what = f"the function returned a {type(found).__name__}, no dict"
            return self._failure(aspects, what)
        return as_judged(found, sample, aspects)

    def _failure(self, aspects: frozenset[str], detail: str) -> Judged:
        self._failed += 1
        failure = JudgeFailure(JudgeReason.ERROR, detail)
        return Judged(failures=dict.fromkeys(sorted(aspects), failure))

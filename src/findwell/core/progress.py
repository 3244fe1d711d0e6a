"""How far a long piece of work has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """What is done, of how much: queries or samples."""

    done: int
    total: int
    note: str = ""  # of a judge: tokens, cost, answers from the cache
    phase: str = ""  # what is being done: reading which run, asking which judge


Report: TypeAlias = Callable[[Progress], None]


class Stages:
    """Several pieces of work, one after another, reported as one that never goes back.

    All pieces count for the same; a piece of which less was done than it promised is done when the
    next begins.

    >>> seen = []
    >>> stages = Stages(seen.append, 2)
    >>> first, second = stages.begin("reading a"), stages.begin("reading b")
    >>> second(Progress(5, 10))
    >>> [(step.phase, step.done, step.total) for step in seen]
    [('reading a', 0, 2), ('reading b', 1, 2), ('reading b', 15, 20)]
    """

    def __init__(self, report: Report | None, count: int) -> None:
        self._report, self._count = report, max(count, 1)
        self._begun = 0
        self._size = 1  # steps of a piece: those of the largest so far

    def begin(self, phase: str) -> Report | None:
        """Begin the next piece; return what is told how far it has come."""
        report, before = self._report, min(self._begun, self._count - 1)
        self._begun += 1
        if report is None:
            return None

        def tell(step: Progress) -> None:
            self._size = max(self._size, step.total)
            done = self._size * step.done // max(step.total, 1)
            whole = replace(step, done=self._size * before + done, total=self._size * self._count)
            report(replace(whole, phase=_joined(phase, step.phase)))

        report(Progress(self._size * before, self._size * self._count, phase=phase))
        return tell


def _joined(outer: str, inner: str) -> str:
    return f"{outer}: {inner}" if outer and inner else outer or inner

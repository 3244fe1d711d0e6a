"""How far a judge is, told in samples: calls are what it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from karat.judges.verdicts import Progress

if TYPE_CHECKING:
    from karat.judges.run import Progress as Calls


@dataclass(slots=True)
class Meter:
    """Turns the calls of a batch of samples into samples done."""

    first: int  # samples done before this batch
    count: int  # samples of this batch
    total: int
    calls: int  # that the batch is likely to need
    tell: Callable[[Progress], None] | None
    _before: int = 0  # calls of earlier passes
    _note: str = ""

    def report(self, calls: Calls) -> None:
        """Tell how far a pass is; a sample is done only when its batch is."""
        if self.tell is None:
            return
        share = (self._before + calls.done) / max(self.calls, 1)
        done = self.first + min(int(self.count * share), max(self.count - 1, 0))
        cost = "" if calls.cost is None else f", cost {calls.cost:.4g}"
        stored = f", {calls.stored:,} from the cache" if calls.stored else ""
        failed = f", {calls.failed:,} failed" if calls.failed else ""
        self._note = f"{calls.tokens:,} tokens{cost}{stored}{failed}"
        self.tell(Progress(done, self.total, self._note))

    def end_pass(self, calls: int) -> None:
        """Go on to the next pass."""
        self._before += calls

    def end(self) -> None:
        """Tell that the batch is done."""
        if self.tell is not None:
            self.tell(Progress(self.first + self.count, self.total, self._note))

"""A verdict: is one system better than another, and how sure is that?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from findwell.core.estimate import Estimate

Word: TypeAlias = Literal["better", "worse", "higher", "lower", "same", "unclear", "unknown"]

BETTER: Final = "better"
WORSE: Final = "worse"
HIGHER: Final = "higher"  # a signal of production of which no direction is good
LOWER: Final = "lower"
SAME: Final = "same"  # no query differs
UNCLEAR: Final = "unclear"  # the data cannot tell
UNKNOWN: Final = "unknown"  # the judge gives no verdict about systems


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a test says about a difference, with the interval that belongs to this test.

    0 lies outside the interval of `difference`, if it has one, exactly where the word is clear.
    Only `findwell.statistics.verdicts` makes verdicts; everything else hands them on unchanged.
    """

    word: Word
    difference: Estimate  # system − baseline; its interval is corrected as p is
    p: float | None = None  # corrected for the number of tests
    correction: str = "none"
    test: str = ""
    # queries on which the system is better, equal or worse; None where queries are not paired
    won: int | None = None
    tied: int | None = None
    lost: int | None = None
    reason: str = ""  # why it is unclear or unknown

    @property
    def is_clear(self) -> bool:
        """Whether the word says which way: better or worse, higher or lower."""
        return self.word in (BETTER, WORSE, HIGHER, LOWER)

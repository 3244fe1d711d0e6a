"""A verdict: is one system better than another, and how sure is that?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

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


def verdict_row(
    verdict: Verdict | None,
    difference: Estimate,
    *,
    system: str,
    measure: str,
    baseline: str | None = None,
    slice: str | None = None,  # noqa: A002 - as it is called everywhere
    requirement: str | None = None,
    outcome: str | None = None,
    value: float | None = None,
    against: float | None = None,
    reason: str = "",
) -> dict[str, Any]:
    """Return the row of a verdict in JSON: the same fields for comparisons, gates and alarms.

    Without a verdict, as for a requirement about a value alone, `difference` is where its level
    and number of queries come from.
    """
    has = verdict is not None
    return {
        "verdict": verdict.word if verdict is not None else None,
        "system": system,
        "baseline": baseline,
        "measure": measure,
        "slice": slice,
        "requirement": requirement,
        "outcome": outcome,
        "value": value,
        "against": against,
        "difference": difference.value if has else None,
        "low": difference.low if has else None,
        "high": difference.high if has else None,
        "level": difference.level,
        "n": difference.n,
        **{
            name: getattr(verdict, name, None)
            for name in ("p", "correction", "test", "won", "tied", "lost")
        },
        "reason": reason or (verdict.reason if verdict is not None else "") or difference.reason,
    }

"""The kinds of questions, and how many of each are wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from findwell.core.errors import OptionError, choose


class QuestionKind(StrEnum):
    """What a question asks of a retriever."""

    SINGLE_HOP = "single-hop"  # one passage answers it
    PARAPHRASED = "paraphrased"  # the same, in other words than the passage has
    MULTI_HOP = "multi-hop"  # two passages are needed
    UNANSWERABLE = "unanswerable"  # no passage answers it

    @property
    def passages(self) -> int:
        """How many passages it is written about."""
        return 2 if self is QuestionKind.MULTI_HOP else 1

    @property
    def answered(self) -> bool:
        """Whether it has an answer, and gold spans."""
        return self is not QuestionKind.UNANSWERABLE


SHARES = {
    QuestionKind.SINGLE_HOP: 0.4,
    QuestionKind.PARAPHRASED: 0.3,
    QuestionKind.MULTI_HOP: 0.2,
    QuestionKind.UNANSWERABLE: 0.1,
}


def settle_shares(given: Mapping[str, float] | None) -> dict[QuestionKind, float]:
    """Return the share of each kind; kinds that are not named divide the rest as usual.

    >>> {str(kind): round(share, 3) for kind, share in settle_shares({"multi-hop": 0.5}).items()}
    {'single-hop': 0.25, 'paraphrased': 0.188, 'multi-hop': 0.5, 'unanswerable': 0.062}
    """
    named = {
        QuestionKind(choose("kind of question", kind, [*QuestionKind])): share
        for kind, share in (given or {}).items()
    }
    for kind, share in named.items():
        if not 0 <= share <= 1:
            raise OptionError(f"the share of {kind} is {share!r}", fix="give a number from 0 to 1")
    total = math.fsum(named.values())
    others = {kind: share for kind, share in SHARES.items() if kind not in named}
    if total > 1 + 1e-9 or (not others and total < 1 - 1e-9):
        raise OptionError(f"the shares add up to {total:g}", fix="they are parts of 1")
    rest = max(1 - total, 0.0) / math.fsum(others.values()) if others else 0.0
    return {kind: named.get(kind, others.get(kind, 0.0) * rest) for kind in QuestionKind}


def wanted_counts(number: int, shares: Mapping[QuestionKind, float]) -> dict[QuestionKind, int]:
    """Divide a number of questions by shares; what is left over goes to the largest remainders.

    >>> [*wanted_counts(5, SHARES).values()], [*wanted_counts(200, SHARES).values()]
    ([2, 2, 1, 0], [80, 60, 40, 20])
    """
    exact = {kind: number * share for kind, share in shares.items()}
    counts = {kind: math.floor(value + 1e-9) for kind, value in exact.items()}
    left = number - sum(counts.values())
    for kind in sorted(exact, key=lambda kind: counts[kind] - exact[kind])[:left]:
        counts[kind] += 1
    return counts

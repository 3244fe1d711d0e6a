"""Several judges on the same labels, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import OptionError
from findwell.core.forks import refuse_after_fork
from findwell.judges.cards.card import JudgeCard, measure_judge
from findwell.judges.cards.labels import load_labels
from findwell.judges.find import find_judge
from findwell.statistics.agreement import KappaDifference, kappa_difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from findwell.core.progress import Report

IN_JSON = ("value", "low", "high", "p_value", "n", "units", "reason")  # of a difference


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """The cards of several judges, and how far κ of each is from that of the first.

    The differences are measured on the pairs about which both gave a verdict.
    """

    cards: tuple[JudgeCard, ...]
    differences: tuple[KappaDifference, ...]  # of all judges but the first

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, as the JSON output prints it."""
        first, *others = (card.judge for card in self.cards)
        return {
            "judges": [card.as_dict() for card in self.cards],
            "differences": [
                {"judge": judge, "from": first, "statistic": "kappa"}
                | {name: getattr(found, name) for name in IN_JSON}
                for judge, found in zip(others, self.differences, strict=True)
            ],
        }


def compare_judges(
    labels: object,
    judges: Iterable[object],
    *,
    aspect: str = "relevance",
    corpus: object = None,
    questions: object = None,
    slices: Iterable[str] | str = (),
    rel: int = 1,
    level: float = 0.95,
    probe_bias: bool = False,
    progress: Report | None = None,
) -> JudgeComparison:
    """Let several judges label what people have labelled, and say which agrees best.

    The arguments are those of `findwell.judge_card`, but that `judges` are several, the first of
    which the others are compared with. Pairs about the same question are not independent: whole
    questions are exchanged between two judges to tell a difference from chance.

    >>> labels = [
    ...     {"question": "Where is Rome?", "chunk": "Rome is in Italy.", "label": 1},
    ...     {"question": "Where is Rome?", "chunk": "Paris is in France.", "label": 0},
    ...     {"question": "Who was Bach?", "chunk": "Bach was a composer.", "label": 1},
    ... ]
    >>> def generous(sample):
    ...     return {"relevance": [1] * len(sample.chunks)}
    >>> found = compare_judges(labels, ["local:text", generous])
    >>> [card["kappa"].value for card in found.cards], found.differences[0].value
    ([1.0, 0.0], -1.0)
    """
    refuse_after_fork()
    given = load_labels(labels, corpus=corpus, questions=questions)
    asked = [find_judge(each) for each in judges]
    names = [each.name for each in asked]
    if len(asked) < 2 or len(set(names)) < len(names):
        raise OptionError(
            f"the judges are {', '.join(names) or 'none'}", fix="name two judges or more, each once"
        )
    cards: list[JudgeCard] = []
    values: list[Sequence[int | None]] = []
    for judge in asked:
        card, said = measure_judge(
            given,
            judge,
            aspect=aspect,
            slices=slices,
            rel=rel,
            level=level,
            probe_bias=probe_bias,
            progress=progress,
        )
        cards.append(card)
        values.append(said)
    right = np.array(given.labels) >= rel
    differences = []
    for others in values[1:]:
        both = [
            at
            for at, (one, other) in enumerate(zip(others, values[0], strict=True))
            if one is not None and other is not None
        ]
        differences.append(
            kappa_difference(
                [(others[at] or 0) > 0 for at in both],
                [(values[0][at] or 0) > 0 for at in both],
                right[both],
                clusters=[given.queries[at] for at in both],
                level=level,
            )
        )
    return JudgeComparison(tuple(cards), tuple(differences))

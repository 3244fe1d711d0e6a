"""A threshold of the local judge that fits your own labels.

With labels of many questions the threshold with the highest κ is chosen, provided that it is also
better on questions it was not chosen on. With few labels that would be chance: chosen on public
labels of five to twenty questions, such a threshold agreed less with the other labels than the
built-in one. What few labels do tell is how often the answer is yes: `match_rate` moves the
threshold to where the judge says yes as often, the less far the fewer the labels are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import InputError, OptionError
from karat.statistics.agreement import kappa_of

if TYPE_CHECKING:
    from karat.core.data import Bools, Floats
    from karat.judges.cards.labels import LabelledPairs
    from karat.judges.local import LocalJudge

FOLDS = 10
STEPS = np.round(np.arange(0.02, 0.99, 0.01), 2)
FEW = 10  # questions
PRIOR = 20  # questions that the built-in threshold is worth


@dataclass(frozen=True, slots=True)
class Recalibration:
    """A new threshold, and what it is worth on questions it was not chosen on."""

    judge: str  # the spec of the judge with the new threshold
    aspect: str
    threshold: float
    kappa: float | None  # cross-validated
    before: float  # the threshold as it was
    kappa_before: float | None
    pairs: int
    questions: int


def choose_threshold(
    judge: object, labels: LabelledPairs, aspect: str, rel: int, *, seed: int = 0
) -> Recalibration:
    """Choose the threshold with the highest κ on labels; the old one stays if that is no better.

    What it is worth is measured by cross-validation: the questions are dealt into ten parts, and
    each part is judged with the threshold that the others chose.
    """
    from karat.judges.local import LocalJudge  # noqa: PLC0415 - others have no threshold

    if not isinstance(judge, LocalJudge):
        raise OptionError(
            "only the judges local and local:text have a threshold to choose",
            fix="leave out --recalibrate (recalibrate=)",
        )
    yes = np.array(labels.labels) >= rel
    if yes.all() or not yes.any():
        raise InputError("all labels are the same", where=labels.name, fix="label both kinds")
    groups, fold = np.unique(np.array(labels.queries, dtype=object), return_inverse=True)
    if len(groups) < FEW:
        raise InputError(
            f"labels of {len(groups)} questions", where=labels.name, fix=f"label {FEW} or more"
        )
    old = judge.threshold(aspect)
    scores = judge.scores(list(zip(labels.questions, labels.chunks, strict=True)), aspect)
    part = np.random.default_rng(seed).permutation(len(groups)) % FOLDS
    predicted = np.zeros(len(yes), dtype=bool)
    for number in range(FOLDS):
        out = part[fold] == number
        predicted[out] = scores[out] >= _best(scores[~out], yes[~out], old)
    chosen = _best(scores, yes, old)
    worth, before = _kappa(predicted, yes), _kappa(scores >= old, yes)
    if (worth or 0.0) <= (before or 0.0):  # what it gained, it gained by chance
        chosen, worth = old, before
    return Recalibration(
        judge=judge.at(aspect, chosen).name,
        aspect=aspect,
        threshold=chosen,
        kappa=worth,
        before=old,
        kappa_before=before,
        pairs=len(yes),
        questions=len(groups),
    )


def match_rate(judge: LocalJudge, labels: LabelledPairs, aspect: str, rel: int = 1) -> LocalJudge:
    """Return the judge with a threshold nearer to where it says yes as often as people do.

    Labels of n questions move it n / (n + 20) of the way, in log odds.
    """
    from karat.judges.local.calibration import logistic, logit  # noqa: PLC0415

    yes = np.array(labels.labels) >= rel
    questions = len(set(labels.queries))
    scores = judge.scores(list(zip(labels.questions, labels.chunks, strict=True)), aspect)
    old, people = judge.threshold(aspect), float(yes.mean())
    own = float((scores >= old).mean())
    # halfway between the last yes and the first no
    inner = np.concatenate([[1.0], np.sort(scores)[::-1], [0.0]])
    middle = float(inner[yes.sum()] + inner[yes.sum() + 1]) / 2
    wanted = min(max(middle, float(STEPS[0])), float(STEPS[-1]))
    way = questions / (questions + PRIOR)
    chosen = round(logistic(logit(old) + way * (logit(wanted) - logit(old))), 4)
    said = {"labels": labels.name, "pairs": len(yes), "questions": questions, "yes": people}
    return judge.at(aspect, chosen, {**said, "judge_before": own, "aspect": aspect})


def _best(scores: Floats, yes: Bools, old: float) -> float:
    """Return the threshold with the highest κ: the old one if it has, else the middle of equals."""
    worth = [_kappa(scores >= step, yes) or 0.0 for step in (old, *STEPS.tolist())]
    if worth[0] >= max(worth):
        return old
    equals = [
        step for step, value in zip(STEPS.tolist(), worth[1:], strict=True) if value == max(worth)
    ]
    return float(equals[len(equals) // 2])


def _kappa(predicted: Bools, yes: Bools) -> float | None:
    counts = np.bincount(predicted * 2 + yes * 1, minlength=4).astype(np.float64)
    value, _ = kappa_of(counts.reshape(2, 2), 1 - np.eye(2))
    return None if np.isnan(value) else value

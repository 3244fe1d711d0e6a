"""A threshold of the local judge that fits your own labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import InputError, OptionError
from karat.statistics.agreement import kappa_of

if TYPE_CHECKING:
    from karat.core.data import Bools, Floats
    from karat.judges.cards.labels import LabelledPairs

FOLDS = 10
STEPS = np.round(np.arange(0.02, 0.99, 0.01), 2)
FEW = 10  # questions


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
    """Choose the threshold with the highest κ on labels; the old one stays if none is better.

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
    return Recalibration(
        judge=judge.at(aspect, chosen).name,
        aspect=aspect,
        threshold=chosen,
        kappa=_kappa(predicted, yes),
        before=old,
        kappa_before=_kappa(scores >= old, yes),
        pairs=len(yes),
        questions=len(groups),
    )


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

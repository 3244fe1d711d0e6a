"""A threshold of the local judge that fits your own labels.

Labels of a few questions say how often the answer is yes. `match_rate` moves the threshold to where
the judge says yes as often, the less far the fewer the labels are. What that is worth is measured
on questions that did not move it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.statistics.agreement import kappa_of

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.judges.cards.labels import LabelledPairs
    from findwell.judges.local import LocalJudge

FOLDS = 10
LOWEST, HIGHEST = 0.02, 0.98  # thresholds
PRIOR = 20  # questions that the built-in threshold is worth


def match_rate(judge: LocalJudge, labels: LabelledPairs, aspect: str, rel: int = 1) -> LocalJudge:
    """Return the judge with a threshold nearer to where it says yes as often as people do.

    Labels of n questions move it n / (n + 20) of the way, in log odds. `about()["recalibrated"]`
    has the κ of the judge before, and the κ after it on questions that did not move the threshold:
    the questions are dealt into up to ten parts, and the labels of the other parts move the
    threshold for each.
    """
    yes = np.array(labels.labels) >= rel
    scores = judge.scores(list(zip(labels.questions, labels.chunks, strict=True)), aspect)
    groups, group = np.unique(np.array(labels.queries, dtype=object), return_inverse=True)
    old = judge.threshold(aspect)
    predicted = np.zeros(len(yes), dtype=bool)
    folds = min(FOLDS, len(groups))
    part = np.random.default_rng(0).permutation(len(groups)) % folds
    for number in range(folds if folds > 1 else 0):
        out = part[group] == number
        predicted[out] = scores[out] >= _matched(
            scores[~out], yes[~out], old, int((part != number).sum())
        )
    said = {
        "labels": labels.name,
        "pairs": len(yes),
        "questions": len(groups),
        "yes": float(yes.mean()),
        "judge_before": float((scores >= old).mean()),
        "kappa_before": _kappa(scores >= old, yes),
        "kappa_held_out": _kappa(predicted, yes) if folds > 1 else None,
        "aspect": aspect,
    }
    chosen = _matched(scores, yes, old, len(groups))
    return judge.at(aspect, chosen, said, frozenset(labels.questions))


def _matched(scores: Floats, yes: Bools, old: float, questions: int) -> float:
    """Return the threshold between the old one and that with as many yes as people say."""
    from findwell.judges.local.calibration import logistic, logit  # noqa: PLC0415

    # halfway between the last yes and the first no
    inner = np.concatenate([[1.0], np.sort(scores)[::-1], [0.0]])
    middle = float(inner[yes.sum()] + inner[yes.sum() + 1]) / 2
    wanted = min(max(middle, LOWEST), HIGHEST)
    way = questions / (questions + PRIOR)
    return round(logistic(logit(old) + way * (logit(wanted) - logit(old))), 4)


def _kappa(predicted: Bools, yes: Bools) -> float | None:
    counts = np.bincount(predicted * 2 + yes * 1, minlength=4).astype(np.float64)
    value, _ = kappa_of(counts.reshape(2, 2), 1 - np.eye(2))
    return None if np.isnan(value) else value

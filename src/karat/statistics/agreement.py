"""Do two sets of labels agree: of two people, of a judge and people, of two judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from karat.errors import InputError, OptionError, choose
from karat.statistics.limits import Estimates, of_values
from karat.statistics.quantity import check_share

if TYPE_CHECKING:
    from karat.core.data import Floats

WEIGHTS = ("none", "linear", "quadratic")

NO_LABEL = "no item has a label in both"
ONE_SIDED = "one of the two gives every item the same label, so the spread is unknown"
ONE_LABEL = "all labels of both are the same one, so chance agrees as well"

Label: TypeAlias = str | float | bool
Labels: TypeAlias = Sequence[Label | None]


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often the first said the label of a row when the second said that of a column."""

    labels: tuple[Label, ...]
    counts: tuple[tuple[int, ...], ...]
    n: int  # items with a label in both
    left_out: int


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement beyond chance: 1 is perfect, 0 as by chance; None with a reason if undefined."""

    value: float | None
    low: float | None
    high: float | None
    level: float
    weights: str
    agreement: float | None  # the share of items with the same label
    confusion: Confusion
    reason: str = ""


def confusion(first: Labels, second: Labels) -> Confusion:
    """Count pairs of labels; position i of both is the same item, None or NaN is no label.

    >>> confusion([0, 1, 1, None], [0, 1, 0, 1])
    Confusion(labels=(0, 1), counts=((1, 0), (1, 1)), n=3, left_out=1)
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} labels cannot be paired with {len(second)}")
    pairs = [
        (one, other)
        for one, other in zip(first, second, strict=True)
        if not (_missing(one) or _missing(other))
    ]
    counted = Counter(pairs)
    labels = _ordered({label for pair in counted for label in pair if label is not None})
    counts = tuple(tuple(counted[one, other] for other in labels) for one in labels)
    return Confusion(labels, counts, len(pairs), len(first) - len(pairs))


def kappa(first: Labels, second: Labels, *, weights: str = "none", level: float = 0.95) -> Kappa:
    """Return Cohen's κ between two lists of labels, with its interval.

    `linear` and `quadratic` weigh a disagreement by how far apart the labels are: by their values
    if they are numbers, by their places in the order otherwise.

    >>> round(kappa(["yes", "yes", "no", "no"], ["yes", "no", "no", "no"]).value, 2)
    0.5
    """
    choose("weights", weights, WEIGHTS)
    check_share("level", level)
    table = confusion(first, second)
    counts = np.array(table.counts, dtype=np.float64)
    agreed = float(np.trace(counts)) / table.n if table.n else None
    if len(table.labels) < 2:
        reason = ONE_LABEL if table.n else NO_LABEL
        return Kappa(None, None, None, level, weights, agreed, table, reason)
    value, influence = kappa_of(counts, _separate_calls(table.labels, weights))
    if 1 in {(counts.sum(axis=0) > 0).sum(), (counts.sum(axis=1) > 0).sum()}:
        return Kappa(value, None, None, level, weights, agreed, table, ONE_SIDED)
    items = np.repeat(influence.ravel(), counts.ravel().astype(np.int64))
    low, high = kappa_limits(value, items, level)
    return Kappa(value, low, high, level, weights, agreed, table)


def kappa_of(counts: Floats, apart: Floats) -> tuple[float, Floats]:
    """Return κ of a table of counts, and how far an item of each cell moves it, times all items.

    `apart` says how grave it is to give the label of a row for that of a column. NaN if chance
    agrees as well.

    >>> kappa_of(np.array([[2.0, 0.0], [1.0, 1.0]]), 1 - np.eye(2))[0]
    0.5
    """
    shares = counts / counts.sum()
    first, second = shares.sum(axis=1), shares.sum(axis=0)
    met, expected = float((apart * shares).sum()), float(first @ apart @ second)
    if expected <= 0:
        return float("nan"), np.zeros_like(counts)
    moved = (apart @ second)[:, np.newaxis] + first @ apart - 2 * expected
    return 1 - met / expected, (met * moved / expected - (apart - met)) / expected


def kappa_limits(
    value: float, influence: Floats, level: float, size: float = 1.0
) -> tuple[float, float]:
    """Return the limits of κ, from what each unit does to it; `size` is that of `Estimates`."""
    made = Estimates(np.array([value]), influence[np.newaxis], len(influence), size)
    low, high = of_values(made, np.array([-1.0]), np.array([1.0]), level)
    return max(-1.0, float(low[0])), min(1.0, float(high[0]))


def _missing(label: Label | None) -> bool:
    return label is None or label != label  # noqa: PLR0124  NaN differs from itself


def _ordered(labels: set[Label]) -> tuple[Label, ...]:
    if all(isinstance(label, str) for label in labels) or _numeric(labels):
        return tuple(sorted(labels))
    raise OptionError(
        "some labels are words and some are numbers", fix="read both files with the same type"
    )


def _numeric(labels: set[Label] | tuple[Label, ...]) -> bool:
    return all(isinstance(label, Real) for label in labels)


def _separate_calls(labels: tuple[Label, ...], weights: str) -> Floats:
    places = np.arange(len(labels), dtype=np.float64)
    if weights == "none":
        return 1 - np.eye(len(labels))
    if _numeric(labels):
        places = np.array(labels, dtype=np.float64)
    distance = np.abs(places[:, np.newaxis] - places)
    return np.asarray(distance if weights == "linear" else distance**2)

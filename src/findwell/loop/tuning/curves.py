"""What a tuning looks like along one axis: the share of a run, or the constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.loop.tuning.grid import shares_of

if TYPE_CHECKING:
    from findwell.loop.tuning.conclusion import Tuning
    from findwell.loop.tuning.engines import Setting


@dataclass(frozen=True, slots=True, eq=False)
class TuningPoint:
    """One value of the axis, with the best setting that has it."""

    at: float
    setting: int
    value: float
    low: float | None
    high: float | None
    in_plateau: bool


@dataclass(frozen=True, slots=True, eq=False)
class TuningCurve:
    """The values along an axis; with more than two runs the others are at their best."""

    axis: str  # what it is: share of bm25, k
    points: tuple[TuningPoint, ...]
    chosen: float
    current: float | None
    even: bool = True  # the axis is a share from 0 to 1; else the points stand side by side

    @property
    def plateau(self) -> tuple[float, float]:
        """The ends of the plateau."""
        inside = [point.at for point in self.points if point.in_plateau]
        return min(inside), max(inside)

    @property
    def gaps(self) -> bool:
        """Whether something inside the plateau is shown to be worse."""
        low, high = self.plateau
        return any(low < point.at < high and not point.in_plateau for point in self.points)


def curves_of(tuning: Tuning) -> tuple[TuningCurve, ...]:
    """Return the curves of a tuning: one of two runs or of a constant, else one for each run.

    A space with more than one knob has none.
    """
    if tuning.grid.axis == "space":
        return ()
    if tuning.grid.axis == "k":
        return (_curve(tuning, "k", 0, even=False),)
    runs = range(1 if len(tuning.runs) == 2 else len(tuning.runs))
    return tuple(_curve(tuning, f"share of {tuning.runs[run]}", run, even=True) for run in runs)


def _curve(tuning: Tuning, axis: str, run: int, *, even: bool) -> TuningCurve:
    choice, settings = tuning.choice, tuning.grid.settings
    sign = 1.0 if tuning.measure.higher_is_better else -1.0
    values = np.array([sign * (each.value or 0.0) for each in choice.curve])
    places = np.round([_place(each, run, even=even) for each in settings], 9)
    inside = set(choice.plateau)
    points = []
    for at in np.unique(places).tolist():
        here = np.flatnonzero(places == at)
        number = int(here[values[here].argmax()])
        value = choice.curve[number]
        good = any(place in inside for place in here.tolist())
        points.append(TuningPoint(at, number, value.value or 0.0, value.low, value.high, good))
    return TuningCurve(
        axis,
        tuple(points),
        float(places[choice.chosen]),
        None if tuning.current is None else round(_place(tuning.current, run, even=even), 9),
        even,
    )


def _place(setting: Setting, run: int, *, even: bool) -> float:
    return float(shares_of(setting.weights)[run]) if even else float(setting.k or 0.0)

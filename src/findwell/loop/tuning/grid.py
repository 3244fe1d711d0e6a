"""The settings that a search tries, and where they lie: weights by their shares, constants by size.

Weights are the shares that each run has in the sum, in even steps, each combination once; as whole
numbers of steps, so that none is lost to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import OptionError
from findwell.loop.tuning.engines import Setting

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.loop.tuning.engines import Engine

# how fine the shares are, by number of runs: 101, 231, 286 and 126 combinations
STEPS = {2: 0.01, 3: 0.05, 4: 0.1, 5: 0.2}
CONSTANTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200)
FACTOR = math.log(1.2)  # constants that differ by this factor are as near as shares 0.05 apart
NEAREST = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class SettingGrid:
    """Settings to choose from."""

    settings: tuple[Setting, ...]
    places: Floats  # settings × numbers: the shares of all runs but the last, or the constant
    axis: str  # what differs: weights or k; space: more than one knob

    def label(self, number: int) -> str:
        """Return what tells a setting from the others."""
        setting = self.settings[number]
        if self.axis not in ("weights", "k"):
            return str(setting)
        return str(
            Setting(weights=setting.weights) if self.axis == "weights" else Setting(k=setting.k)
        )

    def find(self, setting: Setting) -> int | None:
        """Return the number of a setting, or of the one with the same shares; None: not in it."""
        if setting in self.settings:
            return self.settings.index(setting)
        rest = replace(setting, weights=())
        for number, each in enumerate(self.settings):
            if replace(each, weights=()) == rest and np.allclose(
                shares_of(each.weights), shares_of(setting.weights)
            ):
                return number
        return None


def weight_shares(runs: int, step: float) -> Iterator[tuple[float, ...]]:
    """Yield every way to share 1 among runs in steps, the first run's share ascending.

    >>> list(weight_shares(2, 0.5))
    [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    >>> len(list(weight_shares(3, 0.1))), len(list(weight_shares(4, 0.1)))
    (66, 286)
    """
    steps = round(1 / step) if step > 0 else 0
    if steps < 1 or abs(steps * step - 1) > 1e-6:
        raise OptionError(f"steps of {step:g} do not add up to 1", fix="for example 0.01 or 0.1")

    def spread(left: int, parts: int) -> Iterator[tuple[int, ...]]:
        if parts == 1:
            yield (left,)
            return
        for first in range(left + 1):
            yield from ((first, *others) for others in spread(left - first, parts - 1))

    for counts in spread(steps, runs):
        yield tuple(count / steps for count in counts)


def shares_of(weights: Sequence[float]) -> Floats:
    """Return what part of the sum each weight is."""
    given = np.array(weights, dtype=np.float64)
    return given / given.sum() if len(given) else given


def weights_of(engine: Engine, shares: Sequence[float]) -> tuple[float, ...]:
    """Return the weights with these shares, as large together as those of the engine are.

    An engine may multiply by weights or divide by them, so that their size may count.
    """
    if engine.weights is None:
        raise no_knob(engine, "weights")
    scale = math.fsum(engine.weights.default(len(shares)))
    if scale > engine.weights.highest:
        scale = 1.0
    return tuple(share * scale for share in shares)


def grid_of(engine: Engine, runs: int, step: float | None, fixed: Mapping[str, Any]) -> SettingGrid:
    """Return what is tried with an engine: its weights, or without weights its constant.

    `fixed` are knobs with a value that is not searched for.
    """
    if engine.weights is not None and fixed.get("weights") is None:
        return _weights_grid(engine, runs, STEPS[runs] if step is None else step, fixed)
    if step is not None:
        raise OptionError(f"a step has no effect: {engine.name} has no weights to search")
    if engine.k is None or fixed.get("k") is not None:
        raise no_knob(engine, "weights and no constant")
    low, high = engine.k_range
    wanted = sorted({*CONSTANTS, engine.k})
    constants = [k for k in wanted if low <= k <= high]
    settings = tuple(engine.setting(runs, **{**fixed, "k": k}) for k in constants)
    places = np.log(np.maximum(constants, 0.5)) * (NEAREST / FACTOR)
    return SettingGrid(settings, places[:, np.newaxis], "k")


def _weights_grid(engine: Engine, runs: int, step: float, fixed: Mapping[str, Any]) -> SettingGrid:
    tried, places = [], []
    positive = engine.weights is not None and engine.weights.positive
    for shares in weight_shares(runs, step):
        if positive and 0 in shares:
            continue  # the engine takes no weight of 0
        weights = weights_of(engine, shares)
        tried.append(engine.setting(runs, **{**fixed, "weights": weights}))
        places.append(shares[:-1])
    return SettingGrid(tuple(tried), np.array(places), "weights")


def setting_of(engine: Engine, runs: int, given: object, fixed: Mapping[str, Any]) -> Setting:
    """Return a setting that was named in short.

    A number is the share of the first of two runs, or the constant of an engine without weights;
    several numbers are the weights; a dict has the names of knobs.
    """
    if isinstance(given, Setting):
        return given
    if isinstance(given, Mapping):
        return engine.setting(runs, **{**fixed, **given})
    numbers = _numbers(given)
    if engine.weights is None:
        if len(numbers) != 1:
            raise no_knob(engine, "weights")
        return engine.setting(runs, **{**fixed, "k": numbers[0]})
    if len(numbers) == 1:
        if runs != 2 or not 0 <= numbers[0] <= 1:
            raise OptionError(
                f"{numbers[0]:g} is no current setting of {runs} runs",
                fix="give the share of the first of two runs, from 0 to 1, or one weight per run: "
                + ",".join(["0.5", "0.3", "0.2", "0", "0"][:runs]),
            )
        numbers = list(weights_of(engine, (numbers[0], 1 - numbers[0])))
    return engine.setting(runs, **{**fixed, "weights": numbers})


def _numbers(given: object) -> list[float]:
    parts = given.split(",") if isinstance(given, str) else given
    try:
        return [float(part) for part in parts] if isinstance(parts, Sequence) else [float(parts)]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise OptionError(
            f"{given!r} is no setting", fix="give a share such as 0.5, or weights such as 0.7,0.3"
        ) from None


def no_knob(engine: Engine, what: str) -> OptionError:
    """Return the error for an engine without something to tune."""
    return OptionError(
        f"{engine.name} has no {what} to tune",
        fix="fuse with it as it is (findwell fuse), or tune another engine (findwell fuse --list)",
    )

"""What a choice gains over something else, on queries that did not take part in the choice."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import OptionError
from findwell.statistics.intervals import as_units, cluster_codes, estimate
from findwell.statistics.paired import paired
from findwell.statistics.power import PlannedComparison, spread
from findwell.statistics.significance import PERMUTATIONS, adjust, error_rates, rejects
from findwell.statistics.values import UNIT, Quantity, from_scale, to_scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.data import Floats
    from findwell.statistics.values import Bounds

CURRENT = "current"  # what the setting in use is called, among the runs
BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"
PESSIMISTIC = "worse held out only, which the choice without these queries makes likely"
TIE = 1e-12  # difference that rounding makes
POWER = 0.8  # the chance to see a difference that the number of queries is for


@dataclass(frozen=True, slots=True)
class Gain:
    """The chosen setting against something else: a run alone, or the current setting."""

    over: str
    difference: float | None  # held out − the other
    low: float | None  # of the interval that is corrected as p_adjusted is
    high: float | None
    p: float | None
    p_adjusted: float | None  # corrected for the number of gains (Holm)
    verdict: str  # better, worse, unclear
    value: float | None  # of the other on the same queries
    wins: int
    ties: int
    losses: int
    n: int
    needed: int | None = None  # queries, or clusters, that would show such a difference
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        return asdict(self)


def worth_keeping(gains: Sequence[Gain], *, higher_is_better: bool) -> Gain | None:
    """Return the best of what the choice does not surpass on held-out queries, or None.

    Of a run and the current setting that are equally good, it is the run, which is simpler.
    """
    sign = 1.0 if higher_is_better else -1.0
    unbeaten = [
        gain
        for gain in gains
        if gain.difference is not None and gain.value is not None and sign * gain.difference <= TIE
    ]
    return max(
        unbeaten, key=lambda gain: (sign * (gain.value or 0.0), gain.over != CURRENT), default=None
    )


def gains_over(
    held_out: Floats,
    others: Mapping[str, Floats],
    *,
    in_sample: Floats | None = None,
    clusters: Sequence[object] | None = None,
    level: float = 0.95,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    statistic: str = "mean",
    bounds: Bounds = UNIT,
    higher_is_better: bool = True,
) -> tuple[Gain, ...]:
    """Compare held-out values with those of others on the same queries.

    The test is paired; p-values are corrected for the number of others (Holm), and the corrected
    one decides, also whether 0 is in the interval. Where it is unclear, `needed` is how many
    queries (with clusters: how many clusters) would show a difference as large as the one seen,
    four times in five.

    `in_sample` are the values of the chosen setting itself. Settings chosen without a query tend to
    be bad for it, as what was left out is missing from the choice; so `worse` is only what the same
    test calls worse in sample, too.

    >>> held = np.linspace(0.5, 0.9, 20)
    >>> (gain,) = gains_over(held, {"before": held - 0.1})
    >>> round(gain.difference, 3), gain.verdict
    (0.1, 'better')
    """
    how = {
        "level": level,
        "permutations": permutations,
        "seed": seed,
        "statistic": statistic,
        "bounds": bounds,
    }

    def against(mine: Floats, name: str, rate: float = 1 - level) -> Gain:
        at = {**how, "level": 1 - rate}
        return _gain(name, mine, others[name], clusters, how=at, higher_is_better=higher_is_better)

    def decide(gain: Gain, p: float | None) -> str:
        return _verdict(gain.difference, p, level, higher_is_better=higher_is_better)

    found = [against(held_out, name) for name in others]
    p_values = [gain.p for gain in found]
    corrected, rates = adjust(p_values, "holm"), error_rates(p_values, "holm", 1 - level)
    if len(found) > 1:
        widened = [
            against(held_out, gain.over, rate) for gain, rate in zip(found, rates, strict=True)
        ]
        found = [
            replace(gain, low=wide.low, high=wide.high)
            for gain, wide in zip(found, widened, strict=True)
        ]
    decided = []
    for gain, p in zip(found, corrected, strict=True):
        verdict = decide(gain, p)
        made = replace(gain, p_adjusted=p, verdict=verdict)
        if verdict == WORSE and in_sample is not None:
            chosen = against(in_sample, gain.over)
            if decide(chosen, chosen.p) != WORSE:
                made = replace(made, verdict=UNCLEAR, reason=PESSIMISTIC)
        decided.append(made if verdict == UNCLEAR else replace(made, needed=None))
    return tuple(decided)


def _verdict(
    difference: float | None, p: float | None, level: float, *, higher_is_better: bool
) -> str:
    """Put in a word what is shown."""
    if not rejects(p, 1 - level) or not difference:
        return UNCLEAR
    return BETTER if (difference > 0) == higher_is_better else WORSE


def _gain(
    name: str,
    held_out: Floats,
    values: Floats,
    clusters: Sequence[object] | None,
    *,
    how: Mapping[str, Any],
    higher_is_better: bool,
) -> Gain:
    # random signs go by place: sorted, names and order of the queries do not matter
    order = np.lexsort((values, held_out - values))
    held_out, values = held_out[order], values[order]
    labels = None if clusters is None else [clusters[place] for place in order]
    (found,) = paired(values, held_out, clusters=labels, **how)
    both = ~np.isnan(held_out - values)
    scaled = to_scale(np.column_stack([values, held_out])[both], [how["statistic"]] * 2)
    codes = None if labels is None else cluster_codes(labels, len(both))[both]
    made = estimate(as_units(scaled[:, [1]] - scaled[:, [0]], codes))
    needed = _needed(made.values + made.influence[0] if made.n else np.zeros(0), how["level"])
    won, lost = (found.wins, found.losses) if higher_is_better else (found.losses, found.wins)
    difference = found.difference
    return Gain(
        over=name,
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        p=found.test.p,
        p_adjusted=found.test.p,
        verdict=UNCLEAR,
        value=from_scale(float(scaled[:, 0].mean()), how["statistic"], made.n) if made.n else None,
        wins=won,
        ties=found.ties,
        losses=lost,
        n=found.n,
        needed=None if needed.value is None else int(needed.value),
        reason="; ".join(dict.fromkeys(filter(None, (found.test.reason, needed.reason)))),
    )


def _needed(differences: Floats, level: float) -> Quantity:
    """Return how many units show a mean difference as large as that of these."""
    varied = spread(differences)
    if varied.sd is None:
        return Quantity(None, varied.reason)
    planned = PlannedComparison(varied.sd, varied.changed, POWER, 1 - level)
    try:
        return planned.queries_needed(abs(float(differences.mean())))
    except OptionError as error:
        return Quantity(None, str(error).splitlines()[0])

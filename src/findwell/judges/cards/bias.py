"""Whether a judge goes by more than the texts: the place of a chunk, and chance.

The chunks of each question are shown in another order, in which every chunk has another place: a
verdict that flips depends on the order. Each chunk is compared with itself, so that it does not
matter which chunks stood first. The same questions are also asked again in the old order, without
the cache: what flips then, flips by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError
from findwell.statistics.intervals import interval
from findwell.statistics.values import UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Bools, Floats
    from findwell.core.progress import Report
    from findwell.judges.cards.samples import LabelledSamples
    from findwell.judges.client.budget import Forecast
    from findwell.judges.verdicts import Judgement, JudgeProtocol

ALONE = "every chunk is asked about alone, so it has no place"
NO_ORDER = "no question has two chunks or more"
NONE_BOTH = "no verdict was given both times"


@dataclass(frozen=True, slots=True)
class ProbeFigure:
    """One figure about bias; None with a reason where it is not known."""

    statistic: str
    value: float | None
    low: float | None
    high: float | None
    n: int  # verdicts that were compared
    flips: int | None = None  # of these, those that were yes once and no once
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BiasProbe:
    """What was found: figures, verdicts that failed, and the calls it took.

    `flips when shuffled` and `flips when asked again` are shares of verdicts. `yes more often when
    first` is the share of yes about chunks that stand first, less that about the same chunks when
    they stand elsewhere; `when earlier` compares the earlier with the later place.
    """

    figures: tuple[ProbeFigure, ...]
    failed: int
    calls: int

    def __getitem__(self, statistic: str) -> ProbeFigure:
        """Return a figure by name."""
        return {each.statistic: each for each in self.figures}[statistic]


def find_bias(
    judge: JudgeProtocol,
    asked: LabelledSamples,
    said: Sequence[Judgement | None],
    questions: Sequence[str],
    *,
    level: float = 0.95,
    progress: Report | None = None,
) -> BiasProbe:
    """Ask about the same pairs in another order and once more; `said` are the first verdicts."""
    ordered, again = probing_judges(judge)
    before = calls_of(judge)
    first = _yes(said)
    moved = None if _no_order(judge, asked) else asked.shuffled()
    shuffled = None if moved is None else _yes(moved.ask(ordered, progress))
    repeated = _yes(asked.ask(again, progress))
    compare = _Comparison(list(questions), level)
    figures = []
    if moved is None or shuffled is None:
        why = _no_order(judge, asked)
        figures += [ProbeFigure(name, None, None, None, 0, None, why) for name in ORDERED]
    else:
        several = asked.sizes > 1
        figures.append(compare.flips(ORDERED[0], first, shuffled, several))
        one, other = asked.place == 0, moved.place == 0
        figures.append(compare.more(ORDERED[1], first, shuffled, one, other))
        earlier = asked.place < moved.place
        figures.append(compare.more(ORDERED[2], first, shuffled, earlier, several & ~earlier))
    everywhere = np.ones(len(first), dtype=bool)
    figures.append(compare.flips("flips when asked again", first, repeated, everywhere))
    failed = int(np.isnan(repeated).sum())
    failed += 0 if shuffled is None else int(np.isnan(shuffled).sum())
    return BiasProbe(tuple(figures), failed, calls_of(judge) - before)


ORDERED = ("flips when shuffled", "yes more often when first", "yes more often when earlier")


def probing_judges(judge: JudgeProtocol) -> tuple[JudgeProtocol, JudgeProtocol]:
    """Return who is asked in another order, and who is asked again, without a cache.

    Both spend from the budget of the judge, and do not stop at failures: they come after a card.
    """
    from findwell.judges.panel import PanelJudge  # noqa: PLC0415
    from findwell.judges.replay import ReplayJudge  # noqa: PLC0415

    if isinstance(judge, PanelJudge | ReplayJudge):
        raise OptionError(
            f"the judge {judge.name} cannot be probed for bias",
            fix="probe each judge of a panel alone"
            if isinstance(judge, PanelJudge)
            else "probe the judge that was recorded",
        )
    anew = getattr(judge, "anew", None)  # of judges that ask a model
    return (judge, judge) if anew is None else (anew(cached=True), anew(cached=False))


def forecast_probe(judge: JudgeProtocol, asked: LabelledSamples) -> list[Forecast]:
    """Estimate what probing takes, without asking; nothing for judges that ask nobody."""
    ordered, again = probing_judges(judge)
    aspects = frozenset({asked.aspect})
    plans = (
        [(again, asked)]
        if _no_order(judge, asked)
        else [
            (ordered, asked.shuffled()),
            (again, asked),
        ]
    )
    return [
        each.dry_run(list(about.samples), aspects)
        for each, about in plans
        if hasattr(each, "dry_run")
    ]


def calls_of(judge: JudgeProtocol) -> int:
    """Return how many calls a judge has sent so far."""
    budget = getattr(judge, "budget", None)
    return 0 if budget is None else int(budget.calls)


def _no_order(judge: JudgeProtocol, asked: LabelledSamples) -> str:
    """Say why the order of chunks cannot matter; empty if it may."""
    if getattr(judge, "way", "") == "single":
        return ALONE
    return "" if (asked.sizes > 1).any() else NO_ORDER


def _yes(said: Sequence[Judgement | None]) -> Floats:
    """Return 1 for each yes, 0 for each no, NaN where there is no verdict."""
    values = [None if each is None else each.value for each in said]
    return np.array([np.nan if value is None else float(value > 0) for value in values])


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares two sets of verdicts about the same pairs; the questions are the units."""

    questions: list[str]
    level: float

    def flips(self, name: str, one: Floats, other: Floats, which: Bools) -> ProbeFigure:
        """Return the share of verdicts that differ."""
        return self._figure(name, np.abs(one - other), which, UNIT, counted=True)

    def more(
        self, name: str, one: Floats, other: Floats, first: Bools, second: Bools
    ) -> ProbeFigure:
        """Return how much more often yes is said about pairs in the place that is looked at.

        `first` are the pairs that had it the first time, `second` those that had it later.
        """
        gain = np.where(first, one - other, other - one)
        return self._figure(name, gain, first ^ second, (-1.0, 1.0))

    def _figure(
        self,
        name: str,
        values: Floats,
        which: Bools,
        bounds: tuple[float, float],
        *,
        counted: bool = False,
    ) -> ProbeFigure:
        used = np.flatnonzero(which & ~np.isnan(values))
        if not len(used):
            return ProbeFigure(name, None, None, None, 0, None, NONE_BOTH)
        names = [self.questions[at] for at in used.tolist()]
        found = interval(values[used], level=self.level, bounds=bounds, clusters=names)
        flips = int(values[used].sum()) if counted else None
        return ProbeFigure(name, found.value, found.low, found.high, found.n, flips, found.reason)

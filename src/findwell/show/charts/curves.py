"""Measures at many cutoffs or budgets: what more context brings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from findwell.core.errors import FindwellError
from findwell.core.measure import Budget
from findwell.evaluation.results.cutoffs import at_cutoff, cutoff_of
from findwell.measures import parse_measure
from findwell.show.charts import Chart, left_out, register_chart, svg
from findwell.show.grid import Grid
from findwell.show.tables import interval, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.measures import Measure
    from findwell.show.charts.svg import Scale
    from findwell.show.panel import Panel

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
CURVES = 6  # charts at most
BUDGETS = 8  # points of a curve over costs at most
BANDS = 3  # systems, more than which have no bands: they would cover each other
WIDTH, HIGH, LEFT, RIGHT = 340.0, 180.0, 44.0, 16.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure at many cutoffs: by system one value per cutoff, with its interval."""

    measure: str
    cutoffs: list[int]
    values: dict[str, list[float | None]]
    intervals: dict[str, list[tuple[float, float] | None]]
    over: str = "k"  # what the cutoffs count: ranks, or tokens, characters or hops

    @property
    def name(self) -> str:
        """What is drawn: the measure, and over what."""
        return self.measure if self.over == "k" else f"{self.measure} over {self.over}"


@register_chart("curve", section="cutoffs")
def cutoff_charts(panel: Panel) -> Iterator[Chart | str]:
    """Draw measures at many cutoffs."""
    drawn, dropped = curves(panel)
    yield from (curve_chart(each).with_about(panel.caption(level=panel.level)) for each in drawn)
    yield from left_out("measures", dropped)


def curves(panel: Panel) -> tuple[list[Curve], list[str]]:
    """Return the curves of recall, precision and whatever else was measured at a cutoff.

    What was measured within a budget has a curve over budgets, too. The names of what there is no
    room for come second.
    """
    over_costs = [
        (replace(each, k=None), each.k.unit)
        for each in panel.measures
        if isinstance(each.k, Budget)
    ]
    wanted = list(dict.fromkeys([*over_costs, *((base, "k") for base in _bases(panel))]))
    found = []
    for base, over in wanted:
        cutoffs = _cutoffs(panel) if over == "k" else _budgets(panel, base, over)
        values, intervals = {}, {}
        try:
            cut = [at_cutoff(base, cutoff_of(k, over)) for k in cutoffs]
            for system in panel.systems[: svg.SYSTEMS]:
                rows = system.result.score(cut).rows
                values[system.name] = [row["value"] for row in rows]
                intervals[system.name] = [
                    None if row["low"] is None else (row["low"], row["high"]) for row in rows
                ]
        except FindwellError:  # the dialect or the relation does not know it
            continue
        if any(value is not None for each in values.values() for value in each):
            found.append(Curve(str(base), cutoffs, values, intervals, over))
    return found[:CURVES], [each.name for each in found[CURVES:]]


def _budgets(panel: Panel, base: Measure, unit: str) -> list[int]:
    """Return round budgets up to what the most expensive list costs."""
    most = 1.0
    for system in panel.systems:
        relation = system.result.relation(system.run, base)
        if unit in (relation.chunk_facts or ()):
            most = max(most, float(relation.spent(unit).max(initial=1)))
    steps = (digit * 10**power for power in range(12) for digit in (1, 2, 5))
    found = list(takewhile(lambda step: step < 2 * most, steps))
    return found[-BUDGETS:]


def _bases(panel: Panel) -> list[Measure]:
    """Return measures without a cutoff: recall and precision first, then what was measured."""
    first = panel.measures[0].relation
    usual = [replace(parse_measure(name), relation=first) for name in ("recall", "P")]
    measured = [replace(each, k=None) for each in panel.measures if each.at == "k" and each.k]
    return list(dict.fromkeys([*usual, *measured]))


def _cutoffs(panel: Panel) -> list[int]:
    """Return cutoffs down to the longest list."""
    deepest = 1
    for system in panel.systems:
        relation = system.result.relation(system.run, panel.measures[0])
        depth = relation.depth.max(initial=1)
        if relation.chunk_offset is not None:
            depth = (relation.chunk_offset[1:] - relation.chunk_offset[:-1]).max(initial=1)
        deepest = max(deepest, int(depth))
    inside = [k for k in CUTOFFS if k <= deepest]
    more = next((k for k in CUTOFFS if k > deepest), None)
    return inside if more is None or deepest in inside else [*inside, deepest]


def curve_chart(found: Curve) -> Chart:
    """Draw a measure at many cutoffs, on a logarithmic axis."""
    names = list(found.values)
    key, tall = svg.legend(names, LEFT, 38, WIDTH - LEFT - RIGHT)
    top = 40 + tall
    first, last = (math.log(found.cutoffs[at]) for at in (0, -1))
    scale = svg.linear((first, last or 1.0), (LEFT, WIDTH - RIGHT))
    places = [scale(math.log(k)) for k in found.cutoffs]
    high = max([1.0, *(v for each in found.values.values() for v in each if v is not None)])
    up = svg.linear((0, high), (top + HIGH, top))
    by_rank = found.over == "k"
    heading = f"{found.measure} at K" if by_rank else found.name
    counted = "K, documents looked at" if by_rank else f"{found.over}, at most, in a list"
    unit = "" if by_rank else found.over
    parts = [svg.label(heading, LEFT, 16, most=36, class_="strong"), key]
    parts += _frame(up, high)
    end = 0.0
    for k, x in zip(found.cutoffs, places, strict=True):
        half = svg.LETTER * len(str(k)) / 2
        if x - half > end:  # labels do not touch
            parts.append(svg.centered(str(k), x, top + HIGH + 16))
            end = x + half + 3
    if len(names) <= BANDS:
        parts += (_band(places, found.intervals[name], at, up) for at, name in enumerate(names))
    for system, (name, values) in enumerate(found.values.items()):
        known = [(at, value) for at, value in enumerate(values) if value is not None]
        points = [(places[at], up(value)) for at, value in known]
        parts.append(svg.line(points, f"plot {svg.color(system)}"))
        for at, value in known:
            hint = f"{name}: {found.measure}@{found.cutoffs[at]}{unit} = {number(value, 3)}"
            if (reach := found.intervals[name][at]) is not None:
                hint += f" ({interval(*reach)})"
            dot = svg.marker(system, places[at], up(value), 3.5)
            parts.append(svg.element("g", dot + svg.title(hint)))
    parts.append(svg.centered(counted, (LEFT + WIDTH - RIGHT) / 2, top + HIGH + 34))
    kind = "cutoffs" if by_rank else f"budgets of {found.over}"
    says = f"{found.measure} at {kind} {found.cutoffs[0]} to {found.cutoffs[-1]}: " + "; ".join(
        f"{name} from {number(values[0], 3)} to {number(values[-1], 3)}"
        for name, values in found.values.items()
    )
    rows = [[name, *(number(each, 3) for each in row)] for name, row in found.values.items()]
    table = Grid("", ["system", *(f"@{k}" for k in found.cutoffs)], rows)
    drawn = svg.drawing(WIDTH, top + HIGH + 42, says, parts)
    return Chart(f"curve {found.name}", heading, says, drawn, table)


def _band(
    places: list[float], intervals: list[tuple[float, float] | None], system: int, up: Scale
) -> str:
    """Draw the intervals of a curve as a band."""
    known = [(x, each) for x, each in zip(places, intervals, strict=True) if each is not None]
    edge = [(x, up(low)) for x, (low, _) in known]
    edge += reversed([(x, up(high)) for x, (_, high) in known])
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
    return svg.element("polygon", points=path, class_=f"band {svg.color(system)}") if path else ""


def _frame(up: Scale, high: float) -> Iterator[str]:
    for tick in svg.ticks(0, high):
        y = up(tick)
        yield svg.element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
        yield svg.label(f"{tick:g}", LEFT - 8, y + 4, class_="muted", text_anchor="end")

"""Measures at many cutoffs or budgets, and precision against recall: what more context brings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from findwell.core.errors import FindwellError
from findwell.core.measure import Budget
from findwell.evaluation.results.cutoffs import curve
from findwell.measures import parse_measure
from findwell.show.charts import Chart, left_out, register_chart, svg
from findwell.show.grid import Grid
from findwell.show.tables import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.measures import Measure
    from findwell.show.charts.svg import Scale
    from findwell.show.panel import Panel

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
CURVES = 6  # charts at most
BUDGETS = 8  # points of a curve over costs at most
LABELLED = 3  # systems whose cutoffs are written next to the points
WIDTH, HIGH, LEFT, RIGHT = 340.0, 180.0, 44.0, 16.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A measure at many cutoffs: by system one value per cutoff."""

    measure: str
    cutoffs: list[int]
    values: dict[str, list[float | None]]
    over: str = "k"  # what the cutoffs count: ranks, or tokens, characters or hops

    @property
    def name(self) -> str:
        """What is drawn: the measure, and over what."""
        return self.measure if self.over == "k" else f"{self.measure} over {self.over}"


@register_chart("curve", section="cutoffs")
def cutoff_charts(panel: Panel) -> Iterator[Chart | str]:
    """Draw measures at many cutoffs, and precision against recall."""
    drawn, dropped = curves(panel)
    charts = [curve_chart(each) for each in drawn]
    by_name = {each.measure.partition("/")[0]: each for each in drawn if each.over == "k"}
    if "recall" in by_name and "P" in by_name:
        charts.append(tradeoff(by_name["recall"], by_name["P"]))
    yield from (chart.with_about(panel.caption()) for chart in charts)
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
        try:
            by_system = {
                system.name: curve(system.result.with_options(level=None), [base], cutoffs, over)[
                    "value"
                ]
                for system in panel.systems[: svg.SYSTEMS]
            }
        except FindwellError:  # the dialect or the relation does not know it
            continue
        values = {name: column.to_list() for name, column in by_system.items()}
        found.append(Curve(str(base), cutoffs, values, over))
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
    """Draw a measure at many cutoffs."""
    names = list(found.values)
    key, tall = svg.legend(names, LEFT, 38, WIDTH - LEFT - RIGHT)
    top = 40 + tall
    across = svg.linear((0, max(len(found.cutoffs) - 1, 1)), (LEFT, WIDTH - RIGHT))
    high = max([1.0, *(v for each in found.values.values() for v in each if v is not None)])
    up = svg.linear((0, high), (top + HIGH, top))
    by_rank = found.over == "k"
    heading = f"{found.measure} at K" if by_rank else found.name
    counted = "K, documents looked at" if by_rank else f"{found.over}, at most, in a list"
    unit = "" if by_rank else found.over
    parts = [svg.label(heading, LEFT, 16, most=36, class_="strong"), key]
    parts += _frame(up, high)
    for at, k in enumerate(found.cutoffs):
        parts.append(svg.centered(str(k), across(at), top + HIGH + 16))
    for system, (name, values) in enumerate(found.values.items()):
        known = [(at, value) for at, value in enumerate(values) if value is not None]
        parts.append(svg.line([(across(at), up(value)) for at, value in known], _plot(system)))
        for at, value in known:
            hint = svg.title(f"{name}: {found.measure}@{found.cutoffs[at]}{unit} = {number(value)}")
            parts.append(svg.element("g", svg.marker(system, across(at), up(value)) + hint))
    parts.append(svg.centered(counted, (LEFT + WIDTH - RIGHT) / 2, top + HIGH + 34))
    kind = "cutoffs" if by_rank else f"budgets of {found.over}"
    says = f"{found.measure} at {kind} {found.cutoffs[0]} to {found.cutoffs[-1]}: " + "; ".join(
        f"{name} from {number(values[0])} to {number(values[-1])}"
        for name, values in found.values.items()
    )
    rows = [[name, *map(number, values)] for name, values in found.values.items()]
    table = Grid("", ["system", *(f"@{k}" for k in found.cutoffs)], rows)
    drawn = svg.drawing(WIDTH, top + HIGH + 42, says, parts)
    return Chart(f"curve {found.name}", heading, says, drawn, table)


def tradeoff(recall: Curve, precision: Curve) -> Chart:
    """Draw precision against recall, one point per cutoff."""
    names = list(recall.values)
    key, tall = svg.legend(names, LEFT, 38, WIDTH - LEFT - RIGHT)
    top = 54 + tall  # with room for the name of the axis
    across, up = svg.linear((0, 1), (LEFT, WIDTH - RIGHT)), svg.linear((0, 1), (top + HIGH, top))
    parts = [
        svg.label("precision against recall", LEFT, 16, class_="strong"),
        key,
        *_frame(up, 1.0),
    ]
    parts += (svg.centered(f"{tick:g}", across(tick), top + HIGH + 16) for tick in svg.ticks(0, 1))
    rows = []
    for system, name in enumerate(names):
        both = zip(recall.cutoffs, recall.values[name], precision.values[name], strict=True)
        points = [(k, r, p) for k, r, p in both if r is not None and p is not None]
        parts.append(svg.line([(across(r), up(p)) for _, r, p in points], _plot(system)))
        for k, r, p in points:
            hint = svg.title(f"{name}, K = {k}: recall {number(r)}, precision {number(p)}")
            parts.append(svg.element("g", svg.marker(system, across(r), up(p), 3.5) + hint))
            rows.append([name, str(k), number(r), number(p)])
        for k, r, p in (points[0], points[-1]) if points and len(names) <= LABELLED else ():
            side = {"text_anchor": "end", "x": across(r) - 7} if r > 0.85 else {"x": across(r) + 7}
            parts.append(svg.label(f"K={k}", y=up(p) - 7, class_="muted small", **side))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(svg.centered("recall", middle, top + HIGH + 34))
    parts.append(svg.label("precision", 8, top - 8, class_="muted small"))
    says = "Precision against recall at growing cutoffs: " + "; ".join(
        f"{name} from recall {number(recall.values[name][0])} and precision "
        f"{number(precision.values[name][0])} at K = {recall.cutoffs[0]} to "
        f"{number(recall.values[name][-1])} and {number(precision.values[name][-1])} "
        f"at K = {recall.cutoffs[-1]}"
        for name in names
    )
    table = Grid("", ["system", "K", "recall", "precision"], rows)
    drawn = svg.drawing(WIDTH, top + HIGH + 42, says, parts)
    return Chart("tradeoff", "Precision against recall", says, drawn, table)


def _frame(up: Scale, high: float) -> Iterator[str]:
    for tick in svg.ticks(0, high):
        y = up(tick)
        yield svg.element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
        yield svg.label(f"{tick:g}", LEFT - 8, y + 4, class_="muted", text_anchor="end")


def _plot(system: int) -> str:
    return f"plot {svg.color(system)}"

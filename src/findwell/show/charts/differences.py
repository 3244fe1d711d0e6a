"""Numbers with their intervals, a row for each: systems (`ladder`), differences, and slices.

An image has them as one drawing; a page as a table that sorts, each row with its own drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from findwell.core.spelling import counted
from findwell.core.verdict import BETTER, WORSE
from findwell.evaluation.comparison.compare import Comparison
from findwell.show.charts import Chart, ChartRow, caption, register_chart, svg
from findwell.show.comparison import by_measure, corrected, header_of_p, numbers, slice_text
from findwell.show.grid import Grid
from findwell.show.panel import SLICED
from findwell.show.tables import best_first, chance, decimals, interval, number

if TYPE_CHECKING:
    from findwell.evaluation.comparison.compare import Row
    from findwell.show.panel import Panel

ROW, TOP, NAMES, PLOT = 26.0, 54.0, 12.0, 360.0
LABEL_LENGTH, SYSTEM_LENGTH = 40, 26  # letters of a label, and of a system in it
HEAD_LENGTH = 18  # letters of a system above a column
PAINTS = {BETTER: "good", WORSE: "bad"}  # the rest is grey, and hollow
UNCLEAR_PAINT = "none hollow"
SHOWN_SLICES = 12  # before others are folded away, unless more are better or worse
FEW_QUERIES = 10  # below which a slice is folded away, unless it is better or worse
HEADINGS = {WORSE: "Where it got worse", BETTER: "Where it got better"}
OTHERWISE = "Where it is unclear"


@dataclass(frozen=True, slots=True)
class Point:
    """A row: a number and its interval, how it is painted, and the texts next to it."""

    name: str
    places: tuple[float | None, float | None, float | None]  # the value, and the ends around it
    cells: tuple[str, ...]
    paint: str = UNCLEAR_PAINT
    heading: str = ""  # in an image, above the first row that has it
    link: str = ""  # to its queries
    marked: bool = False
    few: bool = False

    def draw(self, y: float, across: Callable[[float], float | str]) -> Iterator[str]:
        """Draw the point, filled unless it is unclear, and its interval."""
        value, low, high = self.places
        if value is None:
            return
        line = self.paint.partition(" ")[0]
        if low is not None and high is not None:
            ends = {"x1": across(low), "x2": across(high)}
            yield svg.element("line", y1=y, y2=y, class_=f"plot {line}", **ends)
        hint = svg.title(" · ".join([self.name, *self.cells]))
        shape = {"x": across(value), "y": y - 5, "width": 10, "height": 10}
        yield svg.element("rect", hint, class_=self.paint, transform="translate(-5)", **shape)


def chart_of_points(
    named: tuple[str, str],
    heading: str,
    says: str,
    header: Sequence[str],
    points: Sequence[Point],
    *,
    drawn: Sequence[Point] | None = None,
    zero: bool = True,
    line: float | None = None,
    notes: Sequence[str] = (),
    group: str = "",
) -> Chart:
    """Make the chart of some rows; `named` is its name and its title.

    An image shows those that are `drawn`. The axis has 0 on it if the numbers are differences
    (`zero`); `line` is another number that is marked on it.
    """
    shown = points if drawn is None else drawn
    marks = [each for each in (0.0 if zero else None, line) if each is not None]
    reach = {few: reach_of((p for p in points if p.few == few), zero=zero) for few in (False, True)}
    rows = []
    for each in points:
        across = svg.across_strip(reach[each.few])
        ends = [{"x1": across(at), "x2": across(at)} for at in marks]
        lines = [svg.element("line", y1=0, y2=svg.STRIP_HEIGHT, class_="axis", **x) for x in ends]
        strip = svg.strip([*lines, *each.draw(svg.STRIP_HEIGHT / 2, across)])
        rows.append(ChartRow(strip, (each.link,), marked=each.marked, few=each.few))
    return Chart(
        *named,
        says,
        _draw(heading, says, shown, header, marks=marks, notes=notes),
        Grid("", list(header), [[each.name, *each.cells] for each in points]),
        tuple(rows),
        axes=tuple(svg.strip_axis(reach[few], "+" if zero else "") for few in (False, True)),
        group=group,
    )


def reach_of(points: Iterable[Point], *, zero: bool = True) -> tuple[float, float]:
    """Return the reach of all intervals with some air, and with 0 in it for differences."""
    ends = [0.0] if zero else []
    ends += (at for each in points for at in each.places if at is not None)
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    air = (high - low or 1.0) * 0.06
    return low - air, high + air


def _draw(
    heading: str,
    says: str,
    points: Sequence[Point],
    header: Sequence[str],
    *,
    marks: Sequence[float],
    notes: Sequence[str],
) -> str:
    """Draw an image: a row per point, its name, the point with its interval, and the texts."""
    reach = reach_of(points, zero=0.0 in marks)
    widest = max((len(point.name) for point in points), default=0)
    start = NAMES + svg.LETTER * min(widest, LABEL_LENGTH) + 20
    across = svg.linear(reach, (start, start + PLOT))
    places, x = [], start + PLOT + 20
    for at, name in enumerate(header[1:]):
        places.append(x)
        texts = [name, *(point.cells[at] for point in points)]
        x += svg.LETTER * min(max(map(len, texts)), LABEL_LENGTH) + 18
    inside: list[str] = []
    y, above = TOP, ""
    for point in points:
        if point.heading and point.heading != above:
            above = point.heading
            inside.append(svg.label(above, NAMES, y + 16, class_="strong"))
            y += ROW
        if point.marked:
            shape = {"x": 4, "y": y, "width": x - 4, "height": ROW}
            inside.append(svg.element("rect", class_="near", **shape))
        inside.append(svg.label(point.name, NAMES, y + 16, most=LABEL_LENGTH))
        inside += point.draw(y + 12, across)
        for place, text in zip(places, point.cells, strict=True):
            paint = "strong" if text in PAINTS else None
            inside.append(svg.label(text, place, y + 16, most=LABEL_LENGTH, class_=paint))
        y += ROW
    parts = [svg.label(heading, NAMES, 18, most=80, class_="strong")]
    parts += (
        svg.label(name, place, TOP - 14, most=LABEL_LENGTH, class_="muted small")
        for name, place in zip(header[1:], places, strict=True)
    )
    signs = "+" if 0.0 in marks else ""
    for tick in svg.ticks(*reach):
        here = across(tick)
        parts.append(svg.element("line", x1=here, x2=here, y1=TOP - 6, y2=y, class_="grid"))
        written = f"{tick:{signs}g}".replace("-", "−") if tick else "0"
        parts.append(svg.centered(written, here, y + 16))
    lines = [*inside]
    lines += (
        svg.element("line", x1=across(at), x2=across(at), y1=TOP - 6, y2=y, class_="axis")
        for at in marks
    )
    lines += (
        svg.label(note, NAMES, y + 34 + 16 * at, class_="muted small")
        for at, note in enumerate(notes)
    )
    return svg.drawing(x, y + 28 + 16 * len(notes), says, [*parts, *lines])


# ---- measures and systems


@register_chart("forest", section="comparison")
def forests(shown: Panel | Comparison) -> Iterator[Chart]:
    """Draw the measures of one or two systems; of more, the systems by each measure."""
    if isinstance(shown, Comparison):
        yield forest(shown)
    elif shown.comparison is None:
        yield measure_values(shown).with_about(shown.caption(level=shown.level))
    elif len(shown.names) == 2:
        yield forest(shown.comparison)
    else:
        for at, measure in enumerate(shown.measures):
            yield ladder(shown, at).with_about(shown.caption(measure, level=shown.level))


def forest(comparison: Comparison) -> Chart:
    """Draw each difference to the baseline as a point; what is better or worse is filled."""
    names = comparison.systems[1 : svg.SYSTEMS + 1]
    to_baseline = [  # without the other pairs
        row
        for row in comparison.rows
        if row["baseline"] == comparison.baseline and row["system"] in names
    ]
    rows = by_measure(comparison, to_baseline)
    written = dict(zip(names, svg.distinct(names, SYSTEM_LENGTH), strict=True))
    several = len(names) > 1
    named = [
        f"{row['measure']} · {written[row['system']]}" if several else row["measure"]
        for row in rows
    ]
    says = f"Differences to {comparison.baseline}: " + "; ".join(
        f"{row['system']} {row['measure']} {numbers(row)[2]}, {row['verdict']}" for row in rows
    )
    heading = f"{'each system' if several else names[0]} − {comparison.baseline}"
    points = [
        _difference(row, name, _counts(comparison, row))
        for row, name in zip(rows, named, strict=True)
    ]
    header = ["measure", *_header(comparison, "system" if several else names[0], rows)]
    ways = all(measure.higher_is_better for measure in comparison.measures)
    notes = ["left of 0: worse · right of 0: better"] if ways else []
    named_as = ("forest", f"{heading}: all measures")
    counts = [row["n"] for row in comparison.rows]
    about = caption(counts, comparison.queries, comparison.level, comparison.data_sets)
    made = chart_of_points(named_as, heading, says, header, points, notes=notes)
    return made.with_about(about)


def _header(comparison: Comparison, system: str, rows: Sequence[Row]) -> list[str]:
    counts = ["n before", "n after"] if comparison.unpaired else ["won/tied/lost", "n"]
    level = f"{100 * comparison.level:g}% interval"
    sides = svg.distinct([comparison.baseline, system], HEAD_LENGTH)
    return [*sides, "difference", level, header_of_p(rows), *counts, "verdict"]


def _counts(comparison: Comparison, row: Row) -> list[str]:
    if comparison.unpaired:
        return [str(row["baseline_n"]), str(row["n"])]
    return [f"{row['wins']}/{row['ties']}/{row['losses']}", f"{row['n']:,}"]


def _difference(row: Row, name: str, counts: Sequence[str], **more: object) -> Point:
    """Return the point of a difference: values, difference, interval, p, counts, verdict."""
    return Point(
        name,
        (row["difference"], row["low_adjusted"], row["high_adjusted"]),
        (*numbers(row), corrected(row), chance(row["p_adjusted"]), *counts, row["verdict"]),
        PAINTS.get(row["verdict"], UNCLEAR_PAINT),
        **more,  # type: ignore[arg-type]
    )


def measure_values(panel: Panel) -> Chart:
    """Draw the measures of one system with their intervals, those between 0 and 1."""
    (system,) = panel.names
    points = []
    for measure in panel.measures:
        row = panel.summary[system, str(measure)]
        drawn = row if measure.unit_interval else dict.fromkeys(("value", "low", "high"))
        cells = [*_value(row), *(f"{row[key]:,}" for key in ("n", "undefined", "failed"))]
        ends = drawn["value"], drawn["low"], drawn["high"]
        points.append(Point(str(measure), ends, tuple(cells), "c0"))
    header = ["measure", "value", _level(panel), "queries", "no value", "failed"]
    says = f"{system}: " + "; ".join(f"{each.name} {each.cells[0]}" for each in points)
    return chart_of_points(("values", "All measures"), system, says, header, points, zero=False)


def _value(row: Row) -> tuple[str, str]:
    ends = row["low"], row["high"]
    return number(row["value"], decimals(*ends)), interval(*ends)


def _level(panel: Panel) -> str:
    return "interval" if panel.level is None else f"{panel.level:.0%} interval"


def ladder(panel: Panel, at: int) -> Chart:
    """Draw the systems by one measure, the best first, and which are as good as the best.

    A system is marked if the test of all pairs cannot distinguish it from the best.
    """
    measure, found = panel.measures[at], panel.comparison
    assert found is not None  # noqa: S101 - several systems are compared
    near, name = panel.near_best(at), str(measure)
    rows = {system: panel.summary[system, name] for system in panel.names}
    order = best_first(higher=measure.higher_is_better)
    points = []
    for system, row in sorted(rows.items(), key=lambda each: order(each[1]["value"])):
        if system == found.baseline:
            said = ["", "baseline"]
        else:
            compared = found[system, name]
            said = [numbers(compared)[2], compared["verdict"]]
        points.append(
            Point(
                system,
                (row["value"], row["low"], row["high"]),
                (*_value(row), *said),
                "c0" if system in near or not near else UNCLEAR_PAINT,
                marked=system in near,
            )
        )
    against = f"against {svg.short(found.baseline, HEAD_LENGTH)}"
    header = ["system", name, _level(panel), against, "verdict"]
    says = f"{name}, the best first: " + "; ".join(
        f"{each.name} {each.cells[0]}"
        + (", not distinguishable from the best" if each.marked else "")
        for each in points
    )
    notes = [NEAR_BEST] if near else []
    title = "ladder" if not at else f"ladder {name}"
    return chart_of_points(
        (title, name), name, says, header, points, zero=False, notes=notes, group="ladder"
    )


NEAR_BEST = "Shaded: not distinguishable from the best on these queries."


# ---- slices


@register_chart("where", section="where")
def by_slice(shown: Panel | Comparison) -> Iterator[Chart | str]:
    """Draw the differences in slices: for a report by the first measure, else by each measure."""
    if not isinstance(shown, Comparison) and shown.comparison is None:
        yield from (each.with_about(shown.caption(level=shown.level)) for each in _slices(shown))
        return
    found = shown if isinstance(shown, Comparison) else shown.sliced
    about = caption([found.queries], found.queries, found.level, shown.data_sets)
    names = [str(measure) for measure in found.measures]
    to_baseline = found.slices.filter(baseline=found.baseline)
    for (system, measure), rows in to_baseline.partition_by(
        "system", "measure", as_dict=True, maintain_order=True
    ).items():
        chart = where_better(found, rows.to_dicts())
        suffix = "" if measure == names[0] else f" {measure}"
        yield chart.with_about(about, name=f"where {system}{suffix}")
    if isinstance(shown, Comparison) or not found.slices.height:
        return
    if (others := len(found.systems) - 1) > SLICED:
        yield f"The best {SLICED} of {others} systems are shown by slice."


def where_better(comparison: Comparison, rows: Sequence[Row]) -> Chart:
    """Draw the difference of a system to the baseline in slices: all losses, then gains.

    The rows are those of one system and one measure. Every slice that is worse after the
    correction for the number of slices is shown; others are folded away where there are many.
    """
    system, measure = rows[0]["system"], rows[0]["measure"]
    (higher,) = (each.higher_is_better for each in comparison.measures if str(each) == measure)
    order = _losses_first(rows, higher_is_better=higher)
    shown = _most_telling(order)
    points = [
        _difference(
            row,
            f"{row['column']}: {slice_text(row['slice'])}",
            _counts(comparison, row)[-1:],
            heading=HEADINGS.get(row["verdict"], OTHERWISE),
            link=svg.queries_link(row["column"], slice_text(row["slice"])),
            few=number not in shown,
        )
        for number, row in enumerate(order)
    ]
    drawn = [each for each in points if not each.few] or points[:SHOWN_SLICES]
    heading = f"{measure}: {system} − {comparison.baseline}"
    says = f"{heading}, by slice: " + "; ".join(
        f"{each.name} {each.cells[2]}, {each.cells[-1]}" for each in drawn
    )
    left = len(points) - len(drawn)
    notes = [f"{counted(left, 'more slice', 'more slices')} in the table"] if left else []
    header = ["slice", *_header(comparison, system, rows)]
    del header[-3]  # won/tied/lost
    named = (f"where {system}", f"{system} − {comparison.baseline}")
    return chart_of_points(
        named, heading, says, header, points, drawn=drawn, notes=notes, group="where"
    )


def _losses_first(rows: Sequence[Row], *, higher_is_better: bool) -> list[Row]:
    """Return what is worse, the largest loss first; then what is better, then the rest, by gain."""
    place = {WORSE: 0, BETTER: 1}

    def key(row: Row) -> tuple[int, bool, float]:
        gain = (row["difference"] or 0.0) * (1 if higher_is_better else -1)
        group = place.get(row["verdict"], 2)
        return group, row["difference"] is None, gain if group == 0 else -gain

    return sorted(rows, key=key)


def _most_telling(rows: Sequence[Row]) -> set[int]:
    """Return the numbers of the slices to show: all that are clear, then the smallest p."""
    clear = {at for at, row in enumerate(rows) if row["verdict"] in HEADINGS}
    others = [
        at
        for at, row in enumerate(rows)
        if at not in clear and row["difference"] is not None and row["n"] >= FEW_QUERIES
    ]
    others.sort(key=lambda at: (rows[at]["p_adjusted"] or 1.0, -rows[at]["n"]))
    return clear | set(others[: max(SHOWN_SLICES - len(clear), 0)])


def _slices(panel: Panel) -> Iterator[Chart]:
    """Draw the main measure of one system in slices of the queries, the lowest first."""
    (system,), measure = panel.names, panel.measures[panel.lead]
    points = []
    for column in panel.facets:
        table = panel.systems[0].result.score([measure]).by(column)
        for row in table.iter_rows(named=True):
            name = slice_text(row["slice"])
            points.append(
                Point(
                    f"{column}: {name}",
                    (row["value"], row["low"], row["high"]),
                    (*_value(row), f"{row['n']:,}"),
                    "c0",
                    link=svg.queries_link(column, name),
                    few=row["n"] < FEW_QUERIES,
                )
            )
    if not points:
        return
    order = best_first(higher=not measure.higher_is_better)  # the worst first
    points.sort(key=lambda each: order(each.places[0]))
    large = [each for each in points if not each.few] or points
    says = f"{measure} of {system}, by slice: " + "; ".join(
        f"{each.name} {each.cells[0]}" for each in large[:SHOWN_SLICES]
    )
    yield chart_of_points(
        ("slices", f"{measure} by slice"),
        f"{measure} of {system}",
        says,
        ["slice", str(measure), _level(panel), "n"],
        points,
        drawn=large[:SHOWN_SLICES],
        zero=False,
        line=panel.summary[system, str(measure)]["value"],
    )

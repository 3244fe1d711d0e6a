"""Differences to the baseline with their intervals: overall (`forest`), and by slice (`where`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.spelling import counted
from findwell.core.verdict import BETTER, WORSE
from findwell.evaluation.comparison.compare import Comparison
from findwell.show.charts import Chart, ChartRow, caption, register_chart, svg
from findwell.show.comparison import by_measure, corrected, lay_out, numbers
from findwell.show.grid import Grid
from findwell.show.panel import SLICED
from findwell.show.tables import chance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from findwell.evaluation.comparison.compare import Row
    from findwell.show.charts.svg import Scale
    from findwell.show.panel import Panel

ROW, TOP, NAMES, PLOT = 26.0, 54.0, 12.0, 400.0
WIDTHS = {"n": 42.0, "difference": 74.0, "interval": 120.0, "p": 66.0, "p (BH)": 66.0}  # of columns
LABEL_LENGTH, SYSTEM_LENGTH = 40, 26  # letters of a label, and of a system in it
STRIP, STRIP_HEIGHT = 340.0, 20.0  # a row on its own
COLORS = {BETTER: "c0", WORSE: "c1"}  # the rest is grey, and hollow
DRAWN_SLICES = 16  # unless more are worse; the table has all
ENOUGH_QUERIES = 5  # of a slice that is drawn, if there are such
HEADINGS = {WORSE: "Where it got worse", BETTER: "Where it got better"}
OTHERWISE = "Where it is unclear"


@register_chart("forest", section="comparison")
def forests(shown: Panel | Comparison) -> Iterator[Chart]:
    """Draw every difference to the baseline."""
    found = _comparison(shown)
    if found is not None:
        counts = found.comparisons["n"].to_list()
        about = caption(counts, found.queries, found.level, shown.data_sets)
        yield forest(found).with_about(about)


@register_chart("where", section="where")
def by_slice(shown: Panel | Comparison) -> Iterator[Chart | str]:
    """Draw the differences in slices: for a report by the first measure, else by each measure."""
    found = _comparison(shown)
    if found is None:
        return
    about = caption([found.queries], found.queries, found.level, shown.data_sets)
    names = [str(measure) for measure in found.measures]
    if isinstance(shown, Comparison):
        to_baseline = found.slices.filter(baseline=found.baseline)
        rows_by_system = {
            system: to_baseline.filter(system=system).to_dicts() for system in found.systems[1:]
        }
    else:
        rows_by_system = shown.slice_differences
    for rows in rows_by_system.values():
        for measure in names:
            mine = [row for row in rows if row["measure"] == measure]
            if mine:
                chart = where_better(found, mine)
                suffix = "" if measure == names[0] else f" {measure}"
                yield chart.with_about(about, name=chart.name + suffix)
    if any(rows_by_system.values()) and (others := len(found.systems) - 1 - SLICED) > 0:
        yield f"{others} more systems are in the charts below only."


def _comparison(shown: Panel | Comparison) -> Comparison | None:
    return shown if isinstance(shown, Comparison) else shown.comparison


def forest(comparison: Comparison) -> Chart:
    """Draw each difference as a point with its interval; what is better or worse is filled."""
    names = comparison.systems[1 : svg.SYSTEMS + 1]
    every = comparison.comparisons
    to_baseline = (every["baseline"] == comparison.baseline) & every["system"].is_in(names)
    table = every.filter(to_baseline)  # without the other pairs, where all were compared
    rows = by_measure(comparison, table)
    written = dict(zip(names, svg.distinct(names, SYSTEM_LENGTH), strict=True))
    several = len(names) > 1
    named = [
        f"{row['measure']} · {written[row['system']]}" if several else row["measure"]
        for row in rows
    ]
    heading = f"difference to {comparison.baseline}" if several else f"{names[0]} − "
    heading += "" if several else comparison.baseline
    says = f"Differences to {comparison.baseline}: " + "; ".join(
        f"{row['system']} {row['measure']} {numbers(row)[2]}, {row['verdict']}" for row in rows
    )
    ways = all(measure.higher_is_better for measure in comparison.measures)
    drawn = _draw(heading, says, rows, named, ("difference", "interval", "p"), ways=ways)
    reach = reach_of(rows)
    alone = tuple(difference_row(row, name, reach) for row, name in zip(rows, named, strict=True))
    shown = lay_out(comparison, table, "")
    return Chart("forest", f"Against {comparison.baseline}", says, drawn, shown, alone)


def where_better(comparison: Comparison, rows: Sequence[Row]) -> Chart:
    """Draw the difference of a system to the baseline in slices: all losses, then gains.

    The rows are those of one system and one measure. Every slice that is worse after the correction
    for the number of slices is drawn; the others as far as there is room.
    """
    system, measure = rows[0]["system"], rows[0]["measure"]
    (higher,) = (each.higher_is_better for each in comparison.measures if str(each) == measure)
    order = _losses_first(rows, higher_is_better=higher)
    shown = _most_telling(order)
    named = [f"{row['column']}: {row['slice']}" for row in shown]
    heading = f"{measure}: {system} − {comparison.baseline}"
    says = f"{heading}, by slice: " + "; ".join(
        f"{name} {numbers(row)[2]}, {row['verdict']}"
        for row, name in zip(shown, named, strict=True)
    )
    columns = ("n", "difference", "interval", "p (BH)")
    left = len(order) - len(shown)
    more = f"{counted(left, 'more slice', 'more slices')} in the table" if left else ""
    drawn = _draw(heading, says, shown, named, columns, sliced=True, foot=more)
    reach = reach_of(shown)
    alone = tuple(
        difference_row(row, name, reach, svg.queries_link(row["column"], row["slice"]))
        for row, name in zip(shown, named, strict=True)
    )
    cells = [
        [row["column"], row["slice"], *numbers(row)[:2], *_cells(row, columns), row["verdict"]]
        for row in order
    ]
    header = ["column", "slice", "before", "after", *columns, "verdict"]
    title = f"Where is {system} better or worse?"
    return Chart(f"where {system}", title, says, drawn, Grid("", header, cells, left=2), alone)


def _draw(
    heading: str,
    says: str,
    rows: Sequence[Row],
    named: Sequence[str],
    columns: Sequence[str],
    *,
    sliced: bool = False,
    ways: bool = False,
    foot: str = "",
) -> str:
    """Draw a row per difference: its name, the point with its interval, and columns of numbers.

    Slices stand below headings, and lead to their queries.
    """
    start = NAMES + svg.LETTER * min(max(map(len, named), default=0), LABEL_LENGTH) + 20
    reach = reach_of(rows)
    across = svg.linear(reach, (start, start + PLOT))
    places, x = {}, start + PLOT + 20
    for name in columns:
        places[name] = x
        x += WIDTHS[name]
    places["verdict"] = x
    inside: list[str] = []
    y, above = TOP, ""
    for row, name in zip(rows, named, strict=True):
        text = svg.label(name, NAMES, y + 16, most=LABEL_LENGTH)
        if sliced:
            if (group := HEADINGS.get(row["verdict"], OTHERWISE)) != above:
                above = group
                inside.append(svg.label(above, NAMES, y + 16, class_="strong"))
                y += ROW
            text = svg.label(name, NAMES, y + 16, most=LABEL_LENGTH)
            text = svg.link_to_queries(text, row["column"], row["slice"])
        inside += [text, *difference_point(row, y + 12, across)]
        inside += (
            svg.label(cell, places[column], y + 16)
            for column, cell in zip(columns, _cells(row, columns), strict=True)
        )
        inside.append(svg.label(row["verdict"], places["verdict"], y + 16, class_="strong"))
        y += ROW
    parts = [svg.label(heading, NAMES, 18, most=80, class_="strong")]
    parts += (svg.label(name, x, TOP - 14, class_="muted small") for name, x in places.items())
    for tick in svg.ticks(*reach):
        x, kind = across(tick), "axis" if tick == 0 else "grid"
        parts.append(svg.element("line", x1=x, x2=x, y1=TOP - 6, y2=y, class_=kind))
        parts.append(svg.centered(f"{tick:+g}".replace("-", "−") if tick else "0", x, y + 16))
    parts += inside
    if ways:
        middle = max(across(0), start + 50)
        parts.append(svg.centered("← worse · better →", middle, y + 34, "muted small"))
    if foot:
        parts.append(svg.label(foot, NAMES, y + 34, class_="muted small"))
    return svg.drawing(places["verdict"] + 76, y + 44, says, parts, linked=sliced)


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    p = chance(row["p_adjusted"])
    cells = {"n": str(row["n"]), "difference": numbers(row)[2], "interval": corrected(row)}
    return [cells.get(name, p) for name in columns]


def reach_of(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the reach of all intervals, with 0 in it and some air."""
    keys = ("low_adjusted", "high_adjusted", "difference")
    ends = [row[key] for row in rows for key in keys if row[key] is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    air = (high - low or 1.0) * 0.06
    return low - air, high + air


def difference_point(row: dict[str, Any], y: float, across: Scale) -> Iterator[str]:
    """Draw a difference and its interval; one that is better or worse is filled."""
    if row["difference"] is None:
        return
    paint = COLORS.get(row["verdict"], "none")
    x = across(row["difference"])
    if row["low_adjusted"] is not None:
        ends = {"x1": across(row["low_adjusted"]), "x2": across(row["high_adjusted"])}
        yield svg.element("line", y1=y, y2=y, class_=f"plot {paint}", **ends)
    hint = svg.title(f"{row['system']} {row['measure']}: {numbers(row)[2]} ({corrected(row)})")
    shape = {"x": x - 5, "y": y - 5, "width": 10, "height": 10}
    yield svg.element("rect", hint, class_=paint if paint != "none" else "none hollow", **shape)


def difference_row(
    row: dict[str, Any], name: str, reach: tuple[float, float], link: str = ""
) -> ChartRow:
    """Return a difference on its own, with its verdict; `reach` is that of all rows together."""
    across = svg.linear(reach, (6, STRIP - 6))
    zero = svg.element("line", x1=across(0), x2=across(0), y1=0, y2=STRIP_HEIGHT, class_="axis")
    point = "".join(difference_point(row, STRIP_HEIGHT / 2, across))
    size = f"{STRIP:.0f} {STRIP_HEIGHT:.0f}"
    strip = f'<svg class="chart" viewBox="0 0 {size}" aria-hidden="true">{zero}{point}</svg>'
    p = chance(row["p_adjusted"])
    said = f"{numbers(row)[2]} ({corrected(row)}) · p {p} · {counted(row['n'])}"
    return ChartRow(name, link, row["verdict"], said, strip)


def _losses_first(rows: Sequence[Row], *, higher_is_better: bool) -> list[Row]:
    """Return what is worse, the largest loss first; then what is better, then the rest, by gain."""
    place = {WORSE: 0, BETTER: 1}

    def key(row: Row) -> tuple[int, bool, float]:
        gain = (row["difference"] or 0.0) * (1 if higher_is_better else -1)
        group = place.get(row["verdict"], 2)
        return group, row["difference"] is None, gain if group == 0 else -gain

    return sorted(rows, key=key)


def _most_telling(order: list[Row]) -> list[Row]:
    """Return the slices that are drawn, in the same order: all losses, then the smallest p."""
    known = [row for row in order if row["difference"] is not None]
    losses = [row for row in known if row["verdict"] == WORSE]
    others = [row for row in known if row["verdict"] != WORSE]
    if any(row["n"] >= ENOUGH_QUERIES for row in known):
        others = [row for row in others if row["n"] >= ENOUGH_QUERIES]

    def telling(at: int) -> tuple[bool, float, int]:
        row = others[at]
        p = 1.0 if row["p_adjusted"] is None else row["p_adjusted"]
        return row["verdict"] != BETTER, p, -row["n"]

    kept = sorted(range(len(others)), key=telling)[: max(DRAWN_SLICES - len(losses), 0)]
    return [*losses, *(others[at] for at in sorted(kept))]

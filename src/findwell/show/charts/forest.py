"""Differences to the baseline with their intervals: which of them are real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.spelling import counted
from findwell.show.charts import Chart, ChartRow
from findwell.show.charts.svg import (
    LETTER,
    SYSTEMS,
    centered,
    distinct,
    drawing,
    element,
    label,
    linear,
    ticks,
    title,
)
from findwell.show.comparison import by_measure, corrected, lay_out, numbers
from findwell.show.tables import chance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from findwell.evaluation.comparison.compare import Comparison
    from findwell.show.charts.svg import Scale

ROW, TOP, NAMES, PLOT = 26.0, 54.0, 12.0, 420.0
SHOWN = {"difference": 20.0, "interval": 94.0, "p": 210.0, "verdict": 278.0}  # beside the plot
LONGEST, SYSTEM = 40, 26  # letters of a label, and of a system in it
STRIP, STRIP_HEIGHT = 340.0, 20.0  # a row on its own
COLORS = {"better": "c0", "worse": "c1"}  # the rest is grey, and hollow


def forest(comparison: Comparison) -> Chart:
    """Draw each difference as a point with its interval; what is shown to differ is filled."""
    names = comparison.systems[1 : SYSTEMS + 1]
    every = comparison.comparisons
    to_baseline = (every["baseline"] == comparison.baseline) & every["system"].is_in(names)
    table = every.filter(to_baseline)  # without the other pairs, where all were compared
    rows = by_measure(comparison, table)
    written = dict(zip(names, distinct(names, SYSTEM), strict=True))
    named = [
        f"{row['measure']} · {written[row['system']]}" if len(names) > 1 else row["measure"]
        for row in rows
    ]
    start = NAMES + LETTER * min(max(map(len, named), default=0), LONGEST) + 20
    low, high = reach_of(rows)
    across = linear((low, high), (start, start + PLOT))
    foot = TOP + ROW * len(rows)
    parts = [label(f"difference to {comparison.baseline}", NAMES, 18, most=60, class_="strong")]
    beside = {name: start + PLOT + x for name, x in SHOWN.items()}
    parts += (label(name, x, TOP - 14, class_="muted small") for name, x in beside.items())
    parts += differences_axis(across, (low, high), TOP, foot)
    for at, (row, name) in enumerate(zip(rows, named, strict=True)):
        y = TOP + ROW * at + 12
        parts.append(label(name, NAMES, y + 4, most=LONGEST))
        parts += difference_point(row, y, across)
        cells = {
            "difference": numbers(row)[2],
            "interval": corrected(row),
            "p": chance(row["p_adjusted"]),
            "verdict": row["verdict"],
        }
        parts += (
            label(cell, beside[name], y + 4, class_="strong" if name == "verdict" else None)
            for name, cell in cells.items()
        )
    if all(measure.higher_is_better for measure in comparison.measures):
        x = max(across(0), start + 50)
        parts.append(centered("← worse · better →", x, foot + 34, "muted small"))
    says = f"Differences to {comparison.baseline}: " + "; ".join(
        f"{row['system']} {row['measure']} {numbers(row)[2]}, {row['verdict']}" for row in rows
    )
    svg = drawing(beside["verdict"] + 76, foot + 44, says, parts)
    alone = tuple(
        difference_row(row, name, (low, high)) for row, name in zip(rows, named, strict=True)
    )
    shown = lay_out(comparison, table, "")
    return Chart("forest", f"Against {comparison.baseline}", says, svg, shown, alone)


def differences_axis(
    across: Scale, reach: tuple[float, float], top: float, foot: float
) -> Iterator[str]:
    """Draw the lines of an axis of differences, and their numbers at its foot."""
    for tick in ticks(*reach):
        x, kind = across(tick), "axis" if tick == 0 else "grid"
        yield element("line", x1=x, x2=x, y1=top - 6, y2=foot, class_=kind)
        shown = f"{tick:+g}".replace("-", "−") if tick else "0"
        yield centered(shown, x, foot + 16)


def reach_of(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
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
        yield element("line", y1=y, y2=y, class_=f"plot {paint}", **ends)
    hint = title(f"{row['system']} {row['measure']}: {numbers(row)[2]} ({corrected(row)})")
    shape = {"x": x - 5, "y": y - 5, "width": 10, "height": 10}
    yield element("rect", hint, class_=paint if paint != "none" else "none hollow", **shape)


def difference_row(
    row: dict[str, Any], name: str, reach: tuple[float, float], link: str = ""
) -> ChartRow:
    """Return a difference on its own, with its verdict; `reach` is that of all rows together."""
    across = linear(reach, (6, STRIP - 6))
    middle = STRIP_HEIGHT / 2
    zero = element("line", x1=across(0), x2=across(0), y1=0, y2=STRIP_HEIGHT, class_="axis")
    point = "".join(difference_point(row, middle, across))
    size = f"{STRIP:.0f} {STRIP_HEIGHT:.0f}"
    svg = f'<svg class="chart" viewBox="0 0 {size}" aria-hidden="true">{zero}{point}</svg>'
    p = chance(row["p_adjusted"])
    said = f"{numbers(row)[2]} ({corrected(row)}) · p {p} · {counted(row['n'])}"
    return ChartRow(name, link, row["verdict"], said, svg)

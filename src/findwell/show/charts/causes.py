"""Why relevant items were missed: a bar per system, made of causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.evaluation.results.misses import CAUSES
from findwell.show.charts import Chart, ChartRow, register_chart, svg
from findwell.show.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from findwell.show.charts.svg import Scale
    from findwell.show.panel import Panel

NAMES, PLOT, ROW, TOP = 12.0, 520.0, 30.0, 34.0
LABEL_LENGTH = 26


@register_chart("causes", section="causes")
def causes(panel: Panel) -> Iterator[Chart]:
    """Draw how many relevant items each system missed above the cutoff, by cause."""
    counts = {
        name: {cause: sum(found.values()) for cause, found in by_cause.items()}
        for name, by_cause in panel.misses.items()
    }
    met = [cause for cause in CAUSES if any(cause in each for each in counts.values())]
    if not met:
        return
    measure = panel.measures[panel.lead]
    most = max(sum(each.values()) for each in counts.values())
    said = {
        name: ", ".join(f"{each[cause]:,} {cause}" for cause in met if cause in each)
        for name, each in counts.items()
    }
    says = f"Relevant items that {measure} misses, by cause: " + "; ".join(
        f"{name} {each or 'none'}" for name, each in said.items()
    )
    rows, table = [], []
    for name, each in counts.items():
        links = [
            svg.link_to(show="missed", cause=cause, of=name) if cause in each else ""
            for cause in met
        ]
        bar = _bar(each, met, svg.linear((0, most), (0, 100)), 3, links)
        rows.append(ChartRow(svg.strip(bar), ("", *links)))
        table.append(
            [name, *(f"{each.get(cause, 0):,}" for cause in met), f"{sum(each.values()):,}"]
        )
    yield Chart(
        "causes",
        f"Relevant items missed ({measure})",
        says,
        _draw(f"relevant items missed, {measure}", says, counts, met, most),
        Grid("", ["system", *met, "all"], table),
        tuple(rows),
    ).with_about(panel.caption(measure))


def paint(cause: str) -> str:
    """Return the class of a cause's colour."""
    return f"k{list(CAUSES).index(cause)}"


def _bar(
    counts: dict[str, int],
    met: Sequence[str],
    across: Scale,
    y: float,
    links: Sequence[str] = (),
) -> Iterator[str]:
    """Draw a bar of causes, on a page in shares of its width, each part leading to its queries."""
    start, gap, unit = 0, *((0.2, "%") if links else (1.0, ""))
    for at, cause in enumerate(met):
        if not (count := counts.get(cause, 0)):
            continue
        x, end = across(start), across(start + count)
        start += count
        wide = max(end - x - gap, gap)
        shape = {"x": f"{x:.2f}{unit}", "y": y, "width": f"{wide:.2f}{unit}", "height": 16}
        part = svg.element("rect", svg.title(f"{count:,} {cause}"), class_=paint(cause), **shape)
        yield svg.element("a", part, href=links[at], tabindex="-1") if links else part


def _draw(
    heading: str,
    says: str,
    counts: dict[str, dict[str, int]],
    met: Sequence[str],
    most: int,
) -> str:
    """Draw an image: a bar per system, and what the colours mean."""
    names = svg.distinct(list(counts), LABEL_LENGTH)
    start = NAMES + svg.LETTER * max(map(len, names)) + 16
    parts, y = [svg.label(heading, NAMES, 18, class_="strong")], TOP
    for name, each in zip(names, counts.values(), strict=True):
        parts.append(svg.label(name, NAMES, y + 15))
        parts += _bar(each, met, svg.linear((0, most), (start, start + PLOT)), y + 3)
        parts.append(svg.label(f"{sum(each.values()):,}", start + PLOT + 8, y + 15))
        y += ROW
    x = start
    for cause in met:
        parts.append(svg.element("rect", x=x, y=y + 6, width=12, height=12, class_=paint(cause)))
        parts.append(svg.label(cause, x + 17, y + 16))
        x += 34 + svg.LETTER * len(cause)
    return svg.drawing(max(start + PLOT + 60, x), y + 30, says, parts)

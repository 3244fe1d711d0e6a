"""Estimates from labels as text: what the judge, labels, and both say, and on what it rests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.spelling import counted
from findwell.show.grid import Grid
from findwell.show.tables import (
    bullets,
    interval,
    limits,
    number,
    reading_width,
    render_grids,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from findwell.evaluation.results.estimates import EstimateRow, Estimates

SAID_BY = {
    "judge": "judge alone",
    "labels": "labels alone",
    "ppi": "labels + judge",
}


def render(found: Estimates, how: str, *, color: bool = False, width: int | None = None) -> str:
    """Return estimates as `table`, `markdown` or `latex`, with the design in words below."""
    drawn = render_grids(grids(found), how, color=color, width=width)
    if how == "latex":
        return drawn
    said = bullets(sentences(found), how, reading_width(width))
    return f"{drawn}\n{said}" if how == "markdown" else drawn + said


def grids(found: Estimates) -> Iterator[Grid]:
    """Lay out the estimates of each run, then the differences."""
    own = [each for each in found.rows if each.baseline is None]
    yield _grid(own, _title(found), found.level, plain=True)
    if found.differences:
        (baseline,) = {each.baseline for each in found.differences}
        title = f"differences: what each system has more than {baseline}"
        yield _grid(found.differences, title, found.level, plain=False)


def _title(found: Estimates) -> str:
    design = found.design
    labels = counted(design["labels"], "label", "labels")
    of_all = f" of {design['pairs']} pairs" if "pairs" in design else ""
    judge = f" · judge {design['judge']}" if design.get("judge") else ""
    return f"{labels}{of_all} · {counted(design['queries'])}{judge}"


def _grid(rows: Sequence[EstimateRow], title: str, level: float, *, plain: bool) -> Grid:
    several = len({each.run for each in rows}) > 1
    marks = {True: "*", False: ""}
    cells = [
        [
            *([each.run] if several else []),
            each.measure,
            SAID_BY[each.method],
            number(each.value) if plain else signed(each.value),
            _limits(each, plain=plain) + marks[each.estimator == "bounds"],
            str(each.labels) if each.method != "judge" else "–",
            "–" if each.effective is None else f"{each.effective:.0f}",
        ]
        for each in rows
    ]
    header = ["measure", "by", "value", f"{level:.0%} interval", "labels", "worth"]
    return Grid(title, ["run", *header] if several else header, cells, left=2 + several)


def _limits(each: EstimateRow, *, plain: bool) -> str:
    if plain:
        return interval(each.low, each.high)
    return limits(each.low, each.high)


def sentences(found: Estimates) -> list[str]:
    """Say how pairs were chosen, how each measure is estimated, and what the columns mean."""
    design = found.design
    lines = [f"labels: {_sampling(design)}"]
    reasons: dict[str, list[str]] = {}
    for measure, each in design["measures"].items():
        reasons.setdefault(f"{each['estimator']}: {each['why']}", []).append(measure)
    lines += [f"{', '.join(names)} by {why}" for why, names in reasons.items()]
    if any(each.estimator == "bounds" for each in found.rows):
        lines.append("* no estimate, but what the missing labels leave possible")
    if any(each.method == "ppi" and each.effective is not None for each in found.rows):
        lines.append("worth: how many labels would be as precise without the judge")
    return lines


def _sampling(design: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{times} {name}" for name, times in design["sampling"].items())
    strata = f", in {len(design['strata'])} strata" if len(design["strata"]) > 1 else ""
    return f"{counts}{strata}, of {counted(design['labelled_queries'])}"


def facts(found: Estimates, run: str) -> Iterator[tuple[str, str]]:
    """Yield names and values for the part of a report that says what made the numbers."""
    for each in found.rows:
        if each.run == run and each.baseline is None:
            value = f"{number(each.value)} ({interval(each.low, each.high)})"
            worth = "" if each.effective is None else f", worth {each.effective:.0f}"
            used = "" if each.method == "judge" else f", {each.labels} labels{worth}"
            how = f", by {each.estimator}" if each.estimator else ""
            yield f"{each.measure}, {SAID_BY[each.method]}", value + used + how
    yield from (("design of the labels", line) for line in sentences(found))

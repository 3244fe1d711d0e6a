"""How a system did over the results of the same data set: a small chart per result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from findwell.show.charts.svg import drawing, element, line, linear, title
from findwell.show.tables import interval, number

if TYPE_CHECKING:
    from findwell.show.web.folders import SavedResult

MOST_RESULTS = 30  # results in a chart
WIDTH, HEIGHT, AIR = 132.0, 34.0, 5.0
SPOKEN_VALUES = 5  # values that are read out


def trends(results: Sequence[SavedResult]) -> dict[str, dict[str, Any]]:
    """Return the chart of each result by its id: its best system in all results that have it.

    Results belong together if they have the same gold, main measure, relation and dialect; a result
    whose best system is in no other one has no chart.
    """
    groups: dict[tuple[str, str, str], list[SavedResult]] = {}
    for each in sorted(results, key=lambda each: (each.created, each.stamp)):
        key = each.data_set()["key"], each.measure, str(each.manifest.get("dialect"))
        if key[0] and each.headline.best is not None:
            groups.setdefault(key, []).append(each)
    return {
        each.id: drawn
        for group in groups.values()
        for each in group
        if (drawn := _trend(each, group)) is not None
    }


def _trend(result: SavedResult, group: Sequence[SavedResult]) -> dict[str, Any] | None:
    run = (result.headline.best or {})["run"]
    same = [each for each in group if each.headline.row_of(run) is not None]
    at = same.index(result)
    if len(same) < 2:
        return None
    before = same[at - 1].headline.row_of(run) if at else None
    drawn = {"svg": _chart(same, run, at), "run": run}
    return drawn | {"before": before, "place": at + 1, "of": len(same)}


def _chart(group: Sequence[SavedResult], run: str, at: int) -> str:
    first = max(0, min(at, len(group) - MOST_RESULTS))
    shown = group[first : first + MOST_RESULTS]
    rows = [each.headline.row_of(run) or {} for each in shown]
    ends = [row[key] for row in rows for key in ("value", "low", "high") if row[key] is not None]
    up = linear((min(ends), max(ends)), (HEIGHT - AIR, AIR))
    across = linear((0, len(shown) - 1), (AIR, WIDTH - AIR))
    parts = []
    for place, row in enumerate(rows):
        if row["low"] is not None and row["high"] is not None:
            x = across(place)
            shape = {"x1": x, "x2": x, "y1": up(row["low"]), "y2": up(row["high"])}
            parts.append(element("line", class_="spread", **shape))
    parts.append(line([(across(n), up(row["value"])) for n, row in enumerate(rows)], "plot c0"))
    for place, (each, row) in enumerate(zip(shown, rows, strict=True)):
        here = place == at - first
        limits = "" if row["low"] is None else f" ({interval(row['low'], row['high'])})"
        hint = title(f"{each.name}: {row['run']} {number(row['value'])}{limits}")
        dot = {"cx": across(place), "cy": up(row["value"]), "r": 4.5 if here else 2.0}
        parts.append(element("circle", hint, class_="c1 here" if here else "c0", **dot))
    values = ", ".join(number(row["value"]) for row in rows[-SPOKEN_VALUES:])
    says = (
        f"{group[at].measure} of {run} in {len(group)} results of this data set, "
        f"of which this is number {at + 1}; the last are {values}"
    )
    return drawing(WIDTH, HEIGHT, says, parts)

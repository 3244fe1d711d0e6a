"""What stands out, in sentences: the first thing that a reader of a report reads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.report.charts.svg import text
from karat.report.comparison import chance, limits, signed, verdict
from karat.report.layout import interval, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.report.panel import Panel

ENOUGH = 5  # queries of a slice that is worth a sentence
APART = 0.1  # by how much a slice is below the rest
MOST = 3  # systems that are told of
WORDS = {
    "better": "is better than",
    "worse": "is worse than",
    "same": "scores the same as",
    "not shown": "is not shown to differ from",
    "unknown": "cannot be told from",
}


def insights(panel: Panel) -> list[str]:
    """Return sentences as HTML."""
    return [*_compared(panel), *_nothing_found(panel), *_weakest(panel), *_oddities(panel)]


def _compared(panel: Panel) -> Iterator[str]:
    found = panel.comparison
    if found is None:
        yield from _alone(panel)
        return
    lead = panel.measures[panel.lead]
    rows = [row for row in found.comparisons.to_dicts() if row["measure"] == str(lead)]
    sign = 1 if lead.higher_is_better else -1
    rows.sort(key=lambda row: -sign * (row["difference"] or 0.0))
    for row in rows[:MOST]:
        yield (
            f"<strong>{text(row['system'])}</strong> {WORDS[verdict(found, row)]} "
            f"<strong>{text(row['baseline'])}</strong> in {text(str(lead))}: "
            f"{number(row['system_value'])} against {number(row['baseline_value'])}, a difference "
            f"of {signed(row['difference'])} ({limits(row)}), p {_p(row['p_adjusted'])}."
        )
    if len(rows) > MOST:
        rest = [verdict(found, row) for row in rows[MOST:]]
        told = ", ".join(f"{count} {word}" for word, count in Counter(rest).items())
        yield f'{len(rest)} more systems: {told}. <a href="#comparison">All of them</a>.'


def _alone(panel: Panel) -> Iterator[str]:
    row = panel.summary[panel.names[0], str(panel.measures[panel.lead])]
    if row["value"] is not None:
        told = f"{text(row['measure'])} is <strong>{number(row['value'])}</strong>"
        if row["low"] is not None:
            told += f" ({interval(row['low'], row['high'])})"
        yield f"{told} over {row['n']:,} queries."


def _p(p: float | None) -> str:
    told = chance(p)
    return told if told.startswith("<") else f"= {told}"


def _nothing_found(panel: Panel) -> Iterator[str]:
    parts: list[str] = []
    for at, name in enumerate(panel.names):
        values = panel.pairing.values[:, at, panel.lead]
        known = int((~np.isnan(values)).sum())
        if known and panel.zero(at):
            word = "" if parts else " queries"
            parts.append(f"{panel.zero(at):,} of {known:,}{word} with {text(name)}")
    more = f" and {len(parts) - MOST} more systems" if len(parts) > MOST else ""
    if parts:
        lead = text(str(panel.measures[panel.lead]))
        told = ", ".join(parts[:MOST]) + more
        yield f'{lead} is 0 for {told}: <a href="#show=zero">look at them</a>.'


def _weakest(panel: Panel) -> Iterator[str]:
    """Name for the first systems the slice that is furthest below the rest."""
    for at, name in enumerate(panel.names[:MOST]):
        values = panel.pairing.values[:, at, panel.lead]
        found: list[tuple[float, str]] = []
        for column, labels in panel.facets.items():
            mine = panel.queries[column].cast(pl.String).fill_null("(none)")
            for label in labels:
                inside = (mine == label).to_numpy() & ~np.isnan(values)
                rest = ~inside & ~np.isnan(values)
                if inside.sum() < ENOUGH or rest.sum() < ENOUGH:
                    continue
                low, high = float(values[inside].mean()), float(values[rest].mean())
                told = (
                    f"{text(name)} is weakest where {text(column)} is "
                    f"<strong>{text(label)}</strong>: {text(str(panel.measures[panel.lead]))} "
                    f"{number(low)} over {int(inside.sum()):,} queries, {number(high)} elsewhere."
                )
                found.append((low - high, told))
        found.sort(key=lambda each: each[0])
        if found and found[0][0] < -APART and panel.measures[panel.lead].higher_is_better:
            yield found[0][1]


def _oddities(panel: Panel) -> Iterator[str]:
    values = panel.pairing.values[:, :, panel.lead]
    without = int(np.isnan(values).any(axis=1).sum())
    if without:
        word, has = ("query", "has") if without == 1 else ("queries", "have")
        yield (
            f"{without:,} {word} {has} no value in {text(str(panel.measures[panel.lead]))} and "
            f'{"is" if without == 1 else "are"} left out of it: <a href="#show=none">which</a>.'
        )
    if panel.findings:
        count = len(panel.findings)
        word = "thing is" if count == 1 else "things are"
        yield f'{count} {word} odd about the inputs: <a href="#findings">findings</a>.'

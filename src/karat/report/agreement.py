"""Agreement as text: the statistics, and with details queries, systems or counts of labels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from karat.report.layout import Grid, number
from karat.report.text import markdown, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from karat.comparison.agree import Agreement

FORMATS = ("table", "json", "csv", "markdown")
TITLES = {
    "rankings": "rankings: the mean over queries",
    "systems": "orders of systems",
    "labels": "labels",
}


def render(found: Agreement, how: str, *, details: bool = False) -> str:
    """Return the agreement in one of FORMATS; `csv` holds the details if these are asked for."""
    if how == "json":
        return json.dumps(found.as_dict(), indent=1, ensure_ascii=False) + "\n"
    if how == "csv":
        return (found.details if details else found.summary).write_csv()
    tables = list(_grids(found, details=details or found.kind == "labels"))
    if how == "markdown":
        return "\n".join(map(markdown, tables))
    return "".join(map(terminal, tables))


def _grids(found: Agreement, *, details: bool) -> Iterator[Grid]:
    limits = bool(found.summary["low"].is_not_null().any())
    yield Grid(
        TITLES[found.kind],
        ["statistic", "value", *(["low", "high"] if limits else []), "n", "undefined"],
        [
            [row["statistic"] + (f" ({row['reason']})" if row["reason"] else "")]
            + [number(row["value"])]
            + ([number(row["low"]), number(row["high"])] if limits else [])
            + [str(row["n"]), str(row["undefined"])]
            for row in found.summary.to_dicts()
        ],
    )
    if details:
        yield _confusion(found.details) if found.kind == "labels" else _details(found.details)


def _confusion(details: pl.DataFrame) -> Grid:
    """One row a label of the first side, one column a label of the second."""
    labels = details["first"].unique(maintain_order=True).to_list()
    counts = {(one, other): count for one, other, count in details.rows()}
    rows = [[label, *(str(counts[label, other]) for other in labels)] for label in labels]
    return Grid("how often: the first in rows, the second in columns", ["label", *labels], rows)


def _details(details: pl.DataFrame) -> Grid:
    texts = [name for name in details.columns if name in ("query", "measure", "system")]
    rows = [
        [_text(row[name]) if name in texts else number(row[name]) for name in details.columns]
        for row in details.to_dicts()
    ]
    return Grid("one by one", details.columns, rows, left=len(texts))


def _text(value: object) -> str:
    return "" if value is None else str(value)

"""Agreement as a document: of rankings, systems and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.show.document import Document
from findwell.show.grid import Grid
from findwell.show.tables import decimals, interval, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from findwell.loop.labels.agree import Agreement

FORMATS = ("table", "json", "csv", "markdown")
TITLES = {
    "rankings": "rankings: the mean over queries",
    "systems": "orders of systems",
    "labels": "labels",
    "annotators": "annotators: n counts pairs with two or more labels, undefined those with one",
}


def document(found: Agreement, *, details: bool = False) -> Document:
    """Return the agreement; rows are the details if these are asked for."""
    return Document(
        _grids(found, details=details or found.kind == "labels"),
        findings=found.findings,
        data=found.as_dict,
        rows=lambda: found.details if details else found.summary,
    )


def _grids(found: Agreement, *, details: bool) -> Iterator[Grid]:
    limits = bool(found.summary["low"].is_not_null().any())
    yield Grid(
        TITLES[found.kind],
        ["statistic", "value", *(["interval"] if limits else []), "n", "undefined"],
        [
            [row["statistic"] + (f" ({row['reason']})" if row["reason"] else "")]
            + [number(row["value"], decimals(row["low"], row["high"]))]
            + ([interval(row["low"], row["high"])] if limits else [])
            + [str(row["n"]), str(row["undefined"])]
            for row in found.summary.to_dicts()
        ],
    )
    if details:
        yield _confusion(found.details) if found.kind == "labels" else _details(found.details)


def _confusion(details: pl.DataFrame) -> Grid:
    """One row per label of the first side, one column per label of the second."""
    labels = details["first"].unique(maintain_order=True).to_list()
    counts = {(one, other): count for one, other, count in details.rows()}
    rows = [[label, *(str(counts[label, other]) for other in labels)] for label in labels]
    return Grid("how often: the first in rows, the second in columns", ["label", *labels], rows)


def _details(details: pl.DataFrame) -> Grid:
    texts = [
        name for name in details.columns if name in ("query", "measure", "system", "of", "name")
    ]
    rows = [
        [row[name] or "" if name in texts else _figure(row[name]) for name in details.columns]
        for row in details.to_dicts()
    ]
    return Grid("one by one", details.columns, rows, left=len(texts))


def _figure(value: object) -> str:
    """Return a count as it is, any other number with four digits."""
    return number(value) if value is None or isinstance(value, float) else str(value)

"""What a judge said about one query, as explanations show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from karat.engines.stream import TEXT
from karat.explanation.ranking import Unit

if TYPE_CHECKING:
    import polars as pl

    from karat.results.result import Result


@dataclass(frozen=True, slots=True)
class Said:
    """One verdict of a judge."""

    aspect: str
    item: str  # the question, a claim, an entity or a statement
    rank: int | None  # of the chunk
    value: int | None
    reason: str
    quote: str
    unproven: bool


def verdicts_of(result: Result) -> tuple[Said, ...]:
    """Return the verdicts about the only query of a result, in the order of aspects and items."""
    ranks = {row["text"]: row["rank"] for row in reversed(_chunks(result))}
    return tuple(
        Said(
            row["aspect"],
            row["item"],
            ranks.get(row["chunk"][:TEXT]),
            row["value"],
            row["reason"],
            row["quote"],
            row["unproven"],
        )
        for row in ([] if result.verdicts is None else result.verdicts.to_dicts())
    )


def judged_units(result: Result, aspect: str, judged_to: int | None) -> list[Unit]:
    """Return the units of the only query: the chunks, or their statements, as far as judged."""
    chunks = _chunks(result)[:judged_to]
    if aspect != "statements" or result.verdicts is None:
        return [Unit(row["doc"], row["text"]) for row in chunks]
    parts: dict[str, list[str]] = {}
    for row in result.verdicts.filter(aspect="statements").to_dicts():
        parts.setdefault(row["chunk"][:TEXT], []).append(row["item"])
    return [
        Unit(row["doc"], part, row["rank"]) for row in chunks for part in parts.get(row["text"], ())
    ]


def _chunks(result: Result) -> list[dict[str, Any]]:
    listed: pl.DataFrame = result.listed[result.runs[0]]
    return listed.to_dicts()

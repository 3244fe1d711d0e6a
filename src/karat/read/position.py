"""Records without an id: their position joins them with the gold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.data import Gold, RunStream
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, eq=False)
class NumberedRun(RunStream):
    """A run whose records carry no id: their queries are called 1, 2, …"""


def join_by_position(stream: RunStream, gold: Gold) -> RunStream:
    """Give the records of a numbered run the ids of the gold, the first to the first and so on.

    Where the gold itself is numbered, or its ids are such numbers, there is nothing to do. If
    broken records were left out, the last ones may be among them.
    """
    names = gold.queries["query"]
    if not isinstance(stream, NumberedRun) or not len(names) or _are_numbers(names):
        return stream
    finding = Finding(
        "joined-by-position",
        len(names),
        tuple(names.head(EXAMPLES)),
        "record of the run without an id: joined with the gold by its position",
        "give every record the id of its query",
    )

    skipped = any(found.kind == "skipped-record" for found in stream.findings)

    def batches() -> Iterator[pl.DataFrame]:
        last = 0
        for rows in stream.batches():
            number = rows["query"].cast(pl.Int64)
            last = max(last, int(number.max() or 0))  # type: ignore[arg-type]
            if last > len(names):
                raise _uneven(stream.name, f"more than {len(names)}", len(names))
            yield _named(rows, names)
        if last < len(names) and not skipped:
            raise _uneven(stream.name, str(last), len(names))

    def about() -> pl.DataFrame | None:
        found = stream.about()
        return None if found is None else _named(found, names)

    findings = (*stream.findings, finding)
    return RunStream(stream.name, batches, stream.order, findings, about=about)


def _named(rows: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """Put ids in the place of positions."""
    return rows.with_columns(query=names.gather(rows["query"].cast(pl.Int64) - 1))


def _are_numbers(names: pl.Series) -> bool:
    """Tell whether ids are what positions are called: 1, 2, … perhaps with gaps."""
    numbers = names.cast(pl.Int64, strict=False)
    if numbers.null_count() or (numbers.cast(pl.String) != names).any():
        return False
    return bool(numbers[0] == 1 and (np.diff(numbers.to_numpy()) > 0).all())


def _uneven(run: str, found: str, gold: int) -> InputError:
    return InputError(
        f"its records carry no id, and they are {found} where the gold has {gold} queries",
        where=f"run {run}",
        fix="give every record the id of its query, or as many records as the gold has, in order",
    )

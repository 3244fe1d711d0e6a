"""The second waist: what was measured, one value per run, measure and query.

Measures, a tuner's trials and a store of traces make `Values`; summaries, comparisons, gates and
alarms read only them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from findwell.core.errors import choose_column
from findwell.core.frames import Viewed, changed, later, pl, unmade
from findwell.core.slices import slice_labels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.data import Bools, Floats
    from findwell.core.frames import Strings
    from findwell.core.measure import Measure

BOUNDS = ("lower", "upper")


@dataclass(frozen=True, eq=False)
class Values(Viewed):
    """One value for each run, measure and query; NaN, with a reason, where a value is missing.

    A measure knows its direction, its range and how its values are aggregated. A query that a run
    was not asked has no value there, and is not missing either.

    >>> import polars as pl
    >>> from findwell.measures import parse_measure
    >>> queries = pl.DataFrame({"query": ["q1", "q2"], "topic": ["tea", "ink"]})
    >>> table = np.array([[[1.0, 0.5]], [[0.0, np.nan]]])
    >>> found = Values(queries, ("a", "b"), (parse_measure("RR"),), table)
    >>> found.of("a", found.measures[0]).tolist(), found.only(np.array([True, False])).n
    ([1.0, 0.5], 1)
    >>> found.frame().rows()[-1]
    ('b', 'q2', 'RR', None, 'no relevant item')
    """

    queries: pl.DataFrame  # n rows: query, and the columns that describe it
    runs: tuple[str, ...]
    measures: tuple[Measure, ...]
    table: Floats  # runs × measures × n
    asked: Bools | None = None  # runs × n: whether a run was asked a query; None: all were
    # why a query has no value, if not for the usual reason of the measure: by run and measure
    reasons: Mapping[tuple[str, Measure], Mapping[int, str]] = field(default_factory=dict)
    failed: Bools | None = None  # as the table: where a judge failed; None: nowhere
    # as the table each: between what the value lies, where not all documents were judged
    bounds: tuple[Floats, Floats] | None = None

    @property
    def n(self) -> int:
        """How many queries."""
        return int(self.table.shape[2])

    @property
    def names(self) -> Strings | pl.Series:
        """The ids of the queries, read by position; no frame is made for it."""
        given = unmade(self, "queries")
        return self.queries["query"] if given is None or given.strings is None else given.strings

    @property
    def query_columns(self) -> Sequence[str]:
        """The columns of `queries`, which is not made for it where they are known."""
        given = unmade(self, "queries")
        return given.columns if given and given.columns else self.queries.columns

    def was_asked(self, run: str) -> Bools | slice:
        """Tell which queries a run was asked: a mask, or a slice of all."""
        return slice(None) if self.asked is None else self.asked[self.runs.index(run)]

    def of(self, run: str, measure: Measure) -> Floats:
        """Return the values of the queries that a run was asked."""
        values: Floats = self.table[self.runs.index(run), self.measures.index(measure)]
        return values[self.was_asked(run)]

    def bounds_of(self, run: str, measure: Measure) -> tuple[Floats, Floats]:
        """Return the bounds of the values of the queries that a run was asked."""
        at, inside = (self.runs.index(run), self.measures.index(measure)), self.was_asked(run)
        low, high = self.bounds or (self.table, self.table)
        return low[at][inside], high[at][inside]

    def by_query(self) -> Floats:
        """Return the values as queries × runs × measures, for tests of differences."""
        return np.ascontiguousarray(np.moveaxis(self.table, 2, 0))

    def only(self, inside: Bools) -> Self:
        """Return the values of the queries of a mask."""
        new = np.cumsum(inside) - 1
        return changed(
            self,
            queries=later(lambda: self.queries.filter(inside)),
            table=self.table[..., inside],
            asked=None if self.asked is None else self.asked[:, inside],
            reasons={
                key: {int(new[at]): why for at, why in about.items() if inside[at]}
                for key, about in self.reasons.items()
            },
            failed=None if self.failed is None else self.failed[..., inside],
            bounds=self.bounds and (self.bounds[0][..., inside], self.bounds[1][..., inside]),
        )

    def column(self, name: str) -> pl.Series:
        """Return a column that describes the queries, or the hour, day, … of one: time:day."""
        if name in self.queries.columns:
            return self.queries[choose_column(self.queries, name)]
        return slice_labels(self.queries, name)

    def frame(self) -> pl.DataFrame:
        """Return one row for each run, measure and query; an undefined value has its reason."""
        frames, row = [], np.repeat(np.arange(len(self.measures)), self.n)
        names = pl.Series(map(str, self.measures), dtype=pl.String).gather(row)
        whys = pl.Series((each.why_undefined for each in self.measures), dtype=pl.String)
        for run_at, run in enumerate(self.runs):
            why = whys.gather(row)
            for at, measure in enumerate(self.measures):
                if said := self.reasons.get((run, measure)):
                    why = why.scatter([at * self.n + place for place in said], list(said.values()))
            value = pl.Series(self.table[run_at].ravel())
            columns = {
                "run": pl.repeat(run, len(row), dtype=pl.String, eager=True),
                "query": pl.concat([self.queries["query"]] * len(self.measures)),
                "measure": names,
                "value": value.fill_nan(None),
                "reason": why.set(value.is_not_nan(), None),
            }
            for name, side in zip(BOUNDS, self.bounds or (), strict=False):
                columns[name] = pl.Series(side[run_at].ravel()).fill_nan(None)
            inside = self.was_asked(run)
            mine = True if isinstance(inside, slice) else np.tile(inside, len(self.measures))
            frames.append(pl.DataFrame(columns).filter(mine))
        return pl.concat(frames)

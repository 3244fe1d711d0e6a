"""A pool as tables: its pairs and their design, what a budget buys, and how it is made larger."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from findwell.core.errors import OptionError
from findwell.core.spelling import counted
from findwell.io.read import load_gold
from findwell.loop.labels.order import uniform
from findwell.loop.labels.precision import expected_precision, usual_budgets
from findwell.loop.labels.sampling import draw

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from findwell.core.data import Floats
    from findwell.core.findings import Finding
    from findwell.io.read import GoldLike
    from findwell.loop.labels.database import LabelsFile

SAMPLE = "sample"  # the design for absolute values
PRECISION_AT = 10  # the k of the P@k and recall@k that are announced, where the pool is deep enough
NOT_JUDGED, ALL = "not judged", "all"  # strata of pairs without a judge's grade
PAIRS: dict[str, type[pl.DataType]] = {
    "query": pl.String,
    "doc": pl.String,
    "question": pl.String,
    "text": pl.String,
    "source": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "judge": pl.Float64,
    "quote": pl.String,
    "design": pl.String,
    "stratum": pl.String,
    "probability": pl.Float64,
    "place": pl.Int64,
}
RANKS: dict[str, type[pl.DataType]] = {
    "pair": pl.Int64,
    "run": pl.Int64,
    "rank": pl.Int64,
    "score": pl.Float64,
}


@dataclass(frozen=True, eq=False)
class LabelPool:
    """The pairs of queries and documents that can be labelled, and how they are chosen.

    `pairs` has one row per pair: query, question, doc, text, source, start, end, judge (its grade),
    quote (the judge's), design, stratum, probability, place (in the order of labelling, where that
    is fixed). `ranks` has one row per pair and run: pair (its row), run, rank, score.
    """

    pairs: pl.DataFrame
    ranks: pl.DataFrame
    runs: tuple[str, ...]
    settings: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    expected: pl.DataFrame | None = None  # its `precision`, with the pilot it was made with

    def __repr__(self) -> str:
        queries = self.pairs["query"].n_unique()
        return (
            f"LabelPool({counted(queries)}, {counted(self.pairs.height, 'pair', 'pairs')}, "
            f"{counted(len(self.runs), 'run', 'runs')})"
        )

    def precision(
        self,
        budgets: Sequence[int] | None = None,
        *,
        k: int | None = None,
        pilot: GoldLike | None = None,
        level: float = 0.95,
    ) -> pl.DataFrame:
        """Return how wide the intervals of P@k and recall@k will be, before anybody labels.

        `k` is 10 by default, or the depth of the pool if that is less: deeper documents cannot be
        labelled. One row per run, measure and budget (by default half of the budget, the budget,
        twice as much, and everything): `these` is the half-width about these queries, `new` about
        queries like these, `basis` where it comes from: a `pilot` of labels (any gold, a pool with
        labels), the grades of the judge, or the assumption that half of the pairs are relevant,
        which is the worst case for P@k; recall@k needs one of the former. Labels for ordering give
        no interval, but bounds: their half-width is shown.
        """
        depth = int(self.settings["depth"])
        if k is not None and k > depth:
            raise OptionError(
                f"the pool holds the first {depth} documents of each run, so that its labels "
                f"cannot tell P@{k}",
                fix=f"ask for k={depth} or less, or make a pool with depth={k}",
            )
        k = min(PRECISION_AT, depth) if k is None else k
        least = self.pairs["stratum"].n_unique()  # each stratum needs a label
        labels = None if pilot is None else load_gold(pilot).rows().select("query", "doc", "grade")
        return expected_precision(
            self.pairs,
            self.ranks,
            self.runs,
            design=str(self.settings["design"]),
            budgets=budgets or usual_budgets(self.settings["budget"], self.pairs.height, least),
            k=k,
            pilot=labels,
            level=level,
            seed=int(self.settings["seed"]),
        )


def strata_of(judge: pl.Series) -> list[str]:
    """Name the stratum of each pair by the grade of the judge, where there is one.

    >>> strata_of(pl.Series([0.0, None, 2.0]))
    ['judge 0', 'not judged', 'judge 2']
    """
    if judge.null_count() == len(judge):
        return [ALL] * len(judge)
    return [NOT_JUDGED if grade is None else f"judge {grade:g}" for grade in judge]


def sampling_keys(pairs: pl.DataFrame, seed: int) -> Floats:
    """Return the random number of each pair, which depends on its names and the seed alone."""
    keys = [
        uniform(seed, "sample", query, doc) for query, doc in pairs.select("query", "doc").rows()
    ]
    return np.array(keys, dtype=np.float64)


def read_pool(file: LabelsFile, settings: Mapping[str, Any]) -> LabelPool:
    """Return the pool that a database holds."""
    pairs = file.rows(
        'SELECT query.query, doc, question, text, source, pair.start, pair."end", judge, quote, '
        "design, stratum, probability, place FROM pair JOIN query ON query.number = pair.query "
        "ORDER BY pair.number"
    )
    ranks = file.rows("SELECT pair, run, rank, score FROM rank ORDER BY pair, run")
    runs = file.rows("SELECT name FROM run ORDER BY number")
    return LabelPool(
        pl.DataFrame(pairs, schema=PAIRS, orient="row"),
        pl.DataFrame(ranks, schema=RANKS, orient="row"),
        tuple(name for (name,) in runs),
        settings,
    )


def extend_pool(connection: sqlite3.Connection, pool: LabelPool, budget: int) -> None:
    """Write a larger budget, and the larger sample, which holds the one there was."""
    if pool.settings["design"] == SAMPLE:
        pairs = pool.pairs.with_row_index("number").filter(design=SAMPLE)
        before = pairs["place"].count()
        if budget < before:
            raise OptionError(
                f"{before} pairs are in the sample already", fix="give a larger budget"
            )
        keys = sampling_keys(pairs, int(pool.settings["seed"]))
        held = pairs["place"].is_not_null().to_numpy()
        drawn = draw(pairs["stratum"].to_list(), keys, budget, held)
        rows = zip(
            (None if place < 0 else place for place in drawn.place.tolist()),
            drawn.probability.tolist(),
            pairs["number"].to_list(),
            strict=True,
        )
        connection.executemany("UPDATE pair SET place = ?, probability = ? WHERE number = ?", rows)
    update = "UPDATE setting SET value = ? WHERE name = 'budget'"
    connection.execute(update, (json.dumps(budget),))

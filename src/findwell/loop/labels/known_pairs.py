"""All pairs that could be labelled: what people said about some, and how these were chosen."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from findwell.core.data import Gold, best_first
from findwell.core.errors import InputError
from findwell.io.read import load_gold
from findwell.io.read.labels_database import database_at, final_grades, typed
from findwell.io.read.tables import frame
from findwell.loop.labels.imports import IMPORTED
from findwell.loop.labels.label_pool import SAMPLE
from findwell.loop.labels.labels import Labels

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

UNJUDGED = -1.0  # the grade of a candidate without a label: in the pool, but not judged
CHOSEN = "chosen"  # the design of a pair that was labelled though it was not its turn
PAIR = ["query", "doc"]
PAIR_COLUMNS = (*PAIR, "grade", "probability", "stratum", "design", "judge")


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """The pairs of a pool, one row each, and what is known of them.

    Columns: query, doc, grade (null: no label), probability (of being labelled; null: no label, or
    a label that is not part of a sample), stratum, design, judge (the grade of the pool's judge).
    A pair that could be drawn has the design `sample`, or `chosen` if it was labelled although it
    was not its turn. A pair outside of a sample that is labelled for certain has the probability 1.
    """

    pairs: pl.DataFrame
    queries: pl.DataFrame | None  # query and question; None: those of the run
    closed: bool  # whether these are all the pairs that could have been labelled
    about: dict[str, Any] = field(default_factory=dict)
    texts: pl.DataFrame | None = None  # doc and text

    @property
    def labels(self) -> int:
        """How many pairs have a label."""
        return self.pairs.height - self.pairs["grade"].null_count()

    @property
    def judged(self) -> bool:
        """Whether a judge graded any pair of the pool."""
        return bool(self.pairs["judge"].count())

    def gold(self, queries: pl.DataFrame | None = None) -> tuple[Gold, Ints]:
        """Return the pairs as a gold, and the row of the pairs that each of its items is.

        A pair without a label is in it, too: as a document that is in the pool but unjudged.
        """
        every = self.queries if queries is None else queries
        rows = self.pairs.select("query", "doc", pl.col("grade").fill_null(UNJUDGED))
        gold = Gold.build(rows, queries=every)
        return gold, best_first(gold.find(rows["query"]), rows["grade"].to_numpy())

    def column(self, name: str, missing: float = np.nan) -> Floats:
        """Return a column as numbers."""
        return self.pairs[name].fill_null(missing).to_numpy()

    def described(self) -> dict[str, Any]:
        """Say how many labels there are, and how they were drawn."""
        labelled = self.pairs.filter(pl.col("grade").is_not_null())
        designs = labelled["design"].value_counts(sort=True).rows()
        strata = (
            self.pairs.filter(pl.col("stratum").is_not_null())
            .group_by("stratum")
            .agg(pairs=pl.len(), labels=pl.col("grade").count())
            .sort("stratum")
        )
        return {
            "labels": labelled.height,
            "pairs": self.pairs.height,
            "labelled_queries": labelled["query"].n_unique(),
            "sampling": {str(name): count for name, count in designs},
            "strata": strata.to_dicts(),
            **self.about,
        }


def load_pairs(labels: object, *, texts: bool = False) -> KnownPairs:
    """Read labels: findwell's database or the folder of its pool, an open one, a frame, a gold.

    A frame has the columns query, doc and grade, and where pairs were drawn probability and
    stratum; a row without a grade is a pair that could have been labelled and was not. The design
    `chosen` marks a pair that was labelled although it was not drawn. `texts` asks for those of the
    pool.
    """
    if isinstance(labels, Labels):
        return _of_database(labels, texts=texts)
    if isinstance(labels, str | os.PathLike) and database_at(labels) is not None:
        with Labels.open(labels) as opened:
            return _of_database(opened, texts=texts)
    table = frame(labels)
    if table is not None and "probability" in table.columns:
        return _of_frame(table)
    gold = load_gold(labels)  # type: ignore[arg-type]
    rows = gold.rows().group_by(PAIR, maintain_order=True).agg(pl.col("grade").max())
    rows = rows.with_columns(design=pl.lit(IMPORTED))
    return KnownPairs(rows.select(typed(rows, PAIR_COLUMNS)), None, closed=False)


def _of_database(labels: Labels, *, texts: bool) -> KnownPairs:
    said = labels.frame().filter(pl.col("grade").is_not_null())
    grades = final_grades(said, [*PAIR, "subtopic"]).group_by(PAIR).agg(pl.col("grade").max())
    chance = said.group_by(PAIR).agg(pl.col("probability").last())
    pairs = labels.candidates().drop("probability")
    for known in (grades, chance):
        pairs = pairs.join(known, on=PAIR, how="left", maintain_order="left")
    pairs = _out_of_turn(pairs)
    if (pairs["design"] == SAMPLE).any():  # what was added to the pool later was never drawn from
        added = ~pl.col("design").is_in([SAMPLE, CHOSEN]) & pl.col("grade").is_not_null()
        pairs = pairs.with_columns(
            probability=pl.when(added).then(pl.lit(1.0)).otherwise("probability")
        )
    settings = labels.settings
    about: dict[str, Any] = {
        "annotators": said["annotator"].n_unique(),
        **{name: settings[name] for name in ("purpose", "depth", "seed") if name in settings},
        "pool_judge": settings.get("judge", ""),
    }
    passages = None
    if texts:  # so that a judge can read what a run only names
        filled = labels.texts().filter(pl.col("text") != "").select("doc", "text")
        passages = filled.unique("doc", keep="first", maintain_order=True)
    return KnownPairs(
        pairs.select(typed(pairs, PAIR_COLUMNS)),
        labels.queries().select("query", "question"),
        closed=True,
        about=about,
        texts=passages if passages is not None and passages.height else None,
    )


def _out_of_turn(pairs: pl.DataFrame) -> pl.DataFrame:
    """Mark the pairs of a sample that were labelled though they were not drawn."""
    label = pl.col("grade").is_not_null() & pl.col("probability").is_null()
    chosen = (pl.col("design") == SAMPLE) & label
    return pairs.with_columns(design=pl.when(chosen).then(pl.lit(CHOSEN)).otherwise("design"))


def _of_frame(table: pl.DataFrame) -> KnownPairs:
    missing = [name for name in ("query", "doc", "grade") if name not in table.columns]
    if missing:
        raise InputError(
            f"the labels have no column {' and no column '.join(missing)}",
            fix="give query, doc, grade and probability; stratum where pairs were drawn by strata",
        )
    rows = table.select(typed(table, PAIR_COLUMNS))
    drawn = pl.when(pl.col("probability").is_not_null()).then(pl.lit(SAMPLE))
    rows = _out_of_turn(rows.with_columns(design=pl.coalesce("design", drawn, pl.lit(IMPORTED))))
    unknown = pl.col("probability").is_null() & pl.col("grade").is_not_null()
    several = rows.filter(unknown & (pl.col("design") != CHOSEN))
    if several.height and rows["probability"].count():
        query, doc = several.select(PAIR).row(0)
        raise InputError(
            f"{several.height} labels have no probability, and others have one; the first is of "
            f"query {query!r}, document {doc!r}",
            where="labels",
            fix="give 1 where the pair was labelled for certain; give the design 'chosen' where it "
            "was labelled although it was not drawn",
        )
    chances = rows["probability"].drop_nulls()
    if len(chances) and not ((chances > 0) & (chances <= 1)).all():
        raise InputError(
            "a probability of the labels is not above 0 and up to 1",
            where="labels",
            fix="give the chance with which each pair was drawn",
        )
    again = rows.filter(rows.select(PAIR).is_duplicated())
    if again.height:
        query, doc = again.select(PAIR).row(0)
        raise InputError(
            f"the labels have two rows for document {doc!r} of query {query!r}",
            where="labels",
            fix="give one row per pair; findwell.Labels settles what annotators disagree about",
        )
    return KnownPairs(rows, None, closed=bool(rows["grade"].null_count()))

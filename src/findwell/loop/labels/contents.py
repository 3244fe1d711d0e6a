"""What a database of labels holds, as tables: the pairs, and what annotators say about them."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from findwell.io.read.labels_database import gold_of_labels, states
from findwell.loop.labels.agreement import AnnotatorAgreement, annotator_agreement
from findwell.loop.labels.database import LabelsFile, now
from findwell.loop.labels.label_pool import LabelPool, read_pool

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.core.data import Gold


class LabelContents:
    """The tables of an open database; `findwell.Labels` is one that also takes labels."""

    def __init__(self, file: LabelsFile, annotator: str = "") -> None:
        self._file = file
        self.annotator = annotator

    def __len__(self) -> int:
        """Return how many pairs have a label."""
        query = "SELECT count(DISTINCT pair) FROM state WHERE kind IN ('label', 'adjudicate')"
        return int(self._file.rows(query)[0][0])

    @property
    def path(self) -> Path:
        """The file of the database."""
        return self._file.path

    def __fspath__(self) -> str:
        """Labels are given where a path is: `findwell.evaluate(run, labels)`."""
        return str(self.path)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """How the pool was made: purpose, method, depth, budget, overlap, seed, highest grade."""
        rows = self._file.rows("SELECT name, value FROM setting")
        return {name: json.loads(value) for name, value in rows}

    @property
    def highest(self) -> int:
        """The highest grade: 3 for 0 to 3, 1 for yes and no."""
        return int(self.settings.get("highest", 3))

    @property
    def guidelines(self) -> str:
        """What annotators should know; assign a text to change it, earlier ones are kept."""
        rows = self._file.rows("SELECT text FROM guideline ORDER BY number DESC LIMIT 1")
        return str(rows[0][0]) if rows else ""

    @guidelines.setter
    def guidelines(self, text: str) -> None:
        with self._file.writing() as connection:
            row = (now(), self.annotator, text)
            connection.execute(
                "INSERT INTO guideline (time, annotator, text) VALUES (?, ?, ?)", row
            )

    def queries(self) -> pl.DataFrame:
        """Return the queries: query, question, and how many pairs of it there are."""
        rows = self._file.rows(
            "SELECT query.query, question, count(pair.number) FROM query "
            "LEFT JOIN pair ON pair.query = query.number GROUP BY query.number"
        )
        schema = {"query": pl.String, "question": pl.String, "pairs": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def candidates(self) -> pl.DataFrame:
        """Return all pairs of the pool, labelled or not, in its order.

        Columns: query, doc, best (the lowest rank in any run), judge (its grade), design, stratum,
        probability (with which a pair of its stratum is in the sample), sampled.
        """
        rows = self._file.rows(
            "SELECT query.query, doc, min(rank.rank), judge, design, stratum, probability, "
            "place IS NOT NULL FROM pair JOIN query ON query.number = pair.query "
            "LEFT JOIN rank ON rank.pair = pair.number GROUP BY pair.number"
        )
        schema = {
            "query": pl.String, "doc": pl.String, "best": pl.Int64, "judge": pl.Float64,
            "design": pl.String, "stratum": pl.String, "probability": pl.Float64,
            "sampled": pl.Int64,
        }  # fmt: skip
        found = pl.DataFrame(rows, schema=schema, orient="row")
        return found.with_columns(pl.col("sampled").cast(pl.Boolean))

    def pool(self) -> LabelPool:
        """Return the pool; `pool().precision(pilot=labels)` says what a larger budget buys."""
        return read_pool(self._file, self.settings)

    def texts(self) -> pl.DataFrame:
        """Return query, question, doc, text and place of all pairs, best rank first in a query."""
        rows = self._file.rows(
            'SELECT query.query, question, doc, text, source, pair.start, pair."end" FROM pair '
            "JOIN query ON query.number = pair.query LEFT JOIN rank ON rank.pair = pair.number "
            "GROUP BY pair.number "
            "ORDER BY pair.query, min(rank.rank) IS NULL, min(rank.rank), pair.number"
        )
        names = ("query", "question", "doc", "text", "source")
        schema: dict[str, type[pl.DataType]] = dict.fromkeys(names, pl.String)
        schema |= dict.fromkeys(("source_start", "source_end"), pl.Int64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def ranks(self) -> pl.DataFrame:
        """Return query, doc, run and rank, one row for each run that retrieved a pair."""
        rows = self._file.rows(
            "SELECT query.query, doc, run.name, rank.rank FROM rank "
            "JOIN pair ON pair.number = rank.pair JOIN query ON query.number = pair.query "
            "JOIN run ON run.number = rank.run ORDER BY run.number, pair.query, rank.rank"
        )
        schema = {"query": pl.String, "doc": pl.String, "run": pl.String, "rank": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def annotators(self) -> list[str]:
        """Return who has said anything, in the order of their first word."""
        rows = self._file.rows(
            "SELECT annotator FROM event GROUP BY annotator ORDER BY min(number)"
        )
        return [name for (name,) in rows]

    def frame(self) -> pl.DataFrame:
        """Return what every annotator says now, one row for each pair, in the order of time.

        Columns: query, doc, grade, annotator, time, note, start, end, probability (with which the
        pair came into the sample; null where it is not part of it), stratum, design (depth, mtf,
        mm-ns, sample, chosen: labelled though it was not drawn, imported), state (labelled,
        skipped, unsure, adjudicated), subtopic, planned (the probability that was kept with the
        label). Of a sample that is not finished, or that was made larger, `probability` is the
        share of the pairs of its stratum that have a label by now. Only pairs before the first one
        that is still open count: the others were labelled out of turn.
        """
        with self._file.reading() as connection:
            found = states(connection)
        time = pl.from_epoch(pl.col("time").mul(1e6).cast(pl.Int64), time_unit="us")
        return found.with_columns(time.dt.replace_time_zone("UTC"))

    def history(self) -> pl.DataFrame:
        """Return everything that was ever said, undone or not, one row each."""
        rows = self._file.rows(
            "SELECT event.number, time, annotator, kind, query.query, doc, subtopic, grade, note, "
            'event.start, event."end", undoes, event.number IN (SELECT undoes FROM event) '
            "FROM event LEFT JOIN pair ON pair.number = event.pair "
            "LEFT JOIN query ON query.number = pair.query ORDER BY event.number"
        )
        schema = {
            "number": pl.Int64, "time": pl.Float64, "annotator": pl.String, "kind": pl.String,
            "query": pl.String, "doc": pl.String, "subtopic": pl.String, "grade": pl.Float64,
            "note": pl.String, "start": pl.Int64, "end": pl.Int64, "undoes": pl.Int64,
            "undone": pl.Boolean,
        }  # fmt: skip
        typed = [(*row[:-1], bool(row[-1])) for row in rows]
        return pl.DataFrame(typed, schema=schema, orient="row")

    def gold(self) -> Gold:
        """Return the labels as a gold: the adjudicated grade, or else what most annotators say.

        Where no grade is the most frequent, the middle one counts, of two the lower; a finding
        says how many such pairs wait for adjudication.
        """
        with self._file.reading() as connection:
            return gold_of_labels(connection)

    def agreement(
        self, *, rel: float = 1.0, level: float = 0.95, samples: int = 2000
    ) -> AnnotatorAgreement:
        """Return how far the annotators agree: raw, Cohen's and Fleiss' κ, α, AC1, prevalence.

        `rel` is the lowest grade that counts as relevant, `samples` the size of the bootstrap over
        pairs that the intervals come from.
        """
        return annotator_agreement(
            self.frame(), highest=self.highest, rel=rel, level=level, samples=samples
        )

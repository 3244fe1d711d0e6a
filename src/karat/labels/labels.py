"""`karat.Labels`: what people say about the pairs of a pool, saved as it is said."""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from karat.errors import InputError, OptionError, SaveError, nearest
from karat.forks import refuse_after_fork
from karat.labels.agreement import AnnotatorAgreement, annotator_agreement
from karat.labels.database import BUSY_TIMEOUT, LabelsFile, now
from karat.labels.pairs import Disagreement, LabellingProgress, Pair, Said
from karat.labels.plan import LabellingPlan, count_kinds
from karat.read.labels_database import FILE, gold_of_labels, states

if TYPE_CHECKING:
    import sqlite3

    from karat.core.data import Gold

LEASE = 600.0  # seconds for which a pair that one annotator looks at is not offered to others
SAY = """
INSERT INTO event (
    time, annotator, kind, pair, subtopic, grade, note, start, "end", probability, stratum, design
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
PAUSE = 300.0  # seconds after which an annotator was doing something else


class Labels:
    """The labels of a pool: open them, ask for the next pair, say its grade.

    Everything is on disk before a call returns; several processes may work at the same time, and
    nothing that was said is ever deleted: an undo is recorded, too.

    >>> import tempfile, karat
    >>> folder = tempfile.mkdtemp()
    >>> runs = [{"q1": ["d1", "d2"]}, {"q1": ["d2", "d3"]}]
    >>> _ = karat.pool(runs, f"{folder}/pool", queries={"q1": "Why?"}, corpus={"d1": "One."})
    >>> with karat.Labels.open(f"{folder}/pool", annotator="ann") as labels:
    ...     pair = labels.next()
    ...     labels.set(pair.query, pair.doc, 2)
    ...     labels.frame().select("query", "grade", "annotator").rows()
    [('q1', 2.0, 'ann')]
    """

    def __init__(self, file: LabelsFile, annotator: str = "") -> None:
        self._file = file
        self.annotator = annotator

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        annotator: str = "",
        *,
        timeout: float = BUSY_TIMEOUT,
    ) -> Self:
        """Open the folder of a pool, or the labels.db in it.

        What is said comes from the `annotator`, unless a call names another one. `timeout` is how
        many seconds a call waits for other processes that write.
        """
        refuse_after_fork()
        found = Path(path)
        if found.is_dir():
            found /= FILE
        if not found.is_file():
            raise InputError(
                "there are no labels here",
                where=os.fspath(path),
                fix="name the folder that karat pool made, or the labels.db in it",
            )
        return cls(LabelsFile(found, timeout=timeout), annotator)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __repr__(self) -> str:
        return f"Labels({str(self.path)!r})"

    def __len__(self) -> int:
        """Return how many pairs have a label."""
        query = "SELECT count(DISTINCT pair) FROM state WHERE kind IN ('label', 'adjudicate')"
        return int(self._file.rows(query)[0][0])

    @property
    def path(self) -> Path:
        """The file of the database."""
        return self._file.path

    def __fspath__(self) -> str:
        """Labels are given where a path is: `karat.evaluate(run, labels)`."""
        return str(self.path)

    # what the pool is

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

    def annotators(self) -> list[str]:
        """Return who has said anything, in the order of their first word."""
        rows = self._file.rows(
            "SELECT annotator FROM event GROUP BY annotator ORDER BY min(number)"
        )
        return [name for (name,) in rows]

    # saying something

    def set(
        self,
        query: str,
        doc: str,
        grade: float,
        *,
        annotator: str | None = None,
        note: str = "",
        start: int | None = None,
        end: int | None = None,
        subtopic: str = "",
    ) -> None:
        """Label a pair; `start` and `end` are the characters of the text that matter.

        A later label of the same annotator takes the place of an earlier one, which stays in the
        `history`. It is on disk when this returns.
        """
        self._say(
            "label", query, doc, annotator, grade=self._grade(grade), note=note, start=start,
            end=end, subtopic=subtopic,
        )  # fmt: skip

    def skip(self, query: str, doc: str, *, annotator: str | None = None, note: str = "") -> None:
        """Leave a pair to others."""
        self._say("skip", query, doc, annotator, note=note)

    def unsure(self, query: str, doc: str, *, annotator: str | None = None, note: str = "") -> None:
        """Say that the grade is not clear: the pair is among the `disagreements`."""
        self._say("unsure", query, doc, annotator, note=note)

    def note(self, query: str, doc: str, text: str, *, annotator: str | None = None) -> None:
        """Write a note about a pair, labelled or not."""
        self._say("note", query, doc, annotator, note=text)

    def adjudicate(
        self,
        query: str,
        doc: str,
        grade: float,
        *,
        annotator: str | None = None,
        note: str = "",
        start: int | None = None,
        end: int | None = None,
        subtopic: str = "",
    ) -> None:
        """Decide about a pair: this grade counts, whatever annotators said before."""
        self._say(
            "adjudicate", query, doc, annotator, grade=self._grade(grade), note=note, start=start,
            end=end, subtopic=subtopic,
        )  # fmt: skip

    def undo(self, annotator: str | None = None) -> Pair | None:
        """Take back the last thing that this annotator said; None if there is nothing.

        It may be called again and again. What was taken back stays in the `history`.
        """
        name = self._named(annotator)
        with self._file.writing() as connection:
            last = connection.execute(
                "SELECT number, pair FROM live WHERE annotator = ? ORDER BY number DESC LIMIT 1",
                (name,),
            ).fetchone()
            if last is None:
                return None
            undone = (now(), name, "undo", last[1], last[0])
            connection.execute(
                "INSERT INTO event (time, annotator, kind, pair, undoes) VALUES (?, ?, ?, ?, ?)",
                undone,
            )
        return self._pair(last[1], name)

    def _say(
        self,
        kind: str,
        query: str,
        doc: str,
        annotator: str | None,
        *,
        grade: float | None = None,
        note: str = "",
        start: int | None = None,
        end: int | None = None,
        subtopic: str = "",
    ) -> None:
        name = self._named(annotator)
        with self._file.writing() as connection:
            pair, text, *design = self._find(connection, query, doc)
            _check_span(start, end, text, query, doc)
            row = (now(), name, kind, pair, subtopic, grade, note, start, end, *design)
            connection.execute(SAY, row)
            connection.execute("DELETE FROM offer WHERE annotator = ?", (name,))

    def _find(self, connection: sqlite3.Connection, query: str, doc: str) -> tuple[Any, ...]:
        """Return the pair, its text and its design; a pair that is not in the pool is an error."""
        row = connection.execute(
            "SELECT pair.number, text, probability, stratum, design FROM pair "
            "JOIN query ON query.number = pair.query WHERE query.query = ? AND doc = ?",
            (query, doc),
        ).fetchone()
        if row is not None:
            return tuple(row)
        known = [name for (name,) in connection.execute("SELECT query FROM query")]
        if query not in known:
            what, close = f"query {query!r} is not in the pool", nearest(query, known, most=1)
        else:
            docs = connection.execute(
                "SELECT doc FROM pair JOIN query ON query.number = pair.query "
                "WHERE query.query = ?", (query,)
            )  # fmt: skip
            close = nearest(doc, [name for (name,) in docs], most=1)
            what = f"document {doc!r} is not in the pool for query {query!r}"
        raise InputError(
            f"{what}; nothing was saved",
            where=str(self.path),
            fix=close or "label what the pool holds, or import it with add=True",
        )

    def _named(self, annotator: str | None) -> str:
        name = (self.annotator if annotator is None else annotator).strip()
        if not name:
            raise OptionError(
                "nobody is named as the annotator", fix='say who: annotator="anna" (--annotator)'
            )
        return name

    def _grade(self, grade: float) -> float:
        if math.isfinite(grade) and float(grade).is_integer() and 0 <= grade <= self.highest:
            return float(grade)
        raise OptionError(
            f"the grade is {grade!r}; nothing was saved",
            fix=f"give a whole number from 0 to {self.highest}",
        )

    # what to label

    def next(self, annotator: str | None = None) -> Pair | None:
        """Return the pair to label next; None when there is nothing left for this annotator.

        Nobody sees a label of somebody else. A pair that somebody looks at just now is not offered
        to others, unless it is one of those that all should label.
        """
        name = self._named(annotator)
        with self._file.reading() as connection:
            said, offered = self._said(connection), self._offered(connection, name)
            number = self._plan.choose(name, said, offered)
        if number is None:
            return None
        self._offer(name, number)
        done = count_kinds(said, name)
        left = self._plan.left(name, said)
        return self._pair(
            number, name, position=sum(done.values()) + 1, total=sum(done.values()) + left
        )

    def pair(self, query: str, doc: str, *, annotator: str | None = None) -> Pair:
        """Return a pair with what this annotator said about it."""
        with self._file.reading() as connection:
            number = self._find(connection, query, doc)[0]
        return self._pair(number, self._named(annotator))

    def pairs(self, query: str, *, annotator: str | None = None) -> list[Pair]:
        """Return all pairs of a query, best rank first, with what this annotator said."""
        rows = self._file.rows(
            "SELECT pair.number FROM pair JOIN query ON query.number = pair.query "
            "LEFT JOIN rank ON rank.pair = pair.number WHERE query.query = ? "
            "GROUP BY pair.number ORDER BY min(rank.rank) IS NULL, min(rank.rank), pair.number",
            (query,),
        )
        name = self._named(annotator)
        return [self._pair(number, name) for (number,) in rows]

    def progress(self, annotator: str | None = None) -> LabellingProgress:
        """Say how far an annotator has come, and how long the rest will take at this pace."""
        name = self._named(annotator)
        with self._file.reading() as connection:
            said = self._said(connection)
            times = connection.execute(
                "SELECT time FROM event WHERE annotator = ? ORDER BY number DESC LIMIT 200", (name,)
            ).fetchall()
        done, left = count_kinds(said, name), self._plan.left(name, said)
        gaps = [later - sooner for (later,), (sooner,) in pairwise(times)]
        gaps = [gap for gap in gaps if 0 < gap < PAUSE]
        pace = left * statistics.median(gaps) if len(gaps) >= 3 else None
        return LabellingProgress(done["label"], done["skip"], done["unsure"], left, pace)

    def disagreements(self) -> list[Disagreement]:
        """Return the pairs to adjudicate: labelled differently, or somebody is not sure."""
        with self._file.reading() as connection:
            said = self._said(connection)
        found = []
        for number, each in sorted(said.items()):
            voices = [one for one in each if one.kind in ("label", "unsure")]
            decided = max((one.number for one in each if one.kind == "adjudicate"), default=0)
            differ = len({one.grade for one in voices if one.kind == "label"}) > 1
            unsure = any(one.kind == "unsure" for one in voices)
            if (differ or unsure) and not decided:
                pair = self._pair(number, "")
                grades = {one.annotator: one.grade for one in voices}
                notes = {one.annotator: one.note for one in voices if one.note}
                found.append(
                    Disagreement(pair.query, pair.question, pair.doc, pair.text, grades, notes)
                )
        return found

    # what was said

    def frame(self) -> pl.DataFrame:
        """Return what every annotator says now, one row for each pair, in the order of time.

        Columns: query, doc, grade, annotator, time, note, start, end, probability (with which the
        pair came into the sample; null where it was not sampled), stratum, design (depth, mtf,
        mm-ns, sample, imported), state (labelled, skipped, unsure, adjudicated), subtopic, planned.
        Of a sample that is not finished `probability` is `planned`, which was kept with the label,
        times the share of its stratum that has a label so far.
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

    # inside

    @cached_property
    def _plan(self) -> LabellingPlan:
        return LabellingPlan.of(self._file, self.settings)

    def _said(self, connection: sqlite3.Connection) -> dict[int, list[Said]]:
        rows = connection.execute(
            'SELECT pair, annotator, kind, grade, note, start, "end", number FROM state'
        )
        found: dict[int, list[Said]] = {}
        for pair, *rest in rows:
            found.setdefault(pair, []).append(Said(*rest))
        return found

    def _offered(self, connection: sqlite3.Connection, name: str) -> frozenset[int]:
        rows = connection.execute(
            "SELECT pair FROM offer WHERE annotator <> ? AND time > ?", (name, now() - LEASE)
        )
        return frozenset(pair for (pair,) in rows)

    def _offer(self, name: str, pair: int) -> None:
        """Note who looks at a pair; without it two may label the same one, which loses nothing."""
        with contextlib.suppress(SaveError), self._file.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO offer VALUES (?, ?, ?)", (name, pair, now()))

    def _pair(self, number: int, name: str, *, position: int = 0, total: int = 0) -> Pair:
        row = self._file.rows(
            "SELECT query.query, question, doc, text, source, pair.start, quote FROM pair "
            "JOIN query ON query.number = pair.query WHERE pair.number = ?",
            (number,),
        )[0]
        query, question, doc, text, source, source_start, quote = row
        said = self._file.rows(
            'SELECT kind, grade, note, start, "end" FROM state '
            "WHERE pair = ? AND annotator = ? AND kind <> 'adjudicate' "
            "ORDER BY number DESC LIMIT 1",
            (number, name),
        )
        kind, grade, note, start, end = said[0] if said else ("", None, "", None, None)
        state = {"label": "labelled", "skip": "skipped", "unsure": "unsure"}.get(kind, "")
        return Pair(
            query, question, doc, text, position, total, source, source_start, quote or "",
            state, grade, note, start, end,
        )  # fmt: skip


def _check_span(start: int | None, end: int | None, text: str, query: str, doc: str) -> None:
    if start is None and end is None:
        return
    if start is None or end is None or not 0 <= start < end <= len(text):
        raise OptionError(
            f"characters {start} to {end} are not in the text of document {doc!r} for query "
            f"{query!r}, which has {len(text)}; nothing was saved",
            fix="give start and end with 0 <= start < end <= length",
        )

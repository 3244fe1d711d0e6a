"""`findwell.Labels`: what people say about the pairs of a pool, saved as it is said."""

from __future__ import annotations

import contextlib
import math
import os
import statistics
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from findwell.core.errors import InputError, OptionError, SaveError, nearest
from findwell.core.forks import refuse_after_fork
from findwell.io.read.labels_database import FILE
from findwell.io.storage.database import BUSY_TIMEOUT
from findwell.loop.labels.contents import LabelContents
from findwell.loop.labels.database import SAY, LabelsFile, now
from findwell.loop.labels.exports import export_labels
from findwell.loop.labels.imports import IMPORTED, add_labels, read_labels
from findwell.loop.labels.label_pool import extend_pool
from findwell.loop.labels.pairs import Disagreement, LabellingProgress, Pair, Said
from findwell.loop.labels.plan import LabellingPlan, count_kinds

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

LEASE = 600.0  # seconds for which a pair that one annotator looks at is not offered to others
PAUSE = 300.0  # seconds after which an annotator was doing something else


class Labels(LabelContents):
    """The labels of a pool: open them, ask for the next pair, say its grade.

    Everything is on disk before a call returns; several processes may work at the same time, and
    nothing that was said is ever deleted: an undo is recorded, too.

    >>> import tempfile, findwell
    >>> folder = tempfile.mkdtemp()
    >>> runs = [{"q1": ["d1", "d2"]}, {"q1": ["d2", "d3"]}]
    >>> _ = findwell.pool(runs, f"{folder}/pool", queries={"q1": "Why?"}, corpus={"d1": "One."})
    >>> with findwell.Labels.open(f"{folder}/pool", annotator="ann") as labels:
    ...     pair = labels.next()
    ...     labels.set(pair.query, pair.doc, 2)
    ...     labels.frame().select("query", "grade", "annotator").rows()
    [('q1', 2.0, 'ann')]
    """

    _planned: tuple[tuple[Any, ...], LabellingPlan] | None = None  # and what it was made for

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
                fix="name the folder that findwell pool made, or the labels.db in it",
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

    # saying something

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Let no other process write between what is read and what is written inside.

        So a label can be compared with what is there before it is saved. All that is written inside
        is on disk when this ends, or nothing of it if it ends with an error.
        """
        with self._file.writing():
            yield

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
            "SELECT pair.number, text, "
            "CASE WHEN place IS NOT NULL THEN probability END, stratum, "
            "CASE WHEN design = 'sample' AND place IS NULL THEN 'chosen' ELSE design END FROM pair "
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
            plan = self._plan(connection)
            number = plan.choose(name, said, offered)
        if number is None:
            return None
        self._offer(name, number)
        done = count_kinds(said, name)
        left = plan.left(name, said)
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
            said, plan = self._said(connection), self._plan(connection)
            times = connection.execute(
                "SELECT time FROM event WHERE annotator = ? ORDER BY number DESC LIMIT 200", (name,)
            ).fetchall()
        done, left = count_kinds(said, name), plan.left(name, said)
        gaps = [later - sooner for (later,), (sooner,) in pairwise(times)]
        gaps = [gap for gap in gaps if 0 < gap < PAUSE]
        pace = left * statistics.median(gaps) if len(gaps) >= 3 else None
        return LabellingProgress(done["label"], done["skip"], done["unsure"], left, pace)

    def extend(self, budget: int) -> int:
        """Have more pairs labelled, `budget` in all, and return how many these are.

        A sample is made larger by further pairs with the same keys, so that old and new labels are
        one sample.
        """
        if type(budget) is not int or budget < 1:
            raise OptionError(f"budget={budget!r} is not a whole number from 1", fix="such as 400")
        with self._file.writing() as connection:
            extend_pool(connection, self.pool(), budget)
        self.__dict__.pop("settings", None)
        return min(budget, self.pool().pairs.height)

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

    # files of others

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002
        *,
        run: str | None = None,
    ) -> None:
        """Write the labels, whole or not at all; without a `format` the file's name tells it.

        - `csv`, `tsv`, `parquet`, `jsonl`: every label of every annotator, with its inclusion
          probability and stratum; findwell reads it back, as labels and as a gold.
        - `qrels`, `subtopic-qrels`, and `beir`, a folder: the grade that counts of each pair.
        - `ragas`, `deepeval` (JSON lines) and `autorag` (a folder with qa.parquet and
          corpus.parquet): what is relevant, without grades.
        - `phoenix`: annotations of the documents of a `run`, whose queries are spans.
        - `spans`: a gold of quotes and places, from which `findwell anchor` goes on.
        """
        export_labels(self, path, format, run)

    def import_labels(
        self,
        data: object,
        format: str | None = None,  # noqa: A002
        *,
        annotator: str | None = None,
        add: bool = False,
        run: str | None = None,
    ) -> int:
        """Add labels from elsewhere, all or none, and return how many these are.

        `data` is what `export` writes, another pool, or any gold that findwell reads. A label
        without an annotator is of `annotator`, by default "imported". A pair that is not in the
        pool is an error; with `add` it is added to it.
        """
        name = (annotator or self.annotator or IMPORTED).strip()
        given = read_labels(self, data, format, name, run)
        if not given:
            raise InputError("there is no label to import", fix="give at least one labelled pair")
        where = os.fspath(data) if isinstance(data, str | os.PathLike) else "labels"
        with self._file.writing() as connection:
            how: dict[str, Any] = {"highest": self.highest, "now": now(), "add": add}
            return add_labels(connection, given, where=where, **how)

    # inside

    def _plan(self, connection: sqlite3.Connection) -> LabellingPlan:
        """Return the plan, made anew when this or another process has changed the pool."""
        version = connection.execute(
            "SELECT (SELECT value FROM setting WHERE name = 'budget'), "
            "(SELECT max(number) FROM pair)"
        ).fetchone()
        if self._planned is None or self._planned[0] != version:
            self.__dict__.pop("settings", None)
            self._planned = version, LabellingPlan.of(self._file, self.settings)
        return self._planned[1]

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
            'SELECT kind, grade, note, start, "end" FROM live '  # faster than all states
            "WHERE pair = ? AND annotator = ? AND kind NOT IN ('adjudicate', 'note') "
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

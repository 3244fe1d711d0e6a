"""`findwell.labels.Labels`: what people say about the pairs of a pool, saved as it is said.

The database is SQLite, on disk before a call returns, and safe for several processes. Its events
are only added to (`findwell.io.read.labels_database`); everything else is read from them.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from findwell.core.errors import InputError, OptionError, SaveError, nearest, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.io.read import path_of
from findwell.io.read.labels_database import (
    FILE,
    INSERT_EVENT,
    check_layout,
    gold_of_labels,
    states,
    table,
    texts_of_pairs,
)
from findwell.io.storage.database import BUSY_TIMEOUT, DurableFile, DurableKind
from findwell.judges.aspects.built_in import RELEVANCE
from findwell.loop.labels.exchange import IMPORTED_DESIGN, add_labels, export_labels, import_labels
from findwell.loop.labels.label_pool import (
    GRADING_EVENTS,
    LabellingPlan,
    LabelPool,
    Said,
    extend_pool,
    read_pool,
    said_by,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from findwell.core.data import Gold
    from findwell.loop.labels.agree import Agreement

LABELS_DATABASE = DurableKind("labels", "Labels.open", check_layout)
LEASE_SECONDS = 600.0  # for which a pair that one annotator looks at is not offered to others
PAUSE_SECONDS = 300.0  # after which an annotator was doing something else
NAME_LENGTH = 80  # characters of an annotator's name
GRADE_NAMES = {0: "Not relevant", 1: "Related", 2: "Relevant", 3: "Fully answers"}
STATES = {"label": "labelled", "skip": "skipped", "unsure": "unsure"}  # by kind of event
PAIRS = "FROM pair JOIN query ON query.number = pair.query "


@dataclass(frozen=True, slots=True)
class GradeChoice:
    """A grade, the key that chooses it, and what it means."""

    grade: int
    key: str
    name: str
    about: str


def scale_of(highest: int) -> list[GradeChoice]:
    """Return the grades of a scale: yes and no if 1 is the highest, otherwise 0 to the highest.

    From 0 to 3 they mean what they mean to a judge, so that both can be compared.

    >>> [f"{each.key} {each.name}" for each in scale_of(1)]
    ['y Relevant', 'n Not relevant']
    >>> [each.key for each in scale_of(3)]
    ['0', '1', '2', '3']
    """
    if highest == 1:
        return [
            GradeChoice(1, "y", "Relevant", "of use for answering, in whole or in part"),
            GradeChoice(0, "n", GRADE_NAMES[0], RELEVANCE.grades[0]),
        ]
    names = {grade: f"Grade {grade}" for grade in range(highest + 1)} | {0: GRADE_NAMES[0]}
    about = {0: RELEVANCE.grades[0], highest: "the best grade"}
    if highest == max(GRADE_NAMES):
        names, about = GRADE_NAMES, dict(RELEVANCE.grades)
    return [GradeChoice(each, str(each), names[each], about.get(each, "")) for each in names]


def annotator_name(name: str) -> str:
    """Return the name of an annotator without the blanks around it, or say what is wrong with it.

    >>> annotator_name(" Zoë ")
    'Zoë'
    """
    name = name.strip()
    if 0 < len(name) <= NAME_LENGTH and name.isprintable():
        return name
    raise OptionError(
        "this is not a valid name of an annotator",
        fix=f"give a name of 1 to {NAME_LENGTH} letters, without control characters",
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a passage that was retrieved for it, as it is shown to an annotator."""

    query: str
    question: str
    doc: str
    text: str
    source: str | None = None  # the document of the passage, and where it stands in it
    source_start: int | None = None
    quote: str = ""  # what the judge quoted; to be shown only on request, since it biases
    # what this annotator said before
    state: str = ""  # labelled, skipped, unsure, or nothing
    grade: float | None = None
    note: str = ""
    start: int | None = None
    end: int | None = None
    position: int = 0  # from 1, among what this annotator has done and has to do
    total: int = 0


@dataclass(frozen=True, slots=True)
class LabellingProgress:
    """How far an annotator has come."""

    labelled: int
    skipped: int
    unsure: int
    left: int
    seconds_left: float | None  # None: too little is known about the pace
    planned: int = 0  # what there was to label before this annotator began

    @property
    def total(self) -> int:
        """What there is to label; a passage that is skipped may be replaced by another one."""
        return max(self.planned, self.labelled + self.left)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pair that annotators label differently, or of which one is not sure."""

    query: str
    question: str
    doc: str
    text: str
    grades: dict[str, float | None]  # of each annotator; None: not sure
    notes: dict[str, str]


class Remark(TypedDict, total=False):
    """What may be said about a pair in addition to its grade."""

    note: str
    start: int | None  # the characters of the text that matter
    end: int | None
    subtopic: str


@takes_options()
class Labels:
    """The labels of a pool: open them, ask for the next pair, say its grade.

    Everything is on disk before a call returns; several processes may work at the same time, and
    nothing that was said is ever deleted: an undo is recorded, too.

    >>> import tempfile, findwell
    >>> folder = tempfile.mkdtemp()
    >>> runs = [{"q1": ["d1", "d2"]}, {"q1": ["d2", "d3"]}]
    >>> texts = {"queries": {"q1": "Why?"}, "corpus": {"d1": "One."}}
    >>> _ = findwell.labels.pool(runs, f"{folder}/pool", **texts)
    >>> with findwell.labels.Labels.open(f"{folder}/pool", annotator="ann") as labels:
    ...     pair = labels.next()
    ...     labels.set(pair.query, pair.doc, 2)
    ...     labels.frame().select("query", "grade", "annotator").rows()
    [('q1', 2.0, 'ann')]
    """

    _planned: tuple[tuple[Any, ...], LabellingPlan] | None = None  # and what it was made for

    def __init__(self, file: DurableFile, annotator: str = "") -> None:
        self._file = file
        self.annotator = annotator

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], annotator: str = "", *, timeout: float = BUSY_TIMEOUT
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
                fix="name the folder that findwell labels pool made, or the labels.db in it",
            )
        return cls(DurableFile(found, LABELS_DATABASE, timeout=timeout), annotator)

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
        """Labels are given where a path is: `findwell.evaluate(run, labels)`."""
        return str(self.path)

    # saying something

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Let no other process write between what is read and what is written inside.

        So a label can be compared with what is there before it is saved. All that is written inside
        is on disk when this ends, or nothing of it if it ends with an error.
        """
        with self._file.writing():
            yield

    @takes_options(Remark)
    def set(
        self,
        query: str,
        doc: str,
        grade: float,
        *,
        annotator: str | None = None,
        **remark: Unpack[Remark],
    ) -> None:
        """Label a pair, with a `note` and a `subtopic` where there is one.

        `start` and `end` are the characters of the text that matter. A later label of the same
        annotator replaces an earlier one, which stays in the `history`. It is on disk when this
        returns.
        """
        self.say("label", query, doc, grade, annotator=annotator, **remark)

    @takes_options(Remark)
    def adjudicate(
        self,
        query: str,
        doc: str,
        grade: float,
        *,
        annotator: str | None = None,
        **remark: Unpack[Remark],
    ) -> None:
        """Decide about a pair: this grade counts, whatever annotators said before."""
        self.say("adjudicate", query, doc, grade, annotator=annotator, **remark)

    def skip(self, query: str, doc: str, *, annotator: str | None = None, note: str = "") -> None:
        """Leave a pair to others."""
        self.say("skip", query, doc, annotator=annotator, note=note)

    def unsure(self, query: str, doc: str, *, annotator: str | None = None, note: str = "") -> None:
        """Say that the grade is not clear: the pair is among the `disagreements`."""
        self.say("unsure", query, doc, annotator=annotator, note=note)

    def note(self, query: str, doc: str, text: str, *, annotator: str | None = None) -> None:
        """Write a note about a pair, labelled or not."""
        self.say("note", query, doc, annotator=annotator, note=text)

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
            connection.execute(
                "INSERT INTO event (time, annotator, kind, pair, undoes) VALUES (?, ?, ?, ?, ?)",
                (time.time(), name, "undo", last[1], last[0]),
            )
        return self._pair(last[1], name)

    def say(
        self,
        kind: str,
        query: str,
        doc: str,
        grade: float | None = None,
        *,
        annotator: str | None = None,
        note: str = "",
        start: int | None = None,
        end: int | None = None,
        subtopic: str = "",
    ) -> None:
        """Save an event about a pair: a label, skip, unsure, note, or adjudicate."""
        if kind in GRADING_EVENTS and (grade is None or grade not in range(self.highest + 1)):
            raise OptionError(
                f"the grade is {grade!r}; nothing was saved",
                fix=f"give a whole number from 0 to {self.highest}",
            )
        value = None if grade is None else float(grade)
        name = self._named(annotator)
        with self._file.writing() as connection:
            pair, text, *design = self._find(connection, query, doc)
            marked = start is not None or end is not None
            if marked and (start is None or end is None or not 0 <= start < end <= len(text)):
                raise OptionError(
                    f"characters {start} to {end} are not in the text of document {doc!r} for "
                    f"query {query!r}, which has {len(text)}; nothing was saved",
                    fix="give start and end with 0 <= start < end <= length",
                )
            row = (time.time(), name, kind, pair, subtopic, value, note, start, end, *design)
            connection.execute(INSERT_EVENT, row)
            connection.execute("DELETE FROM offer WHERE annotator = ?", (name,))

    def _find(self, connection: sqlite3.Connection, query: str, doc: str) -> tuple[Any, ...]:
        """Return the pair, its text and its design; a pair that is not in the pool is an error."""
        row = connection.execute(
            "SELECT pair.number, text, CASE WHEN place IS NOT NULL THEN probability END, stratum, "
            "CASE WHEN design = 'sample' AND place IS NULL THEN 'chosen' ELSE design END "
            f"{PAIRS} WHERE query.query = ? AND doc = ?",
            (query, doc),
        ).fetchone()
        if row is not None:
            return tuple(row)
        known = [name for (name,) in connection.execute("SELECT query FROM query")]
        if query not in known:
            what, close = f"query {query!r} is not in the pool", nearest(query, known, most=1)
        else:
            docs = connection.execute(f"SELECT doc {PAIRS} WHERE query.query = ?", (query,))
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
                "no annotator is named", fix='say who: annotator="anna" (--annotator)'
            )
        return name

    # what to label

    def next(self, annotator: str | None = None) -> Pair | None:
        """Return the pair to label next; None when there is nothing left for this annotator.

        Annotators do not see the labels of others. A pair that one of them is looking at is not
        offered to others, unless it is one of those that all should label.
        """
        name = self._named(annotator)
        with self._file.reading() as connection:
            said, plan = self._said(connection), self._plan(connection)
            rows = connection.execute(
                "SELECT pair FROM offer WHERE annotator <> ? AND time > ?",
                (name, time.time() - LEASE_SECONDS),
            )
            number = plan.choose(name, said, frozenset(pair for (pair,) in rows))
        if number is None:
            return None
        # without this note of who looks at it two may label the same pair, which loses nothing
        with contextlib.suppress(SaveError), self._file.writing() as connection:
            offer = (name, number, time.time())
            connection.execute("INSERT OR REPLACE INTO offer VALUES (?, ?, ?)", offer)
        done = len(said_by(name, said))
        return self._pair(number, name, position=done + 1, total=done + plan.left(name, said))

    def pair(self, query: str, doc: str, *, annotator: str | None = None) -> Pair:
        """Return a pair with what this annotator said about it."""
        with self._file.reading() as connection:
            number = self._find(connection, query, doc)[0]
        return self._pair(number, self._named(annotator))

    def pairs(self, query: str, *, annotator: str | None = None) -> list[Pair]:
        """Return all pairs of a query, best rank first, with what this annotator said."""
        rows = self._file.rows(
            f"SELECT pair.number {PAIRS} LEFT JOIN rank ON rank.pair = pair.number "
            "WHERE query.query = ? GROUP BY pair.number "
            "ORDER BY min(rank.rank) IS NULL, min(rank.rank), pair.number",
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
        done = Counter(one.kind for _, one in said_by(name, said))
        left = plan.left(name, said)
        others = {
            pair: [one for one in each if one.annotator != name] for pair, each in said.items()
        }
        gaps = [later - sooner for (later,), (sooner,) in pairwise(times)]
        gaps = [gap for gap in gaps if 0 < gap < PAUSE_SECONDS]
        pace = left * statistics.median(gaps) if len(gaps) >= 3 else None
        counts = done["label"], done["skip"], done["unsure"]
        return LabellingProgress(*counts, left, pace, plan.left(name, others))

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
        """Return the pairs to adjudicate: labelled differently, or an annotator is not sure."""
        with self._file.reading() as connection:
            said = self._said(connection)
        found = []
        for number, each in sorted(said.items()):
            voices = [one for one in each if one.kind in ("label", "unsure")]
            differing = {one.grade for one in voices}  # None: an annotator is not sure
            decided = any(one.kind == "adjudicate" for one in each)
            if not decided and (len(differing) > 1 or None in differing):
                pair = self._pair(number, "")
                grades = {one.annotator: one.grade for one in voices}
                notes = {one.annotator: one.note for one in voices if one.note}
                found.append(
                    Disagreement(pair.query, pair.question, pair.doc, pair.text, grades, notes)
                )
        return found

    def _plan(self, connection: sqlite3.Connection) -> LabellingPlan:
        """Return the plan, made again when this or another process has changed the pool."""
        version = connection.execute(
            "SELECT (SELECT value FROM setting WHERE name = 'budget'), "
            "(SELECT max(number) FROM pair)"
        ).fetchone()
        if self._planned is None or self._planned[0] != version:
            self.__dict__.pop("settings", None)
            self._planned = version, LabellingPlan.of(self._file, self.settings)
        return self._planned[1]

    @staticmethod
    def _said(connection: sqlite3.Connection) -> dict[int, list[Said]]:
        found: dict[int, list[Said]] = {}
        for pair, *rest in connection.execute(
            "SELECT pair, annotator, kind, grade, note FROM state"
        ):
            found.setdefault(pair, []).append(Said(*rest))
        return found

    def _pair(self, number: int, name: str, *, position: int = 0, total: int = 0) -> Pair:
        row = self._file.rows(
            "SELECT query.query, question, doc, text, source, pair.start, coalesce(quote, '') "
            f"{PAIRS} WHERE pair.number = ?",
            (number,),
        )[0]
        said = self._file.rows(
            'SELECT kind, grade, note, start, "end" FROM live '  # faster than all states
            "WHERE pair = ? AND annotator = ? AND kind NOT IN ('adjudicate', 'note') "
            "ORDER BY number DESC LIMIT 1",
            (number, name),
        )
        pair = replace(Pair(*row), position=position, total=total)
        if not said:
            return pair
        kind, grade, note, start, end = said[0]
        return replace(pair, state=STATES[kind], grade=grade, note=note, start=start, end=end)

    # what it holds

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
            connection.execute(
                "INSERT INTO guideline (time, annotator, text) VALUES (?, ?, ?)",
                (time.time(), self.annotator, text),
            )

    def annotators(self) -> list[str]:
        """Return who has said anything, in the order of their first word."""
        rows = self._file.rows(
            "SELECT annotator FROM event GROUP BY annotator ORDER BY min(number)"
        )
        return [name for (name,) in rows]

    def queries(self) -> pl.DataFrame:
        """Return the queries: query, question, and how many pairs of it there are."""
        rows = self._file.rows(
            "SELECT query.query, question, count(pair.number) FROM query "
            "LEFT JOIN pair ON pair.query = query.number GROUP BY query.number"
        )
        return table(rows, "query", "question", "pairs")

    def candidates(self) -> pl.DataFrame:
        """Return all pairs of the pool, labelled or not, in its order.

        Columns: query, doc, best (the lowest rank in any run), judge (its grade), design, stratum,
        probability (with which a pair of its stratum is in the sample), sampled.
        """
        rows = self._file.rows(
            "SELECT query.query, doc, min(rank.rank), judge, design, stratum, probability, "
            f"place IS NOT NULL {PAIRS} LEFT JOIN rank ON rank.pair = pair.number "
            "GROUP BY pair.number"
        )
        names = ("query", "doc", "best", "judge", "design", "stratum", "probability", "sampled")
        return table(rows, *names)

    def pool(self) -> LabelPool:
        """Return the pool; `pool().precision(pilot=labels)` says what a larger budget buys."""
        return read_pool(self._file, self.settings)

    def texts(self) -> pl.DataFrame:
        """Return query, question, doc, text and place of all pairs, best rank first in a query."""
        with self._file.reading() as connection:
            return texts_of_pairs(connection)

    def ranks(self) -> pl.DataFrame:
        """Return query, doc, run and rank, one row for each run that retrieved a pair."""
        rows = self._file.rows(
            f"SELECT query.query, doc, run.name, rank.rank {PAIRS} "
            "JOIN rank ON rank.pair = pair.number JOIN run ON run.number = rank.run "
            "ORDER BY run.number, pair.query, rank.rank"
        )
        return table(rows, "query", "doc", "run", "rank")

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
        moment = pl.from_epoch(pl.col("time").mul(1e6).cast(pl.Int64), time_unit="us")
        return found.with_columns(moment.dt.replace_time_zone("UTC"))

    def history(self) -> pl.DataFrame:
        """Return everything that was said, undone or not, one row each."""
        rows = self._file.rows(
            "SELECT event.number, time, annotator, kind, query.query, doc, subtopic, grade, note, "
            'event.start, event."end", undoes, event.number IN (SELECT undoes FROM event WHERE '
            "undoes IS NOT NULL) FROM event LEFT JOIN pair ON pair.number = event.pair "
            "LEFT JOIN query ON query.number = pair.query ORDER BY event.number"
        )
        return table(
            rows, "number", "time", "annotator", "kind", "query", "doc", "subtopic", "grade",
            "note", "start", "end", "undoes", "undone",
        )  # fmt: skip

    def gold(self) -> Gold:
        """Return the grades that count: the adjudicated one, or else what most annotators say.

        Where no grade is the most frequent, the middle one counts, of two the lower; a finding
        says how many such pairs wait for adjudication.
        """
        with self._file.reading() as connection:
            return gold_of_labels(connection)

    def agreement(self, *, rel: float = 1.0, level: float = 0.95, samples: int = 2000) -> Agreement:
        """Return how far the annotators agree: raw, Cohen's and Fleiss' κ, α, AC1, prevalence.

        `rel` is the lowest grade that counts as relevant, `samples` the size of the bootstrap over
        pairs that the intervals come from.
        """
        from findwell.loop.labels.agree import agree_on_labels  # noqa: PLC0415

        said = self.frame()
        return agree_on_labels(said, highest=self.highest, rel=rel, level=level, samples=samples)

    # files of others

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002
        *,
        run: str | None = None,
    ) -> None:
        """Write the labels, whole or not at all; without a `format` the file's name decides.

        - `csv`, `tsv`, `parquet`, `jsonl`: every label of every annotator, with its inclusion
          probability and stratum; findwell reads it back, as labels and as gold labels.
        - `qrels`, `subtopic-qrels`, and `beir`, a folder: the grade that counts of each pair.
        - `ragas`, `deepeval` (JSON lines) and `autorag` (a folder with qa.parquet and
          corpus.parquet): what is relevant, without grades.
        - `phoenix`: annotations of the documents of a `run`, whose queries are spans.
        - `spans`: gold labels of quotes and places, from which `findwell labels anchor` goes on.
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
        name = (annotator or self.annotator or IMPORTED_DESIGN).strip()
        given = import_labels(self, data, format, name, run)
        if not given:
            raise InputError("there is no label to import", fix="give at least one labelled pair")
        where = path_of(data, "labels")
        with self._file.writing() as connection:
            return add_labels(connection, given, highest=self.highest, add=add, where=where)

"""A database of labels, as `findwell labels` makes them: its layout, and reading it as gold.

What people say is a list of events that only grows: a label, a skip, a doubt, a note, an
adjudication, or the undoing of an earlier event. What holds now is read from it by views, so that
two writers cannot overwrite each other, and what was said is known for ever.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from findwell.core.data import Gold
from findwell.core.errors import FindwellError, InputError
from findwell.core.findings import Finding, finding_about_rows
from findwell.core.frames import pl
from findwell.io.read.format import Format, Look, register_format
from findwell.io.storage.files import require_layout

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    from findwell.io.read.format import Source

FILE = "labels.db"  # in the folder of a pool
MAGIC = b"SQLite format 3\x00"
APPLICATION = 0x66696E6C  # "finl": tells it from other SQLite files
APPLICATION_AT = 68  # the byte of the file where that number is
LAYOUT = 1  # raised when the tables change
PAIR = ["query", "doc"]  # the columns that name one
# what the columns of the tables hold, by their names; all others hold texts
INTEGER_COLUMNS = frozenset(
    ("number", "start", "end", "source_start", "source_end", "pairs", "best", "rank", "undoes",
     "pair", "place", "run_number")
)  # fmt: skip
FLOAT_COLUMNS = frozenset(("grade", "judge", "probability", "planned", "time", "score"))
BOOLEAN_COLUMNS = frozenset(("sampled", "undone"))
# one row per label, skip or doubt that holds now
STATE_COLUMNS = (
    "query", "doc", "grade", "annotator", "time", "note", "start", "end", "probability", "stratum",
    "design", "state", "subtopic", "planned",
)  # fmt: skip
TABLES = Path(__file__).with_name("labels_tables.sql").read_text(encoding="utf-8")
STATES = Path(__file__).with_name("labels_states.sql").read_text(encoding="utf-8")


INSERT_EVENT = """
INSERT INTO event (
    time, annotator, kind, pair, subtopic, grade, note, start, "end", probability, stratum, design
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
TEXTS = """
SELECT query.query, question, doc, text, source, pair.start, pair."end"
FROM pair JOIN query ON query.number = pair.query LEFT JOIN rank ON rank.pair = pair.number
GROUP BY pair.number
ORDER BY pair.query, min(rank.rank) IS NULL, min(rank.rank), pair.number
"""


def column_type(name: str) -> type[pl.DataType]:
    """Return what a column of a table about labels holds."""
    if name in INTEGER_COLUMNS:
        return pl.Int64
    if name in FLOAT_COLUMNS:
        return pl.Float64
    return pl.Boolean if name in BOOLEAN_COLUMNS else pl.String


def table(rows: Sequence[Any], *names: str) -> pl.DataFrame:
    """Return rows as a table; the names of the columns say what they hold."""
    return pl.DataFrame(rows, schema={name: column_type(name) for name in names}, orient="row")


def typed(rows: pl.DataFrame, names: Iterable[str]) -> list[pl.Expr]:
    """Return the columns of these names; null where a table lacks one."""
    return [
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(column_type(name)).alias(name)
        for name in names
    ]


def database_at(data: Any) -> Path | None:  # noqa: ANN401
    """Return the file of a labels database, given it or the folder that holds it; else None."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        found = Path(data)
        if found.is_dir():
            found /= FILE
        if not found.is_file():  # a pipe can be read only once
            return None
        with found.open("rb") as file:
            return found if is_labels(file.read(APPLICATION_AT + 4)) else None
    return None


def is_labels(head: bytes) -> bool:
    """Tell whether a file that begins like this is a labels database."""
    mark = head[APPLICATION_AT : APPLICATION_AT + 4]
    return head.startswith(MAGIC) and mark == APPLICATION.to_bytes(4, "big")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a labels database to read it, while others may write to it."""
    import sqlite3  # noqa: PLC0415 - a score by qrels does not wait for it

    place = path.absolute().as_uri()
    connection = None
    try:
        for mode in ("mode=ro", "immutable=1"):  # the second for a disk that cannot be written to
            connection = sqlite3.connect(f"{place}?{mode}", uri=True)
            try:
                check_layout(connection, path)
            except sqlite3.OperationalError:
                connection.close()
                if mode == "immutable=1":
                    raise
            else:
                break
        yield connection  # type: ignore[misc]
    except sqlite3.Error as error:
        what = f"the labels cannot be read: {error}"
        fix = "copy the file and its -wal together; sqlite3 FILE .recover saves what is whole"
        raise InputError(what, where=str(path), fix=fix) from None
    finally:
        if connection is not None:
            connection.close()


def check_layout(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless this is a database of labels that this findwell can read."""
    require_layout(
        connection,
        path,
        application=APPLICATION,
        layout=LAYOUT,
        written="the labels were written",
        other="this SQLite database holds no labels of findwell",
        fix="name the folder that findwell labels pool made, or the labels.db in it",
    )


def states(connection: sqlite3.Connection) -> pl.DataFrame:
    """Return what every annotator says now about every pair: STATE_COLUMNS, in the order of time.

    `planned` is the inclusion probability that was kept with the label; `probability` is the one
    that makes estimates from these labels right. The pairs of the sample come in a random order,
    and those up to the first about which nothing is said are a sample themselves: the probability
    is their share of the stratum. It is null for a label that was given to another pair, which
    was not drawn or whose turn has not come: people choose such pairs for a reason.
    """
    found = table(connection.execute(STATES).fetchall(), *STATE_COLUMNS, "drawn")
    query = "SELECT stratum, count(*) FROM pair WHERE design = 'sample' GROUP BY stratum"
    sizes = dict(connection.execute(query).fetchall())
    graded = found.filter(pl.col("grade").is_not_null() & pl.col("drawn").is_not_null())
    labelled = graded.unique(["query", "doc"]).group_by("drawn").agg(pl.len()).rows()
    share = {stratum: count / sizes[stratum] for stratum, count in labelled}
    drawn = pl.col("drawn").replace_strict(share, default=None, return_dtype=pl.Float64)
    probability = pl.when(pl.col("grade").is_not_null()).then(drawn)
    return found.with_columns(probability=probability).drop("drawn")


def final_grades(said: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return one row per pair, with the grade that counts, and whether it is `disputed`.

    The grade is the adjudicated one, or else the most frequent; where several are as frequent, the
    middle one, of two the lower, and the pair is disputed. Of other columns the last value counts.
    """
    graded = said.filter(pl.col("grade").is_not_null())
    decided = pl.col("grade").filter(pl.col("state") == "adjudicated").last()
    most = pl.col("grade").mode()
    middle = pl.col("grade").sort().get((pl.len() - 1) // 2)
    alone = most.len() == 1
    others = [name for name in said.columns if name not in (*keys, "grade")]
    return graded.group_by(keys, maintain_order=True).agg(
        pl.coalesce(decided, pl.when(alone).then(most.first()).otherwise(middle)).alias("grade"),
        (decided.is_null() & ~alone).alias("disputed"),
        *(pl.col(name).drop_nulls().last() for name in others),
    )


def disputed(labels: pl.DataFrame) -> list[Finding]:
    """Return the finding about pairs that wait for adjudication."""
    return finding_about_rows(
        "disputed-label",
        labels.filter("disputed"),
        "# pair|pairs has|have labels that disagree. The median grade counts, of two the lower.",
        "settle it: findwell labels serve",
    )


def texts_of_pairs(connection: sqlite3.Connection) -> pl.DataFrame:
    """Return query, question, doc, text and place of all pairs, best rank first in a query."""
    names = ("query", "question", "doc", "text", "source", "source_start", "source_end")
    return table(connection.execute(TEXTS).fetchall(), *names)


def gold_of_labels(connection: sqlite3.Connection, *, texts: bool = False) -> Gold:
    """Return the labels as gold; only queries with a label are in it.

    With `texts` its entries have the text that was labelled, or the part that was selected in it,
    and its place where that is known.
    """
    every = texts_of_pairs(connection)
    labels = _with_places(final_grades(states(connection), ["query", "doc", "subtopic"]), every)
    asked = every.select("query", "question").unique("query", maintain_order=True)
    named = asked.filter(pl.col("query").is_in(labels["query"].implode()))
    # what was selected in a text without a source marks the text, which is known by its id
    carries = {"texts"} | ({"places", "chunks"} if labels["source"].count() else set())
    columns = ["query", "doc", "grade", *(("text", "start", "end", "source") if texts else ())]
    if (labels["subtopic"] != "").any():
        from findwell.io.read.trec import by_subtopic  # noqa: PLC0415 - few name subtopics

        labels = by_subtopic(labels.with_columns(group=pl.col("subtopic").replace("", None)))
        columns.append("group")
    gold = Gold.build(labels.select(columns), queries=named, findings=disputed(labels))
    return replace(gold, carries=frozenset(carries))


def _with_places(labels: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Add the text of each label: what was selected, or the whole, and where it stands."""
    joined = labels.join(places, on=["query", "doc"], how="left", maintain_order="left")
    selected = pl.col("text").str.slice(pl.col("start"), pl.col("end") - pl.col("start"))
    # offsets count in the source where there is one, else in the document, which is the text
    origin = pl.when(pl.col("source").is_null()).then(pl.lit(0)).otherwise("source_start")
    picked = pl.col("start").is_not_null()
    return joined.with_columns(
        text=pl.when(picked).then(selected).otherwise("text"),
        start=pl.when(picked).then(origin + pl.col("start")).otherwise("source_start"),
        end=pl.when(picked).then(origin + pl.col("end")).otherwise("source_end"),
    )


@register_format
class LabelsDatabase(Format):
    """A database of labels: what annotators agree on, or what was adjudicated."""

    name: ClassVar[str] = "labels"
    roles: ClassVar = frozenset({"gold"})
    order: ClassVar[int] = 5

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by the number that findwell writes into the head of the file."""
        del role
        return is_labels(look.head)

    def gold(self, source: Source) -> Gold:
        """Read the labels, also those that another process has just written."""
        with source.plain_file() as path, reading(path) as connection:
            return gold_of_labels(connection, texts=source.reading.texts)


def read_labels(data: object) -> pl.DataFrame | None:
    """Return labels as a table with one row for each; None if they are in another form.

    `data` is a database of labels or the folder that holds it, a table in a file or in memory, or
    records. A database gives STATE_COLUMNS and the columns of `texts_of_pairs`; other tables have
    the columns that they have, their names in lower case.
    """
    from findwell.io.read.by_document import records_of_pairs  # noqa: PLC0415 - it imports this
    from findwell.io.read.format import Source  # noqa: PLC0415
    from findwell.io.read.json import all_entries  # noqa: PLC0415
    from findwell.io.read.tables import frame, read_table  # noqa: PLC0415

    found = None
    if not isinstance(data, str | os.PathLike):
        found = frame(data)
        if found is None and isinstance(data, Sequence):
            found = records_of_pairs(data)
    elif (database := database_at(data)) is not None:
        with reading(database) as connection:
            said, texts = states(connection), texts_of_pairs(connection)
        return said.join(texts, on=PAIR, how="left", maintain_order="left")
    elif not os.path.isdir(data):  # noqa: PTH112
        look = Look.at(source := Source.of(data))
        with contextlib.suppress(FindwellError):  # some other file, which others can read
            if look.opens_json:
                found = records_of_pairs([entry.value for entry in all_entries(source)])
            elif not look.binary or look.head.startswith(b"PAR1"):
                found = read_table(source)[0]
    names = {} if found is None else {name: name.strip().casefold() for name in found.columns}
    return None if found is None else found.rename(names)


def labelled_pairs(path: Path) -> pl.DataFrame:
    """Return the pairs that have a grade, as a judge sees them, and how they were chosen.

    Columns: query, question, doc, text, grade, design, stratum, probability.
    """
    said = read_labels(path)
    columns = ("query", "question", "doc", "text", "grade", "design", "stratum", "probability")
    return (table([], *columns) if said is None else final_grades(said, PAIR)).select(columns)

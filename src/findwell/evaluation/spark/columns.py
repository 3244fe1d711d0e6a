"""What the columns of Spark frames mean, and one frame of run, gold and queries, sorted by query.

A frame has one row per document or one row per query, as everywhere else, and its columns are found
by the same names. Rows of a distributed table have no order of their own: where a row is one
document, a score or a rank must say it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from findwell.core.errors import InputError, OptionError, choose
from findwell.io.read.by_document import SAID, carried, find_columns, known_columns, named_by
from findwell.io.read.by_query import is_by_query
from findwell.io.read.format import ReadContext
from findwell.io.read.shapes import shape_of
from findwell.io.read.values import no_column
from findwell.io.read.vocabulary import QUESTION_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GOLD, QUERIES, RUN = 0, 1, 2  # the sides, in the order in which the rows of a query are sorted
SIDES = {GOLD: "gold", QUERIES: "queries", RUN: "run"}
QUERY, SIDE, POSITION = "query", "findwell_side", "findwell_position"
ID_TYPES = ("string", "varchar", "char", "byte", "short", "integer", "long")
CLUSTERS = "source"  # the column of records whose equal values mark dependent queries
# findwell's names that a user may map to columns
NAMES = (
    *("query", "doc", "score", "rank", "grade", "group", "text", "start", "end", "annotator"),
    *("state", "retrieved", "gold", "scores", "question", "reference"),
)


@dataclass(frozen=True, slots=True)
class SideColumns:
    """How the rows of one side are read in a task."""

    kind: Literal["document", "query"]
    query: str  # the name under which a record has its query
    columns: tuple[str, ...] = ()  # what is carried in addition to it


@dataclass(frozen=True, slots=True)
class Side:
    """A side as a frame of query, position and one struct of all else."""

    frame: DataFrame
    columns: SideColumns


def mapped(columns: Mapping[str, str] | None, side: str) -> dict[str, str]:
    """Return what a side's columns are called, by findwell's names; `gold.doc` is about one side.

    >>> mapped({"query": "qid", "gold.doc": "pid"}, "run")
    {'query': 'qid'}
    """
    found: dict[str, str] = {}
    for name, column in (columns or {}).items():
        about, _, bare = name.rpartition(".")
        if about:
            choose("side", about, SIDES.values())
        choose("column of findwell", bare, NAMES)
        if about in ("", side):
            found[bare] = column
    return found


def carried_by(frame: DataFrame, names: Mapping[str, str], role: str) -> frozenset[str]:
    """Return what the columns of a side, run or gold, say next to the ids of documents."""
    frame = _renamed(frame, names, role)
    if not is_by_query(frame.columns, role):
        return carried(list(frame.columns))
    shape = shape_of(frame.columns, role)
    side = {"run": "retrieved", "gold": "gold"}[role]
    column = None if shape is None else shape.pick(frame.columns).get(side)
    listed = None if column is None else frame.schema[column].dataType
    fields = getattr(getattr(listed, "elementType", None), "names", None) or ()
    kinds = {"text": "texts", "quote": "texts", "start": "places", "source": "chunks"}
    return frozenset(kind for name, kind in kinds.items() if name in fields)


def take_run(frame: DataFrame, names: Mapping[str, str], *, texts: bool, about: bool) -> Side:
    """Return the side of what was retrieved; `about` keeps what records say about queries."""
    frame = _renamed(frame, names, "run")
    if is_by_query(frame.columns, "run"):
        return _by_query(frame, "run", also=frame.columns if about else ())
    reading = ReadContext(texts=texts)
    found = find_columns(list(frame.columns), ("score", "rank"), "run", reading)
    if not found.keys() & {"score", "rank"}:
        raise InputError(
            "rows of Spark have no order, and there is neither a score nor a rank",
            where="run",
            fix="add a column score or rank, or one row per query with a list in rank order",
        )
    if "score" in found:
        found.pop("rank", None)
    return _by_document(frame, found, "run")


def take_gold(
    frame: DataFrame, names: Mapping[str, str], *, texts: bool, wanted: Collection[str]
) -> Side:
    """Return the side of what should be found, with the wanted columns about the queries."""
    frame = _renamed(frame, names, "gold")
    if is_by_query(frame.columns, "gold"):
        return _by_query(frame, "gold", also={*wanted, CLUSTERS})
    optional = ("grade", "group", *SAID)
    reading = ReadContext(texts=texts)
    found = find_columns(list(frame.columns), optional, "gold", reading)
    return _by_document(frame, found, "gold", also=wanted)


def take_queries(frame: DataFrame, names: Mapping[str, str]) -> Side:
    """Return the side of columns about the queries."""
    frame = _renamed(frame, names, "queries")
    key = known_columns(list(frame.columns)).get("query")
    if key is None:
        raise no_column("column for the query", "query", ["query"], frame.columns, where="queries")
    return _side(frame, key, [name for name in frame.columns if name != key], "queries")


def stack(sides: Mapping[int, Side | None], partitions: int | None) -> DataFrame:
    """Return the rows of all sides, those of a query together and in a fixed order."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    every = None
    for number, side in sides.items():
        if side is None:
            continue
        rows = side.frame.withColumn(SIDE, F.lit(number).cast("byte"))
        if "what" in rows.columns:
            rows = rows.withColumnRenamed("what", SIDES[number])
        every = rows if every is None else every.unionByName(rows, allowMissingColumns=True)
    if every is None:
        raise OptionError("there is nothing to evaluate")
    cut = [QUERY] if partitions is None else [partitions, QUERY]
    return every.repartition(*cut).sortWithinPartitions(QUERY, SIDE, POSITION)


def _renamed(frame: DataFrame, names: Mapping[str, str], side: str) -> DataFrame:
    """Give columns findwell's names; others that would mean the same are left out."""
    for name, column in names.items():
        if column not in frame.columns:
            raise no_column(f"column {column!r}", name, [column], frame.columns, where=side)
    if not names:
        return frame
    chosen = {column: name for name, column in names.items()}
    known = known_columns([each for each in frame.columns if each not in chosen])
    rivals = {column for name, column in known.items() if name in names}
    rivals |= {name for name in names if name not in chosen}
    kept = [each for each in frame.columns if each in chosen or each not in rivals]
    renamed = frame.select(*(_column(frame, each).alias(chosen.get(each, each)) for each in kept))
    asked = names.get("query", "").strip().casefold() in QUESTION_COLUMNS
    return renamed.withColumn("query", _question(renamed["query"])) if asked else renamed


def _question(column: Column) -> Column:
    """Return questions that name their queries with single blanks, as everywhere."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return F.trim(F.regexp_replace(column.cast("string"), r"(?U)\s+", " "))


def _by_document(
    frame: DataFrame, found: Mapping[str, str], side: str, also: Collection[str] = ()
) -> Side:
    rest = {name: column for name, column in found.items() if name != "query"}
    taken = {*found, *found.values()}
    if named_by(list(frame.columns), ReadContext()) == "question":
        frame = frame.withColumn(found["query"], _question(_column(frame, found["query"])))
    rest |= {name: name for name in frame.columns if name in also and name not in taken}
    made = _side(frame, found["query"], rest, side)
    return Side(made.frame, SideColumns("document", "query", tuple(rest)))


def _by_query(frame: DataFrame, role: str, *, also: Collection[str]) -> Side:
    shape = shape_of(frame.columns, role)
    picked = {} if shape is None else shape.pick(frame.columns)
    if shape is None or "query" not in picked:
        raise InputError(
            "the records have no id for their query, by which rows are brought together",
            where=role,
            fix="add a column query, or say which one it is: columns={'query': 'question'} "
            "(-S columns.query=question)",
        )
    known = {*shape.present(frame.columns), *also} - {picked["query"]}
    return _side(frame, picked["query"], [name for name in frame.columns if name in known], role)


def _side(frame: DataFrame, key: str, columns: Mapping[str, str] | list[str], side: str) -> Side:
    """Return the query as a text, the place of the row, and the other columns as one."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    kind = frame.schema[key].dataType.typeName()
    if kind not in ID_TYPES:
        raise InputError(
            f"the column {key!r} holds {kind}, which cannot be the id of a query",
            where=side,
            fix="ids are texts or whole numbers",
        )
    named = columns if isinstance(columns, Mapping) else {name: name for name in columns}
    picked = [_column(frame, column).alias(name) for name, column in named.items()]
    made = frame.select(
        _column(frame, key).cast("string").alias(QUERY),
        F.monotonically_increasing_id().alias(POSITION),
        *([F.struct(*picked).alias("what")] if picked else []),
    )
    return Side(made, SideColumns("query", key, tuple(named)))


def _column(frame: Any, name: str) -> Column:  # noqa: ANN401
    """Return a column by its name, dots and all."""
    found: Column = frame["`" + name.replace("`", "``") + "`"]
    return found

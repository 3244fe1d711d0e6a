"""Tables with one row per document: what their columns mean, and the run or gold they make.

Columns are found by the names people give them; ids stay text, so that 007 does not become 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from findwell.core.columns import blank_ids
from findwell.core.data import Gold
from findwell.core.errors import InputError
from findwell.core.findings import finding_about
from findwell.core.frames import pl
from findwell.io.read.format import OTHERS, STRICT, ReadContext, text_as_id, two_names
from findwell.io.read.labels_database import disputed, final_grades
from findwell.io.read.mapping import NO_FIELDS, SIDES, Fields, renamed
from findwell.io.read.shapes import shape_of
from findwell.io.read.values import UNDERSTOOD, grades, no_column
from findwell.io.read.vocabulary import ACCEPTED_COLUMNS, QUESTION_COLUMNS, TABLE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from findwell.core.data import NamedBy, Order
    from findwell.io.read.delimited import TablePlace


DOUBLED = re.compile(r"_duplicated_\d+$")  # how polars renames a second column of the same name
IDS = ("query", "doc")
COMMA = re.compile(r"[-+]?\d*,\d+")  # a decimal as some languages write it
SAID = ("annotator", "state")  # who said it, and whether it is a label or an adjudication
TEXTS = (*IDS, *SAID, "group", "text")
FACTS = ("text", "start", "end")  # what a row may say in addition to the id
# names of scores, and of ranks, that are not read as such; those where a low number is the better
OTHER_SCORES = re.compile(r"score|similarit|relevan|bm25|cosine|certainty|confidence")
OTHER_RANKS = re.compile(r"distance|rank|^order$")
NO_GRADES = re.compile(r"synthetic|id|index|page|part|chunk")  # which may be 0 and 1 as well
MAY_LACK = ("group", *SAID, *FACTS)  # columns in which a row may have nothing


def find_columns(
    columns: list[str], optional: tuple[str, ...], where: str, reading: ReadContext
) -> dict[str, str]:
    """Map findwell's names to the columns that are wanted, or that are used in their place."""
    if reading.texts:
        optional = (*optional, *FACTS)
    known = {name: found[0] for name, found in _found(columns, ACCEPTED_COLUMNS).items()}
    known = {name: known[name] for name in (*IDS, *optional) if name in known}
    if named_by(columns, reading) == "question" and (
        asked := _found(columns, {"query": QUESTION_COLUMNS})
    ):
        known["query"] = asked["query"][0]
    if reading.id_from in columns:
        known["doc"] = reading.id_from
    for name in IDS:
        if name not in known:
            spellings = [name, *TABLE_COLUMNS[name]]
            raise no_column(f"column for the {name}", name, spellings, columns, where=where)
    return known


def is_by_document(columns: list[str]) -> bool:
    """Tell whether a row can name a query and a document, or a text in its place."""
    return _found(columns, ACCEPTED_COLUMNS).keys() >= set(IDS)


def known_columns(columns: list[str]) -> dict[str, str]:
    """Map findwell's names to the columns of a table that have one of the usual names."""
    return {name: found[0] for name, found in _found(columns, TABLE_COLUMNS).items()}


def _found(columns: list[str], spellings: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Map findwell's names to all columns that these spellings name, the one that counts first."""
    folded: dict[str, list[str]] = {}
    for column in columns:
        folded.setdefault(undoubled(column).strip().casefold(), []).append(column)
    every = {
        name: [column for word in words for column in folded.get(word, ())]
        for name, words in spellings.items()
    }
    return {name: found for name, found in every.items() if found}


def undoubled(column: str) -> str:
    """Return the name that a column had before polars renamed it."""
    return DOUBLED.sub("", column)


def named_by(columns: list[str], reading: ReadContext) -> NamedBy:
    """Return what names the queries of a table: ids, or questions where these are wanted."""
    if reading.names == "question" and _found(columns, {"query": QUESTION_COLUMNS}):
        return "question"
    return "id" if "query" in known_columns(columns) else "question"


def carried(columns: list[str]) -> frozenset[str]:
    """Return what a table carries next to ids.

    What annotators selected are places in the text that they labelled, not in a document.
    """
    known = known_columns(columns).keys()
    kinds = {"texts": {"doc", "text"}, "places": {"doc", "start", "end"}}
    carried = {kind for kind, names in kinds.items() if names <= known}
    return frozenset(carried - {"places"} if "annotator" in known else carried)


def note_columns(columns: list[str], role: str, reading: ReadContext) -> None:
    """Report the columns that do not count, because others mean the same."""
    every = _found(columns, TABLE_COLUMNS)
    number = "grade" if role == "gold" else "score" if "score" in every else "rank"
    for name in ("query", "doc", number, *(FACTS if reading.texts else ())):
        chosen, *others = every.get(name, [""])
        if others:
            what = f"# column|columns could be the {name}, too"
            reading.note(two_names(len(others), chosen, tuple(map(undoubled, others)), what))


def is_text(column: str) -> bool:
    """Tell whether a column is one of texts by its name."""
    return column.strip().casefold() in TABLE_COLUMNS["text"]


def run_rows(
    table: pl.DataFrame, place: TablePlace, reading: ReadContext = STRICT, *, cells: bool = False
) -> tuple[pl.DataFrame, Order]:
    """Return the rows of a run, and what their order means.

    A score decides the order; without one the rank column does, and without that the position.
    In `cells` of a text table, blanks around an id are not part of it.
    """
    names = find_columns(table.columns, ("score", "rank"), place.where, reading)
    rows = _typed(table, names, place, reading, cells=cells)
    for others in table.drop(names.values()).head(OTHERS).iter_rows(named=True):
        reading.notes.keep_others(others)
    kept = ("query", "doc", *(name for name in FACTS if name in names))
    if "score" in names:
        if "rank" in names:
            _refuse_ranks(rows, names, place)
        return rows.select(*kept, "score"), "scored"
    if "rank" in names:
        # rank order is score order: the rank, negated, serves as the score
        return rows.select(*kept, score=-pl.col("rank")), "mapped"
    _refuse_unordered(table, names["query"], place)
    return rows, "listed"


def _refuse_ranks(rows: pl.DataFrame, names: dict[str, str], place: TablePlace) -> None:
    """Refuse scores that order the documents of a query otherwise than their ranks do."""
    by_rank = rows.with_row_index("row").drop_nulls("rank").sort("query", "rank")
    pair = by_rank["query"] == by_rank["query"].shift()
    wrong = pair & (by_rank["rank"].diff() > 0) & (by_rank["score"].diff() > 0)
    if wrong.any():
        rank, score = names["rank"], names["score"]
        what = f"the columns {rank!r} and {score!r} order the documents of a query differently"
        fix = f"remove the one that is wrong. Where a low {score} is better, remove {score!r}"
        raise InputError(what, where=place.row(by_rank["row"][wrong.arg_max() or 0] + 1), fix=fix)


def _refuse_unordered(table: pl.DataFrame, query: str, place: TablePlace) -> None:
    """Refuse rows by position where their only score, under a name of its own, orders others first.

    Either order may be meant.
    """
    folded = {name: name.strip().casefold() for name in table.columns}
    low = [name for name, word in folded.items() if OTHER_RANKS.search(word)]
    names = low + [name for name, word in folded.items() if OTHER_SCORES.search(word)]
    if len(set(names)) != 1:
        return
    name, lower = names[0], bool(low)
    step = table[name].cast(pl.Float64, strict=False).diff() * (-1 if lower else 1)
    above = (step > 0) & (table[query] == table[query].shift())
    if above.any():
        raise InputError(
            f"the rows of a query are not in the order of {name!r}, and no column is a known score",
            where=place.row((above.arg_max() or 0) + 1),
            fix="sort the rows of each query, or give their order in a column rank"
            + ("" if lower else f"; or read the scores: --map run.{name}=score"),
        )


def gold_of(
    table: pl.DataFrame, place: TablePlace, reading: ReadContext = STRICT, *, cells: bool = False
) -> Gold:
    """Return the gold of a table; without a grade column every document is relevant."""
    names = find_columns(table.columns, ("grade", "group", *SAID), place.where, reading)
    if "annotator" not in names:
        names.pop("state", None)
    # rows of a question, a text and a label, as people write them for a judge
    asked = names["query"].strip().casefold() in QUESTION_COLUMNS
    if "grade" in names and ("annotator" in names or (asked and is_text(names["doc"]))):
        table, place = _labelled(table, names["grade"], place, reading)
    rows = _typed(table, names, place, reading, cells=cells)
    if "annotator" in names:
        rows = _decided(rows, reading)
    note_columns(table.columns, "gold", reading)
    if "grade" not in names:
        rows = rows.with_columns(grade=pl.lit(1.0))
        found = _found(table.columns, ACCEPTED_COLUMNS).values()
        _note_unread_grades(table.drop(chain.from_iterable(found)), reading)
    queries = rows.select("query").unique(maintain_order=True)
    by = named_by(table.columns, reading)
    if by == "question":
        queries = queries.with_columns(question="query")
    return replace(Gold.build(rows, queries=queries), carries=carried(table.columns), named_by=by)


def _note_unread_grades(rest: pl.DataFrame, reading: ReadContext) -> None:
    """Report a column that says yes and no, where every row counts as relevant."""
    for column in rest.iter_columns():
        if column.dtype.is_nested() or column.null_count() or NO_GRADES.search(column.name.lower()):
            continue
        said = grades(column.cast(pl.String))
        if not said.null_count() and {*said.unique()} == {0.0, 1.0}:
            reading.note(
                *finding_about(
                    "unread-grade",
                    column.filter(said == 0).cast(pl.String),
                    f"# row|rows of the gold says|say no in the column {column.name!r}, which is "
                    "not read. Every row counts as relevant.",
                    f"if it says what is relevant: --map gold.{column.name}=grade (fields=)",
                )
            )


def records_of_pairs(given: Sequence[object], mapped: Fields = NO_FIELDS) -> pl.DataFrame | None:
    """Return records of which each is a question, a chunk and a label as a table; else None.

    >>> records_of_pairs([{"question": "Why?", "chunk": "Because.", "label": 1}]).columns
    ['question', 'chunk', 'label']
    >>> records_of_pairs([{"query": "q1", "gold": ["d1"]}]) is None
    True
    """
    first = given[0] if given else None
    if not isinstance(first, Mapping) or not ("doc" in mapped.values() or _is_pair(first, mapped)):
        return None
    if not all(isinstance(record, Mapping) for record in given):
        return None
    records = [dict(record) for record in given if isinstance(record, Mapping)]
    names = dict.fromkeys(str(name) for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    return pl.DataFrame([_column(name, values) for name, values in columns.items()])


def _is_pair(record: Mapping[str, Any], mapped: Fields) -> bool:
    """Tell whether a record is about one document, and says its grade."""
    if not SIDES.isdisjoint(mapped.values()):
        return False
    record = {new: record[old] for old, new in renamed(map(str, record), mapped).items()}
    columns = list(record)
    found = _found(columns, ACCEPTED_COLUMNS)
    if not found.keys() >= {*IDS, "grade"} or "grade" not in _found(columns, TABLE_COLUMNS):
        return False
    doc = record[found["doc"][0]]
    shape = shape_of(record, "gold")
    return isinstance(doc, str | int) and (shape is None or found["doc"][0] in shape.gold)


def _column(name: str, values: list[Any]) -> pl.Series:
    """Return a column; values that do not go together become texts."""
    try:
        return pl.Series(name, values)
    except (pl.exceptions.PolarsError, TypeError, OverflowError):
        return pl.Series(name, [None if each is None else str(each) for each in values], pl.String)


def _labelled(
    table: pl.DataFrame, grade: str, place: TablePlace, reading: ReadContext
) -> tuple[pl.DataFrame, TablePlace]:
    """Leave out the pairs without a label."""
    column = table[grade]
    blank = column.is_null()
    if column.dtype == pl.String:
        blank |= column.str.strip_chars() == ""
    reading.note(
        *finding_about(
            "no-label",
            [place.row(number + 1) for number in blank.arg_true()],
            "# pair|pairs has|have no label and is|are left out.",
            "label it, or remove it",
        )
    )
    return place.only(table, ~blank)


def _decided(rows: pl.DataFrame, reading: ReadContext) -> pl.DataFrame:
    """Return one row per pair: the adjudicated grade, or what most annotators say."""
    state = pl.col("state") if "state" in rows.columns else pl.lit(None, pl.String)
    keys = ["query", "doc", *(["group"] if "group" in rows.columns else [])]
    found = final_grades(rows.with_columns(state=state), keys)
    reading.note(*disputed(found))
    return found.drop("disputed", "annotator", "state")


def _unpadded(table: pl.DataFrame, names: dict[str, str], reading: ReadContext) -> pl.DataFrame:
    """Drop the blanks around ids, as people write them in text tables."""
    for name in IDS:
        if is_text(names[name]):
            continue
        column = table[names[name]]
        bare = column.str.strip_chars()
        padded = column.ne_missing(bare)
        if not padded.any():
            continue
        table = table.with_columns(bare.replace("", None))
        reading.note(
            *finding_about(
                "padded-id",
                list(map(repr, column.filter(padded & (bare != "")))),
                f"# row|rows had blanks around the {name}, which are removed.",
                "write ids without blanks around them",
            )
        )
    return table


def _typed(
    table: pl.DataFrame,
    names: dict[str, str],
    place: TablePlace,
    reading: ReadContext,
    *,
    cells: bool,
) -> pl.DataFrame:
    """Return the columns under findwell's names, ids as text and the rest as numbers."""
    table = _unpadded(table, names, reading) if cells else table
    picked = table.select(pl.col(column).alias(name) for name, column in names.items())
    if picked["query"].null_count():  # a blank line of a text file is a row of nothing
        picked, place = place.without_blank(picked)
    for name, kind in picked.schema.items():
        number = kind.is_float() or kind == pl.Boolean
        no_value = kind.is_nested() or kind in (pl.Object, pl.Binary)
        if no_value or (number and name in TEXTS) or (kind.is_temporal() and name not in TEXTS):
            raise InputError(
                f"the column {names[name]!r} holds {kind}, which is not a valid {name}",
                where=place.where,
                fix="ids are texts or whole numbers; a row names one document"
                if name in TEXTS
                else f"give every row a number as its {name}",
            )
    rows = picked.with_columns(_cast(column) for column in picked.iter_columns())
    if named_by(table.columns, reading) == "question":
        rows = rows.with_columns(rows["query"].str.replace_all(r"\s+", " ").str.strip_chars())
    rows = _checked(rows, picked, names, lambda at: place.row(at + 1), reading)
    if not reading.texts and is_text(names["doc"]):  # what contains white space is not an id
        texts = int(rows["doc"].str.contains(r"\s").sum())
        if texts:
            reading.note(text_as_id(texts, (names["doc"],), "row|rows"))
    return rows


def _cast(column: pl.Series) -> pl.Series:
    """Return a column with the type of its name; what does not fit is null."""
    kind = pl.String if column.name in TEXTS else pl.Int64 if column.name in FACTS else pl.Float64
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype != pl.String or kind == pl.String:
        return column.cast(kind, strict=False)
    if column.name == "grade":
        return grades(column)
    return column.str.strip_chars().cast(kind, strict=False)


def _checked(
    rows: pl.DataFrame,
    picked: pl.DataFrame,
    names: dict[str, str],
    where: Callable[[int], str],
    reading: ReadContext,
) -> pl.DataFrame:
    """Refuse rows with missing or blank ids or with values that are not numbers, or skip them."""
    good = pl.repeat(True, rows.height, eager=True)
    for column in rows.iter_columns():
        decides = column.name != "rank" or "score" not in names  # otherwise the rank is not used
        bad = column.is_null() if column.null_count() and decides else None
        if column.name in IDS and blank_ids(column).any():
            bad = blank_ids(column) | column.is_null()
        if column.name == "grade" and not column.is_finite().all():
            bad = ~column.is_finite().fill_null(value=False)
        if bad is None or column.name in MAY_LACK:
            continue
        for at in (bad & good).arg_true():
            reading.meet(_wrong(column.name, names[column.name], picked, at, where(at)))
        good &= ~bad
    return rows if good.all() else rows.filter(good)


def _wrong(name: str, column: str, picked: pl.DataFrame, at: int, where: str) -> InputError:
    value = picked[name][at]
    what = f"the {name} is missing"
    if value is not None and str(value).strip():
        number = pl.Series([str(value).strip()]).cast(pl.Float64, strict=False)[0]
        kind = "text" if name in TEXTS else "number" if number is None else "finite number"
        what = f"the {name} {str(value)[:40]!r} is not a {kind}"
    fix = f"give every row a {name}"
    if name == "grade":
        fix = f"give grades as {UNDERSTOOD}"
    elif COMMA.fullmatch(str(value)):
        fix = f"write decimals with a point: {str(value).replace(',', '.')}"
    return InputError(f"{what} (column {column!r})", where=where, fix=fix)

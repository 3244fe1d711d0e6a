"""What people call the columns of tables with a row a document, and which of several counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from karat.core.data import FACTS
from karat.errors import InputError, nearest
from karat.read.reading import Reading, two_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karat.core.data import NamedBy

# what people call the columns, the one that counts before others
COLUMNS = {
    "query": "query_id query-id queryid qid q_id query topic_id topic",
    "doc": "doc_id doc-id docid docno document_id corpus-id corpus_id passage_id pid chunk_id doc "
    "document",
    "score": "score sim similarity",
    "rank": "rank position",
    "grade": "grade rel relevance relevant is_relevant label judgment judgement rating",
    "group": "group item subtopic",
    "text": "text quote contents content passage page_content chunk context",
    "start": "start start_index",
    "end": "end end_index",
}
# what stands in where there is none of these: a text serves as its id, and BEIR's grade is a score
INSTEAD = {"query": "question user_input", "doc": COLUMNS["text"], "grade": COLUMNS["score"]}
DOUBLED = re.compile(r"_duplicated_\d+$")  # how polars tells equal names apart
IDS = ("query", "doc")


def find_columns(
    columns: list[str], optional: tuple[str, ...], where: str, reading: Reading
) -> dict[str, str]:
    """Map karat's names to the columns that are wanted, or that stand in for them."""
    if reading.texts:
        optional = (*optional, *FACTS)
    known = _wanted(columns, (*IDS, *optional))
    if named_by(columns, reading) == "question":
        known |= dict(zip(["query"], _called(INSTEAD["query"], _folded(columns)), strict=False))
    for name in IDS:
        if name not in known:
            spellings = [name, *COLUMNS[name].split()]
            close = next((nearest(c, spellings) for c in columns if nearest(c, spellings)), "")
            also = ", ".join(word for word in spellings[1:] if word != name)
            raise InputError(
                f"no column for the {name}; found {', '.join(map(repr, columns[:12]))}",
                where=where,
                fix=f"name it {name!r} (also understood: {also})" + (f"; {close}" if close else ""),
            )
    return known


def is_by_document(columns: list[str]) -> bool:
    """Tell whether a row can name a query and a document, or a text in its place."""
    return _wanted(columns, IDS).keys() == set(IDS)


def known_columns(columns: list[str]) -> dict[str, str]:
    """Map karat's names to the columns of a table that have one of the usual names."""
    return {name: found[0] for name, found in _all_columns(columns).items()}


def _all_columns(columns: list[str]) -> dict[str, list[str]]:
    """Map karat's names to all columns that could be meant, the one that counts first."""
    folded = _folded(columns)
    every = {name: _called(spellings, folded) for name, spellings in COLUMNS.items()}
    return {name: found for name, found in every.items() if found}


def _folded(columns: list[str]) -> dict[str, list[str]]:
    folded: dict[str, list[str]] = {}
    for column in columns:
        folded.setdefault(_undoubled(column).strip().casefold(), []).append(column)
    return folded


def _called(spellings: str, folded: dict[str, list[str]]) -> list[str]:
    return [column for word in spellings.split() for column in folded.get(word, ())]


def _undoubled(column: str) -> str:
    """Return the name that a column had before polars made it unlike another one's."""
    return DOUBLED.sub("", column)


def _wanted(columns: list[str], names: Iterable[str]) -> dict[str, str]:
    """Map karat's names to the columns that count, or that stand in for them."""
    folded = _folded(columns)
    every = (
        (name, [*_called(COLUMNS[name], folded), *_called(INSTEAD.get(name, ""), folded)])
        for name in names
    )
    return {name: found[0] for name, found in every if found}


def named_by(columns: list[str], reading: Reading) -> NamedBy:
    """Tell what names the queries of a table: ids, or questions where these are asked for."""
    if reading.names == "question" and _called(INSTEAD["query"], _folded(columns)):
        return "question"
    return "id" if "query" in known_columns(columns) else "question"


def carried(columns: list[str]) -> frozenset[str]:
    """Tell what a table carries beside ids."""
    known = known_columns(columns).keys()
    kinds = {"texts": {"doc", "text"}, "places": {"doc", "start", "end"}}
    return frozenset(kind for kind, names in kinds.items() if names <= known)


def note_columns(columns: list[str], role: str, reading: Reading) -> None:
    """Say which columns of a run or a gold do not count, because others mean the same."""
    every = _all_columns(columns)
    number = "grade" if role == "gold" else "score" if "score" in every else "rank"
    for name in ("query", "doc", number, *(FACTS if reading.texts else ())):
        chosen, *others = every.get(name, [""])
        if others:
            what = f"column that could be the {name}, too,"
            reading.note(two_names(len(others), chosen, tuple(map(_undoubled, others)), what))


def is_text(column: str) -> bool:
    """Tell whether a column is one of texts by its name."""
    return column.strip().casefold() in COLUMNS["text"].split()

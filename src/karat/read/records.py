"""karat's own records: one JSON object a query, with what was retrieved, what is gold, or both.

    {"query": "q1", "question": "…", "retrieved": [{"doc": "d1", "score": 0.9}, "d2"],
     "gold": ["d1", ["d2", "d3"], {"docs": ["d4"], "grade": 2}], "topic": "billing"}

A retrieved list is in rank order. In the gold every entry is needed; the documents of one entry
are interchangeable. Every other field describes the query, to slice results by.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import polars as pl

from karat.data import Gold, Run, RunStream
from karat.errors import InputError, nearest
from karat.read.format import Format, Look, Samples, register_format
from karat.read.ids import doc_id, identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.read.source import Block, Source

Record: TypeAlias = Mapping[str, Any]
FIELDS = ("query", "question", "retrieved", "gold", "reference")
_RECORD = re.compile(rb'\{\s*"(' + "|".join(FIELDS).encode() + rb')"\s*:')


@register_format
class Records(Format):
    """One JSON object a line."""

    name: ClassVar[str] = "jsonl"
    roles: ClassVar = frozenset({"run", "gold", "samples"})
    order: ClassVar[int] = 20

    def sniff(self, look: Look, role: str) -> bool:
        """The first line is an object with one of our fields, or one of several objects."""
        del role
        first, _, rest = look.head.lstrip().partition(b"\n")
        try:
            record = json.loads(first)
        except (ValueError, RecursionError):  # too long to be seen whole, or broken
            named = look.suffix in (".jsonl", ".ndjson") and first.startswith(b"{")
            return named or bool(_RECORD.match(first))
        several = rest.lstrip().startswith(b"{")
        return isinstance(record, dict) and (several or not record.keys().isdisjoint(FIELDS))

    def run(self, source: Source, name: str) -> RunStream:
        """Read what was retrieved, block by block."""

        def batches() -> Iterator[pl.DataFrame]:
            seen: set[str] = set()
            for block in source.blocks():
                yield _run_rows(_lines(block), source.where, seen)

        return RunStream(name, batches, order="listed")

    def gold(self, source: Source) -> Gold:
        """Read what is gold."""
        return gold(_all_lines(source), source.where)

    def samples(self, source: Source, name: str) -> Samples:
        """Read both."""
        return samples(_all_lines(source), name, source.where)


def run(records: Iterable[Record], name: str, where: str = "") -> Run:
    """Return the run of records."""
    return Run(name, _run_rows(list(records), where or name, set()), order="listed")


def samples(records: object, name: str, where: str = "records") -> Samples:
    """Return run and gold of records that hold both."""
    if not isinstance(records, Iterable) or isinstance(records, Mapping | str | bytes):
        raise InputError(
            f"without a gold, one list of records is needed, not {type(records).__name__}",
            fix="pass gold=, or records with the fields retrieved and gold",
        )
    listed = list(records)
    return Samples(run(listed, name, where), gold(listed, where))


def gold(records: Iterable[Record], where: str = "gold") -> Gold:
    """Return the gold of records, with every further field as a column of the queries."""
    rows: list[tuple[str, str, float, int | None]] = []
    about: list[dict[str, Any]] = []
    seen: set[str] = set()
    flaws: dict[str, str] = {}
    group = 0
    for number, record in enumerate(records, start=1):
        query = _query(record, number, where)
        if query in seen:
            raise _twice(query, where)
        seen.add(query)
        entries = _field(record, "gold", query, where)
        about.append({"query": query, **_describe(record)})
        for docs, grade in _items(entries, query, where):
            blank = [doc for doc in docs if not doc.strip()]
            if blank or not docs:
                flaws[query] = (
                    f"{blank[0]!r} is not an id" if blank else "an item names no document"
                )
            group += 1
            key = group if len(docs) > 1 else None
            rows.extend((query, doc, grade, key) for doc in docs)
    queries = _table(about)
    schema = {"query": pl.String, "doc": pl.String, "grade": pl.Float64, "group": pl.Int64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return Gold.build(table, queries=queries, flaws=flaws)


def _run_rows(records: list[Record], where: str, seen: set[str]) -> pl.DataFrame:
    """Return the rows of records; `seen` holds the queries of earlier ones."""
    queries: list[str] = []
    docs: list[str | None] = []
    scores: list[float | None] = []
    for number, record in enumerate(records, start=len(seen) + 1):
        query = _query(record, number, where)
        if query in seen:
            raise _twice(query, where)
        seen.add(query)
        entries = list(_in_order(_field(record, "retrieved", query, where), query, where))
        for entry in entries or [None]:  # an empty list is a row without a document
            doc, score = (None, None) if not entries else _unit(entry, query, where)
            queries.append(query)
            docs.append(doc)
            scores.append(score)
    return pl.DataFrame(
        {"query": queries, "doc": docs, "score": scores},
        schema={"query": pl.String, "doc": pl.String, "score": pl.Float64},
    )


def _in_order(retrieved: object, query: str, where: str) -> Iterable[object]:
    """Refuse what has no order, or is no list at all."""
    if isinstance(retrieved, Iterable) and not isinstance(
        retrieved, Mapping | set | frozenset | str | bytes
    ):
        return retrieved
    raise InputError(
        f"what was retrieved for query {query!r} is a {type(retrieved).__name__}, not a list",
        where=where,
        fix='write a list in rank order, such as ["d1", "d2"] or [{"doc": "d1", "score": 0.9}]',
    )


def _unit(entry: object, query: str, where: str) -> tuple[str, float | None]:
    if isinstance(entry, Mapping):
        doc, score = entry.get("doc", entry.get("id")), entry.get("score")
        if doc is None:
            raise InputError(
                f"a retrieved entry of query {query!r} has no doc, only {_keys(entry)}",
                where=where,
                fix="give each retrieved entry the id of its document",
            )
        return doc_id(doc, where), None if score is None else _score(score, query, where)
    return doc_id(entry, where), None


def _items(entries: object, query: str, where: str) -> Iterator[tuple[list[str], float]]:
    """Go through the items of a gold field: ids, groups of ids, or objects with a grade."""
    if isinstance(entries, Mapping):
        yield from (([doc_id(doc, where)], _grade(g, query, where)) for doc, g in entries.items())
        return
    for entry in _several(entries):
        if isinstance(entry, Mapping):
            docs = entry.get("docs", entry.get("doc"))
            grade = _grade(entry.get("grade", 1), query, where)
        else:
            docs, grade = entry, 1.0
        listed = [] if docs is None else _several(docs)
        yield [doc_id(doc, where) for doc in listed], grade


def _several(value: object) -> list[object]:
    """Return the elements of a list, tuple, set or array; anything else stands for itself."""
    if isinstance(value, Iterable) and not isinstance(value, Mapping | str | bytes):
        return list(value)
    return [value]


def _score(value: object, query: str, where: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"the score {str(value)[:40]!r} of query {query!r} is not a number",
            where=where,
            fix="give scores as numbers, or leave them out: the list is in rank order",
        ) from None


def _grade(value: object, query: str, where: str) -> float:
    with contextlib.suppress(OverflowError):
        if isinstance(value, int | float):
            return float(value)
    raise InputError(
        f"the grade {str(value)[:40]!r} of query {query!r} is not a number",
        where=where,
        fix="give grades as numbers: 0 for not relevant, 1 or more for relevant",
    )


def _query(record: object, number: int, where: str) -> str:
    if not isinstance(record, Mapping):
        raise InputError(
            f"record {number} is a {type(record).__name__}, not an object",
            where=where,
            fix='write records such as {"query": "q1", "retrieved": ["d1"], "gold": ["d1"]}',
        )
    return identifier(record.get("query", number), where)


def _field(record: Record, name: str, query: str, where: str) -> Any:  # noqa: ANN401
    if name not in record:
        guesses = (nearest(str(key), [name]) for key in record)
        close = next(filter(None, guesses), "")
        raise InputError(
            f"the record of query {query!r} has no field {name!r}, only {_keys(record)}",
            where=where,
            fix=close or f"add {name!r}; an empty list means that there is none",
        )
    value = record[name]
    return [] if value is None else value


def _twice(query: str, where: str) -> InputError:
    return InputError(
        f"query {query!r} has more than one record", where=where, fix="keep one record a query"
    )


def _keys(record: Mapping[Any, Any]) -> str:
    return ", ".join(map(str, record)) or "nothing"


def _describe(record: Record) -> dict[str, Any]:
    """Return what describes the query: every field that is neither the lists nor the id."""
    fields = {
        key: value for key, value in record.items() if key not in ("query", "retrieved", "gold")
    }
    return {
        key: json.dumps(value, ensure_ascii=False, default=str)
        if isinstance(value, Mapping | list | tuple)
        else value
        for key, value in fields.items()
    }


def _table(about: list[dict[str, Any]]) -> pl.DataFrame:
    names = list(dict.fromkeys(chain.from_iterable(about))) or ["query"]
    return pl.DataFrame(
        {
            name: pl.Series(name, [entry.get(name) for entry in about], strict=False)
            for name in names
        },
        schema_overrides={"query": pl.String},
    )


def _all_lines(source: Source) -> Iterator[Record]:
    return chain.from_iterable(_lines(block) for block in source.blocks())


def _lines(block: Block) -> list[Record]:
    records = []
    for number, raw in enumerate(block.data.split(b"\n")):
        if not raw.strip():
            continue
        try:
            records.append(json.loads(raw))
        except (ValueError, RecursionError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise InputError(
                f"not valid JSON: {what}",
                where=block.where(number),
                fix="write one JSON object a line",
            ) from None
    return records

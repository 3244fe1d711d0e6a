"""karat's own records: one JSON object a query, with what was retrieved, what is gold, or both.

    {"query": "q1", "question": "…", "retrieved": [{"doc": "d1", "score": 0.9}, "d2"],
     "gold": ["d1", ["d2", "d3"], {"docs": ["d4"], "grade": 2}], "topic": "billing"}

A retrieved list is in rank order. In the gold every entry is needed; the documents of one entry
are interchangeable. Every other field describes the query, to slice results by.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import polars as pl

from karat.data import Gold, Run, RunStream
from karat.errors import InputError, nearest
from karat.read.format import Format, Look, Samples, register_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.read.source import Block, Source

Record: TypeAlias = Mapping[str, Any]
FIELDS = ("query", "question", "retrieved", "gold", "reference")


@register_format
class Records(Format):
    """One JSON object a line."""

    name: ClassVar[str] = "jsonl"
    roles: ClassVar = frozenset({"run", "gold", "samples"})
    order: ClassVar[int] = 20

    def sniff(self, look: Look, role: str) -> bool:
        """The first line is a whole object, or the beginning of a long one with our fields."""
        del role
        first = look.head.lstrip().split(b"\n", 1)[0]
        if not first.startswith(b"{"):
            return False
        try:
            return isinstance(json.loads(first), dict) and (
                look.suffix != ".json" or b'"retrieved"' in first or b'"gold"' in first
            )
        except (ValueError, RecursionError):
            return look.suffix in (".jsonl", ".ndjson")

    def run(self, source: Source, name: str) -> RunStream:
        """Read what was retrieved, block by block."""

        def batches() -> Iterator[pl.DataFrame]:
            first = 1
            for block in source.blocks():
                records = _lines(block, source)
                yield _run_rows(records, str(source.path), first)
                first += len(records)

        return RunStream(name, batches, ordered=True)

    def gold(self, source: Source) -> Gold:
        """Read what is gold."""
        return gold(_all_lines(source), str(source.path))

    def samples(self, source: Source, name: str) -> Samples:
        """Read both."""
        return samples(_all_lines(source), name, str(source.path))


def run(records: Iterable[Record], name: str, where: str = "") -> Run:
    """Return the run of records."""
    return Run(name, _run_rows(list(records), where or name, 1), ordered=True)


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
    group = 0
    for number, record in enumerate(records, start=1):
        query = _query(record, number, where)
        entries = _field(record, "gold", query, where)
        about.append({"query": query, **_describe(record)})
        for docs, grade in _items(entries, query, where):
            group += 1
            key = group if len(docs) > 1 else None
            rows.extend((query, doc, grade, key) for doc in docs)
    queries = _table(about)
    if queries["query"].n_unique() < queries.height:
        twice = queries["query"].filter(queries["query"].is_duplicated())[0]
        raise InputError(
            f"query {twice!r} has more than one record", where=where, fix="keep one record a query"
        )
    schema = {"query": pl.String, "doc": pl.String, "grade": pl.Float64, "group": pl.Int64}
    return Gold.build(
        pl.DataFrame(rows, schema=schema, orient="row"),
        queries=queries,
    )


def _run_rows(records: list[Record], where: str, first: int) -> pl.DataFrame:
    queries: list[str] = []
    docs: list[str] = []
    scores: list[float | None] = []
    for number, record in enumerate(records, start=first):
        query = _query(record, number, where)
        for entry in _field(record, "retrieved", query, where):
            doc, score = _unit(entry, query, where)
            queries.append(query)
            docs.append(doc)
            scores.append(score)
    return pl.DataFrame(
        {"query": queries, "doc": docs, "score": scores},
        schema={"query": pl.String, "doc": pl.String, "score": pl.Float64},
    )


def _unit(entry: object, query: str, where: str) -> tuple[str, float | None]:
    if isinstance(entry, Mapping):
        doc, score = entry.get("doc", entry.get("id")), entry.get("score")
        if doc is None:
            raise InputError(
                f"a retrieved entry of query {query!r} has no doc, only {', '.join(entry)}",
                where=where,
                fix="give each retrieved entry the id of its document",
            )
        return identifier(doc, where), None if score is None else float(score)
    return identifier(entry, where), None


def _items(entries: object, query: str, where: str) -> Iterator[tuple[list[str], float]]:
    """Go through the items of a gold field: ids, groups of ids, or objects with a grade."""
    if isinstance(entries, Mapping):
        yield from (
            ([identifier(doc, where)], _grade(g, query, where)) for doc, g in entries.items()
        )
        return
    for entry in entries if isinstance(entries, list | tuple) else [entries]:
        if isinstance(entry, Mapping):
            docs = entry.get("docs", entry.get("doc"))
            grade = _grade(entry.get("grade", 1), query, where)
        else:
            docs, grade = entry, 1.0
        listed = docs if isinstance(docs, list | tuple | set | frozenset) else [docs]
        if not listed or docs is None:
            raise InputError(
                f"an item of the gold of query {query!r} names no document",
                where=where,
                fix="remove the empty item, or list the documents that satisfy it",
            )
        yield [identifier(doc, where) for doc in listed], grade


def _grade(value: object, query: str, where: str) -> float:
    if isinstance(value, int | float):
        return float(value)
    raise InputError(
        f"the grade {str(value)[:40]!r} of query {query!r} is not a number",
        where=where,
        fix="give grades as numbers: 0 for not relevant, 1 or more for relevant",
    )


def identifier(value: object, where: str) -> str:
    """Return an id as text; whole numbers are welcome, anything else is not an id."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if hasattr(value, "item"):  # a NumPy scalar
        return identifier(value.item(), where)
    raise InputError(
        f"{str(value)[:40]!r} is not an id", where=where, fix="ids are texts or whole numbers"
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
        close = next((nearest(key, [name]) for key in record if nearest(key, [name])), "")
        raise InputError(
            f"the record of query {query!r} has no field {name!r}, only {', '.join(record)}",
            where=where,
            fix=close or f"add {name!r}; an empty list means that there is none",
        )
    value = record[name]
    return [] if value is None else value


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


def _all_lines(source: Source) -> list[Record]:
    return list(chain.from_iterable(_lines(block, source) for block in source.blocks()))


def _lines(block: Block, source: Source) -> list[Record]:
    records = []
    for line, raw in enumerate(block.data.split(b"\n"), start=block.line):
        if not raw.strip():
            continue
        where = f"{source.path}, line {line}"
        try:
            records.append(json.loads(raw))
        except (ValueError, RecursionError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise InputError(
                f"not valid JSON: {what}", where=where, fix="write one JSON object a line"
            ) from None
    return records

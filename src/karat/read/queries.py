"""Tables about the queries: columns to slice results by."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

import polars as pl

from karat.errors import InputError
from karat.read.format import Look
from karat.read.ids import identifier
from karat.read.source import Source
from karat.read.table import frame
from karat.read.tabular import Csv, Tsv


def load_queries(data: object) -> pl.DataFrame:
    """Return a table with a column `query` of texts, from a path, a table, records or a dict."""
    where = "queries"
    if isinstance(data, str | os.PathLike):
        where = os.fspath(data)
        table = _read(Source.of(data))
    elif isinstance(data, Mapping):
        table = pl.DataFrame([{"query": query, **about} for query, about in data.items()])
    else:
        found = frame(data)
        table = pl.DataFrame(cast("Any", data)) if found is None else found
    if "query" not in table.columns:
        raise InputError(
            f"no column 'query', only {', '.join(table.columns[:12])}",
            where=where,
            fix="name the column of the query ids 'query'",
        )
    names = [identifier(value, where) for value in table["query"]]
    return table.with_columns(query=pl.Series(names, dtype=pl.String))


def _read(source: Source) -> pl.DataFrame:
    look = Look.at(source)
    try:
        with source.plain_file() as path:
            if look.head.startswith(b"PAR1"):
                return pl.read_parquet(path)
            if look.head.lstrip().startswith(b"{"):
                return pl.read_ndjson(path, infer_schema_length=None)
            tabs = b"\t" in look.head.split(b"\n", 1)[0]
            return (Tsv() if tabs else Csv()).whole(source)
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"the table cannot be read: {first}", where=source.where) from None

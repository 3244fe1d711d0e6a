"""What a retriever is asked: questions with the ids of their queries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from findwell.core.data import Gold
from findwell.core.errors import InputError
from findwell.io.read.queries import load_queries
from findwell.io.read.records import one_line
from findwell.io.read.values import identifier
from findwell.io.read.vocabulary import ASKED_IDS, ASKED_QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

WHERE = "queries"
FIX = (
    "give every query its question: queries={id: question}, a table with the columns query and "
    "question (--queries FILE), or a gold whose records have a question"
)


def load_questions(data: object) -> pl.DataFrame:
    """Return the columns query and question, and whatever else a table has about the queries.

    `data` is {id: question}, a list of questions, a path, a table, records, or a gold.

    >>> load_questions({"q1": "What is it?"}).row(0)
    ('q1', 'What is it?')
    >>> load_questions(["What is it?"]).row(0)
    ('What is it?', 'What is it?')
    """
    if isinstance(data, Gold):
        return _checked(data.queries, "gold")
    if isinstance(data, Mapping) and all(isinstance(each, str) for each in data.values()):
        ids = [identifier(name, WHERE) for name in data]
        return _checked(_table(ids, list(data.values())), WHERE)
    if isinstance(data, list | tuple) and all(isinstance(each, str) for each in data):
        return _checked(_table(_different(map(one_line, data)), list(data)), WHERE)
    where = os.fspath(data) if isinstance(data, str | os.PathLike) else WHERE
    table = load_queries(data, ASKED_IDS)
    return _checked(_with_question(table), where)


def questions_for(gold: Gold, queries: object) -> pl.DataFrame:
    """Return the questions of a gold: its own, or those of a table about its queries."""
    if "question" in gold.queries.columns or queries is None:
        return _checked(gold.queries, "gold")
    asked = load_questions(queries)
    names = gold.queries.select("query")
    return _checked(names.join(asked, on="query", how="left", maintain_order="left"), WHERE)


def _table(ids: list[str], questions: list[Any]) -> pl.DataFrame:
    schema = {"query": pl.String, "question": pl.String}
    return pl.DataFrame({"query": ids, "question": questions}, schema=schema)


def _with_question(table: pl.DataFrame) -> pl.DataFrame:
    """Name the column that holds the questions; without one, the ids are the questions."""
    named = next((name for name in ASKED_QUESTIONS if name in table.columns), "query")
    return table.with_columns(question=pl.col(named).cast(pl.String))


def _different(names: Iterable[str]) -> list[str]:
    """Number questions that are asked again, as records without ids are numbered."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _checked(table: pl.DataFrame, where: str) -> pl.DataFrame:
    if "question" not in table.columns:
        raise InputError("there are no questions to ask a retriever", where=where, fix=FIX)
    if not table.height:
        raise InputError("there is no query to ask", where=where, fix=FIX)
    table = table.with_columns(pl.col("question").cast(pl.String))
    blank = table.filter(pl.col("question").fill_null("").str.strip_chars() == "")
    if blank.height:
        raise InputError(
            f"{blank.height} of {table.height} queries have no question, for example "
            f"{blank['query'][0]!r}",
            where=where,
            fix=FIX,
        )
    again = table.filter(pl.col("query").is_duplicated())["query"]
    if len(again):
        raise InputError(
            f"query {again[0]!r} is there more than once", where=where, fix="keep one row per query"
        )
    return table

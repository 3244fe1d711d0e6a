"""Answers to one query that hold results: responses, tables, lists per field, batches of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from findwell.core.errors import InputError
from findwell.io.read.object_fields import (
    get_field,
    is_list,
    is_number,
    is_plain,
    is_row,
    known_source,
    look_up,
    not_readable,
)
from findwell.io.read.object_sources import COLUMN_FORMS, RESPONSES, TABLE_OF_HITS

if TYPE_CHECKING:
    from findwell.io.read.object_sources import ColumnForm


def results_of(answer: object) -> tuple[Iterable[object], bool]:
    """Return the results of an answer in their order, and whether strings are texts among them."""
    if answer is None:
        return (), False
    if isinstance(answer, list | tuple):
        return _one_answer(list(answer))
    rows = _table_rows(answer)
    if rows is not None:
        return rows, False
    columns = _columns(answer)
    if columns is not None:
        return columns, False
    found = _response(answer) or _component(answer)
    if found is not None:
        return found
    if not is_list(answer):
        raise not_readable(answer)
    return _one_answer(list(answer))  # type: ignore[call-overload]


def _one_answer(results: list[object]) -> tuple[Iterable[object], bool]:
    """Return results as they are, or those of the only query of a batch, as Milvus gives them."""
    if results and all(map(_is_several, results)):
        if len(results) > 1:
            raise InputError(
                f"the answers to {len(results)} queries, where those to one are expected",
                fix="take them apart: give every query its own",
            )
        return results_of(results[0])
    return results, False


def is_answer(value: object) -> bool:
    """Tell whether this is an answer of a known form that is no list, such as a response."""
    names = _column_names(value)
    if names is not None:  # a table, which may as well be a run or records
        return not TABLE_OF_HITS.isdisjoint(names)
    return _columns(value) is not None or _holds_results(value)


def _column_names(value: object) -> list[str] | None:
    """Return the columns of a table of polars, pandas or Arrow; None if it is none."""
    if isinstance(value, pl.LazyFrame):
        return value.collect_schema().names()
    if isinstance(value, Mapping) or not hasattr(value, "columns"):
        return None
    return [str(name) for name in getattr(value, "column_names", value.columns)]


def _table_rows(answer: object) -> list[dict[str, Any]] | None:
    """Return the rows of a data frame or an Arrow table."""
    if _column_names(answer) is None:
        return None
    from findwell.io.read.tables import frame  # noqa: PLC0415 - which reads records, as this does for it

    table = frame(answer)
    return None if table is None else table.to_dicts()


def _columns(answer: object) -> list[dict[str, Any]] | None:
    """Return the results of an answer that holds one list per field, as Chroma's does."""
    for form in COLUMN_FORMS:
        docs, texts = get_field(answer, form.doc), get_field(answer, form.text)
        if isinstance(docs, list) and (isinstance(texts, list) or texts is None):
            return _rows_of(answer, form)
    return None


def _rows_of(answer: object, form: ColumnForm) -> list[dict[str, Any]]:
    names = {form.doc: "id", form.text: "text", form.metadata: "metadata"}
    lists = {key: _one_query(get_field(answer, name)) for name, key in names.items() if name}
    for name, direction in form.score:
        numbers = _one_query(get_field(answer, name))
        if numbers is not None:
            lists["_distance" if direction == "lower" else "_score"] = numbers
            break
    given = {key: values for key, values in lists.items() if values is not None}
    return [
        {key: value for key, value in zip(given, row, strict=True) if value is not None}
        for row in zip(*given.values(), strict=True)
    ]


def _one_query(values: object) -> list[Any] | None:
    """Return the list of the only query of a batch; a list without lists is it already."""
    if not isinstance(values, list):
        return None
    if not values or not isinstance(values[0], list):
        return values
    if len(values) > 1:
        raise InputError(
            f"the answers to {len(values)} queries, where those to one are expected",
            fix="take them apart: give every query its own",
        )
    return list(values[0])


def _response(answer: object) -> tuple[list[object], bool] | None:
    body = get_field(answer, "body")
    if isinstance(body, Mapping):  # as the clients of Elasticsearch wrap it
        answer = body
    for form in RESPONSES:
        found = look_up(answer, form.path)
        if isinstance(found, list | tuple):
            listed: list[object] = list(found)
            if form.within:
                listed = [hit for group in listed for hit in look_up(group, form.within) or ()]
            return listed, form.texts
    return None


def _component(answer: object) -> tuple[list[object], bool] | None:
    """Return what the only component of a pipeline of Haystack gave."""
    if isinstance(answer, Mapping) and len(answer) == 1:
        (part,) = answer.values()
        if isinstance(part, Mapping):
            return _response(part)
    return None


def _holds_results(answer: object) -> bool:
    """Tell whether this is a response; a dict must hold objects, since ids have other readings."""
    if is_plain(answer) or isinstance(answer, list | tuple):
        return False
    found = _response(answer)
    if found is None:
        return False
    results, texts = found
    return texts or not results or not any(map(is_plain, results))


def _is_several(value: object) -> bool:
    """Tell an answer, which holds results, from one result and from a pair (document, score)."""
    if not isinstance(value, list | tuple):
        known = is_plain(value) or known_source(value) is not None
        return not known and _holds_results(value)
    if is_row(value):
        return False
    return not value or not (is_plain(value[0]) or is_number(value[-1]))

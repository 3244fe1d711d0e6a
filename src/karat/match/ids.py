"""The relation `ids`: a unit covers the items that list its id.

Ids may be normalised first, so that a chunk meets the document it was cut from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from karat.data import Gold, Run, document_keys
from karat.errors import OptionError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from karat.align import Aligned
    from karat.data import Bools, Ints

Normaliser: TypeAlias = "str | Callable[[str], str]"

NORMALISERS = {
    "identity": "ids as they are",
    "uuid": "the first <urn:uuid:…> inside the id, other ids unchanged",
    "chunk-to-doc:SEP": "the id up to its last SEP (# by default)",
    "regex:PATTERN": "the first group of the first match, other ids unchanged",
}


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """What a batch of a run covers: its edges, and its notable units."""

    query: Ints
    rank: Ints
    item: Ints
    unit_query: Ints
    unit_rank: Ints
    unit_judged: Bools
    unit_repeat: Ints


class IdMatcher:
    """Draws the edges between the batches of a run and one gold."""

    def __init__(self, gold: Gold) -> None:
        self._item = gold.member_item
        self._judged = gold.item_grade >= 0
        self._doc = gold.member_doc
        self._query = gold.member_query
        self._keys = document_keys(self._query, gold.member_doc)

    def match(self, aligned: Aligned) -> Edges:
        """Return the edges of a batch: the pairs of a row and an item with the same id."""
        row, member = self._pairs(aligned)
        item = self._item[member]
        unit = row[self._judged[item]]
        unit = unit[np.diff(unit, prepend=-1) > 0]  # rows come sorted; each once
        judged, repeat = np.ones(len(unit), dtype=bool), np.zeros(len(unit), dtype=np.int64)
        if aligned.repeat is not None:
            notable = np.union1d(unit, np.flatnonzero(aligned.repeat))
            unit, judged = notable, np.isin(notable, unit)
            repeat = aligned.repeat[unit]
        return Edges(
            query=aligned.query[row],
            rank=aligned.rank[row],
            item=item,
            unit_query=aligned.query[unit],
            unit_rank=aligned.rank[unit],
            unit_judged=judged,
            unit_repeat=repeat,
        )

    def _pairs(self, aligned: Aligned) -> tuple[Ints, Ints]:
        # of the gold only the queries of this batch; members are sorted by query
        first = np.searchsorted(self._query, aligned.query.min(initial=len(self._query)))
        last = np.searchsorted(self._query, aligned.query.max(initial=-1), side="right")
        rows = pl.DataFrame({"key": document_keys(aligned.query, aligned.doc)})
        members = pl.DataFrame({"key": self._keys[first:last]})
        pairs = rows.with_row_index("row").join(
            members.with_row_index("member"), on="key", maintain_order="left_right"
        )
        row = pairs["row"].to_numpy().astype(np.int64)
        member = pairs["member"].to_numpy().astype(np.int64) + first
        # equal keys are not proof: compare what they stand for
        same: Bools = aligned.query[row] == self._query[member]
        same &= (aligned.doc.gather(row) == self._doc.gather(member)).to_numpy()
        return row[same], member[same]


def normalise_run(run: Run, how: Normaliser) -> Run:
    """Return the run with its document ids normalised."""
    change = _change(how)
    if change is None:
        return run
    raw = run.rows["doc"]
    return replace(run, rows=run.rows.with_columns(doc=change(raw), raw=raw))


def normalise_gold(gold: Gold, how: Normaliser) -> Gold:
    """Return the gold with its document ids normalised; documents that become one count once."""
    change = _change(how)
    if change is None:
        return gold
    sizes = np.bincount(gold.member_item, minlength=len(gold.item_grade))
    alone = sizes[gold.member_item] == 1
    rows = pl.DataFrame(
        {
            "query": gold.queries["query"].gather(gold.member_query),
            "doc": change(gold.member_doc),
            "grade": gold.item_grade[gold.member_item],
            "group": pl.Series(gold.member_item).set(pl.Series(alone), None),
        }
    )
    best = rows.sort("grade", descending=True, maintain_order=True).unique(
        ["query", "doc", "group"], keep="first", maintain_order=True
    )
    return Gold.build(best, queries=gold.queries, findings=gold.findings, flaws=gold.flaws)


def _change(how: Normaliser) -> Callable[[pl.Series], pl.Series] | None:
    """Return the function that normalises a column of ids, or None for identity."""
    if callable(how):
        return lambda ids: _map_distinct(ids, how)
    name, _, argument = how.partition(":")
    if how == "identity":
        return None
    if how == "uuid":
        return lambda ids: _extract(ids, "(<urn:uuid:[^>]+>)")
    if name == "chunk-to-doc":
        separator = re.escape(argument or "#")
        return lambda ids: _extract(ids, f"(?s)^(.*){separator}")
    if name == "regex" and argument:
        _check_pattern(argument)
        return lambda ids: _extract(ids, argument)
    known = ", ".join(NORMALISERS)
    suggestion = nearest(name, (entry.partition(":")[0] for entry in NORMALISERS))
    raise OptionError(
        f"unknown id normaliser {how!r}", fix=f"{suggestion} (known: {known})".strip()
    )


def _extract(ids: pl.Series, pattern: str) -> pl.Series:
    return ids.str.extract(pattern, 1).fill_null(ids)


def _map_distinct(ids: pl.Series, function: Callable[[str], str]) -> pl.Series:
    distinct = ids.unique(maintain_order=True)
    changed = pl.Series([str(function(value)) for value in distinct], dtype=pl.String)
    return ids.replace_strict(distinct, changed, return_dtype=pl.String)


def _check_pattern(pattern: str) -> None:
    try:
        groups = re.compile(pattern).groups
        pl.Series([""]).str.extract(pattern, 1)
    except (re.error, pl.exceptions.PolarsError) as error:
        first = str(error).splitlines()[0]
        raise OptionError(f"{pattern!r} is not a regular expression: {first}") from None
    if not groups:
        raise OptionError(
            f"the pattern {pattern!r} has no group",
            fix="put parentheses around the part of the id to keep",
        )

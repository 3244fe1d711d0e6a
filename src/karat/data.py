"""The nouns that come in: what was retrieved (Run) and what should be found (Gold).

A `Run` is a table of retrieved documents. A `Gold` is a list of items for each query; an item is
one thing that should be found, and any one of its documents is enough to find it. Both are
frozen; nothing here decides about order, ties or duplicates in the run: that is `align`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from karat.errors import InputError
from karat.findings import EXAMPLES, Finding, merge_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    Order: TypeAlias = Literal["listed", "scored", "mapped"]

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]


CACHED = 1 << 18  # rows whose keys fit the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What one system retrieved: a row a document.

    `rows` has the columns query and doc (strings) and, where there are scores, score (float64).
    `order` says what the order of the rows of a query means: `listed` is rank order (a list is
    what the LLM saw); otherwise the score decides, and the rows are in the order of a file
    (`scored`) or in none (`mapped`).
    """

    name: str
    rows: pl.DataFrame
    order: Order = "scored"
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        queries = self.rows["query"].n_unique()
        return f"Run({self.name!r}, {queries} queries, {self.rows.height} documents)"

    def stream(self) -> RunStream:
        """Return the run in batches that fit the processor's cache."""
        return RunStream(
            self.name, lambda: self.rows.iter_slices(CACHED), self.order, self.findings, self.rows
        )


@dataclass(frozen=True, slots=True, eq=False)
class RunStream:
    """A run that is read batch by batch, each a table like `Run.rows`, as often as needed."""

    name: str
    batches: Callable[[], Iterator[pl.DataFrame]]
    order: Order = "scored"
    findings: tuple[Finding, ...] = ()
    whole: pl.DataFrame | None = None  # all batches, where memory holds them anyway

    def collect(self) -> Run:
        """Read it whole."""
        rows = pl.concat(self.batches()) if self.whole is None else self.whole
        return Run(self.name, rows, self.order, self.findings)


@dataclass(frozen=True, slots=True, eq=False)
class Gold:
    """What should be found: for each query its items, for each item its interchangeable docs.

    The items of query `q` are `item_offset[q]:item_offset[q+1]`, highest grade first. `member_doc`
    lists the documents, `member_item` the item that each of them satisfies.
    """

    queries: pl.DataFrame  # query, then any column that slices the queries
    query_numbers: Mapping[str, int]  # where each query stands
    item_offset: Ints
    item_grade: Floats
    member_item: Ints
    member_doc: pl.Series
    findings: tuple[Finding, ...] = ()
    flaws: Mapping[str, str] = field(default_factory=dict)  # queries with blank or empty entries

    def __repr__(self) -> str:
        return f"Gold({self.queries.height} queries, {len(self.item_grade)} items)"

    @property
    def member_query(self) -> Ints:
        """The query of each member."""
        return self.item_query[self.member_item]

    @property
    def item_query(self) -> Ints:
        """The query of each item."""
        return np.repeat(np.arange(len(self.item_offset) - 1), np.diff(self.item_offset))

    @classmethod
    def build(
        cls,
        rows: pl.DataFrame,
        *,
        queries: pl.DataFrame | None = None,
        findings: Iterable[Finding] = (),
        flaws: Mapping[str, str] | None = None,
    ) -> Gold:
        """Make the gold of rows with the columns query, doc, grade and, for groups, group.

        Rows with the same query and the same non-null group are one item: any of their documents
        satisfies it. `queries` adds queries without rows and columns to slice by; without it the
        queries come in the order of their first row.
        """
        _check_grades(rows)
        if queries is None:
            names = rows["query"].rle().struct.field("value").unique(maintain_order=True)
            queries = pl.DataFrame({"query": names})
        numbers = {name: number for number, name in enumerate(queries["query"])}
        index = query_index(rows["query"], numbers)
        rows, index, repeats = _drop_repeats(rows, index)
        item, mixed = _number_items(rows, index)
        grade = rows["grade"].to_numpy()
        if item is None:  # every document is an item of its own
            order = _best_first(index, grade)
            item_query, item_grade = index, grade
            member_item, member_order = np.arange(len(order)), order
        else:
            item_query = np.zeros(int(item.max()) + 1, dtype=np.int64)
            item_query[item] = index
            item_grade = np.full(len(item_query), -np.inf)
            np.maximum.at(item_grade, item, grade)
            order = _best_first(item_query, item_grade)
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            member_order = np.argsort(place[item], kind="stable")
            member_item = place[item][member_order]
        counts = np.bincount(item_query, minlength=queries.height)
        return cls(
            queries=queries,
            query_numbers=numbers,
            item_offset=np.concatenate(([0], np.cumsum(counts))),
            item_grade=item_grade[order],
            member_item=member_item,
            member_doc=rows["doc"].rechunk().gather(member_order),
            findings=merge_findings((*findings, *repeats, *mixed)),
            flaws=flaws or {},
        )


def query_index(values: pl.Series, numbers: Mapping[str, int]) -> Ints:
    """Return the number of each query, or -1 where it has none.

    Equal neighbours are looked up once, which is all it takes when a file keeps the rows of a
    query together.

    >>> query_index(pl.Series(["b", "b", "x"]), {"a": 0, "b": 1}).tolist()
    [1, 1, -1]
    """
    runs = values.rle()
    names = runs.struct.field("value").to_list()
    index = np.fromiter((numbers.get(name, -1) for name in names), np.int64, len(names))
    return np.repeat(index, runs.struct.field("len").to_numpy())


def document_keys(query: Ints, doc: pl.Series) -> pl.Series:
    """Return a 64-bit key of each (query, document): equal pairs have equal keys."""
    mixed = query.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return pl.Series(doc.hash().to_numpy() + mixed)


def all_different(query: Ints, doc: pl.Series) -> bool:
    """Tell whether certainly no document occurs twice in a query; if in doubt, say no."""
    keys = document_keys(query, doc)
    if not (query[1:] >= query[:-1]).all():
        return keys.n_unique() == len(keys)
    # cut between queries into pieces that fit the processor's cache
    cuts = np.searchsorted(query, query[CACHED::CACHED])
    pieces = zip([0, *cuts], [*cuts, len(keys)], strict=True)
    return all(keys[first:last].n_unique() == last - first for first, last in pieces)


def blank_ids(ids: pl.Series) -> pl.Series:
    """Tell which ids are empty or nothing but whitespace."""
    # stripping is slow, and what is blank sorts before or behind the ASCII letters and digits
    unusual = (ids < "!") | (ids > "~")
    if not unusual.any():
        return unusual
    return unusual & (ids.str.strip_chars().str.len_bytes() == 0)


def _best_first(query: Ints, grade: Floats) -> Ints:
    """Return the order by query, then by grade, the highest first."""
    whole = grade.astype(np.int64)
    if not len(grade) or np.abs(grade).max() > 1000 or (whole != grade).any():
        return np.lexsort((-grade, query))
    return np.argsort(query * 2001 - whole, kind="stable")  # one key sorts faster than two


def _check_grades(rows: pl.DataFrame) -> None:
    bad = rows.filter(~pl.col("grade").is_finite() | pl.col("grade").is_null())
    if bad.height:
        query, doc = bad.select("query", "doc").row(0)
        raise InputError(
            f"the grade of document {doc!r} for query {query!r} is not a finite number",
            where="gold",
            fix="give every judged document a number: 0 for not relevant, 1 or more for relevant",
        )


def _drop_repeats(rows: pl.DataFrame, index: Ints) -> tuple[pl.DataFrame, Ints, list[Finding]]:
    """Keep one row of a document that is listed again in the same query and group."""
    if all_different(index, rows["doc"]):
        return rows, index, []
    subset = [name for name in ("query", "doc", "group") if name in rows.columns]
    numbered = rows.with_columns(__row=pl.int_range(pl.len()))
    best = numbered.sort("grade", descending=True, maintain_order=True)
    kept = best.unique(subset=subset, keep="first").sort("__row")
    dropped = numbered.join(kept, on="__row", how="anti")
    clash = dropped.join(kept, on=subset, nulls_equal=True).filter(
        pl.col("grade") != pl.col("grade_right")
    )
    found = []
    if dropped.height:
        found.append(
            Finding(
                "gold-duplicate",
                dropped.height,
                _pairs(dropped),
                "the gold lists a document of a query more than once; it counts once",
                "remove the repeated judgements",
            )
        )
    if clash.height:
        found.append(
            Finding(
                "gold-conflict",
                clash.height,
                _pairs(clash),
                "the gold grades a document of a query in two ways; the higher grade counts",
                "keep one judgement a document",
            )
        )
    return kept.drop("__row"), index[kept["__row"].to_numpy()], found


def _number_items(rows: pl.DataFrame, index: Ints) -> tuple[Ints | None, list[Finding]]:
    """Number the items: a row without a group is an item of its own; None if all of them are."""
    if "group" not in rows.columns or rows["group"].null_count() == rows.height:
        return None, []
    keyed = pl.DataFrame(
        {
            "query": index,
            "group": rows["group"],
            "alone": pl.Series(np.arange(rows.height)).set(rows["group"].is_not_null(), None),
            "grade": rows["grade"],
        }
    )
    keys = ["query", "group", "alone"]
    items = (
        keyed.group_by(keys, maintain_order=True)
        .agg(mixed=pl.col("grade").min() != pl.col("grade").max())
        .with_row_index("item")
    )
    item = keyed.join(items, on=keys, nulls_equal=True, maintain_order="left")["item"]
    mixed = int(items["mixed"].sum())
    found = []
    if mixed:
        rows_of = items.filter("mixed").head(EXAMPLES)
        found.append(
            Finding(
                "mixed-grades",
                mixed,
                tuple(str(group) for group in rows_of["group"]),
                "documents of one group carry different grades; the highest is the group's",
                "give the documents of a group the same grade",
            )
        )
    return item.to_numpy().astype(np.int64), found


def _pairs(rows: pl.DataFrame) -> tuple[str, ...]:
    return tuple(f"{row[0]} / {row[1]}" for row in rows.select("query", "doc").head(3).rows())

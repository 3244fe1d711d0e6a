"""The nouns that come in: what was retrieved (Run) and what should be found (Gold).

A `Run` is a table of retrieved documents. A `Gold` is a list of items for each query; an item is
one thing that should be found, and any one of its documents is enough to find it. Both are
frozen; nothing here decides about order, ties or duplicates in the run: that is `align`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from findwell.core.columns import (
    CACHED_ROWS,
    HEAD,
    GrowingColumn,
    NameTable,
    all_different,
    narrowed,
    query_index,
)
from findwell.core.errors import InputError, takes_options
from findwell.core.findings import (
    Finding,
    FindingKind,
    finding_about,
    finding_about_rows,
    merge_findings,
)
from findwell.core.frames import NamesAt, Strings, Viewed, pl, unmade
from findwell.core.spelling import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Order: TypeAlias = Literal["listed", "scored", "mapped"]
    # what names a query: its id, or in a record without one its question, or else its position
    NamedBy: TypeAlias = Literal["id", "question", "position"]
    Ints: TypeAlias = NDArray[np.int64]
    Numbers: TypeAlias = NDArray[np.signedinteger[Any]]  # int64, or narrower to save memory
    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]


# what an entry may say next to its id; start and end count in the source, or else in the doc itself
FACTS = ("text", "start", "end", "source")
EMPTY_ITEM = "an item names no document"
TEXT_ITEM = "an item is a text, and names no document"


@takes_options()
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What one system retrieved: one row per document.

    `rows` has the columns query and doc (strings) and, where there are scores, score (float64);
    where texts were asked for, also text, start and end (its characters in the document), and
    source (that document, if not doc).
    `order` says what the order of the rows of a query means: `listed` is rank order (a list is
    what the LLM saw); otherwise the score decides, and the rows are in the order of a file
    (`scored`) or in none (`mapped`).
    """

    name: str
    rows: pl.DataFrame
    order: Order = "scored"
    findings: tuple[Finding, ...] = ()
    about: pl.DataFrame | None = None  # what its records say about their queries
    # what stands in other fields than ids, for those who name documents by another field
    others: Mapping[str, set[str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        queries = self.rows["query"].n_unique()
        return (
            f"Run({self.name!r}, {counted(queries)}, "
            f"{counted(self.rows.height, 'document', 'documents')})"
        )

    def stream(self) -> RunStream:
        """Return the run in batches that fit the processor's cache."""
        return RunStream(
            self.name,
            lambda: self.rows.iter_slices(CACHED_ROWS),
            self.order,
            self.findings,
            self.rows,
            lambda: self.about,
            others=lambda: self.others,
            carries=carried_facts(self.rows),
        )


@dataclass(frozen=True, slots=True, eq=False)
class RunStream:
    """A run that is read batch by batch, each a table like `Run.rows`, as often as needed."""

    name: str
    batches: Callable[[], Iterator[pl.DataFrame]]
    order: Order = "scored"
    findings: tuple[Finding, ...] = ()
    whole: pl.DataFrame | None = None  # all batches, where memory holds them anyway
    # what its records say about their queries, as far as they have been read
    about: Callable[[], pl.DataFrame | None] = lambda: None
    # problems in what has been read so far, in addition to `findings`
    found: Callable[[], tuple[Finding, ...]] = tuple
    # as of a run
    others: Callable[[], Mapping[str, set[str]]] = dict
    named_by: NamedBy = "id"
    # "texts", "places", "chunks" (the places are in a source): what stands next to its ids
    carries: frozenset[str] = frozenset()

    def collect(self) -> Run:
        """Read it whole."""
        rows = pl.concat(self.batches()) if self.whole is None else self.whole
        findings = (*self.findings, *self.found())
        return Run(self.name, rows, self.order, findings, self.about(), self.others())


@takes_options()
@dataclass(frozen=True, eq=False)
class Gold(Viewed):
    """What should be found: for each query its items, for each item its interchangeable docs.

    The items of query `q` are `item_offset[q]:item_offset[q+1]`, highest grade first. `member_doc`
    lists the documents, `member_item` the item that each of them satisfies.
    """

    queries: pl.DataFrame  # query, then any column that slices the queries
    item_offset: Ints
    item_grade: Floats
    member_item: Numbers
    member_doc: pl.Series
    findings: tuple[Finding, ...] = ()
    flaws: Mapping[str, str] = field(default_factory=dict)  # queries with blank or empty entries
    member_facts: pl.DataFrame | None = None  # their text, start and end, where asked for
    named_by: NamedBy = "id"
    carries: frozenset[str] = frozenset()  # as of a run; read or not
    item_times: Ints | None = None  # how often each was listed, if any was listed more than once
    member_weight: Floats | None = None  # how far each document supports its item; None: fully
    item_apart: Bools | None = None  # items that stay apart from others with the same documents
    n: int = field(init=False)  # how many queries
    columns: Sequence[str] = field(init=False)  # of `queries`, which need not be made for it
    names: Strings | None = field(init=False)  # of the queries, where compiled code read them

    def __post_init__(self) -> None:
        """Note what is asked for often."""
        super().__post_init__()
        given = unmade(self, "queries")
        self.__dict__.update(
            n=len(self.item_offset) - 1,
            columns=self.queries.columns if given is None else given.columns,
            names=None if given is None else given.strings,
        )

    def __repr__(self) -> str:
        return f"Gold({counted(self.n)}, {counted(len(self.item_grade), 'item', 'items')})"

    def names_at(self, at: Bools | Ints) -> NamesAt:
        """Return the names of some queries."""
        return NamesAt(self.queries["query"] if self.names is None else self.names, at)

    @cached_property
    def query_numbers(self) -> dict[str, int]:
        """Where each query stands."""
        return {name: number for number, name in enumerate(self.queries["query"])}

    def find(self, queries: pl.Series) -> Ints:
        """Return the number of each query, or -1 where there is none.

        Queries in the order of the gold, as in records that hold both, are not looked up one by
        one.
        """
        if not len(queries):
            return np.zeros(0, dtype=np.int64)
        head = queries.head(HEAD)
        scattered = 2 * len(head.rle()) > len(head)  # the rows of a query do not stand together
        many = 2 * len(queries) > self.queries.height > HEAD
        if scattered and many and self._table is not None:
            return self._table.find(queries)
        runs = queries.rle()
        names, known = runs.struct.field("value"), self.queries["query"]
        places = (at for at in self._asked if at < len(known) and known[at] == names[0])
        first = next(places, None) or known.index_of(names[0])
        if first is not None and names.equals(known.slice(first, len(names))):
            self._asked[:] = [first, first + len(names)]
            index = np.arange(first, first + len(names))
        else:
            index = query_index(names, self.query_numbers)
        return np.repeat(index, runs.struct.field("len").to_numpy())

    @cached_property
    def _asked(self) -> list[int]:
        """Where the queries began and ended that were asked for last: the next ones are near."""
        return []

    @cached_property
    def _table(self) -> NameTable | None:
        return NameTable.of(self.queries["query"])

    @property
    def member_query(self) -> Ints:
        """The query of each member."""
        return self.item_query[self.member_item]

    @property
    def item_query(self) -> Ints:
        """The query of each item."""
        return np.repeat(np.arange(len(self.item_offset) - 1), np.diff(self.item_offset))

    def rows(self) -> pl.DataFrame:
        """Return one row per member: query, doc, grade, group where it has alternatives, facts.

        If anything was listed more than once, times is how often.
        """
        alone = np.bincount(self.member_item, minlength=len(self.item_grade)) == 1
        if self.item_apart is not None:
            alone &= ~self.item_apart
        rows = pl.DataFrame(
            {
                "query": self.queries["query"].gather(self.member_query),
                "doc": self.member_doc,
                "grade": self.item_grade[self.member_item],
                "group": pl.Series(self.member_item, dtype=pl.Int64).set(
                    pl.Series(alone[self.member_item]), None
                ),
            }
        )
        if self.item_apart is not None:
            rows = rows.with_columns(apart=self.item_apart[self.member_item])
        if self.item_times is not None:
            rows = rows.with_columns(times=self.item_times[self.member_item])
        if self.member_weight is not None:
            rows = rows.with_columns(weight=self.member_weight)
        return rows if self.member_facts is None else rows.hstack(self.member_facts)

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
        satisfies it. A document that is listed again counts once, also where a group holds no other
        (see `merge_equal`); a column times has how often rows were listed before. A group whose
        name is a text is always an item of its own, and so is one whose rows have a weight, which
        says how far the document supports the item. `queries` adds queries without rows and columns
        to slice by; without it the queries come in the order of their first row.
        """
        check_grades(rows)
        rows = _with_apart(rows)
        if queries is None:
            names = rows["query"].rle().struct.field("value").unique(maintain_order=True)
            queries = pl.DataFrame({"query": names})
        empty = np.zeros(0, dtype=np.int64)
        unfilled = cls(queries, empty, empty.astype(np.float64), empty, rows["doc"])
        index = unfilled.find(rows["query"])
        rows, index, repeats = drop_repeats(rows, index)
        item, mixed = number_items(rows, index)
        grade = rows["grade"].to_numpy()
        if item is None:  # every document is an item of its own
            order = best_first(index, grade)
            item_query, item_grade = index, grade
            member_item, member_order = narrowed(np.arange(len(order))), order
        else:
            item_query = np.zeros(int(item.max()) + 1, dtype=np.int64)
            item_query[item] = index
            item_grade = np.full(len(item_query), -np.inf)
            np.maximum.at(item_grade, item, grade)
            order = best_first(item_query, item_grade)
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            member_order = np.argsort(place[item], kind="stable")
            member_item = place[item][member_order]
        counts = np.bincount(item_query, minlength=queries.height)
        rows = rows.rechunk()
        facts = [name for name in FACTS if name in rows.columns]
        times = None
        if "times" in rows.columns:  # a group was listed once, whatever is listed in it
            times = np.ones(len(order), dtype=np.int64)
            times[member_item] = rows["times"].gather(member_order).to_numpy()
        return cls(
            queries=queries,
            item_offset=np.concatenate(([0], np.cumsum(counts))),
            item_grade=item_grade[order],
            member_item=member_item,
            member_doc=rows["doc"].gather(member_order),
            findings=merge_findings((*findings, *repeats, *mixed)),
            flaws=flaws or {},
            member_facts=rows.select(facts)[member_order] if facts else None,
            item_times=times,
            member_weight=rows["weight"].gather(member_order).to_numpy()
            if "weight" in rows.columns
            else None,
            item_apart=None if item is None else _of_items(rows, item, order),
        )

    @classmethod
    def join(cls, parts: Iterable[Gold]) -> Gold:
        """Put golds of documents together that share no query, taking one part after the other."""
        queries, docs, offsets = [], [], []
        findings: list[Finding] = []
        times: list[Ints | None] = []
        counts: list[int] = []
        grades, items = GrowingColumn(np.float64), GrowingColumn(np.int32)
        for part in parts:
            queries.append(part.queries)
            docs.append(part.member_doc)
            offsets.append(part.item_offset[:-1] + len(grades))
            items.append(part.member_item + len(grades))
            grades.append(part.item_grade)
            findings += part.findings
            times.append(part.item_times)
            counts.append(len(part.item_grade))
        once = zip(times, counts, strict=True)
        return cls(
            queries=pl.concat(queries),
            item_offset=np.concatenate((*offsets, [len(grades)])),
            item_grade=grades.take(),
            member_item=items.take(),
            member_doc=pl.concat(docs),
            findings=merge_findings(findings),
            item_times=None
            if all(each is None for each in times)
            else np.concatenate([np.ones(n, np.int64) if t is None else t for t, n in once]),
        )


def carried_facts(rows: pl.DataFrame) -> frozenset[str]:
    """Return what rows say next to their ids: texts, places, or places of chunks in a source.

    >>> sorted(carried_facts(pl.DataFrame({"doc": ["c1"], "start": [0], "source": ["a.md"]})))
    ['chunks', 'places']
    """
    kinds = {"text": "texts", "start": "places"}
    carried = {kind for name, kind in kinds.items() if name in rows.columns and rows[name].count()}
    if {"doc", "source"} <= set(rows.columns) and (rows["source"] != rows["doc"]).any():
        carried.add("chunks")
    return frozenset(carried)


def best_first(query: Ints, grade: Floats) -> Ints:
    """Return the order by query, then by grade, the highest first."""
    if not len(grade) or np.abs(grade).max() > 1000:
        return np.lexsort((-grade, query))
    whole = grade.astype(np.int64)
    if (whole != grade).any():
        return np.lexsort((-grade, query))
    key = query * 2001 - whole  # one key sorts faster than two
    bits = len(key).bit_length()
    if int(key.max()).bit_length() + bits > 62:
        return np.argsort(key, kind="stable")
    # and faster still where the row is part of it
    return np.sort((key << bits) + np.arange(len(key))) & ((1 << bits) - 1)


def check_grades(rows: pl.DataFrame) -> None:
    """Refuse a grade that is not a finite number.

    >>> check_grades(pl.DataFrame({"query": ["q"], "doc": ["d"], "grade": [float("inf")]}))
    Traceback (most recent call last):
    findwell.core.errors.InputError: gold: the grade of document 'd' for query 'q' is not a finite
    number
      fix: give every judged document a number: 0 for not relevant, 1 or more for relevant
    """
    finite = rows["grade"].is_finite().fill_null(value=False)
    if not finite.all():
        query, doc = rows.filter(~finite).select("query", "doc").row(0)
        raise InputError(
            f"the grade of document {doc!r} for query {query!r} is not a finite number",
            where="gold",
            fix="give every judged document a number: 0 for not relevant, 1 or more for relevant",
        )


def _with_apart(rows: pl.DataFrame) -> pl.DataFrame:
    """Mark the rows of items that stay apart, where there are any; fill in full support."""
    grouped = pl.col("group").is_not_null() if "group" in rows.columns else pl.lit(value=False)
    apart = pl.lit(value=False)
    if "apart" in rows.columns:
        apart = pl.col("apart").fill_null(value=False)
    elif "group" in rows.columns and rows["group"].dtype == pl.String:
        apart = grouped
    elif "weight" in rows.columns:
        apart = grouped & pl.col("weight").is_not_null()
    rows = rows.with_columns(apart=apart)
    if "weight" in rows.columns:
        rows = rows.with_columns(pl.col("weight").fill_null(1.0))
    return rows if rows["apart"].any() else rows.drop("apart")


def _of_items(rows: pl.DataFrame, item: Ints, order: Ints) -> Bools | None:
    """Return which items stay apart, in their order."""
    if "apart" not in rows.columns:
        return None
    apart = np.zeros(len(order), dtype=bool)
    apart[item] = rows["apart"].to_numpy()
    return apart[order]


def drop_repeats(rows: pl.DataFrame, index: Ints) -> tuple[pl.DataFrame, Ints, list[Finding]]:
    """Keep one row of a document that is listed again in the same query and item."""
    if all_different(index, rows["doc"]):
        return rows, index, []
    key = [name for name in ("doc", *FACTS) if name in rows.columns]
    kept, dropped = merge_equal(rows.with_columns(__row=pl.int_range(pl.len())), key)
    kept = kept.sort("__row")
    same = ["query", *key, *(["group"] if "group" in rows.columns else [])]
    clash = dropped.join(kept, on=same, nulls_equal=True).filter(
        pl.col("grade") != pl.col("grade_right")
    )
    found = finding_about_rows(
        FindingKind.GOLD_DUPLICATE,
        dropped,
        "# gold judgement|judgements repeats|repeat a document of the query, which counts once.",
        "remove the repeated judgements",
    ) + finding_about_rows(
        "gold-conflict",
        clash,
        "# gold judgement|judgements gives|give a document another grade; the higher grade counts.",
        "keep one judgement for each document",
    )
    return kept.drop("__row"), index[kept["__row"].to_numpy()], found


def merge_equal(rows: pl.DataFrame, key: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows without repetitions, the best grades first, and the repetitions.

    Rows of one item that agree in `key` are one: that of the highest grade and of the best support.
    A group in which all agree is not a group but that document, and one item with the same document
    elsewhere in the query, unless it stays apart. The column times is how often a document that is
    an item was listed, alone or as such a group.
    """
    best = [name for name in ("grade", "weight") if name in rows.columns]
    same = ["query", *key]
    if not rows.select(pl.struct(same).is_duplicated().any()).item():
        return rows.sort(best, descending=True, maintain_order=True), rows.clear()
    if "times" not in rows.columns:
        rows = rows.with_columns(times=pl.lit(1, pl.Int64))
    grouped = pl.lit(value=False)
    if "group" in rows.columns:
        grouped = pl.col("group").is_not_null()
        apart = pl.col("apart") if "apart" in rows.columns else pl.lit(value=False)
        several = pl.struct(key).n_unique().over("query", "group") > 1
        first = pl.struct(*same, "group").is_first_distinct()  # a group is listed once
        rows = rows.with_columns(
            group=pl.when(apart | several).then("group"),
            times=pl.when(grouped).then(first.cast(pl.Int64)).otherwise("times"),
        )
        same.append("group")
    times = pl.when(grouped).then(pl.lit(1, pl.Int64)).otherwise(pl.col("times").sum().over(same))
    rows = rows.with_columns(times=times).sort(best, descending=True, maintain_order=True)
    again = ~rows.select(pl.struct(same).is_first_distinct()).to_series()
    return rows.filter(~again), rows.filter(again)


def number_items(rows: pl.DataFrame, index: Ints) -> tuple[Ints | None, list[Finding]]:
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
    return item.to_numpy().astype(np.int64), finding_about(
        "mixed-grades",
        items.filter("mixed")["group"],
        "# group|groups of gold documents has|have different grades; the highest counts.",
        "give the documents of a group the same grade",
    )

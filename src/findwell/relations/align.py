"""The one place that decides order, ties, duplicates, blank ids and extra queries of a run.

What missing and empty queries mean is decided in `findwell.relations.pipeline`, where all are
known.

Every choice is a field of `Policy`, has a name, and is printed with the result. What deserves
the user's attention becomes a finding, counted and with examples; nothing happens in silence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.columns import all_different, blank_ids, document_keys, sorted_by
from findwell.core.errors import AlignError, InputError
from findwell.core.findings import Finding, finding_about, finding_about_rows, name_rows
from findwell.core.frames import pl
from findwell.core.relation import Ties

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from findwell.core.data import Bools, Floats, Gold, Ints, Order, Run
    from findwell.core.policy import Policy


NO_QUERY = np.zeros(0, dtype=np.int64)  # a slice of some array would keep all of it in memory
KINDS = ("extra-query", "nan-score", "unsorted", "duplicate-document")  # of findings, in order


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings about several batches in the order of those about one; others first."""
    return sorted(findings, key=lambda each: KINDS.index(each.kind) if each.kind in KINDS else -1)


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """A run in the order of its ranks, against the queries of the gold.

    Row `i` is unit `doc[i]`, retrieved for query number `query[i]` of the gold at `rank[i]`;
    `repeat` is 1 for a unit that occurs before in the list, 2 if under the very same id.
    """

    query: Ints
    rank: Ints
    rows: pl.DataFrame  # doc (what tells units apart), and whatever else the run says about it
    repeat: Ints | None  # None: nothing is repeated
    asked: Ints  # queries whose list is empty
    blank: Ints  # queries whose list holds a blank id
    findings: tuple[Finding, ...]
    ties: Ties | None = None  # None: nothing is tied
    keys: pl.Series | None = None  # of `document_keys`, where they are known

    def first(self, depth: int | None) -> Aligned:
        """Return the run cut after this many ranks; None: as it is."""
        kept = self.rank <= (self.rank.max(initial=0) if depth is None else depth)
        if kept.all():
            return self
        return replace(
            self,
            query=self.query[kept],
            rank=self.rank[kept],
            rows=self.rows.filter(kept),
            repeat=None if self.repeat is None else self.repeat[kept],
            keys=None if self.keys is None else self.keys.filter(kept),
        )

    @property
    def doc(self) -> pl.Series:
        """The documents."""
        return self.rows["doc"]


def align(run: Run, gold: Gold, policy: Policy, *, by_id: bool = True) -> Aligned:
    """Rank the units of a run and find problems in them.

    What tells units apart is the column doc: ids, or texts or places, as the relation wants it.
    The ids as they were given, `raw` where doc holds something else, break ties; `by_id` says that
    a unit under the very same id is distinguished from one that became the same by normalising.
    """
    rows, query, findings = _known_queries(run.rows, gold)
    asked = NO_QUERY
    if rows["doc"].null_count():  # rows that mean an empty list
        none = rows["doc"].is_null().to_numpy()
        rows, query, asked = rows.filter(~none), query[~none], query[none]
    blank = NO_QUERY
    if policy.blank != "kept" and (without := blank_ids(rows["doc"])).any():
        if policy.blank == "error":
            name, doc = rows.select("query", "doc").filter(without).row(0)
            what = f"{doc!r} is not an id, but was retrieved for query {name!r}"
            raise InputError(what, where=run.name, fix="ids are texts or whole numbers")
        blank = query[without.to_numpy()]
    score, unranked = (None, []) if run.order == "listed" else _scores(rows, policy)
    findings += unranked
    if run.order != "mapped" and "score" in rows.columns:
        rising = _rising(query, rows["score"].to_numpy() if score is None else score)
        findings += unsorted_lists(rising, gold, run.order) if len(rising) else []
    order = _rank_order(query, score, rows["raw" if "raw" in rows.columns else "doc"])
    if order is not None:
        rows, query = rows.rechunk()[order], query[order]
        score = None if score is None else score[order]
    keys = document_keys(query, rows["doc"])
    again = None if all_different(query, rows["doc"], keys) else repeated(query, rows["doc"])
    rank = positions(query)
    ties = None if score is None else _ties(query, rank, score)
    if again is None:
        return Aligned(query, rank, rows, None, asked, blank, tuple(findings), ties, keys)
    findings += _duplicates(rows.filter(again), policy)
    repeat = again.astype(np.int64)
    exact = repeated(query, rows["raw"]) if by_id and "raw" in rows.columns else again
    if by_id and exact is not None:
        repeat += again & exact
    return Aligned(query, rank, rows, repeat, asked, blank, tuple(findings), ties, keys)


def _scores(rows: pl.DataFrame, policy: Policy) -> tuple[Floats, list[Finding]]:
    """Return the scores as precisely as they are compared, and those that rank last."""
    score = rows["score"].to_numpy()
    nan, findings = np.isnan(score), []
    if nan.any():
        findings = finding_about_rows(
            "nan-score",
            rows.filter(nan),
            "# score|scores is|are not a number and ranked last.",
            "find out why the retriever gave no score",
        )
        score = np.where(nan, -np.inf, score)
    if policy.scores == "float32":
        with np.errstate(over="ignore"):
            score = score.astype(np.float32)
    return score, findings


def _ties(query: Ints, rank: Ints, score: Floats) -> Ties | None:
    """Find the stretches of equal scores in lists that are in the order of their scores."""
    tied = (query[1:] == query[:-1]) & (score[1:] == score[:-1])
    tied &= score[1:] > -np.inf  # which means no score at all
    if not tied.any():
        return None
    edge = np.diff(np.concatenate(([False], tied, [False])).astype(np.int8))
    begin, end = np.flatnonzero(edge > 0), np.flatnonzero(edge < 0)
    found = Ties(query[begin], rank[begin], rank[end])
    order = np.argsort(found.query, kind="stable")
    return Ties(found.query[order], found.first[order], found.last[order])


def _known_queries(rows: pl.DataFrame, gold: Gold) -> tuple[pl.DataFrame, Ints, list[Finding]]:
    """Leave out the rows of queries that the gold does not have."""
    query = gold.find(rows["query"])
    extra = query < 0
    if not extra.any():
        return rows, query, []
    names = rows["query"].filter(extra).unique(maintain_order=True)
    return rows.filter(~extra), query[~extra], extra_queries(names)


def extra_queries(names: Sequence[str] | pl.Series) -> list[Finding]:
    """Report queries that the gold does not have."""
    return finding_about(
        "extra-query",
        names,
        "# query|queries of the run is|are not in the gold and left out.",
        "add its judgements to the gold, or ignore this",
    )


def _rank_order(query: Ints, score: Floats | None, doc: pl.Series) -> Ints | None:
    """Return the order by query, score descending, doc id descending; None if it holds already."""
    if score is None:
        grouped = bool((query[1:] >= query[:-1]).all()) or _contiguous(query)
        return None if grouped else np.argsort(query, kind="stable")
    same = query[1:] == query[:-1]
    tied = same & (score[1:] == score[:-1])
    order = None
    contiguous = _contiguous(query)
    if (same & (score[1:] > score[:-1])).any() or not contiguous:
        # queries stay in the order of the file where they can, however it was cut into batches
        place = np.cumsum(np.concatenate(([False], ~same))) if contiguous else query
        order = sorted_by({"query": place, "score": score}, descending=(False, True))
        query, score = query[order], score[order]
        tied = (query[1:] == query[:-1]) & (score[1:] == score[:-1])
    if not tied.any():
        return order
    order = np.arange(len(query)) if order is None else order
    # sort only the rows that share a score: by block of ties, then doc id descending
    block = np.cumsum(np.concatenate(([True], ~tied)))
    rows = np.flatnonzero(np.concatenate((tied, [False])) | np.concatenate(([False], tied)))
    ties = {"block": block[rows], "doc": doc.gather(order[rows])}
    order[rows] = order[rows[sorted_by(ties, descending=(False, True))]]
    return None if bool((order == np.arange(len(order))).all()) else order


def _contiguous(query: Ints) -> bool:
    """Tell whether the rows of every query stand together."""
    if not len(query):
        return True
    starts = query[np.flatnonzero(np.concatenate(([True], query[1:] != query[:-1])))]
    return len(np.unique(starts)) == len(starts)


def positions(query: Ints) -> Ints:
    """Number the rows of each query from 1."""
    if not len(query):
        return np.zeros(0, dtype=np.int64)
    start = np.flatnonzero(np.concatenate(([True], query[1:] != query[:-1])))
    return np.arange(len(query)) - np.repeat(start, np.diff([*start, len(query)])) + 1


def repeated(query: Ints, doc: pl.Series) -> Bools | None:
    """Mark the documents that occur before in the list of the same query; None if no one does."""
    pairs = pl.DataFrame({"query": query, "doc": doc})
    first = pairs.select(pl.struct("query", "doc").is_first_distinct()).to_series().to_numpy()
    return None if first.all() else ~first


def _rising(query: Ints, score: Floats) -> Ints:
    """Return the queries whose lists are not in the order of their scores."""
    if not _contiguous(query):
        order = np.argsort(query, kind="stable")
        query, score = query[order], score[order]
    rising = (query[1:] == query[:-1]) & (score[1:] > score[:-1])
    found: Ints = query[1:][rising]
    return found[np.flatnonzero(np.diff(found, prepend=-1))]


def unsorted_lists(queries: Ints, gold: Gold, order: Order = "scored") -> list[Finding]:
    """Report lists that are not in the order of their scores."""
    decides = "scores decide"
    fix = "if a low score means a good match, turn the scores around; trec_eval sorts too"
    if order == "listed":
        decides = "order of the list decides"
        fix = "if the scores are right, sort each list by them, best first"
    what = "# query|queries has|have documents out of the order of the scores."
    return finding_about("unsorted", gold.names_at(queries), f"{what} The {decides}.", fix)


def _duplicates(rows: pl.DataFrame, policy: Policy) -> list[Finding]:
    if policy.duplicates == "error":
        raise AlignError(
            f"a document is retrieved twice for one query: {name_rows(rows)[0]}",
            fix="remove the repetition, or use findwell's own dialect, which counts the first",
        )
    return finding_about_rows(
        "duplicate-document",
        rows,
        "# document|documents was|were retrieved again for the same query. "
        "The first counts, the repetition stays in the list as noise.",
        "remove repetitions before ranking (or --read ids=chunk-to-doc merged several chunks)",
    )

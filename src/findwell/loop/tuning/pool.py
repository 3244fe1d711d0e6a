"""Every document that any of several runs retrieved for a query, once, with what each run says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.columns import query_index, sorted_by
from findwell.core.data import FACTS, Run
from findwell.core.errors import AlignError, InputError, OptionError
from findwell.core.findings import (
    Finding,
    FindingKind,
    finding_about,
    finding_about_rows,
    merge_findings,
    shorten,
)
from findwell.core.frames import pl
from findwell.io.read import load_run, readable_again, several_inputs
from findwell.io.read.queries import join_queries
from findwell.relations.align import positions
from findwell.relations.preflight import DOCUMENTS, hint

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Gold, Ints, RunStream
    from findwell.io.read import RunLike

# Places that two lists of a query have in common are as many as the shorter list is long. Keyword
# and vector search share about a third of them.
FEWEST_PLACES = 100  # common places from which on an implausible share is refused
IMPLAUSIBLE_SHARE = 0.01  # share of common places
LOW_SHARE = 0.1  # share of common places below which there is a finding
FEWEST_REPORTED_PLACES = 10  # common places from which on there is a finding
MAKE_IDS_EQUAL = (
    "give a document the same id in every run: let every retriever return it, and name the field "
    "that holds it with --read id_from (id_from=)"
)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The documents of several runs, one row per document, sorted by query.

    Within a query they are in the order in which they are first met, going through the runs one
    after another from their first rank on: that order breaks the ties of every fusion. A document
    that a run lists again counts where it stands first, and the ranks behind it close up.
    """

    runs: tuple[str, ...]
    queries: pl.Series  # their names; one for which nothing was retrieved has no row
    query: Ints  # the number of the query of each row
    doc: pl.Series
    rank: Ints  # runs × rows, from 1; 0 where the run lacks the document
    score: Floats  # runs × rows; NaN where the run lacks the document or a score for it
    findings: tuple[Finding, ...]  # problems in the runs
    facts: dict[str, pl.Series]  # text and place of each row, as the first run that has any says

    @classmethod
    def of(
        cls, runs: Sequence[RunLike] | Pool, gold: Gold | None = None, *, disjoint: bool = False
    ) -> Pool:
        """Pool runs, each anything that `findwell.io.load_run` reads.

        With gold labels, runs whose records carry no query id are joined with them by their
        questions, or else by position. Runs that share almost no document are refused, unless
        they are `disjoint`: they search different collections.

        >>> pool = Pool.of([{"q": ["a", "b"]}, {"q": ["b", "c"]}])
        >>> pool.doc.to_list(), pool.rank.tolist()
        (['a', 'b', 'c'], [[1, 2, 0], [0, 1, 2]])
        """
        if isinstance(runs, Pool):
            return runs
        named = several_inputs(runs)
        if not named:
            fix = "pass them as a list: [first, second]"
            raise OptionError("there are no runs to fuse", fix=fix)
        loaded = [_opened(run, gold).collect() for _, run in named]
        queries = pl.concat([run.rows["query"] for run in loaded]).unique(maintain_order=True)
        numbers = {name: number for number, name in enumerate(queries)}
        lists = [_in_rank_order(run, query_index(run.rows["query"], numbers)) for run in loaded]
        rows = pl.concat([each.select("query", "doc") for each in lists])
        rows = rows.unique(maintain_order=True).sort("query", maintain_order=True)
        rank = np.zeros((len(lists), rows.height), dtype=np.int64)
        score = np.full((len(lists), rows.height), np.nan)
        for number, each in enumerate(lists):
            found = each.join(rows.with_row_index("row"), on=["query", "doc"])
            rank[number, found["row"].to_numpy()] = found["rank"].to_numpy()
            score[number, found["row"].to_numpy()] = found["score"].to_numpy()
        pool = cls(
            runs=tuple(run.name for run in loaded),
            queries=queries,
            query=rows["query"].to_numpy(),
            doc=rows["doc"],
            rank=rank,
            score=score,
            findings=merge_findings(
                found
                for run, each in zip(loaded, lists, strict=True)
                for found in _problems(run, each)
            ),
            facts=_facts(rows.with_columns(query=queries.gather(rows["query"])), loaded),
        )
        if disjoint:
            return pool
        return replace(pool, findings=(*pool.findings, *check_overlap(pool, loaded)))

    def take(self, rows: Ints) -> Pool:
        """Return the pool with its rows in another order, which keeps queries together."""
        return replace(
            self,
            query=self.query[rows],
            doc=self.doc.gather(rows),
            rank=self.rank[:, rows],
            score=self.score[:, rows],
            facts={name: column.gather(rows) for name, column in self.facts.items()},
        )

    def named(self, rows: Bools) -> pl.DataFrame:
        """Return the names of rows: query and doc."""
        found = np.flatnonzero(rows)
        names = self.queries.gather(self.query[found])
        return pl.DataFrame({"query": names, "doc": self.doc.gather(found)})

    def scores(self) -> Floats:
        """Return the scores, runs × rows; a run without any is an error."""
        without = (self.rank > 0).any(axis=1) & np.isnan(self.score).all(axis=1)
        if without.any():
            number = int(without.argmax())
            raise InputError(
                "it carries no scores",
                where=f"run {number + 1} ({self.runs[number]})",
                fix="give every document a score, or fuse by rank (reciprocal_rank_fusion, …-rrf)",
            )
        return self.score

    def answered(self) -> Bools:
        """Return runs × queries: whether the run has any document for the query."""
        counts = (
            np.bincount(self.query[rank > 0], minlength=len(self.queries)) for rank in self.rank
        )
        return np.array([count > 0 for count in counts])

    def unshared_queries(self) -> list[Finding]:
        """Return a finding about queries that only some of the runs answer."""
        runs = self.answered().sum(axis=0)
        return finding_about(
            "unshared-query",
            self.queries.filter((runs > 0) & (runs < len(self.runs))).to_list(),
            "# query|queries is|are not answered by every run and fused from those that answer.",
            "ask every retriever every question",
        )

    def score_ranks(self) -> Ints:
        """Return 1 + how many documents of the list score higher, so that equal scores share it.

        >>> Pool.of([{"q": {"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1}}]).score_ranks().tolist()
        [[1, 2, 2, 4]]
        """
        rank = pl.col("score").fill_nan(None).rank("min", descending=True).over("query")
        ranks = [
            pl.DataFrame({"query": self.query, "score": score})
            .select(rank.fill_null(0))
            .to_series()
            for score in self.scores()
        ]
        return np.array(ranks, dtype=np.int64)

    def best_first(self, score: Floats, k: int | None = None) -> Run:
        """Return the run that lists the documents of each query by this score, the first k."""
        if k is not None and (type(k) is not int or k < 1):
            raise OptionError(f"k={k!r} is not a whole number from 1", fix="for example k=10")
        return self.as_run(self.order(score, k), score)

    def order(self, score: Floats, limit: int | None = None) -> Ints:
        """Return the rows by this score, query by query, the first few of each.

        Equal scores keep the order of the pool; a row whose score is NaN is left out.
        """
        order = sorted_by({"query": self.query, "score": score}, descending=(False, True))
        order = order[~np.isnan(score[order])]
        return order if limit is None else order[positions(self.query[order]) <= limit]

    def as_run(self, order: Ints, score: Floats, name: str = "fused") -> Run:
        """Return the run that lists these rows in this order, query by query."""
        rows = pl.DataFrame(
            {
                "query": self.queries.gather(self.query[order]),
                "doc": self.doc.gather(order),
                "score": score[order],
                **{name: column.gather(order) for name, column in self.facts.items()},
            }
        )
        found = np.bincount(self.query[order], minlength=len(self.queries))
        nothing = pl.DataFrame({"query": self.queries.filter(pl.Series(found == 0))})
        if nothing.height:  # a row without a document
            rows = pl.concat([rows, nothing], how="diagonal")
        return Run(name, rows, "listed", self.findings)


def _opened(data: RunLike, gold: Gold | None) -> RunStream:
    data = readable_again(data)
    stream = load_run(data, texts=True)
    if gold is None:
        return stream
    return join_queries(stream, gold, lambda names: load_run(data, names=names, texts=True))


def _facts(candidates: pl.DataFrame, runs: Sequence[Run]) -> dict[str, pl.Series]:
    """Return what the runs say about each candidate in addition to its id: the first that does."""
    known = [
        run.rows.select("query", "doc", *(name for name in run.rows.columns if name in FACTS))
        for run in runs
    ]
    rows = pl.concat(known, how="diagonal").drop_nulls("doc")
    rows = rows.unique(["query", "doc"], keep="first", maintain_order=True)
    joined = candidates.join(rows, on=["query", "doc"], how="left", maintain_order="left")
    return {name: joined[name] for name in FACTS if name in joined.columns and joined[name].count()}


def _in_rank_order(run: Run, query: Ints) -> pl.DataFrame:
    """Return the documents of a run, each once, by query and rank, in the order of `align`."""
    score = pl.col("score") if "score" in run.rows.columns else pl.lit(None, pl.Float64)
    rows = run.rows.select(pl.Series("query", query), "doc", score=score.fill_nan(None))
    rows = rows.filter(pl.col("doc").is_not_null())
    if run.order == "listed":
        rows = rows.sort("query", maintain_order=True)
    else:
        keys = ["query", "score", "doc"]
        rows = rows.sort(keys, descending=[False, True, True], nulls_last=True)
    rows = rows.unique(["query", "doc"], keep="first", maintain_order=True)
    return rows.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query"))


def _problems(run: Run, kept: pl.DataFrame) -> list[Finding]:
    """Return problems in a run: its own findings, repeated documents, scores that are NaN."""
    found = list(run.findings)
    docs = run.rows.filter(pl.col("doc").is_not_null())
    if docs.height > kept.height:
        found += finding_about_rows(
            "duplicate-document",
            docs.filter(pl.struct("query", "doc").is_first_distinct().not_()),
            "# document|documents was|were retrieved again and fused at the first rank.",
            "remove repetitions before ranking",
        )
    if "score" in docs.columns:
        found += finding_about_rows(
            "nan-score",
            docs.filter(pl.col("score").is_nan()),
            "# score|scores is|are not a number and fused as if missing.",
            "find out why the retriever gave no score",
        )
    return found


@dataclass(frozen=True, slots=True)
class SharedDocuments:
    """What two runs have in common."""

    runs: tuple[int, int]
    asked: int  # queries that both answer
    apart: pl.Series  # those for which they share no document
    places: int  # documents that they could share
    shared: int

    @property
    def implausible(self) -> bool:
        """Whether the two can hardly name documents in the same way."""
        return self.places >= FEWEST_PLACES and self.shared < IMPLAUSIBLE_SHARE * self.places

    @property
    def low(self) -> bool:
        """Whether they share so little that it is worth knowing."""
        return self.places >= FEWEST_REPORTED_PLACES and self.shared < LOW_SHARE * self.places

    def __str__(self) -> str:
        return (
            f"{self.shared:,} of {self.places:,} possible documents, over {self.asked:,} queries "
            "that both answer"
        )


def check_overlap(pool: Pool, runs: Sequence[Run]) -> list[Finding]:
    """Refuse runs that name documents differently, and report those that share few.

    Two runs belong together if they share documents, or both share some with a third. Those of
    two groups that share nothing would be fused, and no document would gain from both.
    """
    pairs = [_compare(pool, pair) for pair in combinations(range(len(runs)), 2)]
    together = {0}
    for _ in runs:
        for pair in pairs:
            if not pair.implausible and not together.isdisjoint(pair.runs):
                together.update(pair.runs)
    for pair in pairs:
        if len(together.intersection(pair.runs)) == 1:
            raise _refusal(pool, pair, runs)
    return [finding for pair in pairs if pair.low for finding in _finding(pair, runs)]


def _compare(pool: Pool, pair: tuple[int, int]) -> SharedDocuments:
    count = len(pool.queries)
    listed = pool.rank[list(pair)] > 0
    lengths = np.array([np.bincount(pool.query[each], minlength=count) for each in listed])
    shared = np.bincount(pool.query[listed.all(axis=0)], minlength=count)
    places = lengths.min(axis=0)
    return SharedDocuments(
        pair,
        int((places > 0).sum()),
        pool.queries.filter(pl.Series((places > 0) & (shared == 0))),
        int(places.sum()),
        int(shared.sum()),
    )


def _refusal(pool: Pool, pair: SharedDocuments, runs: Sequence[Run]) -> AlignError:
    one, other = (runs[number] for number in pair.runs)
    query = pl.Series(pool.queries == pair.apart[0]).arg_max()
    docs = [
        str(pool.doc.filter(pl.Series((pool.query == query) & (pool.rank[number] == 1)))[0])
        for number in pair.runs
    ]
    shown = " and ".join(
        f"{run.name} has {shorten(doc, 40)!r}" for run, doc in zip((one, other), docs, strict=True)
    )
    made = [
        run.name
        for run in (one, other)
        if any(found.kind == FindingKind.TEXT_AS_ID for found in run.findings)
    ]
    why = f"; the ids of {' and '.join(made)} were made from texts" if made else ""
    guess = hint(one.rows["doc"], other.rows["doc"], DOCUMENTS)
    fix = MAKE_IDS_EQUAL
    if guess is not None:
        fix = f"{guess[0].why} (then {guess[1]} would match): write them alike in both runs"
    share = "no document" if pair.shared == 0 else "almost no document"
    return AlignError(
        f"the runs share {share} ({pair}), so they probably name the same documents differently, "
        f"such as a hash of the text and a UUID: for query {pair.apart[0]!r} {shown}{why}",
        where=f"run {one.name} and run {other.name}",
        fix=f"{fix}; if the runs search different collections, --disjoint (disjoint=True) fuses "
        "them as they are",
    )


def _finding(pair: SharedDocuments, runs: Sequence[Run]) -> list[Finding]:
    one, other = (runs[number].name for number in pair.runs)
    return finding_about(
        "few-shared-documents",
        pair.apart,
        f"# query|queries has|have no document that {one} and {other} share. In all they share "
        f"{pair}, which is less than retrievers of one collection usually do.",
        f"check that both runs name documents in the same way; if they do not, {MAKE_IDS_EQUAL}",
    )

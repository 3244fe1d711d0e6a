"""The one place that decides order, ties, duplicates, missing and extra queries.

Every choice is a field of `Policy`, has a name, and is printed with the result. What deserves
the user's attention becomes a finding, counted and with examples; nothing happens in silence.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from karat.data import EXAMPLES, Finding, document_keys, query_index
from karat.errors import AlignError

if TYPE_CHECKING:
    from collections.abc import Callable

    from karat.data import Bools, Floats, Gold, Ints, Run


Missing: TypeAlias = Literal["zero", "skip", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What to do where tools differ; the defaults are karat's."""

    scores: Literal["float64", "float32"] = "float64"  # how precisely scores are compared
    duplicates: Literal["first", "error"] = "first"  # a document again: noise, or refused
    missing: Missing = "zero"  # a query of the gold the run lacks
    no_relevant: Literal["undefined", "zero"] = "undefined"  # a query without a relevant item
    grades: Literal["any", "integer"] = "any"

    def as_dict(self) -> dict[str, str]:
        """Return the choices by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """A run in the order of its ranks, against the queries of a gold.

    Row `i` is document `doc[i]`, retrieved for query number `query[i]` of the gold at `rank[i]`;
    `repeated` marks a document that stands higher up already.
    """

    query: Ints
    rank: Ints
    doc: pl.Series
    repeated: Bools | None  # None: nothing is repeated
    findings: tuple[Finding, ...]


def align(run: Run, gold: Gold, policy: Policy) -> Aligned:
    """Rank the documents of a run and find what is odd about them."""
    rows, query, findings = _known_queries(run.rows, gold)
    score = None if run.ordered or "score" not in rows.columns else rows["score"].to_numpy()
    if score is not None:
        nan = np.isnan(score)
        findings += _nan_scores(rows, nan)
        score = np.where(nan, -np.inf, score) if nan.any() else score
        score = score.astype(np.float32) if policy.scores == "float32" else score
    doc = rows["doc"]
    order = _rank_order(query, score, doc)
    if order is not None:
        rows, query = rows[order], query[order]
        doc = rows["doc"]
    if score is not None:
        findings += _rank_disagrees(rows, query)
    rank = _positions(query)
    repeated = _repeated(query, doc)
    if repeated is not None:
        findings += _duplicates(rows.filter(repeated), policy)
    return Aligned(query, rank, doc, repeated, tuple(findings))


def check_gold(gold: Gold, policy: Policy, levels: dict[str, float]) -> list[Finding]:
    """Look at the gold alone; `levels` holds the relevance level that each measure asks for."""
    grade = gold.item_grade
    if policy.grades == "integer" and (grade != np.round(grade)).any():
        raise AlignError(
            f"the grade {grade[grade != np.round(grade)][0]:g} is not an integer",
            where="gold",
            fix="trec_eval knows integer grades only; karat's own dialect takes any number",
        )
    twice = next((f for f in gold.findings if f.kind == "gold-duplicate"), None)
    if policy.duplicates == "error" and twice is not None:
        raise AlignError(
            f"a document is judged twice for one query: {twice.examples[0]}",
            where="gold",
            fix="remove the repetition, or use karat's own dialect, which counts it once",
        )
    for name, level in levels.items():
        if not (grade >= level).any():
            highest = f"the highest grade is {grade.max():g}" if len(grade) else "it has no item"
            raise AlignError(
                f"the gold has no relevant item for {name}: {highest}",
                where="gold",
                fix="relevant means a grade of at least 1, or of --rel; check the grade column",
            )
    empty = np.zeros(gold.queries.height, dtype=bool)
    for level in set(levels.values()):
        empty |= np.bincount(gold.item_query[grade >= level], minlength=len(empty)) == 0
    if not empty.any():
        return []
    meaning = "scores 0" if policy.no_relevant == "zero" else "undefined, left out of the mean"
    return [
        Finding(
            "no-relevant-item",
            int(empty.sum()),
            tuple(gold.queries["query"].filter(empty).head(EXAMPLES)),
            f"query without a relevant item: {meaning}",
            "judge more documents for it, or report unanswerable queries as a slice",
        )
    ]


def missing_queries(seen: Bools, gold: Gold, run: str, policy: Policy) -> list[Finding]:
    """Look at the queries of the gold for which the run has no row."""
    count = int(np.count_nonzero(~seen))
    if not count:
        return []
    examples = tuple(gold.queries["query"].filter(~seen).head(EXAMPLES))
    if policy.missing == "error":
        raise AlignError(
            f"{_count(count, 'query', 'queries')} of the gold "
            f"{'is' if count == 1 else 'are'} missing, for example {examples[0]!r}",
            where=f"run {run}",
            fix="retrieve for every query, or choose what a missing one means: "
            "--missing zero (trec_eval -c) or --missing skip",
        )
    meaning = "left out" if policy.missing == "skip" else "scores 0"
    return [
        Finding(
            "missing-query",
            count,
            examples,
            f"query of the gold for which the run has nothing: {meaning}",
            "run the retriever on every query of the gold",
        )
    ]


def no_shared_query(run_queries: pl.Series, gold: Gold, run: str) -> AlignError:
    """Return the error for a run and a gold without a common query, with a guess why."""
    ours, theirs = str(run_queries[0]), str(gold.queries["query"][0])
    return AlignError(
        f"run and gold share no query: the run has {ours!r}, the gold has {theirs!r}",
        where=f"run {run}",
        fix=_guess_mismatch(run_queries, gold.queries["query"]),
    )


def _guess_mismatch(ours: pl.Series, theirs: pl.Series) -> str:
    """Try what usually makes ids differ, and say which of it would make them meet."""
    attempts: dict[str, Callable[[pl.Series], pl.Series]] = {
        "they differ in upper and lower case": lambda ids: ids.str.to_lowercase(),
        "one side has spaces around its ids": lambda ids: ids.str.strip_chars(),
        "one side pads its numbers with zeros": lambda ids: ids.str.replace(r"^(\D*)0+", "${1}"),
        "one side writes whole numbers as 1.0": lambda ids: ids.str.replace(r"\.0+$", ""),
        "they differ in what stands before the number": lambda ids: ids.str.extract(r"(\d+)\D*$"),
    }
    for guess, change in attempts.items():
        known = set(change(theirs).drop_nulls())
        shared = sum(value in known for value in change(ours).drop_nulls().unique())
        if shared:
            return f"{guess} (then {shared} would match); make the ids equal"
    return "check that both files are about the same queries, and that they are not swapped"


def _known_queries(rows: pl.DataFrame, gold: Gold) -> tuple[pl.DataFrame, Ints, list[Finding]]:
    """Leave out the rows of queries that the gold does not have."""
    query = query_index(rows["query"], gold.queries["query"])
    extra = query < 0
    if not extra.any():
        return rows, query, []
    names = rows["query"].filter(extra).unique(maintain_order=True)
    finding = Finding(
        "extra-query",
        len(names),
        tuple(names.head(EXAMPLES)),
        "query of the run that the gold does not have: left out",
        "add its judgements to the gold, or leave it",
    )
    return rows.filter(~extra), query[~extra], [finding]


def _rank_order(query: Ints, score: Floats | None, doc: pl.Series) -> Ints | None:
    """Return the order by query, score descending, doc id descending; None if it holds already."""
    if score is None:
        grouped = bool((query[1:] >= query[:-1]).all()) or _contiguous(query)
        return None if grouped else np.argsort(query, kind="stable")
    same = query[1:] == query[:-1]
    tied = same & (score[1:] == score[:-1])
    order = None
    if (same & (score[1:] > score[:-1])).any() or not _contiguous(query):
        keys = pl.DataFrame({"query": query, "score": score})
        order = (
            keys.select(
                pl.arg_sort_by("query", "score", descending=[False, True], maintain_order=True)
            )
            .to_series()
            .to_numpy()
            .astype(np.int64)
        )
        query, score = query[order], score[order]
        tied = (query[1:] == query[:-1]) & (score[1:] == score[:-1])
    if not tied.any():
        return order
    order = np.arange(len(query)) if order is None else order
    # sort only the rows that share a score: by block of ties, then doc id descending
    block = np.cumsum(np.concatenate(([True], ~tied)))
    rows = np.flatnonzero(np.concatenate((tied, [False])) | np.concatenate(([False], tied)))
    ties = pl.DataFrame({"block": block[rows], "doc": doc.gather(order[rows])})
    by_doc = (
        ties.select(pl.arg_sort_by("block", "doc", descending=[False, True], maintain_order=True))
        .to_series()
        .to_numpy()
    )
    order[rows] = order[rows[by_doc]]
    return None if bool((order == np.arange(len(order))).all()) else order


def _contiguous(query: Ints) -> bool:
    """Tell whether the rows of every query stand together."""
    starts = query[np.flatnonzero(np.concatenate(([True], query[1:] != query[:-1])))]
    return len(np.unique(starts)) == len(starts)


def _positions(query: Ints) -> Ints:
    """Number the rows of each query from 1."""
    if not len(query):
        return np.zeros(0, dtype=np.int64)
    start = np.flatnonzero(np.concatenate(([True], query[1:] != query[:-1])))
    return np.arange(len(query)) - np.repeat(start, np.diff([*start, len(query)])) + 1


def _repeated(query: Ints, doc: pl.Series) -> Bools | None:
    """Mark the documents that stand higher up in the list of the same query."""
    # 64-bit keys decide quickly that nothing is repeated; equal keys are settled by the ids
    keys = document_keys(query, doc)
    if keys.n_unique() == len(keys):
        return None
    pairs = pl.DataFrame({"query": query, "doc": doc})
    first = pairs.select(pl.struct("query", "doc").is_first_distinct()).to_series().to_numpy()
    return None if first.all() else ~first


def _nan_scores(rows: pl.DataFrame, nan: Bools) -> list[Finding]:
    if not nan.any():
        return []
    examples = rows.filter(nan).head(EXAMPLES)
    return [
        Finding(
            "nan-score",
            int(nan.sum()),
            tuple(f"{query} / {doc}" for query, doc in examples.select("query", "doc").rows()),
            "score that is not a number: ranked last",
            "find out why the retriever gave no score",
        )
    ]


def _rank_disagrees(rows: pl.DataFrame, query: Ints) -> list[Finding]:
    """Compare the rank column of a file, which nobody reads, with the order of the scores."""
    if "rank" not in rows.columns:
        return []
    rank = rows["rank"].fill_null(0).to_numpy()
    back = (query[1:] == query[:-1]) & (rank[1:] < rank[:-1])
    if not back.any():
        return []
    at = np.flatnonzero(back)
    names = rows["query"].gather(at).unique(maintain_order=True)
    return [
        Finding(
            "rank-disagrees",
            len(names),
            tuple(names.head(EXAMPLES)),
            "query whose rank column disagrees with its scores: the scores decide",
            "write ranks and scores in the same order; trec_eval ignores the rank too",
        )
    ]


def _duplicates(rows: pl.DataFrame, policy: Policy) -> list[Finding]:
    examples = tuple(
        f"{query} / {doc}" for query, doc in rows.select("query", "doc").head(EXAMPLES).rows()
    )
    if policy.duplicates == "error":
        raise AlignError(
            f"a document is retrieved twice for one query: {examples[0]}",
            fix="remove the repetition, or use karat's own dialect, which counts the first",
        )
    return [
        Finding(
            "duplicate-document",
            rows.height,
            examples,
            "document retrieved again for the same query: the first counts, "
            "the repetition stays in the list as noise",
            "remove repetitions before ranking (or --ids chunk-to-doc merged several chunks)",
        )
    ]


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"

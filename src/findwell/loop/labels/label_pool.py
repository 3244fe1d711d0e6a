"""Which pairs of a pool are labelled, in which order, and what precision a budget of labels buys.

To order systems, documents are taken from the runs one after the other, by depth, by move-to-front
or by a bandit. All three favour what is likely to be relevant, so that few labels distinguish
systems; for the same reason averages of such labels are biased. A judge's opinion never decides the
order: systems that think like the judge would gain by it.

Absolute values need a probability sample, in which every pair has a known chance to be labelled.
Pairs of all queries are drawn together, not whole queries: that halves the error of P@10 for the
same number of labels. Where a judge has spoken, each of its grades is a stratum, and each stratum
gets its share of the labels. The pairs are labelled in an order of which every beginning is such a
sample, so that stopping early gives a smaller sample, not a wrong one.

The variance of what such labels tell has two parts. One is that of the sampling: pairs that are not
labelled might be relevant or not. The other is between queries: other questions would have given
other values; it is there even when everything is labelled. Both follow from how likely each pair is
to be relevant and how alike pairs of one query are, known from a pilot of labels, or the grades of
a judge, or else the worst case.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from findwell.core.errors import AlignError, OptionError, check_share
from findwell.core.frames import pl
from findwell.core.spelling import counted
from findwell.io.read import load_gold
from findwell.io.read.labels_database import table

if TYPE_CHECKING:
    import sqlite3

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.findings import Finding
    from findwell.io.read import GoldLike
    from findwell.io.storage.database import DurableFile

METHODS = ("mm-ns", "mtf", "depth")  # the default first
LAST_RANK = 2**62  # below all others
GRADING_EVENTS = ("label", "adjudicate")  # events that say a grade
SAMPLE = "sample"  # the design for absolute values
PRECISION_AT = 10  # the k of the P@k and recall@k that are announced, where the pool is deep enough
NOT_JUDGED, ALL_PAIRS = "not judged", "all"  # strata of pairs without a judge's grade
STRATUM_LABELS = 2  # without which the variance of a stratum is unknown
PAIR_COLUMNS = (
    "query", "doc", "question", "text", "source", "start", "end", "judge", "quote", "design",
    "stratum", "probability", "place",
)  # fmt: skip
PRECISION_COLUMNS: dict[str, type[pl.DataType]] = {
    "run": pl.String,
    "measure": pl.String,
    "budget": pl.Int64,
    "labels": pl.Float64,  # of the budget that fall on what the measure looks at
    "these": pl.Float64,
    "new": pl.Float64,
    "basis": pl.String,
}
SIMULATED_QUERIES = 60  # for which an order of labelling is tried out
WORST_SHARE = 0.5  # of relevant pairs, at which a sample says least about P@k
WORST_CASE = "worst case"
# by run and measure: labels, half-width about these queries, about queries like these
Expected: TypeAlias = dict[tuple[int, str], tuple[float, float | None, float | None]]


@dataclass(frozen=True, eq=False)
class LabelPool:
    """The pairs of queries and documents that can be labelled, and how they are chosen.

    `pairs` has one row per pair: query, question, doc, text, source, start, end, judge (its grade),
    quote (the judge's), design, stratum, probability, place (in the order of labelling, where that
    is fixed). `ranks` has one row per pair and run: pair (its row), run, rank, score.
    """

    pairs: pl.DataFrame
    ranks: pl.DataFrame
    runs: tuple[str, ...]
    settings: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    expected: pl.DataFrame | None = None  # its `precision`, with the pilot it was made with

    def __repr__(self) -> str:
        queries = self.pairs["query"].n_unique()
        return (
            f"LabelPool({counted(queries)}, {counted(self.pairs.height, 'pair', 'pairs')}, "
            f"{counted(len(self.runs), 'run', 'runs')})"
        )

    def precision(
        self,
        budgets: Sequence[int] | None = None,
        *,
        k: int | None = None,
        pilot: GoldLike | None = None,
        level: float = 0.95,
    ) -> pl.DataFrame:
        """Return how wide the intervals of P@k and recall@k will be, before anything is labelled.

        `k` is 10 by default, or the depth of the pool if that is less: deeper documents cannot be
        labelled. One row per run, measure and budget (by default half of the budget, the budget,
        twice as much, and everything): `these` is the half-width about these queries, `new` about
        queries like these, `basis` where it comes from: a `pilot` of labels (any gold, a pool with
        labels), the grades of the judge, or the assumption that half of the pairs are relevant,
        which is the worst case for P@k; recall@k needs one of the former. Labels for ordering give
        no interval, but bounds: their half-width is shown.
        """
        depth, design = int(self.settings["depth"]), str(self.settings["design"])
        if k is not None and k > depth:
            raise OptionError(
                f"the pool holds the first {depth} documents of each run, so that its labels "
                f"cannot tell P@{k}",
                fix=f"ask for k={depth} or less, or make a pool with depth={k}",
            )
        check_share("level", level)
        k = min(PRECISION_AT, depth) if k is None else k
        if not budgets:
            least = self.pairs["stratum"].n_unique()  # each stratum needs a label
            budgets = usual_budgets(self.settings["budget"], self.pairs.height, least)
        query = self.pairs["query"].rle_id().to_numpy().astype(np.int64)
        rank = np.zeros((len(self.runs), self.pairs.height), dtype=np.int64)
        rank[self.ranks["run"].to_numpy(), self.ranks["pair"].to_numpy()] = self.ranks["rank"]
        belief = _believed(self.pairs, query, rank, pilot)
        z = NormalDist().inv_cdf((1 + level) / 2)
        rows = []
        for budget in budgets:
            if design == SAMPLE:
                found = _of_sample(self.pairs, query, rank, belief, budget, k, z)
            else:
                seed = int(self.settings["seed"])
                found = _of_order(query, rank, belief, design, budget, k, seed)
            rows += [
                (self.runs[run], f"{measure}@{k}", budget, *expected, belief.basis)
                for (run, measure), expected in found.items()
            ]
        return pl.DataFrame(rows, schema=PRECISION_COLUMNS, orient="row").sort(
            "measure", "run", "budget", maintain_order=True
        )


def read_pool(file: DurableFile, settings: Mapping[str, Any]) -> LabelPool:
    """Return the pool that a database holds."""
    pairs = file.rows(
        'SELECT query.query, doc, question, text, source, pair.start, pair."end", judge, quote, '
        "design, stratum, probability, place FROM pair JOIN query ON query.number = pair.query "
        "ORDER BY pair.number"
    )
    ranks = file.rows("SELECT pair, run, rank, score FROM rank ORDER BY pair, run")
    runs = file.rows("SELECT name FROM run ORDER BY number")
    return LabelPool(
        table(pairs, *PAIR_COLUMNS),
        table(ranks, "pair", "run_number", "rank", "score").rename({"run_number": "run"}),
        tuple(name for (name,) in runs),
        settings,
    )


def extend_pool(connection: sqlite3.Connection, pool: LabelPool, budget: int) -> None:
    """Write a larger budget, and the larger sample, which holds the one there was."""
    if pool.settings["design"] == SAMPLE:
        pairs = pool.pairs.with_row_index("number").filter(design=SAMPLE)
        before = pairs["place"].count()
        if budget < before:
            raise OptionError(
                f"{before} pairs are in the sample already", fix="give a larger budget"
            )
        keys = sampling_keys(pairs, int(pool.settings["seed"]))
        held = pairs["place"].is_not_null().to_numpy()
        drawn = draw(pairs["stratum"].to_list(), keys, budget, held)
        rows = zip(
            (None if place < 0 else place for place in drawn.place.tolist()),
            drawn.probability.tolist(),
            pairs["number"].to_list(),
            strict=True,
        )
        connection.executemany("UPDATE pair SET place = ?, probability = ? WHERE number = ?", rows)
    update = "UPDATE setting SET value = ? WHERE name = 'budget'"
    connection.execute(update, (json.dumps(budget),))


def strata_of(judge: pl.Series) -> list[str]:
    """Name the stratum of each pair by the grade of the judge, where there is one.

    >>> strata_of(pl.Series([0.0, None, 2.0]))
    ['judge 0', 'not judged', 'judge 2']
    """
    if judge.null_count() == len(judge):
        return [ALL_PAIRS] * len(judge)
    return [NOT_JUDGED if grade is None else f"judge {grade:g}" for grade in judge]


def sampling_keys(pairs: pl.DataFrame, seed: int) -> Floats:
    """Return the random number of each pair, which depends on its names and the seed alone."""
    names = pairs.select("query", "doc").iter_rows()
    return np.array([uniform(seed, "sample", *pair) for pair in names], dtype=np.float64)


class DrawnSample(NamedTuple):
    """Which pairs are in the sample, in which order they are labelled, and their chances."""

    place: Ints  # from 0; -1: not in the sample
    probability: Floats  # of every pair, drawn or not


def draw(
    strata: Sequence[str], keys: Floats, budget: int | None, held: Bools | None = None
) -> DrawnSample:
    """Draw a stratified sample without replacement; `keys` are independent numbers from 0 to 1.

    The pairs with the smallest keys of each stratum are drawn, so that the same keys with a larger
    budget give a sample that holds the smaller one; `held` are the pairs that it must hold.

    >>> drawn = draw(["a", "a", "a", "a", "b", "b"], np.array([.4, .1, .3, .2, .6, .5]), 3)
    >>> drawn.place.tolist(), drawn.probability.tolist()
    ([-1, 0, -1, 2, -1, 1], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """
    names, stratum = np.unique(np.array(strata, dtype=object).astype(str), return_inverse=True)
    sizes = np.bincount(stratum, minlength=len(names))
    least = None if held is None else np.bincount(stratum[held], minlength=len(names))
    counts = allocate(sizes, budget, least)
    order = np.lexsort((keys, stratum))
    within = np.empty(len(order), dtype=np.int64)
    within[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    drawn = within < counts[stratum]
    # the n-th of a stratum comes when n parts of it are due, so that all strata grow together
    due = (within + 0.5) / np.maximum(counts[stratum], 1)
    place = np.full(len(order), -1, dtype=np.int64)
    chosen = np.flatnonzero(drawn)
    place[chosen[np.lexsort((keys[chosen], due[chosen]))]] = np.arange(len(chosen))
    return DrawnSample(place, (counts / np.maximum(sizes, 1))[stratum])


def allocate(sizes: Ints, budget: int | None, before: Ints | None = None) -> Ints:
    """Share a budget among strata in proportion to their sizes, STRATUM_LABELS each if it can be.

    No stratum gets less than it had `before`.

    >>> allocate(np.array([90, 9, 1]), 20).tolist()
    [17, 2, 1]
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    if budget is None or budget >= sizes.sum():
        return sizes.copy()
    least = np.minimum(sizes, STRATUM_LABELS)
    if budget < len(sizes):
        raise OptionError(
            f"a budget of {budget} is less than one label for each of the {len(sizes)} strata",
            fix="give a larger budget, or leave out the judge",
        )
    if budget < least.sum():
        least = np.minimum(sizes, 1)
    counts = least.copy() if before is None else np.maximum(least, before)
    while (left := budget - int(counts.sum())) > 0:
        ideal = sizes * (budget / sizes.sum())
        short = np.where(counts < sizes, ideal - counts, -np.inf)
        step = np.minimum(np.maximum(np.floor(short), 0), sizes - counts).astype(np.int64)
        if 0 < step.sum() <= left:
            counts += step
        else:
            counts[int(np.argmax(short))] += 1
    return counts


def usual_budgets(budget: int | None, pairs: int, least: int = 1) -> list[int]:
    """Return the budgets that are shown: half of what is planned, that, twice as much, all.

    >>> usual_budgets(200, 1589), usual_budgets(None, 90)
    ([100, 200, 400, 1589], [22, 45, 90])
    """
    planned = pairs // 2 if budget is None else min(budget, pairs)
    found = {planned // 2, planned, min(2 * planned, pairs), pairs}
    return sorted(each for each in found if each >= least)


@dataclass(frozen=True, slots=True, eq=False)
class _Belief:
    """How likely each pair is to be relevant, and how alike pairs of one query are."""

    chance: Floats
    alike: float  # the correlation of what is left, within a query
    strata: bool  # whether it is known how much the strata tell
    basis: str


def _believed(pairs: pl.DataFrame, query: Ints, rank: Ints, pilot: GoldLike | None) -> _Belief:
    judge = pairs["judge"]
    if pilot is None and judge.null_count() == len(judge):
        return _Belief(np.full(pairs.height, WORST_SHARE), 1.0, strata=False, basis=WORST_CASE)
    if pilot is None:
        known = (judge >= 1).cast(pl.Float64)
        chance = known.fill_null(known.mean()).to_numpy()
        # as if the judge were right: what is left varies with the judge's own grades
        return _Belief(chance, 0.0, strata=False, basis="judge")
    best = np.where(rank > 0, rank, LAST_RANK).min(axis=0, initial=LAST_RANK)
    given = load_gold(pilot).rows().group_by("query", "doc").agg(pl.col("grade").max())
    return _from_pilot(pairs, query, best, given)


def _from_pilot(pairs: pl.DataFrame, query: Ints, best: Ints, given: pl.DataFrame) -> _Belief:
    """Estimate the share of relevant pairs of each stratum, and how alike pairs of a query are."""
    joined = pairs.select("query", "doc", "stratum").join(
        given, on=["query", "doc"], how="left", maintain_order="left"
    )
    stratum = joined["stratum"].fill_null("").to_numpy().astype(str)
    grade = joined["grade"].to_numpy().astype(np.float64)
    known = ~np.isnan(grade)
    if not known.any():
        raise AlignError(
            "no pair of the pilot is in the pool", fix="label pairs of this pool first"
        )
    relevant = np.where(known, grade >= 1, 0.0)
    overall = (relevant.sum() + 0.5) / (known.sum() + 1)
    chance = np.full(len(grade), overall)
    # deep documents are less often relevant; cells of few labels are like their stratum
    depth = np.floor(np.log2(np.maximum(best, 1))).astype(np.int64)
    for names in (stratum, np.char.add(stratum, depth.astype(str))):
        for name in np.unique(names):
            here = names == name
            labels = known & here
            before = float(chance[here].mean())
            chance[here] = (relevant[labels].sum() + 2 * before) / (labels.sum() + 2)
    rest = np.where(known, relevant - chance, 0.0)
    spread = np.where(known, chance * (1 - chance), 0.0)
    size = int(query.max()) + 1
    sums, squares = np.bincount(query, rest, size), np.bincount(query, rest**2, size)
    roots = np.bincount(query, np.sqrt(spread), size)
    expected = float((roots**2 - np.bincount(query, spread, size)).sum())
    together = float((sums**2 - squares).sum())
    alike = min(1.0, max(0.0, together / expected)) if expected > 0 else 0.0
    basis = f"pilot of {int(known.sum())} labels"
    return _Belief(chance, alike, strata=True, basis=basis)


def _of_sample(  # noqa: PLR0917
    pairs: pl.DataFrame, query: Ints, ranks: Ints, belief: _Belief, budget: int, k: int, z: float
) -> Expected:
    """Return the half-widths for a sample: about these queries, and about queries like them."""
    names, stratum = np.unique(pairs["stratum"].fill_null("").to_numpy(), return_inverse=True)
    sizes = np.bincount(stratum, minlength=len(names))
    share = (allocate(sizes, budget) / sizes)[stratum]
    groups = stratum if belief.strata else np.zeros(len(stratum), dtype=np.int64)
    queries = int(query.max()) + 1
    whole = float(belief.chance.sum())
    found: Expected = {}
    for run, rank in enumerate(ranks):
        top = ((rank > 0) & (rank <= k)).astype(np.float64)
        these, new = _errors(top / (k * queries), query, groups, share, belief)
        found[run, "P"] = (float((share * top).sum()), z * these, z * new)
        labels = float(share.sum())
        if belief.basis == WORST_CASE or not whole:  # few relevant pairs are the worst, not half
            found[run, "recall"] = (labels, None, None)
            continue
        ratio = float((belief.chance * top).sum()) / whole
        these, new = _errors((top - ratio) / whole, query, groups, share, belief)
        found[run, "recall"] = (labels, z * these, z * new)
    return found


def _errors(
    weights: Floats, query: Ints, groups: Ints, share: Floats, belief: _Belief
) -> tuple[float, float]:
    """Return the standard errors of a sum of relevant pairs, each times its weight.

    What a label adds is how far it is from the mean of its stratum (or of all), times 1 ÷ share.
    """
    chance = belief.chance
    counted = np.maximum(np.bincount(groups, weights**2), 1e-300)
    mean = (np.bincount(groups, weights**2 * chance) / counted)[groups]
    varies = chance * (1 - mean) ** 2 + (1 - chance) * mean**2
    sampling = float((weights**2 * varies * (1 / share - 1)).sum())
    size = int(query.max()) + 1
    spread = np.sqrt(chance * (1 - chance))
    alone = np.bincount(query, weights**2 * spread**2, size)
    together = np.bincount(query, weights * spread, size) ** 2
    within = (1 - belief.alike) * alone + belief.alike * together
    means = np.bincount(query, weights * chance, size)
    between = float(within.sum()) + size * float(means.var(ddof=1 if size > 1 else 0))
    return sampling**0.5, (sampling + between) ** 0.5


def _of_order(  # noqa: PLR0917
    query: Ints, ranks: Ints, belief: _Belief, method: str, budget: int, k: int, seed: int
) -> Expected:
    """Return the half-widths of bounds: half of what stays unlabelled among the first k."""
    sizes = np.bincount(query)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    chosen = np.sort(rng.permutation(len(sizes))[:SIMULATED_QUERIES])
    quota = quotas(sizes.tolist(), budget)
    labelled = np.zeros(ranks.shape[1], dtype=bool)
    tried = np.zeros(ranks.shape[1], dtype=bool)
    for at in chosen:
        part = slice(int(starts[at]), int(starts[at + 1]))
        relevant: Bools = rng.random(int(sizes[at])) < belief.chance[part]
        done = simulated_order(ranks[:, part], relevant, method, quota[at])
        labelled[part.start + np.array(done, dtype=np.int64)] = True
        tried[part] = True
    found: Expected = {}
    for run, rank in enumerate(ranks):
        top = (rank > 0) & (rank <= k) & tried
        counted = float((labelled & top).sum()) * len(sizes) / len(chosen)
        unknown = int((top & ~labelled).sum())
        found[run, "P"] = (counted, unknown / (2 * k * len(chosen)), None)
        found[run, "recall"] = (float(min(budget, len(query))), None, None)
    return found


def next_document(
    ranks: Ints, relevant: Mapping[int, bool], method: str, taken: Collection[int] = ()
) -> int | None:
    """Return which document of a query to label next, by its column; None if all are labelled.

    `ranks` has a row per run and a column per document, from 1, 0 where the run lacks it; the order
    of rows and columns breaks ties. `relevant` is what is known of those labelled; the `taken` are
    passed over. The method is replayed from its start over what is known, so that the answer
    depends on the labels alone and not on who gave them when.

    - `depth`: the lowest rank in any run.
    - `mtf`, move-to-front (Cormack, Palmer, Clarke 1998): stay with a run as long as its next
      document is relevant, else it goes behind the others.
    - `mm-ns` (Losada, Parapar, Barreiro 2016): the run whose last labelled document was relevant is
      the most promising; every run that holds a document learns from its label.

    >>> ranks = np.array([[1, 2, 0], [0, 1, 2]])
    >>> next_document(ranks, {0: False}, "mm-ns"), next_document(ranks, {0: True, 1: True}, "mtf")
    (1, 2)
    """
    return _walk(ranks, method, frozenset(taken), relevant.get)


def simulated_order(ranks: Ints, relevant: Bools, method: str, budget: int) -> list[int]:
    """Return the documents that a method would have labelled, given what they would turn out to be.

    >>> simulated_order(np.array([[1, 2, 0], [0, 1, 2]]), np.array([False, True, True]), "mm-ns", 2)
    [0, 1]
    """
    asked: list[int] = []

    def ask(doc: int) -> bool | None:
        if len(asked) == budget:
            return None
        asked.append(doc)
        return bool(relevant[doc])

    _walk(ranks, method, frozenset(), ask)
    return asked


def _walk(
    ranks: Ints, method: str, hidden: frozenset[int], ask: Callable[[int], bool | None]
) -> int | None:
    """Ask about documents in the order of a method; return the first that nothing is known of."""
    if method == "depth":
        best = np.where(ranks > 0, ranks, LAST_RANK).min(axis=0, initial=LAST_RANK)
        order = np.lexsort((-(ranks > 0).sum(axis=0), best))
        shown = (doc for doc in order.tolist() if best[doc] < LAST_RANK and doc not in hidden)
        return next((doc for doc in shown if ask(doc) is None), None)
    lists: list[list[int]] = [
        [doc for doc in np.argsort(row, kind="stable").tolist() if row[doc] and doc not in hidden]
        for row in ranks
    ]
    at = [0] * len(lists)  # the next document of each run
    priority = np.zeros(len(lists), dtype=np.int64)
    current: int | None = None
    seen: set[int] = set()
    while True:
        for run, docs in enumerate(lists):
            while at[run] < len(docs) and docs[at[run]] in seen:
                at[run] += 1
        ahead = {
            run: int(ranks[run, docs[at[run]]])
            for run, docs in enumerate(lists)
            if at[run] < len(docs)
        }
        if not ahead:
            return None
        if method == "mm-ns" or current not in ahead:  # of equal runs that of the lowest next rank
            current = min(ahead, key=lambda run: (-priority[run], ahead[run], run))
        doc = lists[current][at[current]]
        known = ask(doc)
        if known is None:
            return doc
        seen.add(doc)
        if method == "mm-ns":  # what all runs that hold the document knew before is forgotten
            priority[ranks[:, doc] > 0] = 1 if known else -1
        elif not known:
            priority[current] -= 1
            current = None


def quotas(sizes: Sequence[int], budget: int | None) -> list[int]:
    """Share a budget of labels among queries as evenly as their sizes allow, the first ones first.

    >>> quotas([10, 2, 10], 11)
    [5, 2, 4]
    >>> quotas([3, 3], None)
    [3, 3]
    """
    if budget is None:
        return list(sizes)
    found = [0] * len(sizes)
    left = min(budget, sum(sizes))
    while left:
        room = [at for at, size in enumerate(sizes) if found[at] < size]
        each = max(1, left // len(room))
        for at in room:
            more = min(each, sizes[at] - found[at], left)
            found[at] += more
            left -= more
    return found


def uniform(seed: int, *names: str) -> float:
    """Return a number from 0 to below 1 that depends on nothing but the seed and the names.

    So a document keeps its number whatever else is in the pool, and on every machine.

    >>> 0 <= uniform(0, "q1", "d1") < 1, uniform(0, "q1", "d1") == uniform(0, "q1", "d1")
    (True, True)
    """
    joined = "".join(f"{len(name)}:{name}" for name in names)
    digest = hashlib.blake2b(f"{seed}:{joined}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") / 2**64


class Said(NamedTuple):
    """The last thing that an annotator said about a pair."""

    annotator: str
    kind: str
    grade: float | None
    note: str


SaidByPair: TypeAlias = dict[int, list[Said]]


def said_by(name: str, said: SaidByPair) -> list[tuple[int, Said]]:
    """Return what an annotator said, with the pairs that it is about; decisions are not labels."""
    return [
        (pair, one)
        for pair, each in said.items()
        for one in each
        if one.annotator == name and one.kind != "adjudicate"
    ]


@dataclass(frozen=True, slots=True, eq=False)
class LabellingPlan:
    """What is to be labelled, in which order, and by how many."""

    design: str  # sample, or the method that orders documents
    sample: list[int]  # pairs, in the order in which they are labelled
    queries: list[tuple[list[int], Ints]]  # pairs and ranks of each query, in the order of work
    quota: list[int]
    shared: frozenset[int]  # pairs that every annotator labels

    @classmethod
    def of(cls, file: DurableFile, settings: dict[str, Any]) -> LabellingPlan:
        """Read it from a pool."""
        seed, overlap = settings.get("seed", 0), settings.get("overlap", 0.0)
        pairs = file.rows(
            "SELECT pair.number, query.query, doc, place FROM pair "
            "JOIN query ON query.number = pair.query"
        )
        shared = frozenset(
            number
            for number, query, doc, _ in pairs
            if uniform(seed, "overlap", query, doc) < overlap
        )
        design = settings.get("design", "depth")
        if design == SAMPLE:
            drawn = sorted((place, number) for number, *_, place in pairs if place is not None)
            return cls(design, [number for _, number in drawn], [], [], shared)
        lists = ranked_lists(file, pairs, seed)
        quota = quotas([len(docs) for docs, _ in lists], settings.get("budget"))
        return cls(design, [], lists, quota, shared)

    def choose(self, name: str, said: SaidByPair, offered: frozenset[int]) -> int | None:
        """Return the pair that this annotator should label next."""
        mine, others = self._done(name, said)
        if self.design == SAMPLE:
            taken = mine | ((others | offered) - self.shared)
            return next((pair for pair in self.sample if pair not in taken), None)
        again = others & self.shared
        for pairs, _ in self.queries:
            for pair in pairs:
                if pair in again:
                    return pair
        for (pairs, ranks), quota in zip(self.queries, self.quota, strict=True):
            known = relevant_of(pairs, said)
            waiting = {
                at
                for at, pair in enumerate(pairs)
                if pair in offered and at not in known and pair not in self.shared
            }
            if len(known) + len(waiting) < quota:
                mine_here = {at for at, pair in enumerate(pairs) if pair in mine}
                found = next_document(
                    ranks, known, self.design, waiting | (mine_here - known.keys())
                )
                if found is not None:
                    return pairs[found]
        return None

    def left(self, name: str, said: SaidByPair) -> int:
        """Return how many pairs this annotator has still to label, if the others do nothing."""
        mine, others = self._done(name, said)
        if self.design == SAMPLE:
            taken = mine | (others - self.shared)
            return sum(pair not in taken for pair in self.sample)
        left = len(others & self.shared & {pair for pairs, _ in self.queries for pair in pairs})
        for (pairs, _), quota in zip(self.queries, self.quota, strict=True):
            known = relevant_of(pairs, said)
            open_ = sum(pair not in mine and at not in known for at, pair in enumerate(pairs))
            left += max(0, min(quota - len(known), open_))
        return left

    @staticmethod
    def _done(name: str, said: SaidByPair) -> tuple[set[int], set[int]]:
        """Return the pairs that an annotator has seen to, and the others that have a grade."""
        mine = {pair for pair, _ in said_by(name, said)}
        graded = {
            pair for pair, each in said.items() if any(one.kind in GRADING_EVENTS for one in each)
        }
        return mine, graded - mine


def ranked_lists(
    file: DurableFile, pairs: Iterable[tuple[Any, ...]], seed: int
) -> list[tuple[list[int], Ints]]:
    """Return the pairs of each query and their ranks, in an order that breaks ties by chance."""
    runs = file.rows("SELECT number, name FROM run")
    by_query: dict[str, list[tuple[float, int]]] = {}
    for number, query, doc, _ in pairs:
        by_query.setdefault(query, []).append((uniform(seed, "document", query, doc), number))
    where: dict[int, tuple[str, int]] = {}
    lists: dict[str, tuple[list[int], Ints]] = {}
    rows: dict[str, dict[int, int]] = {}
    for query in sorted(by_query, key=lambda name: uniform(seed, "query", name)):
        docs = [number for _, number in sorted(by_query[query])]
        where |= {number: (query, at) for at, number in enumerate(docs)}
        lists[query] = docs, np.zeros((len(runs), len(docs)), dtype=np.int64)
        order = sorted(runs, key=lambda run: (uniform(seed, "run", query, run[1]), run[0]))
        rows[query] = {number: row for row, (number, _) in enumerate(order)}
    for pair, run, rank in file.rows("SELECT pair, run, rank FROM rank"):
        query, at = where[pair]
        lists[query][1][rows[query][run], at] = rank
    return list(lists.values())


def relevant_of(pairs: list[int], said: SaidByPair) -> dict[int, bool]:
    """Return which of these pairs have a label, and whether most of them say it is relevant."""
    found = {}
    for at, pair in enumerate(pairs):
        grades = [one.grade for one in said.get(pair, ()) if one.kind in GRADING_EVENTS]
        if grades:
            found[at] = 2 * sum(grade is not None and grade >= 1 for grade in grades) >= len(grades)
    return found

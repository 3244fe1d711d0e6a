"""What precision a budget of labels will buy: the expected half-widths of P@k and recall@k.

Where the labels are a sample, the variance has two parts. One is that of the sampling: pairs that
are not labelled might be relevant or not. The other is between queries: other questions would have
given other values; it is there even when everything is labelled. Both follow from how likely each
pair is to be relevant and how alike pairs of one query are, which a pilot of labels tells, or the
grades of a judge, or else the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from findwell.core.errors import AlignError
from findwell.loop.labels.order import LAST, quotas, simulated_order
from findwell.loop.labels.sampling import allocate
from findwell.statistics.values import check_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Bools, Floats, Ints

SCHEMA: dict[str, type[pl.DataType]] = {
    "run": pl.String,
    "measure": pl.String,
    "budget": pl.Int64,
    "labels": pl.Float64,  # of the budget that fall on what the measure looks at
    "these": pl.Float64,
    "new": pl.Float64,
    "basis": pl.String,
}
SIMULATED = 60  # queries for which an order of labelling is tried out
WORST = 0.5  # share of relevant pairs at which a sample says least about P@k
WORST_CASE = "worst case"
# by run and measure: labels, half-width about these queries, about queries like these
Expected: TypeAlias = dict[tuple[int, str], tuple[float, float | None, float | None]]


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


def expected_precision(
    pairs: pl.DataFrame,
    ranks: pl.DataFrame,
    runs: Sequence[str],
    *,
    design: str,
    budgets: Sequence[int],
    k: int,
    pilot: pl.DataFrame | None,
    level: float,
    seed: int,
) -> pl.DataFrame:
    """Return one row of SCHEMA per run, measure and budget; see `LabelPool.precision`."""
    check_share("level", level)
    query = pairs["query"].rle_id().to_numpy().astype(np.int64)
    table = np.zeros((len(runs), pairs.height), dtype=np.int64)
    table[ranks["run"].to_numpy(), ranks["pair"].to_numpy()] = ranks["rank"].to_numpy()
    best = np.where(table > 0, table, LAST).min(axis=0, initial=LAST)
    belief = _believed(pairs, query, best, pilot)
    z = NormalDist().inv_cdf((1 + level) / 2)
    rows = []
    for budget in budgets:
        if design == "sample":
            found = _of_sample(pairs, query, table, belief, budget, k, z)
        else:
            found = _of_order(query, table, belief, design, budget, k, seed)
        rows += [
            (runs[run], f"{measure}@{k}", budget, *expected, belief.basis)
            for (run, measure), expected in found.items()
        ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort(
        "measure", "run", "budget", maintain_order=True
    )


def _believed(pairs: pl.DataFrame, query: Ints, best: Ints, pilot: pl.DataFrame | None) -> _Belief:
    judge = pairs["judge"]
    if pilot is not None:
        return _from_pilot(pairs, query, best, pilot)
    if judge.null_count() < len(judge):
        known = (judge >= 1).cast(pl.Float64)
        chance = known.fill_null(known.mean()).to_numpy()
        # as if the judge were right: what is left varies with the judge's own grades
        return _Belief(chance, 0.0, strata=False, basis="judge")
    return _Belief(np.full(pairs.height, WORST), 1.0, strata=False, basis=WORST_CASE)


def _from_pilot(pairs: pl.DataFrame, query: Ints, best: Ints, pilot: pl.DataFrame) -> _Belief:
    """Estimate the share of relevant pairs of each stratum, and how alike pairs of a query are."""
    given = pilot.group_by("query", "doc").agg(pl.col("grade").max())
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
    chosen = np.sort(rng.permutation(len(sizes))[:SIMULATED])
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

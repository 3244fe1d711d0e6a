"""What a document is worth in one list: by its rank, or by its score made comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from findwell.core.errors import InputError
from findwell.loop.tuning.engines.normalisers import milvus_l2, span_or_half
from findwell.loop.tuning.lists import ScoreLists, reciprocal_ranks, scaled_scores

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints
    from findwell.loop.tuning.engines.engine import Setting
    from findwell.loop.tuning.engines.normalisers import Normaliser
    from findwell.loop.tuning.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class RankValues:
    """1 ÷ (k + rank), or what a formula divides by: k + rank, or the rank alone."""

    normalisers: ClassVar[tuple[str, ...]] = ()

    k: float = 60  # where it cannot be set
    first: int = 1  # the rank of the first document
    digits: int | None = None  # decimal digits of the quotient that are kept, half up
    shared: bool = False  # documents with the same score share the better rank
    gives: Literal["reciprocal", "divisor", "rank"] = "reciprocal"

    @property
    def needs_scores(self) -> bool:
        """Whether ranks alone are not enough."""
        return self.shared

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows; NaN where the document is not inside the list."""
        rank = pool.score_ranks() if self.shared else pool.rank
        k = float(self.k if setting.k is None else setting.k) + self.first - 1
        if self.gives == "rank":
            return np.where(inside, rank, np.nan)
        if self.gives == "divisor":
            # what is set for a missing document stands in the place of its rank
            filled = np.nan if setting.fill is None else k - self.first + 1 + setting.fill
            return np.where(inside, k + rank, filled)
        if self.digits is not None:
            return np.where(inside, self._rounded(rank, k), np.nan)
        return np.where(inside, reciprocal_ranks(rank, k), np.nan)

    def _rounded(self, rank: Ints, k: float) -> Floats:
        unit = Decimal(1).scaleb(-(self.digits or 0))
        exact = [
            float((1 / (Decimal(k) + each)).quantize(unit, ROUND_HALF_UP)) if each else 0.0
            for each in range(int(rank.max(initial=0)) + 1)
        ]
        return np.array(exact)[rank]


@dataclass(frozen=True, slots=True)
class NormalisedScores:
    """The score, made comparable with those of other lists."""

    needs_scores: ClassVar[bool] = True

    by_name: Mapping[str, Normaliser | tuple[Normaliser, ...]]  # for all runs, or for each
    single: bool = False  # computed in 32 bits

    @property
    def normalisers(self) -> tuple[str, ...]:
        """The names of the ways to choose from."""
        return tuple(self.by_name)

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows; NaN where the document is not inside the list."""
        score = every_score(pool, inside)
        names = setting.normaliser or self.normalisers[:1] * len(score)
        ways = [self._way(name, number) for number, name in enumerate(names)]
        for number, way in enumerate(ways):
            if way is milvus_l2:
                _refuse_falling_distances(pool, inside, number)
        precision = np.float32 if self.single else np.float64
        with np.errstate(all="ignore"):
            scaled = [
                way(ScoreLists(each.astype(precision), pool.query))
                for way, each in zip(ways, score, strict=True)
            ]
        return np.where(inside, np.array(scaled, dtype=np.float64), np.nan)

    def _way(self, name: str, number: int) -> Normaliser:
        ways = self.by_name[name]
        return ways[number] if isinstance(ways, tuple) else ways


@dataclass(frozen=True, slots=True)
class FilledScores:
    """The score normalised by `findwell.loop.tuning.normalise`; what a list does not score is 0."""

    needs_scores: ClassVar[bool] = True

    normalisers: tuple[str, ...]
    lowest: Sequence[float]  # that each run can give, for tmm

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows; 0 where there is no score."""
        return scaled_scores(pool, setting.normaliser, self.lowest, inside=inside)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedFeatures:
    """Every document has a score in every list, 0 where the list lacks it, as features have."""

    needs_scores: ClassVar[bool] = True
    normalisers: ClassVar[tuple[str, ...]] = ()

    by_rank: bool

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows: 1 ÷ (k + rank), or the scores from 0 to 1."""
        kept = inside.any(axis=0)
        score = np.where(inside, every_score(pool, inside), 0.0)
        score = np.where(kept, score, np.nan)
        if self.by_rank:
            places = np.array([_places(each, pool.query) for each in score])
            return np.where(kept, reciprocal_ranks(places, float(setting.k or 0)), np.nan)
        with np.errstate(all="ignore"):
            scaled = [span_or_half(ScoreLists(each, pool.query)) for each in score]
        return np.where(kept, np.array(scaled), np.nan)


def every_score(pool: Pool, inside: Bools) -> Floats:
    """Return the scores inside the lists; one that is missing or infinite there is an error."""
    score = np.where(inside, pool.scores(), np.nan)
    bad = inside & ~np.isfinite(score)
    if bad.any():
        number, row = (int(found[0]) for found in np.nonzero(bad))
        name = f"{pool.queries[int(pool.query[row])]} / {pool.doc[row]}"
        raise InputError(
            f"{int(bad[number].sum())} documents have no finite score, the first is {name}",
            where=f"run {number + 1} ({pool.runs[number]})",
            fix="give every document a score, or fuse by rank",
        )
    return score


def _refuse_falling_distances(pool: Pool, inside: Bools, number: int) -> None:
    """Refuse distances that fall with the rank: the run was sorted the wrong way round."""
    rows = np.flatnonzero(inside[number])
    rows = rows[np.lexsort((pool.rank[number][rows], pool.query[rows]))]
    distance = np.abs(pool.score[number][rows])
    if ((np.diff(distance) < 0) & (np.diff(pool.query[rows]) == 0)).any():
        raise InputError(
            "its distances fall with the rank: the farthest document is first",
            where=f"run {number + 1} ({pool.runs[number]})",
            fix="write minus the distance as the score, so that the nearest has the highest",
        )


def _places(score: Floats, query: Ints) -> Ints:
    """Return the rank of each score in its query, from 1; equal ones in the order of the rows."""
    order = np.lexsort((-score, query))  # NaN goes last
    place = np.empty(len(score), dtype=np.int64)
    start = np.searchsorted(query, query)
    place[order] = np.arange(len(score)) - start[order] + 1
    return place

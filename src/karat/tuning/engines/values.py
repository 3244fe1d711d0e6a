"""What a document is worth in one list: by its rank, or by its score made comparable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from karat.errors import InputError
from karat.tuning.lists import ScoreLists, normalise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from karat.core.data import Bools, Floats, Ints
    from karat.tuning.engines.engine import Setting
    from karat.tuning.pool import Pool

    Normaliser: TypeAlias = Callable[[ScoreLists], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class ReciprocalRanks:
    """1 ÷ (k + rank), where the first rank is 1 or 0."""

    needs_scores: ClassVar[bool] = False
    normalisers: ClassVar[tuple[str, ...]] = ()

    first: int = 1
    digits: int | None = None  # decimal digits kept, half up
    single: bool = False  # computed in 32 bits

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows; NaN where the document is not inside the list."""
        return np.where(inside, self._of(self._ranks(pool), float(setting.k or 0)), np.nan)

    def _ranks(self, pool: Pool) -> Ints:
        return pool.rank

    def _of(self, rank: Ints, k: float) -> Floats:
        if not rank.size:
            return rank.astype(np.float64)
        below = np.arange(max(1, int(rank.max())) + 1) - 1 + self.first + k
        below[0] = np.inf  # what is not there
        if self.digits is not None:
            unit = Decimal(1).scaleb(-self.digits)
            exact = [0.0] + [
                float((1 / Decimal(float(each))).quantize(unit, ROUND_HALF_UP))
                for each in below[1:]
            ]
            return np.array(exact)[rank]
        if self.single:
            return (np.float32(1) / below.astype(np.float32)).astype(np.float64)[rank]
        return (1 / below)[rank]


@dataclass(frozen=True, slots=True)
class SharedReciprocalRanks(ReciprocalRanks):
    """1 ÷ (k + rank), where documents with the same score share the better rank."""

    needs_scores: ClassVar[bool] = True

    def _ranks(self, pool: Pool) -> Ints:
        return pool.score_ranks()


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank itself, for a formula in which a weight changes it."""

    needs_scores: ClassVar[bool] = False
    normalisers: ClassVar[tuple[str, ...]] = ()

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows; NaN where the document is not inside the list."""
        del self, setting
        return np.where(inside, pool.rank, np.nan)


@dataclass(frozen=True, slots=True)
class NormalisedScores:
    """The score, made comparable with those of other lists."""

    needs_scores: ClassVar[bool] = True

    by_name: Mapping[str, Normaliser]  # the first is the usual one
    single: bool = False  # computed in 32 bits

    @property
    def normalisers(self) -> tuple[str, ...]:
        """The names of the ways to choose from."""
        return tuple(self.by_name)

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows; NaN where the document is not inside the list."""
        score = np.where(inside, every_score(pool, inside), np.nan)
        precision = np.float32 if self.single else np.float64
        names = setting.normaliser or self.normalisers[:1] * len(score)
        with np.errstate(all="ignore"):
            return np.array(
                [
                    self.by_name[name](ScoreLists(each.astype(precision), pool.query))
                    for name, each in zip(names, score, strict=True)
                ],
                dtype=np.float64,
            )


@dataclass(frozen=True, slots=True)
class FilledScores:
    """The score normalised by `karat.tuning.normalise`; what a list does not score is 0."""

    needs_scores: ClassVar[bool] = True

    normalisers: tuple[str, ...]
    lowest: Sequence[float]  # that each run can give, for tmm

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows; 0 where there is no score."""
        score = np.where(inside, pool.scores(), np.nan)
        scaled = [
            normalise(each, pool.query, name, lowest=low)
            for each, name, low in zip(score, setting.normaliser, self.lowest, strict=True)
        ]
        return np.nan_to_num(np.array(scaled), nan=0.0)


def every_score(pool: Pool, inside: Bools) -> Floats:
    """Return the scores; one that is missing or infinite inside a list is an error."""
    score = pool.scores()
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

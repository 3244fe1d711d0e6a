"""The kernels: random signs, shuffled labels and bootstraps, for many columns at once.

All randomness comes in blocks of fixed size, each with a generator of its own that is made from
the seed and the number of the block. What a column gets therefore depends on the seed and on the
column, not on the other columns, on threads, or on who computes which block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.core.data import Bools, Floats, Ints

BLOCK = 256  # random draws that share a generator
# numbers of columns, and multiplications of one matrix product: it is so small that libraries of
# linear algebra leave it to one thread (OpenBLAS up to 2¹⁸), which is many times as fast where
# other processes run
SIDE_BY_SIDE, PRODUCT = 32, 1 << 18
CELLS = 1 << 21  # numbers that a block of shuffles may hold
LEAST_EXPONENT = -900  # of a sum whose step is a number that can be divided by
SIGNS, SHUFFLES, NORMALS, BOOTSTRAPS, FOLDS, DIVISIONS = range(6)  # one stream for each


def sign_sums(columns: Floats, draws: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of random-sign sums: one row per draw, one column per column.

    One row of signs serves all columns. Random bits are 0 or 1, so a sum with signs is twice the
    sum of the chosen values minus the sum of all: matrix products. It is exact, whatever the
    order in which a library of linear algebra adds, and so the same on any number of threads: the
    values are rounded to multiples of one step that is so large that no sum has to be rounded.
    """
    queries = len(columns)
    columns = on_one_grid(columns)
    total = columns.sum(axis=0)
    wide = columns.shape[1]
    if wide == 1:  # a product with a vector would be spread over threads however small it is
        columns = np.hstack([columns, np.zeros_like(columns)])
    several = range(0, columns.shape[1], SIDE_BY_SIDE)
    tall = PRODUCT // BLOCK // min(columns.shape[1], SIDE_BY_SIDE) // 8 * 8  # whole bytes of bits
    for rng, rows in _blocks(seed, SIGNS, draws, BLOCK):
        width = -(-queries // 8)
        packed = np.frombuffer(rng.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
        chosen = np.zeros((rows, columns.shape[1]))
        for first in range(0, queries, tall):
            part = columns[first : first + tall]
            bits = packed[:, first // 8 : (first + tall) // 8]
            signs = np.unpackbits(bits, axis=1, count=len(part)).astype(np.float64)
            for left in several:
                some = slice(left, left + SIDE_BY_SIDE)
                chosen[:, some] += signs @ part[:, some]
        yield 2 * chosen[:, :wide] - total


def bootstrap_counts(units: int, draws: int, seed: int) -> Floats:
    """Return how often each unit is drawn, with replacement, as many as there are: draws × units.

    >>> bootstrap_counts(5, 3, seed=0).sum(axis=1).tolist()
    [5.0, 5.0, 5.0]
    """
    blocks = []
    for rng, rows in _blocks(seed, BOOTSTRAPS, draws, BLOCK):
        drawn = rng.integers(0, units, size=(rows, units))
        drawn += np.arange(rows)[:, np.newaxis] * units
        blocks.append(np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units))
    return np.concatenate(blocks).astype(np.float64)


def balanced_folds(units: int, folds: int, repeats: int, seed: int) -> Ints:
    """Return the fold of each unit, dealt out at random: repeats × units.

    The sizes of folds differ by 1 at most.

    >>> [np.bincount(row).tolist() for row in balanced_folds(11, 5, 2, seed=0)]
    [[3, 2, 2, 2, 2], [3, 2, 2, 2, 2]]
    """
    dealt = [
        rng.permuted(np.tile(np.arange(units) % folds, (rows, 1)), axis=1)
        for rng, rows in _blocks(seed, FOLDS, repeats, BLOCK)
    ]
    return np.concatenate(dealt)


def divisions(side: Bools, swapping: int, draws: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield blocks of random divisions: who is in the second group, and who changes sides.

    As many units are in the second group as now; each of `swapping` others changes sides or not,
    with the same chance. One row per draw, 1 for yes.

    >>> [(one.sum(axis=1).tolist(), two.shape) for one, two in
    ...  divisions(np.array([True, False, True, False]), 3, 2, seed=0)]
    [([2.0, 2.0], (2, 3))]
    """
    at_once = max(1, min(BLOCK, CELLS // max(len(side) + swapping, 1)))
    for rng, rows in _blocks(seed, DIVISIONS, draws, at_once):
        assigned = rng.permuted(np.tile(side.astype(np.float64), (rows, 1)), axis=1)
        yield assigned, rng.integers(0, 2, size=(rows, swapping)).astype(np.float64)


def on_one_grid(columns: Floats, reach: Floats | None = None) -> Floats:
    """Round the values of each column to multiples of a power of 2 of which all sums are exact.

    `reach` is the largest sum of absolute values there can be, by default that of the column: the
    step is at most 2 ** -51 of it. Random errors of thousands of values come to less than what
    counts as a tie.

    >>> on_one_grid(np.array([[1.0], [2.0**-60]])).tolist()
    [[1.0], [0.0]]
    """
    _, exponent = np.frexp(np.abs(columns).sum(axis=0) if reach is None else reach)
    step = np.ldexp(1.0, np.maximum(exponent, LEAST_EXPONENT) - 52)
    return np.asarray(np.rint(columns / step) * step)


def all_sign_sums(values: Floats) -> Floats:
    """Return the sums under every assignment of signs, 2 ** len(values) of them.

    >>> all_sign_sums(np.array([1.0, 2.0])).tolist()
    [-3.0, -1.0, 1.0, 3.0]
    """
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def shuffled_ranges(table: Floats, draws: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of ranges: the labels of each query shuffled, the largest sum − the smallest.

    `table` is queries × systems × measures; a block has one row per draw, one column per measure.
    A shuffle is a sort of random numbers that carry the number of the system in their last bits.
    """
    queries, systems, measures = table.shape
    bits = np.uint64(max(systems - 1, 1).bit_length())
    low = np.uint64((1 << int(bits)) - 1)
    labels = np.arange(systems, dtype=np.uint64)
    start = np.arange(queries)[:, np.newaxis] * systems
    flat = [np.ascontiguousarray(table[:, :, measure]).ravel() for measure in range(measures)]
    rows_at_once = max(1, min(BLOCK, CELLS // max(queries * systems, 1)))
    for rng, rows in _blocks(seed, SHUFFLES, draws, rows_at_once):
        keys = rng.integers(0, 1 << 64, size=(rows, queries, systems), dtype=np.uint64)
        keys = np.sort(keys & ~low | labels, axis=2)
        where = (keys & low).astype(np.int64) + start
        yield np.column_stack([np.ptp(values.take(where).sum(axis=1), axis=1) for values in flat])


def normal_ranges(systems: int, draws: int, seed: int) -> Floats:
    """Return ranges of as many standard normal numbers as there are systems, one per draw."""
    blocks = _blocks(seed, NORMALS, draws, BLOCK)
    return np.concatenate(
        [np.ptp(rng.standard_normal((rows, systems)), axis=1) for rng, rows in blocks]
    )


def _blocks(
    seed: int, stream: int, draws: int, block: int
) -> Iterator[tuple[np.random.Generator, int]]:
    """Yield the generator and the size of each block."""
    if seed < 0:
        raise OptionError(f"the seed is {seed}", fix="give a whole number from 0 up")
    for number, first in enumerate(range(0, draws, block)):
        source = np.random.SeedSequence(seed, spawn_key=(stream, number))
        yield np.random.default_rng(source), min(block, draws - first)

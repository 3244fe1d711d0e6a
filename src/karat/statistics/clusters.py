"""Units that are drawn as one: a query, or all queries that share a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.core.data import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Columns of values, summed over the queries of each unit."""

    sums: Floats  # units × columns
    sizes: Floats  # queries of each unit
    clustered: bool

    def __len__(self) -> int:
        return len(self.sizes)


def cluster_codes(labels: Sequence[object] | np.ndarray, queries: int) -> Ints:
    """Return a number for the cluster of each query; one without a label stands alone.

    >>> cluster_codes(["a.pdf", "b.pdf", None, "a.pdf", None], 5).tolist()
    [0, 1, 2, 0, 3]
    """
    if len(labels) != queries:
        raise InputError(f"{len(labels)} cluster labels were given for {queries} queries")
    codes: dict[object, int] = {}
    found = np.empty(queries, dtype=np.int64)
    for number, label in enumerate(labels):
        alone = label is None or label != label  # noqa: PLR0124  NaN differs from itself
        key = (number, "alone") if alone else label
        found[number] = codes.setdefault(key, len(codes))
    return found


def as_units(columns: Floats, codes: Ints | None) -> Units:
    """Return the units of columns that have no NaN; without codes every query is one."""
    if codes is None:
        return Units(columns, np.ones(len(columns)), clustered=False)
    _, unit = np.unique(codes, return_inverse=True)
    sizes = np.bincount(unit).astype(np.float64)
    sums = np.zeros((len(sizes), columns.shape[1]))
    np.add.at(sums, unit, columns)
    return Units(sums, sizes, clustered=True)

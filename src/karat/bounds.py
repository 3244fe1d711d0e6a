"""What unjudged units could change: the values if none of them were relevant, and if all were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.data import Floats
    from karat.measures import Measure
    from karat.relation import Relation

UNITS = 4_000_000  # retrieved units handled at once, so that memory stays bounded


def bounds(relation: Relation, measures: Sequence[Measure]) -> list[tuple[Floats, Floats]]:
    """Return the lower and upper bound of every value, a pair of arrays for each measure.

    The measure is taken three times: as it is, with every unjudged unit judged not relevant, and
    with every unjudged unit as relevant as the best item of the gold. The bounds are the least
    and the greatest of the three.
    """
    top = max(relation.item_grade.max(initial=1.0), 1.0)
    block_of = np.cumsum(relation.depth) // UNITS
    found = []
    for number in np.unique(block_of):
        block = relation.select(block_of == number)
        scenarios = (block, block.with_unjudged(0.0), block.with_unjudged(top))
        found.append([[measure.values(each) for each in scenarios] for measure in measures])
    return [
        (
            np.concatenate([np.fmin.reduce(block[at]) for block in found]),
            np.concatenate([np.fmax.reduce(block[at]) for block in found]),
        )
        for at in range(len(measures))
    ]

"""Relations that know something about every chunk, for tests of the whole registry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import findwell

if TYPE_CHECKING:
    from findwell.core.relation import Relation


def with_facts(relation: Relation, seed: int = 0) -> Relation:
    """Give every chunk all the facts that any measure asks for: small whole numbers."""
    names = sorted(
        {name for cls in findwell.plugins.known_measures().values() for name in cls().facts()}
    )
    chunks = int(relation.chunks[-1])
    rng = np.random.default_rng(seed)
    return replace(
        relation, chunk_facts={name: rng.integers(0, 2, chunks).astype(float) for name in names}
    )

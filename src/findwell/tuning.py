"""Hybrid retrieval, tuned: fuse the runs of several retrievers, and find the best way to fuse them.

`tune` chooses a setting of an engine, or of a retriever, and measures it on queries that did not
choose it; `tune_weight` and `tune_rrf_k` keep the value that measures best on the queries at hand,
as AutoRAG does. `convex_combination` adds up weighted scores that a normaliser has made comparable,
`reciprocal_rank_fusion` adds up 1 ÷ rank and needs no scores. A `Pool` holds every document that
any of the runs retrieved, once.
"""

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names
from findwell.loop.tuning import (
    ENGINES,
    NORMALISERS,
    Engine,
    Pool,
    Setting,
    Tuned,
    convex_combination,
    find_engine,
    fuse,
    reciprocal_rank_fusion,
    tune_rrf_k,
    tune_weight,
)
from findwell.loop.tuning.tune import tune
from findwell.loop.tuning.tuning import Tuning

__all__ = [
    "ENGINES", "NORMALISERS", "Engine", "Pool", "Setting", "Tuned", "Tuning",
    "convex_combination", "find_engine", "fuse", "reciprocal_rank_fusion",
    "tune", "tune_rrf_k", "tune_weight",
]  # fmt: skip

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)

"""Hybrid retrieval, tuned: fuse the runs of several retrievers, and find the best way to fuse them.

A `Pool` holds every document that any of the runs retrieved, once. Two ways of fusing read it:
`convex_combination` adds up weighted scores that a normaliser has made comparable,
`reciprocal_rank_fusion` adds up 1 ÷ rank and needs no scores. `findwell.tuning.tune` chooses a
setting of an engine and measures it on queries that did not choose it; `tune_weight` and
`tune_rrf_k` keep the value that measures best on the queries at hand, as AutoRAG does.
"""

from __future__ import annotations

from findwell.loop.tuning.engines import ENGINES, Engine, Setting, find_engine, register_engine
from findwell.loop.tuning.formulas import NORMALISERS
from findwell.loop.tuning.fusion import (
    Tuned,
    convex_combination,
    fuse,
    reciprocal_rank_fusion,
    tune_rrf_k,
    tune_weight,
)
from findwell.loop.tuning.pool import Pool

__all__ = [
    "ENGINES",
    "NORMALISERS",
    "Engine",
    "Pool",
    "Setting",
    "Tuned",
    "convex_combination",
    "find_engine",
    "fuse",
    "reciprocal_rank_fusion",
    "register_engine",
    "tune_rrf_k",
    "tune_weight",
]

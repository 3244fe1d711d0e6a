"""How the engines of the field fuse lists, each by its own formula: one entry per engine.

An entry says what an engine does, and where that was read; what it cannot say is in `exact`.
"""

from __future__ import annotations

from findwell.core.errors import OptionError, nearest
from findwell.loop.tuning.engines.databases import DATABASES
from findwell.loop.tuning.engines.engine import Engine, Prepared, Setting
from findwell.loop.tuning.engines.frameworks import FRAMEWORKS
from findwell.loop.tuning.engines.lucene import ELASTICSEARCH, OPENSEARCH, REFUSED
from findwell.loop.tuning.engines.vector_databases import VECTOR_DATABASES

__all__ = ["ENGINES", "Engine", "Prepared", "Setting", "find_engine"]

TABLE = (*ELASTICSEARCH, *OPENSEARCH, *VECTOR_DATABASES, *DATABASES, *FRAMEWORKS)
ENGINES: dict[str, Engine] = {engine.name: engine for engine in TABLE}


def find_engine(name: str) -> Engine:
    """Return the engine of a name; an unknown one raises the error that suggests the nearest.

    >>> find_engine("qdrant-rrf").about
    'Σ 1/(r/w+k−1)'
    """
    if name in REFUSED:
        raise OptionError(
            f"there is no {name}: {REFUSED[name]}", fix="opensearch-z_score-arithmetic"
        )
    if name not in ENGINES:
        fix = f"{nearest(name, ENGINES)} `findwell fuse --list` shows all".strip()
        raise OptionError(f"unknown engine {name[:60]!r}", fix=fix)
    return ENGINES[name]

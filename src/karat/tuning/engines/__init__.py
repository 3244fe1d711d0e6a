"""How the engines of the field fuse lists, each by its own formula: one entry per engine."""

from __future__ import annotations

from karat.errors import OptionError, choose
from karat.tuning.engines.engine import Engine, Prepared, Setting
from karat.tuning.engines.table import REFUSED, TABLE

__all__ = ["ENGINES", "Engine", "Prepared", "Setting", "find_engine"]

ENGINES: dict[str, Engine] = {engine.name: engine for engine in TABLE}


def find_engine(name: str) -> Engine:
    """Return the engine of a name; an unknown one raises the error that suggests the nearest.

    >>> find_engine("qdrant-rrf").about
    'Σ 1 ÷ (r ÷ w + k − 1)'
    """
    if name in REFUSED:
        raise OptionError(
            f"there is no {name}: {REFUSED[name]}", fix="opensearch-z_score-arithmetic"
        )
    return ENGINES[choose("engine", name, ENGINES)]

"""How far a long piece of work has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """What is done, of how much: queries or samples."""

    done: int
    total: int
    note: str = ""  # of a judge: tokens, cost, answers from the cache
    phase: str = ""  # what is being done: reading which run, asking which judge


Report: TypeAlias = Callable[[Progress], None]

"""What measures read: the edges to relevant items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.data import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Edges to relevant items, by query and rank."""

    query: Ints
    rank: Ints
    item: Ints
    nth: Ints  # how many relevant units stand at or above this rank

    def take(self, at: Ints) -> Hits:
        """Keep these rows."""
        return Hits(self.query.take(at), self.rank.take(at), self.item.take(at), self.nth.take(at))

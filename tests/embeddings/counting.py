"""An embedder that counts what it is asked, light enough for a process of its own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.judges.embeddings import Vectors


class Counting:
    """Makes vectors of the length and the letters of a text."""

    def __init__(self, name: str = "counting", width: int = 3) -> None:
        self.name = name
        self.width = width
        self.seen: Counter[str] = Counter()
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.seen.update(texts)
        self.calls += 1
        rows = np.array([[len(t), sum(map(ord, t)) % 5 + 1, 1][: self.width] for t in texts])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

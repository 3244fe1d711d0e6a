"""How similar texts are: the cosine of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from findwell.judges.embeddings.embedder import TextEmbedder

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints
    from findwell.judges.embeddings.embedder import Embedder, Vectors

TEXTS = 4096  # embedded at once
NUMBERS = 1 << 22  # multiplied at once


def cosine(
    units: Sequence[str], items: Sequence[str], pairs: tuple[Ints, Ints], embedder: Embedder
) -> Floats:
    """Return the similarity, −1…1, of each pair of a unit and an item, given by their positions.

    Only texts that occur in a pair are embedded, each distinct one once. Equal texts have
    similarity 1, a text without content has 0 with everything. Memory: one vector per distinct
    text, and a fixed amount for the pairs.

    >>> from findwell.judges.embeddings import find_embedder
    >>> letters = find_embedder(lambda texts: [[t.count("a"), t.count("b")] for t in texts])
    >>> pairs = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1])
    >>> cosine(["a", "ab", ""], ["b", "a"], pairs, letters).round(4).tolist()
    [0.0, 0.7071, 0.7071, 0.0]
    """
    unit, item = (np.asarray(side, dtype=np.int64) for side in pairs)
    numbers: dict[str, int] = {}
    left = _numbered(units, unit, numbers)
    right = _numbered(items, item, numbers)
    vectors = _embedded(list(numbers), embedder)
    similarity = np.zeros(len(unit))
    step = max(1, NUMBERS // max(1, vectors.shape[1]))
    for start in range(0, len(unit), step):
        part = slice(start, start + step)
        products = vectors[left[part]].astype(np.float64)
        products *= vectors[right[part]]
        similarity[part] = products.sum(axis=1)
    # a text that the model does not know still equals itself, unless it is blank
    full: Bools = np.array([any(map(str.isalnum, text)) for text in numbers], dtype=bool)
    full |= vectors.any(axis=1)
    similarity[(left == right) & full[left]] = 1.0
    return np.clip(similarity, -1.0, 1.0, out=similarity)


def _numbered(texts: Sequence[str], places: Ints, numbers: dict[str, int]) -> Ints:
    """Return the number of the text at each place; new texts get the next numbers."""
    used, position = np.unique(places, return_inverse=True)
    found = [numbers.setdefault(texts[place], len(numbers)) for place in used.tolist()]
    return np.array(found, dtype=np.int64)[position]


def _embedded(texts: list[str], embedder: Embedder) -> Vectors:
    """Return the vectors of texts, made batch by batch in one array."""
    checked = TextEmbedder(embedder.name, embedder.embed)  # it may be the user's own
    vectors: Vectors = np.zeros((len(texts), 0), dtype=np.float32)
    for start in range(0, len(texts), TEXTS):
        rows = checked.embed(texts[start : start + TEXTS])
        if not vectors.shape[1]:  # batches of blank texts have no width
            vectors = np.zeros((len(texts), rows.shape[1]), dtype=np.float32)
        if rows.shape[1]:
            vectors[start : start + len(rows)] = rows
    return vectors

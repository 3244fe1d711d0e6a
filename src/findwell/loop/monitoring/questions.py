"""What is seen in questions: their language, and how far they are from those of the evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.texts.languages import languages_of
from findwell.judges.embeddings import cached, find_embedder
from findwell.judges.embeddings.embedder import TextEmbedder

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.loop.monitoring.references import References

REAL = pl.Float64()
AT_ONCE = 4096  # questions that are embedded, and compared, together


def in_another_language(questions: pl.Series, expected: str) -> Floats:
    """Mark with 1 the questions that are in another language than the expected one.

    >>> in_another_language(pl.Series(["Where is it?", "Wo ist der Schlüssel?"]), "en").tolist()
    [0.0, 1.0]
    """
    distinct = questions.drop_nulls().unique(maintain_order=True)
    codes = languages_of(distinct.to_list())
    other = pl.Series([float(code != expected) if code else None for code in codes], dtype=REAL)
    return _of_all(questions, distinct, other)


def _of_all(questions: pl.Series, distinct: pl.Series, values: pl.Series) -> Floats:
    """Return for all questions what is known of the distinct ones; NaN where nothing is."""
    found = questions.replace_strict(distinct, values, default=None, return_dtype=REAL)
    return found.cast(REAL).to_numpy()


def question_distances(questions: pl.Series, given: References) -> Floats:
    """Return 1 − the cosine to the nearest question of the evaluation, each distinct one once."""
    found = find_embedder(given.embedder)  # type: ignore[arg-type]
    embedder = cached(found)
    known = TextEmbedder(found.name, embedder.embed).embed(list(given.questions))
    distinct = questions.drop_nulls().unique(maintain_order=True)
    near = np.full(len(distinct), np.nan)
    for start in range(0, len(distinct), AT_ONCE):
        texts = distinct.slice(start, AT_ONCE).to_list()
        vectors = TextEmbedder(found.name, embedder.embed).embed(texts)
        if vectors.shape[1] == known.shape[1]:
            # einsum adds in a fixed order, whatever the number of threads
            near[start : start + len(texts)] = np.einsum("ij,kj->ik", vectors, known).max(axis=1)
    blank = ~distinct.str.contains(r"\w").to_numpy()
    near[blank] = np.nan
    return _of_all(questions, distinct, pl.Series(np.clip(1 - near, 0.0, 1.0)))

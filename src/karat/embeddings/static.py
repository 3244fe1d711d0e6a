"""Static embeddings: a vector a token, averaged over all tokens of the text.

A folder holds the vectors in one safetensors file and a tokenizer of the library `tokenizers`, as
model2vec writes it (`model.safetensors`, `tokenizer.json`), as wordllama packs it (`weights/`,
`tokenizers/`) or as sentence-transformers does (`0_StaticEmbedding/`). Fast, and far weaker than
a sentence encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.embeddings.embedder import TextEmbedder, Vectors, need
from karat.embeddings.files import (
    fingerprint,
    load_tokenizer,
    model_folder,
    unknown_share,
    unknown_token,
    unreadable,
)
from karat.embeddings.safetensors import read_tensors
from karat.errors import EmbeddingError

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTORS = ("embeddings", "embedding.weight")  # model2vec, the others
TOGETHER = 1024  # texts tokenized at once


class StaticModel:
    """A function from texts to vectors; unknown tokens and tokens without a vector are left out."""

    def __init__(self, tensors: dict[str, NDArray[Any]], tokenizer: Any, where: str) -> None:  # noqa: ANN401
        vectors = next((tensors[name] for name in VECTORS if name in tensors), None)
        if vectors is None or vectors.ndim != 2 or not vectors.shape[1]:
            raise EmbeddingError(
                f"the file holds no table of token vectors, only {', '.join(tensors) or 'nothing'}",
                where=where,
                fix=f"name it {' or '.join(VECTORS)}",
            )
        self._vectors = vectors
        self._row = _token_rows(tensors.get("mapping"), len(vectors), where)
        self._weights = tensors.get("weights")
        if self._weights is not None and self._weights.shape != self._row.shape:
            raise EmbeddingError("there is not one weight a token", where=where)
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._unknown = unknown_token(tokenizer)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text."""
        rows = np.zeros((len(texts), self._vectors.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), TOGETHER):
            batch = list(texts[start : start + TOGETHER])
            encodings = self._tokenizer.encode_batch(batch, add_special_tokens=False)
            for number, encoding in enumerate(encodings, start):
                rows[number] = self._mean(np.array(encoding.ids, dtype=np.int64))
        return rows

    def unknown_share(self, texts: Sequence[str]) -> list[float]:
        """Return how much of each text the model does not know."""
        return unknown_share(self._tokenizer, texts)

    def _mean(self, tokens: NDArray[np.int64]) -> Any:  # noqa: ANN401
        known = tokens[(tokens < len(self._row)) & (tokens != self._unknown)]
        if not len(known):
            return 0.0
        # by distinct token, so that a megabyte of text takes no more than the vocabulary
        token, count = np.unique(known, return_counts=True)
        weights = count if self._weights is None else count * self._weights[token]
        vectors = self._vectors[self._row[token]].astype(np.float64)
        return (vectors * weights[:, None]).sum(axis=0) / len(known)


def static_embedder(path: str) -> TextEmbedder:
    """Return the embedder `static:PATH`; its name is that of the folder and a hash of its files."""
    tokenizers = need("tokenizers", "a static embedder", "'karat[semantic]'")
    folder = model_folder(path)
    weights = _only("*.safetensors", folder, prefer="model.safetensors")
    vocabulary = _only("*tokenizer*.json", folder, prefer="tokenizer.json")
    try:
        content = vocabulary.read_bytes()
    except OSError as error:
        raise unreadable(vocabulary, error) from None
    tokenizer = load_tokenizer(tokenizers, content, str(vocabulary))
    model = StaticModel(read_tensors(weights), tokenizer, str(weights))
    name = f"static:{folder.resolve().name}:{fingerprint([weights, vocabulary])}"
    return TextEmbedder(name, model, unknown_share=model.unknown_share)


def _only(pattern: str, folder: Path, prefer: str) -> Path:
    """Return the one file of a kind, in the folder or else one level below."""
    for place in (folder / prefer, *folder.glob(f"0_*/{prefer}")):
        if place.is_file():
            return place
    found = sorted([*folder.glob(pattern), *folder.glob(f"*/{pattern}")])
    if len(found) == 1:
        return found[0]
    several = ", ".join(str(file.relative_to(folder)) for file in found) or "none"
    raise EmbeddingError(
        f"the folder should have one file {prefer} or {pattern}, it has {several}",
        where=str(folder),
    )


def _token_rows(mapping: NDArray[Any] | None, count: int, where: str) -> NDArray[np.int64]:
    """Return the row of each token in the table of vectors."""
    if mapping is None:
        return np.arange(count)
    rows = mapping.astype(np.int64)
    if rows.ndim != 1 or ((rows < 0) | (rows >= count)).any():
        raise EmbeddingError("the mapping names vectors that do not exist", where=where)
    return rows

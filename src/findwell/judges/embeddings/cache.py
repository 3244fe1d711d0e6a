"""Vectors on disk: one SQLite file that several processes may share.

A vector is kept under the name of its embedder and the hash of its text, never the text itself.
Each batch is written as soon as it is made, so a killed run loses at most one batch.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from findwell.core.errors import EmbeddingError
from findwell.io.storage.database import Database, cache_folder
from findwell.judges.embeddings.embedder import Embedder, TextEmbedder, Vectors

FILE = "vectors.sqlite"
LAYOUT = 1
BATCH = 256  # texts embedded, then written
TABLES = """
CREATE TABLE IF NOT EXISTS embedder (id INTEGER PRIMARY KEY, name TEXT UNIQUE, width INTEGER);
CREATE TABLE IF NOT EXISTS vector (
    embedder INTEGER NOT NULL, text BLOB NOT NULL, vector BLOB NOT NULL, UNIQUE (embedder, text)
);
"""


def cached(embedder: Embedder, folder: str | os.PathLike[str] | None = None) -> Embedder:
    """Return the embedder with a cache on disk: only texts never seen before are embedded.

    An embedder whose name does not promise the same vectors (a function without a name) is returned
    as it is.
    """
    if not getattr(embedder, "lasting", True):
        return embedder
    return CachedEmbedder(embedder, cache_folder() if folder is None else Path(folder))


class CachedEmbedder:
    """An embedder that looks on disk first; it counts the distinct texts found and embedded."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.name = embedder.name
        self.reads = getattr(embedder, "reads", "")
        self.found = 0
        self.made = 0
        self._embedder = TextEmbedder(embedder.name, embedder.embed)  # keep only sound vectors
        self._path = folder / FILE
        self._checked = TextEmbedder(embedder.name, self._vectors)

    def __repr__(self) -> str:
        return f"CachedEmbedder({self.name!r}, found={self.found}, made={self.made})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        return self._checked.embed(texts)

    def _vectors(self, texts: list[str]) -> Vectors:
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        with VectorStore.open(self._path, self.name) as store:
            known = store.read(list(distinct))
            missing = [key for key in distinct if key not in known]
            self.found += len(known)
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                vectors = self._embedder.embed([distinct[key] for key in batch])
                store.write(batch, vectors)
                known |= zip(batch, vectors, strict=True)
                self.made += len(batch)
        return np.stack([known[key] for key in keys])


class VectorStore:
    """The vectors of one embedder in a file, which is open."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, name: str) -> Iterator[VectorStore]:
        """Open a file, creating it if there is none, and turn its failures into findwell's."""
        file = Database(path, "vectors", TABLES, LAYOUT)
        try:
            with contextlib.closing(file.open()) as connection:
                yield cls(connection, name)
        except sqlite3.Error as error:
            raise file.failure(error) from None

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Return the vectors that are there; a damaged one is not."""
        embedder, width = self._embedder()
        if not width:
            return {}
        query = "SELECT text, vector FROM vector WHERE embedder = ? AND text IN"
        rows = Database.find(self._connection, query, (embedder,), keys)
        whole = [row for row in rows if len(row[1]) == 4 * width]
        vectors = np.frombuffer(b"".join(row[1] for row in whole), "<f4").reshape(-1, width)
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        sound = (np.abs(lengths - 1) < 1e-3) | (lengths == 0)
        return {row[0]: vectors[i] for i, row in enumerate(whole) if sound[i]}

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Add vectors, all or none."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            embedder, width = self._embedder()
            if not width:
                width = vectors.shape[1]
                cursor = self._connection.execute(
                    "INSERT INTO embedder (name, width) VALUES (?, ?)", (self._name, width)
                )
                embedder = int(cursor.lastrowid or 0)
            if vectors.shape[1] != width:
                raise EmbeddingError(
                    f"the vectors have {vectors.shape[1]} numbers, those in the cache {width}",
                    where=self._name,
                    fix="give the changed model another name, or delete the cache",
                )
            blobs = (row.astype("<f4").tobytes() for row in vectors)
            self._connection.executemany(
                "INSERT OR REPLACE INTO vector (embedder, text, vector) VALUES (?, ?, ?)",
                ((embedder, *pair) for pair in zip(keys, blobs, strict=True)),
            )

    def _embedder(self) -> tuple[int, int]:
        """Return the number of the embedder and the width of its vectors, 0 where it is new."""
        row = self._connection.execute(
            "SELECT id, width FROM embedder WHERE name = ?", (self._name,)
        ).fetchone()
        return (int(row[0]), int(row[1])) if row else (0, 0)

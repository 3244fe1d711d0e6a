"""What an embedder is, the checks that its vectors pass, how similar texts are, and a cache.

The cache is one SQLite file that several processes may share. A vector is kept under the name of
its embedder and the hash of its text, never the text itself. Each batch is written as soon as it is
made, so a killed run loses at most one batch.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from findwell.core.errors import EmbeddingError, FindwellError, InputError
from findwell.core.findings import Finding, finding_about
from findwell.core.texts.languages import READ, known, languages_of
from findwell.io.storage.database import Database, cache_folder

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints

Vectors: TypeAlias = NDArray[np.float32]
EmbedFunction: TypeAlias = Callable[[list[str]], Any]

UNIT = 1e-6  # a row this close to length 1 is left as it is, so that checking twice changes nothing
MOST_UNKNOWN = 0.5  # of the tokens of a text: from here on it counts as not read
SHOWN_CHARACTERS = 60  # characters of an example
READS_MORE = (
    "name an embedder that reads these languages, such as "
    "sentence-transformers:intfloat/multilingual-e5-small or openai:MODEL"
)


@runtime_checkable
class Embedder(Protocol):
    """Texts in, one row of length 1 per text out; a text without content has a row of zeros.

    Manifests and keys of the cache hold the name: what changes a vector changes the name.
    """

    @property
    def name(self) -> str:
        """The identity of the model, never of its user: no key, no path."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        ...


class TextEmbedder:
    """An embedder around any function from texts to vectors.

    The function sees only texts with content; what it returns is checked and brought to length 1.
    `lasting` promises that the name means the same vectors in every process, so that they may be
    kept on disk. `reads` is the one language that the model was trained on, if there is one, and
    `unknown_share` returns which part of each text the model does not know, if that can be found.

    >>> lengths = TextEmbedder("lengths", lambda texts: [[len(text), 0.0] for text in texts])
    >>> lengths.embed(["one", " "]).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        name: str,
        function: EmbedFunction,
        *,
        lasting: bool = True,
        reads: str = "",
        unknown_share: Callable[[Sequence[str]], list[float]] | None = None,
    ) -> None:
        self.name = name
        self.lasting = lasting
        self.reads = reads
        self.unknown_share = unknown_share
        self._function = function
        self._width = 0  # unknown until the first vector

    def __repr__(self) -> str:
        return f"TextEmbedder({self.name!r})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; rows have no width as long as no text had content."""
        readable = [_readable(text, number) for number, text in enumerate(texts)]
        full = [number for number, text in enumerate(readable) if text.strip()]
        found = self._call([readable[number] for number in full])
        if len(full) == len(readable) > 0:
            return found
        rows: Vectors = np.zeros((len(readable), self._width), dtype=np.float32)
        rows[full] = found
        return rows

    def _call(self, texts: list[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self._width), dtype=np.float32)
        try:
            raw = self._function(texts)
        except FindwellError:
            raise
        except Exception as error:
            raise EmbeddingError(
                f"the embedder failed: {type(error).__name__}: {error}", where=self.name
            ) from error
        rows = unit_rows(raw, len(texts), self.name)
        if self._width and rows.shape[1] != self._width:
            raise EmbeddingError(
                f"the vectors have {rows.shape[1]} numbers, those before had {self._width}",
                where=self.name,
            )
        self._width = rows.shape[1]
        return rows


def unit_rows(raw: object, count: int, where: str = "") -> Vectors:
    """Return vectors as rows of length 1; a vector of zeros stays one.

    >>> unit_rows([[3, 4], [0, 0]], 2).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    fix = "return a list of vectors of numbers, one per text, all of one width"
    try:
        rows = np.asarray(raw)
    except (TypeError, ValueError, RuntimeError) as error:
        raise EmbeddingError(f"these are not vectors: {error}", where=where, fix=fix) from None
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.shape[1]:
        shape = " × ".join(map(str, rows.shape)) or "no"
        raise EmbeddingError(
            f"these are not vectors: an array of {shape} elements of type {rows.dtype}",
            where=where,
            fix=fix,
        )
    if len(rows) != count:
        raise EmbeddingError(f"{len(rows)} vectors for {count} texts", where=where, fix=fix)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise EmbeddingError(
            f"{int((~finite).sum())} of {count} vectors are not finite, the first is number {bad}",
            where=where,
        )
    return _normalised(rows)


def _normalised(rows: NDArray[Any]) -> Vectors:
    exact = rows.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):  # such rows are scaled below
        lengths = np.linalg.norm(exact, axis=1)
    if (np.abs(lengths - 1) <= UNIT).all():
        return exact.astype(np.float32)
    other = (np.abs(lengths - 1) > UNIT) & exact.any(axis=1)
    scaled = exact[other]
    scaled /= np.abs(scaled).max(axis=1, keepdims=True)  # squares neither overflow nor vanish
    exact[other] = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return exact.astype(np.float32)


def _readable(text: object, number: int) -> str:
    """Return the text as UTF-8 can write it: half a surrogate pair becomes a question mark."""
    if not isinstance(text, str):
        raise InputError(f"text number {number} is not a text but {type(text).__name__}")
    return text.encode(errors="replace").decode()


def unread_findings(texts: Sequence[str], embedder: Embedder) -> list[Finding]:
    """Report how many texts an embedder cannot read, and how many it perhaps cannot.

    Two things are seen: a tokenizer that does not know most of a text, and for a model of one
    language a text in another. In Latin letters the other language is recognised by its commonest
    words, so that it may be missed in short texts, and a quotation may be taken for the text.
    """
    heads = [text[:READ] for text in dict.fromkeys(texts) if text.strip()]
    share = getattr(embedder, "unknown_share", None)
    unknown = [part >= MOST_UNKNOWN for part in share(heads)] if share else [False] * len(heads)
    own = getattr(embedder, "reads", "")
    codes = languages_of(heads) if own else [""] * len(heads)
    surely, perhaps = [], []
    for head, strange, code in zip(heads, unknown, codes, strict=True):
        foreign = code not in ("", own)
        if strange or (foreign and not known(code).latin):
            surely.append(head[:SHOWN_CHARACTERS])
        elif foreign:
            perhaps.append(head[:SHOWN_CHARACTERS])
    name = embedder.name.partition(":")[0]
    return [
        *finding_about(
            "unread-text",
            surely,
            f"# text|texts is|are in a script or language that {name} cannot read. Which texts "
            "it finds similar says little.",
            READS_MORE,
        ),
        *finding_about(
            "perhaps-unread-text",
            perhaps,
            f"# text|texts seems|seem not to be in {known(own).name}, which is all that {name} "
            "reads. Which texts it finds similar may say little.",
            READS_MORE,
        ),
    ]


# --- similarity -----------------------------------------------------------------------------------

EMBEDDED_TEXTS = 4096  # embedded at once
MULTIPLIED_NUMBERS = 1 << 22  # multiplied at once


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
    step = max(1, MULTIPLIED_NUMBERS // max(1, vectors.shape[1]))
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
    for start in range(0, len(texts), EMBEDDED_TEXTS):
        rows = checked.embed(texts[start : start + EMBEDDED_TEXTS])
        if not vectors.shape[1]:  # batches of blank texts have no width
            vectors = np.zeros((len(texts), rows.shape[1]), dtype=np.float32)
        if rows.shape[1]:
            vectors[start : start + len(rows)] = rows
    return vectors


# --- vectors on disk ------------------------------------------------------------------------------

VECTORS_FILE = "vectors.sqlite"
VECTORS_LAYOUT = 1
WRITTEN_TEXTS = 256  # texts embedded, then written
VECTOR_TABLES = """
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
        self._path = folder / VECTORS_FILE
        self._checked = TextEmbedder(embedder.name, self._vectors)

    def __repr__(self) -> str:
        return f"CachedEmbedder({self.name!r}, found={self.found}, made={self.made})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        return self._checked.embed(texts)

    def _vectors(self, texts: list[str]) -> Vectors:
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        file = Database(self._path, "vectors", VECTOR_TABLES, VECTORS_LAYOUT)
        try:
            with contextlib.closing(file.open()) as connection:
                known = self._read(connection, list(distinct))
                missing = [key for key in distinct if key not in known]
                self.found += len(known)
                for start in range(0, len(missing), WRITTEN_TEXTS):
                    batch = missing[start : start + WRITTEN_TEXTS]
                    vectors = self._embedder.embed([distinct[key] for key in batch])
                    self._write(connection, batch, vectors)
                    known |= zip(batch, vectors, strict=True)
                    self.made += len(batch)
        except sqlite3.Error as error:
            raise file.failure(error) from None
        return np.stack([known[key] for key in keys])

    def _read(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Return the vectors that are there; a damaged one is not."""
        embedder, width = self._number_and_width(connection)
        if not width:
            return {}
        query = "SELECT text, vector FROM vector WHERE embedder = ? AND text IN"
        rows = Database.find(connection, query, (embedder,), keys)
        whole = [row for row in rows if len(row[1]) == 4 * width]
        vectors = np.frombuffer(b"".join(row[1] for row in whole), "<f4").reshape(-1, width)
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        sound = (np.abs(lengths - 1) < 1e-3) | (lengths == 0)
        return {row[0]: vectors[i] for i, row in enumerate(whole) if sound[i]}

    def _write(
        self, connection: sqlite3.Connection, keys: Sequence[bytes], vectors: Vectors
    ) -> None:
        """Add vectors, all or none."""
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            embedder, width = self._number_and_width(connection)
            if not width:
                width = vectors.shape[1]
                cursor = connection.execute(
                    "INSERT INTO embedder (name, width) VALUES (?, ?)", (self.name, width)
                )
                embedder = int(cursor.lastrowid or 0)
            if vectors.shape[1] != width:
                raise EmbeddingError(
                    f"the vectors have {vectors.shape[1]} numbers, those in the cache {width}",
                    where=self.name,
                    fix="give the changed model another name, or delete the cache",
                )
            blobs = (row.astype("<f4").tobytes() for row in vectors)
            connection.executemany(
                "INSERT OR REPLACE INTO vector (embedder, text, vector) VALUES (?, ?, ?)",
                ((embedder, *pair) for pair in zip(keys, blobs, strict=True)),
            )

    def _number_and_width(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Return the number of the embedder and the width of its vectors, 0 where it is new."""
        query = "SELECT id, width FROM embedder WHERE name = ?"
        row = connection.execute(query, (self.name,)).fetchone()
        return (int(row[0]), int(row[1])) if row else (0, 0)

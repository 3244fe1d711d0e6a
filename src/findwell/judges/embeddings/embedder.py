"""What an embedder is, the checks that its vectors pass, and the texts that it cannot read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from findwell.core.errors import EmbeddingError, FindwellError, InputError
from findwell.core.findings import EXAMPLES, Finding
from findwell.core.texts.languages import READ, known, languages_of

Vectors: TypeAlias = NDArray[np.float32]
EmbedFunction: TypeAlias = Callable[[list[str]], Any]

UNIT = 1e-6  # a row this close to length 1 is left as it is, so that checking twice changes nothing
MOST_UNKNOWN = 0.5  # of the tokens of a text: from here on it counts as not read
SHOWN = 60  # characters of an example
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
        raise EmbeddingError(f"these are no vectors: {error}", where=where, fix=fix) from None
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.shape[1]:
        shape = " × ".join(map(str, rows.shape)) or "no"
        raise EmbeddingError(
            f"these are no vectors: an array of {shape} elements of type {rows.dtype}",
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
            surely.append(head)
        elif foreign:
            perhaps.append(head)
    name = embedder.name.partition(":")[0]
    return [
        *_finding(
            "unread-text",
            surely,
            f"text in a script or language that {name} cannot read: which texts it finds similar "
            "says little",
        ),
        *_finding(
            "perhaps-unread-text",
            perhaps,
            f"text that seems not to be in {known(own).name}, which is all that {name} reads: "
            "which texts it finds similar may say little",
        ),
    ]


def _finding(kind: str, texts: list[str], message: str) -> list[Finding]:
    examples = tuple(text[:SHOWN] for text in texts[:EXAMPLES])
    return [Finding(kind, len(texts), examples, message, READS_MORE)] if texts else []

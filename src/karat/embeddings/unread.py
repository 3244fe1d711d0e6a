"""Texts that an embedding model cannot read: what it makes of them says little or nothing.

Two things are seen: a tokenizer that does not know most of a text, and for a model of one language
a text in another. In Latin letters the other language is told by its commonest words, so that it
may be missed in short texts, and a quotation may be taken for the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from karat.findings import EXAMPLES, Finding
from karat.languages import READ, known, languages_of

if TYPE_CHECKING:
    from karat.embeddings.embedder import Embedder

MOST = 0.5  # of the tokens of a text, from which on it is not known
SHOWN = 60  # characters of an example
FIX = (
    "name an embedder that reads these languages, such as "
    "sentence-transformers:intfloat/multilingual-e5-small or openai:MODEL"
)


def unread_findings(texts: Sequence[str], embedder: Embedder) -> list[Finding]:
    """Say how many texts an embedder cannot read, and how many it perhaps cannot."""
    heads = [text[:READ] for text in dict.fromkeys(texts) if text.strip()]
    share = getattr(embedder, "unknown_share", None)
    unknown = [part >= MOST for part in share(heads)] if share else [False] * len(heads)
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
            f"text in a script or language that {name} cannot read: which texts it takes for "
            "alike says little",
        ),
        *_finding(
            "perhaps-unread-text",
            perhaps,
            f"text that seems not to be in {known(own).name}, which is all that {name} reads: "
            "which texts it takes for alike may say little",
        ),
    ]


def _finding(kind: str, texts: list[str], message: str) -> list[Finding]:
    examples = tuple(text[:SHOWN] for text in texts[:EXAMPLES])
    return [Finding(kind, len(texts), examples, message, FIX)] if texts else []

"""Texts in, vectors of length 1 out: by a local model, a library, a server or your own function.

`find_embedder("minilm")` needs no network; `cached(...)` keeps vectors on disk; `cosine(...)`
compares texts. What a text means is decided here and nowhere else; what a similarity is good for
is decided by whoever asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.embeddings.cache import cached
from karat.embeddings.embedder import (
    Embedder,
    EmbedFunction,
    TextEmbedder,
    Vectors,
)
from karat.embeddings.minilm import minilm_embedder
from karat.embeddings.onnx import onnx_embedder
from karat.embeddings.openai import openai_embedder
from karat.embeddings.similarity import cosine
from karat.embeddings.static import static_embedder
from karat.embeddings.transformers import transformers_embedder
from karat.embeddings.unread import unread_findings
from karat.errors import EmbeddingError, EndpointError, OptionError, nearest
from karat.storage.database import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "EMBEDDERS",
    "Embedder",
    "EmbeddingError",
    "EndpointError",
    "Vectors",
    "cache_folder",
    "cached",
    "cosine",
    "find_embedder",
    "unread_findings",
]

EMBEDDERS = {
    "minilm": "all-MiniLM-L6-v2 from karat[semantic], no download",
    "onnx:PATH": "a folder with model.onnx and tokenizer.json",
    "static:PATH": "a folder of model2vec or wordllama: tokenizer and token vectors",
    "sentence-transformers:NAME_OR_PATH": "a model of that library",
    "openai:MODEL": "an OpenAI-compatible server, see KARAT_BASE_URL in docs/judging.md",
}

_FROM_ARGUMENT: dict[str, Callable[[str], TextEmbedder]] = {
    "onnx": onnx_embedder,
    "static": static_embedder,
    "sentence-transformers": transformers_embedder,
}


def find_embedder(
    spec: str | EmbedFunction | Embedder = "minilm",
    *,
    name: str = "",
    base_url: str | None = None,
    api_key: str | None = None,
    max_chars: int | None = None,
) -> Embedder:
    """Return the embedder that a spec, a function from texts to vectors, or an object names.

    A function is taken at its word only as long as it runs: `name` says that it gives the same
    vectors every time, so that `cached` may keep them. The other arguments are for `openai:MODEL`:
    the server and its key, where the environment does not say, and how many characters of a text
    are sent, all by default.

    >>> find_embedder(lambda texts: [[1.0] for _ in texts], name="ones-v1").name
    'ones-v1'
    >>> find_embedder("onnyx:model")
    Traceback (most recent call last):
    karat.errors.OptionError: unknown embedder 'onnyx:model'
      fix: did you mean onnx? (known: minilm, onnx:PATH, static:PATH,
        sentence-transformers:NAME_OR_PATH, openai:MODEL)
    """
    if not isinstance(spec, str):
        return _from_object(spec, name)
    kind, _, argument = spec.partition(":")
    if kind == "minilm" and not argument:
        return minilm_embedder()
    if kind == "openai" and argument:
        return openai_embedder(argument, base_url=base_url, api_key=api_key, max_chars=max_chars)
    if kind in _FROM_ARGUMENT and argument:
        return _FROM_ARGUMENT[kind](argument)
    suggestion = nearest(kind, (entry.partition(":")[0] for entry in EMBEDDERS))
    raise OptionError(
        f"unknown embedder {spec!r}", fix=f"{suggestion} (known: {', '.join(EMBEDDERS)})".strip()
    )


def _from_object(spec: EmbedFunction | Embedder, name: str) -> Embedder:
    if isinstance(spec, TextEmbedder):
        return spec
    if isinstance(spec, Embedder):
        return TextEmbedder(spec.name, spec.embed)
    if callable(spec):
        own = getattr(spec, "__qualname__", type(spec).__qualname__)
        return TextEmbedder(name or f"function:{own}", spec, lasting=bool(name))
    raise OptionError(
        f"{type(spec).__name__} is no embedder",
        fix="pass a spec, a function from texts to vectors, or an object with name and embed",
    )

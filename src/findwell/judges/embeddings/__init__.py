"""Texts in, vectors of length 1 out: by a local model, a library, a server or your own function.

`find_embedder("minilm")` needs no network; `cached(...)` keeps vectors on disk; `cosine(...)`
compares texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from findwell.core.errors import EmbeddingError, EndpointError, OptionError, takes_options, unknown
from findwell.judges.client.providers import ENTRIES, split_spec
from findwell.judges.embeddings.embedder import (
    Embedder,
    EmbedFunction,
    TextEmbedder,
    Vectors,
    cached,
    cosine,
    unread_findings,
)
from findwell.judges.embeddings.local_models import (
    minilm_embedder,
    onnx_embedder,
    transformers_embedder,
)
from findwell.judges.embeddings.openai import openai_embedder

__all__ = [
    "EMBEDDERS",
    "Embedder",
    "EmbeddingError",
    "EndpointError",
    "Vectors",
    "cached",
    "cosine",
    "find_embedder",
    "unread_findings",
]

LOCAL_MODELS = {"onnx": onnx_embedder, "sentence-transformers": transformers_embedder}
EMBEDDERS = {
    "minilm": "all-MiniLM-L6-v2 from findwell[semantic], no download",
    "onnx:PATH": "a folder with model.onnx and tokenizer.json, or one .onnx file in such a folder",
    "sentence-transformers:NAME_OR_PATH": "a model of that library",
    "openai:MODEL": "an OpenAI-compatible server, see docs/judging-providers.md",
    **{entry.spelling: entry.title for entry in ENTRIES[1:] if entry.embeddings},
}


@takes_options()
def find_embedder(
    spec: str | EmbedFunction | Embedder = "minilm",
    *,
    name: str = "",
    base_url: str | None = None,
    api_key: str | None = None,
    max_chars: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Embedder:
    """Return the embedder that a spec, a function from texts to vectors, or an object names.

    The vectors of a function are cached only if it has a `name`, which promises the same vectors
    every time. The other arguments are for `openai:MODEL`, `ollama:MODEL` and the like: the server
    and its key (default: those of the environment), how many characters of a text are sent
    (default: all), and further headers.

    >>> find_embedder(lambda texts: [[1.0] for _ in texts], name="ones-v1").name
    'ones-v1'
    >>> find_embedder("onnyx:model")
    Traceback (most recent call last):
    findwell.core.errors.OptionError: unknown embedder 'onnyx:model'
      fix: did you mean onnx? (known: minilm, onnx:PATH,
        sentence-transformers:NAME_OR_PATH, openai:MODEL, azure:DEPLOYMENT, gemini:MODEL,
        openrouter:MODEL, ollama:MODEL, vllm:MODEL, lmstudio:MODEL, llamacpp:MODEL,
        litellm:MODEL, mistral:MODEL, together:MODEL)
    """
    if not isinstance(spec, str):
        return _from_object(spec, name)
    kind, _, argument = spec.partition(":")
    if spec.rstrip(":") == "minilm":
        return minilm_embedder()
    if argument and kind in LOCAL_MODELS:
        return LOCAL_MODELS[kind](argument)
    if (named := split_spec(spec)) and named[1]:
        return openai_embedder(
            named[1],
            base_url=base_url,
            api_key=api_key,
            max_chars=max_chars,
            provider=named[0],
            headers=headers,
        )
    raise unknown("embedder", spec, EMBEDDERS)


def _from_object(spec: EmbedFunction | Embedder, name: str) -> Embedder:
    if isinstance(spec, TextEmbedder):
        return spec
    if isinstance(spec, Embedder):
        return TextEmbedder(spec.name, spec.embed)
    if callable(spec):
        own = getattr(spec, "__qualname__", type(spec).__qualname__)
        return TextEmbedder(name or f"function:{own}", spec, lasting=bool(name))
    raise OptionError(
        f"{type(spec).__name__} is not an embedder",
        fix="pass a spec, a function from texts to vectors, or an object with name and embed",
    )

"""Embeddings from any server with OpenAI's protocol: `POST BASE_URL/embeddings`.

Texts go in batches, a few at a time, through the client that judges use, too
(`findwell.judges.client`): it decides which server, which key, which proxy, and how often and how
long a request is tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from findwell.core.errors import EndpointError, OptionError, needs_package
from findwell.judges.client.client import RetryPolicy
from findwell.judges.client.endpoint import Endpoint, SharedAddress
from findwell.judges.client.jobs import Session, split_texts
from findwell.judges.client.protocol import EmbeddingRequest, Failure, Reason
from findwell.judges.client.providers import ENTRIES, OPENAI, Provider
from findwell.judges.embeddings.embedder import TextEmbedder

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json

REQUEST_TEXTS, REQUEST_CHARACTERS = 64, 200_000  # the most in one request
RETRY = RetryPolicy(concurrency=4, attempts=6)

FIXES = {
    Reason.TOO_LONG: "a text is too long for this server: max_chars cuts texts",
    Reason.REJECTED: "check the model's name; a text may be too long for it: max_chars cuts texts",
    Reason.BUSY: "wait, or raise the limits of your account",
}


def openai_embedder(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    max_chars: int | None = None,
    retry: RetryPolicy = RETRY,
    provider: Provider = OPENAI,
    headers: Mapping[str, str] | None = None,
) -> TextEmbedder:
    """Return the embedder `openai:MODEL`; its name has the model and the server, never the key.

    Without arguments server and key are those of the environment, see
    `findwell.judges.client.endpoint`; most local servers need no key. `provider` is another one
    that speaks the protocol. Connections are kept as long as the embedder.
    """
    if not provider.embeddings:
        able = ", ".join(entry.spelling for entry in ENTRIES if entry.embeddings)
        raise OptionError(f"{provider.title} has no embeddings", fix=f"use one of {able}")
    with needs_package("an embedding endpoint", "judge"):
        import httpx  # noqa: F401, PLC0415 - missed now, not after everything else was read
    if provider is not OPENAI and isinstance(base_url, SharedAddress):
        base_url = None
    endpoint = Endpoint.find(
        model, base_url=base_url, key=api_key, provider=provider, headers=headers
    )
    endpoint.require_access()
    if max_chars is not None and max_chars < 1:
        raise OptionError(f"max_chars must be at least 1, not {max_chars}")
    cut = f":{max_chars}" if max_chars else ""
    session = Session(endpoint, retry)

    def embed(texts: Sequence[str]) -> list[list[Json]]:
        cut_texts = [it[:max_chars] for it in texts]
        parts = split_texts(cut_texts, REQUEST_TEXTS, REQUEST_CHARACTERS)
        requests = [EmbeddingRequest(cut_texts[part]) for part in parts]
        answers = session.ask_all(requests, refuse)
        return [vector for answer in answers for vector in answer.vectors or ()]

    def refuse(failure: Failure) -> EndpointError:
        fix = FIXES.get(failure.reason, "check the base URL and that the server is up")
        return EndpointError(
            f"the server gave no embeddings: {failure}",
            where=endpoint.identity,
            status=failure.status,
            fix=fix,
        )

    return TextEmbedder(f"{provider.name}:{endpoint.model}@{endpoint.identity}{cut}", embed)

"""Short ways to ask a test server."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from findwell.judges.client.client import RetryPolicy
from findwell.judges.client.endpoint import Endpoint
from findwell.judges.client.jobs import Session
from findwell.judges.client.protocol import ChatRequest, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.judges.client.jobs import Ask
    from findwell.judges.client.protocol import Outcome
    from tests.client.server import Server

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"heard": {"type": "string"}},
    "required": ["heard"],
    "additionalProperties": False,
}
KEY = "sk-findwell-0123456789abcdef-secret"
HASTE = RetryPolicy(
    concurrency=4, timeout=30.0, attempts=3, max_wait=30.0, first_wait=0.001, gone_wait=0.02
)


def question(text: object = "hello", **more: Any) -> ChatRequest:
    """Return a request with this prompt."""
    return ChatRequest((Message("system", "Answer as JSON."), Message("user", str(text))), **more)


def endpoint_of(server: Server, model: str = "some-model") -> Endpoint:
    return Endpoint.find(model, base_url=server.url, key=KEY)


def ask_all(requests: Iterable[ChatRequest], endpoint: Endpoint, **more: Any) -> list[Outcome]:
    """Ask single requests, and return how each ended, in their order."""
    conversations = (partial(_ask_once, request) for request in requests)
    with Session(endpoint, more.pop("retry", None)) as session:
        return session.run(conversations, **more)


async def _ask_once(request: ChatRequest, ask: Ask) -> Outcome:
    return await ask(request)


def ask(server: Server, *requests: ChatRequest, **more: Any) -> list[Outcome]:
    """Ask a test server, impatiently."""
    options = {"retry": HASTE} | more
    return ask_all(requests, options.pop("endpoint", endpoint_of(server)), **options)

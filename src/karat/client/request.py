"""What is asked of a server: what is sent where, and how its answer is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from karat.client.answers import Outcome

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Request(Protocol):
    """One question to a model: `ChatRequest` or `EmbeddingRequest`."""

    @property
    def path(self) -> str:
        """Where it is sent, below the base URL."""

    @property
    def holds(self) -> str:
        """The field of an answer that has what was asked for."""

    @property
    def schema(self) -> Mapping[str, Json] | None:
        """The JSON schema of the answer, if it is to follow one."""

    @property
    def name(self) -> str:
        """What the schema is called."""

    @property
    def most_tokens(self) -> int | None:
        """The longest answer that is asked for."""

    def content(self) -> dict[str, Json]:
        """Return the fields of the call that say what is asked."""

    def fields(self) -> dict[str, Json]:
        """Return the fields that say how; a server may not know them."""

    def texts(self) -> Iterable[str]:
        """Return all that the model reads, but for the schema."""

    def read(self, said: dict[str, Json], seconds: float) -> Outcome:
        """Read what a server sent: it may lack anything and hold anything."""

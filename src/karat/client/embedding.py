"""A question to an embedding model: texts in, a list of numbers for each out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from karat.client.answers import Answer, Failure, Outcome, Reason, Usage

if TYPE_CHECKING:
    from karat.client.request import Json


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts to embed in one call."""

    input: Sequence[str]

    @property
    def path(self) -> str:
        """Where it is sent, below the base URL."""
        return "/embeddings"

    @property
    def holds(self) -> str:
        """The field of an answer that has what was asked for."""
        return "data"

    @property
    def schema(self) -> None:
        """Embeddings follow no schema."""

    @property
    def name(self) -> str:
        """No schema, no name."""
        return ""

    @property
    def most_tokens(self) -> int:
        """No text is written."""
        return 0

    def content(self) -> dict[str, Json]:
        """Return the texts."""
        return {"input": list(self.input)}

    def fields(self) -> dict[str, Json]:
        """Return nothing: servers of embeddings agree on little more than that."""
        return {}

    def texts(self) -> Sequence[str]:
        """Return all that the model reads."""
        return self.input

    def read(self, said: dict[str, Json], seconds: float) -> Outcome:
        """Read a vector for each text, in the order of the texts."""
        rows = said.get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return Failure(Reason.UNFIT, "no embeddings")
        if len(rows) != len(self.input):
            return Failure(Reason.UNFIT, f"{len(rows)} embeddings for {len(self.input)} texts")
        vectors: dict[object, list[Json]] = {}
        numbered = any(isinstance(row, dict) and "index" in row for row in rows)
        for place, row in enumerate(rows):
            vector = row.get("embedding") if isinstance(row, dict) else None
            number = row.get("index") if numbered and isinstance(row, dict) else place
            if not isinstance(vector, list):
                return Failure(Reason.UNFIT, "an embedding that is no list of numbers")
            if type(number) is not int or not 0 <= number < len(rows) or number in vectors:
                return Failure(Reason.UNFIT, "embeddings that are not numbered 0, 1, 2, …")
            vectors[number] = vector
        ordered = [vectors[number] for number in range(len(rows))]
        return Answer("", Usage(0, 0, estimated=True), seconds, vectors=ordered)

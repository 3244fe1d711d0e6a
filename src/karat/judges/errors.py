"""What stops a whole job: nothing that a single request can do."""

from __future__ import annotations

from karat.errors import KaratError


class JudgeError(KaratError):
    """The judge cannot be asked at all: no server, no access, no such model."""

"""A run whose queries are scattered is spread over parts of some queries each, on disk."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from findwell.core.errors import SaveError

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = 64  # each holds as many queries of the gold; one more holds those that it does not have


class Spread:
    """Bytes by part: written to one temporary file as they come, and read part by part."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="findwell-")  # noqa: SIM115 - see `close`
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(PARTS + 1)]

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    def add(self, part: int, data: bytes) -> None:
        """Write something that belongs to a part."""
        try:
            self._places[part].append((self._file.tell(), self._file.write(data)))
        except OSError as error:
            raise SaveError(
                f"no room to sort the run by query: {error.strerror or error}",
                where=tempfile.gettempdir(),
                fix="sort the run by query, or set TMPDIR to a larger disk",
            ) from None

    def __iter__(self) -> Iterator[list[bytes]]:
        """Read what was added to each part, in that order; parts without anything are left out."""
        for places in self._places:
            if places:
                yield [self._read(first, size) for first, size in places]

    def _read(self, first: int, size: int) -> bytes:
        self._file.seek(first)
        return self._file.read(size)

"""Single queries as a page holds them: packed, so that a file stays small enough to be sent.

They are lines of JSON, compressed together; the script of the page unpacks them when the first
query is opened.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any


class QueryPack:
    """Packs queries one after the other, each text once.

    >>> pack = QueryPack()
    >>> pack.add(7, {"list": [pack.keep("a chunk"), pack.keep("a chunk")]})
    >>> lines = zlib.decompress(base64.b64decode(pack.finish())).decode()
    >>> print(lines.strip())
    {"at": 7, "case": {"list": [0, 0]}, "texts": ["a chunk"]}
    """

    def __init__(self) -> None:
        self._packer = zlib.compressobj(level=9)
        self._packed = bytearray()
        self._texts: dict[str, int] = {}
        self._new: list[str] = []
        self.letters = 0  # of what was packed
        self.places: list[int] = []  # of the queries, as they came

    def keep(self, text: str) -> int:
        """Keep a text of the next query, and return its number."""
        if text not in self._texts:
            self._texts[text] = len(self._texts)
            self._new.append(text)
        return self._texts[text]

    def add(self, place: int, case: dict[str, Any]) -> None:
        """Pack a query by its place in the table."""
        line = {"at": place, "case": case, "texts": self._new}
        content = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
        self._packed += self._packer.compress(content.encode("utf-8"))
        self.letters += len(content)
        self.places.append(place)
        self._new = []

    @property
    def size(self) -> int:
        """How many letters the pack has by now, about."""
        return len(self._packed) * 4 // 3

    def finish(self) -> str:
        """Return the pack as a text."""
        self._packed += self._packer.flush()
        return base64.b64encode(self._packed).decode("ascii")

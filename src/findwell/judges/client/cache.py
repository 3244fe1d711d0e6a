"""Answers on disk: written as they arrive, found again by everything that they depend on.

Neither prompts nor API keys are in it, only the hashes of requests and what the models wrote.
Failures are not kept: the next attempt may succeed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from findwell.core.errors import choose
from findwell.io.storage.database import Database, cache_folder
from findwell.judges.client.protocol import Answer, TokenChoices, Usage, parse_json

FILE = "answers.sqlite"
LAYOUT = 1
MODES = ("use", "refresh", "off")
TABLE = """
CREATE TABLE IF NOT EXISTS answer (
    key BLOB PRIMARY KEY, content TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, estimated INTEGER NOT NULL,
    seconds REAL NOT NULL, form TEXT NOT NULL, time REAL NOT NULL
)
"""
# next to the answers, so that files of earlier versions are read and written as before
TOKENS = "CREATE TABLE IF NOT EXISTS tokens (key BLOB PRIMARY KEY, choices TEXT NOT NULL)"
FIELDS = "content, prompt_tokens, completion_tokens, cached_tokens, estimated, seconds, form"


class Cache:
    """A store of answers.

    `use` reads and writes the file, `refresh` writes it but reads only what was written since it
    was opened, `off` keeps answers in memory as long as the object lives.
    """

    def __init__(self, path: Path | None, since: float = 0.0) -> None:
        self.path = path
        self.broken = ""  # why answers are no longer stored, if so
        self._file = Database(path, "answers", TABLE, LAYOUT)
        self._connection = self._file.open()
        try:
            self._connection.execute(TOKENS)
        except sqlite3.Error as error:
            self._connection.close()
            raise self._file.failure(error) from None
        self._since = since

    @classmethod
    def open(cls, folder: str | os.PathLike[str] | None = None, mode: str = "use") -> Self:
        """Open the cache of a folder, by default the user's."""
        choose("cache mode", mode, MODES)
        if mode == "off":
            return cls(None)
        path = (cache_folder() if folder is None else Path(folder)) / FILE
        return cls(path, time.time() if mode == "refresh" else 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM answer").fetchone()[0])

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Return the answers that are there."""
        query = (
            f"SELECT key, {FIELDS}, choices FROM answer LEFT JOIN tokens USING (key)"  # noqa: S608
            " WHERE time >= ? AND key IN"
        )
        try:
            rows = list(self._file.find(self._connection, query, (self._since,), keys))
        except sqlite3.Error as error:
            raise self._file.failure(error) from None
        return {
            key: Answer(
                content,
                Usage(prompt, written, cached, bool(guess)),
                took,
                mode,
                stored=True,
                tokens=_tokens(choices),
            )
            for key, content, prompt, written, cached, guess, took, mode, choices in rows
        }

    def put(self, key: bytes, answer: Answer) -> bool:
        """Store an answer, if possible: a full disk must not lose the answers still to come."""
        usage = answer.usage
        row = (
            *(key, answer.content, usage.prompt, usage.completion, usage.cached, usage.estimated),
            *(answer.seconds, answer.output_mode, time.time()),
        )
        try:
            if answer.tokens:  # first: an answer without them would be taken for one of a server
                self._connection.execute(  # that does not know them
                    "INSERT OR REPLACE INTO tokens VALUES (?, ?)", (key, json.dumps(answer.tokens))
                )
            else:  # those of the answer that it replaces say nothing about this one
                self._connection.execute("DELETE FROM tokens WHERE key = ?", (key,))
            self._connection.execute(
                f"INSERT OR REPLACE INTO answer (key, {FIELDS}, time)"  # noqa: S608
                f" VALUES ({', '.join('?' * len(row))})",
                row,
            )
        except sqlite3.Error as error:
            self.broken = self.broken or str(error)
            return False
        return True


def _tokens(choices: str | None) -> tuple[TokenChoices, ...]:
    """Return what a model might have written, as it was stored."""
    places = parse_json(choices) if choices else []
    return tuple(tuple((text, chance) for text, chance in place) for place in places)

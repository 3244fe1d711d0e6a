"""Answers kept on disk as they come, so that a process that was killed goes on where it ended.

A file of JSON lines to which one line is added per answer, by one write of the system: a process
that is killed loses at most the line that it was writing, which is cut off when the file is used
again. An answer counts again if retriever, query and question are the same; a failure does not.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from findwell.core.errors import InputError, OptionError, SaveError
from findwell.io.storage.files import create_file, locked
from findwell.retrievers.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

BEGINNING = b'{"configuration": "'  # of every line
ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)  # metadata may hold anything


class AnswerLog:
    """The file, open for as long as a retriever is asked."""

    def __init__(
        self, path: str | os.PathLike[str], identity: str, queries: Sequence[tuple[str, str]]
    ) -> None:
        self.path = Path(path)
        self._identity = identity
        self._queries = queries
        self._held = contextlib.ExitStack()
        self._file: BinaryIO | None = None
        self.answers: dict[int, Answer] = {}  # from before
        self.others = 0  # answers of another configuration

    def __enter__(self) -> Self:
        """Open the file, take what it holds, and cut off a line that was never finished."""
        if self.path.is_symlink():  # it may lead to a file that is not ours to change
            raise SaveError(
                "answers are not kept in what a link points to",
                where=str(self.path),
                fix="delete the link, or name another file",
            )
        with contextlib.ExitStack() as opened:
            try:
                self._file = opened.enter_context(create_file(self.path).open("ab+"))
            except OSError as error:
                raise SaveError(
                    f"answers cannot be kept here: {error.strerror}", where=str(self.path)
                ) from None
            free = opened.enter_context(locked(self.path, wait=False))
            if not free and sys.platform != "win32":
                raise OptionError(
                    "another process keeps its answers here just now",
                    where=str(self.path),
                    fix="wait for it, or name another file",
                )
            self._read(self._file)
            self._held = opened.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._held.close()

    def add(self, answer: Answer) -> None:
        """Write an answer; what is written survives this process."""
        query, question = self._queries[answer.number]
        line = {"configuration": self._identity, "query": query, "question": question}
        text = ENCODER.encode(line | answer.record())
        try:
            os.write(self._handle, text.encode("utf-8", "backslashreplace") + b"\n")
        except OSError as error:
            raise SaveError(
                f"an answer could not be kept: {error.strerror}",
                where=str(self.path),
                fix="free some space, and start again: what was answered so far is kept",
            ) from None

    @property
    def _handle(self) -> int:
        if self._file is None:
            raise ValueError("the file is not open")
        return self._file.fileno()

    def _read(self, file: BinaryIO) -> None:
        numbers = {pair: number for number, pair in enumerate(self._queries)}
        file.seek(0)
        whole = 0  # bytes up to the end of the last whole line
        for place, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                _refuse_foreign(line, f"{self.path}, line {place}")
                break
            whole += len(line)
            self._take(_parsed(line, f"{self.path}, line {place}"), numbers)
        if whole < file.seek(0, os.SEEK_END):
            file.truncate(whole)

    def _take(self, record: dict[str, Any], numbers: dict[tuple[str, str], int]) -> None:
        if record["configuration"] != self._identity:
            self.others += 1
        elif record["error"] is None:
            number = numbers.get((record["query"], record["question"]))
            if number is not None:
                self.answers[number] = Answer.of_record(number, record)


def _refuse_foreign(torn: bytes, where: str) -> None:
    """Refuse to cut off the end of a file that is no file of answers."""
    if not torn.startswith(BEGINNING[: len(torn)]):
        raise _foreign(where)


def _foreign(where: str) -> InputError:
    return InputError(
        "this is no file of answers that findwell began",
        where=where,
        fix="name another file to resume from, or remove this one",
    )


def _parsed(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
        complete = {"configuration", "query", "question", "retrieved", "error"} <= record.keys()
    except (ValueError, AttributeError):
        complete = False
    if not complete:
        raise _foreign(where)
    found: dict[str, Any] = record
    return found

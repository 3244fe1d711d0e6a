"""Calls that are sent as batches: a file of them goes up, and up to a day later one comes down.

To the client a `BatchTransport` is a connection like any other, only slow: what is retried,
counted, cached and read is decided where it always is. Calls are gathered until no more come for a
moment.

What was sent is written down before it is sent (`BatchRecords`), call by call, so that a process
that is started again waits for the batches of the one that was killed, and nothing is paid twice: a
batch whose answer to "create" was lost is recognised by its file. What has arrived is crossed out
when it is in the cache of answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from findwell.core.errors import EndpointError
from findwell.io.storage.database import Database
from findwell.judges.client.protocol import (
    SHOWN_CHARACTERS,
    ErrorResponse,
    Failure,
    Json,
    Reason,
    Reply,
    dig,
    json_object,
    listed,
    read_error,
)

if TYPE_CHECKING:
    from findwell.judges.client.client import RetryPolicy, Transport


# --- what was sent --------------------------------------------------------------------------------

BATCHES_FILE = "batches.sqlite"
BATCHES_LAYOUT = 1
BATCH_TABLES = """
CREATE TABLE IF NOT EXISTS batch (
    tag TEXT PRIMARY KEY, server TEXT NOT NULL, file TEXT NOT NULL, batch TEXT, time REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS line (name TEXT PRIMARY KEY, tag TEXT NOT NULL)
"""
KEPT_SECONDS = 30 * 86_400.0  # seconds for which servers keep what they wrote


class BatchRecord(NamedTuple):
    """A batch as it was written down; without an id it may or may not have been created."""

    tag: str
    file: str
    batch: str


class BatchRecords:
    """What was sent in batches and has not arrived yet: in a file, so that it outlives us."""

    def __init__(self, folder: Path | None, server: str) -> None:
        path = None if folder is None else folder / BATCHES_FILE
        self._file = Database(path, "batches", BATCH_TABLES, BATCHES_LAYOUT)
        self._connection = self._file.open()
        self._server = server
        self._run("DELETE FROM batch WHERE time < ?", time.time() - KEPT_SECONDS)
        self._run("DELETE FROM line WHERE tag NOT IN (SELECT tag FROM batch)")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._file.failure(error) from None

    def find(self, name: str) -> BatchRecord | None:
        """Return the batch that a call was sent in."""
        rows = self._run(
            "SELECT batch.tag, file, batch FROM line JOIN batch USING (tag) "
            "WHERE name = ? AND server = ?",
            *(name, self._server),
        )
        return BatchRecord(rows[0][0], rows[0][1], rows[0][2] or "") if rows else None

    def add(self, record: BatchRecord, names: Iterable[str]) -> None:
        """Write down what is about to be created."""
        self._run("BEGIN IMMEDIATE")
        row = (record.tag, self._server, record.file, None, time.time())
        self._run("INSERT INTO batch VALUES (?, ?, ?, ?, ?)", *row)
        for name in names:
            self._run("INSERT OR REPLACE INTO line VALUES (?, ?)", name, record.tag)
        self._run("COMMIT")

    def created(self, tag: str, batch: str) -> None:
        """Write down the id that the server gave."""
        self._run("UPDATE batch SET batch = ? WHERE tag = ?", batch, tag)

    def remove(self, tag: str) -> None:
        """Forget a batch: nothing more will come of it."""
        self._run("DELETE FROM line WHERE tag = ?", tag)
        self._run("DELETE FROM batch WHERE tag = ?", tag)

    def names(self, tag: str) -> list[str]:
        """Return the calls of a batch that have not arrived."""
        return [row[0] for row in self._run("SELECT name FROM line WHERE tag = ?", tag)]

    def cross_out(self, names: Iterable[str]) -> None:
        """Forget calls whose answers are safe, and batches of which nothing is left."""
        self._run("BEGIN IMMEDIATE")
        for name in names:
            self._run("DELETE FROM line WHERE name = ?", name)
        self._run("DELETE FROM batch WHERE tag NOT IN (SELECT tag FROM line)")
        self._run("COMMIT")


# --- batches --------------------------------------------------------------------------------------

BATCH_LINES, BATCH_BYTES = 50_000, 150_000_000  # at most; servers take 50,000 and 200 MB
WINDOW = "24h"
# waits, as multiples of the first wait of the retry policy (0.5 s)
GATHER_WAIT, FIRST_POLL, LAST_POLL = 2.0, 10.0, 120.0
POLL_GROWTH = 1.5
LOOP_TURNS = 10  # of the event loop, after which an answer that was handed over is in the cache
PAGE_BATCHES = 100  # batches in one page
ENDED_STATES = frozenset({"completed", "failed", "expired", "cancelled"})
ABSENT_STATUSES = frozenset({404, 405, 501})
RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
FILE_SECONDS = 600.0  # seconds for a file to go up or down
LARGEST_FILE = 2**31  # bytes of a file of answers
JSON = "application/json"
AGAIN_LATER = "run the command again later: what was sent and what was answered is kept"

T = TypeVar("T")


@dataclass(slots=True)
class BatchTransport:
    """Sends calls in batches, and hands each its own answer."""

    transport: Transport
    retry: RetryPolicy
    records: BatchRecords
    notice: Callable[[str], None]
    _lines: dict[str, bytes] = field(default_factory=dict)  # all that is waited for, by name
    _waiting: dict[str, asyncio.Future[Reply | Failure]] = field(default_factory=dict)
    _arrived: dict[str, Reply | Failure] = field(default_factory=dict)  # and not asked for yet
    _gathered: list[str] = field(default_factory=list)
    _size: int = 0
    _posts: int = 0
    _times: Counter[str] = field(default_factory=Counter)  # that the same call was sent
    _followed: set[str] = field(default_factory=set)
    _progress: dict[str, tuple[int, int]] = field(default_factory=dict)
    _safe: list[str] = field(default_factory=list)  # handed over, not yet crossed out
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _gathering: bool = False

    async def during(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work, and stop waiting for batches when it has ended."""
        try:
            return await work
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._safe:
                self.records.cross_out(self._safe)
            self.records.close()

    async def post(self, path: str, body: dict[str, Json]) -> Reply | Failure:
        """Send a call with the next batch, or find it in one that was sent before."""
        del path  # of a single call; inside a batch it has another
        name, line = self._line(body)
        self._posts += 1
        known = self._arrived.pop(name, None)
        if known is not None:
            self._hand_over([name])
            return known
        self._lines[name] = line
        future: asyncio.Future[Reply | Failure] = asyncio.get_running_loop().create_future()
        self._waiting[name] = future
        record = self.records.find(name)
        if record is None:
            self._gather(name)
        elif record.tag not in self._followed:  # a batch of another process
            self._followed.add(record.tag)
            self._start(self._fetch(record, resumed=True))
        return await future

    def _line(self, body: dict[str, Json]) -> tuple[str, bytes]:
        """Name a call by all that it holds, and by how often the same was sent before."""
        endpoint = self.transport.endpoint
        inside = {name: value for name, value in body.items() if name != "stream"}
        text = json.dumps(inside, ensure_ascii=False).encode("utf-8", "replace")
        hashed = hashlib.sha256(endpoint.identity.encode() + b"\0" + text).hexdigest()[:40]
        name = f"{hashed}-{self._times[hashed]}"
        self._times[hashed] += 1
        head = {"custom_id": name, "method": "POST", "url": endpoint.provider.batch}
        start = json.dumps(head)[:-1].encode()
        return name, start + b', "body": ' + text + b"}\n"

    def _gather(self, name: str) -> None:
        size = len(self._lines[name])
        is_full = len(self._gathered) == BATCH_LINES or self._size + size > BATCH_BYTES
        if self._gathered and is_full:
            self._submit()
        self._gathered.append(name)
        self._size += size
        if not self._gathering:
            self._gathering = True
            self._start(self._submit_when_quiet())

    async def _submit_when_quiet(self) -> None:
        """Wait until no more calls come: the conversations all wait for answers."""
        while True:
            before = self._posts
            await asyncio.sleep(GATHER_WAIT * self.retry.first_wait)
            for _ in range(LOOP_TURNS):
                await asyncio.sleep(0)
            if self._posts == before:
                break
        self._gathering = False
        self._submit()

    def _submit(self) -> None:
        names, self._gathered, self._size = self._gathered, [], 0
        if names:
            self._start(self._send(names))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Let all who wait know that something went wrong: nothing would come any more."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # seen: the first who wakes up ends the others

    async def _send(self, names: list[str]) -> None:
        """Upload a file of calls, write down what it holds, and make a batch of it."""
        content = b"".join(self._lines[name] for name in names)
        said = await self._ask("POST", "/files", upload=content)
        record = BatchRecord(uuid.uuid4().hex, _text(said, "id"), "")
        if not record.file:
            self._give_up("the server took a file, but did not say its id", None)
        self.records.add(record, names)
        self._followed.add(record.tag)
        self._progress[record.tag] = (0, len(names))
        await self._fetch(record, resumed=False)

    async def _fetch(self, record: BatchRecord, *, resumed: bool) -> None:
        """Create a batch if need be, wait for its end, and hand its answers over."""
        begun = time.monotonic()
        batch = record.batch or (await self._find(record.file) if resumed else "")
        batch = batch or await self._create(record)
        if batch != record.batch:
            self.records.created(record.tag, batch)
        ended = await self._wait_for(record.tag, batch)
        if ended is None:  # the server knows nothing of it any longer
            names = self.records.names(record.tag)
            self.records.remove(record.tag)
            for name in filter(self._waiting.__contains__, names):
                self._gather(name)
            return
        status = _text(ended, "status")
        if status == "failed":
            self.records.remove(record.tag)
            self._give_up(f"the server rejected a batch: {_errors(ended)}", None)
        seconds = time.monotonic() - begun
        answers: dict[str, Reply | Failure] = {}
        for part in ("output_file_id", "error_file_id"):
            if file := _text(ended, part):
                content = await self._call("GET", f"/files/{file}/content", largest=LARGEST_FILE)
                for name, outcome in _read_lines(content.body, seconds):
                    answers.setdefault(name, outcome)
        self._arrive(record.tag, answers, f"the batch {batch} is {status}, without this call")

    async def _find(self, file: str) -> str:
        """Return the batch that was made of a file, if there is one: its creation was not noted."""
        after = ""
        while True:
            said = await self._ask("GET", f"/batches?limit={PAGE_BATCHES}{after}")
            rows = listed(said.get("data"))
            for row in rows:
                if dig(row, "input_file_id") == file:
                    return _text(row, "id")
            if not rows or not said.get("has_more"):
                return ""
            after = f"&after={_text(rows[-1], 'id')}"

    async def _create(self, record: BatchRecord) -> str:
        """Make a batch of a file, once: an attempt without an answer may have succeeded."""
        fields: dict[str, Json] = {
            "input_file_id": record.file,
            "endpoint": self.transport.endpoint.provider.batch,
            "completion_window": WINDOW,
            "metadata": {"findwell": record.tag},
        }
        for attempt in range(self.retry.attempts):
            reply = await self._once("POST", "/batches", json.dumps(fields).encode(), JSON)
            if isinstance(reply, Reply) and reply.status < 300:
                return _text(json_object(reply.body), "id")
            if isinstance(reply, Reply) and reply.status not in RETRIED_STATUSES:
                self._refuse(reply, "/batches")
            await self._pause(reply, attempt)
            if found := await self._find(record.file):
                return found
        return self._give_up("the server did not create a batch", None)

    async def _wait_for(self, tag: str, batch: str) -> dict[str, Json] | None:
        """Return a batch when it has ended; None if there is no such batch."""
        wait = FIRST_POLL * self.retry.first_wait
        while True:
            reply = await self._call("GET", f"/batches/{batch}", absent=True)
            if reply.status in ABSENT_STATUSES:
                return None
            said = json_object(reply.body)
            counts = [
                dig(said, "request_counts", name) for name in ("completed", "failed", "total")
            ]
            if any(isinstance(count, int) for count in counts):
                completed, failed, total = (it if isinstance(it, int) else 0 for it in counts)
                self._report(tag, completed + failed, total)
            if _text(said, "status") in ENDED_STATES:
                return said
            await asyncio.sleep(wait)
            wait = min(wait * POLL_GROWTH, LAST_POLL * self.retry.first_wait)

    def _report(self, tag: str, done: int, total: int) -> None:
        self._progress[tag] = (done, total)
        done, total = map(sum, zip(*self._progress.values(), strict=True))
        several = f"{len(self._progress)} batches" if len(self._progress) > 1 else "a batch"
        self.notice(f", {several}: {done:,} of {total:,} done")

    def _arrive(self, tag: str, answers: dict[str, Reply | Failure], lost: str) -> None:
        """Hand over what arrived; what is not asked for yet is kept until then."""
        self._progress.pop(tag, None)
        self.notice("")
        handed = []
        for name in self.records.names(tag):
            outcome = answers.get(name) or Failure(Reason.UNFINISHED, lost)
            future = self._waiting.pop(name, None)
            if future is None:
                self._arrived[name] = outcome
            elif not future.done():
                future.set_result(outcome)
                handed.append(name)
        self._hand_over(handed)

    def _hand_over(self, names: list[str]) -> None:
        """Cross calls out, a little later: then their answers are in the cache."""
        for name in names:
            self._lines.pop(name, None)
        if not self._safe:
            self._start(self._cross_out())
        self._safe += names

    async def _cross_out(self) -> None:
        for _ in range(LOOP_TURNS):
            await asyncio.sleep(0)
        names, self._safe = self._safe, []
        self.records.cross_out(names)

    async def _ask(self, method: str, path: str, *, upload: bytes = b"") -> dict[str, Json]:
        """Ask for an object."""
        if not upload:
            return json_object((await self._call(method, path)).body)
        boundary = uuid.uuid4().hex
        form = b"".join(
            (
                f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n'.encode(),
                f"batch\r\n--{boundary}\r\nContent-Disposition: form-data; ".encode(),
                b'name="file"; filename="findwell.jsonl"\r\n',
                b"Content-Type: application/jsonl\r\n\r\n",
                upload,
                f"\r\n--{boundary}--\r\n".encode(),
            )
        )
        kind = f"multipart/form-data; boundary={boundary}"
        return json_object((await self._call(method, path, form, kind)).body)

    async def _call(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        kind: str = JSON,
        *,
        absent: bool = False,
        largest: int | None = None,
    ) -> Reply:
        """Call until there is a reply; `absent` lets one pass that says that nothing is there."""
        attempt, since = 0, time.monotonic()
        while True:
            reply = await self._once(method, path, content, kind, largest)
            if isinstance(reply, Reply) and (
                reply.status < 300 or (absent and reply.status in ABSENT_STATUSES)
            ):
                return reply
            if isinstance(reply, Reply) and reply.status not in RETRIED_STATUSES:
                self._refuse(reply, path)
            patient = method == "GET" and time.monotonic() - since < self.retry.max_wait
            if attempt + 1 >= self.retry.attempts and not patient:
                said = str(reply) if isinstance(reply, Failure) else str(_error(reply))
                self._give_up(f"the batch server does not answer ({said})", None)
            await self._pause(reply, attempt)
            attempt += 1

    async def _once(
        self, method: str, path: str, content: bytes, kind: str, largest: int | None = None
    ) -> Reply | Failure:
        url = self.transport.endpoint.files_url(path)
        timeout = max(self.retry.timeout, FILE_SECONDS)
        return await self.transport.call(
            method, url, content, kind=kind, timeout=timeout, largest=largest
        )

    async def _pause(self, reply: Reply | Failure, attempt: int) -> None:
        named = _error(reply).wait if isinstance(reply, Reply) else None
        doubled = self.retry.first_wait * 2.0 ** min(attempt, 7)
        await asyncio.sleep(min(doubled if named is None else named, self.retry.max_wait))

    def _refuse(self, reply: Reply, path: str) -> NoReturn:
        """Raise what a reply means that is not an answer."""
        endpoint, error = self.transport.endpoint, _error(reply)
        if reply.status in ABSENT_STATUSES and path in ("/files", "/batches"):
            self._give_up(f"the server has no batches ({error})", error, "leave -J batch=yes out")
        if reply.status in (401, 403):
            self._give_up(f"the server denies access ({error})", error, endpoint.fix_access)
        self._give_up(f"the batch server rejected a call ({error})", error)

    def _give_up(self, what: str, error: ErrorResponse | None, fix: str = AGAIN_LATER) -> NoReturn:
        endpoint = self.transport.endpoint
        raise EndpointError(
            endpoint.hide(what),
            where=endpoint.files,
            status=None if error is None else error.status,
            fix=fix,
        )


def _read_lines(content: bytes, seconds: float) -> Iterator[tuple[str, Reply | Failure]]:
    """Go through the lines of a file, in whatever order; other content is passed over."""
    for text in content.splitlines():
        line = json_object(text)
        if name := _text(line, "custom_id"):
            yield name, _read_line(line, seconds)


def _read_line(line: dict[str, Json], seconds: float) -> Reply | Failure:
    status = dig(line, "response", "status_code")
    if isinstance(status, int):
        return Reply(status, {}, json.dumps(dig(line, "response", "body")).encode(), seconds)
    parts = (dig(line, "error", name) for name in ("code", "message"))
    message = " ".join(str(part) for part in parts if part)
    ended = any(word in message for word in ("expired", "cancelled"))
    reason = Reason.UNFINISHED if ended else Reason.SERVER
    return Failure(reason, message or "a line without an answer")


def _error(reply: Reply) -> ErrorResponse:
    return read_error(reply.status, reply.headers, reply.body)


def _text(said: Json, name: str) -> str:
    value = dig(said, name)
    return value if isinstance(value, str) else ""


def _errors(batch: Json) -> str:
    """Say why a batch failed as a whole."""
    rows = listed(dig(batch, "errors", "data"))
    said = [f"{_text(row, 'code')} {_text(row, 'message')}".strip() for row in rows]
    return " ".join("; ".join(dict.fromkeys(said)).split())[:SHOWN_CHARACTERS] or "no reason given"

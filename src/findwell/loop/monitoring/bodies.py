"""Bodies of requests: unpacked within a limit and decoded, in processes of their own or not."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
import time
import zlib
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from findwell.io.read.traces import decode
from findwell.io.read.traces.span import CrowdedBodyError
from findwell.loop.monitoring.arrivals import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

PART = 1 << 20  # bytes that are unpacked at once
FREELY, RATIO = 1 << 20, 200  # bytes to which anything may unpack; else so many times as many
GZIP = zlib.MAX_WBITS | 16
WATCH = 1.0  # seconds between two looks whether the process that started this one is alive


class BodyError(Exception):
    """A body that is not taken in, with the status that tells the exporter so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(status, why)  # as it is pickled
        self.status = status
        self.why = why


def decode_body(
    body: bytes, *, protobuf: bool, zipped: bool, most: int, id_from: str | None
) -> Batch:
    """Return what a body holds; a body that holds nothing of its kind is an error."""
    plain = b"".join(_unzipped(body, most)) if zipped else body
    try:
        found = decode(plain, protobuf=protobuf, id_from=id_from)
    except CrowdedBodyError as error:
        raise BodyError(413, str(error)) from None
    if found.malformed and not found.spans:
        raise BodyError(400, f"the body cannot be read: {', '.join(found.malformed)}")
    digest = hashlib.blake2b(plain, digest_size=16).digest()
    return Batch(found.frame, found.spans, found.malformed, digest)


def _unzipped(body: bytes, most: int) -> Iterator[bytes]:
    """Yield what a body unpacks to, within limits: a few bytes may become many."""
    total, packed = 0, len(body)
    while body:
        unpacker = zlib.decompressobj(GZIP)
        try:
            while not unpacker.eof:
                part = unpacker.decompress(body, PART)
                total += len(part)
                if total > most:
                    raise BodyError(413, f"the body is longer than {most:,} bytes when unpacked")
                if total > max(FREELY, RATIO * packed):
                    raise BodyError(413, f"the body is more than {RATIO} times as long unpacked")
                if not part and not unpacker.unconsumed_tail and not unpacker.eof:
                    raise BodyError(400, "the body ends in the middle of its gzip")
                yield part
                body = unpacker.unconsumed_tail
        except zlib.error as error:
            raise BodyError(400, f"the body is not gzip: {error}") from None
        body = unpacker.unused_data.lstrip(b"\0")


class BodyDecoders:
    """Decodes bodies in so many processes, or with none in a thread of this one."""

    def __init__(self, workers: int, *, most: int, id_from: str | None = None) -> None:
        self._workers = workers
        self._decode = partial(decode_body, most=most, id_from=id_from)
        self._pool = self._started()

    def _started(self) -> Executor:
        if not self._workers:
            return ThreadPoolExecutor(1)
        spawn = multiprocessing.get_context("spawn")
        parent = (os.getpid(),)
        return ProcessPoolExecutor(
            self._workers, spawn, initializer=_end_with_parent, initargs=parent
        )

    def submit(self, body: bytes, *, protobuf: bool, zipped: bool) -> Future[Batch]:
        """Return what will be known of a body; if a process was killed, others take its place."""
        pool = self._pool
        try:
            return pool.submit(self._decode, body, protobuf=protobuf, zipped=zipped)
        except BrokenExecutor:
            if pool is self._pool:
                self._pool = self._started()
            raise

    def close(self) -> None:
        """Let the processes end."""
        self._pool.shutdown(cancel_futures=True)


def _end_with_parent(parent: int) -> None:
    """End this process when the one that started it is gone, even by a kill -9."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    if hasattr(os, "getppid") and os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()

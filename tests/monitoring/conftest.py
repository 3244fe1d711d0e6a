"""A store with calls, and a server that takes them in."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from findwell.io.read.traces.schema import RetrievalCall, RetrievedDocument, frame_of_calls
from findwell.loop.monitoring.receiver import ReceiverLimits
from findwell.loop.monitoring.store import TraceStore
from findwell.show.web.trace_server import TraceAddress, TraceServer, trace_server
from tests.monitoring.sending import Sender

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=3)


def calls(
    count: int, *, first: int = 0, start: datetime = NOON, every: timedelta = timedelta(minutes=1)
) -> pl.DataFrame:
    """Return calls, each of a trace of its own."""
    begin = int(start.timestamp() * 1e6)
    step = every // timedelta(microseconds=1)
    return frame_of_calls(
        [
            RetrievalCall(
                f"{number:032x}",
                f"{number + 7:016x}",
                begin + (number - first) * step,
                "openinference",
                latency_ms=float(number),
                question=f"Where is {number}?",
                docs=[
                    RetrievedDocument(
                        f"d{number}", "Mail anna@example.org.", 0.5, '{"by": "anna"}'
                    ),
                    RetrievedDocument("d0", None, None, None),
                ],
                service="shop",
                user="anna@example.org",
                attributes=[("tenant", "north"), ("note", "x" * 100)],
                error="TimeoutError: anna waited" if number % 2 else None,
            )
            for number in range(first, first + count)
        ]
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TraceStore]:
    with TraceStore.open(tmp_path / "store", create=True) as opened:
        yield opened


@contextmanager
def serving(
    opened: TraceStore, *, token: str = "", workers: int = 0, **limits: Any
) -> Iterator[tuple[TraceServer, Sender]]:
    """Serve on a free port of this machine, as the command does."""
    address = TraceAddress(token=token)
    with trace_server(opened, address, limits=ReceiverLimits(**limits), workers=workers) as ready:
        thread = threading.Thread(target=ready.run)
        thread.start()
        sender = Sender(ready.listener.getsockname()[1])
        try:
            yield ready, sender
        finally:
            sender.close()
            ready.server.should_exit = True
            thread.join(30)

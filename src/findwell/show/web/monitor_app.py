"""The page of a store of traces: signals over time, and the calls behind a point."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from findwell.core.errors import FindwellError, OptionError
from findwell.loop.monitoring.alarm_report import STATE
from findwell.loop.monitoring.overview import OverviewChoice, worst_calls
from findwell.loop.monitoring.signals import find_signals
from findwell.loop.monitoring.times import parse_moment
from findwell.show.html import MONITOR, document
from findwell.show.monitor_page import calls_page, monitor_page
from findwell.show.web.server import Site

if TYPE_CHECKING:
    from starlette.requests import Request

    from findwell.loop.monitoring.monitor import Monitor

REFRESH_MILLISECONDS = 5_000  # milliseconds between two looks for news
KEPT_PAGES = 8
REST = 5  # how many times as long as it took to make a page is shown before it is made again


@dataclass(frozen=True, slots=True)
class _MadePage:
    """A page, when it was made of what, and how long that took."""

    html: str
    state: str
    at: float
    seconds: float

    def serves(self, state: str) -> bool:
        """Tell whether it is as good as a new one, or too young to be made again."""
        return self.state == state or time.monotonic() - self.at < REST * self.seconds


class _MonitorPages:
    """The pages, and whether there is news."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._name = Path(monitor.store.path).resolve().name
        self._made: dict[OverviewChoice, _MadePage] = {}
        self._lock = threading.Lock()

    async def index(self, request: Request) -> Response:
        """Show signals over time."""
        return await self._answer(self._index, request)

    async def calls(self, request: Request) -> Response:
        """Show the calls of a point."""
        return await self._answer(self._calls, request)

    async def _answer(self, make: Any, request: Request) -> Response:  # noqa: ANN401
        try:
            return HTMLResponse(await run_in_threadpool(make, request))
        except FindwellError as error:
            failed = document("error.html.j2", "findwell", live={}, kind=MONITOR, error=error)
            return HTMLResponse(failed, status_code=404)

    def _index(self, request: Request) -> str:
        look = _look(request)
        with self._lock:  # a page is made once, however many ask for it
            state = self._state()
            made = self._made.pop(look, None)
            if made is None or not made.serves(state):
                begin = time.monotonic()
                live = {"news": "/api/news", "every": REFRESH_MILLISECONDS, "state": state}
                html = monitor_page(self._monitor, self._name, look, live)
                made = _MadePage(html, state, time.monotonic(), time.monotonic() - begin)
            self._made[look] = made  # as the last one
            for old in list(self._made)[:-KEPT_PAGES]:
                del self._made[old]
            return made.html

    def _calls(self, request: Request) -> str:
        look = _look(request)
        since, until = (_moment(request, name) for name in ("since", "until"))
        if not since < until:
            raise OptionError("the end is not after the beginning", fix="go back to the signals")
        signal = find_signals([request.query_params.get("signal", "queries")])[0]
        found = worst_calls(
            self._monitor.store,
            signal.name,
            since=since,
            until=until,
            by=look.by,
            only=look.only,
            kind=look.kind,
        )
        return calls_page(self._name, look, signal, since, until, found, {})

    async def news(self, request: Request) -> Response:
        """Say whether something has changed."""
        del request
        return JSONResponse({"state": await run_in_threadpool(self._state)})

    def _state(self) -> str:
        """Return what changes when calls, marks or alarms do."""
        store = self._monitor.store
        held = store.counts(), store.marks(), store.state(STATE)
        return hashlib.sha256(repr(held).encode()).hexdigest()[:20]


def _look(request: Request) -> OverviewChoice:
    """Read from an address what to show."""
    given = request.query_params
    names = ("period", "every", "by", "only", "mark")
    return OverviewChoice(
        **{name: given.get(name, "") for name in names},
        kind=given.get("kind") or "retriever",
        every_signal=given.get("signals") == "all",
    ).checked()


def _moment(request: Request, name: str) -> Any:  # noqa: ANN401
    return parse_moment(request.query_params.get(name, ""))


def monitor_site(monitor: Monitor) -> Site:
    """Return what `findwell view` serves of a store of traces; `server` guards it."""
    pages = _MonitorPages(monitor)
    routes = [Route("/", pages.index), Route("/calls", pages.calls), Route("/api/news", pages.news)]
    return Site(Starlette(routes=routes), "findwell view", (MONITOR,))

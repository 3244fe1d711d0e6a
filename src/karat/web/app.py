"""The application: a list of results, reports of them, and single queries on demand."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from karat.errors import InputError, KaratError
from karat.reports.details import QueryDetails, gold_texts, query_details
from karat.reports.html import REPORT, document
from karat.reports.page import page
from karat.reports.panel import lay_side_by_side
from karat.reports.prepare import ReportContent, prepare
from karat.web.folders import ResultFolders, SavedResult, state_of
from karat.web.server import Site

if TYPE_CHECKING:
    from starlette.requests import Request

EVERY = 2_000  # milliseconds between two looks for new results
KEPT = 6  # reports
RANKS, LETTERS = 50, 20_000  # a page that asks can be shown more than a file can hold


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at: which results, against what, which slice."""

    results: tuple[str, ...]
    baseline: str | None = None
    only: tuple[str, str] | None = None

    @classmethod
    def of(cls, request: Request) -> Selection:
        """Read the selection from an address."""
        column, given, value = request.query_params.get("slice", "").partition(":")
        return cls(
            tuple(dict.fromkeys(request.query_params.getlist("r"))),
            request.query_params.get("baseline") or None,
            (column, value) if given else None,
        )

    def query_string(self) -> str:
        """Return the selection as a part of an address."""
        pairs = [("r", each) for each in self.results]
        pairs += [("baseline", self.baseline)] if self.baseline else []
        pairs += [("slice", ":".join(self.only))] if self.only else []
        return urlencode(pairs)


@dataclass(frozen=True, slots=True, eq=False)
class _OpenReport:
    """A report, and the details of its queries."""

    saved: tuple[SavedResult, ...]
    content: ReportContent
    details: list[QueryDetails]

    @classmethod
    def of(cls, saved: tuple[SavedResult, ...], selection: Selection) -> _OpenReport:
        paths = [each.path for each in saved]
        panel = lay_side_by_side(paths, baseline=selection.baseline, only=selection.only)
        known = gold_texts(panel)
        details = [
            QueryDetails(system, known, ranks=RANKS, letters=LETTERS) for system in panel.systems
        ]
        return cls(saved, prepare(panel, cases=False), details)

    def query(self, place: int) -> dict[str, Any]:
        """Return one query of the table in full."""
        kept = self.content.kept
        if not 0 <= place < len(kept):
            raise InputError(f"there is no query {place} in this report", fix="reload the page")
        return query_details(self.content.panel, self.details, int(kept[place]))


class _ReportCache:
    """Makes reports, and keeps the last ones as long as their results do not change."""

    def __init__(self, folders: ResultFolders) -> None:
        self._folders = folders
        self._make = lru_cache(maxsize=KEPT)(_OpenReport.of)
        self._lock = threading.Lock()

    def open(self, selection: Selection) -> _OpenReport:
        """Return a report, made anew if one of its results has changed."""
        known = {each.id: each for each in self._folders.results()}
        missing = [each for each in selection.results if each not in known]
        if missing or not selection.results:
            raise InputError("there is no such result any more", fix="go back to the list")
        with self._lock:  # a report is made once, however many ask for it
            return self._make(tuple(known[each] for each in selection.results), selection)


class _Pages:
    """The pages, and what their script asks for."""

    def __init__(self, folders: ResultFolders) -> None:
        self._folders = folders
        self._reports = _ReportCache(folders)

    async def index(self, request: Request) -> Response:
        """Show the results, newest first."""
        del request
        return HTMLResponse(await run_in_threadpool(self._index))

    def _index(self) -> str:
        results = self._folders.results()
        rows, live = [each.row() for each in results], self._live(results)
        return document("results.html.j2", "Results · karat", live=live, results=rows)

    async def report(self, request: Request) -> Response:
        """Show a report."""
        try:
            selection = Selection.of(request)
            opened = await run_in_threadpool(self._reports.open, selection)
            whole = opened
            if selection.only is not None:
                all_of = Selection(selection.results, selection.baseline)
                whole = await run_in_threadpool(self._reports.open, all_of)
            results = await run_in_threadpool(self._folders.results)
        except KaratError as error:
            live = self._live(await run_in_threadpool(self._folders.results))
            failed = document("error.html.j2", "karat", live=live, error=error)
            return HTMLResponse(failed, status_code=404)
        live = self._live(results) | {
            "case": f"/api/case?{selection.query_string()}",
            "shown": [[each.id, each.stamp] for each in opened.saved],
        }
        tools = _tools(selection, opened, whole)
        return HTMLResponse(await run_in_threadpool(page, opened.content, live=live, tools=tools))

    async def case(self, request: Request) -> Response:
        """Return one query of a report."""
        try:
            opened = await run_in_threadpool(self._reports.open, Selection.of(request))
            place = int(request.query_params.get("query", "-1"))
            return JSONResponse(await run_in_threadpool(opened.query, place))
        except KaratError as error:
            return JSONResponse({"error": error.what}, status_code=404)
        except ValueError:
            return JSONResponse({"error": "query is the number of a query"}, status_code=400)

    async def news(self, request: Request) -> Response:
        """Say whether something has changed."""
        del request
        results = await run_in_threadpool(self._folders.results)
        stamps = {each.id: each.stamp for each in results}
        return JSONResponse({"state": state_of(results), "results": stamps})

    def _live(self, results: list[SavedResult]) -> dict[str, Any]:
        return {"news": "/api/news", "every": EVERY, "state": state_of(results)}


def view_site(folders: ResultFolders) -> Site:
    """Return what `karat view` serves; `server` guards it."""
    pages = _Pages(folders)
    routes = [
        Route("/", pages.index),
        Route("/report", pages.report),
        Route("/api/case", pages.case),
        Route("/api/news", pages.news),
    ]
    return Site(Starlette(routes=routes), "karat view", REPORT)


def _tools(selection: Selection, opened: _OpenReport, whole: _OpenReport) -> dict[str, Any] | None:
    """Return what the form offers that picks a slice and a baseline; None if there is no choice."""
    names = opened.content.panel.names
    facets = whole.content.panel.facets
    tools = {
        "results": selection.results,
        "slices": {column: labels for column, labels in facets.items() if ":" not in column},
        "slice": "" if selection.only is None else ":".join(selection.only),
        "baselines": sorted(names) if len(names) > 1 else [],
        "baseline": names[0],
    }
    return tools if tools["slices"] or tools["baselines"] else None

"""The application: a list of results with notes, reports of them, and queries on demand."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from findwell.core.errors import FindwellError, InputError
from findwell.evaluation.results.notes import NOTE, TAG, TAGS, ResultNotes, write_notes
from findwell.show.details import QueryDetails, gold_texts, query_details
from findwell.show.html import REPORT, RESULTS, document
from findwell.show.page import page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import ReportContent, prepare
from findwell.show.web.folders import ResultFolders, SavedResult, state_of
from findwell.show.web.request_body import RequestError, RequestFields, receive
from findwell.show.web.server import Site, navigates
from findwell.show.web.trends import trends

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

REFRESH_MILLISECONDS = 2_000  # milliseconds between two looks for new results
KEPT_REPORTS = 6  # reports
WAIT = "wait"  # in an address: the browser shows that a report is being made, and waits for it
RANKS, LETTERS = 50, 20_000  # a page that asks can be shown more than a file can hold


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at: which results, against what, which slice."""

    results: tuple[str, ...]  # the first is the baseline, unless a system is named
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

    def oldest_first(self, known: Mapping[str, SavedResult], first: str) -> Selection:
        """Return the same results from old to new, but for the one that is to be the first."""

        def place(each: str) -> tuple[bool, str]:
            return each != first, known[each].created if each in known else ""

        return replace(self, results=tuple(sorted(self.results, key=place)))

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

    def __init__(self) -> None:
        self._made: dict[tuple[tuple[SavedResult, ...], Selection], _OpenReport] = {}
        self._lock = threading.Lock()

    def holds(self, saved: tuple[SavedResult, ...], selection: Selection) -> bool:
        """Tell whether a report is made already."""
        return (saved, selection) in self._made

    def open(self, saved: tuple[SavedResult, ...], selection: Selection) -> _OpenReport:
        """Return a report of these results."""
        key = saved, selection
        with self._lock:  # a report is made once, however many ask for it
            made = self._made.pop(key, None) or _OpenReport.of(saved, selection)
            self._made[key] = made  # as the last one
            for old in list(self._made)[:-KEPT_REPORTS]:
                del self._made[old]
            return made


class _Pages:
    """The pages, what their script asks for, and the notes that it sends."""

    def __init__(self, folders: ResultFolders) -> None:
        self._folders = folders
        self._reports = _ReportCache()
        self._writing = threading.Lock()  # notes are compared with what is there, then written

    async def index(self, request: Request) -> Response:
        """Show the results, newest first."""
        del request
        return HTMLResponse(await run_in_threadpool(self._index))

    def _index(self) -> str:
        results = self._folders.results()
        drawn = trends(results)
        rows = [each.row() | {"trend": drawn.get(each.id)} for each in results]
        limits = {"tags": TAGS, "tag": TAG, "note": NOTE}
        return document(
            "results.html.j2",
            "Results · findwell",
            live=self._live(results) | {"list": True},
            kind=RESULTS,
            results=rows,
            limits=limits,
        )

    async def report(self, request: Request) -> Response:
        """Show a report; as long as it is not made, a page that says so and asks again."""
        try:
            return HTMLResponse(await run_in_threadpool(self._report, request))
        except FindwellError as error:
            live = self._live(await run_in_threadpool(self._folders.results))
            failed = document("error.html.j2", "findwell", live=live, error=error)
            return HTMLResponse(failed, status_code=404)

    def _report(self, request: Request) -> str:
        results = self._folders.results()
        selection = Selection.of(request)
        first = request.query_params.get("first")
        if first is not None:  # the list was asked, which has no order of its own
            selection = selection.oldest_first({each.id: each for each in results}, first)
        saved = _chosen(results, selection)
        waits = WAIT in request.query_params or not navigates(request)
        if not waits and not self._reports.holds(saved, selection):
            return self._opening(results, saved, selection)
        opened = self._reports.open(saved, selection)
        whole = opened
        if selection.only is not None:
            whole = self._reports.open(saved, replace(selection, only=None))
        live = self._live(results) | {
            "case": f"/api/case?{selection.query_string()}",
            "shown": [[each.id, each.stamp] for each in opened.saved],
        }
        return page(opened.content, live=live, tools=_tools(selection, opened, whole))

    def _opening(
        self, results: list[SavedResult], saved: tuple[SavedResult, ...], selection: Selection
    ) -> str:
        rows = [each.row() for each in saved]
        opening = f"/report?{selection.query_string()}&{WAIT}=1"
        return document(
            "opening.html.j2",
            "Opening · findwell",
            live=self._live(results) | {"opening": opening},
            kind=RESULTS,
            opening=opening,
            names=[row["name"] for row in rows],
            queries=max((row["queries"] or 0 for row in rows), default=0),
            systems=sum(len(row["systems"]) for row in rows),
        )

    async def case(self, request: Request) -> Response:
        """Return one query of a report."""
        try:
            return JSONResponse(await run_in_threadpool(self._case, request))
        except FindwellError as error:
            return JSONResponse({"error": error.what}, status_code=404)
        except ValueError:
            return JSONResponse({"error": "query is the number of a query"}, status_code=400)

    def _case(self, request: Request) -> dict[str, Any]:
        selection = Selection.of(request)
        opened = self._reports.open(_chosen(self._folders.results(), selection), selection)
        return opened.query(int(request.query_params.get("query", "-1")))

    def save_notes(self, sent: RequestFields) -> dict[str, Any]:
        """Save tags and notes, unless someone has changed them since they were shown."""
        number = sent.text("result")
        before, wanted = (_notes(sent.fields.get(name)) for name in ("before", "notes"))
        with self._writing:
            found = {each.id: each for each in self._folders.results()}.get(number)
            if found is None:
                raise RequestError(404, "there is no such result any more")
            known = found.notes
            if known is not None and _notes_of(known) not in (_notes_of(before), _notes_of(wanted)):
                raise RequestError(409, "someone has changed these notes", notes=_notes_of(known))
            write_notes(found.path, replace(wanted, about=found.number))
        return {"notes": _notes_of(wanted)}

    async def news(self, request: Request) -> Response:
        """Say whether something has changed."""
        del request
        results = await run_in_threadpool(self._folders.results)
        stamps = {each.id: each.stamp for each in results}
        return JSONResponse({"state": state_of(results), "results": stamps})

    def _live(self, results: list[SavedResult]) -> dict[str, Any]:
        return {"news": "/api/news", "every": REFRESH_MILLISECONDS, "state": state_of(results)}


def view_site(folders: ResultFolders) -> Site:
    """Return what `findwell view` serves; `server` guards it."""
    pages = _Pages(folders)
    routes = [
        Route("/", pages.index),
        Route("/report", pages.report),
        Route("/api/case", pages.case),
        Route("/api/news", pages.news),
        Route("/api/notes", receive(RequestFields, pages.save_notes), methods=["POST"]),
    ]
    return Site(Starlette(routes=routes), "findwell view", (REPORT, RESULTS), writes=True)


def _chosen(results: list[SavedResult], selection: Selection) -> tuple[SavedResult, ...]:
    """Return the results of a selection."""
    known = {each.id: each for each in results}
    if not selection.results:
        raise InputError(
            "no result is ticked", fix="tick one or more results in the list, then open them"
        )
    if not known.keys() >= set(selection.results):
        raise InputError("there is no such result any more", fix="go back to the list")
    return tuple(known[each] for each in selection.results)


def _notes(sent: object) -> ResultNotes:
    """Check notes that were sent."""
    if not isinstance(sent, dict):
        raise RequestError(400, "notes have tags and a note")
    note, tags = RequestFields(sent).text("note"), sent.get("tags")
    if not isinstance(tags, list):
        raise RequestError(400, "tags must be a list")
    return ResultNotes.of([RequestFields({"tag": tag}).text("tag") for tag in tags], note)


def _notes_of(notes: ResultNotes) -> dict[str, Any]:
    return {"tags": list(notes.tags), "note": notes.note}


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

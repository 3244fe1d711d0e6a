"""The application: a list of results, reports of them, and single queries on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from karat.errors import KaratError
from karat.report.charts.svg import text
from karat.report.html import page
from karat.report.html.page import document
from karat.web.folders import Folders, Found, state_of
from karat.web.guard import Guard
from karat.web.listing import listing
from karat.web.shelf import Book, Choice, Shelf

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

EVERY = 2_000  # milliseconds between two looks for new results


class _Views:
    """The pages."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._shelf = Shelf(folders)

    async def index(self, request: Request) -> Response:
        """Show the results, newest first."""
        del request
        results = await run_in_threadpool(self._folders.results)
        live = self._live(results)
        return HTMLResponse(document("Results · karat", {}, listing(results), {}, live))

    async def report(self, request: Request) -> Response:
        """Show a report."""
        try:
            choice = _choice(request)
            book = await run_in_threadpool(self._shelf.open, choice)
            whole = book
            if choice.only is not None:
                all_of = Choice(choice.results, choice.baseline)
                whole = await run_in_threadpool(self._shelf.open, all_of)
            results = await run_in_threadpool(self._folders.results)
        except KaratError as error:
            return self._failed(error)
        live = self._live(results) | {
            "case": f"/api/case?{_query(choice)}",
            "shown": [[each.id, each.stamp] for each in book.found],
        }
        tools = _tools(choice, book, whole)
        return HTMLResponse(await run_in_threadpool(page, book.prepared, live=live, tools=tools))

    async def case(self, request: Request) -> Response:
        """Tell one query of a report."""
        try:
            book = await run_in_threadpool(self._shelf.open, _choice(request))
            place = int(request.query_params.get("query", "-1"))
            return JSONResponse(await run_in_threadpool(book.tell, place))
        except KaratError as error:
            return JSONResponse({"error": error.what}, status_code=404)
        except ValueError:
            return JSONResponse({"error": "query is the number of a query"}, status_code=400)

    async def news(self, request: Request) -> Response:
        """Tell whether something has changed."""
        del request
        results = await run_in_threadpool(self._folders.results)
        told = {each.id: each.stamp for each in results}
        return JSONResponse({"state": state_of(results), "results": told})

    def _live(self, results: list[Found]) -> dict[str, Any]:
        return {"news": "/api/news", "every": EVERY, "state": state_of(results)}

    def _failed(self, error: KaratError) -> Response:
        body = (
            f'<div class="card"><h2>This cannot be shown</h2><p>{text(error.what)}</p>'
            f'<p class="note">{text(error.fix)}</p><p><a href="/">All results</a></p></div>'
        )
        live = self._live(self._folders.results())
        return HTMLResponse(document("karat", {}, body, {}, live), status_code=404)


def make_app(folders: Folders, token: str, port: int) -> ASGIApp:
    """Return the application, guarded."""
    views = _Views(folders)
    routes = [
        Route("/", views.index),
        Route("/report", views.report),
        Route("/api/case", views.case),
        Route("/api/news", views.news),
    ]
    return Guard(Starlette(routes=routes), token, port)


def _choice(request: Request) -> Choice:
    column, given, value = request.query_params.get("slice", "").partition(":")
    return Choice(
        tuple(dict.fromkeys(request.query_params.getlist("r"))),
        request.query_params.get("baseline") or None,
        (column, value) if given else None,
    )


def _query(choice: Choice, **changes: str | None) -> str:
    only = None if choice.only is None else ":".join(choice.only)
    told = {"baseline": choice.baseline, "slice": only} | changes
    pairs = [("r", each) for each in choice.results]
    return urlencode([*pairs, *((name, each) for name, each in told.items() if each)])


def _tools(choice: Choice, book: Book, whole: Book) -> str:
    """Return the form that picks a slice and a baseline."""
    hidden = "".join(f'<input type="hidden" name="r" value="{each}">' for each in choice.results)
    chosen = "" if choice.only is None else ":".join(choice.only)
    groups = "".join(
        f'<optgroup label="{text(column)}">'
        + "".join(_option(f"{column}:{label}", f"{column}: {label}", chosen) for label in labels)
        + "</optgroup>"
        for column, labels in whole.panel.facets.items()
        if ":" not in column
    )
    fields = (
        '<label>Only the slice<select name="slice"><option value="">all queries</option>'
        f"{groups}</select></label>"
        if groups
        else ""
    )
    if len(book.panel.names) > 1:
        names = "".join(
            _option(each, each, book.panel.names[0]) for each in sorted(book.panel.names)
        )
        fields += f'<label>Baseline<select name="baseline">{names}</select></label>'
    if not fields:
        return ""
    return (
        f'<form class="tools picks" action="/report" method="get">{hidden}{fields}'
        "<button>Apply</button></form>"
    )


def _option(value: str, label: str, chosen: str) -> str:
    mark = " selected" if value == chosen else ""
    return f'<option value="{text(value)}"{mark}>{text(label)}</option>'

"""`findwell view`: results, or a store of traces, in the browser, to explore."""

from __future__ import annotations

import click

from findwell.cli import options
from findwell.cli.command import Command, option
from findwell.core.errors import needs_package


@click.command("view", cls=Command, short_help="Explore results or traces in the browser.")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@option("--port N", "Port to listen on (default: any free one).", low=0, high=65535)
@options.opened
def command(folders: tuple[str, ...], port: int | None, browse: bool) -> None:
    """Serve the results in and below DIR on this machine, and only to this machine.

    \b
    findwell view results
    findwell view monday tuesday --open
    findwell view store

    The page of results has the views of `findwell report`, a search over all questions, two systems
    side by side on any query, and reports of single slices. It notices new results by itself. Tags
    and notes about a result are kept in NAME.notes.json next to its folder.

    The page of a trace store, as `findwell monitor serve` keeps one, has signals over time with
    their intervals, marks, alarms, slices, and the queries behind each point. It refreshes by
    itself.

    The address holds a token; without it nothing is shown.
    """
    from findwell.loop.monitoring.store import is_trace_store  # noqa: PLC0415
    from findwell.show.web.folders import ResultFolders  # noqa: PLC0415

    if any(map(is_trace_store, folders)):
        _view_store(folders, port, browse=browse)
        return
    found = ResultFolders(folders)
    with needs_package("the page", "web"):
        from findwell.show.web.app import view_site  # noqa: PLC0415
        from findwell.show.web.server import serve  # noqa: PLC0415
    serve(view_site(found), port or 0, browse=browse)


def _view_store(folders: tuple[str, ...], port: int | None, *, browse: bool) -> None:
    """Serve the page of one store of traces."""
    if len(folders) > 1:
        raise click.UsageError("a trace store is viewed alone; name one folder")
    from findwell.loop.monitoring.monitor import Monitor  # noqa: PLC0415

    with needs_package("the page", "web"):
        from findwell.show.web.monitor_app import monitor_site  # noqa: PLC0415
        from findwell.show.web.server import serve  # noqa: PLC0415
    with Monitor.open(folders[0]) as monitor:
        serve(monitor_site(monitor), port or 0, browse=browse)

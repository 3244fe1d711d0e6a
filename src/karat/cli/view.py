"""`karat view`: results in the browser, to explore."""

from __future__ import annotations

import click

from karat.errors import needs_package


@click.command("view", short_help="Explore results in the browser.")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Port to listen on (default: any free one).",
)
@click.option("--open", "browse", is_flag=True, help="Also open the browser.")
def command(folders: tuple[str, ...], port: int | None, browse: bool) -> None:
    """Serve the results in and below DIR on this machine, and only to this machine.

    \b
    karat view results
    karat view monday tuesday --open

    The page has the views of `karat report`, a search over all questions, two systems side by side
    on any query, and reports of single slices. It notices new results by itself. Tags and notes
    about a result are kept in NAME.notes.json beside its folder. The address holds a token; without
    it nothing is shown.
    """
    from karat.web.folders import ResultFolders  # noqa: PLC0415

    found = ResultFolders(folders)
    with needs_package("the page", "'karat[web]'"):
        from karat.web.app import view_site  # noqa: PLC0415
        from karat.web.server import serve  # noqa: PLC0415
    serve(view_site(found), port or 0, browse=browse)

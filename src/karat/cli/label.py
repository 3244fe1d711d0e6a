"""`karat label`: say which passages answer which questions, in the browser or in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from karat.errors import OptionError, needs_package


@click.command("label", short_help="Label the pairs of a pool, in the browser or a terminal.")
@click.argument("pool", metavar="POOL")
@click.option(
    "--annotator",
    metavar="NAME",
    default="",
    help="Who labels (default: the page asks; a terminal takes your login name).",
)
@click.option("--terminal", is_flag=True, help="Label here, without a browser.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Port to listen on (default: any free one).",
)
@click.option("--open", "browse", is_flag=True, help="Also open the browser.")
def command(*, pool: str, annotator: str, terminal: bool, port: int | None, browse: bool) -> None:
    """Label the pairs of POOL, the folder that `karat pool` made.

    \b
    karat label pool
    karat label pool --annotator anna --open
    karat label pool --terminal

    The page is served on this machine, and only to this machine: one passage at a time or the list
    of a question, by mouse, by touch or by keys. Every label is on disk before the next passage
    is shown. Several people label under several names, blind to each other; where they differ,
    somebody settles it on the page Disagreements.
    """
    from karat.labels.annotation import annotator_name  # noqa: PLC0415
    from karat.labels.labels import Labels  # noqa: PLC0415

    if terminal and (port is not None or browse):
        raise OptionError(
            "--port and --open have no effect with --terminal", fix="leave one of them out"
        )
    with Labels.open(pool) as labels:
        if terminal:
            from karat.cli.terminal_labelling import label_in_terminal  # noqa: PLC0415

            label_in_terminal(labels, annotator)
            return
        with needs_package("the page", "'karat[web]'", instead="label with --terminal"):
            from karat.web.labelling import label_site  # noqa: PLC0415
            from karat.web.server import serve  # noqa: PLC0415
        name = annotator_name(annotator) if annotator else ""
        serve(label_site(labels, Path(pool).as_posix(), name), port or 0, browse=browse)

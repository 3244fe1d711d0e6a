"""`findwell label`: say which passages answer which questions, in a browser or a terminal."""

from __future__ import annotations

from pathlib import Path

import click

from findwell.cli import options
from findwell.core.errors import OptionError, needs_package
from findwell.core.spelling import counted

FORMATS = (  # of files that labels are exported to; the first four hold all that is known of them
    "csv", "tsv", "jsonl", "parquet", "qrels", "subtopic-qrels", "beir", "ragas", "deepeval",
    "autorag", "phoenix", "spans",
)  # fmt: skip


@click.command("label", short_help="Label the pairs of a pool, in the browser or a terminal.")
@click.argument("pool", metavar="POOL")
@click.option(
    "--annotator",
    metavar="NAME",
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
@click.option(
    "--export", "target", metavar="FILE", help="Write the labels to FILE instead of labelling."
)
@click.option(
    "--import",
    "source",
    metavar="FILE",
    help="Add the labels of FILE instead of labelling: what --export writes, or any gold.",
)
@click.option(
    "--format",
    "form",
    metavar="NAME",
    help=f"Format of the FILE: {', '.join(FORMATS)} (default: as its name or content tells).",
)
@click.option(
    "--spans-of",
    "run",
    metavar="FILE",
    help="For phoenix: the run whose documents are annotated; its queries are ids of spans.",
)
@click.option("--add", is_flag=True, help="Import: also pairs that are not in the pool.")
def command(
    *,
    pool: str,
    annotator: str | None,
    terminal: bool,
    port: int | None,
    browse: bool,
    target: str | None,
    source: str | None,
    form: str | None,
    run: str | None,
    add: bool,
) -> None:
    """Label the pairs of POOL, the folder that `findwell pool` made.

    \b
    findwell label pool
    findwell label pool --annotator anna --open
    findwell label pool --terminal
    findwell label pool --export qrels.txt

    The page is served on this machine, and only to this machine: one passage at a time or the list
    of a question, by mouse, by touch or by keys. Every label is on disk before the next passage
    is shown. Several people label under several names, blind to each other; where they differ,
    somebody settles it on the page Disagreements.
    """
    from findwell.loop.labels.labels import Labels, annotator_name  # noqa: PLC0415

    _refuse_useless(
        {
            "--terminal": terminal, "--export": target, "--import": source, "--port": port,
            "--open": browse, "--format": form, "--spans-of": run, "--add": add,
        }
    )  # fmt: skip
    with Labels.open(pool, annotator_name(annotator) if annotator else "") as labels:
        if terminal:
            from findwell.cli.terminal_labelling import label_in_terminal  # noqa: PLC0415

            label_in_terminal(labels, labels.annotator)
        elif target is not None:
            labels.export(target, form, run=run)
            options.note(f"{len(labels)} labelled pairs written to {target}")
        elif source is not None:
            name = labels.annotator or None
            count = labels.import_labels(source, form, annotator=name, add=add, run=run)
            options.note(f"{counted(count, 'label', 'labels')} added to {Path(pool).as_posix()}")
        else:
            with needs_package("the page", "web", instead="label with --terminal"):
                from findwell.show.web.labelling import label_site  # noqa: PLC0415
                from findwell.show.web.server import serve  # noqa: PLC0415
            site = label_site(labels, Path(pool).as_posix(), labels.annotator)
            serve(site, port or 0, browse=browse)


# what is done instead of serving the page, and the options that go with it
ACTIONS = {
    "--terminal": (),
    "--export": ("--format", "--spans-of"),
    "--import": ("--format", "--spans-of", "--add"),
}


def _refuse_useless(values: dict[str, object]) -> None:
    """Refuse options that would have no effect."""
    given = [name for name, value in values.items() if value not in (None, False)]
    action = next((name for name in ACTIONS if name in given), "")
    allowed = (action, *ACTIONS[action]) if action else ("--port", "--open")
    for name in given:
        if name not in allowed:
            beside = f" with {action}" if action else ""
            raise OptionError(f"{name} has no effect{beside}", fix="leave it out")

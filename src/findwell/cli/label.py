"""`findwell label`: say which passages answer which questions, in a browser or a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from findwell.cli import options
from findwell.core.errors import OptionError, needs_package
from findwell.core.spelling import counted

if TYPE_CHECKING:
    from findwell.loop.labels.labels import Labels

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
def command(*, pool: str, annotator: str | None, **choices: object) -> None:
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

    _check(choices)
    name = annotator_name(annotator) if annotator else ""
    with Labels.open(pool, name) as labels:
        act = next((ACTS[given] for given in ACTS if choices[given] not in (None, False)), _serve)
        act(labels, Path(pool).as_posix(), choices)


def _serve(labels: Labels, pool: str, choices: dict[str, object]) -> None:
    with needs_package("the page", "web", instead="label with --terminal"):
        from findwell.show.web.labelling import label_site  # noqa: PLC0415
        from findwell.show.web.server import serve  # noqa: PLC0415
    port = choices["port"]
    site = label_site(labels, pool, labels.annotator)
    serve(site, port if isinstance(port, int) else 0, browse=bool(choices["browse"]))


def _in_terminal(labels: Labels, pool: str, choices: dict[str, object]) -> None:
    from findwell.cli.terminal_labelling import label_in_terminal  # noqa: PLC0415

    del pool, choices
    label_in_terminal(labels, labels.annotator)


def _export(labels: Labels, pool: str, choices: dict[str, object]) -> None:
    del pool
    labels.export(str(choices["target"]), _text(choices["form"]), run=_text(choices["run"]))
    options.note(f"{len(labels)} labelled pairs written to {choices['target']}")


def _import(labels: Labels, pool: str, choices: dict[str, object]) -> None:
    count = labels.import_labels(
        str(choices["source"]),
        _text(choices["form"]),
        annotator=labels.annotator or None,
        add=bool(choices["add"]),
        run=_text(choices["run"]),
    )
    options.note(f"{counted(count, 'label', 'labels')} added to {pool}")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


ACTS = {"terminal": _in_terminal, "target": _export, "source": _import}
OPTIONS = {
    "terminal": "--terminal", "target": "--export", "source": "--import", "port": "--port",
    "browse": "--open", "form": "--format", "run": "--spans-of", "add": "--add",
}  # fmt: skip
GO_WITH = {"terminal": set(), "target": {"form", "run"}, "source": {"form", "run", "add"}}


def _check(choices: dict[str, object]) -> None:
    """Refuse options that would have no effect."""
    given = [name for name, value in choices.items() if value not in (None, False)]
    act = next((name for name in ACTS if name in given), "")
    allowed = GO_WITH[act] if act else {"port", "browse"}
    for name in given:
        if name != act and name not in allowed:
            beside = f" with {OPTIONS[act]}" if act else ""
            raise OptionError(f"{OPTIONS[name]} has no effect{beside}", fix="leave it out")

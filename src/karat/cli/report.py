"""`karat report`: results as one HTML file, or as images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.errors import InputError, SaveError, choose

if TYPE_CHECKING:
    from karat.report.prepare import ReportContent

DEFAULT = "report.html"
MARK = b'<meta name="generator" content="karat '  # by which reports are known


@click.command("report", short_help="Show results as one HTML file.")
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option("-o", "--output", metavar="FILE", help=f"Where to write it (default {DEFAULT}).")
@click.option("--baseline", metavar="NAME", help="The system to compare with (default: the first).")
@click.option("--only", metavar="COLUMN=VALUE", help="Only the queries of this slice.")
@click.option("--plot", metavar="FILE", help="Write one chart as an .svg or .png instead.")
@click.option(
    "--chart",
    metavar="NAME",
    help="Which chart: forest, tradeoff, 'curve recall', 'distribution recall@5', 'heat topic', …",
)
def command(
    *,
    results: tuple[str, ...],
    output: str | None,
    baseline: str | None,
    only: str | None,
    plot: str | None,
    chart: str | None,
) -> int:
    """Make a page of one or several RESULT folders, as `karat score --save` writes them.

    \b
    karat score bm25.trec minilm.trec --gold gold.jsonl --corpus docs.jsonl --save monday
    karat report monday -o report.html
    karat report monday tuesday --baseline monday -o changes.html
    karat report monday --plot recall.svg --chart "curve recall"

    The file needs nothing else: no network, no other files. It shows the numbers with their
    intervals, what differs, where each system is weak, and every failing query down to the chunk.
    """
    from karat.report.page import page  # noqa: PLC0415
    from karat.report.panel import lay_side_by_side  # noqa: PLC0415
    from karat.report.prepare import prepare  # noqa: PLC0415
    from karat.results.summaries import unmeasured  # noqa: PLC0415

    for result in results:
        _require_folder(result)
    with_page = plot is None or output is not None
    target = output or (_default() if with_page else "")
    panel = lay_side_by_side(results, baseline=baseline, only=_slice(only))
    with options.progress("explaining queries") as progress:
        content = prepare(panel, cases=with_page, progress=progress)
    if plot is not None:
        _plot(content, plot, chart)
    elif chart is not None:
        raise click.UsageError("--chart says what --plot writes; name a file with --plot")
    if with_page:
        options.write(page(content), target)
        if target != "-":
            click.echo(f"written: {target}", err=True)
    for note in content.notes if with_page else ():
        click.echo(f"note: {note}", err=True)
    lacking = (line for system in panel.systems for line in unmeasured(system.result))
    return options.tell_unmeasured(lacking)


def _plot(content: ReportContent, path: str, name: str | None) -> None:
    from karat.report.charts import write_image  # noqa: PLC0415

    charts = content.charts
    chosen = next(iter(charts)) if name is None else choose("chart", name, charts)
    boxed = write_image(charts[chosen], path)
    click.echo(f"written: {path} ({chosen})", err=True)
    if boxed:
        click.echo(
            f"note: no font here has letters such as {boxed}, so the image shows boxes; "
            "install one that has them (such as Noto), or write an .svg",
            err=True,
        )


def _default() -> str:
    """Return the file to write if none was named; one that karat did not write must stay."""
    try:
        ours = MARK in Path(DEFAULT).read_bytes()
    except FileNotFoundError:
        ours = True
    except OSError:
        ours = False
    if not ours:
        raise SaveError(
            "the file is there already, and karat did not write it",
            where=DEFAULT,
            fix="name a file with -o",
        )
    return DEFAULT


def _require_folder(path: str) -> None:
    from karat.storage.folders import is_folder  # noqa: PLC0415

    if not is_folder(path):
        raise InputError(
            "this is not the folder of a result",
            where=path,
            fix="`karat score … --save DIR` writes one",
        )


def _slice(only: str | None) -> tuple[str, str] | None:
    if only is None:
        return None
    column, equals, value = only.partition("=")
    if not equals or not column:
        raise click.UsageError("--only takes COLUMN=VALUE, such as topic=billing")
    return column, value

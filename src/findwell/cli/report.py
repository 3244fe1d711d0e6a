"""`findwell report`: results as one HTML file, or as images."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from findwell.cli import judging, options
from findwell.core.errors import InputError, SaveError, choose

if TYPE_CHECKING:
    from findwell.show.prepare import ReportContent

DEFAULT = "report.html"
MARK = b'<meta name="generator" content="findwell '  # by which reports are known


@click.command("report", short_help="Show results as one HTML file.")
@click.argument("systems", nargs=-1, required=True, metavar="RESULT|RUN|STORE...")
@click.option("-o", "--output", metavar="FILE", help=f"Write to this file (default: {DEFAULT}).")
@click.option(
    "--baseline", metavar="NAME", help="System that others are compared with (default: the first)."
)
@click.option(
    "--only", metavar="COLUMN=VALUE", help="Report only the queries with this value in this column."
)
@click.option(
    "--unpaired",
    is_flag=True,
    help="Compare systems that were asked different queries, such as those of two periods.",
)
@click.option(
    "--plot", metavar="FILE", help="Write one chart as an .svg or .png file instead of the page."
)
@click.option(
    "--chart",
    metavar="NAME",
    help="Chart that --plot writes: forest, tradeoff, 'curve recall', 'distribution recall@5', "
    "'heat topic', … (default: the first available).",
)
@options.reading
@options.dialect
@options.latency
@options.measures("those of the first result, or as `findwell score`")
@options.measuring
@judging.judge_options
def command(
    *,
    systems: tuple[str, ...],
    output: str | None,
    baseline: str | None,
    only: str | None,
    unpaired: bool,
    plot: str | None,
    chart: str | None,
    gold: str | None,
    measures: tuple[str, ...],
    **choices: Any,  # noqa: ANN401
) -> int:
    """Make a page of saved results, as `findwell score --save` writes them, or of RUN files.

    \b
    findwell score a.trec b.trec --gold gold.jsonl --corpus docs --save monday
    findwell report monday -o report.html
    findwell report monday tuesday --baseline monday -o changes.html
    findwell report monday --plot recall.svg --chart "curve recall"
    findwell report a.trec b.trec --gold gold.jsonl -m recall@5 -m nDCG@10
    findwell report store -o production.html

    The file needs nothing else: no network, no other files. It shows the numbers with their
    intervals, what differs, where each system is weak, and every failing query down to the chunk.
    The options about reading and measuring are for RUN files; a saved result needs none. A trace
    store, as `findwell monitor serve` keeps one, becomes the page of `findwell view` about it:
    signals over time, marks, alarms, and some queries of each point.
    """
    from findwell.evaluation.results.summaries import unmeasured  # noqa: PLC0415
    from findwell.loop.monitoring.store import is_trace_store  # noqa: PLC0415
    from findwell.show.page import page  # noqa: PLC0415
    from findwell.show.report import prepare_report  # noqa: PLC0415

    if any(map(is_trace_store, systems)):
        return _of_store(systems, output)
    for system in systems:
        _require_input(system)
    with_page = plot is None or output is not None
    target = output or (_default() if with_page else "")
    files, gold = options.paths(systems, gold)
    judge = judging.take_shared(choices)
    chosen = options.explicit(choices) | judge
    named = list(measures) or None
    if judging.dry_run(files, named, chosen | {"gold": gold}, "table", None):
        return 0
    with options.progress("preparing queries") as progress:
        prepared = prepare_report(
            files,
            baseline=baseline,
            only=_slice(only),
            unpaired=unpaired,
            gold=gold,
            measures=named,
            rel=chosen.pop("rel", None),
            options=chosen,
            cases=with_page,
            progress=progress,
        )
    if plot is not None:
        _plot(prepared, plot, chart)
    elif chart is not None:
        raise click.UsageError("--chart says what --plot writes; name a file with --plot")
    if with_page:
        options.write(page(prepared), target)
        if target != "-":
            options.note(f"written: {target}")
    notes = dict.fromkeys(chain.from_iterable(prepared.notes.values()))
    for note in notes if with_page else ():
        options.note(f"note: {note}")
    lacking = (line for system in prepared.panel.systems for line in unmeasured(system.result))
    return options.print_unmeasured(lacking)


def _of_store(systems: tuple[str, ...], output: str | None) -> int:
    """Write the page about a trace store."""
    from findwell.show.report import store_report  # noqa: PLC0415

    context = click.get_current_context()
    given = [
        name
        for name in context.params
        if name not in ("systems", "output")
        and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    target = output or _default()
    options.write(store_report(systems, given), target)
    if target != "-":
        options.note(f"written: {target}")
    return 0


def _plot(prepared: ReportContent, path: str, name: str | None) -> None:
    from findwell.show.charts import BOXES, write_image  # noqa: PLC0415

    charts = prepared.charts
    chosen = next(iter(charts)) if name is None else choose("chart", name, charts)
    boxed = write_image(charts[chosen], path)
    options.note(f"written: {path} ({chosen})")
    if boxed:
        options.note(f"note: {BOXES.format(boxed)}")


def _default() -> str:
    """Return the file to write if none was named; one that findwell did not write must stay."""
    try:
        ours = not Path(DEFAULT).exists() or MARK in Path(DEFAULT).read_bytes()
    except OSError:
        ours = False
    if not ours:
        raise SaveError(
            "the file is there already, and findwell did not write it",
            where=DEFAULT,
            fix="name a file with -o",
        )
    return DEFAULT


def _require_input(path: str) -> None:
    """Refuse what is neither a saved result nor a file."""
    from findwell.io.storage.folders import is_folder  # noqa: PLC0415

    place = Path(path)
    if path != "-" and not is_folder(path) and (place.is_dir() or not place.exists()):
        raise InputError(
            "this is neither the folder of a saved result nor a file",
            where=path,
            fix="`findwell score … --save DIR` writes such a folder",
        )


def _slice(only: str | None) -> tuple[str, str] | None:
    if only is None:
        return None
    column, equals, value = only.partition("=")
    if not equals or not column:
        raise click.UsageError("--only takes COLUMN=VALUE, such as topic=billing")
    return column, value

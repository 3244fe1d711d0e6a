"""`findwell report`: results as one HTML file, or as images."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from findwell.cli import judging, options
from findwell.cli.command import Command, option, option_set
from findwell.core.errors import InputError, SaveError, choose

if TYPE_CHECKING:
    from findwell.show.prepare import ReportContent

DEFAULT_FILE = "report.html"
MARK = b'<meta name="generator" content="findwell '  # by which reports are known


@click.command("report", cls=Command, short_help="Show results as one HTML file.")
@click.argument("systems", nargs=-1, required=True, metavar="RESULT|RUN|STORE...")
@option_set(
    option("-o, --output FILE", f"Write to this file (default: {DEFAULT_FILE})."),
    options.opened,
    option("--baseline NAME", "What to compare with: one of the systems (default: the first)."),
    option("--only COLUMN=VALUE", "Report only the queries with this value."),
    option(
        "--unpaired",
        "Compare systems that were asked different queries. Such as those of two periods.",
    ),
    option("--plot FILE", "Write one chart instead, as .svg or .png."),
    option(
        "--chart NAME",
        "Chart that --plot writes. One of: forest, ladder, causes, 'where SYSTEM', "
        "'curve recall', … (default: the first available).",
    ),
    group="Output",
)
@options.reading("missing", "latency_unit")
@options.dialect
@options.measures("those of the first result, or as `findwell score`")
@options.rel
@judging.judged()
def command(
    *,
    systems: tuple[str, ...],
    output: str | None,
    browse: bool,
    baseline: str | None,
    only: str | None,
    unpaired: bool,
    plot: str | None,
    chart: str | None,
    gold: str | None,
    measures: tuple[str, ...],
    judge: judging.JudgeChoice,
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
        return _of_store(systems, output, browse=browse)
    for system in systems:
        _require_input(system)
    with_page = plot is None or output is not None
    target = output or (_default() if with_page else "")
    files, gold = options.paths(systems, gold)
    chosen = options.explicit(choices) | judge.shared_options
    named = list(measures) or None
    if judge.forecast_systems(files, named, chosen | {"gold": gold}, "table", None):
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
        _write_page(page(prepared), target, browse=browse)
    notes = dict.fromkeys(chain.from_iterable(prepared.notes.values()))
    for note in notes if with_page else ():
        options.note(f"note: {note}")
    lacking = (line for system in prepared.panel.systems for line in unmeasured(system.result))
    return options.print_unmeasured(lacking)


def _write_page(page: str, target: str, *, browse: bool) -> None:
    """Write the page, and open it in the browser if asked to."""
    options.write(page, target)
    if target != "-":
        options.note(f"written: {target}")
        if browse:
            click.launch(Path(target).absolute().as_uri())


def _of_store(systems: tuple[str, ...], output: str | None, *, browse: bool) -> int:
    """Write the page about a trace store."""
    from findwell.show.report import store_report  # noqa: PLC0415

    context = click.get_current_context()
    given = [
        name
        for name in context.params
        if name not in ("systems", "output", "browse")
        and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    _write_page(store_report(systems, given), output or _default(), browse=browse)
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
        ours = not Path(DEFAULT_FILE).exists() or MARK in Path(DEFAULT_FILE).read_bytes()
    except OSError:
        ours = False
    if not ours:
        raise SaveError(
            "a file of this name exists, and findwell did not write it",
            where=DEFAULT_FILE,
            fix="name a file with -o",
        )
    return DEFAULT_FILE


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

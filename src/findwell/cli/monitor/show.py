"""`findwell monitor show`: signals of a store, over a period or by time."""

from __future__ import annotations

from typing import Any

import click

from findwell.cli import judging, options
from findwell.cli.command import Command, option
from findwell.cli.monitor.options import note_judge, signal_options

FORMATS = ("table", "json", "jsonl", "csv", "tsv", "markdown")


@click.command("show", cls=Command, short_help="Show signals of production, by time and slice.")
@option("--store DIR", "Folder of the trace store.")
@option("--list", "List all signals, and what they mean.", name="listing")
@option(
    "-s, --signal SIGNAL...",
    "Signal, such as empty or latency_p95. May be repeated (default: all that are cheap and "
    "need only the traces).",
    name="names",
)
@option(
    "--every TIME",
    "Show each hour, day, week, 15m or 6h on its own (default: all of the period together).",
)
@option("--since TIME", "From here: 2026-05-31T14:00, 7d, or a mark.")
@option("--until TIME", "Up to here.")
@option(
    "--slice NAME...",
    "Slice by service, user, session, or an attribute such as tenant.id; may be repeated.",
    name="by",
)
@options.level
@signal_options
@options.output(FORMATS)
def command(
    *,
    store: str | None,
    listing: bool,
    names: tuple[str, ...],
    every: str | None,
    by: tuple[str, ...],
    level: float,
    how: str,
    output: str | None,
    judge: judging.JudgeChoice,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Show what is seen of retrieval in production, without a label.

    \b
    findwell monitor show --store store
    findwell monitor show --store store -s empty -s latency_p95 --every day
    findwell monitor show --store store -s churn --slice tenant.id --since 7d
    findwell monitor show --store store -s sufficiency --judge openai:MODEL
    findwell monitor show --list

    Intervals are for one look at one number. To look every hour, use `findwell monitor check`.
    """
    from findwell.loop.monitoring.monitor import Monitor  # noqa: PLC0415
    from findwell.show.signals import render, render_signals  # noqa: PLC0415

    screen = options.screen(output)
    if listing:
        if how not in ("table", "json", "markdown"):
            raise click.UsageError("--list is written as table, json or markdown")
        options.write(render_signals(how), output, how)
        return
    if store is None:
        raise click.UsageError("name the folder of the trace store: --store DIR")
    looked = {"by": by, **choices, **judge.options}
    with Monitor.open(store) as monitor, options.progress("reading calls") as progress:
        table = monitor.buckets(names or None, every, level=level, progress=progress, **looked)
        marks = monitor.marks()
    if judge.write_forecast(how, output):
        return
    note_judge(names, judge)
    text = render(table, how, every=every, by=by, marks=marks, **screen)
    options.write(text, output, how)

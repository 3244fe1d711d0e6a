"""`findwell monitor ingest`: files of traces into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from findwell.cli import options
from findwell.cli.command import Command
from findwell.cli.monitor.options import intake_options, store_option, take_intake

if TYPE_CHECKING:
    from findwell.loop.monitoring.ingest import Ingested


@click.command("ingest", cls=Command, short_help="Put files of traces into a store.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@store_option
@intake_options
def command(*, files: tuple[str, ...], store: str, **choices: Any) -> None:  # noqa: ANN401
    """Put the retrieval calls of files or folders of traces into a store, which is made if needed.

    \b
    findwell monitor ingest traces.jsonl --store store
    findwell monitor ingest exports/ --store store --no-texts --keep 90d

    A call that is in the store already is not added again, so that a file may be ingested twice.
    """
    from findwell.cli.options import progress  # noqa: PLC0415
    from findwell.loop.monitoring.ingest import ingest_traces  # noqa: PLC0415
    from findwell.show.escape import printable  # noqa: PLC0415

    rules, keep, id_from = take_intake(choices)
    done: list[Ingested] = []
    try:
        with progress("ingesting") as report:
            done.extend(
                ingest_traces(
                    files, store, rules=rules, keep=keep, id_from=id_from, progress=report
                )
            )
    finally:  # what was done before a failure is done
        for each in done:
            counts = {"new calls": each.new, "known": each.repeated, "left out": each.dropped}
            counted = [f"{number:,} {name}" for name, number in counts.items() if number]
            what = ", ".join(counted) or "no calls"
            click.echo(f"{printable(each.file)}: {each.spans:,} spans, {what}")
            for reason, number in each.malformed.items():
                options.note(f"  {number:,} × {reason}")

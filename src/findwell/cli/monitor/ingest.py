"""`findwell monitor ingest`: files of traces into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from findwell.cli import options
from findwell.cli.monitor.options import intake_options, intake_rules, store_option

if TYPE_CHECKING:
    from findwell.loop.monitoring.ingest import Ingested


@click.command("ingest", short_help="Put files of traces into a store.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@store_option
@intake_options
def command(
    *,
    files: tuple[str, ...],
    store: str,
    redact: tuple[str, ...],
    no_texts: bool,
    sample: float,
    keep: str | None,
    id_from: str | None,
) -> None:
    """Put the retrieval calls of files or folders of traces into a store, which is made if needed.

    \b
    findwell monitor ingest traces.jsonl --store store
    findwell monitor ingest exports/ --store store --no-texts --keep 90d

    A call that is in the store already is not added again, so that a file may be ingested twice.
    """
    from findwell.cli.options import progress  # noqa: PLC0415
    from findwell.loop.monitoring.ingest import ingest_traces  # noqa: PLC0415
    from findwell.loop.monitoring.times import parse_period  # noqa: PLC0415

    rules = intake_rules(redact, sample, no_texts=no_texts)
    period = None if keep is None else parse_period(keep)
    done: list[Ingested] = []
    try:
        with progress("ingesting") as report:
            done.extend(
                ingest_traces(
                    files, store, rules=rules, keep=period, id_from=id_from, progress=report
                )
            )
    finally:  # what was done before a failure is done
        for each in done:
            _tell(each)


def _tell(each: Ingested) -> None:
    from findwell.show.escape import printable  # noqa: PLC0415

    counts = {"new calls": each.new, "known": each.repeated, "left out": each.dropped}
    told = [f"{number:,} {name}" for name, number in counts.items() if number]
    click.echo(f"{printable(each.file)}: {each.spans:,} spans, {', '.join(told) or 'no calls'}")
    for reason, number in each.malformed.items():
        options.note(f"  {number:,} × {reason}")

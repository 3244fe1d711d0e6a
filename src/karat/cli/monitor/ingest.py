"""`karat monitor ingest`: files of traces into a store."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import click

from karat.cli.monitor.options import intake_options, intake_rules, store_option


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
    karat monitor ingest traces.jsonl --store store
    karat monitor ingest exports/ --store store --no-texts --keep 90d

    A file that is ingested twice counts once.
    """
    from karat.monitoring.store import TraceStore  # noqa: PLC0415
    from karat.monitoring.upkeep import parse_period  # noqa: PLC0415
    from karat.read.traces import read_traces  # noqa: PLC0415

    rules = intake_rules(redact, sample, no_texts=no_texts)
    period = None if keep is None else parse_period(keep)
    with TraceStore.open(store, create=True, rules=rules) as opened:
        opened.keep = period
        for file in files:
            found: Counter[str] = Counter()
            malformed: Counter[str] = Counter()
            for part in read_traces(file, id_from=id_from):
                added = opened.add(part.frame, spans=part.spans, malformed=part.malformed)
                found.update(asdict(added) | {"spans": part.spans})
                malformed.update(part.malformed)
            click.echo(
                f"{file}: {found['spans']:,} spans, {found['new']:,} new calls, "
                f"{found['repeated']:,} known, {found['dropped']:,} left out"
            )
            for reason, number in malformed.items():
                click.echo(f"  {number:,} × {reason}", err=True)
        opened.flush()
        if period is not None:
            opened.retain(period)

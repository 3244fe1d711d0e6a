"""`findwell monitor mark`: a name for a point in time, such as a release."""

from __future__ import annotations

import click

from findwell.cli.command import Command, option
from findwell.cli.monitor.options import store_option


@click.command("mark", cls=Command, short_help="Name a point in time, such as a release.")
@click.argument("name", metavar="NAME")
@store_option
@option("--time TIME", "When it was (default: now; ISO 8601, UTC).", name="moment")
def command(name: str, store: str, moment: str | None) -> None:
    """Name a point in time, so that charts show it and before and after can be compared.

    \b
    findwell monitor mark "v2.3 chunker" --store store
    findwell monitor mark "index rebuilt" --store store --time 2026-11-16T09:30
    """
    from findwell.loop.monitoring.store import TraceStore  # noqa: PLC0415
    from findwell.loop.monitoring.times import parse_moment  # noqa: PLC0415

    at = None if moment is None else parse_moment(moment)
    with TraceStore.open(store) as opened:
        mark = opened.mark(name, at)
    click.echo(f"{mark.time:%Y-%m-%d %H:%M:%S} UTC  {mark.name}")

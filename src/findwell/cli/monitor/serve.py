"""`findwell monitor serve`: takes traces in over HTTP."""

from __future__ import annotations

import sys
from typing import Any

import click

from findwell.cli.command import Command, option
from findwell.cli.monitor.options import intake_options, store_option, take_intake
from findwell.core.errors import needs_package


def _as_token(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Read the token that is referred to; only the environment may hold the token itself."""
    from findwell.judges.client.endpoint import referenced, visible_secret  # noqa: PLC0415

    source = context.get_parameter_source(parameter.name or "")
    if text is None or source is click.core.ParameterSource.ENVIRONMENT:
        return text
    found = referenced(text, "--token")
    if found is None:
        raise visible_secret("the token")
    return found.reveal()


@click.command("serve", cls=Command, short_help="Take traces in, over HTTP (OTLP).")
@store_option
@option("--port N", "Port to listen on.", low=0, high=65535, default=4318)
@option(
    "--host ADDRESS",
    "Address to listen on; one that others can reach needs --token.",
    default="127.0.0.1",
)
@option(
    "--token REFERENCE",
    "What exporters must send as Authorization: Bearer TOKEN: env:VARIABLE or file:PATH "
    "(default: the value of FINDWELL_MONITOR_TOKEN).",
    envvar="FINDWELL_MONITOR_TOKEN",
    callback=_as_token,
)
@option(
    "--workers N",
    "Decode in this many more processes; for more than 10,000 spans a second.",
    low=0,
    high=64,
    default=0,
)
@option("--max-request SIZE", "Longest body of a request.", default="16MiB")
@option("--max-rate N", "Most spans a second.", low=1)
@option("--max-store SIZE", "Largest size of the store.", default="none")
@intake_options
def command(
    *,
    store: str,
    port: int,
    host: str,
    token: str | None,
    workers: int,
    max_request: str,
    max_rate: int | None,
    max_store: str,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Take traces in from the exporters of OpenTelemetry, into a store, which is made if needed.

    \b
    findwell monitor serve --store store
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python app.py

    OTLP over HTTP, as protobuf or JSON, with gzip or without. Only retrieval calls are kept. A
    batch is acknowledged when it is on disk; one that is sent twice counts once. Beyond a limit
    exporters are asked to try again later.
    """
    from findwell.io.storage.spool import parse_size  # noqa: PLC0415
    from findwell.loop.monitoring.store import TraceStore  # noqa: PLC0415

    with needs_package("taking traces in", "monitor"):
        from findwell.loop.monitoring.receiver import ReceiverLimits  # noqa: PLC0415
        from findwell.show.web.trace_server import TraceAddress, serve_traces  # noqa: PLC0415
    address = TraceAddress(host, port, token or "")
    limits = ReceiverLimits(
        request=parse_size(max_request, "--max-request") or sys.maxsize,
        rate=max_rate,
        store=parse_size(max_store, "--max-store"),
    )
    rules, keep, id_from = take_intake(choices)
    with TraceStore.open(store, create=True, rules=rules) as opened:
        serve_traces(opened, address, limits=limits, workers=workers, keep=keep, id_from=id_from)

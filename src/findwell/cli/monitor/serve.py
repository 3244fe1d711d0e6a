"""`findwell monitor serve`: takes traces in over HTTP."""

from __future__ import annotations

import sys
from typing import Any

import click

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


@click.command("serve", short_help="Take traces in, over HTTP (OTLP).")
@store_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=4318, metavar="N", help="Port to listen on."
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="Address to listen on; one that others can reach needs --token.",
)
@click.option(
    "--token",
    envvar="FINDWELL_MONITOR_TOKEN",
    callback=_as_token,
    metavar="REFERENCE",
    help="What exporters must send as Authorization: Bearer TOKEN: env:VARIABLE or file:PATH "
    "(default: the value of FINDWELL_MONITOR_TOKEN).",
)
@click.option(
    "--workers",
    type=click.IntRange(0, 64),
    default=0,
    metavar="N",
    help="Decode in so many further processes; for more than 10,000 spans a second.",
)
@click.option("--max-request", default="16MiB", metavar="SIZE", help="Longest body of a request.")
@click.option("--max-rate", type=click.IntRange(1), metavar="N", help="Most spans a second.")
@click.option("--max-store", default="none", metavar="SIZE", help="Largest size of the store.")
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
    exporters are told to try again later.
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

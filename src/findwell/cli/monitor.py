"""`findwell monitor`: production retrieval from its traces."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, gating, judging, options
from findwell.cli.command import Group, Settings, option, option_set
from findwell.core.errors import needs_package

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from findwell.loop.monitoring.intake import Ingested, IntakeRules


# what signals need, and who judges; the settings arrive as keywords of the command
signal_options = option_set(
    option_set(
        option(
            "--with",
            "What signals need: kind, corpus, date_key, … May be repeated; --help-signals lists "
            "all.",
            name="signals",
            cls=Settings,
            table="signals",
            topic="signals",
            sections=["signals"],
        ),
        make=lambda signals: signals,
    ),
    judging.judged(),
)

store_option = option("--store DIR", "Folder of the trace store.", name="store", required=True)
# which parts of incoming calls to store
intake_options = option_set(
    option(
        "--redact REGEX...",
        "Replace what matches by [redacted], before it is written (repeatable).",
    ),
    option(
        "--intake",
        "What is kept, and how long: texts, sample, keep, id_from. May be repeated; --help-intake "
        "explains them.",
        cls=Settings,
        table="intake",
        topic="intake",
        sections=["intake"],
    ),
)


def take_intake(
    redact: tuple[str, ...], intake: dict[str, Any]
) -> tuple[IntakeRules, timedelta | None, str | None]:
    """Return the rules of these options, how long calls are kept, and the field of ids."""
    from findwell.loop.monitoring.intake import IntakeRules  # noqa: PLC0415
    from findwell.loop.monitoring.times import parse_period  # noqa: PLC0415

    texts, sample = intake.get("texts", True), intake.get("sample", 1.0)
    rules = IntakeRules(redact=redact, texts=texts, sample=sample)
    keep = intake.get("keep")
    return rules, None if keep is None else parse_period(keep), intake.get("id_from")


def judges_of(names: Iterable[str], judge: judging.JudgeChoice) -> list[str]:
    """Return who judges, and what that is worth, if one of the signals is judged."""
    from findwell.loop.monitoring.call_values import JudgedSample  # noqa: PLC0415
    from findwell.loop.monitoring.signals import SIGNALS  # noqa: PLC0415

    judged = {name for name, each in SIGNALS.items() if each.needs == "judge"}
    asked = judge.options
    sample = JudgedSample(asked["judge"], base_url=asked.get("base_url"))
    return [] if judged.isdisjoint(names) else sample.worth()


@click.group("monitor", cls=Group, short_help="Watch retrieval in production.")
def command() -> None:
    """Watch the retrieval of an application in production, from its traces.

    \b
    findwell monitor serve --store store           take traces in, over HTTP
    findwell monitor ingest traces.jsonl --store store
    findwell monitor mark "v2.3 chunker" --store store
    findwell monitor show --store store --every day
    """


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


@command.command("serve", short_help="Take traces in, over HTTP (OTLP).")
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
    "Extra processes that decode spans; needed above 10,000 spans a second.",
    low=0,
    high=64,
    default=0,
)
@option(
    "--limit",
    "How much is taken in: request, rate, store. May be repeated; --help-limit explains them.",
    cls=Settings,
    table="limit",
    topic="limit",
    sections=["limit"],
)
@intake_options
def serve(
    *,
    store: str,
    port: int,
    host: str,
    token: str | None,
    workers: int,
    limit: dict[str, Any],
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
        request=parse_size(limit.get("request", "16MiB"), "--limit request") or sys.maxsize,
        rate=limit.get("rate"),
        store=parse_size(limit.get("store", "none"), "--limit store"),
    )
    rules, keep, id_from = take_intake(**choices)
    with TraceStore.open(store, create=True, rules=rules) as opened:
        serve_traces(opened, address, limits=limits, workers=workers, keep=keep, id_from=id_from)


@command.command("ingest", short_help="Put files of traces into a store.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@store_option
@intake_options
def ingest(*, files: tuple[str, ...], store: str, **choices: Any) -> None:  # noqa: ANN401
    """Put the retrieval calls of files or folders of traces into a store, which is made if needed.

    \b
    findwell monitor ingest traces.jsonl --store store
    findwell monitor ingest traces.jsonl --store store --intake texts=no
    findwell monitor ingest exports/ --store store --intake keep=90d

    A call that is in the store already is not added again, so that a file may be ingested twice.
    """
    from findwell.loop.monitoring.intake import ingest_traces  # noqa: PLC0415
    from findwell.show.escape import printable  # noqa: PLC0415

    rules, keep, id_from = take_intake(**choices)
    done: list[Ingested] = []
    try:
        with options.progress("ingesting") as report:
            done.extend(
                ingest_traces(
                    files, store, rules=rules, keep=keep, id_from=id_from, progress=report
                )
            )
    finally:  # what was done before a failure is done
        for each in done:
            counts = {"new calls": each.new, "known": each.repeated, "left out": each.dropped}
            calls = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
            click.echo(f"{printable(each.file)}: {each.spans:,} spans, {calls or 'no calls'}")
            for reason, number in each.malformed.items():
                options.note(f"  {number:,} × {reason}")


@command.command("mark", short_help="Name a point in time, such as a release.")
@click.argument("name", metavar="NAME")
@store_option
@option("--time TIME", "When it was (default: now; ISO 8601, UTC).", name="moment")
def mark(name: str, store: str, moment: str | None) -> None:
    """Name a point in time, so that charts show it and before and after can be compared.

    \b
    findwell monitor mark "v2.3 chunker" --store store
    findwell monitor mark "index rebuilt" --store store --time 2026-11-16T09:30
    """
    from findwell.loop.monitoring.store import TraceStore  # noqa: PLC0415
    from findwell.loop.monitoring.times import parse_moment  # noqa: PLC0415

    at = None if moment is None else parse_moment(moment)
    with TraceStore.open(store) as opened:
        found = opened.mark(name, at)
    click.echo(f"{found.time:%Y-%m-%d %H:%M:%S} UTC  {found.name}")


@command.command("show", short_help="Show signals of production, by time and slice.")
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
@option("--since TIME", "Start of the period: 2026-05-31T14:00, 7d, or a mark.")
@option("--until TIME", "End of the period (default: now).")
@option(
    "--slice NAME...",
    "Slice by service, user, session, or an attribute such as tenant.id; may be repeated.",
    name="by",
)
@options.level
@signal_options
@options.output(("table", "json", "jsonl", "csv", "tsv", "markdown"))
def show(
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
    """Show signals of retrieval in production; no labels are needed.

    \b
    findwell monitor show --store store
    findwell monitor show --store store -s empty -s latency_p95 --every day
    findwell monitor show --store store -s churn --slice tenant.id --since 7d
    findwell monitor show --store store -s sufficiency --judge openai:MODEL
    findwell monitor show --list

    Each interval holds for a single look. To check again and again, use `findwell monitor check`.
    """
    from findwell.loop.monitoring.monitor import Monitor  # noqa: PLC0415
    from findwell.show.signals import document, known_signals, render_signals  # noqa: PLC0415

    if listing:
        if how not in ("table", "json", "markdown"):
            raise click.UsageError("--list is written as table, json or markdown")
        if how == "json":
            envelope.answer({"signals": known_signals()}, output)
        else:
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
    judges = judges_of(table["signal"], judge)
    envelope.show(how, output, document(table, every=every, by=by, marks=marks, judges=judges))


@command.command("check", short_help="Raise alarms about signals that have changed.")
@store_option
@option(
    "--alert ALERT...",
    'What to raise an alarm about, such as "empty>2%". Also: "context_relevancy drops", '
    '"p95>800ms", "top_score changes by tenant", in quotes; may be repeated.',
    name="alerts",
    required=True,
)
@option(
    "--baseline WHAT",
    "What to compare with: a period, a saved result or a number. Such as last-week, yesterday, "
    "last-7d, 2026-11-02/2026-11-09, before:MARK, or the folder of a saved result.",
)
@option(
    "--alpha SHARE",
    "Highest chance of any false alarm, however often you check.",
    default=0.05,
)
@option(
    "--run-length N",
    "Instead of --alpha: N periods or more, on average, before a false alarm.",
)
@option(
    "--period LENGTH",
    "Length of one observation, such as 1h (default: the shortest of 1h, 3h, 6h, 12h and 1d "
    "that the baseline allows; 1h for alerts with a number); call: each call is one, if calls do "
    "not depend on each other.",
)
@option(
    "--season day|week", "Compare with the same hour of the day, or of the week, in the baseline."
)
@option(
    "--settle LENGTH",
    "How long to wait for late calls after a period has ended.",
    default="10m",
)
@option("--since TIME", "Start of the calls to check (default: the end of the baseline).")
@option("--until TIME", "End of the calls to check (default: now).")
@option("--rebaseline", "Choose the baseline again, and discard open alarms.")
@option(
    "--new-only", "Exit with 1 only for alarms that this check raises, not for those already open."
)
@option(
    "--webhook URL",
    "Send new and resolved alarms there as JSON, signed with $FINDWELL_WEBHOOK_SECRET; an "
    "address that must stay secret as env:VARIABLE or file:PATH.",
)
@option("--webhook-texts", "Send the questions of calls as well.")
@option("--prometheus FILE", "Write the state of all alerts for Prometheus.")
@option("--junit FILE", "Write the verdicts as JUnit XML.")
@signal_options
@options.output(("table", "json", "markdown"))
def check(
    *,
    store: str,
    alerts: tuple[str, ...],
    new_only: bool,
    webhook: str | None,
    webhook_texts: bool,
    prometheus: str | None,
    junit: str | None,
    how: str,
    output: str | None,
    judge: judging.JudgeChoice,
    **choices: Any,  # noqa: ANN401
) -> int:
    """Check whether signals of production have changed, as often as you like.

    \b
    findwell monitor check --store store --alert "empty>2%" --alert "p95>800ms"
    findwell monitor check --store store --alert "churn rises" --baseline last-7d

    Exits with 0 where all is quiet, with 1 while an alarm is open, and with 3 where there are too
    few calls to decide. An alarm is raised once, and stays open until the signal is back.
    """
    from findwell.evaluation.comparison.gates import GateReport  # noqa: PLC0415
    from findwell.loop.monitoring.alarm_report import UNDECIDED, prometheus_text, sentence  # noqa: PLC0415
    from findwell.loop.monitoring.monitor import Monitor  # noqa: PLC0415
    from findwell.loop.monitoring.webhook import SECRET, Webhook  # noqa: PLC0415
    from findwell.show.document import document_of, render  # noqa: PLC0415

    if webhook_texts and webhook is None:
        raise click.UsageError("--webhook-texts needs --webhook URL")
    hook = None
    if webhook is not None:
        from findwell.judges.client.endpoint import referenced  # noqa: PLC0415

        secret = referenced(webhook, "--webhook")
        hook = Webhook(webhook if secret is None else secret.reveal(), texts=webhook_texts)
        if not hook.secret:
            options.note(f"note: what goes to the webhook is not signed: ${SECRET} is not set")
    choices |= judge.options
    dry = judge.dry_run
    with Monitor.open(store) as monitor:
        report = monitor.check(alerts, remember=not dry, webhook=None if dry else hook, **choices)
        if judge.write_forecast(how, output):
            return 0
        if hook is not None and (failure := hook.deliver(monitor.store)):
            options.note(
                f"note: {hook.shown} could not be reached: {failure}; the next check tries again"
            )
        if prometheus is not None:
            options.write(prometheus_text(monitor.store), prometheus)
    envelope.show(how, output, document_of(report))
    if report.exit_code:
        kind = "Alarm" if report.raised else "AlertsUndecided"
        told = report.raised or [each for each in report.verdicts if each.outcome == UNDECIDED]
        envelope.fail(kind, "; ".join(map(sentence, told)))
    if junit is not None:
        from findwell.show.gate import as_junit  # noqa: PLC0415

        options.write(as_junit(report.as_gate()), junit)
    # not all who may read the summary may read questions
    gating.append_summary(GateReport(()), partial(render, report.without_texts(), "markdown"))
    news = any(each.outcome == "alarm" for each in report.news)
    return 0 if new_only and report.exit_code == 1 and not news else report.exit_code

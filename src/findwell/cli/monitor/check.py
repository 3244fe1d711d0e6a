"""`findwell monitor check`: are the signals of production as they were?"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from findwell.cli import gating, judging, options
from findwell.cli.command import Command, option
from findwell.cli.monitor.options import note_judge, signal_options, store_option

FORMATS = ("table", "json", "markdown")


@click.command("check", cls=Command, short_help="Raise alarms about signals that have changed.")
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
    "Highest chance that an alarm is ever raised while nothing changes.",
    default=0.05,
)
@option(
    "--run-length N",
    "Instead of --alpha: an alarm while nothing changes comes after N periods or more, on average.",
)
@option(
    "--period LENGTH",
    "Calls of one period, such as 1h, are one observation (default: the shortest of 1h, 3h, "
    "6h, 12h and 1d that the baseline allows; 1h for alerts with a number); call: single calls, "
    "if they do not depend on each other.",
)
@option(
    "--season day|week", "Compare with the same hour of the day, or of the week, in the baseline."
)
@option(
    "--settle LENGTH",
    "Look at a period when it has been over for this long: late calls still count.",
    default="10m",
)
@option("--since TIME", "Watch calls from here (default: the baseline's end).")
@option("--until TIME", "Look at calls up to here (default: now).")
@option("--rebaseline", "Find the baseline again, and forget alarms that are open.")
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
@options.output(FORMATS)
def command(
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
    """Check whether signals of production have changed; may be run as often as you like.

    \b
    findwell monitor check --store store --alert "empty>2%" --alert "p95>800ms"
    findwell monitor check --store store --baseline week --alert "churn rises"

    Exits with 0 where all is quiet, with 1 while an alarm is open, and with 3 where there are too
    few calls to decide. An alarm is raised once, and stays open until the signal is back.
    """
    from findwell.evaluation.comparison.gates import GateReport  # noqa: PLC0415
    from findwell.loop.monitoring.monitor import Monitor  # noqa: PLC0415
    from findwell.show.alarms import render  # noqa: PLC0415

    if webhook_texts and webhook is None:
        raise click.UsageError("--webhook-texts needs --webhook URL")
    hook = None
    if webhook is not None:
        from findwell.judges.client.endpoint import referenced  # noqa: PLC0415
        from findwell.loop.monitoring.webhook import SECRET, Webhook  # noqa: PLC0415

        secret = referenced(webhook, "--webhook")
        url = webhook if secret is None else secret.reveal()
        hook = Webhook(url, texts=webhook_texts)
        if not hook.secret:
            options.note(f"note: what goes to the webhook is not signed: ${SECRET} is not set")
    choices |= judge.options
    dry = judge.dry_run
    with Monitor.open(store) as monitor:
        opened = monitor.store
        report = monitor.check(alerts, remember=not dry, webhook=None if dry else hook, **choices)
        if judge.write_forecast(how, output):
            return 0
        failure = "" if hook is None else hook.deliver(opened)
        if hook is not None and failure:
            options.note(
                f"note: {hook.shown} got no news: {failure}; the next check sends them again"
            )
        if prometheus is not None:
            from findwell.loop.monitoring.alarm_text import prometheus_text  # noqa: PLC0415

            options.write(prometheus_text(opened), prometheus)
    note_judge(alerts, judge)
    options.write(render(report, how, **options.screen(output)), output, how)
    if junit is not None:
        from findwell.show.gate import as_junit  # noqa: PLC0415

        options.write(as_junit(report.as_gate()), junit)
    # those who may read the summary may not all read questions
    gating.append_summary(GateReport(()), partial(render, report.without_texts(), "markdown"))
    news = any(each.outcome == "alarm" for each in report.news)
    return 0 if new_only and report.exit_code == 1 and not news else report.exit_code

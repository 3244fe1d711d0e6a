"""`findwell doctor`: what is installed, and whether the files of a project fit each other."""

from __future__ import annotations

from typing import Any

import click

from findwell.cli import envelope, judging, options
from findwell.cli.command import Command, option, option_set


@click.command("doctor", cls=Command, short_help="Check the installation and the project's files.")
@click.argument("runs", nargs=-1, metavar="[FOLDER|RUN]...")
@options.reading("latency_unit")
@options.measures()
@option("--judge JUDGE", f"Judge to check. One of: {judging.JUDGES}.", group="Judge")
@option_set(judging.judge_settings(verdicts=False), group="Judge")
@option(
    "--ask",
    "Also ask remote servers which models they have. Servers on this machine are always asked.",
    group="Judge",
)
@options.output(("table", "json", "markdown"))
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    judge: str | None,
    judge_settings: dict[str, Any],
    ask: bool,
    how: str,
    output: str | None,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Say what is installed, which models answer, and whether runs, gold and texts fit together.

    \b
    findwell doctor               the installation, and findwell.toml
    findwell doctor .             the files of this folder
    findwell doctor run.jsonl --gold gold.jsonl -m recall@2000tokens

    Each line is ok, look (worth a look) or broken, with the command to run next. Relations are
    tried on a sample of the queries. The exit code is 0 even if something is broken, and 2 if the
    files cannot be read.
    """
    from findwell.evaluation.doctor import doctor  # noqa: PLC0415
    from findwell.evaluation.plan import grouped  # noqa: PLC0415
    from findwell.measures import DEFAULTS  # noqa: PLC0415
    from findwell.show import document_of  # noqa: PLC0415

    files, gold = options.paths(runs, gold)
    asked = judging.JudgeChoice(judge, judge_settings).asked
    with options.progress("examining"):
        found = doctor(
            files or None, gold, measures or DEFAULTS, ask=ask, judge=asked, **grouped(choices)
        )
    envelope.show(how, output, document_of(found))

"""`findwell judge-check`: how a model is asked best."""

from __future__ import annotations

from typing import Any

import click

from findwell.cli import judging, options
from findwell.show.judge_check import CHECK_FORMATS


@click.command("judge-check", short_help="Find out how a model is asked best.")
@click.argument("judge", metavar="JUDGE")
@judging.check_options
@click.option(
    "--ask",
    "ways",
    multiple=True,
    type=click.Choice(["matrix", "pieces", "single"]),
    help="Try only this way of asking, and keep nothing; may be repeated.",
)
@options.output(CHECK_FORMATS)
def command(
    *,
    judge: str,
    ways: tuple[str, ...],
    dry_run: bool,
    how: str,
    output: str | None,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Let a model judge findwell's own labelled cases, in several ways, and say which suits it.

    A large model gives all verdicts about a sample in one answer (matrix), a small one a few of
    them (pieces), or one at a time, by one word (single). What was found is kept by server and
    model: --ask auto goes by it, and a second check costs nothing (--refresh checks again).

    \b
    findwell judge-check openai:llama3.2 --base-url http://localhost:11434/v1
    findwell judge-check openai:MODEL --base-url URL --ask single --ask matrix
    """
    from findwell.judges.llm.check import forecast_check, judge_check  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415

    chosen = judging.take({"judge": judge, **choices})["judge"]
    if dry_run:
        estimate = forecast_check(chosen, ways or None)
        options.write(judging.render_forecast(estimate, how), output)
        return
    with options.progress("checking") as progress:
        check = judge_check(chosen, ways=ways or None, progress=progress)
    options.write(render(check, how, width=options.width(output)), output, how)
    if check.stored:
        options.note(f"note: checked at {check.created}; --refresh checks it again")

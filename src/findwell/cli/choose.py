"""`findwell choose`: a few questions that end in a command line, with reasons."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from findwell.cli import envelope, options
from findwell.cli.command import Command, Decorator, option, option_set
from findwell.evaluation.choose import LABELLED_KINDS, QUESTIONS, Question
from findwell.show.tables import bullets, reading_width, wrap

if TYPE_CHECKING:
    from findwell.evaluation.choose import Advice

USUAL_K = "5"


def _option(question: Question) -> Decorator:
    """Return the option that answers a question without asking it."""
    return option(
        f"--{question.name} {'|'.join(question.answers)}",
        f"Your answer to “{question.asks}” (default: you are asked).",
    )


@click.command("choose", cls=Command, short_help="Choose the measures that fit the job.")
@option_set(*map(_option, QUESTIONS))
@option(
    "-k K",
    "How many chunks are read, or a budget such as 2000tokens (default: you are asked).",
    type=str,
)
@option("--usual", "Take the usual answer instead of asking.")
@options.output(("table", "json"))
def command(
    k: str | None, how: str, output: str | None, *, usual: bool, **given: str | None
) -> None:
    """Choose the measures that fit a job: a few questions, then a command line with reasons.

    \b
    findwell choose
    findwell choose --known answers --use all --usual
    """
    from findwell.evaluation.choose import choose  # noqa: PLC0415

    answers: dict[str, str] = {}
    for question in QUESTIONS:
        if question.name == "labels" and answers["known"] not in LABELLED_KINDS:
            continue  # there are none
        answers[question.name] = given[question.name] or _asked(question, usual=usual)
    depth = k or (USUAL_K if usual else _prompt("How many chunks are read?", USUAL_K, "-k"))
    advice = choose(**answers, k=depth)
    if how == "json":
        envelope.answer(advice.as_dict(), output)
    else:
        options.write(_shown(advice, reading_width(options.width(output))), output)


def _asked(question: Question, *, usual: bool) -> str:
    """Ask a question at the terminal."""
    names = [*question.answers]
    if usual:
        return names[0]
    listed = "\n".join(
        f"  {number}  {about}" for number, about in enumerate(question.answers.values(), 1)
    )
    reply = _prompt(
        f"{question.asks}\n{listed}\nanswer",
        "1",
        f"--{question.name}",
        click.Choice([*map(str, range(1, len(names) + 1))]),
    )
    return names[int(reply) - 1]


def _prompt(text: str, default: str, option: str, kind: click.Choice[str] | None = None) -> str:
    """Ask for a text, where a person can answer."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(
            f"there is no terminal to ask at: answer with {option}, or take the usual answers with "
            "--usual"
        )
    reply: str = click.prompt(text, default=default, type=kind, show_choices=False, err=True)
    return reply


def _shown(advice: Advice, width: int) -> str:
    """Write the advice for people; the command stands in one line, to be copied."""
    reasons = [f"{name}: {why}" for name, why in advice.measures.items()]
    notes = [wrap(f"note: {note}.\n", width) for note in advice.notes]
    shown = ["what fits", "", bullets(reasons, "table", width)]
    return "\n".join([*shown, *notes, f"{advice.command}\n"])

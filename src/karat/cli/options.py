"""Options and habits that several commands share."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from karat.data import Finding

FORMATS = ("table", "json", "jsonl", "csv", "tsv", "markdown")


def inputs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is read and how."""
    for option in reversed(
        [
            click.argument("runs", nargs=-1, required=True, metavar="RUN..."),
            click.option("-g", "--gold", metavar="FILE", help="What should be found."),
            click.option("--run-format", metavar="NAME", help="Format of the runs, if not told."),
            click.option("--gold-format", metavar="NAME", help="Format of the gold, if not told."),
            click.option(
                "--ids",
                default="identity",
                metavar="HOW",
                show_default=True,
                help="Normalise document ids: identity, uuid, chunk-to-doc:SEP, regex:PATTERN.",
            ),
            click.option(
                "--dialect",
                default="karat",
                metavar="NAME",
                show_default=True,
                help="Whose choices to follow: karat, trec_eval, trec_eval-9.",
            ),
        ]
    ):
        function = option(function)
    return function


def paths(runs: tuple[str, ...]) -> list[str]:
    """Return the files to read; - is standard input."""
    return ["/dev/stdin" if run == "-" else run for run in runs]


def use_color() -> bool:
    """Tell whether standard output is a terminal that wants colour."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def busy(message: str) -> AbstractContextManager[object]:
    """Show on a terminal's standard error that work goes on."""
    from contextlib import nullcontext  # noqa: PLC0415

    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console  # noqa: PLC0415

    return Console(stderr=True).status(message)


def tell(findings: Iterable[Finding]) -> None:
    """Print findings on standard error, a line each."""
    for finding in findings:
        click.echo(f"note: {describe(finding)}", err=True)


def describe(finding: Finding) -> str:
    """Return a finding as one line."""
    examples = ", ".join(finding.examples)
    examples += ", …" if finding.count > len(finding.examples) else ""
    run = f"{finding.run}: " if finding.run else ""
    return f"{run}{finding.count} × {finding.message} ({examples})"


def write(text: str, output: str | None) -> None:
    """Print to standard output, or write a file whole or not at all."""
    if output is None:
        click.echo(text, nl=False)
        return
    from karat.store import write_text  # noqa: PLC0415

    write_text(output, text)

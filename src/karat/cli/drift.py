"""`karat drift`: find labels again in documents, or chunks, that have changed."""

from __future__ import annotations

from typing import Any

import click

from karat.cli import options
from karat.cli.anchor import common, deliver


@click.command("drift", short_help="Find labels again after documents or chunks changed.")
@common
@click.option(
    "--chunks", metavar="FILE", help="The new chunks: report which of them hold each label."
)
@click.option(
    "--before",
    metavar="PATH",
    help="The documents as they were: the text around a label tells its places apart.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the gold with the new places to this file; - prints it instead of the table.",
)
def command(*, gold: str, how: str, output: str | None, **choices: Any) -> None:  # noqa: ANN401
    """Find the labels of GOLD, as `karat anchor` writes it, again in documents that have changed.

    \b
    karat drift gold-spans.jsonl --corpus new-docs/
    karat drift gold-spans.jsonl --corpus new-docs/ --before docs/ -o updated.jsonl
    karat drift gold-spans.jsonl --corpus docs/ --chunks new-chunks.jsonl
    """
    from karat.labels.anchor import drift  # noqa: PLC0415

    file, _ = options.paths((gold,), None)
    with options.progress("looking for the labels"):
        drifted = drift(file, **choices)
    deliver(drifted, how, output)

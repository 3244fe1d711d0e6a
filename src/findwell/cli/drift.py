"""`findwell drift`: find labels again in documents, or chunks, that have changed."""

from __future__ import annotations

from typing import Any

import click

from findwell.cli.anchor import label_options, write_labels


@click.command("drift", short_help="Find labels again after documents or chunks changed.")
@label_options
@click.option("--chunks", metavar="FILE", help="New chunks: report which of them hold each label.")
@click.option(
    "--before",
    metavar="PATH",
    help="Documents as they were before: the text around a label distinguishes similar places.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the gold with the new places to this file; - prints it instead of the table.",
)
def command(*, gold: str, how: str, output: str | None, **choices: Any) -> None:  # noqa: ANN401
    """Find the labels of GOLD, as `findwell anchor` writes it, in documents that have changed.

    \b
    findwell drift spans.jsonl --corpus new-docs/
    findwell drift spans.jsonl --corpus new-docs/ --before docs/ -o updated.jsonl
    findwell drift spans.jsonl --corpus docs/ --chunks new-chunks.jsonl
    """
    from findwell.loop.labels.anchor import drift  # noqa: PLC0415

    write_labels(drift, gold, choices, how, output)

"""Options about how a retriever is asked, and what is kept of its answers."""

from __future__ import annotations

import click

from karat.cli.options import option_set

asking = option_set(
    click.option(
        "--concurrency",
        type=click.IntRange(1),
        default=1,
        metavar="N",
        help="Questions asked at a time: in threads, or in tasks if the retriever is async.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Time after which a question has failed (default: none).",
    ),
    click.option(
        "--retries",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="How often a question that failed is asked again.",
    ),
    click.option(
        "--warmup",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Questions that are asked once before anything is measured.",
    ),
    click.option(
        "--max-errors",
        type=click.IntRange(0),
        metavar="N",
        help="Stop when more questions than this have failed (default: when the first 10 have).",
    ),
)
NAMES = ("concurrency", "timeout", "retries", "warmup", "max_errors")

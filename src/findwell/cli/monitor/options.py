"""Options that the subcommands of `findwell monitor` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from findwell.cli import judging
from findwell.cli import options as shared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from findwell.loop.monitoring.intake_rules import IntakeRules

# what signals are compared with, and who judges how many calls
signal_options = shared.option_set(
    click.option(
        "--kind",
        type=click.Choice(["retriever", "reranker"]),
        default="retriever",
        help="Which calls to analyse: retriever or reranker.",
    ),
    click.option("--corpus", metavar="PATH", help="Documents that can be retrieved, by id."),
    click.option(
        "--questions",
        metavar="FILE",
        help="Questions of the evaluation set, for query_distance.",
    ),
    click.option("--embedder", metavar="MODEL", help="Model for query_distance (default: minilm)."),
    click.option(
        "--expected-language",
        default="en",
        metavar="CODE",
        help="Language that questions are expected in, for other_language.",
    ),
    click.option(
        "--date-key",
        metavar="KEY",
        help="Key of the documents' metadata with their date, for age.",
    ),
    click.option(
        "--sample",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="Judged signals: share of the traces that are judged, always the same ones.",
    ),
    click.option(
        "--per-day",
        type=int,
        metavar="N",
        help="Judged signals: judge at most this many calls of a day.",
    ),
    judging.judge_options,
)


store_option = click.option(
    "--store", "store", required=True, metavar="DIR", help="Folder of the trace store."
)
# which parts of incoming calls to store
intake_options = shared.option_set(
    click.option(
        "--redact",
        multiple=True,
        metavar="REGEX",
        help="Replace what matches by [redacted], before it is written (repeatable).",
    ),
    click.option("--no-texts", is_flag=True, help="Keep neither questions nor texts of documents."),
    click.option(
        "--sample",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="Keep this share of the traces, always the same ones.",
    ),
    click.option("--keep", metavar="TIME", help="Delete days older than that, such as 90d."),
    click.option(
        "--id-from",
        metavar="FIELD",
        help="Field of the metadata that holds the ids of documents, such as metadata.chunk.",
    ),
)


def take_intake(choices: dict[str, Any]) -> tuple[IntakeRules, timedelta | None, str | None]:
    """Return the rules of these options, how long calls are kept, and the field of ids."""
    from findwell.loop.monitoring.intake_rules import IntakeRules  # noqa: PLC0415
    from findwell.loop.monitoring.times import parse_period  # noqa: PLC0415

    texts, keep = not choices["no_texts"], choices["keep"]
    rules = IntakeRules(redact=choices["redact"], texts=texts, sample=choices["sample"])
    return rules, None if keep is None else parse_period(keep), choices["id_from"]


def note_judge(names: Iterable[str], choices: Mapping[str, Any]) -> None:
    """Say who judges, and what that is worth, if one of the signals or alerts is judged."""
    from findwell.judges.limits import judge_lines  # noqa: PLC0415
    from findwell.loop.monitoring.call_values import JudgedSample  # noqa: PLC0415
    from findwell.loop.monitoring.signals import SIGNALS  # noqa: PLC0415

    judged = [name for name, each in SIGNALS.items() if each.needs == "judge"]
    if any(name in text for name in judged for text in names):
        judge = JudgedSample(choices["judge"], base_url=choices.get("base_url")).find()
        shared.note_judges(judge_lines([{"name": judge.name, **judge.about()}]))

"""Options that the subcommands of `findwell monitor` share."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from findwell.cli import judging
from findwell.cli import options as shared
from findwell.cli.command import Settings, option, option_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from findwell.loop.monitoring.intake_rules import IntakeRules


def signal_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what signals need, and who judges; the settings arrive as keywords of the command."""

    @functools.wraps(function)
    def call(*, signals: dict[str, Any], **given: Any) -> object:  # noqa: ANN401
        return function(**given, **signals)

    needs = option(
        "--with",
        "What signals need: kind, corpus, date_key, … May be repeated; --help-signals lists all.",
        name="signals",
        cls=Settings,
        table="signals",
        topic="signals",
        sections=["signals"],
    )
    return option_set(needs, judging.judged())(call)


store_option = option("--store DIR", "Folder of the trace store.", name="store", required=True)
# which parts of incoming calls to store
intake_options = option_set(
    option(
        "--redact REGEX...",
        "Replace what matches by [redacted], before it is written (repeatable).",
    ),
    option("--no-texts", "Keep neither questions nor texts of documents."),
    option("--sample SHARE", "Keep this share of the traces, always the same ones.", default=1.0),
    option("--keep TIME", "Delete days older than that, such as 90d."),
    option(
        "--id-from FIELD",
        "Field of the metadata that holds the ids of documents, such as metadata.chunk.",
    ),
)


def take_intake(choices: dict[str, Any]) -> tuple[IntakeRules, timedelta | None, str | None]:
    """Return the rules of these options, how long calls are kept, and the field of ids."""
    from findwell.loop.monitoring.intake_rules import IntakeRules  # noqa: PLC0415
    from findwell.loop.monitoring.times import parse_period  # noqa: PLC0415

    texts, keep = not choices["no_texts"], choices["keep"]
    rules = IntakeRules(redact=choices["redact"], texts=texts, sample=choices["sample"])
    return rules, None if keep is None else parse_period(keep), choices["id_from"]


def note_judge(names: Iterable[str], judge: judging.JudgeChoice) -> None:
    """Say who judges, and what that is worth, if one of the signals or alerts is judged."""
    from findwell.judges.limits import judge_lines  # noqa: PLC0415
    from findwell.loop.monitoring.call_values import JudgedSample  # noqa: PLC0415
    from findwell.loop.monitoring.signals import SIGNALS  # noqa: PLC0415

    judged = [name for name, each in SIGNALS.items() if each.needs == "judge"]
    if any(name in text for name in judged for text in names):
        asked = judge.options
        found = JudgedSample(asked["judge"], base_url=asked.get("base_url")).find()
        shared.note_judges(judge_lines([{"name": found.name, **found.about()}]))

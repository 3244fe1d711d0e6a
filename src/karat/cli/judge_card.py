"""`karat judge-card`: how far a judge agrees with people."""

from __future__ import annotations

from typing import Any

import click

from karat.cli import judging, options
from karat.reports.agreement import CARD_FORMATS


@click.command("judge-card", short_help="Say how far a judge agrees with people.")
@click.argument("labels", metavar="LABELS")
@judging.judge_options
@click.option(
    "--aspect",
    type=click.Choice(["relevance", "claims", "statements", "sufficiency"]),
    default="relevance",
    help="What the labels are about.",
)
@click.option("--corpus", metavar="FILE", help="Texts of the chunks, if LABELS has only ids.")
@click.option("--questions", metavar="FILE", help="Texts of the questions, if LABELS has only ids.")
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="COLUMN",
    help="Also show the figures for each value of this column of LABELS; may be repeated.",
)
@click.option(
    "--rel",
    type=click.IntRange(1, 3),
    default=1,
    metavar="LABEL",
    help="Lowest label that counts as a yes of people.",
)
@options.level
@click.option(
    "--recalibrate", is_flag=True, help="Also choose the local judge's threshold on these labels."
)
@click.option(
    "--save",
    metavar="FILE",
    help="Save the card to this file (default: where results look for it).",
)
@click.option("--no-save", is_flag=True, help="Do not save the card.")
@options.output(CARD_FORMATS)
def command(
    *,
    labels: str,
    save: str | None,
    no_save: bool,
    how: str,
    output: str | None,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Let a judge label what people have labelled, and compare: kappa, precision, recall, bias.

    LABELS has records with question, chunk and label (0 to 3, or yes and no), as JSON lines, CSV,
    TSV or Parquet. Judgements by id (qrels) need the texts: --corpus and --questions.

    \b
    karat judge-card labels.jsonl --judge local
    karat judge-card labels.csv --judge local --slice topic --recalibrate
    karat judge-card labels.jsonl --judge openai:MODEL --max-cost 2
    karat judge-card qrels.txt --corpus corpus.jsonl --questions queries.tsv
    """
    from karat.judges.cards.card import judge_card, verdicts  # noqa: PLC0415
    from karat.judges.cards.labels import load_labels  # noqa: PLC0415
    from karat.reports.agreement import render_card  # noqa: PLC0415

    if save is not None and no_save:
        raise click.UsageError("--save and --no-save exclude each other")
    texts = {name: choices.pop(name) for name in ("corpus", "questions")}
    chosen = judging.take(choices)
    given = load_labels(options.paths([labels])[0][0], **texts)
    if isinstance(chosen["judge"], judging.DryRunJudge):
        verdicts(chosen["judge"], given, choices["aspect"])
        judging.write_dry_run(chosen, how, output)
        return
    with options.progress("judging") as progress:
        card = judge_card(given, progress=progress, **chosen, **choices)
    options.write(render_card(card, how, width=options.width(output)), output, how)
    if not no_save:
        options.note(f"note: card saved in {card.save(save)}")
    if card.blank:
        options.note(f"note: {card.blank} pairs have no label and were left out")

"""`findwell judge-card`: how far a judge agrees with people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from findwell.cli import judging, options
from findwell.show.judge_card import CARD_FORMATS

if TYPE_CHECKING:
    from findwell.judges.cards.labels import LabelledSamples
    from findwell.judges.client.budget import Forecast
    from findwell.judges.verdicts import JudgeProtocol


@click.command("judge-card", short_help="Say how far a judge agrees with people.")
@click.argument("labels", metavar="LABELS")
@judging.several_judges_options
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
    "--probe-bias",
    is_flag=True,
    help="Also ask with the chunks in another order, and once more without the cache, and count "
    "the verdicts that flip; says before how many calls that takes.",
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
    dry_run: bool,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Let a judge label what people have labelled, and compare: kappa, precision, recall, bias.

    LABELS has records with question, chunk and label (0 to 3, or yes and no), as JSON lines, CSV,
    TSV or Parquet. Judgements by id (qrels) need the texts: --corpus and --questions. Where the
    judge tells probabilities, the card says how far they can be believed. Several judges are shown
    side by side; limits such as --max-cost then hold for each of them.

    \b
    findwell judge-card labels.jsonl --judge local
    findwell judge-card labels.csv --judge local --slice topic
    findwell judge-card labels.jsonl --judge openai:MODEL --probe-bias
    findwell judge-card labels.jsonl --judge local --judge openai:MODEL
    findwell judge-card qrels.txt --corpus corpus.jsonl --questions queries.tsv
    """
    from findwell.judges.cards.card import compare_judges, judge_card  # noqa: PLC0415
    from findwell.judges.cards.labels import LabelledSamples, load_labels  # noqa: PLC0415
    from findwell.judges.find import find_judge  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415

    if save is not None and no_save:
        raise click.UsageError("--save and --no-save exclude each other")
    if save is not None and len(choices["judges"]) > 1:
        raise click.UsageError("--save names one file, and several judges have several cards")
    texts = {name: choices.pop(name) for name in ("corpus", "questions")}
    judges = [find_judge(each) for each in judging.take_several(choices)]
    choices = {name: choices[name] for name in CHOICES}
    given = load_labels(options.paths([labels])[0][0], **texts)
    asked = LabelledSamples.of(given, choices["aspect"])
    if dry_run:
        options.write(judging.render_forecast(_forecast(judges, asked, choices), how), output)
        return
    if choices["probe_bias"]:
        _say_what_probing_takes(judges, asked)
    width = options.width(output)
    with options.progress("judging") as progress:
        if len(judges) == 1:
            cards = [judge_card(given, judge=judges[0], progress=progress, **choices)]
            text = render(cards[0], how, width=width)
        else:
            found = compare_judges(given, judges, progress=progress, **choices)
            cards, text = [*found.cards], render(found, how, width=width)
    options.write(text, output, how)
    for card in cards if not no_save else ():
        options.note(f"note: card saved in {card.save(save)}")
    if cards[0].blank:
        options.note(f"note: {cards[0].blank} pairs have no label and were left out")


CHOICES = ("aspect", "slices", "rel", "level", "probe_bias")


def _forecast(
    judges: list[JudgeProtocol], asked: LabelledSamples, choices: dict[str, Any]
) -> Forecast:
    """Estimate what all judges would take, with their probes."""
    from findwell.judges.cards.card import forecast_probe  # noqa: PLC0415
    from findwell.judges.llm.judge import LLMJudge, total  # noqa: PLC0415

    able = [each for each in judges if isinstance(each, LLMJudge)]
    if not able:
        raise click.UsageError(f"the judge {judges[0].name} asks no model: --dry-run says nothing")
    aspects = frozenset({asked.aspect})
    parts = [each.dry_run(list(asked.samples), aspects) for each in able]
    if choices["probe_bias"]:
        parts += [part for each in able for part in forecast_probe(each, asked)]
    return total(parts)


def _say_what_probing_takes(judges: list[JudgeProtocol], asked: LabelledSamples) -> None:
    """Tell what probing for bias will ask, before it is asked."""
    from findwell.judges.cards.card import forecast_probe  # noqa: PLC0415
    from findwell.judges.llm.judge import total  # noqa: PLC0415

    parts = [part for each in judges for part in forecast_probe(each, asked)]
    if parts:
        more = total(parts)
        tokens = more.prompt_tokens + more.completion_tokens
        cost = "" if more.cost is None else f", cost {more.cost:.4f}"
        options.note(
            f"note: probing for bias takes about {more.calls:,} calls more, {tokens:,} tokens{cost}"
        )

"""`findwell judge`: how far a judge agrees with people, and how a model is asked best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from findwell.cli import judging, options
from findwell.cli.command import Group, option, option_set
from findwell.show.judge_card import CARD_FORMATS
from findwell.show.judge_check import CHECK_FORMATS

if TYPE_CHECKING:
    from findwell.judges.cards.labels import LabelledSamples
    from findwell.judges.client.budget import Forecast
    from findwell.judges.verdicts import JudgeProtocol


@click.group("judge", cls=Group, short_help="Check a judge: against people, and how to ask it.")
def command() -> None:
    """Check a judge before you believe it.

    \b
    findwell judge card labels.jsonl --judge local     does it agree with people?
    findwell judge check openai:MODEL -J base_url=URL  how is a model asked best?
    """


@command.command("card", short_help="Say how far a judge agrees with people.")
@click.argument("labels", metavar="LABELS")
@option_set(
    option(
        "--judge JUDGE...",
        f"Who judges. One of: {judging.JUDGES}; may be repeated, and the first is what others "
        "are compared with.",
        name="judges",
        default=("local",),
    ),
    judging.judge_settings(),
    judging.dry_run,
    group="Judge",
)
@option(
    "--aspect relevance|claims|statements|sufficiency",
    "What the labels are about.",
    default="relevance",
)
@option("--corpus FILE", "Texts of the documents by id, if LABELS has only ids.")
@option("--queries FILE", "Table about the queries, if LABELS has only ids.")
@option(
    "--slice COLUMN...",
    "Also show the figures for each value of this column of LABELS; may be repeated.",
    name="slices",
)
@option("--rel N", "Lowest label that counts as a yes of people.", low=1, high=3, default=1)
@options.level
@option(
    "--probe-bias",
    "Also count the verdicts that flip. Asks with the chunks in another order, and once more "
    "without the cache; says before how many calls that takes.",
)
@option("--save FILE", "Save the card to this file (default: where results look for it).")
@option("--no-save", "Do not save the card.")
@options.output(CARD_FORMATS)
def card(
    *,
    labels: str,
    save: str | None,
    no_save: bool,
    how: str,
    output: str | None,
    dry_run: bool,
    judges: tuple[str, ...],
    judge_settings: dict[str, Any],
    corpus: str | None,
    queries: str | None,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Let a judge label what people have labelled, and compare: kappa, precision, recall, bias.

    LABELS has records with question, chunk and label (0 to 3, or yes and no), as JSON lines, CSV,
    TSV or Parquet. Judgements by id (qrels) need the texts: --corpus and --queries. Where the
    judge gives probabilities, the card says how far they can be believed. Several judges are shown
    side by side; limits such as -J max_cost=5 then hold for each of them.

    \b
    findwell judge card labels.jsonl --judge local
    findwell judge card labels.csv --judge local --slice topic
    findwell judge card labels.jsonl --judge openai:MODEL --probe-bias
    findwell judge card labels.jsonl --judge local --judge openai:MODEL
    findwell judge card qrels.txt --corpus corpus.jsonl --queries queries.tsv
    """
    from findwell.judges.cards.card import compare_judges, judge_card  # noqa: PLC0415
    from findwell.judges.cards.labels import LabelledSamples, load_labels  # noqa: PLC0415
    from findwell.judges.find import find_judge  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415

    if save is not None and no_save:
        raise click.UsageError("--save and --no-save exclude each other")
    if save is not None and len(judges) > 1:
        raise click.UsageError("--save names one file, and several judges have several cards")
    able = [find_judge(each) for each in judging.several_judges(judges, judge_settings)]
    given = load_labels(options.paths([labels])[0][0], corpus=corpus, questions=queries)
    asked = LabelledSamples.of(given, choices["aspect"])
    if dry_run:
        options.write(judging.render_forecast(_forecast(able, asked, choices), how), output)
        return
    if choices["probe_bias"]:
        _say_what_probing_takes(able, asked)
    width = options.width(output)
    with options.progress("judging") as progress:
        if len(able) == 1:
            cards = [judge_card(given, judge=able[0], progress=progress, **choices)]
            text = render(cards[0], how, width=width)
        else:
            found = compare_judges(given, able, progress=progress, **choices)
            cards, text = [*found.cards], render(found, how, width=width)
    options.write(text, output, how)
    for card in cards if not no_save else ():
        options.note(f"note: card saved in {card.save(save)}")
    if cards[0].blank:
        options.note(f"note: {cards[0].blank} pairs have no label and were left out")


def _forecast(
    judges: list[JudgeProtocol], asked: LabelledSamples, choices: dict[str, Any]
) -> Forecast:
    """Estimate what all judges would take, with their probes."""
    from findwell.judges.cards.card import forecast_probe  # noqa: PLC0415
    from findwell.judges.llm.judge import LLMJudge, total  # noqa: PLC0415

    able = [each for each in judges if isinstance(each, LLMJudge)]
    if not able:
        raise judging.asks_no_model(judges[0].name)
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


@command.command("check", short_help="Find out how a model is asked best.")
@click.argument("judge", metavar="JUDGE")
@option_set(judging.judge_settings(verdicts=False), judging.dry_run, group="Judge")
@option(
    "--way matrix|single...",
    "Try only this way of asking, and keep nothing; may be repeated.",
    name="ways",
)
@options.output(CHECK_FORMATS)
def check(
    *,
    judge: str,
    ways: tuple[str, ...],
    dry_run: bool,
    how: str,
    output: str | None,
    judge_settings: dict[str, Any],
) -> None:
    """Let a model judge findwell's own labelled cases, in several ways, and say which suits it.

    A large model gives all verdicts about a sample in one answer (matrix), a small one gives one
    at a time, by one word (single). What was found is kept by server and model: it is asked that
    way from then on, and a second check costs nothing (-J cache=refresh checks again).

    \b
    findwell judge check openai:llama3.2 -J base_url=http://localhost:11434/v1
    findwell judge check openai:MODEL -J base_url=URL --way single --way matrix
    """
    from findwell.judges.llm.check import forecast_check, judge_check  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415

    chosen = judging.JudgeChoice(judge, judge_settings).asked or judge
    if dry_run:
        estimate = forecast_check(chosen, ways or None)
        options.write(judging.render_forecast(estimate, how), output)
        return
    with options.progress("checking") as progress:
        found = judge_check(chosen, ways=ways or None, progress=progress)
    options.write(render(found, how, width=options.width(output)), output, how)
    if found.stored:
        options.note(f"note: checked at {found.created}; -J cache=refresh checks it again")

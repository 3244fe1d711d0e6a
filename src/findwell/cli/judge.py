"""`findwell judge`: how far a judge agrees with people, and how a model is asked best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from findwell.cli import envelope, judging, options
from findwell.cli.command import Group, option, option_set
from findwell.show.judge_card import CARD_FORMATS
from findwell.show.judge_check import CHECK_FORMATS

if TYPE_CHECKING:
    from findwell.judges.cards.card import JudgeComparison
    from findwell.judges.cards.labels import LabelledSamples
    from findwell.judges.client.budget import Forecast
    from findwell.judges.verdicts import JudgeProtocol

SHOWING = frozenset({"labels", "others", "how", "output"})  # what kept cards can take


aspect = option(
    "--aspect relevance|claims|statements|sufficiency",
    "What the labels are about.",
    default="relevance",
)


@click.group("judge", cls=Group, short_help="Check a judge: against people, and how to ask it.")
def command() -> None:
    """Check a judge before you believe it.

    \b
    findwell judge card labels.jsonl --judge local     does it agree with people?
    findwell judge card one.json other.json            which kept card is better?
    findwell judge check openai:MODEL -J base_url=URL  how is a model asked best?
    findwell judge teach --labels pool -o judge.json   what can labels teach it?
    """


@command.command("card", short_help="Measure how well a judge agrees with people.")
@click.argument("labels", metavar="LABELS")
@click.argument("others", metavar="[CARD]...", nargs=-1)
@option_set(
    option(
        "--judge JUDGE...",
        f"Who judges. One of: {judging.JUDGES}. May be repeated; "
        "the others are compared with the first.",
        name="judges",
        default=("local",),
    ),
    judging.judge_settings(),
    judging.dry_run,
    group="Judge",
)
@aspect
@option("--corpus FILE", "Texts of the documents by id, if LABELS has only ids.")
@option("--queries FILE", "Table about the queries, if LABELS has only ids.")
@option(
    "--slice COLUMN...",
    "Also show the figures for each value of this column of LABELS; may be repeated.",
    name="slices",
)
@option("--rel N", "Lowest label that counts as yes.", low=1, high=3, default=1)
@options.level
@option(
    "--probe-bias",
    "Also count the verdicts that change when the judge is asked again: with the chunks in another "
    "order, and once more without the cache. The number of calls is printed first.",
)
@option("--save FILE", "Save the card to this file, or none (default: where results look for it).")
@options.output(CARD_FORMATS)
def card(
    *,
    labels: str,
    others: tuple[str, ...],
    save: str | None,
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
    side by side; limits such as -J max_cost=5 then hold for each. So are saved cards, if named.

    \b
    findwell judge card labels.jsonl --judge local
    findwell judge card labels.jsonl --judge openai:MODEL --probe-bias
    findwell judge card labels.jsonl --judge local --judge openai:MODEL
    findwell judge card qrels.txt --corpus corpus.jsonl --queries queries.tsv
    findwell judge card local.json reranker.json
    """
    from findwell.judges.cards.card import compare_judges, judge_card  # noqa: PLC0415
    from findwell.judges.cards.labels import LabelledSamples, load_labels  # noqa: PLC0415
    from findwell.judges.find import find_judge  # noqa: PLC0415
    from findwell.show.document import document_of  # noqa: PLC0415

    if others:
        envelope.show(how, output, document_of(_kept_cards((labels, *others))))
        return
    if save not in (None, "none") and len(judges) > 1:
        raise click.UsageError("--save FILE holds one card, and several judges were given")
    able = [find_judge(each) for each in judging.several_judges(judges, judge_settings)]
    given = load_labels(options.paths([labels])[0][0], corpus=corpus, questions=queries)
    asked = LabelledSamples.of(given, choices["aspect"])
    if dry_run:
        judging.write_forecast(_forecast(able, asked, choices), how, output)
        return
    if choices["probe_bias"]:
        _say_what_probing_takes(able, asked)
    with options.progress("judging") as progress:
        if len(able) == 1:
            cards = [judge_card(given, judge=able[0], progress=progress, **choices)]
            shown = document_of(cards[0])
        else:
            found = compare_judges(given, able, progress=progress, **choices)
            cards, shown = [*found.cards], document_of(found)
    envelope.show(how, output, shown)
    for card in cards if save != "none" else ():
        place = card.save(save)
        envelope.wrote(place)
        options.note(f"note: card saved in {place}")
    if cards[0].blank:
        options.note(f"note: {cards[0].blank} pairs have no label and were left out")


def _kept_cards(paths: tuple[str, ...]) -> JudgeComparison:
    """Read several cards; what is about judging has no meaning then."""
    from findwell.judges.cards.card import JudgeCard, JudgeComparison  # noqa: PLC0415

    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is ParameterSource.COMMANDLINE and parameter.name not in SHOWING:
            named = (parameter.opts or [parameter.name])[-1]
            raise click.UsageError(f"{named} has no effect on saved cards, which are only shown")
    return JudgeComparison(tuple(JudgeCard.load(path) for path in paths))


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


@command.command("check", short_help="Find the best way to ask a model.")
@click.argument("judge", metavar="JUDGE")
@option_set(judging.judge_settings(), judging.dry_run, group="Judge")
@options.output(CHECK_FORMATS)
def check(
    *, judge: str, dry_run: bool, how: str, output: str | None, judge_settings: dict[str, Any]
) -> None:
    """Let a model judge findwell's own labelled cases, in several ways, and say which suits it.

    A large model gives all verdicts about a sample in one answer (matrix), a small one gives one
    at a time, by one word (single). The best way is remembered for this server and model and used
    from then on; a second check costs nothing (-J cache=refresh checks again). -J ask=matrix or
    ask=single tries only this way, and keeps nothing.

    \b
    findwell judge check openai:llama3.2 -J base_url=http://localhost:11434/v1
    findwell judge check openai:MODEL -J base_url=URL -J ask=single
    """
    from findwell.judges.llm.check import forecast_check, judge_check  # noqa: PLC0415
    from findwell.show.document import document_of  # noqa: PLC0415

    chosen = judging.JudgeChoice(judge, judge_settings).asked or judge
    if dry_run:
        judging.write_forecast(forecast_check(chosen), how, output)
        return
    with options.progress("checking") as progress:
        found = judge_check(chosen, progress=progress)
    envelope.show(how, output, document_of(found))
    if found.stored:
        options.note(f"note: checked at {found.created}; -J cache=refresh checks it again")


@command.command("teach", short_help="Fit a judge to labels, and measure the gain.")
@option_set(
    option("--labels FILE", "Labels of people: a pool, or a file as judge card takes it."),
    option("--judge JUDGE", f"Judge to teach. One of: {judging.JUDGES}.", default="local"),
    judging.judge_settings(),
    group="Judge",
)
@aspect
@option(
    "--examples N",
    "Also show a language model N of the labels before it is asked, if that helps; asks twice.",
    low=0,
    high=20,
    default=0,
)
@option("-o, --output FILE", "Write the taught judge to this JSON file.", name="target")
def teach(
    *,
    labels: str | None,
    judge: str,
    judge_settings: dict[str, Any],
    target: str | None,
    **choices: Any,  # noqa: ANN401
) -> None:
    """Fit the probabilities and the threshold of a judge to labels of people.

    Every judge that gives probabilities can be taught: local, a reranker, or a model that is asked
    for single verdicts and reports logprobs. The gain is measured on questions that were left
    out of the fit, and so is that of examples. --judge FILE.json then uses the taught judge.

    \b
    findwell judge teach --labels pool --judge local -o judge.json
    findwell judge teach --labels labels.jsonl --judge reranker:PATH -o judge.json
    findwell score run.jsonl -m context_precision --judge judge.json
    """
    from findwell.judges.taught import teach_judge  # noqa: PLC0415
    from findwell.show import render  # noqa: PLC0415

    if labels is None:
        raise click.UsageError("name the labels: --labels pool")
    chosen = judging.JudgeChoice(judge, judge_settings).asked
    with options.progress("judging") as progress:
        given = options.paths([labels])[0][0]
        taught = teach_judge(given, judge=chosen, progress=progress, **choices)
    options.write(render(taught, "table", width=options.width(None)), None, "table")
    if target is not None:
        options.note(f"note: taught judge saved in {taught.save(target)}")

"""Options for judges, and what a command makes of them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from karat.client.budget import Forecast
    from karat.client.protocol import Json
    from karat.judges.verdicts import Judged, JudgeProtocol, Sample
    from karat.progress import Report

# options that only a language model understands, by the names that `karat.Judge` has
FOR_MODELS = (
    "base_url",
    "votes",
    "decompose",
    "separate_calls",
    "prompts",
    "options",
    "attempts",
    "call_tokens",
    "concurrency",
    "timeout",
    "max_calls",
    "max_tokens",
    "max_cost",
    "prices",
)


def _as_options(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> dict[str, Json] | None:
    """Read fields of a call: values are JSON, and words that are not JSON stand for themselves."""
    fields: dict[str, Json] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name.strip() or not equals:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE")
        try:
            fields[name.strip()] = json.loads(value)
        except ValueError:
            fields[name.strip()] = value.strip()
    return fields or None


def judging(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say who judges, and how."""
    for option in (
        click.option(
            "--prices",
            metavar="FILE|PROMPT,ANSWER",
            help="Prices of a million tokens: a TOML or JSON file of models, or two numbers.",
        ),
        click.option("--max-cost", type=float, metavar="MONEY", help="Stop before it costs more."),
        click.option("--max-tokens", type=int, metavar="N", help="Stop before it takes more."),
        click.option("--max-calls", type=int, metavar="N", help="Stop before it asks more often."),
        click.option("--dry-run", is_flag=True, help="Only say what a model would be asked."),
        click.option("--refresh", is_flag=True, help="Ask again what is in the cache."),
        click.option("--no-cache", is_flag=True, help="Neither read nor write the cache."),
        click.option("--timeout", type=float, metavar="S", help="Seconds for a whole answer."),
        click.option("--concurrency", type=int, metavar="N", help="Requests at a time, at most."),
        click.option(
            "--call-tokens", type=int, metavar="N", help="Tokens of chunks in a call, at most."
        ),
        click.option(
            "--attempts",
            type=int,
            metavar="N",
            help="Times to ask about a chunk or claim, at most.",
        ),
        click.option(
            "--option",
            "options",
            multiple=True,
            callback=_as_options,
            metavar="NAME=VALUE",
            help="A field of the calls, such as temperature=0.2; null leaves it out.",
        ),
        click.option("--prompts", metavar="DIR", help="Prompts in the place of karat's."),
        click.option("--decompose", is_flag=True, default=None, help="Let the model list claims."),
        click.option(
            "--separate-calls",
            is_flag=True,
            default=None,
            help="Relevance, claims, entities: a call each.",
        ),
        click.option(
            "--votes", type=int, metavar="N", help="Ask this many times, and take the majority."
        ),
        click.option(
            "--base-url",
            metavar="URL",
            help="Where an OpenAI-compatible server is, for judge and embedder "
            "(default: KARAT_BASE_URL, OPENAI_BASE_URL, OpenAI).",
        ),
        click.option(
            "--judge",
            default="local",
            show_default=True,
            metavar="JUDGE",
            help="Who judges context_recall and the like: local, local:text, openai:MODEL, "
            "replay:FILE.",
        ),
    ):
        function = option(function)
    return function


def take(choices: dict[str, Any]) -> dict[str, Any]:
    """Take the options about judges out of all, and return what `evaluate` needs."""
    from karat.judges.find import find_judge  # noqa: PLC0415
    from karat.judges.settings import Judge  # noqa: PLC0415

    spec = choices.pop("judge")
    asked = {name: choices.pop(name) for name in FOR_MODELS}
    given = {name: value for name, value in asked.items() if value is not None}
    server: dict[str, Any] = {}
    remote = _embeds_remotely()
    if remote:  # by a model of the same server
        server = {"base_url": given.get("base_url")}
        if not Judge(spec).asks_model:
            given.pop("base_url", None)
    refresh, off = choices.pop("refresh"), choices.pop("no_cache")
    if refresh and off:
        raise click.UsageError("--refresh and --no-cache exclude each other")
    if refresh or off:
        given["cache"] = "refresh" if refresh else "off"
    judge = Judge(spec, **given) if given else spec
    if choices.pop("dry_run"):
        if remote:
            raise click.UsageError("--dry-run asks nobody, and so cannot embed with openai:MODEL")
        return {"judge": DryRunJudge(find_judge(judge)), **server}
    return {"judge": judge, **server}


def _embeds_remotely() -> bool:
    """Tell whether the command embeds texts with a server: `--embedder`, or a relation's model."""
    given = click.get_current_context().params
    return any("openai:" in str(given.get(name)) for name in ("embedder", "by", "measures"))


def for_all(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what was said about the judge; without the default, as saved results take none."""
    return {name: value for name, value in asked.items() if value not in (None, "local")}


def dry_run(
    files: list[str],
    measures: list[str] | None,
    chosen: Mapping[str, Any],
    how: str,
    output: str | None,
) -> bool:
    """Measure systems without comparing them, if only what that takes of a judge was asked for."""
    if not isinstance(chosen.get("judge"), DryRunJudge):
        return False
    from karat.comparison.systems import gather  # noqa: PLC0415
    from karat.evaluation.evaluate import EvaluationOptions  # noqa: PLC0415

    given = {
        name: value
        for name, value in chosen.items()
        if name in EvaluationOptions.__optional_keys__ - {"rel"}
    }
    gather(files, chosen["gold"], measures, rel=chosen.get("rel"), options=given)
    return write_dry_run(chosen, how, output)


def write_dry_run(choices: Mapping[str, Any], how: str, output: str | None) -> bool:
    """Write what the judge would have taken, if only that was asked for."""
    judge = choices.get("judge")
    if not isinstance(judge, DryRunJudge):
        return False
    options.write(judge.render(how), output)
    return True


class DryRunJudge:
    """In the place of a judge: remembers what it is asked, gives no verdict, and costs nothing."""

    def __init__(self, judge: JudgeProtocol) -> None:
        if not hasattr(judge, "dry_run"):
            raise click.UsageError(f"the judge {judge.name} asks nobody: --dry-run says nothing")
        self._judge = judge
        self._asked: dict[frozenset[str], list[Sample]] = {}
        self.name = judge.name

    def judge(
        self,
        samples: Sequence[Sample],
        aspects: frozenset[str],
        progress: Report | None = None,
    ) -> list[Judged]:
        """Fail every sample."""
        from karat.judges.verdicts import Judged, JudgeFailure, JudgeReason  # noqa: PLC0415

        del progress
        self._asked.setdefault(aspects, []).extend(samples)
        failure = JudgeFailure(JudgeReason.DRY_RUN)
        return [Judged(failures=dict.fromkeys(aspects, failure))] * len(samples)

    def about(self) -> dict[str, Any]:
        """Return nothing: nobody was asked."""
        return {}

    def render(self, how: str) -> str:
        """Return what all that was asked would take, as text or as JSON."""
        from karat.judges.llm.judge import total  # noqa: PLC0415

        seen: set[bytes] = set()
        parts: list[Forecast] = [
            self._judge.dry_run(samples, aspects, seen=seen)
            for aspects, samples in self._asked.items()
        ]
        estimate = total(parts)
        if how == "json":
            return json.dumps({"forecast": asdict(estimate)}, indent=1) + "\n"
        cost = "unknown, give --prices" if estimate.cost is None else f"{estimate.cost:.4f}"
        return (
            f"calls: {estimate.calls} ({estimate.stored} more are in the cache)\n"
            f"prompt tokens: about {estimate.prompt_tokens}\n"
            f"answer tokens: about {estimate.completion_tokens}\n"
            f"cost: {cost}\n"
            "nothing was asked\n"
        )


__all__ = ["DryRunJudge", "dry_run", "for_all", "judging", "take", "write_dry_run"]

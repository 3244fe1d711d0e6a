"""Options for judges, and what a command makes of them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import click

from findwell.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.progress import Report
    from findwell.judges.client.budget import Forecast
    from findwell.judges.client.protocol import Json
    from findwell.judges.verdicts import Judged, JudgeProtocol, Sample

SECRET_FIELD = re.compile(r"api_?key|secret|password|authorization", re.IGNORECASE)


def _as_fields(
    _: click.Context, __: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, Json] | None:
    """Read fields of a call: values are JSON, and words that are not JSON stand for themselves."""
    found: dict[str, Json] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not name or not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        found[name] = _without_visible_secrets(name, read)
    return found or None


def _as_headers(
    _: click.Context, __: click.Parameter, lines: tuple[str, ...]
) -> dict[str, str] | None:
    """Read headers; no message repeats what one carries, which may be a key."""
    found: dict[str, str] = {}
    for line in lines:
        from findwell.judges.client.endpoint import header_value  # noqa: PLC0415 - most calls have none

        name, colon, value = (part.strip() for part in line.partition(":"))
        if not name or not colon:
            raise click.BadParameter("a header is 'NAME: VALUE'")
        found[name] = header_value(name, value).reveal()
    return found or None


def _as_address(_: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """Refuse an address with a password, which others would see; the environment may hold it."""
    if url is not None and re.match(r"[^/]*//[^/@]*:[^/]*@", url):
        raise click.BadParameter(
            "it has a password, which other users can read in the list of processes; set "
            "FINDWELL_BASE_URL to the address instead",
            param=parameter,
        )
    return url


def _without_visible_secrets(name: str, value: Json) -> Json:
    """Return a field of a call; a key in it must be a reference, such as env:VARIABLE."""
    if isinstance(value, dict):
        return {key: _without_visible_secrets(key, each) for key, each in value.items()}
    if isinstance(value, str) and SECRET_FIELD.search(name):
        from findwell.judges.client.endpoint import referenced, visible_secret  # noqa: PLC0415

        found = referenced(value, f"field {name}")
        if found is None:
            raise visible_secret(f"the field {name}")
        return found.reveal()
    return value


def _as_object(_: click.Context, __: click.Parameter, text: str | None) -> dict[str, Json] | None:
    """Read a JSON object."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.BadParameter('not a JSON object, such as {"top_k": 20}')
    return {name: _without_visible_secrets(name, value) for name, value in found.items()}


_server = options.option_set(
    click.option(
        "--base-url",
        callback=_as_address,
        metavar="URL",
        help="Address of an OpenAI-compatible server, for judge and embedder "
        "(default: FINDWELL_BASE_URL, OPENAI_BASE_URL, OpenAI, or that of the provider).",
    ),
    click.option(
        "--votes",
        type=int,
        metavar="N",
        help="Ask this many times, and take the majority (default: 1).",
    ),
)
_calls = options.option_set(
    click.option(
        "--prompts", metavar="DIR", help="Folder of prompts to use instead of findwell's."
    ),
    click.option(
        "--language",
        metavar="CODE",
        help="Language of the prompts: en, de, fr, es, zh, ja, or auto, that of each question "
        "(default: en).",
    ),
    click.option(
        "--option",
        "options",
        multiple=True,
        callback=_as_fields,
        metavar="NAME=VALUE",
        help="Field of the calls, such as temperature=0.2; null leaves it out; may be repeated.",
    ),
    click.option(
        "--extra-body",
        callback=_as_object,
        metavar="JSON",
        help="Further fields of the calls, as a JSON object.",
    ),
    click.option(
        "--header",
        "headers",
        multiple=True,
        callback=_as_headers,
        metavar="'NAME: VALUE'",
        help="Header of the calls, for a gateway; a secret as 'NAME: env:VARIABLE' or 'NAME: "
        "file:PATH'; may be repeated.",
    ),
    click.option(
        "--batch",
        is_flag=True,
        default=None,
        help="Send the calls as batches: up to a day, half the price; killed and started again, it "
        "goes on.",
    ),
    click.option(
        "--attempts",
        type=int,
        metavar="N",
        help="How many times to ask about a chunk or claim, at most (default: 3).",
    ),
    click.option(
        "--call-tokens",
        type=int,
        metavar="N",
        help="How many tokens of chunks one call holds, at most (default: 32000).",
    ),
    click.option(
        "--concurrency",
        type=int,
        metavar="N",
        help="How many requests are under way at the same time, at most (default: 16).",
    ),
    click.option(
        "--timeout",
        type=float,
        metavar="S",
        help="How many seconds to wait for a whole answer (default: 120).",
    ),
    click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of answers."),
    click.option("--refresh", is_flag=True, help="Ask again even where the cache has an answer."),
    click.option(
        "--dry-run", is_flag=True, help="Ask no model; only estimate calls, tokens and cost."
    ),
    click.option("--max-calls", type=int, metavar="N", help="Stop before more calls than this."),
    click.option("--max-tokens", type=int, metavar="N", help="Stop before more tokens than this."),
    click.option(
        "--max-cost", type=float, metavar="MONEY", help="Stop before it costs more than this."
    ),
    click.option(
        "--prices",
        metavar="FILE|PROMPT,ANSWER",
        help="Prices of a million tokens: a TOML or JSON file of models, or two numbers.",
    ),
)
_asking = options.option_set(
    _server,
    click.option(
        "--ask",
        metavar="WAY",
        help="How a model is asked: matrix (all verdicts about a sample at once), pieces, single "
        "(one verdict, one word), or auto: as findwell judge-check says (default: matrix).",
    ),
    click.option(
        "--quotes",
        is_flag=True,
        default=None,
        help="With --ask single, also ask for a quote that proves each yes.",
    ),
    click.option(
        "--max-failures",
        type=float,
        metavar="SHARE",
        help="Stop after the first samples if more of the verdicts fail; 1 goes on (default: 0.2).",
    ),
    click.option(
        "--separate-calls",
        is_flag=True,
        default=None,
        help="Ask about relevance, claims and entities in separate calls.",
    ),
    click.option(
        "--decompose",
        is_flag=True,
        default=None,
        help="Let the model list claims and statements (default: they are sentences).",
    ),
    _calls,
)
JUDGES = (
    "local, local:text, openai:MODEL, ollama:MODEL, azure:DEPLOYMENT and other providers, "
    "replay:FILE"
)
judge_options = options.option_set(
    click.option(
        "--judge",
        metavar="JUDGE",
        help=f"Who judges context_recall and the like: {JUDGES}.",
    ),
    _asking,
)
# of commands that compare judges
several_judges_options = options.option_set(
    click.option(
        "--judge",
        "judges",
        multiple=True,
        metavar="JUDGE",
        help=f"Who judges: {JUDGES}; may be repeated, and the first is what others are compared "
        "with.",
    ),
    _asking,
)
check_options = options.option_set(_server, _calls)  # of what names the judge by an argument
# of commands that need a language model
model_options = options.option_set(
    click.option(
        "--judge",
        metavar="JUDGE",
        help="Who writes and checks: openai:MODEL, ollama:MODEL or another provider; local and "
        "others cannot.",
    ),
    _server,
    _calls,
)


def take(choices: dict[str, Any]) -> dict[str, Any]:
    """Take the options about judges out of all, and return what `evaluate` needs."""
    from findwell.judges.find import find_judge  # noqa: PLC0415
    from findwell.judges.settings import Judge  # noqa: PLC0415

    spec = choices.pop("judge")
    values = {each.name: choices.pop(each.name, None) for each in fields(Judge)}
    settings = {name: value for name, value in values.items() if value is not None}
    server: dict[str, Any] = {}
    remote = _embeds_remotely()
    if remote:  # by a model of the same server
        server = {"base_url": settings.get("base_url")}
        if spec is None or not Judge(spec).asks_model:
            settings.pop("base_url", None)
    refresh, off = choices.pop("refresh"), choices.pop("no_cache")
    if refresh and off:
        raise click.UsageError("--refresh and --no-cache exclude each other")
    if refresh or off:
        settings["cache"] = "refresh" if refresh else "off"
    judge = Judge(spec, **settings) if settings and spec is not None else spec
    if choices.pop("dry_run", False):
        if remote:
            raise click.UsageError("--dry-run asks no model, and so cannot embed with a server")
        judge = DryRunJudge(find_judge(judge))
    return {"judge": judge, **server}


def take_several(choices: dict[str, Any]) -> list[Any]:
    """Do as `take` for several judges; options about calls are for those that ask a model."""
    from findwell.judges.settings import Judge  # noqa: PLC0415

    specs = choices.pop("judges")
    if len(specs) < 2:
        return [take(choices | {"judge": next(iter(specs), None)})["judge"]]
    about_calls = {each.name for each in fields(Judge)} | {"refresh", "no_cache", "dry_run"}
    given = {name: value for name, value in choices.items() if name in about_calls}
    able = [spec for spec in specs if Judge(spec).asks_model] or specs  # or all turn them down
    mute = dict.fromkeys(about_calls)
    return [
        take({"judge": spec, **given, **({} if spec in able else mute)})["judge"] for spec in specs
    ]


def _embeds_remotely() -> bool:
    """Return whether texts are embedded by a server: `--embedder`, or the model of a relation."""
    chosen = click.get_current_context().params
    named = " ".join(str(chosen.get(name)) for name in ("embedder", "by", "measures"))
    if ":" not in named:
        return False
    from findwell.judges.client.providers import SPELLED  # noqa: PLC0415 - most scores need no server

    return bool(SPELLED.search(named))


def take_shared(choices: dict[str, Any]) -> dict[str, Any]:
    """Do as `take`, with one judge for all systems, so that a budget holds for all of them."""
    from findwell.judges.find import find_judge  # noqa: PLC0415

    taken = take(choices)
    if taken["judge"] is not None:  # a saved result needs none
        taken["judge"] = find_judge(taken["judge"])
    return {name: value for name, value in taken.items() if value is not None}


def dry_run(
    files: list[str],
    measures: list[str] | None,
    chosen: Mapping[str, Any],
    how: str,
    output: str | None,
) -> bool:
    """Measure systems without comparing them, if only an estimate was asked for, and write it."""
    if not isinstance(chosen.get("judge"), DryRunJudge):
        return False
    from findwell.evaluation.comparison.systems import gather  # noqa: PLC0415
    from findwell.evaluation.plan import PlanOptions  # noqa: PLC0415

    options_of = PlanOptions.__optional_keys__ - {"rel"}
    known = {name: value for name, value in chosen.items() if name in options_of}
    gather(files, chosen["gold"], measures, rel=chosen.get("rel"), options=known)
    return write_dry_run(chosen, how, output)


def write_dry_run(choices: Mapping[str, Any], how: str, output: str | None) -> bool:
    """Write what the judge would have taken, if only that was asked for."""
    judge = choices.get("judge")
    if not isinstance(judge, DryRunJudge):
        return False
    options.write(judge.render(how), output)
    return True


class DryRunJudge:
    """Replaces a judge: remembers what it is asked, gives no verdict, and costs nothing."""

    def __init__(self, judge: JudgeProtocol) -> None:
        if not hasattr(judge, "dry_run"):
            raise click.UsageError(f"the judge {judge.name} asks no model: --dry-run says nothing")
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
        from findwell.judges.verdicts import Judged, JudgeFailure, JudgeReason  # noqa: PLC0415

        del progress
        self._asked.setdefault(aspects, []).extend(samples)
        failure = JudgeFailure(JudgeReason.DRY_RUN)
        return [Judged(failures=dict.fromkeys(aspects, failure))] * len(samples)

    def about(self) -> dict[str, Any]:
        """Return nothing: no model was asked."""
        return {}

    def render(self, how: str) -> str:
        """Return what all that was asked would take, as text or as JSON."""
        from findwell.judges.llm.judge import total  # noqa: PLC0415

        seen: set[bytes] = set()
        parts: list[Forecast] = [
            self._judge.dry_run(samples, aspects, seen=seen)
            for aspects, samples in self._asked.items()
        ]
        return render_forecast(total(parts), how)


def render_forecast(estimate: Forecast, how: str) -> str:
    """Return an estimate as text or as JSON."""
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

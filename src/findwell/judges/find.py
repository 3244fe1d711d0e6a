"""Finds a judge: by a spec such as `local:text(relevance=0.6)`, settings, an object, or several.

Each kind of judge is imported only when it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from findwell.core.errors import OptionError, unknown
from findwell.core.spelling import read_parameters, split_parameters
from findwell.judges.settings import Judge

if TYPE_CHECKING:
    from findwell.judges.verdicts import JudgeProtocol

JUDGES = {
    "local": "shared words and MiniLM from findwell[semantic], no network",
    "local:text": "shared words only, nothing but the core",
    "openai:MODEL": "a model behind an OpenAI-compatible server, see docs/judging.md",
    "replay:FILE": "verdicts that were recorded in a file",
}
LOCAL = re.compile(r"local(:text)?\s*(?:\(([^()]*)\))?")
# what can be set: the scores from which a verdict is in favour, how entities and claims are found,
# and a file of labels that moves the threshold of relevance
SETTINGS: dict[str, float | str] = {"relevance": 0.5, "claims": 0.5, "statements": 0.5}
SETTINGS |= {"entities": "auto", "decompose": "auto", "labels": ""}


def find_judge(spec: object) -> JudgeProtocol:
    """Return the judge that a spec, settings, an object, a function or a list of these name.

    A function takes a sample and returns verdicts (`findwell.judges.replay`); several judges
    decide by majority (`findwell.judges.panel`).

    >>> find_judge("local:text(relevance=0.6)").name
    'local:text(relevance=0.6)'
    >>> find_judge("locl")
    Traceback (most recent call last):
    findwell.core.errors.OptionError: unknown judge 'locl'
      fix: did you mean local or vllm? (known: local, local:text, openai:MODEL, azure:DEPLOYMENT,
        anthropic:MODEL, gemini:MODEL, openrouter:MODEL, ollama:MODEL, vllm:MODEL, tgi:MODEL,
        lmstudio:MODEL, llamacpp:MODEL, litellm:MODEL, mistral:MODEL, groq:MODEL,
        together:MODEL, deepseek:MODEL, replay:FILE)
    """
    if isinstance(spec, str | Judge):
        return _from_settings(Judge(spec) if isinstance(spec, str) else spec)
    if hasattr(spec, "judge") and hasattr(spec, "about"):
        return cast("JudgeProtocol", spec)
    if callable(spec):
        from findwell.judges.replay import FunctionJudge  # noqa: PLC0415

        return FunctionJudge(spec)
    if isinstance(spec, Sequence) and spec:
        from findwell.judges.panel import PanelJudge  # noqa: PLC0415

        return PanelJudge([find_judge(each) for each in spec])
    raise OptionError(
        "no judge was named" if spec is None else f"{type(spec).__name__} is not a judge",
        fix=f"pass {', '.join(JUDGES)} or another provider, a findwell.Judge, a function, or an "
        "object with name, judge and about",
    )


def on_server(judge: object, base_url: str | None) -> tuple[object, str | None]:
    """Return a judge on the one server for judge and embedder, and where that server is.

    Either may name it: texts for a private server must not go anywhere else. Of several judges the
    nearest one names it.
    """
    server = _server_of(judge) if base_url is None else base_url
    if isinstance(judge, list | tuple):
        return [on_server(each, base_url)[0] for each in judge], server
    settings = Judge(judge) if isinstance(judge, str) else judge
    if not isinstance(settings, Judge) or not settings.asks_model:
        return judge, server
    own = settings.base_url
    return replace(settings, base_url=base_url if own is None else own), server


def _server_of(judge: object) -> str | None:
    """Return the server of a judge for the embedder, too; None if that finds it by itself."""
    several = judge if isinstance(judge, list | tuple) else getattr(judge, "judges", ())
    settings = Judge(judge) if isinstance(judge, str) else getattr(judge, "settings", judge)
    if isinstance(several, list | tuple) and several:
        from findwell.judges.client.endpoint import distance  # noqa: PLC0415

        return min(filter(None, map(_server_of, several)), key=distance, default=None)
    if not isinstance(settings, Judge) or not settings.asks_model:
        return None
    from findwell.judges.client.endpoint import SharedAddress, shared_address  # noqa: PLC0415

    own = settings.base_url
    return shared_address(settings.model) if own is None else SharedAddress(own)


def _from_settings(settings: Judge) -> JudgeProtocol:
    spec = settings.model.strip()
    kind, _, argument = (part.strip() for part in spec.partition(":"))
    if settings.asks_model and argument:
        from findwell.judges.llm.judge import LLMJudge  # noqa: PLC0415

        return LLMJudge(settings)
    local, recorded = LOCAL.fullmatch(spec), argument if kind == "replay" else ""
    if (changed := settings.changed()) and (local or recorded):
        raise OptionError(
            f"the judge {spec} takes no {', '.join(changed)}",
            fix="leave it out, or ask a language model: --judge openai:MODEL",
        )
    if local:
        return _local(local[1] is None, local[2] or "", spec)
    if recorded:
        from findwell.judges.replay import ReplayJudge  # noqa: PLC0415

        return ReplayJudge(recorded)
    judges = known_judges()
    known = next((each for each in judges if each.startswith(f"{kind}:") and kind != "local"), "")
    if kind and known:
        named = known.partition(":")[2].lower()
        raise OptionError(f"{kind} needs the name of a {named}: {known}")
    raise unknown("judge", spec, judges)


def known_judges() -> dict[str, str]:
    """Return how judges are spelled, with a word about each."""
    from findwell.judges.client.providers import ENTRIES  # noqa: PLC0415

    models = {entry.spelling: f"a model of {entry.title}" for entry in ENTRIES[1:]}
    *first, (last, recorded) = JUDGES.items()
    return dict(first) | models | {last: recorded}


def _local(model: bool, settings: str, spec: str) -> JudgeProtocol:
    from findwell.judges.local import LocalJudge  # noqa: PLC0415

    given = dict(split_parameters(settings, spec, OptionError))
    values = read_parameters("the judge local", given, SETTINGS, OptionError)
    ways = {name: values.pop(name, None) for name in ("entities", "decompose")}
    labels = values.pop("labels", "")
    judge = LocalJudge("minilm" if model else None, thresholds=values, **ways)
    if not labels:
        return judge
    from findwell.judges.cards.labels import load_labels, match_rate  # noqa: PLC0415

    return match_rate(judge, load_labels(labels), "relevance")

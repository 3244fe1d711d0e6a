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
    "local:text": "a smoke test: shared words only, nothing but the core",
    "openai:MODEL": "a model behind an OpenAI-compatible server, see docs/judging-providers.md",
    "reranker:MODEL": "a cross-encoder: a folder with an ONNX model, a name, or SERVICE:MODEL",
    "replay:FILE": "verdicts that were recorded in a file",
    "FILE.json": "a judge that labels have taught, see findwell judge teach",
}
LOCAL = re.compile(r"local(:text)?\s*(?:\(([^()]*)\))?")
# what can be set: the scores from which a verdict is in favour, how entities and claims are found
SETTINGS: dict[str, float | str] = {"relevance": 0.5, "claims": 0.5, "statements": 0.5}
SETTINGS |= {"entities": "auto", "decompose": "auto"}


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
        together:MODEL, deepseek:MODEL, reranker:MODEL, replay:FILE,
        FILE.json)
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
    if not isinstance(settings, Judge) or not settings.asks_server:
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
    if not isinstance(settings, Judge) or not settings.asks_server:
        return None
    from findwell.judges.client.endpoint import SharedAddress, shared_address  # noqa: PLC0415

    settings = settings.underlying
    own = settings.base_url
    if own is None and not settings.asks_model:
        from findwell.judges.reranker import split_reranker  # noqa: PLC0415

        service = split_reranker(settings.model.strip())
        return None if service is None else shared_address(settings.model, service[0].provider)
    return shared_address(settings.model) if own is None else SharedAddress(own)


def _from_settings(settings: Judge) -> JudgeProtocol:
    spec = settings.model.strip()
    if settings.is_taught:
        from findwell.judges.taught import TaughtJudge, Teaching  # noqa: PLC0415

        taught, inner = Teaching.load(spec), settings.underlying
        if inner.asks_server and inner.base_url is None:
            raise OptionError(
                f"{spec} names {taught.judge}, and a file does not decide where texts go",
                fix=f"if you agree, name the server: -J base_url={taught.endpoint}",
            )
        return TaughtJudge(find_judge(inner), taught)
    kind, _, argument = (part.strip() for part in spec.partition(":"))
    if settings.asks_model and argument:
        from findwell.judges.llm.judge import LLMJudge  # noqa: PLC0415

        return LLMJudge(settings)
    if kind == "reranker":
        from findwell.judges.reranker import RerankerJudge, find_scorer  # noqa: PLC0415

        return RerankerJudge(find_scorer(settings))
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
    first, last = list(JUDGES.items())[:-3], list(JUDGES.items())[-3:]
    return dict(first) | models | dict(last)


def _local(model: bool, settings: str, spec: str) -> JudgeProtocol:
    from findwell.judges.local import LocalJudge  # noqa: PLC0415

    given = dict(split_parameters(settings, spec, OptionError))
    values = read_parameters("the judge local", given, SETTINGS, OptionError)
    ways = {name: values.pop(name, None) for name in ("entities", "decompose")}
    return LocalJudge("minilm" if model else None, thresholds=values, **ways)

"""From a spec to a judge: `local:text(relevance=0.6)`, `openai:MODEL`, an object, several.

Each kind of judge is imported when it is asked for.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from karat.errors import OptionError, choose, nearest
from karat.spelling import read_parameters, split_parameters

if TYPE_CHECKING:
    from karat.judges.verdicts import Judge

JUDGES = {
    "local": "shared words and MiniLM from karat[semantic], no network",
    "local:text": "shared words only, nothing but the core",
    "openai:MODEL": "a model behind an OpenAI-compatible server, see docs/judging.md",
    "replay:FILE": "verdicts that were recorded in a file",
}
LOCAL = re.compile(r"local(:text)?\s*(?:\(([^()]*)\))?")
# what can be set: the scores from which a verdict is in favour, and how entities are found
SETTINGS = {"relevance": 0.5, "claims": 0.5, "statements": 0.5, "entities": "auto"}


def find_judge(spec: object, **options: Any) -> Judge:  # noqa: ANN401
    """Return the judge that a spec, an object, a function or a list of these names.

    A function takes a sample and returns verdicts (`karat.judges.function`); several judges decide
    by majority (`karat.judges.panel`). The options are for `openai:MODEL`, those of `openai_judge`.

    >>> find_judge("local:text(relevance=0.6)").name
    'local:text(relevance=0.6)'
    >>> find_judge("locl")
    Traceback (most recent call last):
    karat.errors.OptionError: unknown judge 'locl'
      fix: did you mean local? (known: local, local:text, openai:MODEL, replay:FILE)
    """
    if isinstance(spec, str):
        return _from_text(spec.strip(), options)
    if options:
        raise OptionError(
            f"the judge is an object, so {', '.join(options)} cannot be set here",
            fix="give the options where the judge is made",
        )
    if hasattr(spec, "judge") and hasattr(spec, "about"):
        return cast("Judge", spec)
    if callable(spec):
        from karat.judges.function import FunctionJudge  # noqa: PLC0415

        return FunctionJudge(spec)
    if isinstance(spec, Sequence) and spec:
        from karat.judges.panel import PanelJudge  # noqa: PLC0415

        return PanelJudge([find_judge(each) for each in spec])
    raise OptionError(
        f"{type(spec).__name__} is no judge",
        fix=f"pass {', '.join(JUDGES)}, a function, or an object with name, judge and about",
    )


def asked_at(
    base_url: str | None, judge: object, options: Mapping[str, Any] | None
) -> tuple[str | None, dict[str, Any]]:
    """Return the one server for judge and embedder, and the options of the judge with it.

    Either may name it: what is meant for a server of one's own must not go anywhere else.
    """
    given = dict(options or {})
    server = base_url or given.get("base_url")
    if server and isinstance(judge, str) and judge.strip().startswith("openai:"):
        given.setdefault("base_url", server)
    return server, given


def _from_text(spec: str, options: Mapping[str, Any]) -> Judge:
    kind, _, argument = spec.partition(":")
    local = LOCAL.fullmatch(spec)
    if local:
        return _local(local[1] is None, local[2] or "", spec, options)
    found = _FROM_ARGUMENT.get(kind.strip())
    if found is not None and argument.strip():
        return found(argument.strip(), **options)
    if found is not None:
        known = next(each for each in JUDGES if each.startswith(kind.strip()))
        raise OptionError(f"the judge {kind.strip()} of what?", fix=f"write {known}")
    suggestion = nearest(re.split(r"[:(]", spec)[0], (name.partition(":")[0] for name in JUDGES))
    raise OptionError(
        f"unknown judge {spec!r}", fix=f"{suggestion} (known: {', '.join(JUDGES)})".strip()
    )


def _local(model: bool, settings: str, spec: str, options: Mapping[str, Any]) -> Judge:
    from karat.judges.local import LocalJudge  # noqa: PLC0415

    _no_options(spec, options)
    given = dict(split_parameters(settings, spec, OptionError))
    values = read_parameters("the judge local", given, SETTINGS, OptionError)
    entities = values.pop("entities", None)
    return LocalJudge("minilm" if model else None, thresholds=values, entities=entities)


def _replay(path: str, **options: Any) -> Judge:  # noqa: ANN401
    from karat.judges.replay import ReplayJudge  # noqa: PLC0415

    _no_options("replay", options)
    return ReplayJudge(path)


def _openai(model: str, **options: Any) -> Judge:  # noqa: ANN401
    from karat.judges.llm.openai import openai_judge  # noqa: PLC0415

    known = inspect.signature(openai_judge).parameters
    for name in options:
        choose("option of a judge", name, list(known)[1:])
    return openai_judge(model, **options)


def _no_options(spec: str, options: Mapping[str, Any]) -> None:
    """Refuse what only a language model can be told."""
    if options:
        raise OptionError(
            f"the judge {spec} takes no {', '.join(options)}",
            fix="leave it out, or ask a language model: --judge openai:MODEL",
        )


_FROM_ARGUMENT: dict[str, Callable[..., Judge]] = {"openai": _openai, "replay": _replay}

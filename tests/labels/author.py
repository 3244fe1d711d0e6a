"""A model that writes questions by simple rules, and judges them by their words.

It reads a prompt as a model should. A question holds the words of the sentence that it quotes,
turned round where it is to be paraphrased; a list suffices if it holds all words of the question,
turned round or not. So tests can tell which questions are right.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from findwell.judges.settings import Judge
from tests.client.asking import HASTE, KEY
from tests.client.server import Reaction, chat
from tests.judges.model import read_prompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.client.server import Call, Server

KINDS = {
    "one question that the passage c1 answers. First": "single-hop",
    "in words of your own": "paraphrased",
    "only with both passages": "multi-hop",
    "that it does not answer": "unanswerable",
}


def corpus(documents: int = 12, sentences: int = 3) -> dict[str, str]:
    """Return documents whose sentences share few words."""
    return {
        f"doc{number}": " ".join(
            f"The vessel north{here} carries cargo{here} to harbour{here}."
            for here in (f"{number}x{each}" for each in range(sentences))
        )
        for number in range(documents)
    }


def words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3]


def kind_of(call: Call) -> str:
    """Return what a call asks to write; blank if it asks for a verdict."""
    if "You write questions" not in call.body["messages"][0]["content"]:
        return ""
    task = read_prompt(call.prompt).task
    return next(kind for phrase, kind in KINDS.items() if phrase in " ".join(task.split()))


def first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", text)[0]


def answer(call: Call) -> dict[str, Any]:
    """Write or judge, well."""
    read = read_prompt(call.prompt)
    kind = kind_of(call)
    quotes = {each: first_sentence(text) for each, text in read.chunks.items()}
    if not kind:
        asked = words(read.data["question"].replace("Which", ""))
        there = {word for text in read.chunks.values() for word in words(text)}
        missing = [word for word in asked if word not in there and word[::-1] not in there]
        found = [{"chunk": each, "quote": quotes[each]} for each in read.chunks]
        verdict = {"list": "all", "found": found, "reason": "words", "sufficient": not missing}
        return {"sufficiency": [verdict]}
    asked = [word for quote in quotes.values() for word in words(quote) if "x" in word]
    if kind == "unanswerable":
        return {"missing": "gold", "question": f"How much unobtainium: {' '.join(asked)}?"}
    if kind == "paraphrased":
        asked = [word[::-1] for word in asked]
    return {
        "quotes": [{"chunk": each, "quote": quote} for each, quote in quotes.items()],
        "answer": "so it is",
        "question": f"Which vessel {' '.join(asked)}?",
    }


def well(call: Call) -> Reaction:
    """Answer well."""
    return chat(json.dumps(answer(call)))


def spoilt(spoil: Callable[[Call, dict[str, Any]], Any]) -> Callable[[Call], Reaction]:
    """Answer well, but for what `spoil` makes of it: a changed object, a text, or a reaction."""

    def script(call: Call) -> Reaction:
        said = spoil(call, answer(call))
        if isinstance(said, Reaction):
            return said
        return chat(said if isinstance(said, str) else json.dumps(said))

    return script


def model_of(server: Server, **more: Any) -> Judge:
    given: dict[str, Any] = {"cache": "off", "retry": HASTE, "base_url": server.url, "key": KEY}
    return Judge("openai:some-model", **given | more)

"""A model that answers short questions by one word, and lists by lines, as a script for the server.

What it says depends on the data only. It knows nothing of JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.client.server import Reaction, chat
from tests.judges.model import first_words, grade, mentions, supports, words

if TYPE_CHECKING:
    from tests.client.server import Call

BLOCK = re.compile(r"<(\w+) (\d{6,})>\n(.*?)\n</\1 \2>\n", re.DOTALL)
SURE = 0.75


def read(prompt: str) -> tuple[dict[str, str], str]:
    """Return the pieces of data by name, several of one name joined, and the task."""
    data: dict[str, str] = {}
    position = 0
    while block := BLOCK.match(prompt, position):
        data[block[1]] = f"{data[block[1]]}\n{block[3]}" if block[1] in data else block[3]
        position = block.end()
    return data, prompt[position:]


def value_of(data: Mapping[str, str], task: str) -> tuple[int, bool]:
    """Return what is right, and whether it is a grade."""
    if "digit" in task:
        return grade(data["question"], data["chunk"]), True
    if "claim" in data:
        return int(bool(supports(data["claim"])(data["chunk"]))), False
    if "entity" in data:
        return int(bool(mentions(data["entity"])(data["chunk"]))), False
    if "statement" in data:
        return int(bool(words(data["question"]) & words(data["statement"]))), False
    if "together" in task:
        return int(words(data["question"]) <= words(data["chunk"])), False
    return int(grade(data["question"], data["chunk"]) > 0), False


def listed(data: Mapping[str, str]) -> str:
    names = re.findall(r"\b[A-ZÄÖÜ]\w+|\d{4}", data["reference"])
    return "\n".join(f"- {name}" for name in names) or "None."


def by_word(call: Call) -> Reaction:
    """Answer by text alone, as servers do that know no probabilities."""
    data, task = read(call.prompt)
    if "per line" in task:
        return chat(listed(data))
    if "Copy the passage" in task:
        return chat(f'"{first_words(data["chunk"])}"')
    value, graded = value_of(data, task)
    return chat(str(value) if graded else ["No.", "Yes."][value], finish="length")


def by_token(call: Call) -> Reaction:
    """Answer with probabilities: SURE of what is right, in two spellings, the rest spread."""
    answer = by_word(call)
    if not call.body.get("logprobs"):
        return answer
    data, task = read(call.prompt)
    value, graded = value_of(data, task)
    others = ["0", "1", "2", "3"] if graded else ["no", "yes"]
    right = others.pop(value)
    rest = (1 - SURE - 0.05) / len(others)
    chances = {right: SURE - 0.25, f" {right.upper() if not graded else right}": 0.25}
    return with_tokens(answer, [chances | dict.fromkeys(others, rest) | {"Maybe": 0.05}])


def with_tokens(answer: Reaction, places: list[dict[str, float]]) -> Reaction:
    """Add probabilities to an answer."""
    body: Any = json.loads(answer.body)
    content = []
    for chances in places:
        top = [{"token": text, "logprob": math.log(chance)} for text, chance in chances.items()]
        content.append({**top[0], "top_logprobs": top})
    body["choices"][0]["logprobs"] = {"content": content}
    return replace(answer, body=json.dumps(body).encode())


def only(script: Callable[[Call], Reaction], otherwise: Reaction) -> Callable[[Call], Reaction]:
    """Answer short questions, and spoil whatever asks for JSON."""
    return lambda call: otherwise if "response_format" in call.body else script(call)

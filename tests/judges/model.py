"""A model that answers prompts by simple rules, as a script for the test server.

It reads a prompt as a model should: data stand between marks with one number, and the task, fields
with their ids, comes after the last mark. What it says depends on the data only, so tests can tell
what is right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.client.server import Reaction, chat

if TYPE_CHECKING:
    from tests.client.server import Call

Said: TypeAlias = dict[str, Any]

BLOCK = re.compile(r"<(\S+) (\d{6,})>\n(.*?)\n</\1 \2>\n", re.DOTALL)
# in whatever language
ID = re.compile(
    r"\b([cke]\d+(?:\.s\d+)?)(?:(?: to | bis | à | a | 至 |～)([cke]\d+(?:\.s\d+)?))?", re.ASCII
)
TASKS = ("Task:", "Aufgabe:", "Tâche :", "Tarea:", "任务：", "課題：")


@dataclass
class Read:
    """A prompt, taken apart."""

    data: dict[str, str] = field(default_factory=dict)  # by name
    lists: dict[str, dict[str, str]] = field(default_factory=dict)
    task: str = ""

    @property
    def chunks(self) -> dict[str, str]:
        return {name: text for name, text in self.data.items() if re.fullmatch(r"c\d+", name)}

    @property
    def listed(self) -> dict[str, str]:
        """All units that stand in lists, by id."""
        return {each: text for texts in self.lists.values() for each, text in texts.items()}

    def ids(self, name: str) -> list[str]:
        """Return the ids that a part of the task names."""
        named = re.split(rf'^"{name}":', self.task, flags=re.MULTILINE)[1].partition("\n")[0]
        found = []
        for first, last in ID.findall(named):
            head, start = re.fullmatch(r"(.*?)(\d+)", first).groups()  # type: ignore[union-attr]
            end = re.search(r"\d+$", last)[0] if last else start  # type: ignore[index]
            found += [f"{head}{number}" for number in range(int(start), int(end) + 1)]
        return found


def read_prompt(prompt: str) -> Read:
    """Take a prompt apart; every piece of data is between marks, in order, without gaps."""
    read, position = Read(), 0
    while block := BLOCK.match(prompt, position):
        name, _, text = block.groups()
        read.data[name] = text
        lines = [line.partition(" ") for line in text.split("\n")]
        read.lists[name] = {
            each: rest for each, _, rest in lines if re.fullmatch(r"(k|e|c\d+\.s)\d+", each)
        }
        position = block.end()
    read.task = prompt[position:]
    assert read.task.startswith(tuple(f"\n{task}\n" for task in TASKS)), read.task[:200]
    return read


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3}


def answer(prompt: str) -> Said:
    """Answer all that a prompt asks for, well."""
    read = read_prompt(prompt)
    names = re.findall(r'^"(\w+)"', read.task, re.MULTILINE)
    return {name: PARTS[name](read) for name in names}


def grade(question: str, chunk: str) -> int:
    return min(len(words(question) & words(chunk)), 3)


def first_words(text: str) -> str:
    return " ".join(text.split()[:4])


def _relevance(read: Read) -> list[Said]:
    question = read.data["question"]
    return [
        {
            "chunk": each,
            "quote": first_words(read.data[each]) if grade(question, read.data[each]) else "",
            "grade": grade(question, read.data[each]),
        }
        for each in read.ids("relevance")
    ]


def _found(read: Read, holds: Callable[[str], str]) -> list[Said]:
    quotes = {each: holds(text) for each, text in read.chunks.items()}
    return [{"chunk": each, "quote": quote} for each, quote in quotes.items() if quote]


def _claims(read: Read) -> list[Said]:
    units = read.lists.get("claims", {})
    if "reference" in read.data:
        texts = re.split(r"(?<=[.!?。])\s*", read.data["reference"])
        return [text for text in texts if text.strip()]  # type: ignore[misc]
    return [
        {"claim": each, "found": _found(read, supports(units[each]))} for each in read.ids("claims")
    ]


def supports(claim: str) -> Callable[[str], str]:
    return lambda chunk: chunk if words(claim) <= words(chunk) else ""


def mentions(entity: str) -> Callable[[str], str]:
    return lambda chunk: entity if entity.casefold() in chunk.casefold() else ""


def _entities(read: Read) -> list[Any]:
    if "reference" in read.data:
        return re.findall(r"\b[A-ZÄÖÜ]\w+|\d{4}", read.data["reference"])
    units = read.lists["entities"]
    return [
        {"entity": each, "found": _found(read, mentions(units[each]))}
        for each in read.ids("entities")
    ]


def _statements(read: Read) -> list[Said]:
    question = words(read.data["question"])
    return [
        {"statement": each, "relevant": bool(question & words(read.listed[each]))}
        for each in read.ids("statements")
    ]


def _chunks(read: Read) -> list[Said]:
    return [
        {
            "chunk": each,
            "statements": [
                {"quote": text, "text": f"It says: {text}"}
                for text in re.split(r"(?<=\.)\s+", read.data[each])
            ],
        }
        for each in read.ids("chunks")
    ]


def _sufficiency(read: Read) -> list[Said]:
    """Say yes where all words of the question stand in the chunks, taken together."""
    question = words(read.data["question"])
    missing = question - {word for text in read.chunks.values() for word in words(text)}
    holding = _found(read, lambda text: first_words(text) if question & words(text) else "")
    reason = f"nothing about {', '.join(sorted(missing))}" if missing else "all of it is there"
    return [{"list": "all", "found": holding, "reason": reason, "sufficient": not missing}]


PARTS: dict[str, Callable[[Read], Any]] = {
    "relevance": _relevance,
    "claims": _claims,
    "entities": _entities,
    "statements": _statements,
    "chunks": _chunks,
    "sufficiency": _sufficiency,
}


def well(call: Call) -> Reaction:
    """Answer well."""
    return chat(json.dumps(answer(call.prompt)))


def spoilt(spoil: Callable[[Call, Said], Any]) -> Callable[[Call], Reaction]:
    """Answer well, but for what `spoil` makes of it: a changed object, a text, or a reaction."""

    def script(call: Call) -> Reaction:
        said = spoil(call, answer(call.prompt))
        if isinstance(said, Reaction):
            return said
        return chat(said if isinstance(said, str) else json.dumps(said))

    return script

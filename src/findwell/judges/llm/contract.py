"""What an answer must hold, and what is taken from one that does not hold it all.

Every chunk, item and part is answered once, by its id, in the form that the shape of its aspect
has. An id that is left out, answered twice or answered in another form has no verdict yet; ids
that nobody asked about are ignored. So a bad entry costs only its own verdict. A yes is proven by a
quote that is in the chunk, whatever its white space, case, quotation marks and dashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from findwell.judges.aspects import Aspect, VerdictShape, find_aspect
from findwell.judges.llm.parse import Unreadable, extract_object
from findwell.judges.llm.prompt_items import ALL, chunk_of
from findwell.judges.quotes import proves
from findwell.judges.verdicts import Verdict

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json
    from findwell.judges.llm.prompt_items import PromptItems

Cell: TypeAlias = tuple[str, str, str]  # the aspect, the id of what is judged, and by which chunk

TEXT: dict[str, Json] = {"type": "string"}


class Fault(StrEnum):
    """What is wrong with an answer or an entry of it."""

    NOT_JSON = "not a JSON object"
    NO_FIELD = "no such field"
    NO_ID = "an entry without an id"
    UNKNOWN = "an unknown id"
    TWICE = "an id answered twice"
    LEFT_OUT = "an id left out"
    WRONG_TYPE = "a value of the wrong type"
    OUT_OF_RANGE = "a grade out of range"
    NO_WORD = "an answer without the word that was asked for"
    NOT_THERE = "an item that is not in the reference"
    NOTHING = "no item of a text that has one"


class FaultError(ValueError):
    """An entry that holds no verdict."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(slots=True)
class ParsedAnswer:
    """The verdicts that an answer holds, and what was wrong with the rest."""

    verdicts: dict[Cell, Verdict] = field(default_factory=dict)
    wrong: dict[tuple[str, str], Fault] = field(default_factory=dict)  # ids without a verdict
    extra: Counter[Fault] = field(default_factory=Counter)  # entries that nobody asked for


def schema(aspects: Iterable[str]) -> dict[str, Json]:
    """Return the JSON schema of an answer; it is the same for all samples."""
    return object_of({name: array_of(object_of(_entry(find_aspect(name)))) for name in aspects})


def _entry(aspect: Aspect) -> dict[str, Json]:
    """Return the fields of an entry; quotes come first: the verdict is about what was found."""
    own: dict[str, Json] = {aspect.unit: TEXT}
    value: Json = {"type": "boolean"}
    if aspect.is_graded:
        value = {"type": "integer", "enum": [*aspect.grades]}
    match aspect.shape:
        case VerdictShape.CHUNKS:
            return {**own, "quote": TEXT, aspect.value: value}
        case VerdictShape.ITEMS:
            return {**own, "found": FOUND}
        case VerdictShape.PARTS:
            return {**own, aspect.value: value}
        case VerdictShape.LIST:
            return {**own, "found": FOUND, "reason": TEXT, aspect.value: value}


def example_entry(aspect: Aspect) -> dict[str, Json]:
    """Return an entry as a prompt shows it."""
    first = {
        VerdictShape.CHUNKS: "c1",
        VerdictShape.LIST: ALL,
        VerdictShape.PARTS: f"c1.{aspect.prefix}1",
    }
    found: Json = [{"chunk": "c1", "quote": "…"}]
    value: Json = aspect.highest if aspect.is_graded else True
    shown: dict[str, Json] = {"found": found, "quote": "…", "reason": "…", aspect.value: value}
    shown[aspect.unit] = first.get(aspect.shape, f"{aspect.prefix}1")
    return {name: shown[name] for name in _entry(aspect)}


def object_of(properties: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of an object with these properties and no others, as strict modes ask."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def array_of(items: Json) -> dict[str, Json]:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


FOUND = array_of(object_of({"chunk": TEXT, "quote": TEXT}))


def read_answer(
    content: str, wanted: Mapping[str, Sequence[str]], shown: Sequence[str], items: PromptItems
) -> ParsedAnswer:
    """Take the verdicts out of an answer: of the ids that were wanted, about the chunks shown."""
    parsed = ParsedAnswer()
    answer = extract_object(content)
    for name, ids in wanted.items():
        aspect = find_aspect(name)
        good, wrong = entries(answer, name, aspect.unit, ids, parsed.extra)
        parsed.wrong |= {(name, each): fault for each, fault in wrong.items()}
        for each, entry in good.items():
            try:
                verdicts = _read_entry(aspect, each, entry, shown, items)
            except FaultError as error:
                parsed.wrong[name, each] = error.fault
                continue
            parsed.verdicts |= {(name, each, chunk): verdict for chunk, verdict in verdicts.items()}
    return parsed


def list_in(answer: Mapping[str, Json] | Unreadable, name: str) -> list[Json]:
    """Return the list in a field of an answer."""
    if isinstance(answer, Unreadable):
        raise FaultError(Fault.NOT_JSON)
    listed = answer.get(name)
    if not isinstance(listed, list):
        raise FaultError(Fault.WRONG_TYPE if name in answer else Fault.NO_FIELD)
    return listed


def entries(
    answer: Mapping[str, Json] | Unreadable,
    name: str,
    key: str,
    ids: Sequence[str],
    extra: Counter[Fault],
) -> tuple[dict[str, dict[str, Json]], dict[str, Fault]]:
    """Return the entries of a field by their ids, and what is wrong with the other ids."""
    try:
        listed = list_in(answer, name)
    except FaultError as error:
        return {}, dict.fromkeys(ids, error.fault)
    found: dict[str, list[dict[str, Json]]] = {each: [] for each in ids}
    for entry in listed:
        each = entry.get(key) if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(each, str):
            extra[Fault.NO_ID] += 1
        elif each not in found:
            extra[Fault.UNKNOWN] += 1
        else:
            found[each].append(entry)
    good = {each: several[0] for each, several in found.items() if len(several) == 1}
    wrong = {
        each: Fault.TWICE if found[each] else Fault.LEFT_OUT for each in ids if each not in good
    }
    return good, wrong


def _read_entry(
    aspect: Aspect, each: str, entry: Mapping[str, Json], shown: Sequence[str], items: PromptItems
) -> dict[str, Verdict]:
    """Return the verdicts of an entry, by chunk."""
    match aspect.shape:
        case VerdictShape.CHUNKS:
            value, quote = _value(aspect, entry), quote_of(entry)
            return {each: _yes(value, [(quote, items.chunks[each])]) if value else Verdict(0)}
        case VerdictShape.PARTS:
            yes = _value(aspect, entry)
            return {chunk_of(each): _part(aspect, each, items) if yes else Verdict(0)}
        case VerdictShape.ITEMS:
            verdicts = dict.fromkeys(shown, Verdict(0))
            for chunk, quotes in _found(entry, shown).items():
                verdicts[chunk] = _yes(1, [(quote, items.chunks[chunk]) for quote in quotes])
            return verdicts
        case VerdictShape.LIST:
            value, reason = _value(aspect, entry), entry.get("reason")
            if not isinstance(reason, str | None):
                raise FaultError(Fault.WRONG_TYPE)
            found = _found(entry, shown)
            proofs = [(quote, items.chunks[at]) for at, quotes in found.items() for quote in quotes]
            return {each: _yes(value, proofs, reason or "") if value else Verdict(0, reason or "")}


def _value(aspect: Aspect, entry: Mapping[str, Json]) -> int:
    value = entry.get(aspect.value)
    if not isinstance(value, int) or isinstance(value, bool) is aspect.is_graded:
        raise FaultError(Fault.WRONG_TYPE)
    if value not in aspect.grades:
        raise FaultError(Fault.OUT_OF_RANGE)
    return int(value)


def _part(aspect: Aspect, each: str, items: PromptItems) -> Verdict:
    """Return the yes of a part: a sentence of the chunk is its own proof."""
    source = items.sources.get(aspect.name, {}).get(each)
    if source is not None:
        return _yes(1, [(source, items.chunks[chunk_of(each)])])
    return Verdict(1, quote=items.units[aspect.name][each])


def _found(entry: Mapping[str, Json], shown: Sequence[str]) -> dict[str, list[str]]:
    """Return the quotes from each chunk; several from one chunk are one yes."""
    listed = entry.get("found")
    if not isinstance(listed, list):
        raise FaultError(Fault.WRONG_TYPE)
    quotes: dict[str, list[str]] = {}
    for each in listed:
        chunk = each.get("chunk") if isinstance(each, dict) else None
        if not isinstance(each, dict) or not isinstance(chunk, str):
            raise FaultError(Fault.WRONG_TYPE)
        quote = quote_of(each)
        if chunk not in shown:
            raise FaultError(Fault.UNKNOWN)
        quotes.setdefault(chunk, []).append(quote)
    return quotes


def quote_of(entry: Mapping[str, Json]) -> str:
    """Return the quote, blank if there is none."""
    quote = entry.get("quote")
    if not isinstance(quote, str | None):
        raise FaultError(Fault.WRONG_TYPE)
    return quote or ""


def _yes(value: int, quotes: Sequence[tuple[str, str]], reason: str = "") -> Verdict:
    """Return a yes with the first quote that is in its chunk; unproven if none does."""
    for quote, text in quotes:
        if proves(quote, text):
            return Verdict(value, reason, quote)
    return Verdict(value, reason, quotes[0][0] if quotes else "", unproven=True)

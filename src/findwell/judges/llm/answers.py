"""What an answer holds: the JSON object that a model wrote, and the verdicts in it.

The object is found in prose and code fences. Tolerant of wrapping, strict about content: accepted
besides JSON is what can mean only one thing, a comma before a closing bracket, strings in single
quotes, Python's True, False and None, line breaks inside strings. Not accepted: two different
objects, a key given twice, numbers that are not finite, an object that ends too early; and an
object is never taken out of a broken one around it.

Every chunk, item and part is answered once, by its id, in the form that the shape of its aspect
has. An id that is left out, answered twice or answered in another form has no verdict yet; ids
that were not asked about are ignored. So a bad entry costs only its own verdict. A yes is proven by
a quote that is in the chunk, whatever its white space, case, quotation marks and dashes.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from findwell.judges.aspects import Aspect, VerdictShape, find_aspect
from findwell.judges.llm.prompts import chunk_of
from findwell.judges.quotes import covers, proves
from findwell.judges.verdicts import Judgement

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json
    from findwell.judges.llm.prompts import PromptItems

Cell: TypeAlias = tuple[str, str, str]  # the aspect, the id of what is judged, and by which chunk

THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
START = re.compile(r"""(\[\s*)?\{(?=\s*["'}])""")
TOKEN = re.compile(
    r"""[\s]+ | [{}\[\],:]"""
    r""" | "[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*' | [^\s{}\[\],:"']+""",
    re.DOTALL | re.VERBOSE,
)
QUOTED = re.compile(r"""\\(.)|(")""", re.DOTALL)
PYTHON = {"True": "true", "False": "false", "None": "null"}
NAMES = {list: "array", str: "string", bool: "boolean", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a text holds no answer."""

    reason: str


class _NotJsonError(ValueError):
    """A text that looks like an object and is not one."""


def extract_object(text: str) -> dict[str, Json] | Unreadable:
    """Return the one JSON object in a text.

    >>> extract_object('Sure! ```json\\n{"grade": 2,}\\n```')
    {'grade': 2}
    >>> extract_object('{"grade": 2, "quote": "the batt')
    Unreadable(reason='the object is cut off')
    """
    answer = THINKING.sub("", text, count=1).strip()
    try:
        value = DECODER.decode(answer)
    except (ValueError, RecursionError):
        try:
            return _wrapped(answer)
        except _NotJsonError as error:
            return Unreadable(str(error))
    if isinstance(value, dict):
        return value
    return Unreadable(f"a JSON {NAMES.get(type(value), 'number')}, not an object")


def _wrapped(text: str) -> dict[str, Json]:
    found: dict[str, Json] | None = None
    position = 0
    while start := START.search(text, position):
        if start[1]:
            raise _NotJsonError("a JSON array, not an object")
        strict, position = _rewrite(text, start.start())
        value = _load(strict)
        if found not in (None, value):
            raise _NotJsonError("several different JSON objects")
        found = value
    if found is None:
        raise _NotJsonError("no JSON object" if text else "an empty text")
    return found


def _rewrite(text: str, start: int) -> tuple[str, int]:
    """Return the object that starts here as strict JSON, and where it ends."""
    pieces: list[str] = []
    depth, position = 0, start
    while token := TOKEN.match(text, position):
        piece, position = token[0], token.end()
        if piece.isspace():
            continue
        if piece in "}]" and pieces[-1:] == [","] and pieces[-2] not in ("{", "[", ",", ":"):
            pieces.pop()
        pieces.append(_strict(piece))
        depth += (piece in "{[") - (piece in "}]")
        if not depth:
            return " ".join(pieces), position
    raise _NotJsonError("the object is cut off")


def _strict(piece: str) -> str:
    if piece[0] == "'":
        return f'"{QUOTED.sub(_requote, piece[1:-1])}"'
    return PYTHON.get(piece, piece)


def _requote(match: re.Match[str]) -> str:
    if match[1] == "'":
        return "'"
    return '\\"' if match[2] else match[0]


def _load(text: str) -> dict[str, Json]:
    try:
        value: dict[str, Json] = DECODER.decode(text)
    except _NotJsonError:
        raise
    except RecursionError:
        raise _NotJsonError("nested too deeply") from None
    except ValueError as error:
        raise _NotJsonError(f"not JSON: {error}") from None
    return value


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise _NotJsonError("a key is given twice")
    return value


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        _refuse(number)
    return value


def _refuse(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is not a number")


DECODER = json.JSONDecoder(  # not strict: line breaks in strings mean themselves
    strict=False, object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_refuse
)


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
    FRAGMENT = "a part of a claim"


class FaultError(ValueError):
    """An entry that holds no verdict."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(slots=True)
class ParsedAnswer:
    """The verdicts that an answer holds, and what was wrong with the rest."""

    verdicts: dict[Cell, Judgement] = field(default_factory=dict)
    wrong: dict[tuple[str, str], Fault] = field(default_factory=dict)  # ids without a verdict
    extra: Counter[Fault] = field(default_factory=Counter)  # entries that were not asked for


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
) -> dict[str, Judgement]:
    """Return the verdicts of an entry, by chunk."""
    match aspect.shape:
        case VerdictShape.CHUNKS:
            value, quote = _value(aspect, entry), quote_of(entry)
            return {each: _yes(value, [(quote, items.chunks[each])]) if value else Judgement(0)}
        case VerdictShape.PARTS:
            yes = _value(aspect, entry)
            return {chunk_of(each): _part(aspect, each, items) if yes else Judgement(0)}
        case VerdictShape.ITEMS:
            verdicts = dict.fromkeys(shown, Judgement(0))
            for chunk, quotes in _found(entry, shown).items():
                proofs = [(quote, items.chunks[chunk]) for quote in quotes]
                verdicts[chunk] = _yes(1, proofs, claim=items.units[aspect.name][each])
            return verdicts
        case VerdictShape.LIST:
            value, reason = _value(aspect, entry), entry.get("reason")
            if not isinstance(reason, str | None):
                raise FaultError(Fault.WRONG_TYPE)
            found = _found(entry, shown)
            proofs = [(quote, items.chunks[at]) for at, quotes in found.items() for quote in quotes]
            return {
                each: _yes(value, proofs, reason or "") if value else Judgement(0, reason or "")
            }


def _value(aspect: Aspect, entry: Mapping[str, Json]) -> int:
    value = entry.get(aspect.value)
    if not isinstance(value, int) or isinstance(value, bool) is aspect.is_graded:
        raise FaultError(Fault.WRONG_TYPE)
    if value not in aspect.grades:
        raise FaultError(Fault.OUT_OF_RANGE)
    return int(value)


def _part(aspect: Aspect, each: str, items: PromptItems) -> Judgement:
    """Return the yes of a part: a sentence of the chunk is its own proof."""
    source = items.sources.get(aspect.name, {}).get(each)
    if source is not None:
        return _yes(1, [(source, items.chunks[chunk_of(each)])])
    return Judgement(1, quote=items.units[aspect.name][each])


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


def _yes(
    value: int, quotes: Sequence[tuple[str, str]], reason: str = "", claim: str = ""
) -> Judgement:
    """Return a yes with the first quote that is in its chunk; unproven if none is.

    Quotes for a `claim` prove no number that they leave out.
    """
    there = [(quote, text) for quote, text in quotes if proves(quote, text)]
    if there and covers([quote for quote, _ in there], there[0][1], claim):
        return Judgement(value, reason, there[0][0])
    return Judgement(value, reason, (there or [*quotes, ("", "")])[0][0], unproven=True)

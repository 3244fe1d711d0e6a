"""Names and numbers in a text by rules: capital letters and digits, no model.

Good for English and languages that capitalise names only; German nouns all look like names, and
scripts without capitals have none but Japanese words in katakana.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from karat.judges.local.terms import FUNCTION_WORDS, is_common

NUMBER = re.compile(
    r"(?<![\w.,])[$€£¥₹]?\s?\d+(?:[.,:]\d+)*"
    r"(?:\s?(?:%|percent\b|per\scent\b)|[ -](?:thousand|million|billion|trillion)\b)?(?!\w)",
    re.IGNORECASE,
)
TOKEN = re.compile(r"\w+(?:[-'’.&]\w+)*")
KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}(?:・[\u30a1-\u30fa\u30fc]{2,})*")
BREAK = re.compile(r"[.!?:;\n\"“”(){}\[\]|•]|--")  # between two words: no name goes on there
ENDS = re.compile(r"[.!?:\n\"“•]")  # between two words: a sentence may begin after it
_BETWEEN = "of the de la le les van von der den del della da di do dos das du y el al bin ibn"
PARTICLES = frozenset(_BETWEEN.split())
ANSWERS = re.compile(r"\b(?:yes|no|true|false|none|unknown)\b", re.IGNORECASE)
POSSESSIVE = re.compile(r"['’]s?$")


def numbers_of(text: str) -> Iterator[tuple[int, int]]:
    """Go through the places of numbers, with their currency, percent sign or scale."""
    for match in NUMBER.finditer(text):
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        yield start, match.end()


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
        all(word[0].isupper() for word in TOKEN.findall(text)) and ANSWERS.search(text) is None
    )
    for match in TOKEN.finditer(text):
        between = text[before : match.start()]
        before = match.end()
        word = match[0]
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
    if not word[0].isupper():
        return any(letter.isupper() for letter in word)  # iPhone, eBay
    plain = POSSESSIVE.sub("", word)
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
        yield start, end - len(text[start:end]) + len(POSSESSIVE.sub("", text[start:end]))

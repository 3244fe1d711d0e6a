"""Terms and their weights: what counts of a text when the local judge looks for shared words.

A term is a word without case, accents and the commonest endings of its language; scripts without
spaces give pairs of neighbouring characters. A term weighs 0 to 100: words that carry no meaning of
their own nothing, the 2,000 commonest words of English (`common_words.txt`, in the order of BERT's
vocabulary, names capitalised) little, all others everything. The weights are fixed, so what a text
weighs never depends on the texts next to it, and whole, so that sums never depend on their order.
"""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Sequence
from importlib import resources
from itertools import groupby, pairwise
from typing import cast

from findwell.core.frames import pl
from findwell.core.texts.languages import ENGLISH, known, without_accents
from findwell.core.texts.words import APOSTROPHE, UNSPACED, words

RARE = 100  # the weight of a word that is not common
SHORT = 50  # of an unknown word of two or three letters: in most languages they mean little
LEAST = 5
MIXED = 30  # of a pair with one kana: mostly the end of a word
SPREAD = 2000  # a word this many times rarer than the tenth commonest word weighs RARE
ENDINGS = ("ing", "ed", "ly")
FUNCTION_WORDS = known(ENGLISH).words
LETTER = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f"
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\U00020000-\U0003ffff]"
)
TYPOGRAPHIC = "“”‘–—…•·°×€£\u00a0"  # that a word never holds; ’ may stand inside of one
POSSESSIVE = re.compile(r"'s\b")
LETTERS = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() and byte < 128 else ord(" ")
    for byte in range(256)
)
WRITTEN_OUT = re.compile(r"ae|oe|(?<![aeq])ue")
HIRAGANA = re.compile("[\u3040-\u309f]+")


def with_units(text: str) -> str:
    """Write the units behind numbers in one way.

    >>> [with_units(text) for text in ("100 °C", "100°C", "100 degrees Celsius", "3 m", "a metre")]
    ['100 Celsius', '100 Celsius', '100 Celsius', '3 m', 'a metre']
    """
    forms, pattern = _units()
    return pattern.sub(lambda found: f"{found[1]} {forms[found[2].lower()]}", text)


@functools.cache
def _units() -> tuple[dict[str, str], re.Pattern[str]]:
    """Return how each unit is compared, and where one stands behind a number."""
    listed = [entry.split() for entry in word_lists()["units"]]
    forms = {form.replace("_", " "): unit for unit, *others in listed for form in others}
    ways = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    number = r"(\d(?:[ -](?:thousand|million|billion|trillion))?)"
    return forms, re.compile(rf"{number}[\s-]?({ways})(?!\w)", re.IGNORECASE)


def words_of(texts: Sequence[str], language: str = ENGLISH) -> list[list[str]]:
    """Return the words of texts as `findwell.core.texts.words` has them; without spaces, in pairs.

    Texts of plain letters, which most are, need no library for it.

    >>> words_of(["Brazil’s 2nd-largest city", "東京都"])
    [['brazil', '2nd', 'largest', 'city'], ['東京', '京都']]
    """
    elided = known(language).elided is not None
    texts = list(map(with_units, texts))
    found = [None if elided else _plain_words(text) for text in texts]
    rest = [number for number, listed in enumerate(found) if listed is None]
    if rest:
        column = column_of([texts[number] for number in rest]).alias("word")
        table = _words(column.to_frame().with_row_index("text"), language)
        for number in rest:
            found[number] = []
        for place, word in zip(table["text"].to_list(), table["word"].to_list(), strict=True):
            cast("list[str]", found[rest[place]]).append(word)
    return cast("list[list[str]]", found)


def _plain_words(text: str) -> list[str] | None:
    """Return the words of a text in ASCII but for its punctuation; None of any other."""
    if not text.isascii():
        for mark in TYPOGRAPHIC:
            if mark in text:
                text = text.replace(mark, " ")
        text = text.replace("’", "'")
        if not text.isascii():
            return None
    if "'" in text:
        text = APOSTROPHE.sub("", POSSESSIVE.sub("", text))
    elif '"' in text:
        text = APOSTROPHE.sub("", text)
    return text.encode("ascii").translate(LETTERS).decode("ascii").split()


def content_terms(texts: Sequence[str], language: str = ENGLISH) -> list[frozenset[str]]:
    """Return for each text the terms that carry a meaning of their own.

    >>> [sorted(terms) for terms in content_terms(["The capitals of Brazil", "of the"])]
    [['brazil', 'capital'], []]
    """
    found = []
    for listed in words_of(texts, language):
        terms = [term_and_weight(word, language) for word in listed]
        found.append(frozenset(term for term, weight in terms if weight))
    return found


def column_of(texts: Sequence[str]) -> pl.Series:
    """Return texts as a column; half a surrogate pair, which UTF-8 cannot write, becomes a `?`."""
    try:
        return pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:
        readable = [text.encode(errors="replace").decode() for text in texts]
        return pl.Series(readable, dtype=pl.String)


def _words(texts: pl.DataFrame, language: str) -> pl.DataFrame:
    """Return the words of texts, one per row; where a script has no spaces, pairs of characters."""
    text = pl.col("word")
    if (elided := known(language).elided) is not None:
        texts = texts.with_columns(text.str.replace_all(f"(?i){elided.pattern}", " "))
    unspaced = texts.filter(text.str.contains(UNSPACED))
    tables = [texts.filter(~text.str.contains(UNSPACED)), unspaced] if len(unspaced) else [texts]
    parts = [
        table.with_columns(
            words(table["word"].str.replace_all(r"['’]s\b", ""), "plain").alias("word")
        )
        for table in tables
    ]
    if len(unspaced):
        pairs = [_in_pairs(found) for found in parts[1]["word"].to_list()]
        parts[1] = parts[1].with_columns(word=pl.Series(pairs, dtype=pl.List(pl.String)))
    filled = pl.concat(parts).filter(pl.col("word").list.len() > 0)
    return filled.with_columns(pl.col("text").cast(pl.Int64)).explode("word").sort("text")


def _in_pairs(characters: list[str]) -> list[str]:
    """Join each character of a script without spaces with its neighbour.

    >>> _in_pairs(["in", "東", "京", "都", "5"])
    ['in', '東京', '京都', '5']
    """
    joined: list[str] = []
    for unspaced, run in groupby(characters, key=lambda word: bool(LETTER.match(word))):
        letters = list(run)
        if unspaced and len(letters) > 1:
            letters = [first + second for first, second in pairwise(letters)]
        joined += letters
    return joined


@functools.lru_cache(maxsize=1 << 17)
def term_and_weight(word: str, language: str = ENGLISH) -> tuple[str, int]:
    """Return the term that a word is counted as, and its weight.

    >>> [term_and_weight(word) for word in ("the", "cities", "brasília", "e14", "ist")]
    [('the', 0), ('city', 30), ('brasilia', 100), ('e14', 100), ('ist', 50)]
    >>> [term_and_weight(word, "de") for word in ("städte", "e14", "ist")]
    [('stad', 100), ('e14', 100), ('ist', 0)]
    """
    plain = without_accents(word)
    if language != ENGLISH and known(language).inflects:
        if language == "de":  # umlauts that are written out, as in `Kuendigung`
            plain = WRITTEN_OUT.sub(lambda found: found[0][0], plain)
        term = known(language).stem(plain) if plain.isalpha() else plain
        return term, 0 if word in known(language).words else _usual(word)
    term = _stem(plain) if plain.isascii() and plain.isalpha() else plain
    if word in FUNCTION_WORDS:
        return term, 0
    if HIRAGANA.search(word):  # endings and particles
        return term, LEAST if HIRAGANA.fullmatch(word) else MIXED
    if rank := _ranks().get(term, 0):
        return term, max(LEAST, round(RARE * math.log(rank / 10) / math.log(SPREAD)))
    return term, _usual(word)


def _usual(word: str) -> int:
    """Return the weight of a word that no list has."""
    return SHORT if len(word) <= 3 and word.isalpha() and word.isascii() else RARE


def is_common(word: str) -> bool:
    """Tell whether a word without capitals is one of the commonest, in any form, and no name."""
    return word in FUNCTION_WORDS or (_stem(word) in _ranks() and word not in _common_names())


@functools.cache
def word_lists() -> dict[str, list[str]]:
    """Return the lists of `words.toml` by name, as the rules of this judge need them."""
    file = resources.files("findwell.judges.local") / "words.toml"
    lists = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        name: given if isinstance(given, list) else given.split() for name, given in lists.items()
    }


@functools.cache
def _ranks() -> dict[str, int]:
    """Return the terms of the commonest words and their places in the order."""
    ranks: dict[str, int] = {}
    for place, word in enumerate(_listed(), start=1):
        ranks.setdefault(_stem(word.lower()), place)
    return ranks


@functools.cache
def _common_names() -> frozenset[str]:
    return frozenset(word.lower() for word in _listed() if not word.islower())


def _listed() -> list[str]:
    folder = resources.files("findwell.judges.local")
    return folder.joinpath("common_words.txt").read_text(encoding="utf-8").split()


def _stem(word: str) -> str:
    """Take the commonest endings of English off a word.

    >>> [_stem(word) for word in ("films", "parties", "boxes", "stopped", "scoring", "glass")]
    ['film', 'party', 'box', 'stop', 'scor', 'glass']
    """
    if len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("es") and len(word) > 4 and word[-3] in "sxzo":
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls"
            word = word[:-1] if doubled else word
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word

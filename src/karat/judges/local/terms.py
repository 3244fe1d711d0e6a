"""What of a text counts when a judge without understanding looks for shared words.

A term is a word without case, accents and the commonest English endings; scripts without spaces
give pairs of neighbouring characters. A term weighs 0 to 100: words that carry no meaning of their
own nothing, the 2,000 commonest words of English (`common_words.txt`, in the order of BERT's
vocabulary, names capitalised) little, all others everything. The weights are fixed, so what a text
weighs never depends on the texts beside it, and whole, so that sums never depend on their order.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Sequence
from importlib import resources
from itertools import groupby, pairwise

import polars as pl

from karat.match.words import UNSPACED, words

RARE = 100  # the weight of a word that is not common
SHORT = 50  # of an unknown word of two or three letters: in most languages they mean little
LEAST = 5
SPREAD = 2000  # so much rarer than the tenth commonest word weighs RARE
ENDINGS = ("ing", "ed", "ly")
_EMPTY = (
    "a about an and are as at be been being but by can could did do does doing for from had has "
    "have he her hers him his how i if in into is it its just may me might mine must my no nor not "
    "of on or our ours shall she should so some such than that the their theirs them then there "
    "these they this those to too us was we were what when where whether which while who whom "
    "whose why will with would you your yours"
)
FUNCTION_WORDS = frozenset(_EMPTY.split())
LETTER = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f"
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\U00020000-\U0003ffff]"
)
HIRAGANA = re.compile("[\u3040-\u309f]+")


def terms_of(texts: Sequence[str]) -> pl.DataFrame:
    """Return the terms of texts in their order: number of the text, number of the term, weight.

    The number of a term means something only inside the table.

    >>> terms_of(["The capitals of Brazil", "brazil’s capital?"]).rows()
    [(0, 0, 0), (0, 1, 59), (0, 2, 0), (0, 3, 100), (1, 3, 100), (1, 1, 59)]
    """
    table = _words(column_of(texts).alias("word").to_frame().with_row_index("text"))
    distinct = table["word"].unique(maintain_order=True)
    known = [term_and_weight(word) for word in distinct]
    numbers: dict[str, int] = {}
    lexicon = pl.DataFrame(
        {
            "word": distinct,
            "term": [numbers.setdefault(term, len(numbers)) for term, _ in known],
            "weight": [weight for _, weight in known],
        },
        schema={"word": pl.String, "term": pl.Int64, "weight": pl.Int64},
    )
    return table.join(lexicon, on="word", maintain_order="left").drop("word")


def column_of(texts: Sequence[str]) -> pl.Series:
    """Return texts as a column; half a surrogate pair, which UTF-8 cannot write, becomes a `?`."""
    try:
        return pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:
        readable = [text.encode(errors="replace").decode() for text in texts]
        return pl.Series(readable, dtype=pl.String)


def _words(texts: pl.DataFrame) -> pl.DataFrame:
    """Return the words of texts, a row each; where a script has no spaces, pairs of characters."""
    text = pl.col("word")
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
def term_and_weight(word: str) -> tuple[str, int]:
    """Return the term that a word is counted as, and its weight.

    >>> [term_and_weight(word) for word in ("the", "cities", "brasília", "e14", "ist")]
    [('the', 0), ('city', 30), ('brasilia', 100), ('e14', 100), ('ist', 50)]
    """
    plain = without_accents(word)
    term = _stem(plain) if plain.isascii() and plain.isalpha() else plain
    if word in FUNCTION_WORDS:
        return term, 0
    if HIRAGANA.fullmatch(word):  # endings and particles
        return term, LEAST
    if rank := _ranks().get(term, 0):
        return term, max(LEAST, round(RARE * math.log(rank / 10) / math.log(SPREAD)))
    return term, SHORT if len(word) <= 3 and word.isalpha() and word.isascii() else RARE


def is_common(word: str) -> bool:
    """Tell whether a word without capitals is one of the commonest, in any form, and no name."""
    return word in FUNCTION_WORDS or (_stem(word) in _ranks() and word not in _common_names())


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
    folder = resources.files("karat.judges.local")
    return folder.joinpath("common_words.txt").read_text(encoding="utf-8").split()


def without_accents(word: str) -> str:
    """Take accents and vowel points off letters, but not what makes another letter of them."""
    if word.isascii():
        return word
    marks = unicodedata.normalize("NFD", word)
    accents = (ord(mark) for mark in set(marks) if _is_accent(unicodedata.combining(mark)))
    return unicodedata.normalize("NFC", marks.translate(dict.fromkeys(accents)))


def _is_accent(combining: int) -> bool:
    """Tell by its combining class; 7 to 9 and 103 to 130 are letters of Asian scripts."""
    return 10 <= combining <= 35 or combining >= 200


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

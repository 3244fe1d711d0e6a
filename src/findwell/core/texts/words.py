"""Named text policies: which parts of a text count when texts are compared.

`plain`, findwell's own, sees through what re-typing, re-encoding and re-flowing change: Unicode
compatibility forms (NFKC), case (full case folding), invisible characters (joiners, soft hyphens,
direction marks, the Arabic kashida), punctuation and symbols, whitespace. What is left are letters
with their marks, and numbers. An apostrophe inside a word vanishes (`don’t` is `dont`), all other
punctuation parts words (`3.14` is `3 14`, not `314`). Vowel marks and accents count.

`raw` takes the text as it is.

A text with nothing left is "" under `plain`: a line of dashes, "…", an emoji. Two such texts are
not a match: code that compares tidied texts must treat "" as equal to nothing, not even to "".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from findwell.core.errors import choose
from findwell.core.frames import pl

Column: TypeAlias = "Callable[[pl.Series], pl.Series]"

INVISIBLE_CHARACTER = r"[\p{Cf}\p{Default_Ignorable_Code_Point}]"
KASHIDA = "\u0640"  # stretches an Arabic word, means nothing
# of ' and ’ inside words, and of the quotes inside Hebrew acronyms; the search is fast as it begins
# with one set of characters
APOSTROPHE = re.compile(r"['’ʼ׳\"״](?:(?<=[א-ת].)(?=[א-ת])|(?<=[^\W\d_]['’ʼ׳])(?=[^\Wʼ]))")
NO_WORD = r"[^\p{L}\p{M}\p{N} ]+"
LOST_MARKS = r"(^| )\p{M}+"  # their letter was a space or a symbol
OTHER_SPACE = r"[\s\x1c-\x1f&&[^ ]]"  # what str.split() takes for a space
# scripts written without spaces between words; Korean has spaces, Tibetan parts its syllables
UNSPACED = (
    r"([\p{Han}\p{Hiragana}\p{Katakana}\x{30FC}\p{Bopomofo}\p{Yi}\p{Tangut}\p{Nushu}"
    r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}"
    r"\p{Javanese}\p{Balinese}]\p{M}*)"
)


@dataclass(frozen=True, slots=True)
class TextPolicy:
    """How texts are compared: as strings (`tidy`) and as lists of words (`words`)."""

    about: str
    tidy: Column
    words: Column


def tidy(texts: pl.Series, policy: str) -> pl.Series:
    """Return what counts of each text; equal texts are worked on once, null stays null.

    >>> tidy(pl.Series(["“Don’t  PANIC!”", "—"]), "plain").to_list()
    ['dont panic', '']
    """
    return _once(texts.cast(pl.String), _policy(policy).tidy)


def words(texts: pl.Series, policy: str) -> pl.Series:
    """Return the list of words of each text; a text without words, or null, has an empty list.

    Under `raw` words are separated by white space. Under `plain` they are the words of the tidied
    text, and each character of a script without spaces is a word, together with its marks.

    >>> words(pl.Series(["Don’t PANIC, 東京!"]), "plain").to_list()
    [['dont', 'panic', '東', '京']]
    >>> words(pl.Series(["Don’t PANIC, 東京!"]), "raw").to_list()
    [['Don’t', 'PANIC,', '東京!']]
    """
    return _policy(policy).words(texts.cast(pl.String).fill_null(""))


def _policy(name: str) -> TextPolicy:
    return TEXTS[choose("text policy", name, TEXTS)]


def _once(texts: pl.Series, change: Column) -> pl.Series:
    distinct = texts.unique(maintain_order=True)
    if len(distinct) == len(texts):
        return change(texts)
    return texts.replace_strict(distinct, change(distinct), return_dtype=pl.String)


def _plain(texts: pl.Series) -> pl.Series:
    visible = texts.str.replace_all(INVISIBLE_CHARACTER, "")
    folded = pl.Series(texts.name, [_fold(text) for text in visible], dtype=pl.String)
    return _single_spaces(folded.str.replace_all(NO_WORD, " ").str.replace_all(LOST_MARKS, " "))


def _fold(text: str | None) -> str | None:
    """Normalise, fold case, and drop what has no meaning inside words."""
    if text is None or text.isascii():
        return text and APOSTROPHE.sub("", text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold().replace(KASHIDA, "")
    return unicodedata.normalize("NFKC", APOSTROPHE.sub("", folded))


def _single_spaces(texts: pl.Series) -> pl.Series:
    return texts.str.replace_all(" {2,}", " ").str.strip_chars(" ")


def _plain_words(texts: pl.Series) -> pl.Series:
    return _parts(_plain(texts).str.replace_all(UNSPACED, " $1 "))


def _raw_words(texts: pl.Series) -> pl.Series:
    return _parts(texts.str.replace_all(OTHER_SPACE, " "))


def _parts(texts: pl.Series) -> pl.Series:
    text = pl.col("text")
    words = pl.when(text == "").then(pl.lit([], pl.List(pl.String))).otherwise(text.str.split(" "))
    return pl.DataFrame({"text": _single_spaces(texts)}).select(words).to_series()


TEXTS: dict[str, TextPolicy] = {
    "plain": TextPolicy(
        "letters and numbers: NFKC, case folded, no punctuation, single spaces",
        _plain,
        _plain_words,
    ),
    "raw": TextPolicy(
        "the text as it is; words are separated by white space", lambda texts: texts, _raw_words
    ),
}

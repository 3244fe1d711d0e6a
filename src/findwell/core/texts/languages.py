"""Which language a text is in, by its script and its commonest words; many texts at once.

It decides what to leave out of a question, and shows when a model that was trained on English is
given something else. Short texts in Latin letters may have no word that a language is recognised
by; they are taken for English. What is known of each language is a table, `languages.toml`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from findwell.core.errors import choose
from findwell.core.frames import pl

ENGLISH = "en"
MIN_EVIDENCE = (
    0.75  # evidence for another language; a word that only it has is 1, one of two 0.5, …
)
READ = 300  # characters of a text that are looked at
OTHER_LETTER = r"[\p{L}--\p{Latin}]"
# scripts, and the language that a text in them is taken for; kana before Han, which Japanese shares
SCRIPTS = {
    r"[\p{Hiragana}\p{Katakana}]": "ja",
    r"\p{Hangul}": "ko",
    r"\p{Han}": "zh",
    r"\p{Thai}": "th",
    r"\p{Cyrillic}": "ru",
    r"\p{Greek}": "el",
    r"\p{Arabic}": "ar",
    r"\p{Hebrew}": "he",
    r"\p{Devanagari}": "hi",
}
OTHER_LANGUAGE = "other"
NAMES = {
    "el": "Greek",
    "ar": "Arabic",
    "he": "Hebrew",
    "hi": "Hindi",
    OTHER_LANGUAGE: "another script",
}
SHORTEST_STEMS = (
    3,
    4,
)  # letters that are left of a word: by an ending of one letter, by a longer one


@dataclass(frozen=True, slots=True)
class Language:
    """What is known of a language."""

    code: str
    name: str
    words: frozenset[str] = frozenset()  # that carry no meaning of their own
    endings: tuple[tuple[str, ...], ...] = ()  # longest first
    asking: re.Pattern[str] | None = None  # words that only make a question
    elided: re.Pattern[str] | None = None
    negations: re.Pattern[str] | None = None
    shortest: tuple[tuple[int, int], ...] = ()  # for each list of endings

    @property
    def latin(self) -> bool:
        """Whether it is written in Latin letters."""
        return self.code not in {*SCRIPTS.values(), OTHER_LANGUAGE}

    @property
    def inflects(self) -> bool:
        """Whether the words of a text are reduced by rules of this language."""
        return bool(self.words or self.endings)

    def bare(self, text: str) -> str:
        """Return a question without its question words, unless nothing else is left.

        >>> known("de").bare("Wie lange dauert das Laden?"), known("ja").bare("なぜですか")
        ('  dauert das Laden?', 'なぜですか')
        """
        rest = self.asking.sub(" ", text) if self.asking else text
        return rest if any(map(str.isalnum, rest)) else text

    def stem(self, word: str) -> str:
        """Return a word without its endings; case and accents were removed before.

        >>> [known("de").stem(word) for word in ("kosten", "kostet", "fahrkarten", "stadt")]
        ['kost', 'kost', 'fahrkar', 'stad']
        """
        for endings, shortest in zip(self.endings, self.shortest, strict=True):
            for ending in endings:
                left = len(word) - len(ending)
                if word.endswith(ending) and left >= shortest[len(ending) > 1]:
                    word = word[:left]
                    break
        if self.code == "nl":  # duurt, duren
            word = re.sub(r"([aeou])\1|([bdfgklmnprst])\2$", r"\1\2", word)
        return word


@functools.cache
def known(code: str) -> Language:
    """Return what is known of a language: nothing, but a name, of those without a table."""
    table = _tables().get(code)
    if table is None:
        return Language(code, NAMES.get(code, code))
    words, endings = table.get("words", "").split(), table.get("endings", ())
    negations = "|".join(table.get("negations", "").split())
    elided = "|".join(table.get("elided", "").split())
    return Language(
        code,
        table["name"],
        frozenset([*words, *map(without_accents, words)]),
        tuple(tuple(sorted(each.split(), key=len, reverse=True)) for each in endings),
        _pattern(table.get("asking", ""), bounded=code not in ("ja", "zh", "th", "ko")),
        re.compile(rf"\b(?:{elided})['’]", re.IGNORECASE) if elided else None,
        _pattern(negations),
        tuple(map(tuple, table.get("shortest", [SHORTEST_STEMS] * len(endings)))),
    )


def _pattern(text: str, *, bounded: bool = True) -> re.Pattern[str] | None:
    if not text:
        return None
    return re.compile(rf"\b(?:{text})\b" if bounded else text, re.IGNORECASE)


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    import tomllib  # noqa: PLC0415 - only who looks at texts waits for it

    file = resources.files("findwell.core.texts").joinpath("languages.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def find_code(name: str) -> str:
    """Return the code of a language that is recognised; case and region do not count.

    >>> find_code("de"), find_code("EN-us")
    ('de', 'en')
    """
    code = name.strip().lower().replace("_", "-").partition("-")[0]
    if code == ENGLISH:
        return code
    by_words = (each for each, table in _tables().items() if table.get("words"))
    return choose("language", code, sorted({*by_words, *SCRIPTS.values()}))


def languages_of(texts: Sequence[str]) -> list[str]:
    """Return the codes of the languages that texts are in; "" where none is recognised.

    >>> languages_of(["Where is it?", "Wo ist der Schlüssel?", "Rome", "東京はどこですか", "Πού"])
    ['en', 'de', '', 'ja', 'el']
    """
    heads = [text[:READ].encode(errors="replace").decode() for text in texts]
    distinct = pl.Series("text", list(dict.fromkeys(heads)), dtype=pl.String)
    found = dict(zip(distinct, _by_words(distinct), strict=True))
    if (foreign := distinct.str.contains(OTHER_LETTER)).any():
        found |= _by_script(distinct.filter(foreign))
    return [found[head] for head in heads]


def _by_words(texts: pl.Series) -> list[str]:
    """Return the language of each text by its words, "" where none is recognised.

    English needs one word. Another needs two different ones, and more evidence than there is for
    English, as names bring single words of any language along.
    """
    listed = texts.str.to_lowercase().str.extract_all(r"\p{L}{2,}|[¿¡]").alias("word")
    words = listed.to_frame().with_row_index("place").explode("word", empty_as_null=True)
    sums = (
        words.join(_evidence(), on="word")
        .group_by("place", "code")
        .agg(pl.col("evidence").sum(), pl.col("own").any(), words=pl.col("number").n_unique())
    )
    english = pl.col("code") == ENGLISH
    enough = (pl.col("evidence") >= MIN_EVIDENCE) & (pl.col("words") > 1)
    likely = sums.filter(pl.col("own") & (english | enough))
    best = likely.sort("evidence", english, "code", descending=[True, True, False])
    best = best.unique("place", keep="first", maintain_order=True)
    codes = [""] * len(texts)
    for place, code in zip(best["place"], best["code"], strict=True):
        codes[place] = code
    return codes


@functools.cache
def _evidence() -> pl.DataFrame:
    """Return the words of all languages: the fewer share a word, the stronger its evidence."""
    rows = [
        (word, code, own == "words")
        for code, table in _tables().items()
        for own in ("words", "alike")
        for word in dict.fromkeys(table.get(own, "").split())
    ]
    listed = pl.DataFrame(rows, schema=["word", "code", "own"], orient="row")
    return listed.with_columns(
        evidence=1 / pl.len().over("word"), number=pl.col("word").rank("dense")
    )


def _by_script(texts: pl.Series) -> dict[str, str]:
    """Return the languages of the texts that are mostly not in Latin letters."""
    counts = pl.DataFrame(
        {
            "text": texts,
            "letters": texts.str.count_matches(r"\p{L}"),
            "latin": texts.str.count_matches(r"\p{Latin}"),
            **{code: texts.str.count_matches(script) for script, code in SCRIPTS.items()},
        }
    ).filter(pl.col("letters") > 2 * pl.col("latin"))
    # kanji outnumber kana in headings and names
    counts = counts.with_columns(zh=pl.when(pl.col("ja") > 0).then(0).otherwise("zh"))
    most = pl.max_horizontal(*SCRIPTS.values())
    named = [pl.when(pl.col(code) == most).then(pl.lit(code)) for code in SCRIPTS.values()]
    code = pl.when(most == 0).then(pl.lit(OTHER_LANGUAGE)).otherwise(pl.coalesce(named))
    return dict(counts.select("text", code.alias("code")).rows())


def without_accents(word: str) -> str:
    """Take accents and vowel points off letters, but not what makes another letter of them.

    >>> without_accents("Brasília")
    'Brasilia'
    """
    if word.isascii():
        return word
    marks = unicodedata.normalize("NFD", word)
    accents = (ord(mark) for mark in set(marks) if _is_accent(unicodedata.combining(mark)))
    return unicodedata.normalize("NFC", marks.translate(dict.fromkeys(accents)))


def _is_accent(combining: int) -> bool:
    """Tell by its combining class; 7 to 9 and 103 to 130 are letters of Asian scripts."""
    return 10 <= combining <= 35 or combining >= 200

"""Text policies: which parts of a text count, in any script."""

from __future__ import annotations

import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import OptionError
from findwell.core.texts.words import TEXTS, tidy, words
from tests.strategies import examples

CASES = {
    "case and punctuation": ("“Hello,   WORLD!”", "hello world"),
    "every kind of space": ("\ta\u00a0b\u3000c\u2028d\r\n\x1fe\x85", "a b c d e"),
    "compatibility forms": ("ﬁne ＡＢＣ Ⅳ ℃", "fine abc iv c"),
    "composed or not": ("cafe\u0301", "café"),
    "sharp s": ("Straße STRASSE", "strasse strasse"),
    "final sigma": ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
    "apostrophe in a word": ("Don't, don’t; O'Neill’s", "dont dont oneills"),
    "quotes around a word": ("the 'best' dogs' park", "the best dogs park"),
    "apostrophe between digits": ("5'11", "5 11"),
    "a decimal is not a whole number": ("3.14", "3 14"),
    "hyphen, slash, underscore": ("well-known and/or snake_case", "well known and or snake case"),
    "symbols and emoji": ("$5 + €6 = 😀 ☺️", "5 6"),
    "soft hyphen, joiner, byte order mark": ("\ufeffco\u00adop\u200der", "cooper"),
    "accent used as quote": ("don´t ¨", "don t"),
    "Arabic, kashida, direction marks": ("\u202bمـــرحبا\u200f بالعالم؟\u202c", "مرحبا بالعالم"),
    "Arabic vowel marks stay": ("كَتَبَ", "كَتَبَ"),
    "Hebrew acronym": ('צה"ל, ג׳ירפה', "צהל גירפה"),
    "Devanagari vowel signs stay": ("हिन्दी में।", "हिन्दी में"),
    "Thai": ("ชื่อจอห์น!", "ชื่อจอห์น"),
    "Chinese": ("「你好」，世界。", "你好 世界"),
    "half-width kana": ("ｶﾞｷﾞ", "ガギ"),
    "one character": ("A", "a"),
    "nothing but punctuation": ("--- … !?", ""),
    "blank": (" \n\t", ""),
    "empty": ("", ""),
}


def tokens(text: str, policy: str) -> list[str]:
    """Return the words of one text."""
    found: list[str] = words(pl.Series([text], dtype=pl.String), policy).item().to_list()
    return found


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_plain(text: str, expected: str) -> None:
    assert tidy(pl.Series([text]), "plain").to_list() == [expected]


TOKENS = {
    "spaces": ("The U.S. economy", ["the", "u", "s", "economy"]),
    "Chinese": ("我爱北京。", ["我", "爱", "北", "京"]),
    "Japanese": ("ラーメン屋で", ["ラ", "ー", "メ", "ン", "屋", "で"]),
    "mixed scripts": ("用iPhone15拍照", ["用", "iphone15", "拍", "照"]),
    "Thai marks stay with their letter": ("ชื่อ", ["ชื่", "อ"]),
    "beyond the first plane": ("𠮷野家", ["𠮷", "野", "家"]),
    "Korean has spaces": ("안녕 하세요", ["안녕", "하세요"]),
    "Tibetan parts syllables": ("བོད་སྐད", ["བོད", "སྐད"]),
    "right to left": ("مرحبا بالعالم؟", ["مرحبا", "بالعالم"]),
    "Devanagari": ("हिन्दी में", ["हिन्दी", "में"]),
    "nothing": ("…!", []),
    "empty": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), TOKENS.values(), ids=TOKENS)
def test_words_of_plain(text: str, expected: list[str]) -> None:
    assert tokens(text, "plain") == expected


anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
spaced = st.lists(st.one_of(anything, st.sampled_from(["a'b", "é", "中", ". ", "'", "\u0301"])))


@given(spaced.map("".join))
@examples(500)
def test_tidying_twice_changes_nothing(text: str) -> None:
    once = tidy(pl.Series([text]), "plain")
    assert tidy(once, "plain").to_list() == once.to_list()


@given(anything)
@examples(300)
def test_plain_does_not_see_normal_form_case_or_spacing(text: str) -> None:
    composed, apart = unicodedata.normalize("NFKC", text), unicodedata.normalize("NFKD", text)
    # case folding by itself would move a Greek iota subscript past other marks
    folded = unicodedata.normalize("NFD", text).casefold()
    same = [text, composed, apart, folded, f"\n  {text}\t\u3000"]
    assert len(set(tidy(pl.Series(same), "plain"))) == 1


@given(anything)
@examples(300)
def test_tokens_hold_exactly_the_letters_of_the_tidied_text(text: str) -> None:
    tidied = tidy(pl.Series([text]), "plain").item()
    found = tokens(text, "plain")
    assert "".join(found) == tidied.replace(" ", "")
    assert all(word and not word.isspace() for word in found)


@given(anything)
@examples(300)
def test_raw_changes_nothing_and_splits_like_python(text: str) -> None:
    assert tidy(pl.Series([text]), "raw").to_list() == [text]
    assert tokens(text, "raw") == text.split()


def test_every_character_is_defined() -> None:
    # the planes in use are tried as a whole, and a sample of those of rare and no characters
    codes = [*range(0x20000), *range(0x20000, 0x110000, 97)]
    characters = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    once = tidy(pl.Series([f"a{character}b" for character in characters]), "plain")
    assert tidy(once, "plain").equals(once)
    gone = [
        character
        for character, text in zip(characters, once, strict=True)
        if text in {"ab", "a b"} and unicodedata.category(character) in {"Lo", "Ll", "Nd", "Mc"}
    ]
    lone_marks = {each for each in gone if unicodedata.normalize("NFKC", each)[0] in " \u0640"}
    fillers = {"\u115f", "\u1160", "\u3164", "\uffa0"}
    assert set(gone) == lone_marks | fillers


def test_equal_texts_are_worked_on_once_and_nulls_stay() -> None:
    texts = pl.Series("chunk", ["A.", None, "a", "A.", "", "A."])
    assert tidy(texts, "plain").to_list() == ["a", None, "a", "a", "", "a"]
    assert tidy(texts, "plain").name == "chunk"
    assert words(texts, "plain").to_list() == [["a"], [], ["a"], ["a"], [], ["a"]]


@pytest.mark.parametrize("policy", TEXTS)
def test_no_texts(policy: str) -> None:
    for nothing in (pl.Series([], dtype=pl.String), pl.Series([])):
        assert tidy(nothing, policy).to_list() == []
        assert words(nothing, policy).to_list() == []


@pytest.mark.parametrize("policy", TEXTS)
def test_a_megabyte(policy: str) -> None:
    text = "Word, " * 170_000
    assert len(tokens(text, policy)) == 170_000
    assert tidy(pl.Series([text]), "plain").item() == ("word " * 170_000).strip()


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(OptionError, match="unknown text policy 'plian'") as caught:
        tidy(pl.Series(["a"]), "plian")
    assert "did you mean plain?" in caught.value.fix

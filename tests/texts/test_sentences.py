"""Sentence splitting: hard cases of several languages, hostile and huge texts, other splitters."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import OptionError
from findwell.core.texts import sentences
from findwell.core.texts.sentences import SPLITTERS, split
from tests.strategies import examples

# the sentences of each text, and what stands between them
CASES = {
    "abbreviations": (
        " ",
        ["Dr. Smith and Mr. Lee left the U.S. Army at 5 p.m. on Jan. 3.", "They slept."],
    ),
    "initials": (" ", ["J. R. R. Tolkien wrote it.", "It sold well."]),
    "decimals and versions": (
        " ",
        ["Pi is 3.14159.", "Version 2.0 is out!", "It costs $5.99.", "Good."],
    ),
    "quotes": (
        " ",
        ['He said "Stop! Now." and left.', 'She asked, "Why?"', "“Yes.”", "She nodded."],
    ),
    "marks": (" ", ["What?!", "Really...", "Yes."]),
    "URLs and mail": (
        " ",
        ["See https://example.com/a.b?c=d.e for more.", "Ask bob.lee@example.org.", "It works."],
    ),
    "no space": ("", ["Hello world.", "No space here."]),
    "references": (" ", ["It was shown (Fig. 1).", "Twice.[2]", "More follows."]),
    "bullets": ("\n", ["Fruit:", "- apples", "- pears.", "* figs", "• dates"]),
    "numbers": ("\n", ["1. Install it.", "2. Run it", "3) Done", "a) or not", "(iv) maybe"]),
    "numbers on one line": (" ", ["1. Install it.", "2. Run it."]),
    "a list without bullets": ("\n", ["Shopping list", "flour", "Sugar", "12 eggs"]),
    "keys and values": ("\r\n", ["Name: Bob Jones", "Age: 7", "City: Paris"]),
    "Markdown": ("\n", ["# A title", "Its text", "| a | b |", "|---|---|", "| 1 | 2 |"]),
    "paragraphs": ("\n \n", ["No full stop here", "nor here", "The end."]),
    "Chinese": ("", ["今天天气很好。", "我们去公园吧！", "你说呢？", "好的。"]),
    "Chinese quotes": ("", ["他说“我不去。”，然后走了。", "我也走了。"]),
    "Japanese": ("", ["いい天気です。", "「行こう。」と言った。", "『はい。』という。", "本当？"]),
    "wide spaces": ("\u3000", ["今日は。", "明日は！", "はい。"]),
    "Arabic": (" ", ["مرحبا بالعالم.", "كيف حالك؟", "أنا بخير!", "شكرا."]),
    "Urdu": (" ", ["یہ ایک جملہ ہے۔", "یہ دوسرا ہے۔"]),
    "Hebrew": (" ", ["שלום עולם.", "מה שלומך?", "טוב."]),
    "Hindi": (" ", ["यह एक वाक्य है।", "यह दूसरा है।"]),
    "Russian": (" ", ["Он родился в 1990 г. в Москве.", "Это т.е. пример.", "Конец."]),
    "Greek": (" ", ["Τι κάνεις;", "Καλά.", "Ευχαριστώ."]),
    "Korean": (" ", ["안녕하세요.", "잘 지내요?", "네."]),
    "Amharic": (" ", ["ሰላም።", "እንዴት ነህ፧", "ደህና።"]),
    "Thai has no mark": (" ", ["สวัสดีครับ ผมชื่อจอห์น"]),
    "French spaces": (" ", ["M.\u00a0Dupont part.", "«\u00a0Oui.\u00a0»", "Fin."]),
}


@pytest.mark.parametrize(("between", "expected"), CASES.values(), ids=CASES)
def test_hard_cases(between: str, expected: list[str]) -> None:
    assert split([between.join(expected)]) == [expected]


def test_wrapped_lines_are_one_sentence_and_a_heading_is_not_part_of_it() -> None:
    text = (
        "Wrapping Text\n"
        "This is wrapped as a tool extracts it from a file by\n"
        "Adobe, and it goes on because the line was full, and\n"
        "on. The second sentence is not long\n"
        "either.\n"
    )
    (heading, first, second) = split([text])[0]
    assert heading == "Wrapping Text"
    assert first.split()[-1] == "on."
    assert second.split() == ["The", "second", "sentence", "is", "not", "long", "either."]


def test_a_language_can_be_named() -> None:
    text = "Am 3. Mai kam Dr. Meier. Ende."
    assert split([text], "sentencex:de") == [["Am 3. Mai kam Dr. Meier.", "Ende."]]


@pytest.mark.parametrize("splitter", ["sentencex", "lines"])
def test_nothing(splitter: str) -> None:
    assert split([], splitter) == []
    assert split(["", " \n\u3000\t", "."], splitter) == [[], [], ["."]]
    assert split(["a", "中"], splitter) == [["a"], ["中"]]


def test_lines() -> None:
    assert split([" One. Two.\r\n\nthree \u2028four"], "lines") == [["One. Two.", "three", "four"]]


def test_each_text_is_cut_once_and_results_are_not_shared() -> None:
    asked: list[str] = []

    def halves(text: str) -> tuple[str, str]:
        asked.append(text)
        return text[:2], text[2:]

    found = split(["ab cd", "ef", "ab cd"], halves)
    assert found == [["ab", "cd"], ["ef"], ["ab", "cd"]]
    assert asked == ["ab cd", "ef"]
    found[0].clear()
    assert found[2] == ["ab", "cd"]


@pytest.mark.parametrize("wrong", ["a string", None, [1, 2], ["a", None]])
def test_a_function_that_returns_no_sentences(wrong: object) -> None:
    with pytest.raises(OptionError, match="not a list of sentences"):
        split(["a"], lambda _: wrong)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("name", ["sentenceX", "sentencex:", "sentencex:German", "", "punkt:en"])
def test_an_unknown_splitter(name: str) -> None:
    with pytest.raises(OptionError, match="unknown sentence splitter") as caught:
        split(["a"], name)
    assert ", ".join(SPLITTERS) in caught.value.fix


SPACES = [" ", "  ", "\n\n", "\r\n", "\u00a0", "\u3000", "\u2028", "\x85"]
ODD = ["\x00", "A\u00a0.", "Dr. ", "1. ", "e.g. ", "😀", "\u0301", "\u200d"]
PARTS = st.sampled_from([*"aAbB1é中あقא。！？.!?:;,、「」“”\"'()[]-*•#|\n", *SPACES, *ODD])


@given(st.one_of(st.lists(PARTS, max_size=60).map("".join), st.text(max_size=60)))
@examples(1_000)
def test_no_text_is_lost_added_or_moved(text: str) -> None:
    (found,) = split([text])
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in found)
    assert all(sentence in text for sentence in found)
    assert split([text]) == [found]


SENTENCES = [
    "Dr. Smith paid $3.50 for it.",
    "He left at 5 p.m. (or so).",
    '"Why?" she asked.',
    "它很好。",
    "Он ушёл!",
]


def test_windows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(4)
    texts = [" ".join(rng.choices(SENTENCES, k=200)) for _ in range(5)]
    whole = split(texts)
    assert min(map(len, whole)) == 200
    monkeypatch.setattr(sentences, "WINDOW", 150)
    assert split(texts) == whole
    monkeypatch.setattr(sentences, "WINDOW", 1_000_000)
    assert split(texts) == whole


@pytest.mark.parametrize(
    ("part", "count"),
    [
        ("今天天气很好。", 40_000),  # sentencex alone would need minutes
        ("Dr. Lee left at 5 p.m. ", 40_000),
        ("（他说。）", 1),
        ("- an item\n", 40_000),
        ("word ", 1),
        ("没有标点", 1),
        ("\n", 0),
        ("、", 1),
    ],
)
def test_huge_texts(part: str, count: int) -> None:
    (found,) = split([part * 40_000])
    assert len(found) == count


@pytest.mark.parametrize(
    ("splitter", "package", "fix"),
    [("sentencex", "sentencex", ".[text]"), ("punkt", "nltk.tokenize", "pip install nltk")],
)
def test_a_missing_package_is_named(
    splitter: str, package: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    sentences._tokenizer.cache_clear()  # another test may have found it
    with pytest.raises(OptionError, match="needs the package") as caught:
        split(["One. Two."], splitter)
    assert fix in caught.value.fix

"""How many tokens a text has: the default rule, a tokenizer's file, a function."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError
from findwell.core.texts.tokens import find_tokenizer

DEMO = Path(findwell.__file__).parent / "demo" / "passages.jsonl"
# what cl100k, the byte-pair encoding of several models, counts in all texts of the demo together
CL100K = 11598


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \n\t ", 0),
        ("Charging takes 4 hours.", 5),
        ("internationalisation", 3),  # eight letters at a time
        ("12345", 2),
        ("don't", 3),
        ("東京は", 3),
        ("Москва", 2),
        ("...", 3),
    ],
)
def test_the_default_rule(text: str, tokens: int) -> None:
    assert find_tokenizer(None).count(pl.Series([text])).to_list() == [tokens]


def test_the_default_rule_is_close_to_a_byte_pair_encoding() -> None:
    texts = pl.Series([json.loads(line)["text"] for line in DEMO.read_text("utf-8").splitlines()])
    assert find_tokenizer("approximate").count(texts).sum() == pytest.approx(CL100K, rel=0.03)


def test_functions() -> None:
    texts = pl.Series(["one two", "", "one two"])
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    found = find_tokenizer(count)
    assert found.count(texts).to_list() == [7, 0, 7]
    assert asked == ["one two", ""]  # equal texts once
    with pytest.raises(FindwellError, match="returned None for a text"):
        find_tokenizer(lambda _: None).count(texts)


def test_files(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {"[UNK]": 0, "red": 1, "button": 2}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.enable_truncation(2)  # of the model, not of the text
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    found = find_tokenizer(f"tokenizers:{path}")
    assert found.name == "tokenizers:tokenizer.json"
    assert found.count(pl.Series(["red button, again"])).to_list() == [4]
    run, gold, corpus = {"q": ["a"]}, {"q": ["a"]}, {"a": "red button, again"}
    values = findwell.evaluate(
        run,
        gold,
        ["recall@3,4tokens"],
        corpus=corpus,
        reading=findwell.Reading(tokenizer=f"tokenizers:{path}"),
    ).values
    assert values == {"recall@3tokens": 0.0, "recall@4tokens": 1.0}


def test_what_is_no_tokenizer(tmp_path: Path) -> None:
    for given in ("gpt", 3):
        with pytest.raises(FindwellError, match="is not a tokenizer"):
            find_tokenizer(given)
    pytest.importorskip("tokenizers")
    with pytest.raises(FindwellError, match="cannot be read"):
        find_tokenizer(f"tokenizers:{tmp_path / 'none.json'}")
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    with pytest.raises(FindwellError, match="this is not a tokenizer"):
        find_tokenizer(f"tokenizers:{broken}")

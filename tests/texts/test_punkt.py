"""NLTK's splitter with the data that NLTK has, and with the copy inside llama-index-core."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findwell.core.errors import OptionError
from findwell.core.texts import sentences as punkt
from findwell.core.texts.sentences import split
from tests.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

nltk = lazy("nltk")

COPY = Path(str(metadata.distribution("llama-index-core").locate_file(punkt.COPY)))
PROSE = Path(__file__).parents[2] / "docs" / "matching.md"
TEXTS = [
    "  Dr. Lee left the U.S. at 5 p.m. on Jan. 3. She (not he) took four.\n\nWhy? ",
    PROSE.read_text(encoding="utf-8"),
    "",
    " \n",
]


@pytest.fixture(autouse=True)
def nltk_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Give NLTK a folder for its data that is empty."""
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    punkt._tokenizer.cache_clear()
    yield tmp_path / "tokenizers" / "punkt_tab" / "english"
    punkt._tokenizer.cache_clear()


def without_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(punkt, "distribution", missing)


def test_sentences_keep_the_spaces_before_them() -> None:
    found = split(TEXTS, "punkt")
    assert found[0] == [
        "  Dr. Lee left the U.S. at 5 p.m. on Jan. 3.",
        "She (not he) took four.",
        "Why?",
    ]
    assert len(found[1]) > 40
    assert found[2:] == [[], []]


def test_the_copy_says_what_nltk_says_of_its_data(
    nltk_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_copy = split(TEXTS, "punkt")
    shutil.copytree(COPY, nltk_data)
    monkeypatch.setattr(punkt, "_from_copy", lambda: pytest.fail("NLTK has its data"))
    punkt._tokenizer.cache_clear()
    assert split(TEXTS, "punkt") == by_copy


def test_the_data_of_nltk_comes_first(nltk_data: Path) -> None:
    nltk_data.mkdir(parents=True)
    (nltk_data / "abbrev_types.txt").write_text("left\n", encoding="utf-8")
    for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab"):
        (nltk_data / name).write_text("", encoding="utf-8")
    assert split(["Mr. Lee left. why?"], "punkt") == [["Mr.", "Lee left. why?"]]


def test_data_that_nltk_refuses(nltk_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nltk_data.mkdir(parents=True)
    for path in COPY.iterdir():
        shutil.copy(path, nltk_data / f"{path.name}.first")
        os.link(nltk_data / f"{path.name}.first", nltk_data / path.name)
    assert split(TEXTS, "punkt")[0][-1] == "Why?"
    without_copy(monkeypatch)
    punkt._tokenizer.cache_clear()
    with pytest.raises(OptionError, match="multiply-linked"):
        split(TEXTS, "punkt")


def test_without_any_data_the_ways_to_it_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    without_copy(monkeypatch)
    with pytest.raises(OptionError, match="punkt_tab") as caught:
        split(["One. Two."], "punkt")
    assert "python -m nltk.downloader punkt_tab" in caught.value.fix
    assert "pip install --no-deps llama-index-core" in caught.value.fix

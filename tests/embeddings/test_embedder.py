"""What is asked of every embedder, and how one is found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from findwell.core.errors import InputError, OptionError
from findwell.judges.embeddings import EMBEDDERS, EmbeddingError, find_embedder, local_models
from findwell.judges.embeddings.embedder import TextEmbedder, unit_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from findwell.judges.embeddings import Vectors


def letters(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), float(text.count("a")), 1.0] for text in texts]


def test_a_function_becomes_an_embedder_of_unit_vectors() -> None:
    rows = find_embedder(letters).embed(["a", "banana", "xyz"])
    assert rows.dtype == np.float32
    assert rows.shape == (3, 3)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(rows[0], np.ones(3) / np.sqrt(3), atol=1e-6)


@pytest.mark.parametrize("convert", [list, tuple, np.array, lambda rows: np.array(rows, "f2")])
def test_lists_and_arrays_are_taken(convert: Callable[[Any], Any]) -> None:
    embedder = find_embedder(lambda texts: convert([[3.0, 4.0]] * len(texts)))
    np.testing.assert_allclose(embedder.embed(["x", "y"]), [[0.6, 0.8]] * 2, atol=1e-6)


BAD = {
    "too few": (lambda texts: [[1.0]] * (len(texts) - 1), "1 vectors for 2 texts"),
    "too many": (lambda texts: [[1.0]] * (len(texts) + 1), "3 vectors for 2 texts"),
    "nothing": (lambda _: None, "not vectors"),
    "one number a text": (lambda texts: [1.0] * len(texts), "not vectors"),
    "ragged": (lambda _: [[1.0], [1.0, 2.0]], "not vectors"),
    "words": (lambda _: [["a"], ["b"]], "not vectors"),
    "holes": (lambda _: [[1.0], [None]], "not vectors"),
    "complex": (lambda _: np.array([[1j], [2j]]), "not vectors"),
    "no width": (lambda _: [[], []], "not vectors"),
    "nan": (lambda _: [[1.0], [float("nan")]], "1 of 2 vectors are not finite"),
    "infinite": (lambda _: [[float("inf")], [1.0]], "the first is number 0"),
    "fails": (lambda texts: texts.no_such_thing, "AttributeError"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_a_function_returns_is_checked(kind: str) -> None:
    function, message = BAD[kind]
    with pytest.raises(EmbeddingError, match=message) as caught:
        find_embedder(function, name="mine").embed(["x", "y"])
    assert caught.value.where == "mine"


def test_the_width_may_not_change_between_calls() -> None:
    embedder = find_embedder(lambda texts: [[1.0] * len(texts)] * len(texts))
    embedder.embed(["x"])
    with pytest.raises(EmbeddingError, match="have 2 numbers, those before had 1"):
        embedder.embed(["x", "y"])


def test_blank_texts_are_zero_and_never_sent() -> None:
    seen: list[str] = []

    def record(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    embedder = find_embedder(record)
    assert embedder.embed(["", " \n\t\u3000"]).shape == (2, 0)
    assert embedder.embed([]).shape == (0, 0)
    rows = embedder.embed(["", "x", " "])
    assert rows.tolist() == [[0, 0], [1, 0], [0, 0]]
    assert embedder.embed([""]).tolist() == [[0, 0]]
    assert seen == ["x"]


def test_half_a_surrogate_pair_reaches_no_model() -> None:
    seen: list[str] = []

    def record(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0]] * len(texts)

    find_embedder(record).embed(["a\ud800b", "😀"])
    assert seen == ["a?b", "😀"]


def test_only_texts_are_texts() -> None:
    with pytest.raises(InputError, match="text number 1 is not a text but NoneType"):
        find_embedder(letters).embed(["x", None])  # type: ignore[list-item]


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=finite))
def test_rows_have_length_one_or_zero_and_checking_twice_changes_nothing(
    rows: np.ndarray[Any, np.dtype[np.float64]],
) -> None:
    found = unit_rows(rows, len(rows))
    lengths = np.linalg.norm(found.astype(np.float64), axis=1)
    zero = ~rows.any(axis=1)
    assert (lengths[zero] == 0).all()
    np.testing.assert_allclose(lengths[~zero], 1, atol=1e-6)
    np.testing.assert_array_equal(unit_rows(found, len(found)), found)


class Mine:
    name = "mine-v3"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.full((len(texts), 2), 2, dtype=np.float32)


def test_an_object_keeps_its_name_and_is_checked() -> None:
    embedder = find_embedder(Mine())
    assert embedder.name == "mine-v3"
    np.testing.assert_allclose(np.linalg.norm(embedder.embed(["x"]), axis=1), 1, atol=1e-6)
    assert find_embedder(embedder) is embedder


def test_a_function_without_a_name_is_not_for_the_cache() -> None:
    unnamed, named = find_embedder(letters), find_embedder(letters, name="letters-v1")
    assert isinstance(unnamed, TextEmbedder)
    assert isinstance(named, TextEmbedder)
    assert (unnamed.name, unnamed.lasting) == ("function:letters", False)
    assert (named.name, named.lasting) == ("letters-v1", True)


@pytest.mark.parametrize(
    "spec", ["", "mini", "minilm:x", "onnx", "onnx:", "openai:", "magic:x", ":"]
)
def test_an_unknown_spec_lists_the_known(spec: str) -> None:
    with pytest.raises(OptionError) as caught:
        find_embedder(spec)
    for known in EMBEDDERS:
        assert known in caught.value.fix


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(OptionError, match="no such folder"):
        find_embedder("onnx:no/such")


def test_a_thing_that_is_no_embedder() -> None:
    with pytest.raises(OptionError, match="int is not an embedder"):
        find_embedder(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "module", "install"),
    [
        ("minilm", "onnxruntime", "'.[onnx]' in a clone of findwell"),
        ("minilm", "tokenizers", "'.[onnx]' in a clone of findwell"),
        ("sentence-transformers:x", "sentence_transformers", "sentence-transformers"),
        ("openai:x", "httpx", "'.[judge]' in a clone of findwell"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_brings_it(
    spec: str, module: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    local_models._load_minilm.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OptionError, match=f"needs the package {module}") as caught:
        find_embedder(spec)
    assert caught.value.fix == f"pip install {install}"

"""Models of the user: ONNX folders and sentence-transformers."""

from __future__ import annotations

import shutil
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from findwell.judges.embeddings import EmbeddingError, find_embedder, unread_findings
from findwell.judges.embeddings.local_models import packaged_minilm
from tests.embeddings.models import TABLE, onnx_folder, onnx_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from findwell.judges.embeddings import Vectors

RED, GREEN, BLUE = 3, 4, 5
MEAN = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


def unit(vector: Any) -> Any:
    return np.asarray(vector, dtype=np.float64) / np.linalg.norm(vector)


def embed(spec: str, *texts: str) -> Vectors:
    return find_embedder(spec).embed(texts)


def sentence(*words: int) -> Any:
    return TABLE[[1, *words, 2]]


POOLINGS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "mean": ({}, lambda rows: rows.mean(axis=0)),
    "mean by name": (MEAN, lambda rows: rows.mean(axis=0)),
    "cls": ({"pooling_mode_cls_token": True}, lambda rows: rows[0]),
    "max": ({"pooling_mode_max_tokens": True}, lambda rows: rows.max(axis=0)),
    "last": ({"pooling_mode_lasttoken": True}, lambda rows: rows[-1]),
    "root": ({"pooling_mode_mean_sqrt_len_tokens": True}, lambda rows: rows.mean(axis=0)),
    "new style": ({"pooling_mode": "cls"}, lambda rows: rows[0]),
}


@pytest.mark.parametrize("kind", POOLINGS)
def test_the_folder_says_how_token_vectors_become_one(kind: str, tmp_path: Path) -> None:
    config, pooled = POOLINGS[kind]
    settings: dict[str, object] = {"1_Pooling__config": config} if config else {}
    folder = onnx_folder(tmp_path / "tiny", onnx_model(), **settings)
    found = embed(f"onnx:{folder}", "red green", "blue")
    np.testing.assert_allclose(found[0], unit(pooled(sentence(RED, GREEN))), atol=1e-6)
    np.testing.assert_allclose(found[1], unit(pooled(sentence(BLUE))), atol=1e-6)


def test_a_model_that_pools_itself_is_believed(tmp_path: Path) -> None:
    folder = onnx_folder(tmp_path / "tiny", onnx_model(pooled=True))
    (folder / "2_Dense").mkdir()
    found = embed(f"onnx:{folder}", "red red", "", "no red word")
    np.testing.assert_allclose(found[0], unit(sentence(RED, RED).mean(axis=0)), atol=1e-6)
    assert not found[1].any()
    assert found[2].any()


def test_texts_of_which_nothing_is_known_are_not_alike(tmp_path: Path) -> None:
    embedder = find_embedder(f"onnx:{onnx_folder(tmp_path / 'tiny', onnx_model())}")
    assert not embedder.embed(["no known word", "another one"]).any()
    assert embedder.unknown_share(["red word", "red", "no", ""]) == [0.5, 0, 1, 0]  # type: ignore[attr-defined]
    (found,) = unread_findings(["no known word", "red", "no known word", "red word"], embedder)
    assert (found.kind, found.count) == ("unread-text", 2)
    assert found.examples == ("no known word", "red word")


def test_a_model_with_int32_inputs_and_other_scripts(tmp_path: Path) -> None:
    folder = onnx_folder(tmp_path / "tiny", onnx_model(kind=6))
    found = embed(f"onnx:{folder}", "漢 字", "שלום")
    np.testing.assert_allclose(found[0], unit(sentence(6, 7).mean(axis=0)), atol=1e-6)
    np.testing.assert_allclose(found[1], unit(sentence(8).mean(axis=0)), atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"sentence_bert_config": {"max_seq_length": 3}},
        {"tokenizer_config": {"model_max_length": 3}},
        {
            "sentence_bert_config": {"max_seq_length": None},
            "tokenizer_config": {"model_max_length": 3},
        },
    ],
)
def test_the_folder_says_how_much_of_a_text_is_read(
    settings: dict[str, object], tmp_path: Path
) -> None:
    short = onnx_folder(tmp_path / "short", onnx_model(), **settings)
    long = onnx_folder(
        tmp_path / "long", onnx_model(), tokenizer_config={"model_max_length": int(1e30)}
    )
    one, two = embed(f"onnx:{short}", "red green", "red")
    np.testing.assert_array_equal(one, two)
    one, two = embed(f"onnx:{long}", "red green", "red")
    assert (one != two).any()


def test_the_name_follows_the_contents_not_the_place(tmp_path: Path) -> None:
    first = find_embedder(f"onnx:{onnx_folder(tmp_path / 'tiny', onnx_model())}").name
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "tiny").rename(tmp_path / "elsewhere" / "tiny")
    assert find_embedder(f"onnx:{moved}").name == first
    assert str(tmp_path) not in first
    (moved / "1_Pooling").mkdir()
    (moved / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert find_embedder(f"onnx:{moved}").name != first


def test_the_folder_of_a_package_can_be_named() -> None:
    texts = ["The cat sleeps.", "no longer than its tokenizer allows"]
    found = embed(f"onnx:{packaged_minilm()}", *texts)
    np.testing.assert_array_equal(found, embed("minilm", *texts))


@pytest.mark.parametrize("named", ["", "onnx/model.onnx"])
def test_a_folder_as_it_is_published_gives_the_packaged_vectors(named: str, tmp_path: Path) -> None:
    folder = tmp_path / "minilm"
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(packaged_minilm() / "model_quantized.onnx", folder / "onnx" / "model.onnx")
    (folder / "onnx" / "model_O4.onnx").write_bytes(b"another that nobody asked for")
    shutil.copy(packaged_minilm() / "tokenizer.json", folder)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    texts = ["The cat sleeps.", "long " * 400]
    found = embed(f"onnx:{folder / named}", *texts)
    np.testing.assert_array_equal(found, embed("minilm", *texts))


def test_of_several_models_one_is_named(tmp_path: Path) -> None:
    folder = onnx_folder(tmp_path / "tiny", onnx_model())
    (folder / "model.onnx").rename(folder / "a.onnx")
    alone = find_embedder(f"onnx:{folder}").name
    (folder / "b.onnx").write_bytes(onnx_model(pooled=True))
    with pytest.raises(EmbeddingError, match=r"no model\.onnx, but a\.onnx, b\.onnx") as caught:
        find_embedder(f"onnx:{folder}")
    assert caught.value.fix == f"name one of them: onnx:{folder}/a.onnx"
    assert find_embedder(f"onnx:{folder}/a.onnx").name == alone
    assert find_embedder(f"onnx:{folder}/b.onnx").name != alone


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no model": (lambda folder: (folder / "model.onnx").unlink(), "no model.onnx"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json"),
    "bad model": (lambda folder: (folder / "model.onnx").write_text("x"), "not an ONNX model"),
    "bad JSON": (lambda folder: (folder / "tokenizer.json").write_text("{"), "not a JSON file"),
    "bad tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text("{}"),
        "not a tokenizer",
    ),
    "list": (lambda folder: (folder / "tokenizer_config.json").write_text("[]"), "JSON object"),
    "dense": (lambda folder: (folder / "2_Dense").mkdir(), "dense layer"),
    "input": (
        lambda folder: (folder / "model.onnx").write_bytes(onnx_model(extra_input="pixels")),
        "pixels: it is not a text encoder",
    ),
    "no ids": (
        lambda folder: (folder / "model.onnx").write_bytes(onnx_model(ids="words")),
        "it is not a text encoder",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_folder_is_a_clear_error(kind: str, tmp_path: Path) -> None:
    damage, message = BROKEN[kind]
    folder = onnx_folder(tmp_path / "tiny", onnx_model())
    damage(folder)
    with pytest.raises(EmbeddingError, match=message):
        find_embedder(f"onnx:{folder}")


@pytest.mark.parametrize(
    "config",
    [
        {"pooling_mode_weightedmean_tokens": True},
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
    ],
)
def test_a_pooling_we_do_not_know_is_an_error(config: dict[str, bool], tmp_path: Path) -> None:
    folder = onnx_folder(tmp_path / "tiny", onnx_model(), **{"1_Pooling__config": config})
    with pytest.raises(EmbeddingError, match="does not know the pooling"):
        find_embedder(f"onnx:{folder}")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Stand in for sentence-transformers, which is too heavy to install, and record its calls."""
    calls: list[tuple[str, dict[str, Any]]] = []

    class SentenceTransformer:
        def __init__(self, model: str) -> None:
            if model == "no/such":
                raise OSError("no/such is not a model")
            calls.append((model, {}))

        def encode(self, sentences: list[str], **options: Any) -> Any:
            calls.append((repr(sentences), options))
            return np.array([[1.0, len(text)] for text in sentences], dtype=np.float32)

    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return calls


def test_sentence_transformers_is_called_as_it_wants(
    library: list[tuple[str, dict[str, Any]]],
) -> None:
    embedder = find_embedder("sentence-transformers:org/model")
    found = embedder.embed(["a", ""])
    assert embedder.name == "sentence-transformers:org/model"
    np.testing.assert_allclose(found, [unit([1, 1]), [0, 0]], atol=1e-6)
    assert library == [
        ("org/model", {}),
        (
            "['a']",
            {"convert_to_numpy": True, "normalize_embeddings": True, "show_progress_bar": False},
        ),
    ]


@pytest.mark.usefixtures("library")
def test_a_sentence_transformers_folder_is_known_by_its_contents(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("1")
    first = find_embedder(f"sentence-transformers:{tmp_path}").name
    (tmp_path / "weights").write_text("2")
    second = find_embedder(f"sentence-transformers:{tmp_path}").name
    assert first != second
    assert str(tmp_path) not in first


@pytest.mark.usefixtures("library")
def test_a_model_that_sentence_transformers_does_not_know() -> None:
    with pytest.raises(EmbeddingError, match="could not load the model: no/such is not a model"):
        find_embedder("sentence-transformers:no/such")

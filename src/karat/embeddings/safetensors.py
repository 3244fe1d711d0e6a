"""Reads a safetensors file: a length, a JSON header with types, shapes and places, then numbers.

Reading it takes a few lines of NumPy, and nothing in the file is ever run, so no library is asked
for.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.embeddings.files import unreadable
from karat.errors import EmbeddingError

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST_HEADER = 100_000_000  # as the format allows
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # the upper half of a float32
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
}


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file by name."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        return _tensors(memoryview(content))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbeddingError(
            f"this is not a safetensors file that karat can read: {error}", where=str(path)
        ) from None


def _tensors(content: memoryview) -> dict[str, NDArray[Any]]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(LONGEST_HEADER, len(content) - 8):
        raise ValueError("its header is longer than the file")
    header = json.loads(bytes(content[8 : 8 + length]))
    body = content[8 + length :]
    return {name: _tensor(body, entry) for name, entry in header.items() if name != "__metadata__"}


def _tensor(body: memoryview, entry: dict[str, Any]) -> NDArray[Any]:
    kind, shape, (start, end) = TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    size = np.dtype(kind).itemsize * math.prod(shape)
    if not 0 <= start <= end <= len(body) or end - start != size:
        raise ValueError("a tensor lies outside the file")
    numbers = np.frombuffer(body[start:end], kind).reshape(shape)
    if entry["dtype"] == "BF16":
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers

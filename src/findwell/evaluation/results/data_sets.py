"""What a result was measured on: the gold, told apart by the hash of its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

IN_MEMORY = "data in memory"
LETTERS = 8  # of a hash that are shown


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set: what people call it, and the SHA-256 of the gold; empty where it is no file."""

    name: str
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.sha256[:LETTERS]}".strip()


def data_set_of(inputs: Iterable[Mapping[str, Any]]) -> DataSet:
    """Return the data set from what a manifest says about the inputs.

    A file that holds run and gold together has no hash of the gold alone.

    >>> gold = {"role": "gold", "kind": "file", "path": "data/qrels.txt", "sha256": "0123456789"}
    >>> print(data_set_of([gold]))
    qrels.txt 01234567
    >>> print(data_set_of([{"role": "gold", "kind": "dict", "path": None, "sha256": None}]))
    data in memory
    """
    golds = [each for each in inputs if each.get("role") in ("gold", "samples")]
    for each in golds:
        path, sha256 = each.get("path"), each.get("sha256")
        if isinstance(path, str) and PurePath(path).name:
            known = isinstance(sha256, str) and each.get("role") == "gold"
            return DataSet(PurePath(path).name, str(sha256) if known else "")
    return DataSet(IN_MEMORY)

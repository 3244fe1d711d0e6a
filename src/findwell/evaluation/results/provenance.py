"""Where a result came from: its inputs, the data set that it was measured on, every choice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from findwell.io.read.source import Source

if TYPE_CHECKING:
    from findwell.core.policy import Policy

IN_MEMORY = "data in memory"
SHOWN_LETTERS = 8  # of a hash


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set: what people call it, and the SHA-256 of the gold; empty where it is no file."""

    name: str
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.sha256[:SHOWN_LETTERS]}".strip()


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


@dataclass(frozen=True, slots=True)
class Input:
    """Where an input came from: a file, or an object of this type."""

    role: str
    kind: str
    path: str | None = None
    sha256: str | None = None  # as it was saved, empty if nobody knows; None: not saved yet

    @classmethod
    def of(cls, role: str, data: object) -> Input:
        """Describe an input."""
        if isinstance(data, str | os.PathLike):
            return cls(role, "file", os.fspath(data))
        return cls(role, type(data).__name__)

    def as_dict(self) -> dict[str, str | None]:
        """Return what the manifest says about it, with the hash of a file that still exists."""
        sha256 = self.sha256
        if sha256 is None and self.path is not None and Path(self.path).is_file():
            sha256 = Source(Path(self.path)).sha256()
        return {"role": self.role, "kind": self.kind, "path": self.path, "sha256": sha256 or None}


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """Where a result came from: enough to make it again."""

    dialect: str
    policy: Policy
    drawn_by: str = "ids"  # the relation of measures that name none
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of each relation
    ids: str = "identity"  # how document ids were normalised
    tokenizer: str = ""  # what counted tokens, if anything did
    inputs: tuple[Input, ...] = ()
    judge: Mapping[str, Any] = field(default_factory=dict)  # who judged: model, prompts, cost
    saved: Mapping[str, Any] = field(default_factory=dict)  # when, and by which versions

    @property
    def data_set(self) -> DataSet:
        """What the numbers were measured on."""
        return data_set_of(each.as_dict() for each in self.inputs)

"""The results below some folders, found anew whenever somebody asks."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.errors import InputError
from karat.storage.folders import MANIFEST

DEEPEST = 4  # folders below a root that are looked into
MOST = 2_000  # results that are listed


@dataclass(frozen=True, slots=True)
class Found:
    """A result on disk: what its manifest says, without reading the rest."""

    id: str  # what links call it; no path ever comes from a link
    name: str
    path: Path
    stamp: str  # changes when the result is written anew
    created: str
    manifest: dict[str, Any]


class Folders:
    """Finds results, newest first."""

    def __init__(self, roots: Sequence[str | os.PathLike[str]]) -> None:
        self.roots = [Path(root).resolve() for root in roots]
        for given, root in zip(roots, self.roots, strict=True):
            if not root.is_dir():
                raise InputError(
                    "there is no such folder",
                    where=os.fspath(given),
                    fix="name the folder of a result, or one that holds such folders",
                )

    def results(self) -> list[Found]:
        """Return the results, newest first."""
        paths = dict.fromkeys(path for root in self.roots for path in _below(root, DEEPEST))
        found = [each for path in list(paths)[:MOST] if (each := self._read(path)) is not None]
        return sorted(found, key=lambda each: (each.created, each.stamp), reverse=True)

    def _read(self, path: Path) -> Found | None:
        try:
            file = path / MANIFEST
            manifest = json.loads(file.read_text(encoding="utf-8"))
            stamp = f"{file.stat().st_mtime_ns:x}"
        except (OSError, ValueError):  # gone, or being written: the next look will tell
            return None
        if not isinstance(manifest, dict) or "layout" not in manifest:
            return None
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        created = str(manifest.get("created", ""))
        return Found(digest, self._name(path), path, stamp, created, manifest)

    def _name(self, path: Path) -> str:
        for root in self.roots:
            if path != root and path.is_relative_to(root):
                return str(path.relative_to(root))
        return path.name


def state_of(results: Sequence[Found]) -> str:
    """Return a word that changes when a result appears, changes or goes."""
    told = "".join(f"{each.id}{each.stamp}" for each in sorted(results, key=lambda each: each.id))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _below(folder: Path, deep: int) -> Iterator[Path]:
    """Go through the results in a folder; what only links to another place is left alone."""
    if (folder / MANIFEST).is_file():
        yield folder
        return
    if deep == 0:
        return
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return
    for each in inside:
        if not each.name.startswith(".") and each.is_dir() and not each.is_symlink():
            yield from _below(each, deep - 1)

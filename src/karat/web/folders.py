"""The results in and below some folders, found anew at every look."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karat.errors import InputError
from karat.spelling import name_relations, spell_relation
from karat.storage.folders import MANIFEST, SUMMARY

DEEPEST = 4  # folders below a root that are looked into
MOST = 2_000  # results that are listed
SHOWN = 3  # runs of a result in its row


@dataclass(frozen=True, slots=True)
class SavedResult:
    """A result on disk: what its manifest says, without reading the rest."""

    id: str  # what links call it; no path ever comes from a link
    name: str
    path: Path
    stamp: str  # changes when the result is written anew
    created: str
    manifest: dict[str, Any] = field(hash=False)  # the stamp is enough

    def row(self) -> dict[str, Any]:
        """Return what the list of results shows of it."""
        runs = [str(run) for run in _list(self.manifest.get("runs"))]
        more = f" and {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
        made = self.created.replace("T", " ").removesuffix("+00:00")
        measure, by_run = self._headline()
        return {
            "id": self.id,
            "name": self.name,
            "created": f"{made} UTC" if made else "",
            "systems": ", ".join(runs[:SHOWN]) + more,
            "measure": measure,
            "by_run": by_run[:SHOWN],
            "findings": len(_list(self.manifest.get("findings"))),
        }

    def _headline(self) -> tuple[str, list[tuple[str, Any]]]:
        """Return the first measure with its relation, and its value by run."""
        try:
            rows = _list(json.loads((self.path / SUMMARY).read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            return "", []
        needed = {"run", "measure", "value"}
        rows = [row for row in rows if isinstance(row, dict) and needed <= row.keys()]
        if not rows:
            return "", []
        first = str(rows[0]["measure"])
        by_run = [
            (str(row["run"]), row["value"] if isinstance(row["value"], int | float) else None)
            for row in rows
            if row["measure"] == first
        ]
        return f"{first}{self._matched_by()}", by_run

    def _matched_by(self) -> str:
        """Name the relations with their parameters, unless it is plain ids."""
        relations = self.manifest.get("relations")
        if not isinstance(relations, dict):
            return ""
        named = (
            spell_relation(name, each if isinstance(each, dict) else {})
            for name, each in relations.items()
        )
        return name_relations(named, " by ")


class ResultFolders:
    """Finds the results in and below some folders."""

    def __init__(self, roots: Sequence[str | os.PathLike[str]]) -> None:
        self.roots = [Path(root).resolve() for root in roots]
        for given, root in zip(roots, self.roots, strict=True):
            if not root.is_dir():
                raise InputError(
                    "there is no such folder",
                    where=os.fspath(given),
                    fix="name the folder of a result, or one that holds such folders",
                )

    def results(self) -> list[SavedResult]:
        """Return the results, newest first."""
        paths = dict.fromkeys(path for root in self.roots for path in _below(root, DEEPEST))
        found = [each for path in list(paths)[:MOST] if (each := self._read(path)) is not None]
        return sorted(found, key=lambda each: (each.created, each.stamp), reverse=True)

    def _read(self, path: Path) -> SavedResult | None:
        try:
            file = path / MANIFEST
            manifest = json.loads(file.read_text(encoding="utf-8"))
            stamp = f"{file.stat().st_mtime_ns:x}"
        except (OSError, ValueError, RecursionError):  # gone, or being written: look again
            return None
        if not isinstance(manifest, dict) or "layout" not in manifest:
            return None
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        created = str(manifest.get("created", ""))
        return SavedResult(digest, self._name(path), path, stamp, created, manifest)

    def _name(self, path: Path) -> str:
        for root in self.roots:
            if path != root and path.is_relative_to(root):
                return str(path.relative_to(root))
        return path.name


def _list(value: object) -> list[Any]:
    """Return a list as it is, and nothing for what should be one: opening it tells more."""
    return value if isinstance(value, list) else []


def state_of(results: Sequence[SavedResult]) -> str:
    """Return a word that changes when a result appears, changes or goes."""
    known = "".join(f"{each.id}{each.stamp}" for each in sorted(results, key=lambda each: each.id))
    return hashlib.sha256(known.encode()).hexdigest()[:16]


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

"""The results in and below some folders, looked for again each time, and what the list shows."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from findwell.core.errors import FindwellError, InputError
from findwell.core.spelling import name_relations, spell_relation
from findwell.evaluation.inputs import data_set_of
from findwell.evaluation.results.notes import ResultNotes, read_notes
from findwell.io.storage.files import open_regular
from findwell.io.storage.folders import MANIFEST, SUMMARY
from findwell.judges.limits import judge_lines
from findwell.measures import parse_measure
from findwell.show.tables import best_first

DEEPEST_FOLDER = 4  # folders below a root that are looked into
MOST_RESULTS = 2_000  # results that are listed
SHOWN_RUNS = 3  # runs of a result in its row


@dataclass(frozen=True, slots=True)
class ResultHeadline:
    """What the summary of a result says first: its main measure by run, and how many queries."""

    measure: str = ""
    rows: tuple[dict[str, Any], ...] = ()  # run, value, low, high
    queries: int | None = None

    @classmethod
    def of(cls, summary: object) -> ResultHeadline:
        """Read it from `summary.json`, which may hold anything."""
        needed = {"run", "measure", "value"}
        rows = [row for row in _list(summary) if isinstance(row, dict) and needed <= row.keys()]
        if not rows:
            return cls()
        first = str(rows[0]["measure"])
        mine = [row for row in rows if row["measure"] == first]
        names = ("n", "undefined", "failed")
        counts = [[row.get(name) for name in names] for row in mine]
        known = [each for each in counts if all(isinstance(count, int) for count in each)]
        return cls(
            first,
            tuple(
                {"run": str(row["run"])}
                | {name: _number(row.get(name)) for name in ("value", "low", "high")}
                for row in mine
            ),
            max((sum(filter(None, each)) for each in known), default=None),
        )

    @property
    def best_first(self) -> list[dict[str, Any]]:
        """The rows, the best run first; those without a value come last."""
        try:
            higher = parse_measure(self.measure).higher_is_better
        except FindwellError:  # a plugin's measure that is not installed here
            higher = True
        order = best_first(higher=higher)
        return sorted(self.rows, key=lambda row: order(row["value"]))

    @property
    def best(self) -> dict[str, Any] | None:
        """The row of the best run; None if no run has a value."""
        rows = self.best_first
        return rows[0] if rows and rows[0]["value"] is not None else None

    def row_of(self, run: str) -> dict[str, Any] | None:
        """Return the row of a run; None if it has no value here."""
        rows = (row for row in self.rows if row["run"] == run and row["value"] is not None)
        return next(rows, None)


@dataclass(frozen=True, slots=True)
class SavedResult:
    """A result on disk: what its manifest, its summary and its notes say, nothing else is read."""

    id: str  # what links call it; no path ever comes from a link
    name: str
    path: Path
    stamp: str  # changes when the result is written again
    created: str
    manifest: dict[str, Any] = field(hash=False)  # the stamp is enough
    headline: ResultHeadline = field(compare=False, default=ResultHeadline())
    notes: ResultNotes | None = field(compare=False, default=ResultNotes())  # None: not readable

    @property
    def number(self) -> str:
        """The id that the result was saved with."""
        return str(self.manifest.get("id", ""))

    def row(self) -> dict[str, Any]:
        """Return what the list of results shows of it."""
        runs = [str(run) for run in _list(self.manifest.get("runs"))]
        judge = self.manifest.get("judge")
        notes = self.notes or ResultNotes()
        return {
            "id": self.id,
            "name": self.name,
            "created": self.created,
            "made": self.created.replace("T", " ").removesuffix("+00:00"),
            "systems": runs,
            "queries": self.headline.queries,
            "data_set": self.data_set(),
            "measure": self.measure,
            "judge": "; ".join(judge_lines([judge])) if isinstance(judge, dict) else "",
            "by_run": self.headline.best_first[:SHOWN_RUNS],
            "more": max(len(self.headline.rows) - SHOWN_RUNS, 0),
            "findings": len(_list(self.manifest.get("findings"))),
            "notes": notes,
            "readable": self.notes is not None,
            "outdated": bool(notes) and notes.about not in ("", self.number),
        }

    def data_set(self) -> dict[str, str]:
        """Return what the result was measured on: a key, what people call it, and the key's kind.

        The key is the hash of the gold file. Where the gold was no file, or one file held run and
        gold, it is that of the queries.
        """
        inputs = [each for each in _list(self.manifest.get("inputs")) if isinstance(each, dict)]
        found = data_set_of(inputs)
        if found.sha256:
            return {"key": found.sha256, "name": found.name, "of": "gold"}
        files = self.manifest.get("files")
        queries = files.get("queries.parquet") if isinstance(files, dict) else None
        key = f"queries {queries}" if isinstance(queries, str) else ""
        return {"key": key, "name": found.name, "of": "queries"}

    @property
    def measure(self) -> str:
        """The main measure with its relation."""
        return f"{self.headline.measure}{self._matched_by()}" if self.headline.measure else ""

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
        self._known: dict[Path, SavedResult] = {}  # as they were at the last look
        for given, root in zip(roots, self.roots, strict=True):
            if not root.is_dir():
                raise InputError(
                    "there is no such folder",
                    where=os.fspath(given),
                    fix="name the folder of a result, or one that holds such folders",
                )

    def results(self) -> list[SavedResult]:
        """Return the results, newest first."""
        paths = dict.fromkeys(path for root in self.roots for path in _below(root, DEEPEST_FOLDER))
        found = [
            each for path in list(paths)[:MOST_RESULTS] if (each := self._read(path)) is not None
        ]
        return sorted(found, key=lambda each: (each.created, each.stamp), reverse=True)

    def _read(self, path: Path) -> SavedResult | None:
        try:
            file = path / MANIFEST
            stamp = f"{file.lstat().st_mtime_ns:x}"
            known = self._known.get(path)
            if known is not None and known.stamp == stamp:
                return replace(known, notes=read_notes(path))
            manifest = _read_json(file)
        except (OSError, ValueError, RecursionError):  # gone, or being written: look again
            return None
        if not isinstance(manifest, dict) or "layout" not in manifest:
            return None
        try:
            summary = _read_json(path / SUMMARY)
        except (OSError, ValueError, RecursionError):
            summary = None
        found = SavedResult(
            id=hashlib.sha256(os.fsencode(path)).hexdigest()[:16],
            name=self._name(path),
            path=path,
            stamp=stamp,
            created=str(manifest.get("created", "")),
            manifest=manifest,
            headline=ResultHeadline.of(summary),
            notes=read_notes(path),
        )
        self._known[path] = found
        return found

    def _name(self, path: Path) -> str:
        for root in self.roots:
            if path != root and path.is_relative_to(root):
                return str(path.relative_to(root))
        return path.name


def _read_json(path: Path) -> Any:  # noqa: ANN401
    with open_regular(path) as file:
        return json.loads(file.read().decode())


def _list(value: object) -> list[Any]:
    """Return a list as it is, and nothing for what should be one: opening it tells more."""
    return value if isinstance(value, list) else []


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def state_of(results: Sequence[SavedResult]) -> str:
    """Return a word that changes when a result or its notes appear, change or go."""
    by_id = sorted(results, key=lambda each: each.id)
    known = "".join(f"{each.id}{each.stamp}{each.notes}" for each in by_id)
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

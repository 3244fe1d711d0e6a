"""Finds the files of an evaluation in a folder: runs, gold, records of both, texts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from findwell.core.errors import FindwellError, InputError
from findwell.io.read import load_gold, load_run, load_samples
from findwell.io.read.corpus import load_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
Role = Literal["run", "gold", "samples", "corpus", "unknown"]

SUFFIXES = (
    ".trec", ".run", ".txt", ".qrels", ".qrel", ".json", ".jsonl", ".ndjson", ".csv", ".tsv",
    ".parquet", ".gz", ".zst",
)  # fmt: skip
DEPTH = 2  # folders below the one that is looked at
MOST_FILES = 200  # a folder with more is not a project to guess about
LARGEST_FILE = 500_000_000  # bytes of a file that is read to find out what it is
SKIPPED_FOLDERS = ("node_modules", "__pycache__", "site-packages", "build", "dist")
# a table of pairs may be a run or gold labels; its file name decides
GOLD_WORDS = ("gold", "qrel", "label", "truth", "question", "quer", "judg", "relev", "expect")
CORPUS_WORDS = ("corpus", "passage", "chunk", "doc", "text")


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A file, what it holds, and the ids of the queries in it."""

    path: Path
    role: Role
    queries: frozenset[str] = frozenset()
    places: bool = False  # whether its gold labels places in documents, which have no chunk ids


@dataclass(frozen=True, slots=True)
class Project:
    """The files of an evaluation: what was retrieved, what should be found, and the texts."""

    runs: tuple[ProjectFile, ...]  # or records that hold the gold as well
    gold: ProjectFile | None  # None: the records hold it, or nothing does
    other_golds: tuple[ProjectFile, ...]
    corpora: tuple[ProjectFile, ...]
    unknown: tuple[ProjectFile, ...]

    @classmethod
    def of(cls, folder: str | os.PathLike[str]) -> Project:
        """Find the files of a folder; of several golds take the one that shares most queries."""
        found: dict[Role, list[ProjectFile]] = {}
        for each in project_files(folder):
            found.setdefault(each.role, []).append(each)
        runs, golds = found.get("run", []), found.get("gold", [])
        samples = found.get("samples", [])
        if not runs and not samples:
            raise InputError(
                "no run was found: no file says what was retrieved for which query",
                where=str(folder),
                fix="make one with `findwell run`, or see `findwell demo --files demo` for "
                "examples",
            )
        asked = frozenset().union(*(run.queries for run in runs))
        gold = max(golds, key=lambda each: len(each.queries & asked), default=None)
        # records that hold both are a task of their own; next to gold labels they are not meant
        if samples and (gold is None or not runs):
            runs, gold = samples, None
        others = tuple(each for each in golds if each is not gold)
        corpora, unknown = (tuple(found.get(role, ())) for role in ("corpus", "unknown"))
        return cls(tuple(runs), gold, others, corpora, unknown)

    @property
    def labelled(self) -> bool:
        """Whether anything says what should be found."""
        return self.gold is not None or self.runs[0].role == "samples"


def project_files(folder: str | os.PathLike[str] = ".") -> list[ProjectFile]:
    """Return the files of a folder and what they hold: runs, gold labels, records, corpora."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError("this is not a folder", where=str(folder), fix="name the project's folder")
    paths = list(_candidates(root, DEPTH))
    # a link may lead to a file that is there already: the shortest way to it counts
    by_length = sorted(paths, key=lambda path: len(path.parts), reverse=True)
    nearest = {path.resolve(): path for path in by_length}
    paths = [path for path in paths if nearest[path.resolve()] == path]
    if len(paths) > MOST_FILES:
        raise InputError(
            f"{len(paths)} files could hold runs or judgements; that is too many to look at",
            where=str(folder),
            fix="name the folder that holds those of one evaluation",
        )
    return [_recognised(path) for path in paths]


def _candidates(folder: Path, depth: int) -> Iterator[Path]:
    """Go through the files that may be meant, in the order of their names."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in SKIPPED_FOLDERS:
            continue
        if path.is_dir() and depth:
            yield from _candidates(path, depth - 1)
        elif (
            path.is_file()
            and path.suffix.lower() in SUFFIXES
            and 0 < path.stat().st_size <= LARGEST_FILE
        ):
            yield path


def _recognised(path: Path) -> ProjectFile:
    """Find out what a file holds, by reading it."""
    gold = _attempt(lambda: load_gold(path))
    first = _attempt(lambda: next(iter(load_run(path).batches()), None))
    retrieved = None if first is None or first.is_empty() else first["query"]
    texts = retrieved is None and _is_called(path, CORPUS_WORDS)
    corpus = _attempt(lambda: load_corpus(path)) if texts else None
    if corpus is not None and "text" in corpus.columns and not _is_called(path, GOLD_WORDS):
        return ProjectFile(path, "corpus")  # one document alone could be read as gold labels, too
    if gold is not None and gold.queries.height:
        queries = frozenset(gold.queries["query"])
        places = "places" in gold.carries and "chunks" not in gold.carries
        if retrieved is not None and _attempt(lambda: _holds_both(path)):
            return ProjectFile(path, "samples", queries, places)
        if retrieved is None or _is_called(path, GOLD_WORDS):
            return ProjectFile(path, "gold", queries, places)
    if retrieved is not None:
        return ProjectFile(path, "run", frozenset(retrieved))
    return ProjectFile(path, "unknown" if corpus is None or corpus.is_empty() else "corpus")


def _attempt(read: Callable[[], T]) -> T | None:
    """Read something; None if it cannot be read so."""
    try:
        return read()
    except FindwellError:
        return None


def _holds_both(path: Path) -> bool:
    return any(not batch.is_empty() for batch in load_samples(path).run.batches())


def _is_called(path: Path, words: tuple[str, ...]) -> bool:
    return any(word in path.name.casefold() for word in words)

"""Results on disk: a folder that is written whole or not at all, and checked when it is read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import karat
from karat.core.relation import Relation
from karat.errors import InputError, SaveError
from karat.read.source import Source
from karat.storage.folders import FILES, MANIFEST, SUMMARY, TABLES, is_folder, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

    from karat.core.data import Ints


LAYOUT = 4  # raised when the files change so that other versions cannot read them
TRIES, PAUSE = 20, 0.001  # how often a folder may change while its files are opened; seconds


def seal(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest of a folder, with the hashes of all that is in it."""
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            files[path.name] = _hash(path.name, file)
    told = manifest | {"files": files}
    write_json(folder / MANIFEST, told | {"sha256": _own_hash(json.loads(json.dumps(told)))})


def write_json(path: Path, value: object) -> None:
    """Write JSON that people can read; letters that UTF-8 cannot write are escaped."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, BufferedReader]]]:
    """Open a result: the manifest, and the other files, all as they were saved together."""
    with contextlib.ExitStack() as held:
        manifest, files = _open(folder, held)
        for name, file in files.items():
            if _hash(name, file) != manifest["files"][name]:
                raise _damaged(folder / name)
            file.seek(0)
        yield manifest, files


def _open(
    folder: Path, held: contextlib.ExitStack
) -> tuple[dict[str, Any], dict[str, BufferedReader]]:
    """Open all files between two looks at the same manifest: no two saved results share one."""
    path = folder / MANIFEST
    reason = ""
    for _ in range(TRIES):
        try:
            content = path.read_bytes()
            manifest = _checked(folder, content)
            names = sorted(FILES & manifest["files"].keys())
            files = {name: held.enter_context((folder / name).open("rb")) for name in names}
            if path.read_bytes() == content:
                return manifest, files
            reason = "it is replaced all the time"
        except FileNotFoundError as error:
            reason = f"there is no {Path(error.filename).name}"
        except OSError as error:
            raise _incomplete(folder, str(error.strerror)) from None
        held.close()
        is_folder(folder)
        time.sleep(PAUSE)
    raise _incomplete(folder, reason)


def _checked(folder: Path, content: bytes) -> dict[str, Any]:
    try:
        told = json.loads(content)
        layout = told.get("layout")
    except (ValueError, AttributeError, RecursionError) as error:
        raise _incomplete(folder, f"{MANIFEST}: {error}") from None
    if layout != LAYOUT:
        version = told.get("versions", {}).get("karat", "of another version")
        raise InputError(
            f"the result has layout {layout}, this karat reads {LAYOUT}",
            where=str(folder),
            fix=f"use karat {version}, or save the result again",
        )
    if told.pop("sha256", None) != _own_hash(told):
        raise _damaged(folder / MANIFEST)
    return dict(told)


def _hash(name: str, file: BufferedReader) -> str:
    if name == SUMMARY:  # a text to git, which may check it out with other ends of lines
        return hashlib.sha256(file.read().replace(b"\r\n", b"\n")).hexdigest()
    return hashlib.file_digest(file, "sha256").hexdigest()


def _own_hash(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path) -> InputError:
    return InputError(
        "the file is damaged: it is not what was saved",
        where=str(path),
        fix="save the result again, or take the folder from a copy",
    )


def _incomplete(folder: Path, reason: str) -> InputError:
    return InputError(
        f"this is not a complete karat result: {reason}",
        where=str(folder),
        fix="name a folder written by result.save() or `karat score --save`",
    )


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


def write_folder(
    folder: str | os.PathLike[str],
    manifest: dict[str, Any],
    summary: list[dict[str, Any]],
    tables: dict[str, pl.DataFrame],
) -> Path:
    """Write a result folder, whole or not at all; it replaces nothing but a result."""
    try:
        with replacing(folder) as draft:
            write_json(draft / SUMMARY, summary)
            for name, table in tables.items():
                table.write_parquet(draft / f"{name}.parquet")
            seal(draft, _origin() | manifest)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SaveError(
            f"the result could not be saved: {reason}",
            where=os.fspath(folder),
            fix="nothing was written; free some space or name another folder",
        ) from error
    return Path(folder)


def read_folder(
    folder: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """Read a result folder: the manifest and the tables by name, as they were saved."""
    with opened(Path(folder)) as (manifest, files):
        return manifest, {
            name: pl.read_parquet(files[f"{name}.parquet"])
            for name in TABLES
            if name != "per_query" and f"{name}.parquet" in files  # values are measured anew
        }


def _origin() -> dict[str, Any]:
    """Return when and by what a result is written."""
    return {
        "layout": LAYOUT,
        "id": secrets.token_hex(8),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "karat": karat.__version__,
            "python": platform.python_version(),
            "polars": pl.__version__,
            "numpy": np.__version__,
        },
    }


def relation_rows(run: str, relation: Relation) -> pl.DataFrame:
    """Return the relation as a table with a row a query, lists inside."""
    docs = pl.DataFrame({"item": relation.member_item, "doc": relation.member_doc})
    docs_of = docs.group_by("item", maintain_order=True).agg("doc")["doc"]
    sizes = np.diff(relation.item_offset)
    edges, units = relation.count(relation.edge_query), relation.count(relation.unit_query)
    local_item = relation.edge_item - relation.item_offset[relation.edge_query]
    return pl.DataFrame(
        {
            "run": pl.repeat(run, relation.n, eager=True),
            "query": relation.queries,
            "depth": relation.depth,
            "item_grade": _lists(pl.Series(relation.item_grade), sizes),
            "item_docs": _lists(docs_of, sizes),
            "edge_rank": _lists(pl.Series(relation.edge_rank), edges),
            "edge_item": _lists(pl.Series(local_item), edges),
            "unit_rank": _lists(pl.Series(relation.unit_rank), units),
            "unit_judged": _lists(pl.Series(relation.unit_judged), units),
            "unit_repeat": _lists(pl.Series(relation.unit_repeat), units),
            "undefined_reason": relation.undefined_reason,
            "failed": relation.failed,
            "needed": pl.repeat(relation.needed, relation.n, eager=True),
            "judged_to": pl.repeat(relation.judged_to, relation.n, dtype=pl.Int64, eager=True),
            **_chunk_lists(relation),
            **_times_lists(relation),
        }
    )


def _chunk_lists(relation: Relation) -> dict[str, pl.Series]:
    """Return the ends of the chunks where units are parts of them."""
    if relation.chunk_offset is None or relation.chunk_end is None:
        return {}
    return {"chunk_end": _lists(pl.Series(relation.chunk_end), np.diff(relation.chunk_offset))}


def _times_lists(relation: Relation) -> dict[str, pl.Series]:
    """Return how often each item is listed where any is listed again."""
    if relation.item_times is None:
        return {}
    return {"item_times": _lists(pl.Series(relation.item_times), np.diff(relation.item_offset))}


def _lists(values: pl.Series, sizes: np.ndarray[Any, np.dtype[np.int64]]) -> pl.Series:
    """Cut a column into one list a query."""
    rows = np.repeat(np.arange(len(sizes)), sizes)
    grouped = pl.DataFrame({"row": rows, "value": values}).group_by("row", maintain_order=True)
    lists = grouped.agg("value")
    every = pl.DataFrame({"row": np.arange(len(sizes))}).join(
        lists, on="row", how="left", maintain_order="left"
    )["value"]
    empty = pl.Series([[]], dtype=every.dtype)
    return (
        every.fill_null(pl.lit(empty, dtype=every.dtype).first()) if every.null_count() else every
    )


def relation_of(rows: pl.DataFrame) -> Relation:
    """Rebuild a relation from its table."""
    sizes = rows["item_grade"].list.len().to_numpy().astype(np.int64)
    offset = np.concatenate(([0], np.cumsum(sizes)))
    edges = rows["edge_rank"].list.len().to_numpy().astype(np.int64)
    edge_query = np.repeat(np.arange(rows.height), edges)
    units = rows["unit_rank"].list.len().to_numpy().astype(np.int64)
    docs = _flat(rows["item_docs"])
    members = docs.list.len().to_numpy().astype(np.int64)
    return Relation(
        queries=rows["query"],
        depth=rows["depth"].to_numpy(),
        item_offset=offset,
        item_grade=_flat(rows["item_grade"]).to_numpy(),
        edge_query=edge_query,
        edge_rank=_flat(rows["edge_rank"]).to_numpy(),
        edge_item=_flat(rows["edge_item"]).to_numpy() + offset[:-1][edge_query],
        unit_query=np.repeat(np.arange(rows.height), units),
        unit_rank=_flat(rows["unit_rank"]).to_numpy(),
        unit_judged=_flat(rows["unit_judged"]).to_numpy(),
        unit_repeat=_flat(rows["unit_repeat"]).to_numpy(),
        member_item=np.repeat(np.arange(len(docs)), members),
        member_doc=_flat(docs),
        undefined_reason=rows["undefined_reason"],
        failed_verdicts=rows["failed"].to_numpy() if rows["failed"].any() else None,
        needed=bool(rows["needed"].any()),
        item_times=_times_of(rows),
        judged_to=rows.get_column("judged_to", default=pl.Series([], dtype=pl.Int64)).max(),  # type: ignore[arg-type]
        **_chunks_of(rows),
    )


def _chunks_of(rows: pl.DataFrame) -> dict[str, Any]:
    ends = rows.get_column("chunk_end", default=None)
    if ends is None or ends.null_count():
        return {}
    sizes = ends.list.len().to_numpy().astype(np.int64)
    offset = np.concatenate(([0], np.cumsum(sizes)))
    return {"chunk_offset": offset, "chunk_end": _flat(ends).to_numpy()}


def _times_of(rows: pl.DataFrame) -> Ints | None:
    times = rows.get_column("item_times", default=None)
    return None if times is None or times.null_count() else _flat(times).to_numpy()


def _flat(lists: pl.Series) -> pl.Series:
    """Return the elements of all lists; an empty list has none."""
    return lists.filter(lists.list.len() > 0).explode()

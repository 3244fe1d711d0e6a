"""Results on disk: a folder that is written whole or not at all, and holds all a reader needs."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import karat
from karat.errors import InputError, SaveError
from karat.read.source import Source
from karat.relation import Relation

MANIFEST = "manifest.json"
LAYOUT = 2  # raised when the files change so that other versions cannot read them
NEEDED, PERHAPS = ("queries", "relation"), ("about", "listed", "verdicts")


@dataclass(frozen=True, slots=True)
class Input:
    """Where an input came from: a file, or an object of this type."""

    role: str
    kind: str
    path: str | None = None

    @classmethod
    def of(cls, role: str, data: object) -> Input:
        """Describe an input."""
        if isinstance(data, str | os.PathLike):
            return cls(role, "file", os.fspath(data))
        return cls(role, type(data).__name__)

    def as_dict(self) -> dict[str, str | None]:
        """Return what the manifest says about it, with the hash of a file that still exists."""
        known = self.path is not None and Path(self.path).is_file()
        sha256 = Source(Path(self.path)).sha256() if known and self.path else None
        return {"role": self.role, "kind": self.kind, "path": self.path, "sha256": sha256}


def write_folder(
    folder: str | os.PathLike[str],
    manifest: dict[str, Any],
    summary: list[dict[str, Any]],
    tables: dict[str, pl.DataFrame],
) -> Path:
    """Write a result folder: to a temporary name first, then renamed."""
    target = Path(folder)
    if _is_foreign(target):
        raise SaveError(
            "the folder exists and holds something that is not a karat result",
            where=str(target),
            fix="name a new folder",
        )
    draft: Path | None = None
    made = [parent for parent in target.parents if not parent.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        _write_json(draft / "summary.json", summary)
        for name, table in tables.items():
            table.write_parquet(draft / f"{name}.parquet")
        _write_json(draft / MANIFEST, _origin() | manifest)
        draft.chmod(0o755)
        _swap(draft, target)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SaveError(
            f"the result could not be saved: {reason}",
            where=str(target),
            fix="nothing was written; free some space or name another folder",
        ) from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        with contextlib.suppress(OSError):  # a folder that holds the result stays
            for parent in made:
                parent.rmdir()
    return target


def read_folder(
    folder: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """Read a result folder: the manifest and the tables by name."""
    path = Path(folder)
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        layout = manifest.get("layout")
        tables = {name: pl.read_parquet(path / f"{name}.parquet") for name in NEEDED}
        tables |= {
            name: pl.read_parquet(path / f"{name}.parquet")
            for name in PERHAPS
            if (path / f"{name}.parquet").is_file()
        }
    except (OSError, ValueError, AttributeError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"this is not a complete karat result: {error}",
            where=str(path),
            fix="name a folder written by result.save() or `karat score --save`",
        ) from None
    if layout != LAYOUT:
        raise InputError(
            f"the result has layout {layout}, this karat reads {LAYOUT}",
            where=str(path),
            fix=f"use karat {manifest.get('versions', {}).get('karat', 'of another version')}",
        )
    return manifest, tables


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file whole or not at all."""
    target = Path(path)
    draft: str | None = None
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_text(text, encoding="utf-8", newline="")  # a pipe or /dev/null stays one
            return
        handle, draft = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(draft).chmod(0o644)
        Path(draft).replace(target)
    except OSError as error:
        raise SaveError(
            f"the file could not be written: {error.strerror}",
            where=str(target),
            fix="nothing was written; free some space or name another file",
        ) from error
    finally:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)


def _origin() -> dict[str, Any]:
    """Return when and by what a result is written."""
    return {
        "layout": LAYOUT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "karat": karat.__version__,
            "python": platform.python_version(),
            "polars": pl.__version__,
            "numpy": np.__version__,
        },
    }


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


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
            "void": relation.void,
            "needed": pl.repeat(relation.needed, relation.n, eager=True),
            "judged_to": pl.repeat(relation.judged_to, relation.n, dtype=pl.Int64, eager=True),
            **_chunk_lists(relation),
        }
    )


def _chunk_lists(relation: Relation) -> dict[str, pl.Series]:
    """Return the ends of the chunks where units are parts of them."""
    if relation.chunk_offset is None or relation.chunk_end is None:
        return {}
    return {"chunk_end": _lists(pl.Series(relation.chunk_end), np.diff(relation.chunk_offset))}


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
        void=rows["void"],
        needed=bool(rows["needed"].any()),
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


def _flat(lists: pl.Series) -> pl.Series:
    """Return the elements of all lists; an empty list has none."""
    return lists.filter(lists.list.len() > 0).explode()


def _swap(draft: Path, target: Path) -> None:
    """Put the new folder in the place of the old one, if there is one."""
    if not target.exists():
        draft.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    target.rename(old / "old")
    try:
        draft.rename(target)
    except OSError:
        (old / "old").rename(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _is_foreign(path: Path) -> bool:
    """Tell whether something else than a result stands in the way."""
    if not path.exists() or (path / MANIFEST).is_file():
        return False
    return not path.is_dir() or any(path.iterdir())

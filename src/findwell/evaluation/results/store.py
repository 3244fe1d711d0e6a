"""Results on disk: a folder that is written whole or not at all, and checked when it is read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import secrets
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import findwell
from findwell.core.errors import InputError, choose_column, naming_files, takes_options
from findwell.core.findings import Finding
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.policy import Policy
from findwell.core.relation import Relation
from findwell.evaluation.inputs import Input
from findwell.evaluation.results.estimates import Estimates
from findwell.evaluation.results.result import Kept, Provenance, Result, SummaryOptions
from findwell.evaluation.results.saved_files import (
    check_manifest,
    check_relations,
    check_table,
    damaged,
)
from findwell.io.read.format import first_line
from findwell.io.read.values import plain_columns
from findwell.io.storage.files import create_file, not_written, open_regular
from findwell.io.storage.folders import FILES, MANIFEST, SUMMARY, TABLES, is_folder, replacing
from findwell.judges.aspects import restore_own
from findwell.judges.limits import is_judged, judge_limits, judge_lines
from findwell.measures.dialects import resolve_measures

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

    from findwell.core.data import Floats, Ints


LAYOUT = 1  # raised when the files change so that other versions cannot read them
FACT = "fact_"  # before the name of a fact about chunks
TRIES, PAUSE = 20, 0.001  # how often a folder may change while its files are opened; seconds


def save(result: Result, folder: str | os.PathLike[str]) -> Path:
    """Write a result as a folder, whole or not at all; it replaces nothing but a result."""
    refuse_after_fork()
    tables = tables_of(result)
    try:
        with replacing(folder) as draft:
            write_json(draft / SUMMARY, _summary(result))
            for name, table in tables.items():
                table.write_parquet(create_file(draft / f"{name}.parquet"))
            seal(draft, _origin() | manifest_of(result))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise not_written("folder", folder, error) from error
    return Path(folder)


def _summary(result: Result) -> list[dict[str, Any]]:
    """Return a row for each run and measure; where a judge decided, with what that is worth."""
    said = "; ".join(judge_lines([result.judge]))
    judged = {name for name, by in result.matched_by.items() if said and is_judged(by)}
    rows = result.summary.to_dicts()
    return [row | ({"judge": said} if row["measure"] in judged else {}) for row in rows]


def tables_of(result: Result) -> dict[str, pl.DataFrame]:
    """Return the tables that a result is saved as, by name."""
    rows = [
        relation_rows(run, relation).with_columns(relation=pl.lit(name), lenient=pl.lit(lenient))
        for (run, name), drawn in result.relations.items()
        for lenient, relation in enumerate((drawn, drawn.lenient))
        if relation is not None
    ]
    tables = {
        "per_query": result.per_query,
        "queries": result.queries,
        "relation": pl.concat(rows, how="diagonal"),
    }
    for name, by_run in (("about", result.about), ("listed", result.kept.listed)):
        if by_run:
            named = [table.with_columns(run=pl.lit(run)) for run, table in by_run.items()]
            tables[name] = pl.concat(named, how="diagonal_relaxed")
    if result.kept.verdicts is not None:
        tables["verdicts"] = result.kept.verdicts
    return tables


def manifest_of(result: Result) -> dict[str, Any]:
    """Return what a saved result says of itself, in addition to who wrote it and when."""
    made = result.provenance
    return {
        "runs": result.runs,
        "measures": [str(measure) for measure in result.measures],
        "relation": made.drawn_by,
        "relations": made.settings,
        "ids": made.ids,
        **({"tokenizer": made.tokenizer} if made.tokenizer else {}),
        "dialect": made.dialect,
        "policies": made.policy.as_dict(),
        "bounds": result.options.bounds,
        "interval": result.interval,
        "judge": {**made.judge, "limits": judge_limits(made.judge)} if made.judge else {},
        "inputs": [entry.as_dict() for entry in made.inputs],
        "findings": [finding.as_dict() for finding in result.findings],
        **({} if result.estimates is None else result.estimates.as_dict()),
    }


@takes_options()
def load(folder: str | os.PathLike[str]) -> Result:
    """Read the folder of a saved result. `result.score([…])` computes other measures from it."""
    refuse_after_fork()
    place = Path(folder)
    with opened(place) as (manifest, files):
        tables = {
            name: _table(name, files[f"{name}.parquet"], place)
            for name in TABLES
            if name != "per_query" and f"{name}.parquet" in files  # values are computed again
        }
    check_relations(tables, manifest["runs"], place / "relation.parquet")
    with naming_files({"": str(place / MANIFEST)}):
        result = result_of(manifest, tables)
        for run in result.runs:
            for measure in result.measures:
                result.relation(run, measure)
        if result.options.cluster is not None:
            choose_column(result.queries, result.options.cluster)
    return result


def _table(name: str, file: BufferedReader, folder: Path) -> pl.DataFrame:
    """Read a table of a result."""
    path = folder / f"{name}.parquet"
    try:
        table = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(path, first_line(error)) from None
    check_table(name, table, path)
    return table


def result_of(manifest: dict[str, Any], tables: dict[str, pl.DataFrame]) -> Result:
    """Return the result that a manifest and tables describe."""
    restore_own(manifest["judge"].get("aspects", {}))
    rows = tables["relation"]
    lenient = _relations(rows.filter(pl.col("lenient") == 1))
    return Result(
        relations={
            key: replace(each, lenient=lenient.get(key))
            for key, each in _relations(rows.filter(pl.col("lenient") == 0)).items()
        },
        measures=resolve_measures(manifest["measures"], manifest["dialect"]),
        queries=plain_columns(tables["queries"]),
        findings=tuple(
            Finding(**{**found, "examples": tuple(found["examples"])})
            for found in manifest["findings"]
        ),
        provenance=Provenance(
            dialect=manifest["dialect"],
            policy=Policy(**manifest["policies"]),
            drawn_by=manifest["relation"],
            settings=manifest["relations"],
            ids=manifest["ids"],
            tokenizer=manifest.get("tokenizer", ""),
            inputs=tuple(
                Input(**{**entry, "sha256": entry["sha256"] or ""}) for entry in manifest["inputs"]
            ),
            judge={name: each for name, each in manifest["judge"].items() if name != "limits"},
            saved={name: manifest[name] for name in ("created", "versions")},
        ),
        options=SummaryOptions(
            level=manifest["interval"]["level"],
            cluster=manifest["interval"]["cluster"],
            bounds=manifest["bounds"],
        ),
        about={run: plain_columns(each) for run, each in _by_run(tables.get("about")).items()},
        kept=Kept(_by_run(tables.get("listed")), tables.get("verdicts")),
        estimates=Estimates.of(manifest["estimates"], manifest["labels"])
        if "estimates" in manifest
        else None,
    )


def _relations(rows: pl.DataFrame) -> dict[tuple[str, str], Relation]:
    return {
        (run, name): relation_of(rows.filter(pl.col("run") == run, pl.col("relation") == name))
        for run, name in rows.select("run", "relation").unique(maintain_order=True).rows()
    }


def _by_run(table: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
    """Split a table of all runs."""
    if table is None:
        return {}
    parts = table.partition_by("run", as_dict=True, include_key=False, maintain_order=True)
    return {str(run): part for (run,), part in parts.items()}


def seal(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest of a folder, with the hashes of all that is in it."""
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            files[path.name] = _hash(path.name, file)
    whole = json.loads(json.dumps(manifest | {"files": files}))  # as it will be read
    write_json(folder / MANIFEST, whole | {"sha256": _own_hash(whole)})


def write_json(path: Path, value: object) -> None:
    """Write JSON that people can read; letters that UTF-8 cannot write are escaped."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    create_file(path).write_bytes(text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, BufferedReader]]]:
    """Open a result: the manifest, and the other files, all as they were saved together."""
    with contextlib.ExitStack() as held:
        manifest, files = _open(folder, held)
        for name, file in files.items():
            if _hash(name, file) != manifest["files"][name]:
                raise damaged(folder / name)
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
            content = _content(path)
            manifest = _checked(folder, content)
            names = sorted(FILES & manifest["files"].keys())
            files = {name: held.enter_context(open_regular(folder / name)) for name in names}
            if _content(path) == content:
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


def _content(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _checked(folder: Path, content: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else error
        raise _incomplete(folder, f"{MANIFEST}: {what}") from None
    if not isinstance(manifest, dict):
        raise _incomplete(folder, f"{MANIFEST} holds no object")
    layout, versions = manifest.get("layout"), manifest.get("versions")
    if layout != LAYOUT:
        version = versions.get("findwell") if isinstance(versions, dict) else None
        raise InputError(
            f"the result has layout {str(layout)[:40]}, this findwell reads {LAYOUT}",
            where=str(folder),
            fix=f"use findwell {str(version or 'of another version')[:40]}, or save it again",
        )
    if manifest.pop("sha256", None) != _own_hash(manifest):
        raise damaged(folder / MANIFEST)
    check_manifest(manifest, folder / MANIFEST)
    return manifest


def _hash(name: str, file: BufferedReader) -> str:
    if name == SUMMARY:  # a text to git, which may check it out with other ends of lines
        return hashlib.sha256(file.read().replace(b"\r\n", b"\n")).hexdigest()
    return hashlib.file_digest(file, "sha256").hexdigest()


def _own_hash(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _incomplete(folder: Path, reason: str) -> InputError:
    return InputError(
        f"this is not a complete findwell result: {reason}",
        where=str(folder),
        fix="name a folder written by result.save() or `findwell score --save`",
    )


def _origin() -> dict[str, Any]:
    """Return when and by what a result is written."""
    return {
        "layout": LAYOUT,
        "id": secrets.token_hex(8),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "findwell": findwell.__version__,
            "python": platform.python_version(),
            "polars": pl.__version__,
            "numpy": np.__version__,
        },
    }


def relation_rows(run: str, relation: Relation) -> pl.DataFrame:
    """Return the relation as a table with one row per query, lists inside."""
    members = np.bincount(relation.member_item, minlength=len(relation.item_grade))
    docs_of = _lists(relation.member_doc, members)  # an item may have no document
    items = np.diff(relation.item_offset)
    edges, units = relation.count(relation.edge_query), relation.count(relation.unit_query)
    local_item = relation.edge_item - relation.item_offset[relation.edge_query]
    rows = pl.DataFrame(
        {
            "query": relation.queries,
            "depth": relation.depth,
            "item_grade": _lists(relation.item_grade, items),
            "item_docs": _lists(docs_of, items),
            "edge_rank": _lists(relation.edge_rank, edges),
            "edge_item": _lists(local_item, edges),
            "unit_rank": _lists(relation.unit_rank, units),
            "unit_judged": _lists(relation.unit_judged, units),
            "unit_repeat": _lists(relation.unit_repeat, units),
            "undefined_reason": relation.why_undefined(),
            "failed": relation.failed,
        }
    ).select(
        pl.lit(run).alias("run"),
        pl.all(),
        needed=pl.lit(relation.needed),
        judged_to=pl.lit(relation.judged_to, pl.Int64),
    )
    if relation.chunk_offset is not None and relation.chunk_end is not None:
        ends = _lists(relation.chunk_end, np.diff(relation.chunk_offset))
        rows = rows.with_columns(chunk_end=ends)
    chunks = np.diff(relation.chunks)  # of which there may be facts
    for name, values in (relation.chunk_facts or {}).items():
        rows = rows.with_columns(_lists(values, chunks).alias(FACT + name))
    if relation.edge_weight is not None:
        rows = rows.with_columns(edge_weight=_lists(relation.edge_weight, edges))
    if relation.item_times is not None:
        rows = rows.with_columns(item_times=_lists(relation.item_times, items))
    return rows


def _lists(values: Any, sizes: Ints) -> pl.Series:  # noqa: ANN401
    """Cut a column into one list per query; whole numbers of any width are written as int64."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        values = values.astype(np.int64, copy=False)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    lists = pl.DataFrame({"row": rows, "value": values}).group_by("row").agg("value")
    every = pl.DataFrame({"row": np.arange(len(sizes))})
    joined = every.join(lists, on="row", how="left", maintain_order="left")
    return joined.select(pl.col("value").fill_null([])).to_series()


def relation_of(rows: pl.DataFrame) -> Relation:
    """Rebuild a relation from its table."""
    grades, item_offset = _flat(rows["item_grade"])
    ranks, edge_offset = _flat(rows["edge_rank"])
    units, unit_offset = _flat(rows["unit_rank"])
    docs, member_offset = _flat(_flat(rows["item_docs"])[0])
    edge_query = np.repeat(np.arange(rows.height), np.diff(edge_offset))
    chunk_end, chunk_offset = _flat_if_any(rows, "chunk_end")
    return Relation(
        queries=rows["query"],
        depth=rows["depth"].to_numpy(),
        item_offset=item_offset,
        item_grade=grades.to_numpy(),
        edge_query=edge_query,
        edge_rank=ranks.to_numpy(),
        edge_item=_flat(rows["edge_item"])[0].to_numpy() + item_offset[:-1][edge_query],
        unit_query=np.repeat(np.arange(rows.height), np.diff(unit_offset)),
        unit_rank=units.to_numpy(),
        unit_judged=_flat(rows["unit_judged"])[0].to_numpy(),
        unit_repeat=_flat(rows["unit_repeat"])[0].to_numpy(),
        member_item=np.repeat(np.arange(len(grades)), np.diff(member_offset)),
        member_doc=docs,
        reasons={at: why for at, why in enumerate(rows["undefined_reason"]) if why is not None},
        failed_verdicts=rows["failed"].to_numpy() if rows["failed"].any() else None,
        needed=bool(rows["needed"].any()),
        item_times=_flat_if_any(rows, "item_times")[0],
        judged_to=rows.get_column("judged_to", default=pl.Series([], dtype=pl.Int64)).max(),  # type: ignore[arg-type]
        chunk_offset=chunk_offset,
        chunk_end=chunk_end,
        chunk_facts=_facts(rows),
        edge_weight=_flat_if_any(rows, "edge_weight")[0],  # type: ignore[arg-type]
    )


def _flat(lists: pl.Series) -> tuple[pl.Series, Ints]:
    """Return the elements of all lists, and where each list begins among them."""
    sizes = lists.list.len().to_numpy().astype(np.int64)
    return lists.filter(sizes > 0).explode(), np.concatenate(([0], np.cumsum(sizes)))


def _flat_if_any(rows: pl.DataFrame, name: str) -> tuple[Ints | None, Ints | None]:
    """Return the same of a column that a relation may lack."""
    lists = rows.get_column(name, default=None)
    if lists is None or lists.null_count():
        return None, None
    values, offset = _flat(lists)
    return values.to_numpy(), offset


def _facts(rows: pl.DataFrame) -> dict[str, Floats] | None:
    """Return what is known about the chunks of a relation; None if nothing is."""
    names = [name for name in rows.columns if name.startswith(FACT)]
    found = {name.removeprefix(FACT): _flat_if_any(rows, name)[0] for name in names}
    known = {
        name: values.astype(np.float64) for name, values in found.items() if values is not None
    }
    return known or None

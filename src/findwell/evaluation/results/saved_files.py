"""What the files of a saved result must hold, and the error if one of them does not.

Hashes tell that a file is what was saved. These checks tell that what was saved, by whatever
program, is a result: otherwise something far away would fail, and name no file.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from findwell.core.errors import InputError
from findwell.core.findings import Finding, shorten
from findwell.core.frames import pl
from findwell.core.policy import Policy
from findwell.evaluation.results.estimates import IN_JSON
from findwell.judges.aspects.aspect import VerdictShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from findwell.core.data import Ints

FIX = "save the result again, or take the folder from a copy"
DEEPEST_RANK = 100_000_000  # ranks of a list; tables by rank must fit into memory


class _Each:
    """An object with any names, whose values are all of one kind."""

    def __init__(self, kind: Any) -> None:  # noqa: ANN401
        self.kind = kind


class _Maybe:
    """A field that may be missing."""

    def __init__(self, kind: Any) -> None:  # noqa: ANN401
        self.kind = kind


NUMBER, NOTHING = (int, float), type(None)
# a type or several, [what a list holds], {what the fields hold}
ASPECT = {
    **dict.fromkeys(("about", "shape", "needs", "unit", "prefix", "value"), str),
    **dict.fromkeys(("prompt", "list_prompt"), (str, NOTHING)),
    "grades": _Each(str),
}
MANIFEST_FIELDS: dict[str, Any] = {
    "created": str,
    "versions": _Each(str),
    "runs": [str],
    "measures": [str],
    "relation": str,
    "relations": _Each(_Each(object)),
    "ids": str,
    "dialect": str,
    "policies": _Each(str),
    "bounds": bool,
    "interval": {"level": (*NUMBER, NOTHING), "cluster": (str, NOTHING)},
    "judge": {"aspects": _Maybe(_Each(ASPECT))},
    "inputs": [{"role": str, "kind": str, "path": (str, NOTHING), "sha256": (str, NOTHING)}],
    "findings": [
        {"kind": str, "count": int, "examples": [str], "message": str}
        | {"fix": _Maybe(str), "run": _Maybe(str)}
    ],
    "files": _Each(str),
    "estimates": _Maybe(
        [
            {
                **dict.fromkeys(("run", "measure", "method", "estimator", "reason"), str),
                **dict.fromkeys(("value", "low", "high", "effective"), (*NUMBER, NOTHING)),
                "labels": int,
                "baseline": (str, NOTHING),
            }
        ]
    ),
    "labels": _Maybe({"level": NUMBER}),
}
SPOKEN_TYPES = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}
SPOKEN_TYPES |= {list: "a list", dict: "an object", NOTHING: "null", object: "anything"}


def damaged(path: Path | str, what: str = "it is not what was saved") -> InputError:
    """Return the error about a file of a result."""
    return InputError(f"the file is damaged: {what}", where=str(path), fix=FIX)


def check_manifest(manifest: Mapping[str, Any], path: Path) -> None:
    """Raise unless a manifest says all that a result needs, in the types it should have."""
    for name, kind in MANIFEST_FIELDS.items():
        wrong = _misfit(manifest.get(name, MISSING), kind, name)
        if wrong:
            raise damaged(path, wrong)
    for wrong in _contradictions(manifest):
        raise damaged(path, wrong)


def _contradictions(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say what is wrong with a manifest whose types are right."""
    choices = {name: get_args(hint) for name, hint in get_type_hints(Policy).items()}
    for name, choice in manifest["policies"].items():
        if choice not in choices.get(name, ()):
            yield f"policies: {shorten(name)!r} is {shorten(choice)!r}"
    known = {"findings": {each.name for each in fields(Finding)}}
    known["inputs"] = set(MANIFEST_FIELDS["inputs"][0])
    if "estimates" in manifest:
        known["estimates"] = set(IN_JSON)
    for field, names in known.items():
        for other in (each.keys() - names for each in manifest[field]):
            yield from (f"{field}: unknown field {shorten(name)!r}" for name in sorted(other))
    for name, aspect in manifest["judge"].get("aspects", {}).items():
        numbered = all(map(str.isdecimal, aspect["grades"]))
        if aspect["shape"] not in list(VerdictShape) or not numbered:
            yield f"judge: the aspect {shorten(name)!r} has no shape or other grades"
    level = manifest["interval"]["level"]
    if level is not None and not 0 < level < 1:
        yield f"interval: the level is {level}"
    if not manifest["runs"] or not manifest["measures"]:
        yield "it names no run or no measure"
    absent = {"relation.parquet", "queries.parquet"} - manifest["files"].keys()
    yield from (f"files: there is no {name}" for name in sorted(absent))


def _misfit(value: object, kind: Any, name: str) -> str:  # noqa: ANN401
    """Say how a value is not of a kind; an empty string if it is."""
    if isinstance(kind, _Maybe):
        return "" if value is MISSING else _misfit(value, kind.kind, name)
    if value is MISSING:
        return f"{name!r} is missing"
    if isinstance(kind, type | tuple):
        return _other_type(value, kind if isinstance(kind, tuple) else (kind,), name)
    holder = list if isinstance(kind, list) else dict
    if not isinstance(value, holder):
        return _other_type(value, (holder,), name)
    if isinstance(value, list):
        inner: Iterable[tuple[object, Any, str]] = ((each, kind[0], name) for each in value)
    elif isinstance(kind, _Each):
        inner = ((each, kind.kind, f"{name}.{key}") for key, each in value.items())
    else:
        inner = ((value.get(key, MISSING), of, f"{name}.{key}") for key, of in kind.items())
    return next(filter(None, (_misfit(*each) for each in inner)), "")


def _other_type(value: object, kinds: tuple[type, ...], name: str) -> str:
    fits = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
    if fits or object in kinds:
        return ""
    found = SPOKEN_TYPES.get(type(value), type(value).__name__)
    return f"{name!r} is {found} instead of {' or '.join(SPOKEN_TYPES[kind] for kind in kinds)}"


def _text(kind: pl.DataType) -> bool:
    return kind in (pl.String, pl.Null)


def _whole(kind: pl.DataType) -> bool:
    return kind.is_integer()


def _number(kind: pl.DataType) -> bool:
    return kind.is_numeric() or kind == pl.Null


def _truth(kind: pl.DataType) -> bool:
    return kind == pl.Boolean


def _many(inner: Callable[[pl.DataType], bool]) -> Callable[[pl.DataType], bool]:
    def fits(kind: pl.DataType) -> bool:
        held = getattr(kind, "inner", None) if isinstance(kind, pl.List) else None
        return held is not None and (held == pl.Null or inner(held))

    return fits


# the columns of each table: those it needs, and others whose type is known
NEEDED: dict[str, dict[str, Callable[[pl.DataType], bool]]] = {
    "queries": {"query": _text},
    "about": {"run": _text, "query": _text},
    "listed": {"run": _text, "query": _text, "rank": _whole, "doc": _text},
    "verdicts": {
        **dict.fromkeys(("run", "query", "aspect", "item", "chunk", "reason", "quote"), _text),
        "value": _number,
        "unproven": _truth,
    },
    "relation": {
        **dict.fromkeys(("run", "relation", "query", "undefined_reason"), _text),
        **dict.fromkeys(("depth", "lenient"), _whole),
        **dict.fromkeys(("failed", "needed"), _truth),
        "item_grade": _many(_number),
        "item_docs": _many(_many(_text)),
        **dict.fromkeys(("edge_rank", "edge_item", "unit_rank", "unit_repeat"), _many(_whole)),
        "unit_judged": _many(_truth),
    },
}
OTHER_TABLES: dict[str, dict[str, Callable[[pl.DataType], bool]]] = {
    "listed": {"score": _number, "text": _text, "start": _number, "end": _number},
    "relation": {"judged_to": _whole, "chunk_end": _many(_whole), "item_times": _many(_whole)},
    "verdicts": {"probability": _number},  # older results lack it
}
MAY_LACK = {
    "relation": {"undefined_reason", "judged_to", "chunk_end", "item_times"},
    "listed": {"doc", "score", "text", "start", "end"},
    "verdicts": {"item", "chunk", "value", "reason", "quote", "unproven", "probability"},
    "about": {"query"},
}


def check_table(name: str, table: pl.DataFrame, path: Path) -> None:
    """Raise unless a table has its columns, of their types, without gaps."""
    for column, fits in (NEEDED[name] | OTHER_TABLES.get(name, {})).items():
        kind = table.schema.get(column)
        if kind is None:
            if column in NEEDED[name]:
                raise damaged(path, f"there is no column {column!r}")
            continue
        if not fits(kind):
            raise damaged(path, f"the column {column!r} holds {kind}")
        if column not in MAY_LACK.get(name, ()) and table[column].null_count():
            raise damaged(path, f"the column {column!r} has gaps")


def check_relations(tables: Mapping[str, pl.DataFrame], runs: list[str], path: Path) -> None:
    """Raise unless the relations fit together, and fit the queries and the runs."""
    rows, queries = tables["relation"], tables["queries"]["query"]
    if not rows.height or queries.is_duplicated().any():
        raise damaged(path, "there are no rows" if queries.is_unique().all() else "a query twice")
    if rows.filter(pl.col("lenient") == 0)["run"].unique(maintain_order=True).to_list() != runs:
        raise damaged(path, f"it is not about the runs {', '.join(runs)}")
    keys = ["run", "relation", "lenient"]
    for part in rows.partition_by(keys, maintain_order=True):
        # a run has some of the queries, in their order, where those that it lacks are skipped
        if not part["query"].equals(queries.filter(queries.is_in(part["query"].implode()))):
            raise damaged(path, f"the run {part['run'][0]!r} has queries of another result")
    sizes = {
        name: rows[name].list.len().fill_null(0).to_numpy().astype(np.int64)
        for name, kind in rows.schema.items()
        if isinstance(kind, pl.List)
    }
    items, edges, units = sizes["item_grade"], sizes["edge_rank"], sizes["unit_rank"]
    alike = {"item_docs": items, "edge_item": edges, "unit_judged": units, "unit_repeat": units}
    alike |= {"item_times": items} if "item_times" in sizes else {}
    for name, size in alike.items():
        if rows[name].null_count() == 0 and (sizes[name] != size).any():
            raise damaged(path, f"the lists of {name!r} differ in length from the other lists")
    _check_numbers(rows, items, path)


def _check_numbers(rows: pl.DataFrame, items: Ints, path: Path) -> None:
    depth = rows["depth"].to_numpy()
    if (depth < 0).any() or (depth > DEEPEST_RANK).any():
        raise damaged(path, "'depth' is not a number of documents")
    grades = rows["item_grade"].explode().drop_nulls().cast(pl.Float64)
    if grades.len() != items.sum() or not grades.is_finite().all():
        raise damaged(path, "a grade in 'item_grade' is not a finite number")
    limits = {"edge_rank": (1, depth), "unit_rank": (1, depth), "edge_item": (0, items - 1)}
    for name, (least, most) in limits.items():
        sizes = rows[name].list.len().to_numpy()
        given = rows[name].filter(sizes > 0).explode()
        at = np.repeat(np.arange(rows.height), sizes)
        if given.null_count() or (given < least).any() or (given.to_numpy() > most[at]).any():
            raise damaged(path, f"a number in {name!r} is out of range")
    for name in ("unit_judged", "unit_repeat"):
        if rows[name].explode().null_count() > (rows[name].list.len() == 0).sum():
            raise damaged(path, f"the column {name!r} has gaps")

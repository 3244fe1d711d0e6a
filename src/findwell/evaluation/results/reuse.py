"""A saved result instead of a run: what was read once need not be read again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.core.errors import InputError, OptionError, choose_column
from findwell.evaluation.results.result import Result
from findwell.io.storage.folders import MANIFEST, is_folder

if TYPE_CHECKING:
    from findwell.measures import Measure


def _load(folder: str | os.PathLike[str]) -> Result:
    from findwell.evaluation.results.store import load  # noqa: PLC0415 - most have no folder

    return load(folder)


def as_result(data: object) -> Result | None:
    """Return a result, or the one that a folder holds; None for everything else."""
    if isinstance(data, str | os.PathLike) and is_folder(data):
        return _load(data)
    return data if isinstance(data, Result) else None


def load_only(paths: Sequence[str]) -> Result | None:
    """Return the result of the only path; None if none of them is the folder of a result."""
    if not any(is_folder(path) and (Path(path) / MANIFEST).is_file() for path in paths):
        return None
    if len(paths) > 1:
        raise OptionError(
            "only one saved result can be used instead of runs",
            fix="name one folder, or put several side by side: findwell compare, findwell report",
        )
    return _load(paths[0])


def require_result(data: object) -> Result:
    """Return a result, or the one that a folder holds."""
    if isinstance(data, str | os.PathLike):
        return _load(data)
    if isinstance(data, Result):
        return data
    raise InputError(
        f"this is no result, but {type(data).__name__}",
        fix="give what findwell.evaluate returns, or the folder that Result.save wrote",
    )


def refuse_inputs(names: Iterable[str]) -> None:
    """Raise if there is any of these options: they say how inputs are read, and none are read."""
    for name in names:
        raise OptionError(
            f"{name} has no effect: it says how inputs are read, and a saved result was "
            "evaluated before",
            fix="leave it out, or name the run file instead of the result",
        )


def same_dialect(result: Result, name: str, where: str = "") -> None:
    """Raise unless a result was measured in this dialect."""
    if result.dialect != name:
        raise OptionError(
            f"the result was measured in the dialect {result.dialect}, not in {name}",
            where=where,
            fix=f"leave the dialect out, or evaluate the run again in the dialect {name}",
        )


def rescore(
    result: Result,
    measures: Iterable[str | Measure] | str | None = None,
    *,
    rel: float | None = None,
    level: float | None = None,
    cluster: str | None = None,
    bounds: bool = False,
) -> Result:
    """Score a result again with other measures or options; those left out stay as they were.

    The level 0 means no intervals.
    """
    if measures is not None or rel is not None:
        names = [str(each) for each in result.measures] if measures is None else measures
        result = result.score(names, rel=rel)
    if cluster is not None:
        result = result.with_options(cluster=choose_column(result.queries, cluster))
    if level is not None:
        result = result.with_options(level=level or None)
    return result.with_options(bounds=True) if bounds else result

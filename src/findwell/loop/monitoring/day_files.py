"""The Parquet files of a trace store: one folder per day, each file whole or not at all there."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from findwell.core.errors import InputError, SaveError
from findwell.io.read.traces.hops import calls_among
from findwell.io.storage.files import create_file, make_folder, removed_at_the_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

FOLDER = "queries"
GROUP = 16_384  # calls in a group of rows: what is read at once
ABANDONED = 3_600  # seconds after which the draft of another process is nobody's
NAMES = re.compile(r"calls-[0-9a-f]{16}\.parquet")
DAYS = re.compile(r"[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}")
DRAFTS = re.compile(r"\.findwell-[0-9a-f]{16}\.draft")


@dataclass(frozen=True, slots=True)
class DayFile:
    """A file of calls that began on one day, in UTC."""

    day: str  # 2026-11-16
    name: str
    calls: int
    bytes: int
    first: int  # microseconds since 1970
    last: int

    def __post_init__(self) -> None:
        """Refuse a name that leads out of the store: a catalogue may be somebody else's."""
        if not (DAYS.fullmatch(self.day) and NAMES.fullmatch(self.name)):
            raise InputError(
                f"the catalogue of the store names a file that is not one of calls: {self.name!r}",
                where=f"day={self.day}",
                fix="ask the person who made the store; nothing was read or deleted",
            )

    def path(self, store: Path) -> Path:
        """Return where it is."""
        return day_folder(store, self.day) / self.name


def day_folder(store: Path, day: str) -> Path:
    """Return the folder of a day, named as readers of partitioned files expect."""
    return store / FOLDER / f"day={day}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that is written, but not yet under its name."""

    path: Path
    file: DayFile


@contextlib.contextmanager
def drafts_of_days(store: Path, calls: pl.DataFrame) -> Iterator[list[Draft]]:
    """Write calls to drafts, one per day; those that were not published are deleted in the end."""
    drafts: list[Draft] = []
    parts = calls.with_columns(day=pl.col("time").dt.date().cast(pl.String)).partition_by(
        "day", as_dict=True, include_key=False
    )
    with contextlib.ExitStack() as held:
        for (day,), part in parts.items():
            ordered = part.sort("time", "trace", "span")
            drafts.append(held.enter_context(draft_of_day(store, str(day), ordered.lazy())))
        yield drafts


@contextlib.contextmanager
def draft_of_day(store: Path, day: str, calls: pl.LazyFrame) -> Iterator[Draft]:
    """Write the draft of a file of one day, which is on disk then."""
    # not in the folder of the day: who reads that as a whole must not find what is no Parquet
    path = store / f".findwell-{secrets.token_hex(8)}.draft"
    with removed_at_the_end(path):
        with _told_as_unsaved(day, store):
            create_file(path)
            calls.sink_parquet(path, compression="zstd", row_group_size=GROUP, statistics=True)
            _on_disk(path)
            about = pl.scan_parquet(path).select(
                calls_among(), first=pl.col("time").min(), last=pl.col("time").max()
            )
            count, first, last = about.cast(pl.Int64).collect().row(0)
            size = path.stat().st_size
        name = f"calls-{secrets.token_hex(8)}.parquet"
        yield Draft(path, DayFile(day, name, count, size, first, last))


def publish(store: Path, drafts: Sequence[Draft]) -> None:
    """Give drafts their names. While this is done no other process may clear files away."""
    for each in drafts:
        folder = day_folder(store, each.file.day)
        with _told_as_unsaved(each.file.day, folder):
            make_folder(folder)
            each.path.rename(folder / each.file.name)
            for named in (folder, folder.parent, store):  # names must last, too
                _on_disk(named)


@contextlib.contextmanager
def _told_as_unsaved(day: str, folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise SaveError(
            f"the calls of {day} could not be written to a file: {reason}",
            where=str(folder),
            fix="free some space; they stay in the catalogue, and it is tried again",
        ) from None


def delete_files(store: Path, files: Iterable[DayFile]) -> None:
    """Delete files, and the folders of days that are empty then."""
    for each in files:
        with contextlib.suppress(OSError):
            each.path(store).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty
            day_folder(store, each.day).rmdir()


def clear_unknown(store: Path, known: Iterable[DayFile]) -> None:
    """Delete what killed processes left: files of ours that the catalogue does not know."""
    paths = {each.path(store) for each in known}
    long_ago = time.time() - ABANDONED
    with contextlib.suppress(OSError):
        for path in (store / FOLDER).glob("day=*/*"):
            if NAMES.fullmatch(path.name) and path not in paths:
                path.unlink()
        for path in store.iterdir():
            if DRAFTS.fullmatch(path.name) and path.stat().st_mtime < long_ago:
                path.unlink()


def _on_disk(path: Path) -> None:
    """Have a file, or the names in a folder, survive the loss of power."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

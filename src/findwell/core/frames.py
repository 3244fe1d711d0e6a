"""polars, imported when it is first used, and fields that become its columns when first read.

Scoring a plain TREC file needs no frame: compiled code reads it, and NumPy does the rest. Importing
polars takes longer than that, so modules on this way import `pl` from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from operator import eq
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl
    from numpy.typing import NDArray
else:

    class _Polars:
        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            import polars  # noqa: PLC0415, ICN001

            vars(self).update(vars(polars))  # from now on they are plain attributes
            return getattr(polars, name)

    pl = _Polars()

T = TypeVar("T")
D = TypeVar("D")


class Strings(Sequence[str]):
    """A column of strings as compiled code read it, in pieces: `read_gold` gives such pieces.

    It is read by position; `series` is the same as a column of polars.
    """

    def __init__(self, name: str, pieces: Sequence[Any]) -> None:
        self.name = name
        self.pieces = tuple(pieces)
        self._first = np.cumsum([0, *map(len, self.pieces)])

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, at: Any) -> Any:  # noqa: ANN401
        piece = int(np.searchsorted(self._first, at, side="right")) - 1
        return self.pieces[piece][int(at - self._first[piece])]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.pieces)

    def equals(self, other: Strings) -> bool:
        """Tell whether the other column holds the same strings in the same order."""
        return len(self) == len(other) and all(map(eq, self, other))

    def series(self) -> pl.Series:
        """Return the column; its memory is shared."""
        return pl.concat([pl.Series(self.name, piece) for piece in self.pieces])


@dataclass(eq=False)
class Later(Generic[T]):
    """What makes a frame or a column, once, when it is read; some of it is known before."""

    make: Callable[[], T]
    strings: Strings | None = None  # the ids of the rows
    columns: tuple[str, ...] = ()

    @cached_property
    def made(self) -> T:
        """The frame or column."""
        return self.make()


class Viewed:
    """Base of frozen dataclasses of which some fields may be given as `later(…)`.

    Such a field is made when it is first read, and is a plain attribute from then on.

    >>> @dataclass(frozen=True)
    ... class Table(Viewed):
    ...     ids: list[str]
    >>> table = Table(later(lambda: print("made") or ["a"]))
    >>> table.ids, table.ids
    made
    (['a'], ['a'])
    """

    def __post_init__(self) -> None:
        """Put aside what is made later, under another name."""
        held = self.__dict__
        for name in [name for name, value in held.items() if isinstance(value, Later)]:
            held[f"_{name}"] = held.pop(name)

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            given = self.__dict__.get(f"_{name}")
            if isinstance(given, Later):
                value = self.__dict__[name] = given.made
                return value
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def later(
    make: Callable[[], T], strings: Strings | None = None, columns: tuple[str, ...] = ()
) -> T:
    """Return what makes a field of a `Viewed` when it is first read; it stands for that."""
    return cast("T", Later(make, strings, columns))


def unmade(instance: object, field: str) -> Later[Any] | None:
    """Return what would make a field; None where it was made, or given as it is."""
    held = instance.__dict__
    return None if field in held else held[f"_{field}"]


def strings_of(instance: object, field: str) -> Strings | pl.Series:
    """Return a column to be read by position: the strings it would be made of, or the column."""
    given = unmade(instance, field)
    if given is not None and given.strings is not None:
        return given.strings
    column: pl.Series = getattr(instance, field)
    return column


def same_strings(one: Strings | pl.Series, other: Strings | pl.Series) -> bool:
    """Tell whether two columns hold the same strings; makes none where both were read so."""
    if isinstance(one, Strings) and isinstance(other, Strings):
        return one is other or one.equals(other)
    return as_series(one).equals(as_series(other))


def as_series(column: Strings | pl.Series) -> pl.Series:
    """Return strings as a column of polars."""
    return column.series() if isinstance(column, Strings) else column


def as_given(instance: object, field: str) -> Any:  # noqa: ANN401
    """Return a field to hand on: its value, or what makes it later for both."""
    held = instance.__dict__
    return held[field] if field in held else held[f"_{field}"]


def changed(instance: D, **changes: Any) -> D:  # noqa: ANN401
    """Return a copy with other values of some fields, as `dataclasses.replace`; makes nothing."""
    for each in fields(instance):  # type: ignore[arg-type]
        if each.init and each.name not in changes:
            changes[each.name] = as_given(instance, each.name)
    return type(instance)(**changes)


class NamesAt(Sequence[str]):
    """Some of the names of a column, by position or mask, each looked up when it is read."""

    def __init__(self, names: Sequence[str] | pl.Series, at: NDArray[Any]) -> None:
        self._names = names
        self._at = np.flatnonzero(at) if at.dtype == bool else at

    def __len__(self) -> int:
        return len(self._at)

    def __getitem__(self, at: Any) -> Any:  # noqa: ANN401
        return self._names[int(self._at[at])]

    def __iter__(self) -> Iterator[str]:
        return (self._names[int(at)] for at in self._at)


__all__ = [
    "NamesAt",
    "Strings",
    "Viewed",
    "as_given",
    "as_series",
    "changed",
    "later",
    "pl",
    "same_strings",
    "strings_of",
    "unmade",
]

"""polars, imported when it is first used, and fields that become its columns when first read.

Scoring a plain TREC file needs no frame: compiled code reads it, and NumPy does the rest. Importing
polars takes longer than that, so modules on this way import `pl` from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
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

            value = getattr(polars, name)
            setattr(self, name, value)
            return value

    pl = _Polars()

T = TypeVar("T")
D = TypeVar("D")


class Strings(Sequence[str]):
    """A column of strings as compiled code read it, in pieces: `read_qrels` gives such pieces.

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


class _View:
    """The attribute of a class that makes what was given as `Later` when it is first read."""

    def __init__(self, name: str) -> None:
        self._at = f"_{name}"

    def __get__(self, instance: object, owner: type) -> Any:  # noqa: ANN401
        if instance is None:
            return self
        value = instance.__dict__[self._at]
        if isinstance(value, Later):
            value = instance.__dict__[self._at] = value.made
        return value

    def __set__(self, instance: object, value: object) -> None:
        instance.__dict__[self._at] = value


def views(*names: str) -> Callable[[type[D]], type[D]]:
    """Decorator of a frozen dataclass: these fields may be given as `later(…)`.

    >>> @views("ids")
    ... @dataclass(frozen=True)
    ... class Table:
    ...     ids: list[str]
    >>> table = Table(later(lambda: print("made") or ["a"]))
    >>> table.ids, table.ids
    made
    (['a'], ['a'])
    """

    def decorate(cls: type[D]) -> type[D]:
        for name in names:
            setattr(cls, name, _View(name))
        return cls

    return decorate


def later(
    make: Callable[[], T], strings: Strings | None = None, columns: tuple[str, ...] = ()
) -> T:
    """Return what makes a field of `views` when it is first read; it stands for what it makes."""
    return cast("T", Later(make, strings, columns))


def unmade(instance: object, field: str) -> Later[Any] | None:
    """Return what would make a field of a view; None where it was made, or given as it is."""
    value = instance.__dict__[f"_{field}"]
    return value if isinstance(value, Later) else None


def changed(instance: D, **changes: Any) -> D:  # noqa: ANN401
    """Return a copy with other values of some fields, as `dataclasses.replace`; makes no view."""
    kept = instance.__dict__
    for each in fields(instance):  # type: ignore[arg-type]
        if each.init and each.name not in changes:
            at = f"_{each.name}"
            changes[each.name] = kept[at] if at in kept else kept[each.name]
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


__all__ = ["NamesAt", "Strings", "changed", "later", "pl", "unmade", "views"]

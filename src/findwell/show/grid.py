"""A table of text, before it is drawn for a terminal, a page or a paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from findwell.core.findings import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text; `best` marks the cells that lead their column."""

    kind: ClassVar[str] = "table"

    title: str
    header: list[str]
    rows: list[list[str]]
    left: int = 1  # how many columns are text; the rest are numbers
    named_by: int | None = None  # how many of the first columns name a row; None: all texts
    best: set[tuple[int, int]] = field(default_factory=set)
    good: set[tuple[int, int]] = field(default_factory=set)  # cells about a success
    bad: set[tuple[int, int]] = field(default_factory=set)  # cells about a failure
    note: str = ""  # a sentence that stands below
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)  # signs behind cells
    wider: Grid | None = None  # the same with more in it, for a terminal that has room for it
    listed: str = ""  # the same as lines, for a terminal that has no room for the table

    @property
    def keys(self) -> int:
        """How many of the first columns name a row."""
        return self.left if self.named_by is None else self.named_by

    @classmethod
    def of(
        cls,
        title: str,
        columns: Mapping[str, Callable[[Row], str]],
        rows: Iterable[Row],
        **more: Any,  # noqa: ANN401
    ) -> Grid:
        """Lay out rows in columns, each a name and what it shows of a row.

        >>> Grid.of("lists", {"docs": str, "first": min}, ["ab", "c"]).rows
        [['ab', 'a'], ['c', 'c']]
        """
        cells = [[show(row) for show in columns.values()] for row in rows]
        return cls(title, list(columns), cells, **more)


def one_line(text: str, most: int = 60) -> str:
    """Return the beginning of a text on one line, for a cell.

    >>> one_line("Rome is\\n in Italy.", 8)
    'Rome is…'
    """
    return shorten(" ".join(text.split()), most)

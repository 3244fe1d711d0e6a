"""Reports that were asked for, kept as long as their results do not change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from karat.errors import InputError
from karat.report.cases import Cases, gold_texts, tell_all
from karat.report.html import Prepared, prepare
from karat.report.panel import lay_side_by_side

if TYPE_CHECKING:
    from karat.report.panel import Panel
    from karat.web.folders import Folders, Found

KEPT = 6  # reports
RANKS, LETTERS = 50, 20_000  # a page that asks can be shown more than a file can hold


@dataclass(frozen=True, slots=True)
class Choice:
    """What is looked at: which results, against what, which slice."""

    results: tuple[str, ...]
    baseline: str | None = None
    only: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Book:
    """A report, and what tells its queries."""

    found: tuple[Found, ...]
    prepared: Prepared
    cases: list[Cases]

    @property
    def panel(self) -> Panel:
        """The systems side by side."""
        return self.prepared.panel

    def tell(self, place: int) -> dict[str, Any]:
        """Return one query of the table in full."""
        if not 0 <= place < len(self.prepared.kept):
            raise InputError(f"there is no query {place} in this report", fix="reload the page")
        return tell_all(self.panel, self.cases, int(self.prepared.kept[place]))


class Shelf:
    """Makes reports, and keeps the last ones."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._books: OrderedDict[object, Book] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, choice: Choice) -> Book:
        """Return a report, made anew if one of its results has changed."""
        known = {each.id: each for each in self._folders.results()}
        missing = [each for each in choice.results if each not in known]
        if missing or not choice.results:
            raise InputError("there is no such result any more", fix="go back to the list")
        found = tuple(known[each] for each in choice.results)
        key = (choice, tuple(each.stamp for each in found))
        with self._lock:
            if key not in self._books:
                self._books[key] = _make(found, choice)
            self._books.move_to_end(key)
            while len(self._books) > KEPT:
                self._books.popitem(last=False)
            return self._books[key]


def _make(found: tuple[Found, ...], choice: Choice) -> Book:
    paths = [each.path for each in found]
    panel = lay_side_by_side(paths, baseline=choice.baseline, only=choice.only)
    known = gold_texts(panel)
    cases = [Cases(system, known, ranks=RANKS, letters=LETTERS) for system in panel.systems]
    return Book(found, prepare(panel, cases=False), cases)

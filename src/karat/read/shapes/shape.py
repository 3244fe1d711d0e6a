"""What the shape of a record is: which fields mean what, and how a record becomes karat's own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from karat.errors import InputError
from karat.read.literal import listed

MAIN = ("query", "question", "retrieved", "gold", "reference", "scores")
ROLES = {"run": ("retrieved",), "gold": ("gold",), "samples": ("retrieved", "gold")}


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one tool's records under karat's names, the preferred ones first.

    Fields that are named nowhere here describe the query. A subclass may override `native` where
    names alone do not tell.
    """

    name: str
    retrieved: tuple[str, ...]
    gold: tuple[str, ...]
    query: tuple[str, ...] = ()
    question: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()  # a list beside the retrieved one
    texts: frozenset[str] = frozenset()  # of all these, the ones that hold texts instead of ids
    others: tuple[str, ...] = ()  # known, and describing the query
    needs: frozenset[str] = frozenset()  # without these it is another shape
    items: Callable[[Any], Any] | None = field(default=None)  # how the tool reads its gold
    last_wins: bool = False  # of two golds of one query the later counts

    def known(self) -> tuple[str, ...]:
        """Return every field of the shape."""
        groups = (getattr(self, entry.name) for entry in fields(self))
        named = (name for group in groups if isinstance(group, tuple) for name in group)
        return tuple(dict.fromkeys(named))

    def main(self) -> set[str]:
        """Return the fields that karat reads, and not only shows."""
        return {name for role in MAIN for name in getattr(self, role)}

    def present(self, names: Iterable[str]) -> list[str]:
        """Return the fields of the shape that are among these names."""
        given = set(names)
        return [name for name in self.known() if name in given]

    def fits(self, names: Iterable[str], role: str) -> bool:
        """Tell whether a record with these fields holds what the role asks for."""
        given = set(names)
        sides = (getattr(self, side) for side in ROLES[role])
        return self.needs <= given and all(given.intersection(side) for side in sides)

    def pick(self, names: Iterable[str]) -> dict[str, str]:
        """Map karat's names to the fields that a record with these fields holds them in.

        Ids go before texts, but both sides are of a kind if that can be.
        """
        given = set(names)
        found = {}
        for name in MAIN:
            present = [entry for entry in getattr(self, name) if entry in given]
            if present:
                found[name] = present[0]
        sides = [found[side] for side in ("retrieved", "gold") if side in found]
        if len({side in self.texts for side in sides}) > 1:
            kinds = {
                side: [entry for entry in getattr(self, side) if entry in given & self.texts]
                for side in ("retrieved", "gold")
            }
            if all(kinds.values()):
                found |= {side: entries[0] for side, entries in kinds.items()}
        if found.get("retrieved") in self.texts:
            found.pop("scores", None)
        return found

    def rivals(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the fields that count beside others which could be meant, and these.

        Ids and texts of the same list are no rivals.

        >>> Shape("x", ("ids", "texts"), (), ("qid", "id"), texts=frozenset({"texts"})).rivals(
        ...     ["id", "qid", "ids", "texts"]
        ... )
        [('qid', 'id')]
        """
        if all(len(getattr(self, role)) < 2 for role in MAIN):
            return []
        given = set(names)
        return [
            (chosen, other)
            for role, chosen in self.pick(given).items()
            for other in getattr(self, role)
            if other in given - {chosen} and (other in self.texts) == (chosen in self.texts)
        ]

    def pick_text(self, names: Iterable[str], side: str) -> str | None:
        """Return the field that holds the texts of a side, if there is one."""
        given = self.texts.intersection(names)
        return next((name for name in getattr(self, side) if name in given), None)

    def rest(self, names: Iterable[str]) -> list[str]:
        """Return the fields that describe the query, under their own names."""
        taken = {*self.query, *self.question, *self.retrieved, *self.gold, *self.scores}
        taken |= {"query", *self.reference}
        return [name for name in names if name not in taken]

    def native(
        self, record: Mapping[str, Any], *, cells: bool = False, texts: bool = False
    ) -> dict[str, Any]:
        """Return the record under karat's names, with texts beside ids if they are wanted.

        `cells` says that every value is a text.
        """
        given = [name for name, value in record.items() if value is not None]
        picked = self.pick(given)
        for name, entry in self.pick(record).items():  # a null is better than nothing
            picked.setdefault(name, entry)
        found = {name: record[entry] for name, entry in picked.items()}
        for name in ("retrieved", "gold", "scores"):
            if name in found:
                found[name] = listed(found[name], picked[name], strict=cells)
        if self.items is not None and found.get("gold") is not None:
            found["gold"] = self.items(found["gold"])
        if found.get("scores") is not None:
            beside = (picked["scores"], "score", found["scores"])
            found["retrieved"] = _put_beside(found["retrieved"], picked["retrieved"], *beside)
        found.pop("scores", None)
        for side in ("retrieved", "gold"):
            field_ = self.pick_text(given, side) if texts and found.get(side) is not None else None
            if field_ is not None:
                values = listed(record[field_], field_, strict=cells)
                beside = (field_, "text", values)
                found[side] = _put_beside(found[side], picked[side], *beside)
        if "reference" in found:
            found["reference"] = _answer(found["reference"], cells=cells)
        return found | {name: record[name] for name in self.rest(record)}

    def uses_texts(self, names: Iterable[str]) -> list[str]:
        """Return the fields of texts that serve as ids in a record with these fields."""
        picked = self.pick(names)
        sides = (picked.get(side) for side in ("retrieved", "gold"))
        return [side for side in sides if side in self.texts]


def _answer(value: Any, *, cells: bool) -> Any:  # noqa: ANN401
    """Return a reference answer; some tools put the only one into a list."""
    if cells:
        with contextlib.suppress(InputError):  # it is a text that happens to begin with [
            value = listed(value, "reference") or value
    is_list = isinstance(value, list | tuple) or hasattr(value, "tolist")
    return next(iter(value)) if is_list and len(value) == 1 else value


def _put_beside(entries: Any, where: str, field_: str, name: str, values: Any) -> Any:  # noqa: ANN401
    """Put each value of a list beside its document; `where` and `field_` name the two fields."""
    try:
        docs, numbers = [] if entries is None else list(entries), list(values)
    except TypeError:
        return entries  # whatever is wrong with it is said where it is read
    if len(docs) != len(numbers):
        raise InputError(
            f"{where!r} lists {len(docs)} and {field_!r} {len(numbers)}",
            fix=f"give every document one {name}, or leave the {name}s out",
        )
    entries = [doc if isinstance(doc, Mapping) else {"docs": doc, "doc": doc} for doc in docs]
    return [entry | {name: value} for entry, value in zip(entries, numbers, strict=True)]


SHAPES: dict[str, Shape] = {}


def register_shape(shape: Shape) -> Shape:
    """Make a shape known; a later one of the same name replaces the earlier."""
    SHAPES[shape.name] = shape
    return shape

"""The shapes of records that findwell reads, its own and other tools', and how they are recognised.

Those of tools are in `tools.toml`. A plugin adds a shape with `register_shape`, in a module that an
entry point of the group `findwell.shapes` or `findwell.formats` names.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from findwell.core.errors import InputError, nearest
from findwell.core.findings import shorten
from findwell.core.plugins import Registry
from findwell.io.read.values import listed
from findwell.io.read.vocabulary import tools

MAIN = ("query", "question", "retrieved", "gold", "reference", "scores")
ROLES = {"run": ("retrieved",), "gold": ("gold",), "samples": ("retrieved", "gold")}
GIVE_GOLD = "--gold FILE (in Python gold=)"
# what an entry of several searches says: which of them found it, and how many there were
HOP, CALLS = "\0hop", "\0calls"
MEANS = {"retrieved": "what was retrieved", "gold": "what should be found"}


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one tool's records under findwell's names, the preferred ones first.

    Fields that are named nowhere here describe the query. Where the names alone are not enough,
    `adapt` changes a record that is under findwell's names, given the record as it was and whether
    texts are wanted; a subclass may override `native`.
    """

    name: str
    retrieved: tuple[str, ...]
    gold: tuple[str, ...]
    query: tuple[str, ...] = ()
    question: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()  # a list next to the retrieved one
    texts: frozenset[str] = frozenset()  # those of all these fields that hold texts instead of ids
    others: tuple[str, ...] = ()  # known, and describing the query
    needs: frozenset[str] = frozenset()  # without these it is another shape
    items: Callable[[Any], Any] | None = None  # how the tool reads its gold
    adapt: Callable[..., None] | None = None
    last_wins: bool = False  # of two golds of one query the later counts
    searches: bool = False  # what was retrieved is a list of searches
    documents: bool = True  # it names documents, not labels or places

    def known(self) -> tuple[str, ...]:
        """Return every field of the shape."""
        groups = (getattr(self, entry.name) for entry in fields(self))
        named = (name for group in groups if isinstance(group, tuple) for name in group)
        return tuple(dict.fromkeys(named))

    def main(self) -> set[str]:
        """Return the fields that findwell reads, and not only shows."""
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
        """Map findwell's names to the fields that a record with these fields holds them in.

        Ids are preferred to texts, but where possible both sides are ids or both are texts.
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
        """Return pairs of a field that counts and another one of the same meaning.

        Ids and texts of the same list do not compete.

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
        """Return the record under findwell's names, with texts next to ids if they are wanted.

        With `cells` every value is a text.
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
            extra = (picked["scores"], "score", found["scores"])
            found["retrieved"] = _put_beside(found["retrieved"], picked["retrieved"], *extra)
        found.pop("scores", None)
        for side in ("retrieved", "gold"):
            field_ = self.pick_text(given, side) if texts and found.get(side) is not None else None
            if field_ is not None:
                values = _texts_of(listed(record[field_], field_, strict=cells))
                extra = (field_, "text", values)
                found[side] = _put_beside(found[side], picked[side], *extra)
        if "reference" in found:
            found["reference"] = _answer(found["reference"], cells=cells)
        found |= {name: record[name] for name in self.rest(record)}
        if self.adapt is not None:
            self.adapt(found, record, texts=texts)
        return found


def _texts_of(values: Any) -> Any:  # noqa: ANN401
    """Return the texts of a list in which some stand in entries, next to ids."""
    if not isinstance(values, list) or not any(isinstance(value, Mapping) for value in values):
        return values
    return [value.get("text") if isinstance(value, Mapping) else value for value in values]


def _answer(value: Any, *, cells: bool) -> Any:  # noqa: ANN401
    """Return a reference answer; some tools put the only one into a list."""
    if cells:
        with contextlib.suppress(InputError):  # it is a text that happens to begin with [
            value = listed(value, "reference") or value
    is_list = isinstance(value, list | tuple) or hasattr(value, "tolist")
    return next(iter(value)) if is_list and len(value) == 1 else value


def _put_beside(entries: Any, where: str, field_: str, name: str, values: Any) -> Any:  # noqa: ANN401
    """Put each value of a list next to its document; `where` and `field_` name the two fields."""
    try:
        docs, numbers = [] if entries is None else list(entries), list(values)
    except TypeError:
        return entries  # what is wrong with it is reported where it is read
    if len(docs) != len(numbers):
        raise InputError(
            f"{where!r} has {len(docs)} entries and {field_!r} has {len(numbers)}",
            fix=f"give every document one {name}, or leave the {name}s out",
        )
    entries = [doc if isinstance(doc, Mapping) else {"docs": doc, "doc": doc} for doc in docs]
    return [entry | {name: value} for entry, value in zip(entries, numbers, strict=True)]


def join_searches(found: dict[str, Any], _record: Mapping[str, Any], *, texts: bool) -> None:
    """Put what several searches for one question found one after another.

    Each search is a record of any shape, or a list.
    """
    hops: Any = found.get("retrieved")
    if _is_list(hops):  # what is wrong with others is reported where they are read
        each = [_search(hop, number, texts=texts) for number, hop in enumerate(hops, start=1)]
        found["retrieved"] = [
            {
                **(entry if isinstance(entry, Mapping) else {"doc": entry}),
                HOP: number,
                CALLS: len(each),
            }
            for number, entries in enumerate(each, start=1)
            for entry in entries
        ]


ANSWER = "answer"  # what is retrieved where nuggets were looked for in one answer
SUPPORT = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
IMPORTANCE = {"vital": 2.0, "okay": 1.0}


def take_nuggets(found: dict[str, Any], *_: object, **_options: bool) -> None:
    """Make the nuggets of nuggetizer's assignments items, and the answer what was retrieved."""
    nuggets: Any = found.get("gold")
    if _is_list(nuggets):
        found["retrieved"] = [ANSWER]
        found["gold"] = [
            {
                "docs": {ANSWER: _label(nugget, "assignment", SUPPORT)},
                "grade": _label(nugget, "importance", IMPORTANCE),
            }
            for nugget in nuggets
        ]


def take_references(found: dict[str, Any], record: Mapping[str, Any], **_: bool) -> None:
    """Make the references of Chroma's questions_df.csv spans of their document."""
    references: Any = found.get("gold")
    if _is_list(references):
        found["gold"] = [_reference(each, record["corpus_id"]) for each in references]


def _reference(reference: object, doc: object) -> dict[str, Any]:
    if not isinstance(reference, Mapping) or not reference.keys() >= {"start_index", "end_index"}:
        raise InputError(
            f"the reference {str(reference)[:60]!r} is not a place in a document",
            fix='write {"content": "…", "start_index": 0, "end_index": 42}, as chunking_evaluation '
            "does",
        )
    start, end = reference["start_index"], reference["end_index"]
    return {"doc": doc, "start": start, "end": end, "text": reference.get("content")}


def _label(nugget: object, name: str, known: Mapping[str, float]) -> float:
    value: Any = nugget.get(name) if isinstance(nugget, Mapping) else None
    if isinstance(value, str) and value in known:
        return known[value]
    raise InputError(
        f"the {name} of a nugget is {value!r}",
        fix=f"write one of {', '.join(known)}, as nuggetizer does",
    )


def _search(hop: object, number: int, *, texts: bool) -> list[Any]:
    """Return what one search found."""
    found: Any = hop
    shape = shape_of(hop, "run") if isinstance(hop, Mapping) else None
    if isinstance(hop, Mapping) and shape is not None:
        found = shape.native(hop, texts=texts)["retrieved"]
    if found is None:
        return []
    if _is_list(found) and not isinstance(found, set | frozenset):
        return list(found)
    raise InputError(
        f"hop {number} holds no list of what was retrieved",
        fix='write every hop as {"query": "…", "retrieved": ["d1", "d2"]}, in the order of the '
        "searches",
    )


SHAPES: Registry[Shape] = Registry("shape", group="findwell.shapes")


def register_shape(shape: Shape) -> Shape:
    """Make a shape known; a later one of the same name replaces the earlier."""
    _declare_built_in()
    return SHAPES.register(shape.name, shape, replaces=True)


def or_groups(gold: Any) -> list[Any]:  # noqa: ANN401
    """Return AutoRAG's ground truth as groups, as its `cast_qa_dataset` does.

    A text is one group of one, a flat list is one group, a list of lists are the groups. AutoRAG
    stops at an empty list; here it means that there is no gold.

    >>> or_groups("a"), or_groups(["a", "b"]), or_groups([["a", "b"], ["c"]]), or_groups([])
    ([['a']], [['a', 'b']], [['a', 'b'], ['c']], [])
    """
    if isinstance(gold, str):
        return [[gold]]
    if isinstance(gold, Iterable) and not isinstance(gold, Mapping | bytes):
        groups = list(gold)
        if not groups or all(_is_list(group) for group in groups):
            return groups
        if all(isinstance(doc, str) for doc in groups):
            return [groups]
    raise InputError(
        f"{str(gold)[:60]!r} is not a ground truth",
        fix='write groups of ids, such as [["a", "b"], ["c"]]: one of each group is needed',
    )


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _declared(name: str, entry: Mapping[str, Any]) -> Shape:
    """Return the shape of an entry of `tools.toml`."""
    given: dict[str, Any] = {
        role: tuple(names) if isinstance(names, list) else names for role, names in entry.items()
    }
    given |= {role: frozenset(given.get(role, ())) for role in ("texts", "needs")}
    given |= {role: FUNCTIONS.get(given.get(role, "")) for role in ("items", "adapt")}
    return Shape(name, **given)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (or_groups, join_searches, take_nuggets, take_references)
}


@functools.cache
def _declare_built_in() -> None:
    for name, entry in tools()["shapes"].items():
        SHAPES.register(name, _declared(name, entry))


def known_shapes() -> dict[str, Shape]:
    """Return all shapes by name, in the order in which they were registered."""
    _declare_built_in()
    return SHAPES.known()


def shape_of(names: Iterable[str], role: str) -> Shape | None:
    """Return the shape that a record with these fields has, the one with most of them.

    >>> shape_of(["qid", "query", "retrieval_gt"], "gold").name
    'autorag'
    >>> shape_of(["query", "vector"], "gold") is None
    True
    """
    given = list(names)
    fitting = [shape for shape in known_shapes().values() if shape.fits(given, role)]
    return max(fitting, key=lambda shape: len(shape.present(given)), default=None)


def unknown_shape(names: Iterable[str], role: str, where: str) -> InputError:
    """Return the error for a record that has no known shape, with those that come closest."""
    given = [str(name) for name in names]
    missing = [side for side in ROLES[role] if not _holds(given, side)] or list(ROLES[role])
    guesses = list(filter(None, (nearest(name, [side]) for side in missing for name in given)))[:1]
    advice = guesses
    if role == "samples" and "gold" in missing:
        advice.append(f"give what should be found: {GIVE_GOLD}")
    advice.append(_closest(given, role))
    if missing == ["gold"] and _holds(given, "question"):
        advice.append("or let a judge say what is relevant: -m context_precision")
    return InputError(
        f"the record has no field {' and no field '.join(map(repr, missing))}"
        f" ({', '.join(MEANS[side] for side in missing)}), nor what other tools call it; "
        f"found only {', '.join(map(shorten, given[:20])) or 'nothing'}",
        where=where,
        fix="; ".join(advice),
    )


def _holds(given: list[str], side: str) -> bool:
    return any(set(given).intersection(getattr(shape, side)) for shape in known_shapes().values())


def _closest(given: list[str], role: str) -> str:
    """List the shapes that share most fields with a record, and what they would need."""
    ranked = sorted(known_shapes().values(), key=lambda shape: -len(shape.present(given)))
    lines = [
        f"{shape.name} ({len(shape.present(given))} of its {len(shape.known())} fields"
        f"; it needs {' and '.join(_wanted(shape, given, role))})"
        for shape in ranked[:3]
        if shape.present(given)
    ]
    if not lines:
        return f"known shapes: {', '.join(known_shapes())}; see docs/inputs.md"
    return "closest shapes: " + ", ".join(lines)


def _wanted(shape: Shape, given: list[str], role: str) -> list[str]:
    sides = [getattr(shape, side) for side in ROLES[role]]
    wanted = [" or ".join(side) for side in sides if not set(given).intersection(side)]
    return wanted + sorted(shape.needs.difference(given)) or ["another field"]

"""The shapes of records that findwell reads, its own and other tools', and how they are recognised.

Those of tools are in `tools.toml`. A plugin adds a shape with `register_shape`, in a module that an
entry point of the group `findwell.shapes` or `findwell.formats` names.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from findwell.core.errors import InputError, nearest, takes_options
from findwell.core.plugins import Registry
from findwell.io.read.mapping import NO_FIELDS, SIDES, TEXTS, Fields, list_names, suggestion
from findwell.io.read.values import listed
from findwell.io.read.vocabulary import tools

MAIN = ("query", "question", "retrieved", "gold", "reference", "scores")
ROLES = {"run": ("retrieved",), "gold": ("gold",), "samples": ("retrieved", "gold")}
GIVE_GOLD = "--gold FILE (in Python gold=)"
# what an entry of several searches says: which of them found it, and how many there were
HOP, CALLS = "\0hop", "\0calls"
MEANS = {"retrieved": "what was retrieved", "gold": "what should be found"}
NAME_LETTERS = 60  # longest name of a field that is suggested


@takes_options()
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
    separator: str = ""  # by which texts are joined where a field holds one text
    one_text: str = ""  # what to do where a field holds one text instead of a list

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
        if all(getattr(self, role) in ((), (role,)) for role in MAIN):
            return []
        given = set(names)
        picked = self.pick(given)
        found = [
            (chosen, other)
            for role, chosen in picked.items()
            for other in getattr(self, role)
            if other in given - {chosen} and (other in self.texts) == (chosen in self.texts)
        ]
        own = given - self.main()  # a field of findwell's own name that the shape does not know
        return found + [(chosen, role) for role, chosen in picked.items() if role in own]

    def pick_text(self, names: Iterable[str], side: str) -> str | None:
        """Return the field that holds the texts of a side, if there is one."""
        given = self.texts.intersection(names)
        return next((name for name in getattr(self, side) if name in given), None)

    def rest(self, names: Iterable[str]) -> list[str]:
        """Return the fields that describe the query, under their own names."""
        taken = {*self.query, *self.question, *self.retrieved, *self.gold, *self.scores}
        taken |= {"query", *self.reference}
        return [name for name in names if name not in taken]

    def _listed(self, value: object, name: str, *, strict: bool) -> Any:  # noqa: ANN401
        found = listed(value, name, strict=strict, separator=self.separator * (name in self.texts))
        if self.one_text and name in self.retrieved and isinstance(found, str):
            raise InputError(f"{name} is one text, not a list", fix=self.one_text)
        return found

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
                found[name] = self._listed(found[name], picked[name], strict=cells)
        if self.items is not None and found.get("gold") is not None:
            found["gold"] = self.items(found["gold"])
        if found.get("scores") is not None:
            extra = (picked["scores"], "score", found["scores"])
            found["retrieved"] = _put_beside(found["retrieved"], picked["retrieved"], *extra)
        found.pop("scores", None)
        for side in ("retrieved", "gold"):
            field_ = self.pick_text(given, side) if texts and found.get(side) is not None else None
            if field_ is not None:
                values = _texts_of(self._listed(record[field_], field_, strict=cells))
                extra = (field_, "text", values)
                found[side] = _put_beside(found[side], picked[side], *extra)
        if "reference" in found:
            found["reference"] = _answer(found["reference"], cells=cells)
        # none of the others replaces what was picked, even if it has that name
        found |= {name: record[name] for name in self.rest(record) if name not in found}
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
        what = f"{where!r} has {len(docs)} entries and {field_!r} has {len(numbers)}"
        raise InputError(what, fix=f"give every document one {name}, or leave the {name}s out")
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


SOURCED = re.compile(r"deepeval_source=.*?,deepeval_context=(?P<context>.*)", re.DOTALL)


def take_contexts(found: dict[str, Any], *_: object, **_options: bool) -> None:
    """Take the texts of deepeval's contexts that carry their source."""
    entries: Any = found.get("retrieved")
    if isinstance(entries, list):
        found["retrieved"] = [_context(entry) for entry in entries]


def _context(entry: Any) -> Any:  # noqa: ANN401
    if isinstance(entry, Mapping):
        texts = {name: _context(entry[name]) for name in ("doc", "docs", "text") if name in entry}
        return {**entry, **texts}
    sourced = SOURCED.fullmatch(entry) if isinstance(entry, str) else None
    return entry if sourced is None else sourced["context"]


def take_pairs(found: dict[str, Any], record: Mapping[str, Any], **_: bool) -> None:
    """Make an id of each document and number of Anthropic's contextual retrieval, with its text."""
    pairs: Any = found.get("gold")
    chunks: Any = record.get("golden_chunks")
    texts = {
        (chunk.get("doc_uuid"), chunk.get("index")): chunk.get("content")
        for chunk in (chunks if isinstance(chunks, list) else ())
        if isinstance(chunk, Mapping)
    }
    if _is_list(pairs):
        found["gold"] = [_chunk(pair, texts) for pair in pairs]
    for name in ("golden_chunks", "golden_documents"):  # all of their texts
        found.pop(name, None)


def _chunk(pair: Any, texts: Mapping[Any, Any]) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        what = f"{str(pair)[:60]!r} is not a pair of a document and the number of its chunk"
        raise InputError(what, fix='write ["UUID", 0], as the contextual retrieval cookbook does')
    doc, index = pair
    chunk = {"doc": f"{doc}_chunk_{index}"}
    text = texts.get((doc, index))
    return chunk if text is None else {**chunk, "text": text}


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
    what = f"the {name} of a nugget is {value!r}"
    raise InputError(what, fix=f"write one of {', '.join(known)}, as nuggetizer does")


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
    what = f"{str(gold)[:60]!r} is not a ground truth"
    fix = 'write groups of ids, such as [["a", "b"], ["c"]]: one of each group is needed'
    raise InputError(what, fix=fix)


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
    each.__name__: each
    for each in (or_groups, join_searches, take_nuggets, take_references, take_contexts, take_pairs)
}


@functools.cache
def _declare_built_in() -> None:
    for name, entry in tools()["shapes"].items():
        SHAPES.register(name, _declared(name, entry))


def known_shapes() -> dict[str, Shape]:
    """Return all shapes by name, in the order in which they were registered."""
    _declare_built_in()
    return SHAPES.known()


def with_fields(shape: Shape, mapped: Fields) -> Shape:
    """Return a shape in which fields mean what a user says, and nothing else.

    >>> with_fields(Shape("x", ("docs",), ("gold",)), {"truth": "gold"}).gold
    ('truth',)
    """
    roles: dict[str, list[str]] = {}
    for name, meaning in mapped.items():
        roles.setdefault(TEXTS.get(meaning, meaning), []).append(name)
    texts = {name for name, meaning in mapped.items() if meaning in TEXTS}
    free = {role: [n for n in getattr(shape, role) if n not in mapped] for role in MAIN}
    changed: dict[str, Any] = {role: tuple(roles.get(role, names)) for role, names in free.items()}
    own_gold = "gold" not in roles
    return replace(
        shape,
        **changed,
        texts=(shape.texts - mapped.keys()) | texts,
        others=tuple(name for name in shape.others if name not in mapped),
        items=shape.items if own_gold else refuse_pairs,
        last_wins=shape.last_wins and own_gold,
    )


def refuse_pairs(gold: Any) -> Any:  # noqa: ANN401
    """Refuse pairs of a text and a number: in gold labels a list is a group of equal documents."""
    for pair in gold if isinstance(gold, list | tuple) else ():
        if isinstance(pair, list | tuple) and {str, int} == {type(each) for each in pair}:
            raise InputError(
                f"{str(list(pair))[:60]} holds a text and a number; in gold labels a list inside "
                "the list names documents of which any one will do",
                fix="write one id for each, such as 'guide-7'",
            )
    return gold


@functools.cache
def _any_shape() -> Shape:
    """Return the usual names of all shapes without a rule of their own, for mapped records."""
    known = [known_shapes()[name] for name in ("ragas", "findwell", "deepeval", "continuous-eval")]
    names: dict[str, Any] = {
        role: tuple(dict.fromkeys(name for shape in known for name in getattr(shape, role)))
        for role in MAIN
    }
    return Shape("mapped", **names, texts=frozenset().union(*(shape.texts for shape in known)))


def shape_of(names: Iterable[str], role: str, mapped: Fields = NO_FIELDS) -> Shape | None:
    """Return the shape that a record with these fields has, the one with most of them.

    `mapped` are fields of which a user says what they mean.

    >>> shape_of(["qid", "query", "retrieval_gt"], "gold").name
    'autorag'
    >>> shape_of(["query", "vector"], "gold") is None
    True
    """
    given = list(names)
    shapes = list(known_shapes().values())
    if mapped:
        plain = SIDES.isdisjoint(mapped.values())
        shapes = [each for each in shapes if plain or each.adapt is None] + [_any_shape()]
        shapes = [with_fields(each, mapped) for each in shapes]
    fitting = [shape for shape in shapes if shape.fits(given, role)]
    return max(fitting, key=lambda shape: len(shape.present(given)), default=None)


def unknown_shape(
    record: Mapping[str, Any], role: str, where: str, mapped: Fields = NO_FIELDS
) -> InputError:
    """Return the error for a record that has no known shape, with what to type."""
    given = [str(name) for name in record]
    held = [TEXTS.get(meaning, meaning) for meaning in mapped.values()]
    missing = [side for side in ROLES[role] if side not in held and not _holds(given, side)]
    missing = missing or [side for side in ROLES[role] if side not in held] or list(ROLES[role])
    shapes = known_shapes().values()
    understood = {name for shape in shapes for name in shape.known()}
    typos = [name for name in given if name not in understood]
    guesses = list(filter(None, (nearest(name, [side]) for side in missing for name in typos)))[:1]
    known = {name for shape in shapes for name in shape.main()}
    short = {name: value for name, value in record.items() if len(str(name)) <= NAME_LETTERS}
    mapping = suggestion(short, missing, {*mapped, *known})
    advice = [*guesses, *([mapping] if mapping else [])]
    if role == "samples" and "gold" in missing:
        advice.append(f"give the gold labels: {GIVE_GOLD}")
    most = max(len(shape.present(given)) for shape in shapes)
    if not mapping or guesses or most > 1:
        advice.append(_closest(given, role))
    if missing == ["gold"] and _holds(given, "question"):
        advice.append("or let a judge say what is relevant: -m context_precision")
    return InputError(
        f"the record has no field {' and no field '.join(map(repr, missing))}"
        f" ({', '.join(MEANS[side] for side in missing)}), nor what other tools call it; "
        f"found only {list_names(given)}",
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
    wanted = [" or ".join(side) for side in sides if side and not {*side} & {*given}]
    return wanted + sorted(shape.needs.difference(given)) or ["another field"]

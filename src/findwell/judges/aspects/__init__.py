"""What can be judged about a sample, and what relations read of the verdicts.

Those of findwell are in `built_in`; installed packages add others by the entry points
`findwell.aspects`. All else (prompts, answers, records, panels, relations) goes by the shape of an
aspect and does not know its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.errors import OptionError
from findwell.core.frames import pl
from findwell.core.plugins import Registry
from findwell.judges.aspects.aspect import Aspect, Listing, VerdictShape
from findwell.judges.aspects.built_in import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from findwell.judges.verdicts import Judged, Judgement, Sample

DESCRIBED = ("about", "shape", "needs", "unit", "prefix", "value", "prompt", "list_prompt")
UNKNOWN = "(unknown: the judge did not list any)"
VERDICTS = {
    "query": pl.String,
    "aspect": pl.String,
    "item": pl.String,
    "chunk": pl.String,
    "value": pl.Int64,
    "reason": pl.String,
    "quote": pl.String,
    "unproven": pl.Boolean,
    "probability": pl.Float64,  # of a yes; null if the judge reports none
}


def add_aspect(aspect: Aspect) -> None:
    """Make an aspect known; one of the same name is replaced, unless it is findwell's own."""
    if aspect.name in BUILT_IN:
        raise OptionError(f"the aspect {aspect.name} is findwell's own", fix="choose another name")
    ASPECTS.register(aspect.name, aspect, replaces=True)


def _accept(plugin: object) -> None:
    """Take what an entry point names: an aspect, or a module that has registered some."""
    if isinstance(plugin, Aspect):
        add_aspect(plugin)


ASPECTS: Registry[Aspect] = Registry("aspect", group="findwell.aspects", accept=_accept)
for _name, _aspect in BUILT_IN.items():
    ASPECTS.register(_name, _aspect)


def describe_own(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return those of these aspects that users added, as plain data for the manifest."""
    own = [ASPECTS[name] for name in dict.fromkeys(names) if name not in BUILT_IN]
    return {
        aspect.name: {name: getattr(aspect, name) for name in DESCRIBED}
        | {"grades": dict(aspect.grades)}
        for aspect in own
    }


def restore_own(described: Mapping[str, Mapping[str, Any]]) -> None:
    """Make aspects known that a saved result was judged by, unless they are known."""
    for name, fields in described.items():
        if name not in ASPECTS:
            given = {each: fields[each] for each in DESCRIBED}
            given |= {"shape": VerdictShape(fields["shape"])}
            grades = {int(grade): meaning for grade, meaning in fields["grades"].items()}
            listing = None if fields["list_prompt"] is None else Listing(always=True)
            add_aspect(Aspect(name=name, grades=grades, listing=listing, **given))


def find_aspect(name: str) -> Aspect:
    """Return an aspect by its name."""
    return ASPECTS.find(name)


def known_aspects() -> tuple[str, ...]:
    """Return the names of all aspects, findwell's own first."""
    return tuple(ASPECTS.known())


def items_of(judged: Judged, aspect: str, *, failed: bool) -> list[tuple[str, float, Any]]:
    """Return the items of a sample: text, grade, and the chunks and parts that cover it.

    `failed` says whether a verdict that failed is a yes or a no.
    """
    about, given = find_aspect(aspect), judged[aspect]
    if aspect in judged.failures:
        return [(UNKNOWN, 1.0, [(0, 0)] if failed else [])]

    def value(verdict: Judgement) -> int:
        return about.highest * failed if verdict.value is None else verdict.value

    match about.shape:
        case VerdictShape.CHUNKS:
            return [
                (f"chunk {at + 1}", float(value(verdict)), [(at, 0)])
                for at, verdict in enumerate(given.row)
            ]
        case VerdictShape.PARTS:
            return [
                (text, float(value(verdict)), [(chunk, part)])
                for chunk, (texts, row) in enumerate(zip(given.parts, given.rows, strict=True))
                for part, (text, verdict) in enumerate(zip(texts, row, strict=True))
            ]
        case VerdictShape.ITEMS:
            return [
                (text, 1.0, [(chunk, 0) for chunk, verdict in enumerate(row) if value(verdict)])
                for text, row in zip(given.items, given.rows, strict=True)
            ]
        case VerdictShape.LIST:  # without chunks there is no verdict, and nothing covers the item
            yes = any(value(verdict) for verdict in given.row)
            covered = [(chunk, 0) for chunk in range(given.chunks if yes else 0)]
            return [(_together(given.chunks), 1.0, covered)]


def _together(chunks: int) -> str:
    return "1 chunk" if chunks == 1 else f"{chunks} chunks together"


def parts_of(judged: Judged, aspect: str) -> Sequence[Sequence[str]] | None:
    """Return the texts of the parts of each chunk; None where the units are chunks."""
    return judged[aspect].parts if find_aspect(aspect).shape is VerdictShape.PARTS else None


def all_verdicts(judged: Judged, aspect: str) -> list[Judgement]:
    """Return every verdict about one aspect of a sample."""
    return [verdict for row in judged[aspect].rows for verdict in row]


def rows_of(aspect: str, sample: Sample, judged: Judged) -> Iterator[tuple[object, ...]]:
    """Yield the verdicts about one aspect of a sample, as rows of `VERDICTS`."""
    for item, chunk, verdict in _cells(find_aspect(aspect), sample, judged):
        reason = verdict.reason if verdict.failure is None else str(verdict.failure)
        proof = (verdict.quote, verdict.unproven, verdict.probability)
        yield sample.query, aspect, item, chunk, verdict.value, reason, *proof


def _cells(aspect: Aspect, sample: Sample, judged: Judged) -> Iterator[tuple[str, str, Judgement]]:
    """Go through the verdicts with the item and the chunk that each is about."""
    given = judged[aspect.name]
    if aspect.shape is VerdictShape.LIST:
        yield from ((_together(given.chunks), "", verdict) for verdict in given.row)
    elif aspect.shape is VerdictShape.PARTS:
        for chunk, texts, row in zip(sample.chunks, given.parts, given.rows, strict=False):
            yield from ((text, chunk, each) for text, each in zip(texts, row, strict=False))
    else:
        items = (sample.question,) if aspect.shape is VerdictShape.CHUNKS else given.items
        for item, row in zip(items, given.rows, strict=False):
            yield from ((item, chunk, at) for chunk, at in zip(sample.chunks, row, strict=False))


__all__ = [
    "ASPECTS",
    "UNKNOWN",
    "VERDICTS",
    "Aspect",
    "Listing",
    "VerdictShape",
    "add_aspect",
    "all_verdicts",
    "describe_own",
    "find_aspect",
    "items_of",
    "known_aspects",
    "parts_of",
    "restore_own",
    "rows_of",
]

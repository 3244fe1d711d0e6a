"""What a judge said about the chunks of a list: in short, and where in the text it points.

What it repeats is not said again: the sentence of a chunk is a place in it, and a claim of the
reference is an item of the gold, which has a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from findwell.evaluation.explanation.units import chunk_keys
from findwell.show.escape import multiline
from findwell.show.excerpts import merged, places, sentences, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from findwell.evaluation.explanation.ranking import RelationView
    from findwell.evaluation.explanation.units import KeptRun
    from findwell.measures import Measure


@dataclass(frozen=True, slots=True)
class ChunkVerdict:
    """One verdict about a chunk, or about the whole list."""

    aspect: str
    value: int | None
    reason: str = ""
    item: int | str = ""  # the number of an item of the gold, or a text that stands nowhere else
    unproven: bool = False
    probability: float | None = None  # of a yes
    part: bool = False  # it is about the sentence at its place, not about the chunk
    places: tuple[tuple[int, int], ...] = ()  # in the text of the chunk

    def as_dict(self, where: Sequence[Sequence[int]] = ()) -> dict[str, Any]:
        """Return it ready for JSON, with its places in as much of the text as is shown."""
        found: dict[str, Any] = {"aspect": self.aspect, "value": self.value}
        more = {
            "reason": self.reason,
            "item": self.item,
            "unproven": self.unproven,
            "part": self.part,
            "places": list(where),
        }
        if self.probability is not None:
            found["probability"] = round(self.probability, 4)
        return found | {name: value for name, value in more.items() if value}


class VerdictReader:
    """Reads the verdicts about the queries of a run, down to the deepest cutoff that needs them."""

    def __init__(
        self, kept: KeptRun, views: Sequence[RelationView], questions: Mapping[str, str]
    ) -> None:
        self._kept, self._views, self._questions = kept, views, questions
        readers: dict[str, list[Measure]] = {}
        for view in views:
            readers.setdefault(_aspect(view), []).extend(view.measures)
        self._to = {aspect: deepest(measures) for aspect, measures in readers.items()}
        self._to_else = deepest(measure for view in views for measure in view.measures)

    def of_chunks(self, query: str, texts: Sequence[str]) -> list[list[ChunkVerdict]]:
        """Return the verdicts about each chunk of a list."""
        known = self._kept.verdicts(query)
        if not known:
            return [[] for _ in texts]
        numbers = self._numbers(query)
        found = []
        for rank, (key, text) in enumerate(zip(chunk_keys(texts), texts, strict=True), start=1):
            rows = [
                row
                for row in (known.get(key, []) if key else [])  # without: about the whole list
                if rank <= (self._to.get(row["aspect"], self._to_else) or rank)
            ]
            found.append(list(self._read(query, rows, multiline(text), numbers)))
        return found

    def of_list(self, query: str) -> list[ChunkVerdict]:
        """Return the verdicts about the list as a whole."""
        return list(self._read(query, self._kept.verdicts(query).get("", []), "", {}))

    def _read(
        self,
        query: str,
        rows: list[dict[str, Any]],
        text: str,
        numbers: Mapping[tuple[str, str], int],
    ) -> Iterable[ChunkVerdict]:
        parts = self._parts(query, rows, text, numbers)
        for at, row in enumerate(rows):
            where, item = parts.get(at), row["item"] or ""
            if where is None and row["value"] and row["quote"]:
                where = places(text, [multiline(row["quote"])])
            if at in parts or item == self._questions.get(query):
                item = ""
            yield ChunkVerdict(
                aspect=row["aspect"],
                value=row["value"],
                reason=shorten(row["reason"] or ""),
                item=numbers.get((row["aspect"], item)) or shorten(item),
                unproven=bool(row["unproven"]),
                probability=row.get("probability"),
                part=at in parts,
                places=tuple(where or ()),
            )

    def _parts(
        self,
        query: str,
        rows: list[dict[str, Any]],
        text: str,
        numbers: Mapping[tuple[str, str], int],
    ) -> dict[int, list[tuple[int, int]]]:
        """Return by verdict where the parts of a chunk stand: what is judged is in its text."""
        by_aspect: dict[str, list[int]] = {}
        for at, row in enumerate(rows):
            item = row["item"]
            if item and item != self._questions.get(query):
                by_aspect.setdefault(row["aspect"], []).append(at)
        found: dict[int, list[tuple[int, int]]] = {}
        for aspect, mine in by_aspect.items():
            if any((aspect, rows[at]["item"]) in numbers for at in mine):
                continue  # these are items of the gold
            where = sentences(text, (multiline(rows[at]["item"]) for at in mine))
            found |= {at: [place] for at, place in zip(mine, where, strict=True) if merged([place])}
        return found

    def _numbers(self, query: str) -> dict[tuple[str, str], int]:
        """Return the numbers of the items of the gold by aspect and text."""
        found: dict[tuple[str, str], int] = {}
        for view in self._views:
            at = view.marks.number.get(query)
            if at is None or view.marks.relation.needed:
                continue
            for item in view.marks.items(at):
                found |= {(_aspect(view), doc): item.number for doc in item.docs}
        return found


def deepest(measures: Iterable[Measure]) -> int | None:
    """Return the deepest cutoff of measures; None if one of them reads the whole list.

    >>> from findwell.measures import parse_measure
    >>> deepest(map(parse_measure, ["P@5", "recall@20"])), deepest([parse_measure("RR")])
    (20, None)
    """
    cutoffs = [measure.k for measure in measures]
    known = [k for k in cutoffs if type(k) is int]
    return max(known) if known and len(known) == len(cutoffs) else None


def _aspect(view: RelationView) -> str:
    return view.relation.partition("(")[0]

"""The relations `spans` and `span-words`: chunks and gold texts by their places in documents.

A place is given by the record itself, by the corpus, or found by looking for the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.columns import normaliser
from findwell.core.data import merge_equal
from findwell.core.errors import InputError
from findwell.core.findings import FindingKind, finding_about, shorten
from findwell.core.frames import pl
from findwell.core.parts import is_part
from findwell.relations.match.matcher import (
    BoundByRule,
    EqualKeys,
    Matcher,
    Scores,
    edges_to_members,
    register_matcher,
)
from findwell.relations.match.texts import (
    TEXT_LIKE,
    first_alternatives,
    gold_of_texts,
    parts,
    require_texts,
)
from findwell.relations.preflight import no_shared_place
from findwell.relations.spans.place import overlapping, place

if TYPE_CHECKING:
    from collections.abc import Callable

    from findwell.core.data import Gold
    from findwell.core.findings import Finding
    from findwell.core.relation import Edges, Units
    from findwell.relations.align import Aligned
    from findwell.relations.match.matcher import MatchContext
    from findwell.relations.preflight import UnmetRun

    Change = Callable[[pl.Series], pl.Series]  # of the names of documents


PLACE = ("place", "from", "to")
KEY = r"(?s)^(.*)\[(\d+):(\d+)\]$"  # a place, as `placed` writes it
WORD_KEY = r"(?s)^(.*)@\d+$"  # the place of a word
TEXT_COLUMNS: dict[str, type[pl.DataType]] = dict.fromkeys(("doc", "text", "source"), pl.String)
TEXT_COLUMNS |= dict.fromkeys(("start", "end"), pl.Int64)
NO_PLACE, LOST_KIND = FindingKind.NO_PLACE, FindingKind.LOST_QUOTE
SEARCH_MESSAGES = {
    "ambiguous": "# text|texts of the {} is|are in several places; the first counts.",
    "lost": "# text|texts of the {} is|are nowhere in the corpus and covers|cover nothing.",
    "fuzzy": "# text|texts of the {} is|are there with differences; the most similar place counts.",
}
# a character of a script without spaces is a word
UNSPACED = r"\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")


def require_places(findings: list[Finding], documents: int, role: str) -> list[Finding]:
    """Refuse an input in which no document has a place, or none a text where that is needed."""
    findings = require_texts(findings, documents, role)
    mine = [found for found in findings if found.kind in (NO_PLACE, LOST_KIND)]
    if not is_part() and mine and sum(found.count for found in mine) >= documents:
        raise InputError(
            f"no document has a place, for example {mine[0].examples[0]!r}",
            where=role,
            fix="give start and end next to the documents, or name the corpus that holds the texts",
        )
    return findings


class BoundPlaces(BoundByRule):
    """Base of what compares places in documents."""

    blank_is_unit = True
    check_rows = staticmethod(require_places)
    member_key: ClassVar[str] = KEY  # of which the document of an item of the gold is read

    def __init__(self, context: MatchContext) -> None:
        self._corpus, self._chosen = context.corpus, context.chosen
        self._change = normaliser(context.ids)

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Replace ids by places."""
        return placed(rows, self._corpus, "run", self._change)

    def nothing_met(self, run: UnmetRun) -> list[Finding]:
        """Look for documents that the run and the gold name differently."""
        theirs = self.gold.member_doc.str.extract(self.member_key)
        return no_shared_place(run, run.keys.str.extract(KEY), theirs, chosen=self._chosen)


@register_matcher
class Spans(Matcher):
    """The share of the gold's characters that the chunk holds is at least the threshold.

    A gold span that was cut in pieces is covered, too, by the chunk with which all chunks down to
    it hold that share.
    """

    threshold: float = 0.5

    name: ClassVar[str] = "spans"
    about: ClassVar[str] = "a chunk covers the gold spans of whose characters it holds enough"

    def bind(self, gold: Gold, context: MatchContext) -> BoundSpans:
        """Compare places with those of the gold."""
        return BoundSpans(gold, context, self.threshold)


class BoundSpans(BoundPlaces):
    """Draws an edge from a chunk to the gold spans that it covers or completes."""

    def __init__(self, gold: Gold, context: MatchContext, threshold: float) -> None:
        super().__init__(context)
        self._threshold = threshold
        rows, findings = placed(gold.rows(), context.corpus, "gold", self._change)
        # these distinguish the items of the gold
        rows = rows.with_columns(text=pl.col("place"), start=pl.col("from"), end=pl.col("to"))
        rows, _ = merge_equal(rows.drop("raw", *PLACE), ["doc"])
        self.gold = gold_of_texts(gold, rows, findings)
        facts = self.gold.member_facts
        facts = pl.DataFrame(schema=TEXT_COLUMNS) if facts is None else facts
        self._members = facts.select(
            pl.Series("query", self.gold.member_query),
            pl.Series("member", np.arange(len(self.gold.member_item))),
            pl.col("text").alias("place"),
            "start",
            "end",
        )

    def draw(self, units: Units) -> Edges:
        """Return the edges of the chunks that cover a gold span, or complete one."""
        found = [
            (unit, member)
            for member, rows in groupby(self._overlaps(units).iter_rows(), key=itemgetter(0))
            for unit in _covering([row[1:] for row in rows], self._threshold)
        ]
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        return edges_to_members(units, pairs[:, 0], pairs[:, 1], self.gold)

    def scores(self, units: Units) -> Scores:
        """Return the share of each gold span that a chunk holds."""
        columns = self._overlaps(units).select("member", "unit", "share").iter_columns()
        member, unit, share = (column.to_numpy() for column in columns)
        return Scores(unit, self.gold.member_item[member], share)

    def _overlaps(self, units: Units) -> pl.DataFrame:
        """Return the gold spans (member) and the units that overlap them.

        `share` is how much of the span a unit holds, `low` and `high` is where that lies in it.
        """
        keys = pl.Series(units.key).str.extract_groups(KEY)
        chunks = keys.struct.rename_fields(["place", "start", "end"]).struct.unnest()
        chunks = chunks.cast({"start": pl.Int64, "end": pl.Int64})
        chunks = chunks.with_columns(query=pl.Series(units.query), unit=pl.Series(units.row))
        member, unit = overlapping(self._members, chunks, ["query", "place"])
        spans, chunks = self._members[member], chunks[unit]
        start, end = (spans[name].to_numpy() for name in ("start", "end"))
        low = np.maximum(chunks["start"].to_numpy(), start) - start
        high = np.minimum(chunks["end"].to_numpy(), end) - start
        size = end - start
        share = {"share": (high - low) / size, "low": low / size, "high": high / size}
        found = pl.DataFrame({"member": spans["member"], "unit": chunks["unit"], **share})
        return found.sort("member", "unit")


def _covering(pieces: list[tuple[int, float, float, float]], threshold: float) -> list[int]:
    """Return the units that hold enough of a span alone, and the one that completes it.

    Each piece is a unit, the share it holds, and where that lies in the span, from 0 to 1.

    >>> _covering([(0, 0.3, 0.0, 0.3), (1, 0.4, 0.2, 0.6), (2, 0.8, 0.2, 1.0)], 0.5)
    [1, 2]
    """
    stretches = [(low, high) for _, _, low, high in pieces]
    enough = threshold - 1e-9
    # with more pieces more is held: the first number of them that is enough is found by halving
    completing = bisect_left(
        range(len(pieces)), True, key=lambda last: _union(stretches[: last + 1]) >= enough
    )
    return [
        unit
        for number, (unit, share, _, _) in enumerate(pieces)
        if share >= enough or number == completing
    ]


def _union(stretches: list[tuple[float, float]]) -> float:
    """Return how much several stretches hold together."""
    total, upto = 0.0, 0.0
    for low, high in sorted(stretches):
        total += max(high - max(low, upto), 0.0)
        upto = max(upto, high)
    return total


@register_matcher
class SpanWords(Matcher):
    """A word of a chunk covers the gold word at the same place of the same document.

    P, recall, F and IoU over it are the token precision, recall, F1 and IoU of chunking studies: a
    word that is in two chunks is noise the second time. Chunks and gold need places, as for
    `spans`, and their texts, next to them or in the corpus.
    """

    name: ClassVar[str] = "span-words"
    about: ClassVar[str] = "a word of a chunk covers the gold word at the same place"

    def bind(self, gold: Gold, context: MatchContext) -> BoundSpanWords:
        """Compare the places of words with those of the gold."""
        return BoundSpanWords(gold, context)


class BoundSpanWords(BoundPlaces):
    """Draws an edge from a word to the gold word at the same place."""

    order_matters = False
    member_key = WORD_KEY

    def __init__(self, gold: Gold, context: MatchContext) -> None:
        super().__init__(context)
        self._documents: dict[str, str] = {}
        if context.corpus is not None:
            texts = context.corpus.drop_nulls("text")
            names = texts["doc"] if self._change is None else self._change(texts["doc"])
            self._documents = dict(zip(names, texts["text"], strict=True))
        rows, findings = placed(gold.rows(), context.corpus, "gold", self._change)
        findings += require_texts(self._without_words(rows), rows.height, "gold")
        rows, dropped = first_alternatives(rows)
        spread = rows.select("query", "grade").with_columns(doc=self._words(rows)[1])
        items = (
            spread.explode("doc")
            .drop_nulls("doc")
            .sort("grade", descending=True, maintain_order=True)
            .unique(["query", "doc"], keep="first", maintain_order=True)
            .with_columns(group=pl.lit(None, pl.Int64))
        )
        self.gold = gold_of_texts(gold, items, findings + dropped)
        self.equal = EqualKeys(self.gold, self.gold.member_doc)

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Replace ids by places."""
        found, findings = super().rows(rows)
        return found, findings + self._without_words(found)

    def _without_words(self, rows: pl.DataFrame) -> list[Finding]:
        """Look for places whose words are not known."""
        known = pl.Series([name in self._documents for name in rows["place"]], dtype=pl.Boolean)
        lacking = rows["place"].is_not_null() & rows["text"].is_null() & ~known
        docs = list(map(shorten, rows["raw"].filter(lacking).drop_nulls()))
        message = "# place|places has|have no known text and covers|cover nothing."
        fix = "give texts next to the places, or a corpus"
        return finding_about(FindingKind.NO_TEXT, docs, message, fix)

    def units(self, aligned: Aligned) -> Units:
        """Return the words of the chunks of a batch; their key is their place."""
        words, keys = self._words(aligned.rows)
        return parts(aligned, words, keys=keys)

    def _words(self, rows: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
        """Return the words of each row, and their places."""
        words: list[list[str]] = []
        keys: list[list[str]] = []
        for name, start, end, own in rows.select("place", "from", "to", "text").iter_rows():
            document = self._documents.get(name)
            text = own if document is None or start is None else document[start:end]
            found = [] if name is None or text is None else list(WORD.finditer(text))
            words.append([match[0] for match in found])
            keys.append([f"{name}@{start + match.start()}" for match in found])
        kind = pl.List(pl.String)
        return pl.Series(words, dtype=kind), pl.Series(keys, dtype=kind)


def placed(
    rows: pl.DataFrame, corpus: pl.DataFrame | None, role: str, change: Change | None = None
) -> tuple[pl.DataFrame, list[Finding]]:
    """Return rows whose doc is a place, `document[start:end]`, with the findings.

    `change` normalises the names of documents.

    A row has a place of its own (start and end in its source, or else in the document that doc
    names), or the corpus knows where the chunk doc was cut from (source, start and end), or its
    text is looked for in the corpus; a document of the corpus without a text next to it is all of
    that document. What cannot be found keeps its id and covers nothing.
    """
    rows = _with_columns(rows, "text", "start", "end", "source")
    documents = pl.DataFrame(schema=TEXT_COLUMNS) if corpus is None else corpus
    documents = _with_columns(documents, "source", "start", "end")
    found = _known_places(rows, documents)
    rows = rows.drop("source")
    findings: list[Finding] = []
    unplaced = found["place"].is_null()
    if corpus is not None:
        # an id that is a text, and no document, is the text to look for
        quotes = rows["doc"].str.contains(TEXT_LIKE) & ~rows["doc"].is_in(corpus["doc"].implode())
        told = rows["text"].is_not_null() | ~quotes
        rows = rows.with_columns(text=rows["text"].zip_with(told, rows["doc"]))
        wanted = rows.with_row_index("row").filter(unplaced & rows["text"].is_not_null())
        searched, findings = _searched(wanted, documents, role)
        found = (
            found.with_row_index("row")
            .join(searched, on="row", how="left", maintain_order="left", suffix="_found")
            .select(
                pl.when(unplaced).then(f"{name}_found").otherwise(name).alias(name)
                for name in PLACE
            )
        )
        unplaced = found["place"].is_null() & rows["text"].is_null()
    findings += finding_about(
        NO_PLACE,
        list(map(shorten, rows["doc"].filter(unplaced).drop_nulls())),
        f"# document|documents of the {role} has|have no place and covers|cover nothing.",
        "give start and end next to the document, or name the corpus that holds the texts",
    )
    if role == "gold":  # which comes whole, while a run comes in batches
        require_places(findings, rows.height, role)
    if "query" in rows.columns:  # those of a chunking have none
        findings += _impossible(rows, found, corpus, role)
    if change is not None:
        found = found.with_columns(place=change(found["place"]))
    key = pl.format("{}[{}:{}]", "place", "from", "to")
    # what has no place is distinguished by its text, and is never taken for a place
    nowhere = pl.format("\0{}\0{}", "doc", pl.col("text").fill_null(""))
    doc = pl.when(pl.col("place").is_null()).then(nowhere).otherwise(key)
    named = pl.concat([rows, found], how="horizontal").with_columns(raw=pl.col("doc"), doc=doc)
    return named, findings


def _impossible(
    rows: pl.DataFrame, found: pl.DataFrame, corpus: pl.DataFrame | None, role: str
) -> list[Finding]:
    """Look for places beyond their document, and gold spans without a character."""

    def spelled(which: pl.Series) -> list[str]:
        table = rows.select("query").hstack(found).filter(which)
        return [f"{query} / {doc} {start}–{end}" for query, doc, start, end in table.iter_rows()]

    empty = (found["to"] == found["from"]).fill_null(value=False) & (role == "gold")
    findings = finding_about(
        "empty-span",
        spelled(empty),
        "# span|spans of the gold has|have no character and counts|count as not found.",
        "give the character after the last one as end, or remove the span",
    )
    if corpus is None:
        return findings
    sizes = corpus.filter(pl.col("doc").is_in(found["place"].implode())).unique("doc")
    sizes = sizes.select(place="doc", size=pl.col("text").str.len_chars())
    size = found.join(sizes, on="place", how="left", maintain_order="left")["size"]
    beyond = (found["to"] > size).fill_null(value=False) & ~empty
    return findings + finding_about(
        "span-beyond-end",
        spelled(beyond),
        "# span|spans of the gold ends|end after the document; no chunk can hold all of it|them."
        if role == "gold"
        else "# chunk|chunks of the run ends|end after the document and may hold other text.",
        f"{'label' if role == 'gold' else 'index'} this version of the document; "
        "offsets count its characters from 0",
    )


def _with_columns(table: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Add those of the columns that a table lacks."""
    lacking = [name for name in names if name not in table.columns]
    return table.with_columns(pl.lit(None, TEXT_COLUMNS[name]).alias(name) for name in lacking)


def _known_places(rows: pl.DataFrame, corpus: pl.DataFrame) -> pl.DataFrame:
    """Return the place of each row: its own, that of the chunk it names, or a whole document."""
    size = pl.col("text").str.len_chars().cast(pl.Int64)
    chunks = {"source": "source", "start": "from", "end": "to"}
    known = corpus.select("doc", *chunks, size=size).rename(chunks)
    own = pl.col("start").is_not_null()
    cut = pl.col("source").is_not_null() & pl.col("from").is_not_null()
    whole = pl.col("text").is_null() & pl.col("size").is_not_null()

    def first(mine: str, of_chunk: str, of_document: str | pl.Expr) -> pl.Expr:
        return pl.when(own).then(mine).when(cut).then(of_chunk).when(whole).then(of_document)

    return (
        rows.select("doc", "text", "start", "end", own=pl.coalesce("source", "doc"))
        .join(known, on="doc", how="left", maintain_order="left")
        .select(
            first("own", "source", "doc").alias("place"),
            first("start", "from", pl.lit(0, pl.Int64)).alias("from"),
            first("end", "to", "size").alias("to"),
        )
    )


def _searched(
    wanted: pl.DataFrame, corpus: pl.DataFrame, role: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Look for texts in the corpus; of several places the first counts.

    Places inside chunks are moved to the documents that the chunks were cut from.
    """
    home = pl.when(pl.col("doc").is_in(corpus["doc"].implode())).then("doc")
    places = place(wanted.with_columns(doc=home), corpus.drop_nulls("text"))
    first = places.unique("number", keep="first", maintain_order=True)
    as_cut = pl.col("text").str.len_chars() == pl.col("end") - pl.col("start")
    cut = corpus.filter(as_cut).select("source", chunk="doc", first="start")
    found = (
        wanted.select("row", raw="doc")
        .hstack(first.select("status", "start", "end", chunk="doc"))
        .join(cut, on="chunk", how="left", maintain_order="left")
    )
    findings = []
    for status, what in SEARCH_MESSAGES.items():
        names = list(map(shorten, found.filter(pl.col("status") == status)["raw"]))
        fix = "give start and end, or complete the corpus; see docs/spans.md"
        findings += finding_about(f"{status}-quote", names, what.format(role), fix)
    before = pl.col("first").fill_null(0)
    moved = {"from": pl.col("start") + before, "to": pl.col("end") + before}
    return found.select("row", place=pl.coalesce("source", "chunk"), **moved), findings

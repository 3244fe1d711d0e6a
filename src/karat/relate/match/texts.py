"""From ids to texts: what a text relation compares, and the gold whose items are texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.align.align import positions, repeated
from karat.core.data import EMPTY_ITEM, Gold, times_listed
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding, shorten
from karat.relate.match.matcher import BoundByRule, Units
from karat.texts.sentences import split
from karat.texts.words import tidy

if TYPE_CHECKING:
    from karat.align.align import Aligned
    from karat.relate.match.matcher import MatchContext
    from karat.texts.sentences import Splitter

TEXT_AS_ID = "text-as-id"  # a finding that only concerns matching by id
ID_AS_TEXT, NO_TEXT, UNKNOWN_TEXT = "id-as-text", "no-text", "unknown-text"
BARE_TEXT = "bare-text"  # counted only to tell whether any document has a text beside its id
TEXT_LIKE = r"[\s\P{ascii}]"  # what has a space, or a letter beyond ASCII, may be a text


def with_texts(
    rows: pl.DataFrame, corpus: pl.DataFrame | None, policy: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Put what counts of its text in the place of each document's id."""
    text, findings = texts_of(rows, corpus)
    key = tidy(text, policy)
    if policy != "raw":
        key = key.set(key == "", None)
    # texts that say nothing, and those that nobody knows, are not the same text
    number = pl.int_range(rows.height, eager=True)
    key = key.zip_with(key.is_not_null() | rows["doc"].is_null(), "\0" + number.cast(pl.String))
    return rows.with_columns(raw=pl.col("doc"), doc=key, text=text.fill_null("")), findings


def texts_of(rows: pl.DataFrame, corpus: pl.DataFrame | None) -> tuple[pl.Series, list[Finding]]:
    """Return the text of each row: its own, the corpus's, or its id, which may be a text.

    Beside a corpus only an id that looks like a text is taken for one. Every row is looked at
    alone, so that no text depends on what else is in its batch. `require_texts` refuses an input
    in which nothing looks like a text.
    """
    doc = rows["doc"]
    text = rows.get_column("text", default=pl.repeat(None, len(doc), dtype=pl.String, eager=True))
    if corpus is not None and text.null_count():
        found = rows.select("doc").join(
            corpus.select("doc", pl.col("text").alias("__text")),
            on="doc",
            how="left",
            maintain_order="left",
        )["__text"]
        text = text.zip_with(text.is_not_null(), found)
    lacking = text.is_null() & doc.is_not_null()
    if not lacking.any():
        return text, []
    like = lacking & doc.str.contains(TEXT_LIKE)
    text = text.zip_with(~(lacking if corpus is None else like), doc)
    if corpus is None:
        bare = like & doc.str.contains(r"\s")  # no id has a space
        kinds = {BARE_TEXT: bare, ID_AS_TEXT: like & ~bare, NO_TEXT: lacking & ~like}
    else:
        kinds = {ID_AS_TEXT: like, UNKNOWN_TEXT: lacking & ~like}
    return text, [_finding(kind, doc.filter(which)) for kind, which in kinds.items() if which.any()]


_SAID = {
    BARE_TEXT: ("", ""),
    ID_AS_TEXT: (
        "id that is taken for a text, as there is no text beside it",
        "name a corpus if these are ids; if they are texts, all is well",
    ),
    NO_TEXT: (
        "document without a text, unlike others: its id is compared in the place of one",
        "give texts beside all ids, or name a corpus",
    ),
    UNKNOWN_TEXT: (
        "document without a text: it matches nothing",
        "complete the corpus, or give texts beside the ids",
    ),
}


def _finding(kind: str, docs: pl.Series) -> Finding:
    return Finding(kind, len(docs), tuple(map(shorten, docs.head(EXAMPLES))), *_SAID[kind])


def require_texts(findings: list[Finding], documents: int, role: str) -> list[Finding]:
    """Refuse an input of `documents` in which no document has a text, nor an id that is one."""
    count = Counter[str]()
    for found in findings:
        count[found.kind] += found.count
    for kind in (NO_TEXT, UNKNOWN_TEXT):
        doubtful = count[kind] + count[ID_AS_TEXT]
        if count[kind] and doubtful >= documents and 2 * count[ID_AS_TEXT] <= documents:
            known = "" if kind == NO_TEXT else " in the corpus"
            example = next(found for found in findings if found.kind == kind).examples[0]
            raise InputError(
                f"no document has a text{known}, only ids such as {example!r}",
                where=role,
                fix="name a corpus that holds these ids (--corpus, corpus=), "
                "or give texts beside the ids",
            )
    bare = sum(count[kind] for kind in (BARE_TEXT, ID_AS_TEXT, NO_TEXT)) >= documents
    dropped = {BARE_TEXT, NO_TEXT} if bare else {BARE_TEXT}
    return [found for found in findings if found.kind not in dropped]


def text_gold(
    gold: Gold, corpus: pl.DataFrame | None, policy: str, splitter: Splitter | None = None
) -> Gold:
    """Return the gold whose items are texts, or the sentences of texts; equal texts count once."""
    rows = gold.rows()
    text, lacking = texts_of(rows, corpus)
    findings = [found for found in gold.findings if found.kind != TEXT_AS_ID]
    findings += (
        replace(found, message="gold document without a text: left out")
        if found.kind == UNKNOWN_TEXT
        else found
        for found in require_texts(lacking, rows.height, "gold")
    )
    rows = rows.with_columns(doc=text).drop("text", "start", "end", strict=False).drop_nulls("doc")
    if splitter is not None:
        rows, dropped = first_alternatives(rows)
        findings += dropped
        sentences = pl.Series(split(rows["doc"].to_list(), splitter), dtype=pl.List(pl.String))
        rows = rows.with_columns(doc=sentences, group=pl.lit(None, pl.Int64))
        rows = rows.explode("doc").drop_nulls("doc").drop("times", strict=False)
    rows = rows.with_columns(key=tidy(rows["doc"], policy))
    if policy != "raw":
        blank = rows.filter(pl.col("key") == "")
        rows = rows.filter(pl.col("key") != "")
        findings += _blank_texts(blank)
    best = rows.sort("grade", descending=True, maintain_order=True)
    same = ("query", "key", "group")
    again = ~best.select(pl.struct(same).is_first_distinct()).to_series()
    if splitter is None and again.any():  # chunks are listed, sentences are not
        best = best.with_columns(times=times_listed(best, same))
    findings += _equal_texts(best.filter(again))
    rows = best.filter(~again).drop("key")
    flaws = {query: flaw for query, flaw in gold.flaws.items() if flaw == EMPTY_ITEM}
    return Gold.build(rows, queries=gold.queries, findings=findings, flaws=flaws)


def first_alternatives(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
    """Keep one text of each group: the sentences of alternatives cannot all be asked for."""
    again = rows["group"].is_not_null() & ~rows["group"].is_first_distinct()
    if not again.any():
        return rows, []
    dropped = rows.filter(again)
    finding = Finding(
        "alternatives-dropped",
        dropped.height,
        tuple(dropped["query"].unique(maintain_order=True).head(EXAMPLES)),
        "alternative of a group: by sentence or word only the first of a group is asked for",
        "match by chunk, or give one gold text an item",
    )
    return rows.filter(~again), [finding]


def _blank_texts(blank: pl.DataFrame) -> list[Finding]:
    if not blank.height:
        return []
    return [
        Finding(
            "blank-text",
            blank.height,
            tuple(blank["query"].unique(maintain_order=True).head(EXAMPLES)),
            "gold text in which nothing counts (blank, or punctuation only): left out",
            "remove it, or compare texts as they are with text=raw",
        )
    ]


def _equal_texts(again: pl.DataFrame) -> list[Finding]:
    if not again.height:
        return []
    return [
        Finding(
            "equal-gold",
            again.height,
            tuple(again["query"].unique(maintain_order=True).head(EXAMPLES)),
            "gold text that says the same as another of its query: they count once",
            "keep one of them; text=raw tells apart what differs in case or punctuation only",
        )
    ]


def chunks(aligned: Aligned) -> Units:
    """Return the rows of a batch as units."""
    every = np.arange(len(aligned.query))
    text = aligned.rows["text"]
    return Units(aligned.query, aligned.rank, text, aligned.doc, aligned.repeat, every)


def parts(aligned: Aligned, pieces: pl.Series, policy: str) -> Units:
    """Return parts of the rows of a batch as units: `pieces` lists those of each row."""
    sizes = pieces.list.len().to_numpy().astype(np.int64)
    text = pieces.filter(sizes > 0).explode()
    row = np.repeat(np.arange(len(sizes)), sizes)
    query = aligned.query[row]
    key = tidy(text, policy)
    again = repeated(query, key)
    repeat = None if again is None else again.astype(np.int64)
    return Units(query, positions(query), text, key, repeat, row, sizes)


def sentences(aligned: Aligned, splitter: Splitter, policy: str) -> Units:
    """Return the sentences of the rows of a batch as units."""
    pieces = pl.Series(split(aligned.rows["text"].to_list(), splitter), dtype=pl.List(pl.String))
    return parts(aligned, pieces, policy)


__all__ = [
    "chunks",
    "first_alternatives",
    "parts",
    "require_texts",
    "sentences",
    "text_gold",
    "texts_of",
    "with_texts",
]


class BoundTexts(BoundByRule):
    """What all have in common that draw edges between texts: chunks or sentences as units."""

    blank_is_unit = True

    def __init__(
        self, gold: Gold, context: MatchContext, policy: str, splitter: Splitter | None
    ) -> None:
        self.gold = text_gold(gold, context.corpus, policy, splitter)
        self._corpus = context.corpus
        self._policy = policy
        self._splitter = splitter

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Put texts in the place of ids."""
        return with_texts(rows, self._corpus, self._policy)

    def units(self, aligned: Aligned) -> Units:
        """Return the chunks of a batch, or their sentences."""
        if self._splitter is None:
            return chunks(aligned)
        return sentences(aligned, self._splitter, self._policy)

"""The relation `span-words`: words by the place where they stand, not by what they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from karat.align.align import positions, repeated
from karat.core.data import EMPTY_ITEM, Gold
from karat.relate.match.ids import EqualKeys
from karat.relate.match.matcher import BoundByRule, Matcher, Units, register_matcher
from karat.relate.match.placing import placed
from karat.relate.match.texts import TEXT_AS_ID, first_alternatives

if TYPE_CHECKING:
    from karat.align.align import Aligned
    from karat.findings import Finding
    from karat.relate.match.matcher import Edges, MatchContext

# a character of a script without spaces is a word
UNSPACED = r"\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")


@register_matcher
@dataclass(frozen=True, kw_only=True)
class SpanWords(Matcher):
    """A word of a chunk covers the gold word at the same place of the same document.

    P, recall, F and IoU over it are the token precision, recall, F1 and IoU of chunking studies: a
    word that stands in two chunks is noise the second time. Chunks and gold need places, as for
    `spans`, and their texts, beside them or in the corpus.
    """

    name: ClassVar[str] = "span-words"
    about: ClassVar[str] = "a word of a chunk covers the gold word at the same place"

    def bind(self, gold: Gold, context: MatchContext) -> BoundSpanWords:
        """Compare the places of words with those of a gold."""
        return BoundSpanWords(gold, context)


class BoundSpanWords(BoundByRule):
    """Draws an edge from a word to the gold word at the same place."""

    blank_is_unit = True

    def __init__(self, gold: Gold, context: MatchContext) -> None:
        self._corpus = context.corpus
        self._documents: dict[str, str] = {}
        if context.corpus is not None:
            self._documents = dict(context.corpus.drop_nulls("text").select("doc", "text").rows())
        rows, findings = placed(gold.rows(), context.corpus, "gold")
        rows, dropped = first_alternatives(rows)
        spread = rows.select("query", "grade").with_columns(doc=self._words(rows)[1])
        items = (
            spread.explode("doc")
            .drop_nulls("doc")
            .sort("grade", descending=True, maintain_order=True)
            .unique(["query", "doc"], keep="first", maintain_order=True)
            .with_columns(group=pl.lit(None, pl.Int64))
        )
        self.gold = Gold.build(
            items,
            queries=gold.queries,
            findings=(
                *(found for found in gold.findings if found.kind != TEXT_AS_ID),
                *findings,
                *dropped,
            ),
            flaws={query: flaw for query, flaw in gold.flaws.items() if flaw == EMPTY_ITEM},
        )
        self._equal = EqualKeys(self.gold, self.gold.member_doc)

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Put places in the place of ids."""
        return placed(rows, self._corpus, "run")

    def units(self, aligned: Aligned) -> Units:
        """Return the words of the chunks of a batch; their key is their place."""
        words, keys = self._words(aligned.rows)
        sizes = keys.list.len().to_numpy().astype(np.int64)
        row = np.repeat(np.arange(len(sizes)), sizes)
        query = aligned.query[row]
        text, key = (column.filter(sizes > 0).explode() for column in (words, keys))
        again = repeated(query, key)
        repeat = None if again is None else again.astype(np.int64)
        return Units(query, positions(query), text, key, repeat, row, sizes)

    def draw(self, units: Units) -> Edges:
        """Return the edges of the words at a place of the gold."""
        return self._equal.edges(units)

    def scores(self, units: Units) -> None:
        """Places are the same or not."""

    def _words(self, rows: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
        """Return the words of each row, and their places."""
        words: list[list[str]] = []
        keys: list[list[str]] = []
        for place, start, end, own in rows.select("place", "from", "to", "text").iter_rows():
            document = self._documents.get(place)
            text = own if document is None or start is None else document[start:end]
            found = [] if place is None or text is None else list(WORD.finditer(text))
            words.append([match[0] for match in found])
            keys.append([f"{place}@{start + match.start()}" for match in found])
        kind = pl.List(pl.String)
        return pl.Series(words, dtype=kind), pl.Series(keys, dtype=kind)

"""The relation `words`: the words of what was retrieved against the words of the gold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from karat.core.data import Gold
from karat.relate.match.ids import EqualKeys
from karat.relate.match.matcher import BoundByRule, Matcher, Units, register_matcher
from karat.relate.match.texts import first_alternatives, parts, text_gold, with_texts
from karat.texts.words import TEXTS, words

if TYPE_CHECKING:
    from karat.align.align import Aligned
    from karat.findings import Finding
    from karat.relate.match.matcher import Edges, MatchContext, Units


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Words(Matcher):
    """Word by word, as multisets: the n-th "fox" retrieved covers the n-th "fox" of the gold.

    P, recall, F and IoU over it are the token overlap of what was retrieved and the gold.
    """

    text: str = "plain"

    name: ClassVar[str] = "words"
    about: ClassVar[str] = "a word of a chunk covers the same word of the gold, each once"

    def __post_init__(self) -> None:
        """Check the policy."""
        self.require(self.text in TEXTS, "text", f"is one of {', '.join(TEXTS)}")

    def bind(self, gold: Gold, context: MatchContext) -> BoundWords:
        """Compare words with those of a gold."""
        return BoundWords(gold, context, self.text)


class BoundWords(BoundByRule):
    """Draws an edge from a word to the same word of the gold."""

    blank_is_unit = True

    def __init__(self, gold: Gold, context: MatchContext, policy: str) -> None:
        self._corpus = context.corpus
        self._policy = policy
        self.gold = _word_gold(text_gold(gold, context.corpus, policy), policy)
        self._equal = EqualKeys(self.gold, self.gold.member_doc)

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Put texts in the place of ids."""
        return with_texts(rows, self._corpus, self._policy)

    def units(self, aligned: Aligned) -> Units:
        """Return the words of the chunks of a batch, numbered where they repeat."""
        pieces = words(aligned.rows["text"], self._policy)
        found = parts(aligned, pieces)
        key = _numbered(pl.DataFrame({"query": found.query, "word": found.text}))
        return replace(found, key=key, repeat=None)

    def draw(self, units: Units) -> Edges:
        """Return the edges of the words that the gold has, too."""
        return self._equal.edges(units)

    def scores(self, units: Units) -> None:
        """Words are equal or not."""


def _word_gold(gold: Gold, policy: str) -> Gold:
    rows, dropped = first_alternatives(gold.rows())
    spread = rows.with_columns(word=words(rows["doc"], policy)).explode("word").drop_nulls("word")
    items = spread.select(
        "query",
        "grade",
        doc=_numbered(spread.select("query", "word")),
        group=pl.lit(None, pl.Int64),
    )
    return Gold.build(
        items, queries=gold.queries, findings=(*gold.findings, *dropped), flaws=gold.flaws
    )


def _numbered(rows: pl.DataFrame) -> pl.Series:
    """Tell the occurrences of a word in a query apart: fox, fox #2, fox #3."""
    nth = pl.int_range(1, pl.len() + 1).over("query", "word")
    again = pl.format("{} #{}", "word", nth)
    return rows.select(pl.when(nth == 1).then("word").otherwise(again)).to_series()

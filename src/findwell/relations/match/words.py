"""The relation `words`: the words of what was retrieved against the words of the gold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from findwell.core.frames import pl
from findwell.core.texts.words import words
from findwell.relations.match.matcher import EqualKeys, Matcher, register_matcher
from findwell.relations.match.texts import BoundTexts, first_alternatives, gold_of_texts, parts

if TYPE_CHECKING:
    from findwell.core.data import Gold
    from findwell.core.relation import Units
    from findwell.relations.align import Aligned
    from findwell.relations.match.matcher import MatchContext


@register_matcher
class Words(Matcher):
    """Word by word, as multisets: the n-th "fox" retrieved covers the n-th "fox" of the gold.

    P, recall, F and IoU over it are the token overlap of what was retrieved and the gold.
    """

    text: str = "plain"

    name: ClassVar[str] = "words"
    about: ClassVar[str] = "a word of a chunk covers the same word of the gold, each once"

    def bind(self, gold: Gold, context: MatchContext) -> BoundWords:
        """Compare words with those of the gold."""
        return BoundWords(gold, context, self.text)


class BoundWords(BoundTexts):
    """Draws an edge from a word to the same word of the gold."""

    def __init__(self, gold: Gold, context: MatchContext, policy: str) -> None:
        super().__init__(gold, context, policy)
        self.gold = _word_gold(self.gold, policy)
        self.equal = EqualKeys(self.gold, self.gold.member_doc)

    def units(self, aligned: Aligned) -> Units:
        """Return the words of the chunks of a batch, numbered where they repeat."""
        found = parts(aligned, words(aligned.rows["text"], self._policy))
        key = _numbered(pl.DataFrame({"query": found.query, "word": found.text}))
        return replace(found, key=key, repeat=None)


def _word_gold(gold: Gold, policy: str) -> Gold:
    rows, dropped = first_alternatives(gold.rows())
    spread = rows.with_columns(word=words(rows["doc"], policy)).explode("word").drop_nulls("word")
    items = spread.select(
        "query",
        "grade",
        doc=_numbered(spread.select("query", "word")),
        group=pl.lit(None, pl.Int64),
    )
    return gold_of_texts(gold, items, dropped)


def _numbered(rows: pl.DataFrame) -> pl.Series:
    """Tell the occurrences of a word in a query apart: fox, fox #2, fox #3."""
    nth = pl.int_range(1, pl.len() + 1).over("query", "word")
    again = pl.format("{} #{}", "word", nth)
    return rows.select(pl.when(nth == 1).then("word").otherwise(again)).to_series()

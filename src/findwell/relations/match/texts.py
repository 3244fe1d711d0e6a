"""What text relations share: the texts of documents, texts as gold, and scores of pairs.

Every unit of a query is compared with every text of its gold; equal pairs are scored once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.core.data import EMPTY_ITEM, Gold, merge_equal
from findwell.core.errors import InputError
from findwell.core.findings import FindingKind, finding_about, shorten
from findwell.core.frames import pl
from findwell.core.parts import is_part
from findwell.core.relation import Units
from findwell.core.texts.sentences import split
from findwell.core.texts.words import tidy
from findwell.relations.align import positions, repeated
from findwell.relations.match.matcher import BoundByRule, Scores, edges_to_members, rows_as_units

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints
    from findwell.core.findings import Finding
    from findwell.core.relation import Edges
    from findwell.core.texts.sentences import Splitter
    from findwell.relations.align import Aligned
    from findwell.relations.match.matcher import MatchContext

    # distinct unit texts, distinct gold texts, pairs of them, the least score that matters
    Compare: TypeAlias = Callable[[Sequence[str], Sequence[str], tuple[Ints, Ints], float], Floats]


ID_AS_TEXT, NO_TEXT = FindingKind.ID_AS_TEXT, FindingKind.NO_TEXT
UNKNOWN_TEXT = FindingKind.UNKNOWN_TEXT
# counted only to see whether any document has a text next to its id
BARE_TEXT = FindingKind.BARE_TEXT
TEXT_LIKE = r"[\s\P{ascii}]"  # what has a space, or a letter beyond ASCII, may be a text
PAIRS = 1 << 20  # pairs compared at once, so that memory stays bounded
MESSAGES = {
    BARE_TEXT: ("", ""),
    ID_AS_TEXT: (
        "# id|ids comes|come without a text and is|are read as a text.",
        "name a corpus if these are ids; nothing to do if they are texts",
    ),
    NO_TEXT: (
        "# document|documents has|have no text, unlike others; the id is compared instead.",
        "give a text with every id, or name a corpus",
    ),
    UNKNOWN_TEXT: (
        "# document|documents has|have no text and matches|match nothing.",
        "complete the corpus, or give texts with the ids",
    ),
}


def with_texts(
    rows: pl.DataFrame, corpus: pl.DataFrame | None, policy: str
) -> tuple[pl.DataFrame, list[Finding]]:
    """Replace the id of each document by what counts of its text."""
    text, findings = texts_of(rows, corpus)
    key = tidy(text, policy)
    if policy != "raw":
        key = key.set(key == "", None)
    # texts in which nothing counts, and unknown ones, are not the same text
    number = pl.int_range(rows.height, eager=True)
    key = key.zip_with(key.is_not_null() | rows["doc"].is_null(), "\0" + number.cast(pl.String))
    return rows.with_columns(raw=pl.col("doc"), doc=key, text=text.fill_null("")), findings


def texts_of(rows: pl.DataFrame, corpus: pl.DataFrame | None) -> tuple[pl.Series, list[Finding]]:
    """Return the text of each row: its own, the corpus's, or its id, which may be a text.

    With a corpus, only an id that looks like a text is taken for one. Every row is looked at
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
    return text, [
        finding
        for kind, which in kinds.items()
        for finding in finding_about(kind, list(map(shorten, doc.filter(which))), *MESSAGES[kind])
    ]


def require_texts(findings: list[Finding], documents: int, role: str) -> list[Finding]:
    """Refuse an input of `documents` in which no document has a text, nor an id that is one."""
    if is_part():
        return findings
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
                where=role if kind == NO_TEXT else f"{role} and corpus",
                fix="name a corpus that holds these ids (--corpus, corpus=), "
                "or give texts with the ids",
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
    findings = [
        replace(found, template="# gold document|documents has|have no text and is|are left out.")
        if found.kind == UNKNOWN_TEXT
        else found
        for found in require_texts(lacking, rows.height, "gold")
    ]
    rows = rows.with_columns(doc=text).drop("text", "start", "end", strict=False).drop_nulls("doc")
    if splitter is not None:
        rows, dropped = first_alternatives(rows)
        findings += dropped
        sentences = pl.Series(split(rows["doc"].to_list(), splitter), dtype=pl.List(pl.String))
        rows = rows.select("query", "grade", doc=sentences, group=pl.lit(None, pl.Int64))
        rows = rows.explode("doc").drop_nulls("doc")
    rows = rows.with_columns(key=tidy(rows["doc"], policy))
    if policy != "raw":
        findings += finding_about(
            "blank-text",
            rows.filter(pl.col("key") == "")["query"],
            "# gold text|texts is|are blank or punctuation only and left out.",
            "remove it, or compare texts as they are with text=raw",
        )
        rows = rows.filter(pl.col("key") != "")
    rows, again = merge_equal(rows, ["key"])
    if splitter is not None:  # chunks are listed, sentences are not
        rows = rows.drop("times", strict=False)
    findings += finding_about(
        "equal-gold",
        again["query"],
        "# gold text|texts equals|equal another one of the query; they count once.",
        "keep one of them; text=raw distinguishes what differs in case or punctuation only",
    )
    return gold_of_texts(gold, rows.drop("key"), findings)


def gold_of_texts(gold: Gold, rows: pl.DataFrame, findings: Iterable[Finding]) -> Gold:
    """Return the gold with other items, without what only concerns ids."""
    kept = [found for found in gold.findings if found.kind != FindingKind.TEXT_AS_ID]
    flaws = {query: flaw for query, flaw in gold.flaws.items() if flaw == EMPTY_ITEM}
    return Gold.build(rows, queries=gold.queries, findings=[*kept, *findings], flaws=flaws)


def first_alternatives(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
    """Keep one text of each group: the sentences of alternatives cannot all be asked for.

    How far a document supports an item says nothing about its sentences: the best document is
    kept, and one without support is left out.
    """
    if "weight" in rows.columns:
        rows = rows.filter(pl.col("weight") > 0)
        rows = rows.sort("weight", descending=True, maintain_order=True).drop("weight")
    again = rows["group"].is_not_null() & ~rows["group"].is_first_distinct()
    return rows.filter(~again), finding_about(
        "alternatives-dropped",
        rows.filter(again)["query"],
        "# alternative|alternatives of a group is|are left out. Only the first counts here.",
        "match by chunk, or give one gold text per item",
    )


def parts(
    aligned: Aligned, pieces: pl.Series, policy: str = "raw", *, keys: pl.Series | None = None
) -> Units:
    """Return parts of the rows of a batch as units: `pieces` lists those of each row.

    Their keys are their texts after the policy, or those that `keys` lists.
    """
    sizes = pieces.list.len().to_numpy().astype(np.int64)
    text = pieces.filter(sizes > 0).explode()
    key = tidy(text, policy) if keys is None else keys.filter(sizes > 0).explode()
    row = np.repeat(np.arange(len(sizes)), sizes)
    query = aligned.query[row]
    again = repeated(query, key)
    repeat = None if again is None else again.astype(np.int64)
    return Units(query, positions(query), text, key, repeat, row, sizes)


class BoundTexts(BoundByRule):
    """What all have in common that draw edges between texts: chunks or sentences as units."""

    blank_is_unit = True
    check_rows = staticmethod(require_texts)

    def __init__(
        self, gold: Gold, context: MatchContext, policy: str, splitter: Splitter | None = None
    ) -> None:
        self.gold = text_gold(gold, context.corpus, policy, splitter)
        self._corpus = context.corpus
        self._policy = policy
        self._splitter = splitter

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Replace ids by texts."""
        return with_texts(rows, self._corpus, self._policy)

    def units(self, aligned: Aligned) -> Units:
        """Return the chunks of a batch, or their sentences."""
        if self._splitter is None:
            return rows_as_units(aligned, aligned.rows["text"])
        found = split(aligned.rows["text"].to_list(), self._splitter)
        return parts(aligned, pl.Series(found, dtype=pl.List(pl.String)), self._policy)


class BoundPairs(BoundTexts):
    """Draws an edge from a unit to an item where their texts score at least the threshold."""

    order_matters = False

    def __init__(  # noqa: PLR0917
        self,
        gold: Gold,
        context: MatchContext,
        compare: Compare,
        threshold: float,
        policy: str,
        splitter: Splitter | None = None,
    ) -> None:
        super().__init__(gold, context, policy, splitter)
        self._compare = compare
        self._threshold = threshold
        self._texts, self._text_of_member = number_texts(self.gold.member_doc)
        self._member_query = self.gold.member_query

    def draw(self, units: Units) -> Edges:
        """Return the edges of the units whose score reaches the threshold."""
        unit, member, _ = self._scored(units, self._threshold)
        return edges_to_members(units, unit, member, self.gold)

    def scores(self, units: Units) -> Scores:
        """Return the score of every unit with every item that it has to do with."""
        unit, member, score = self._scored(units, float(np.nextafter(0, 1)))
        return Scores(unit, self.gold.member_item[member], score)

    def _scored(
        self, units: Units, min_score: float, compare: Compare | None = None
    ) -> tuple[Ints, Ints, Floats]:
        """Return unit, member and score of the pairs that score at least this, sorted by unit."""
        compare = compare or self._compare
        texts, text_of_unit = number_texts(units.text)
        first = np.searchsorted(self._member_query, units.query)
        last = np.searchsorted(self._member_query, units.query, side="right")
        found: list[tuple[Ints, Ints, Floats]] = []
        for begin, end in _slices(last - first):
            counts = (last - first)[begin:end]
            row = np.repeat(np.arange(begin, end), counts)
            start = np.cumsum(counts) - counts
            member = np.arange(len(row)) + np.repeat(first[begin:end] - start, counts)
            key = text_of_unit[row] * max(len(self._texts), 1) + self._text_of_member[member]
            distinct, which = np.unique(key, return_inverse=True)
            pairs = np.divmod(distinct, max(len(self._texts), 1))
            score = compare(texts, self._texts, pairs, min_score)[which]
            hit = np.flatnonzero(score >= min_score)
            found.append((row[hit], member[hit], score[hit]))
        if not found:
            none = np.zeros(0, dtype=np.int64)
            return none, none, none.astype(np.float64)
        rows, members, scores = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(members), np.concatenate(scores)


def number_texts(texts: pl.Series) -> tuple[list[str], Ints]:
    """Return the distinct texts, and the number of each text among them."""
    distinct = texts.unique(maintain_order=True)
    numbers = pl.int_range(len(distinct), eager=True)
    found = texts.replace_strict(distinct, numbers).cast(pl.Int64)  # of no texts, it is still texts
    return distinct.to_list(), found.to_numpy()


def _slices(counts: Ints) -> list[tuple[int, int]]:
    """Cut rows into slices with a bounded number of pairs each."""
    upto = np.cumsum(counts)
    slices, begin = [], 0
    while begin < len(counts):
        before = int(upto[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(upto, before + PAIRS, side="right")), begin + 1)
        slices.append((begin, end))
        begin = end
    return slices

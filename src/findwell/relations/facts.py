"""What measures ask about each chunk in addition to what it covers: tokens, characters, hop.

Only what a measure asks for is looked at: a relation without such a measure pays nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.columns import sort_rows
from findwell.core.errors import InputError
from findwell.core.frames import pl
from findwell.core.measure import COUNTED_UNITS
from findwell.core.texts.tokens import find_tokenizer
from findwell.relations.copies import copies
from findwell.relations.marks import days, marked_forbidden
from findwell.relations.match.texts import NO_TEXT, UNKNOWN_TEXT, require_texts, texts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.data import Floats, Ints
    from findwell.core.findings import Finding
    from findwell.core.texts.tokens import Tokenizer
    from findwell.relations.align import Aligned

SEARCHES = {"hops": "hop", "calls": "calls"}  # facts about searches, and their columns in runs
READ_FACTS = (*COUNTED_UNITS, "copies")  # what is found out from texts
COLUMN = "\0fact "  # before the name of a fact in the rows of a batch


@dataclass(frozen=True, slots=True, eq=False)
class ChunkFacts:
    """What is known about the chunks of a batch, one value per chunk and fact."""

    query: Ints
    rank: Ints
    columns: Mapping[str, Floats]
    findings: tuple[Finding, ...]
    documents: int


@dataclass(frozen=True, slots=True, eq=False)
class FactReader:
    """Finds out the facts that measures ask for."""

    names: tuple[str, ...]
    corpus: pl.DataFrame | None
    tokenizer: Tokenizer

    @classmethod
    def of(cls, names: Sequence[str], corpus: pl.DataFrame | None, tokenizer: object) -> FactReader:
        """Return what finds out these facts."""
        return cls(tuple(names), corpus, find_tokenizer(tokenizer))

    def add(
        self, rows: pl.DataFrame, run: str, queries: pl.DataFrame
    ) -> tuple[pl.DataFrame, list[Finding]]:
        """Add the facts to the rows of a run, as columns that no relation looks at."""
        found: dict[str, pl.Series] = {}
        findings: list[Finding] = []
        if any(name in READ_FACTS for name in self.names):
            counted, findings = self._counted(rows)
            rows = rows.with_columns(counted.get_columns())
        found |= {name: _searches(rows, name, run) for name in self.names if name in SEARCHES}
        if "forbidden" in self.names:
            found["forbidden"] = marked_forbidden(rows, self.corpus, queries)
        if "date" in self.names:
            found |= dict(zip(("date", "newest"), days(rows, self.corpus), strict=True))
        columns = (each.cast(pl.Float64).alias(COLUMN + name) for name, each in found.items())
        return rows.with_columns(*columns), findings

    def _counted(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Return what is counted in the text of each row; of a document of the corpus once."""
        distinct = rows.select("doc").unique(maintain_order=True)
        own = (rows[name] for name in ("text", "start") if name in rows.columns)
        if self.corpus is not None and not any(each.count() for each in own):  # only ids
            text, findings = chunk_texts(distinct, self.corpus)
            if not findings:  # otherwise they are to count all rows
                counts = self._counts(text).with_columns(distinct["doc"])
                docs = rows.select("doc")
                docs = docs.join(counts, "doc", "left", nulls_equal=True, maintain_order="left")
                return docs.drop("doc"), []
        text, findings = chunk_texts(rows, self.corpus)
        return self._counts(text), findings

    def _counts(self, text: pl.Series) -> pl.DataFrame:
        text = text.fill_null("")
        found = {}
        if "chars" in self.names:
            found["chars"] = text.str.len_chars().cast(pl.Float64)
        if "tokens" in self.names:
            found["tokens"] = self.tokenizer.count(text).cast(pl.Float64)
        named = {COLUMN + name: values for name, values in found.items()}
        return pl.DataFrame(named | ({COLUMN: text} if "copies" in self.names else {}))

    def read(self, aligned: Aligned, findings: Sequence[Finding], documents: int) -> ChunkFacts:
        """Return the facts about the chunks of a batch."""
        columns = {
            name: copies(aligned.query, aligned.rows[COLUMN])
            if name == "copies"
            else aligned.rows[COLUMN + name].fill_null(np.nan).to_numpy()
            for name in self.names
        }
        return ChunkFacts(aligned.query, aligned.rank, columns, tuple(findings), documents)


def chunk_texts(rows: pl.DataFrame, corpus: pl.DataFrame | None) -> tuple[pl.Series, list[Finding]]:
    """Return the text of each chunk; what is only a place in a document is cut out of it."""
    if corpus is not None and "start" in rows.columns and rows["start"].count():
        documents = corpus.select("doc", pl.col("text").alias("\0text"))
        own = pl.col("text") if "text" in rows.columns else pl.lit(None, pl.String)
        placed = pl.col("start").is_not_null()
        cut = pl.col("\0text").str.slice(pl.col("start"), pl.col("end") - pl.col("start"))
        rows = rows.join(documents, on="doc", how="left", maintain_order="left")
        rows = rows.with_columns(text=pl.coalesce(own, pl.when(placed).then(cut)))
    return texts_of(rows, corpus)


def _searches(rows: pl.DataFrame, name: str, run: str) -> pl.Series:
    if SEARCHES[name] in rows.columns:
        return rows[SEARCHES[name]].fill_null(1)
    raise InputError(
        "the run does not say which search found what",
        where=run,
        fix='give records such as {"query": "q1", "hops": [{"retrieved": ["d1", "d2"]}, …]}',
    )


def require_counted(parts: Sequence[ChunkFacts], run: str) -> None:
    """Refuse chunks without a text where tokens or characters are counted."""
    findings = [found for part in parts for found in part.findings]
    for found in require_texts(findings, sum(part.documents for part in parts), run):
        if found.kind in (NO_TEXT, UNKNOWN_TEXT):
            known = "" if found.kind == NO_TEXT else " in the corpus"
            count = "1 retrieved document has" if found.count == 1 else f"{found.count} have"
            raise InputError(
                f"{count} no text{known}, such as {found.examples[0]!r}: what it costs is unknown",
                where=run,
                fix="name a corpus that holds all retrieved documents (--corpus, corpus=), or give "
                "texts with the ids",
            )


def join_facts(known: Sequence[ChunkFacts], run: str) -> dict[str, Floats]:
    """Return the facts of all batches, in the order of queries and ranks."""
    require_counted(known, run)
    keys = [np.concatenate([getattr(part, key) for part in known]) for key in ("query", "rank")]
    return {
        name: sort_rows((*keys, np.concatenate([part.columns[name] for part in known])), 2)[2]
        for name in known[0].columns
    }

"""Labels that outlive their chunks: gold as characters of documents instead of ids of chunks.

`anchor` finds the text of each gold chunk in the documents; `drift` finds it again when they have
changed. What is found in several places or in none is listed, never guessed.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError, choose, takes_options
from findwell.core.findings import EXAMPLES, Finding, FindingKind, finding_about, shorten
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.io.read import load_gold, path_of
from findwell.io.read.corpus import load_corpus
from findwell.io.read.labels_database import database_at, typed
from findwell.io.storage.files import write_text
from findwell.relations.spans.place import CUT_MESSAGES, cover, left_out, place, widened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from findwell.core.data import Gold
    from findwell.io.read.in_memory import GoldLike


PLACE = ("doc", "start", "end")
PASSAGE = ("doc", "text", "source", "start", "end")
AMBIGUOUS_CHOICES = ("leave", "first", "all")
MIN_SCORE = 0.85
CONTEXT_LENGTH = 1 << 14  # characters on either side of a label that distinguish its places
CLEAR_LEAD = 16  # this many more of them must agree at one place than at all others
MESSAGES = {  # what findings say of a label, by its status and its cut
    "lost": ("# label|labels has|have no place: the text was not found.", "label the query again"),
    "ambiguous": (
        "# label|labels has|have a text that is in several places.",
        "give offsets, or take the first place or all of them (--ambiguous, ambiguous=)",
    ),
    "fuzzy": ("# label|labels was|were found only approximately.", "look at its quote and score"),
    "edited": ("# label|labels has|have a text that was edited.", "look at its quote and score"),
    **CUT_MESSAGES,
}
OTHER_PLACE = (
    "# label|labels has|have a text that is not where the chunk says.",
    "check that the sources and offsets of the chunks belong to these documents",
)
LEFT_EMPTY = ("# query|queries has|have no relevant label with a place.", "label the query again")


@dataclass(frozen=True, slots=True, eq=False)
class Anchored:
    """Labels and their places.

    `labels` has one row per label: query, group (labels of one group are interchangeable), grade,
    id (what the gold called it), doc, start and end (in characters, the end not part of it), quote
    (what stands there), score, status and note. Without a place doc, start and end are null.
    After `drift` there is also the place before (old_doc, old_start, old_end) and, where chunks
    were given, which of them hold the label (chunks, covered, cut; see
    `findwell.relations.spans.place.cover`).
    """

    labels: pl.DataFrame
    queries: pl.DataFrame  # query, then whatever describes it
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.summary().rows())
        return f"Anchored({counts or 'no labels'})"

    def summary(self, column: str = "status") -> pl.DataFrame:
        """Return how many labels have each status, or each value of another column."""
        count = self.labels.drop_nulls(column).group_by(column).agg(labels=pl.len())
        return count.sort("labels", column, descending=[True, False])

    def records(self) -> Iterator[dict[str, Any]]:
        """Go through the queries as records; their gold are the labels that have a place."""
        gold: dict[str, dict[int, list[dict[str, Any]]]] = {}
        placed = self.labels.filter(pl.col("start").is_not_null())
        for row in placed.select("query", "group", *PLACE, "quote", "grade").iter_rows(named=True):
            query, group, grade = row.pop("query"), row.pop("group"), row.pop("grade")
            row["grade"] = int(grade) if grade.is_integer() else grade
            gold.setdefault(query, {}).setdefault(group, []).append(row)
        for record in self.queries.iter_rows(named=True):
            groups = gold.get(record["query"], {}).values()
            known = {name: value for name, value in record.items() if value is not None}
            yield known | {"gold": [group if len(group) > 1 else group[0] for group in groups]}

    def jsonl(self) -> str:
        """Return the records as JSON lines, which is findwell's own shape of gold labels."""
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in self.records())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the records as JSON lines, whole or not at all."""
        write_text(path, self.jsonl())


@takes_options()
def anchor(
    gold: GoldLike,
    corpus: object,
    *,
    chunks: object = None,
    min_score: float = MIN_SCORE,
    ambiguous: str = "leave",
    gold_format: str | None = None,
    skip_bad: bool = False,
    fields: Mapping[str, Any] | None = None,
) -> Anchored:
    """Turn gold that names chunks into gold that names characters of documents.

    `chunks` are the texts of the ids, with or without source, start and end; `corpus` are the
    documents that they were cut from. Gold labels with quotes, or whose ids are texts, need no
    chunks; otherwise, without them, an id is that of a document and stands for all of it.

    Offsets count if they lead to the text of the chunk; otherwise the text is looked for in the
    source, then in all documents: exact, normalised, or fuzzy with a score of `min_score` or more
    (`findwell.relations.spans.locate`). A label that is found in several places is left without one
    (`leave`), gets the first (`first`), or all of them as alternatives (`all`).

    >>> documents = {"guide": "Charge it first. Then press the red button."}
    >>> chunks = {"guide-2": "Then press the red button."}
    >>> anchored = anchor({"q1": ["guide-2"]}, documents, chunks=chunks)
    >>> anchored.labels.select("doc", "start", "end", "status").rows()
    [('guide', 17, 43, 'exact')]
    """
    refuse_after_fork()
    choose("choice for ambiguous labels", ambiguous, AMBIGUOUS_CHOICES)
    given = load_gold(gold, format=gold_format, skip_bad=skip_bad, texts=True, fields=fields)
    documents = load_corpus(corpus)
    labels = labels_of(given)
    if database_at(gold) is not None:
        # what people label is often a chunk: a place in what is not a document is not known
        known = pl.col("doc").is_in(documents["doc"].implode())
        labels = labels.with_columns(pl.when(known).then(name).alias(name) for name in PLACE)
    wanted = _wanted(labels, documents, None if chunks is None else load_corpus(chunks))
    labels = settle(labels, wanted, place(wanted, documents, min_score=min_score), ambiguous)
    findings = findings_of(labels, "status", ("lost", "ambiguous", "fuzzy"))
    elsewhere = labels.filter(pl.col("note").str.contains("^not (at|in) "), pl.col("start") >= 0)
    findings += _finding("other-place", elsewhere, *OTHER_PLACE)
    # texts instead of ids are looked for
    about = (each for each in given.findings if each.kind != FindingKind.TEXT_AS_ID)
    return Anchored(labels, given.queries, (*about, *findings))


def labels_of(gold: Gold) -> pl.DataFrame:
    """Return one row per label: number, query, group, grade, id, and its place in the gold."""
    rows = gold.rows().rename({"doc": "id"}).with_columns(group=pl.Series(gold.member_item))
    facts = typed(rows, ("text", "start", "end", "source"))
    rows = rows.select("query", "group", "grade", "id", *facts)
    # an entry that names no document is called by its text; that of a chunk may name its source
    named = pl.when(pl.col("text").ne_missing(pl.col("id"))).then("id")
    rows = rows.with_columns(doc=pl.coalesce("source", named)).drop("source")
    return rows.with_row_index("number").cast({"number": pl.Int64})


def _wanted(
    labels: pl.DataFrame, documents: pl.DataFrame, chunks: pl.DataFrame | None
) -> pl.DataFrame:
    """Return what to look for: what the label says, or its chunk, or its whole document."""
    if chunks is None:
        size = pl.col("text").str.len_chars().cast(pl.Int64)
        known = documents.select("text", id="doc", doc="doc", start=pl.lit(0, pl.Int64), end=size)
    else:
        known = chunks.select(typed(chunks, PASSAGE)).rename({"doc": "id", "source": "doc"})
    joined = labels.join(known, on="id", how="left", maintain_order="left", suffix="_known")
    own = pl.col("text").is_not_null() | pl.col("start").is_not_null()
    return joined.select(
        pl.when(own).then(name).otherwise(f"{name}_known").alias(name) for name in ("text", *PLACE)
    )


def settle(
    labels: pl.DataFrame, wanted: pl.DataFrame, found: pl.DataFrame, ambiguous: str
) -> pl.DataFrame:
    """Give each label its place; where there are several none, the first, or all of them."""
    if ambiguous != "all":
        found = found.unique("number", keep="first", maintain_order=True)
    if ambiguous == "leave":
        one = pl.col("status") != "ambiguous"
        names = (*PLACE, "score", "text")
        found = found.with_columns(pl.when(one).then(name).alias(name) for name in names)
    sought = labels.select("number", "query", "group", "grade", "id", sought=wanted["text"])
    joined = sought.join(found, on="number", maintain_order="left")
    quote = pl.coalesce("text", "sought").alias("quote")
    return joined.select(*sought.columns[:-1], *PLACE, quote, "score", "status", "note")


def findings_of(labels: pl.DataFrame, column: str, values: Iterable[str]) -> list[Finding]:
    """Return a finding for each of these values that labels have, and for queries left empty."""
    found = []
    for value in values:
        rows = labels.filter(pl.col(column) == value).unique("number", maintain_order=True)
        found += _finding(f"{value}-label", rows, *MESSAGES[value])
    if column == "status":
        relevant = labels.filter(pl.col("grade") > 0).group_by("query", maintain_order=True)
        left = relevant.agg(pl.col("start").count()).filter(pl.col("start") == 0)["query"]
        found += finding_about("query-left-empty", left, *LEFT_EMPTY)
    return found


def _finding(kind: str, rows: pl.DataFrame, message: str, fix: str) -> list[Finding]:
    if not rows.height:
        return []
    examples = []
    for query, name, quote, note in rows.head(EXAMPLES)["query", "id", "quote", "note"].rows():
        shown = shorten(" ".join((name if quote is None else quote).split()), 40)
        examples.append(f"{query}: {shown}" + (f" ({note})" if note else ""))
    return [Finding(kind, rows.height, tuple(examples), message, fix)]


@takes_options()
def drift(
    gold: GoldLike | Anchored,
    corpus: object,
    *,
    chunks: object = None,
    before: object = None,
    min_score: float = MIN_SCORE,
    ambiguous: str = "leave",
    gold_format: str | None = None,
    skip_bad: bool = False,
    fields: Mapping[str, Any] | None = None,
) -> Anchored:
    """Find the labels of an anchored gold again in documents that have changed.

    A label is `kept` (the same text at the same place), `moved` (the same text elsewhere), `edited`
    (nearly the same text, with the score), `ambiguous` or `lost`. Given the documents as they were
    `before`, the text around a label distinguishes the places where it stands now. Given `chunks`,
    the labels say which of them hold them, and how they were cut.

    >>> from findwell.loop.labels.anchor import anchor
    >>> old = anchor({"q1": [{"quote": "red button"}]}, {"d": "Press the red button."})
    >>> new = drift(old, {"d": "Now press the big red button."})
    >>> new.labels.select("status", "old_start", "start").rows()
    [('moved', 10, 18)]
    """
    refuse_after_fork()
    choose("choice for ambiguous labels", ambiguous, AMBIGUOUS_CHOICES)
    source = list(gold.records()) if isinstance(gold, Anchored) else gold
    mapped = None if isinstance(gold, Anchored) else fields
    given = load_gold(source, format=gold_format, skip_bad=skip_bad, texts=True, fields=mapped)
    labels = labels_of(given)
    bare = labels.filter(pl.col("text").is_null())
    if bare.height:
        raise InputError(
            f"the label {bare['id'][0]!r} of query {bare['query'][0]!r} has no quote to look for",
            where=path_of(source, "gold"),
            fix="run findwell labels anchor with the documents that the labels were made for; "
            "what it writes has quotes",
        )
    documents = load_corpus(corpus)
    found = place(labels, documents, min_score=min_score)
    if before is not None:
        found = _distinguish(found, labels, documents, load_corpus(before))
    now = _compare(labels, settle(labels, labels, found, ambiguous))
    findings = findings_of(now, "status", ("lost", "ambiguous", "edited"))
    if chunks is not None:
        held, lost = _place_chunks(load_corpus(chunks), documents, min_score)
        now = now.hstack(cover(_trimmed(now), held))
        findings += [*lost, *left_out(held, documents), *findings_of(now, "cut", CUT_MESSAGES)]
    return Anchored(now, given.queries, (*given.findings, *findings))


def _compare(old: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """Put the old places next to the new ones, and say what became of each label."""
    names = {name: f"old_{name}" for name in (*PLACE, "text")}
    joined = now.join(
        old.select("number", *names).rename(names), on="number", maintain_order="left"
    )
    settled = pl.col("status").is_in(["ambiguous", "lost"])
    same_place = pl.all_horizontal(pl.col(name) == pl.col(f"old_{name}") for name in PLACE)
    status = (
        pl.when(settled)
        .then("status")
        .when(pl.col("quote") != pl.col("old_text"))
        .then(pl.lit("edited"))
        .when(same_place)
        .then(pl.lit("kept"))
        .otherwise(pl.lit("moved"))
    )
    return joined.with_columns(status=status).drop("old_text")


def _distinguish(
    found: pl.DataFrame, labels: pl.DataFrame, now: pl.DataFrame, before: pl.DataFrame
) -> pl.DataFrame:
    """Choose among the places of an ambiguous label the one with the same text around it."""
    new = dict(now.select("doc", "text").iter_rows())
    old = dict(before.select("doc", "text").iter_rows())
    wanted = labels.select("text", *PLACE).rows()
    rows = found.with_row_index("row").filter(pl.col("status") == "ambiguous")
    chosen = {}
    for (number,), places in rows.group_by("number", maintain_order=True):
        text, doc, start, end = wanted[int(number)]
        if start is None or old.get(doc, "")[start:end] != text:
            continue
        around = _around(old[doc], start, end)
        agree = [
            sum(map(_in_common, around, _around(new[d], s, e))) for d, s, e in places[PLACE].rows()
        ]
        second, best = sorted(agree)[-2:]
        if best - second >= CLEAR_LEAD:
            chosen[number] = places["row"][agree.index(best)]
    decided = pl.col("number").is_in(list(chosen))
    note = "distinguished by the text around it"
    kept = found.with_row_index("row").filter(~decided | pl.col("row").is_in(list(chosen.values())))
    return kept.drop("row").with_columns(
        status=pl.when(decided).then(pl.lit("exact")).otherwise("status"),
        note=pl.when(decided).then(pl.lit(note)).otherwise("note"),
    )


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the text before a place, backwards, and the text behind it."""
    return text[max(0, start - CONTEXT_LENGTH) : start][::-1], text[end : end + CONTEXT_LENGTH]


def _in_common(one: str, other: str) -> int:
    """Return the length of the beginning that two texts share."""
    shorter = range(min(len(one), len(other)))
    return bisect_left(shorter, True, key=lambda end: one[: end + 1] != other[: end + 1])


def _trimmed(labels: pl.DataFrame) -> pl.DataFrame:
    """Return the places of labels without the white space around them, which chunkers drop."""
    quote = pl.col("quote")
    before = quote.str.len_chars() - quote.str.strip_chars_start().str.len_chars()
    behind = quote.str.len_chars() - quote.str.strip_chars_end().str.len_chars()
    start = pl.col("start") + before.cast(pl.Int64)
    end = pl.max_horizontal(pl.col("end") - behind.cast(pl.Int64), start)
    return labels.select("doc", start=start, end=end)


def _place_chunks(
    chunks: pl.DataFrame, documents: pl.DataFrame, min_score: float
) -> tuple[pl.DataFrame, list[Finding]]:
    """Find the places of the chunks; one whose text is in several places holds them all."""
    known = chunks.select(typed(chunks, PASSAGE)).drop("doc").rename({"source": "doc"})
    found = place(known, documents, min_score=min_score)
    found = found.with_columns(chunk=chunks["doc"].gather(found["number"]))
    findings = finding_about(
        "lost-chunk",
        found.filter(pl.col("status") == "lost")["chunk"],
        "# chunk|chunks has|have a text that is in no document and holds|hold no label.",
        "check that these are the chunks of these documents",
    )
    return widened(found.drop_nulls("start"), documents), findings

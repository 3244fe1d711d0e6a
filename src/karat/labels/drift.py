"""Labels after a change: found again in documents, or chunks, that are not what they were."""

from __future__ import annotations

import re
from bisect import bisect_left

import polars as pl

from karat.errors import InputError, choose
from karat.findings import Finding, finding_about
from karat.labels.anchor import (
    AMBIGUOUS,
    MIN_SCORE,
    PLACE,
    Anchored,
    findings_of,
    labels_of,
    settle,
    with_places,
)
from karat.read import GoldLike, load_gold
from karat.read.corpus import load_corpus
from karat.spans.place import cover, place

CONTEXT = 1 << 14  # characters on either side of a label that distinguish its places
BLANK = re.compile(r"\s*")
CLEARLY = 16  # this many more of them must agree at one place than at all others


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
) -> Anchored:
    """Find the labels of an anchored gold again in documents that have changed.

    A label is `kept` (the same text at the same place), `moved` (the same text elsewhere), `edited`
    (nearly the same text, with the score), `ambiguous` or `lost`. Given the documents as they were
    `before`, the text around a label tells the places apart where it stands now. Given `chunks`,
    the labels say which of them hold them, and how they were cut.

    >>> from karat.labels.anchor import anchor
    >>> old = anchor({"q1": [{"quote": "red button"}]}, {"d": "Press the red button."})
    >>> new = drift(old, {"d": "Now press the big red button."})
    >>> new.labels.select("status", "old_start", "start").rows()
    [('moved', 10, 18)]
    """
    choose("choice for ambiguous labels", ambiguous, AMBIGUOUS)
    source = list(gold.records()) if isinstance(gold, Anchored) else gold
    given = load_gold(source, format=gold_format, skip_bad=skip_bad, texts=True)
    labels = labels_of(given)
    _check_quotes(labels)
    documents = load_corpus(corpus)
    found = place(labels, documents, least=min_score)
    if before is not None:
        found = _tell_apart(found, labels, documents, load_corpus(before))
    now = _compare(labels, settle(labels, labels, found, ambiguous))
    findings = findings_of(now, "status", ("lost", "ambiguous", "edited"))
    if chunks is not None:
        held, lost = _place_chunks(load_corpus(chunks), documents, min_score)
        now = now.hstack(cover(_trimmed(now), held))
        findings += [*lost, *findings_of(now, "cut", ("none", "partly", "split"))]
    return Anchored(now, given.queries, (*given.findings, *findings))


def _check_quotes(labels: pl.DataFrame) -> None:
    bare = labels.filter(pl.col("text").is_null())
    if bare.height:
        raise InputError(
            f"the label {bare['id'][0]!r} of query {bare['query'][0]!r} has no quote to look for",
            where="gold",
            fix="run karat anchor with the documents that the labels were made for; "
            "what it writes has quotes",
        )


def _compare(old: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """Put the old places beside the new ones, and say what became of each label."""
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


def _tell_apart(
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
        if best - second >= CLEARLY:
            chosen[number] = places["row"][agree.index(best)]
    kept = ~pl.col("number").is_in(list(chosen)) | pl.col("row").is_in(list(chosen.values()))
    decided = pl.col("number").is_in(list(chosen))
    return (
        found.with_row_index("row")
        .filter(kept)
        .drop("row")
        .with_columns(
            status=pl.when(decided).then(pl.lit("exact")).otherwise("status"),
            note=pl.when(decided)
            .then(pl.lit("told apart by the text around it"))
            .otherwise("note"),
        )
    )


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the text before a place, backwards, and the text behind it."""
    return text[max(0, start - CONTEXT) : start][::-1], text[end : end + CONTEXT]


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
    known = with_places(chunks).select("text", "start", "end", doc="source")
    found = place(known, documents, least=min_score)
    found = found.with_columns(chunk=chunks["doc"].gather(found["number"]))
    findings = finding_about(
        "lost-chunk",
        found.filter(pl.col("status") == "lost")["chunk"],
        "chunk whose text is in no document: it holds no label",
        "check that these are the chunks of these documents",
    )
    return _widened(found.drop_nulls("start"), documents), findings


def _widened(chunks: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Let chunks reach over the white space behind them, which is in no chunk otherwise."""
    texts = dict(documents.select("doc", "text").iter_rows())
    ends = [BLANK.match(texts[doc], end).end() for doc, end in chunks.select("doc", "end").rows()]  # type: ignore[union-attr]
    return chunks.with_columns(end=pl.Series(ends, dtype=pl.Int64))

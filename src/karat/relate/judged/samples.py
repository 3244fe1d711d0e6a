"""From a run to what a judge sees: one sample a query, its chunks distinct and in rank order.

A judge is asked no deeper than measures read: each aspect has samples of its own, cut where the
deepest measure over it stops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.align.align import align
from karat.core.data import Run
from karat.errors import InputError
from karat.judges.aspects import Shape, find_aspect
from karat.judges.verdicts import Sample
from karat.relate.match.texts import require_texts, with_texts
from karat.texts.sentences import split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karat.align.align import Aligned
    from karat.core.data import Gold, Ints
    from karat.core.policy import Policy
    from karat.findings import Finding


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """The samples of a run, and which chunk of its sample each row of the run is."""

    samples: list[Sample]  # one a query of the gold, in its order
    aligned: Aligned
    chunk: Ints  # of each row; -1 for a blank text
    judged_to: int | None = None  # the rank at which lists are cut, where any is longer


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """What a judge is to see of a run, by aspect."""

    by_aspect: Mapping[str, Sampled]
    aligned: Aligned  # the whole run
    findings: list[Finding]


def sample_run(  # noqa: PLR0917
    run: Run,
    gold: Gold,
    policy: Policy,
    corpus: pl.DataFrame | None,
    depths: Mapping[str, int | None],
    splitters: Mapping[str, str],
) -> Sampling:
    """Make the samples of a run; the questions and references are columns of the gold's queries.

    `depths` says how many ranks of the lists each aspect is judged to; None: all.
    """
    questions, references = _told(gold, frozenset(depths))
    rows, lacking = with_texts(run.rows, corpus, "plain")
    findings = require_texts(lacking, run.rows["doc"].count(), run.name)
    aligned = align(Run(run.name, rows, run.order), gold, policy, by_id=False)
    chunks, chunk = _chunks(aligned, len(questions))
    split = [aspect for aspect in map(find_aspect, depths) if aspect.is_split]
    items = {
        aspect.name: _units(references, splitters.get(aspect.name))
        for aspect in split
        if aspect.shape is Shape.ITEMS
    }
    whole = [
        Sample(
            query=query,
            question=questions[number],
            chunks=chunks[number],
            reference=references[number],
            items={name: texts[number] for name, texts in items.items()},
        )
        for number, query in enumerate(gold.queries["query"])
    ]
    cuts = {depth: _cut(whole, aligned, chunk, depth) for depth in set(depths.values())}
    by_aspect = {aspect: cuts[depth] for aspect, depth in depths.items()}
    for aspect in split:
        if aspect.shape is Shape.PARTS:
            splitter = splitters.get(aspect.name)
            by_aspect[aspect.name] = _with_parts(by_aspect[aspect.name], aspect.name, splitter)
    return Sampling(by_aspect, aligned, [*findings, *aligned.findings])


def _cut(samples: list[Sample], aligned: Aligned, chunk: Ints, depth: int | None) -> Sampled:
    """Leave out what stands deeper in the lists."""
    kept = aligned.rank <= (aligned.rank.max(initial=0) if depth is None else depth)
    if kept.all():
        return Sampled(samples, aligned, chunk)
    shorter = replace(
        aligned,
        query=aligned.query[kept],
        rank=aligned.rank[kept],
        rows=aligned.rows.filter(kept),
        repeat=None if aligned.repeat is None else aligned.repeat[kept],
    )
    # chunks are numbered as they first occur, so those of the first ranks are the first chunks
    count = np.zeros(len(samples), dtype=np.int64)
    np.maximum.at(count, shorter.query, chunk[kept] + 1)
    cut = [
        replace(sample, chunks=sample.chunks[:first])
        for sample, first in zip(samples, count.tolist(), strict=True)
    ]
    return Sampled(cut, shorter, chunk[kept], depth)


def _with_parts(sampled: Sampled, aspect: str, splitter: str | None) -> Sampled:
    """Tell the parts of the chunks apart."""
    parts = iter(_units([text for sample in sampled.samples for text in sample.chunks], splitter))
    samples = [
        replace(sample, parts={aspect: tuple(next(parts) for _ in sample.chunks)})
        for sample in sampled.samples
    ]
    return replace(sampled, samples=samples)


def _chunks(aligned: Aligned, queries: int) -> tuple[list[tuple[str, ...]], Ints]:
    """Return the distinct chunks of each query, and which of them each row is."""
    filled = (aligned.rows["text"].str.strip_chars() != "").to_numpy()
    chunk = np.full(len(filled), -1, dtype=np.int64)
    rows = pl.DataFrame(
        {"query": aligned.query, "key": aligned.doc, "text": aligned.rows["text"]}
    ).filter(filled)
    distinct = rows.unique(["query", "key"], keep="first", maintain_order=True).with_columns(
        at=pl.int_range(pl.len()).over("query")
    )
    places = rows.join(distinct, on=["query", "key"], how="left", maintain_order="left")
    chunk[filled] = places["at"].to_numpy()
    listed: list[tuple[str, ...]] = [()] * queries
    for query, texts in distinct.group_by("query", maintain_order=True).agg("text").iter_rows():
        listed[query] = tuple(texts)
    return listed, chunk


def _told(gold: Gold, aspects: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return question and reference of each query; blank where there is none."""
    columns = []
    for name in ("question", "reference"):
        column = gold.queries.get_column(name, default=pl.Series([], dtype=pl.String))
        wanted = sorted(aspect for aspect in aspects if find_aspect(aspect).needs == name)
        if wanted and not (column.cast(pl.String).fill_null("").str.strip_chars() != "").any():
            raise InputError(
                f"no query has a {name}, which judging {' and '.join(wanted)} needs",
                where="samples",
                fix=f"give each record a {name!r}; see docs/inputs.md for what other tools call it",
            )
        texts = column.cast(pl.String).fill_null("").to_list()
        columns.append(texts or [""] * gold.queries.height)
    return columns[0], columns[1]


def _units(texts: list[str], splitter: str | None) -> list[tuple[str, ...]]:
    return [tuple(units) for units in split(texts, splitter or "sentencex")]

"""From a run to what a judge sees: one sample a query, its chunks distinct and in rank order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.align import align
from karat.data import Run
from karat.errors import InputError
from karat.judges.verdicts import Sample
from karat.match.sentences import split
from karat.match.texts import require_texts, with_texts

if TYPE_CHECKING:
    from karat.align import Aligned, Policy
    from karat.data import Gold, Ints
    from karat.findings import Finding
    from karat.judges.verdicts import Aspect

NEEDS = {
    "relevance": "question",
    "statements": "question",
    "claims": "reference",
    "entities": "reference",
}


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """The samples of a run, and which chunk of its sample each row of the run is."""

    samples: list[Sample]  # one a query of the gold, in its order
    aligned: Aligned
    chunk: Ints  # of each row; -1 for a blank text
    findings: list[Finding]


def sample_run(  # noqa: PLR0917
    run: Run,
    gold: Gold,
    policy: Policy,
    corpus: pl.DataFrame | None,
    aspects: frozenset[Aspect],
    splitters: dict[str, str],
) -> Sampled:
    """Make the samples of a run; the questions and references are columns of the gold's queries."""
    questions, references = _told(gold, aspects)
    rows, lacking = with_texts(run.rows, corpus, "plain")
    findings = require_texts(lacking, run.rows["doc"].count(), run.name)
    aligned = align(Run(run.name, rows, run.order), gold, policy, by_id=False)
    listed, chunk = _chunks(aligned, len(questions))
    claims = _units(references, "claims", aspects, splitters)
    parts = _units([text for texts in listed for text in texts], "statements", aspects, splitters)
    upto = np.cumsum([0, *(len(texts) for texts in listed)]).tolist()
    samples = [
        Sample(
            query=query,
            question=questions[number],
            chunks=listed[number],
            reference=references[number],
            claims=claims[number] if claims else (),
            statements=tuple(parts[upto[number] : upto[number + 1]]),
        )
        for number, query in enumerate(gold.queries["query"])
    ]
    return Sampled(samples, aligned, chunk, [*findings, *aligned.findings])


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


def _told(gold: Gold, aspects: frozenset[Aspect]) -> tuple[list[str], list[str]]:
    """Return question and reference of each query; blank where there is none."""
    columns = []
    for name in ("question", "reference"):
        column = gold.queries.get_column(name, default=pl.Series([], dtype=pl.String))
        wanted = sorted(aspect for aspect in aspects if NEEDS[aspect] == name)
        if wanted and not (column.cast(pl.String).fill_null("").str.strip_chars() != "").any():
            raise InputError(
                f"no query has a {name}, which judging {' and '.join(wanted)} needs",
                where="samples",
                fix=f"give each record a {name!r}; see docs/inputs.md for what other tools call it",
            )
        texts = column.cast(pl.String).fill_null("").to_list()
        columns.append(texts or [""] * gold.queries.height)
    return columns[0], columns[1]


def _units(
    texts: list[str], aspect: Aspect, aspects: frozenset[Aspect], splitters: dict[str, str]
) -> list[tuple[str, ...]]:
    if aspect not in aspects:
        return []
    return [tuple(units) for units in split(texts, splitters.get(aspect, "sentencex"))]

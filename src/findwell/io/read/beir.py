"""BEIR datasets: a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.core.errors import InputError
from findwell.core.findings import finding_about
from findwell.core.frames import pl
from findwell.io.read.format import Source
from findwell.io.read.json import all_entries

if TYPE_CHECKING:
    from findwell.core.data import Gold
    from findwell.core.findings import Finding

QUERIES, QRELS = "queries.jsonl", "qrels"


def judgements_of(path: str | os.PathLike[str]) -> tuple[Path, list[Finding]] | None:
    """Return the judgements of a dataset that count, and whether it has others.

    None if the path is not the folder of a dataset.
    """
    place = Path(path)
    try:
        splits = sorted(place.joinpath(QRELS).glob("*.tsv"))
    except (OSError, ValueError):  # reported when it is opened
        return None
    if not splits:
        return None
    chosen = next((split for split in splits if split.stem == "test"), splits[0])
    if len(splits) > 1 and chosen.stem != "test":
        what = f"the folder holds several judgements: {', '.join(s.name for s in splits)}"
        raise InputError(what, where=str(place), fix=f"name one, such as {splits[0]}")
    return chosen, finding_about(
        "unused-split",
        [split.name for split in splits if split != chosen],
        f"# file|files of judgements next to {chosen.name} was|were not used.",
        "to use others, name their file instead of the folder",
    )


def _questions(source: Source) -> pl.DataFrame:
    """Read the questions; if polars cannot, one by one, to name the line."""
    schema = {"_id": pl.String, "text": pl.String}
    with contextlib.suppress(pl.exceptions.PolarsError), source.plain_file() as path:
        return pl.read_ndjson(path, schema=schema)
    rows = []
    for entry in all_entries(source):
        record = entry.value
        if not isinstance(record, Mapping) or not isinstance(record.get("_id"), str):
            what = "this is not a question with an id"
            fix = 'write lines such as {"_id": "q1", "text": "…"}'
            raise InputError(what, where=entry.where(), fix=fix)
        rows.append((record["_id"], str(record.get("text") or "")))
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_questions(gold: Gold, qrels: Path) -> Gold:
    """Add the texts of the questions where the judgements lie in a BEIR folder."""
    path = qrels.parent.parent / QUERIES
    if qrels.parent.name != QRELS or not path.is_file() or "question" in gold.queries.columns:
        return gold
    table = _questions(Source.of(path))
    questions = table.rename({"_id": "query", "text": "question"}).unique("query", keep="last")
    joined = gold.queries.join(questions, on="query", how="left", maintain_order="left")
    return replace(gold, queries=joined)

"""Answers of a retriever: what it found for a question, or why it failed, and what that cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from findwell.core.data import Run
from findwell.core.findings import EXAMPLES, Finding, finding_about, shorten
from findwell.core.texts.tokens import find_tokenizer
from findwell.core.timing import TIMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FACTS = {"score": pl.Float64, **dict.fromkeys(("text", "source"), pl.String)}
FACTS |= dict.fromkeys(("start", "end"), pl.Int64)
TIMES = ("latency_ms", "started_s", "ended_s", "cpu_ms")


@dataclass(slots=True)
class Answer:
    """What a retriever found for one question, or why it failed."""

    number: int  # of the query
    entries: list[dict[str, Any]] | None  # None: it failed
    error: str | None
    started: float  # in seconds since asking began
    ended: float
    cpu: float | None  # seconds of the processor; None if others were asked meanwhile
    memory: float | None  # the most that the process had, in megabytes
    concurrency: int

    def record(self) -> dict[str, Any]:
        """Return the answer as it is kept in a file; times of a failed one mean nothing."""
        costs: dict[str, Any] = {"retrieved": self.entries}
        if self.error is None:
            costs["latency_ms"] = round((self.ended - self.started) * 1000, 4)
            costs["started_s"], costs["ended_s"] = round(self.started, 6), round(self.ended, 6)
            costs["cpu_ms"] = None if self.cpu is None else round(self.cpu * 1000, 4)
        costs |= {"peak_memory_mb": self.memory, "concurrency": self.concurrency}
        return costs | {"error": self.error}

    @classmethod
    def of_record(cls, number: int, record: dict[str, Any]) -> Answer:
        """Return the answer that was kept in a file."""
        cpu = record.get("cpu_ms")
        return cls(
            number,
            record["retrieved"],
            record.get("error"),
            record.get("started_s") or 0.0,
            record.get("ended_s") or 0.0,
            None if cpu is None else cpu / 1000,
            record.get("peak_memory_mb"),
            record.get("concurrency") or 1,
        )


def to_run(name: str, queries: pl.DataFrame, answers: Sequence[Answer]) -> Run:
    """Return the run that answers make: one for every query, in the order of the queries.

    A query that failed is a row without a document, as one that retrieved nothing: whatever the
    policy about missing queries, a failure must not leave the mean.
    """
    rows = _rows(queries["query"], answers)
    return Run(
        name,
        rows,
        order="listed",
        findings=tuple(failed_queries(queries["query"], [each.error for each in answers])),
        about=_about(queries, answers).join(
            _context(rows), on="query", how="left", maintain_order="left"
        ),
    )


def failed_queries(queries: pl.Series, errors: Sequence[str | None]) -> list[Finding]:
    """Return the finding about queries that failed; its examples give the reasons."""
    failed = [
        f"{shorten(query, 30)}: {shorten(error)}"
        for query, error in zip(queries, errors, strict=True)
        if error is not None
    ]
    return finding_about(
        "failed-query",
        failed,
        "query for which the retriever failed: counts as nothing retrieved",
        "look at the reasons; a longer --timeout or --retries (timeout=, retries=) may help",
        examples=EXAMPLES,
    )


def _rows(queries: pl.Series, answers: Sequence[Answer]) -> pl.DataFrame:
    none: list[dict[str, Any]] = [{}]  # a query without a document has a row all the same
    lists = [each.entries or none for each in answers]
    counts = np.fromiter(map(len, lists), np.int64, len(lists))
    flat = list(chain.from_iterable(lists))
    columns: dict[str, pl.Series] = {
        "query": queries.gather(np.repeat(np.arange(len(lists)), counts)),
        "doc": pl.Series([each.get("doc") for each in flat], dtype=pl.String),
    }
    for fact, kind in FACTS.items():
        values = [each.get(fact) for each in flat]
        if fact == "score" or any(value is not None for value in values):
            columns[fact] = pl.Series(values, dtype=kind, strict=False)
    return pl.DataFrame(columns)


def _context(rows: pl.DataFrame) -> pl.DataFrame:
    """Return how much text was retrieved for each query, where the answers have texts."""
    if "text" not in rows.columns:
        return rows.select("query").clear()
    sized = rows.select(
        "query",
        context_bytes=pl.col("text").str.len_bytes(),
        context_tokens=find_tokenizer(None).count(rows["text"].fill_null("")),
    )
    sizes = sized.group_by("query").agg(pl.col(name).sum() for name in sized.columns[1:])
    failed = rows.filter(pl.col("doc").is_null())["query"]  # nothing retrieved: no context at all
    return sizes.filter(~pl.col("query").is_in(failed.implode()))


def _about(queries: pl.DataFrame, answers: Sequence[Answer]) -> pl.DataFrame:
    """Return what is known about the queries, and what each answer cost."""
    flat = [name for name, kind in queries.schema.items() if not kind.is_nested()]
    known = queries.select(each for each in flat if each not in TIMED)
    started, ended = ([getattr(each, name) for each in answers] for name in ("started", "ended"))
    costs = pl.DataFrame(
        {
            "started_s": started,
            "ended_s": ended,
            "cpu_ms": pl.Series([each.cpu for each in answers], dtype=pl.Float64) * 1000,
            "peak_memory_mb": pl.Series([each.memory for each in answers], dtype=pl.Float64),
            "concurrency": [each.concurrency for each in answers],
            "error": pl.Series([each.error for each in answers], dtype=pl.String),
        }
    )
    answered = pl.col("error").is_null()
    costs = costs.select(
        pl.when(answered)
        .then((pl.col("ended_s") - pl.col("started_s")) * 1000)
        .alias("latency_ms"),
        *(pl.when(answered).then(pl.col(name)).alias(name) for name in ("started_s", "ended_s")),
        *("cpu_ms", "peak_memory_mb", "concurrency", "error"),
    )
    rounded = (pl.col(name).round(4 if name.endswith("ms") else 6) for name in TIMES)
    return known.hstack(costs.with_columns(rounded))


def as_json_lines(run: Run) -> Iterator[str]:
    """Write a run as records, one line per query, which `findwell.load_run` reads again."""
    facts = [name for name in ("doc", *FACTS) if name in run.rows.columns]
    names = run.rows.select("query").unique(maintain_order=True)
    about = names if run.about is None else run.about
    columns = [run.rows[name].to_list() for name in facts]
    at = 0
    lengths = run.rows["query"].rle()
    counts = dict(zip(lengths.struct.field("value"), lengths.struct.field("len"), strict=True))
    for row in about.iter_rows(named=True):
        count = counts[row["query"]]
        entries = [
            {fact: value for fact, value in zip(facts, values, strict=True) if value is not None}
            for values in zip(*(column[at : at + count] for column in columns), strict=True)
        ]
        at += count
        failed = row.get("error") is not None
        retrieved = None if failed else [entry for entry in entries if entry]
        # that nothing failed is written down: a missing field would leave it unknown
        described = {
            name: value for name, value in row.items() if value is not None or name == "error"
        }
        record = {name: described.pop(name) for name in ("query", "question") if name in described}
        yield json.dumps(record | {"retrieved": retrieved} | described, ensure_ascii=False) + "\n"

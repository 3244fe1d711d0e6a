"""Answers of a retriever: what it found for a question, or why it failed, and what that cost.

Answers are kept on disk as they come, so that a process that was killed goes on where it ended: in
a file of JSON lines to which one line is added per answer, by one write of the system. A process
that is killed loses at most the line that it was writing, which is cut off when the file is used
again. An answer counts again if retriever, query and question are the same; a failure does not.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np

from findwell.core.data import Run
from findwell.core.errors import InputError, OptionError, SaveError
from findwell.core.findings import EXAMPLES, Finding, finding_about, shorten
from findwell.core.frames import pl
from findwell.core.texts.tokens import find_tokenizer
from findwell.core.timing import TIME_COLUMNS
from findwell.io.storage.files import create_file, locked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FACTS = {"score": pl.Float64, **dict.fromkeys(("text", "source"), pl.String)}
FACTS |= dict.fromkeys(("start", "end"), pl.Int64)
COSTS: dict[str, type[pl.DataType]] = dict.fromkeys(
    ("latency_ms", "started_s", "ended_s", "cpu_ms", "peak_memory_mb"), pl.Float64
)
COSTS |= {"concurrency": pl.Int64, "error": pl.String}
BEGINNING = b'{"configuration": "'  # of every line of a file of answers
NEEDED = {"configuration", "query", "question", "retrieved", "error"}
ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)  # metadata may hold anything


@dataclass(slots=True)
class RetrieverAnswer:
    """What a retriever found for one question, or why it failed."""

    number: int  # of the query
    entries: list[dict[str, Any]] | None  # None: it failed
    error: str | None
    started: float  # in seconds since asking began
    ended: float
    cpu: float | None  # seconds of the processor; None if others were asked meanwhile
    memory: float | None  # the most that the process had, in megabytes
    concurrency: int

    def costs(self) -> dict[str, Any]:
        """Return what the answer cost; times of a failed one mean nothing."""
        costs: dict[str, Any] = {}
        if self.error is None:
            costs["latency_ms"] = round((self.ended - self.started) * 1000, 4)
            costs["started_s"], costs["ended_s"] = round(self.started, 6), round(self.ended, 6)
            costs["cpu_ms"] = None if self.cpu is None else round(self.cpu * 1000, 4)
        costs |= {"peak_memory_mb": self.memory, "concurrency": self.concurrency}
        return costs | {"error": self.error}

    @classmethod
    def of_record(cls, number: int, record: dict[str, Any]) -> RetrieverAnswer:
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


def to_run(name: str, queries: pl.DataFrame, answers: Sequence[RetrieverAnswer]) -> Run:
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
        "# query|queries failed in the retriever and counts|count as nothing retrieved.",
        "look at the reasons; a longer --timeout or --retries (timeout=, retries=) may help",
        examples=EXAMPLES,
    )


def _rows(queries: pl.Series, answers: Sequence[RetrieverAnswer]) -> pl.DataFrame:
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


def _about(queries: pl.DataFrame, answers: Sequence[RetrieverAnswer]) -> pl.DataFrame:
    """Return what is known about the queries, and what each answer cost; failures have no times."""
    flat = [name for name, kind in queries.schema.items() if not kind.is_nested()]
    known = queries.select(each for each in flat if each not in TIME_COLUMNS)
    return known.hstack(pl.DataFrame([each.costs() for each in answers], schema=COSTS))


def as_json_lines(run: Run) -> Iterator[str]:
    """Write a run as records, one line per query, which `findwell.io.load_run` reads again."""
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


class AnswerLog:
    """The file, open for as long as a retriever is asked."""

    def __init__(
        self, path: str | os.PathLike[str], identity: str, queries: Sequence[tuple[str, str]]
    ) -> None:
        self.path = Path(path)
        self._identity = identity
        self._queries = queries
        self._held = contextlib.ExitStack()
        self._handle = -1
        self.answers: dict[int, RetrieverAnswer] = {}  # from before
        self.others = 0  # answers of another configuration

    def __enter__(self) -> Self:
        """Open the file, take what it holds, and cut off a line that was never finished."""
        if self.path.is_symlink():  # it may lead to a file that is not ours to change
            raise SaveError(
                "this is a link, and answers are kept only in a file of their own",
                where=str(self.path),
                fix="delete the link, or name another file",
            )
        with contextlib.ExitStack() as opened:
            try:
                file = opened.enter_context(create_file(self.path).open("ab+"))
            except OSError as error:
                raise SaveError(
                    f"answers cannot be kept here: {error.strerror}", where=str(self.path)
                ) from None
            free = opened.enter_context(locked(self.path, wait=False))
            if not free and sys.platform != "win32":
                raise OptionError(
                    "another process is writing its answers to this file",
                    where=str(self.path),
                    fix="wait for it, or name another file",
                )
            self._read(file)
            self._handle = file.fileno()
            self._held = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._held.close()

    def add(self, answer: RetrieverAnswer) -> None:
        """Write an answer; what is written survives this process."""
        query, question = self._queries[answer.number]
        line = {"configuration": self._identity, "query": query, "question": question}
        text = ENCODER.encode(line | {"retrieved": answer.entries} | answer.costs())
        try:
            os.write(self._handle, text.encode("utf-8", "backslashreplace") + b"\n")
        except OSError as error:
            raise SaveError(
                f"an answer could not be kept: {error.strerror}",
                where=str(self.path),
                fix="free some space, and start again: what was answered so far is kept",
            ) from None

    def _read(self, file: BinaryIO) -> None:
        numbers = {pair: number for number, pair in enumerate(self._queries)}
        file.seek(0)
        whole = 0  # bytes up to the end of the last whole line
        for place, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                if not line.startswith(BEGINNING[: len(line)]):
                    raise self._foreign(place)  # the end of another file is not cut off
                break
            whole += len(line)
            record = self._parsed(line, place)
            if record["configuration"] != self._identity:
                self.others += 1
            elif record["error"] is None:
                number = numbers.get((record["query"], record["question"]))
                if number is not None:
                    self.answers[number] = RetrieverAnswer.of_record(number, record)
        if whole < file.seek(0, os.SEEK_END):
            file.truncate(whole)

    def _parsed(self, line: bytes, place: int) -> dict[str, Any]:
        with contextlib.suppress(ValueError, AttributeError):
            record: dict[str, Any] = json.loads(line)
            if record.keys() >= NEEDED:
                return record
        raise self._foreign(place)

    def _foreign(self, line: int) -> InputError:
        return InputError(
            "this is not a file of answers written by findwell",
            where=f"{self.path}, line {line}",
            fix="name another file to resume from, or remove this one",
        )

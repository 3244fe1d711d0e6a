"""Dicts, lists, frames and lines of JSON: with and without the kernel, everything is the same."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError
from findwell.io import native
from findwell.io.native import SWITCH, kernel
from findwell.io.read import format as source
from findwell.io.read import in_memory, load_gold, load_run
from findwell.io.read import json as json_lines
from tests.native.test_both_ways import described

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(kernel() is None, reason="the native kernel is not built")

LONG = "a-document-with-a-long-name-"
IDS = ("d1", "d2", "d3", f"{LONG}1", f"{LONG}2", "ä", "日本", "#7", "D1", "nul\0", "1", "true")
ODD_IDS = ("", " ", "\u00a0", " d1", "\ud800", 7, 7.5, None, True, np.str_("d1"), b"d1", ("d1",))
SCORES = (1, 0, -0.0, 2.5, 1e-300, 2**60 + 1, True, np.float64(0.3), 1.7976931348623157e308)
ODD_SCORES = (float("nan"), float("inf"), -float("inf"), 10**400, "x", None, np.float32(0.3), [1])
GRADES = (0, 1, 2, 3, -1, 0.5, 1.0, 5)


class Hostile:
    """Objects that are odd in a few ways, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.odd = self.maybe(0.5)
        self.listed, self.ties = self.maybe(0.5), self.maybe(0.4)
        self.queries: list[Any] = [f"q{number}" for number in range(12)]
        if self.odd and self.maybe(0.2):
            self.queries[self.chance.randrange(12)] = self.chance.choice(ODD_IDS)

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    def ids(self) -> list[Any]:
        ids: list[Any] = self.chance.sample(IDS, self.chance.randint(1, len(IDS)))
        ids += ids[:1] if self.maybe(0.05) else []
        if self.odd and self.maybe(0.05):
            ids.insert(self.chance.randrange(len(ids)), self.chance.choice(ODD_IDS))
        return [] if self.maybe(0.05) else ids

    def score(self, rank: int) -> Any:
        if self.odd and self.maybe(0.02):
            return self.chance.choice(ODD_SCORES)
        if self.ties:
            return self.chance.choice((1.0, 2.0, 2.0000000001))
        return 20.5 - rank if self.maybe(0.7) else self.chance.choice(SCORES)

    def by_query(self, entries: Callable[[list[Any]], Any]) -> Any:
        """Return entries of some of the queries."""
        some = self.queries[self.chance.randint(0, 3) : self.chance.randint(6, 12)]
        found = {query: entries(self.ids()) for query in some}
        if self.odd and self.maybe(0.1):
            found["other"] = self.chance.choice(({}, [], (), None, {"d1": {"d2": 1}}, "d1", 1))
        return OrderedDict(found) if self.odd and self.maybe(0.05) else found

    def run(self) -> Any:
        if self.listed:
            return self.by_query(lambda ids: tuple(ids) if self.maybe(0.1) else ids)
        return self.by_query(lambda ids: {doc: self.score(at) for at, doc in enumerate(ids)})

    def gold(self) -> Any:
        if self.maybe(0.5):
            return self.by_query(lambda ids: [ids[:2], *ids[2:]] if self.maybe(0.05) else ids)
        return self.by_query(lambda ids: {doc: self.chance.choice(GRADES) for doc in ids})

    def lines(self, field: str) -> bytes:
        """Return lines of JSON, of which some have more than ids, or another layout."""
        records: list[dict[str, Any]] = [
            {"query": query, field: ids}
            for query, ids in self.by_query(lambda ids: ids).items()
            if query is None or isinstance(query, str | int | float)
        ]
        if self.maybe(0.1):
            records.append(self.chance.choice(records))
        lines = []
        for record in records:
            if self.odd and self.maybe(0.05):
                record["question"] = "why?"
            if self.maybe(0.2):
                record = dict(reversed(record.items()))  # noqa: PLW2901
            ids = record.get(field)
            if isinstance(ids, list):
                kinds = str | int | float | None
                record[field] = [doc for doc in ids if isinstance(doc, kinds)]
                if self.odd and self.maybe(0.05):
                    record[field] = [{"doc": doc, "score": 1.0} for doc in record[field]]
            separators = (",", ":") if self.maybe(0.3) else (" , ", ": ")
            line = json.dumps(record, ensure_ascii=self.maybe(0.05), separators=separators)
            lines.append(line.encode("utf-8", "surrogatepass") + self.end())
        if self.odd and self.maybe(0.1):
            lines.append(self.chance.choice((b"{", b"[]", b"x", b'{"query": "q"}', b"\xff")))
        return b"".join(lines)

    def end(self) -> bytes:
        return self.chance.choice((b"\n", b"\r\n", b"\n\n", b" \n")) if self.maybe(0.1) else b"\n"


def told(run: Any, gold: Any, dialect: str) -> list[tuple[str, str]]:
    """Return everything that an evaluation tells, or its error, and what was read, as text."""
    found: list[tuple[str, str]] = []
    for work in (
        lambda: findwell.evaluate(run, gold, ["nDCG@3", "AP", "recall"], dialect=dialect),
        lambda: load_run(run).collect(),
        lambda: load_gold(gold),
    ):
        try:
            made: Any = work()
        except FindwellError as error:
            found.append((type(error).__name__, str(error)))
            continue
        if isinstance(made, findwell.Result):
            relation = next(iter(made.relations.values()))
            parts: Any = (described(relation), made.findings, made.values, list(made.about))
        elif isinstance(made, findwell.Run):
            parts = made.name, made.order, described(made.rows), made.findings
        else:
            parts = described(made)
        found.append(("read", repr(parts)))  # where NaN is like itself
    return found


def compare_both(
    run: Any, gold: Any, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[str, str]]:
    monkeypatch.setenv(SWITCH, "0")
    without = told(run, gold, dialect)
    monkeypatch.delenv(SWITCH)
    assert told(run, gold, dialect) == without
    return without


def compare_objects(seed: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Compare both ways; tell whether there were numbers, not an error."""
    hostile = Hostile(seed)
    dialect = ("findwell", "trec_eval", "findwell")[seed % 3]
    return compare_both(hostile.run(), hostile.gold(), dialect, monkeypatch)[0][0] == "read"


def compare_files(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    hostile = Hostile(seed)
    data = hostile.lines("retrieved")
    (folder / "run.jsonl").write_bytes(gzip.compress(data) if seed % 7 == 0 else data)
    (folder / "gold.jsonl").write_bytes(hostile.lines("gold"))
    monkeypatch.setattr(native, "PIECE", (1 << 21, 100, 333)[seed % 3])
    monkeypatch.setattr(source, "BLOCK", (1 << 21, 333, 100)[seed % 3])
    files = folder / "run.jsonl", folder / "gold.jsonl"
    return compare_both(*files, "findwell", monkeypatch)[0][0] == "read"


def test_hostile_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(compare_objects(seed, monkeypatch) for seed in range(16)) > 4


def test_hostile_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(compare_files(seed, tmp_path, monkeypatch) for seed in range(12)) > 3


@pytest.mark.slow
def test_many_hostile_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(12, 440):
        compare_objects(seed, monkeypatch)
        compare_files(seed, tmp_path, monkeypatch)


def rows_of(run: Any) -> pl.DataFrame:
    pairs = [(query, doc, score) for query, docs in run.items() for doc, score in docs.items()]
    return pl.DataFrame(pairs, ["query", "doc", "score"], orient="row")


def test_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that memory holds: sorted or scattered, with a document twice, a NaN, or a blank id."""
    chance = random.Random(7)
    run = {
        f"q{n}": {f"d{chance.randrange(60)}": chance.random() for _ in range(30)} for n in range(40)
    }
    gold = {f"q{n}": {f"d{doc}": doc % 3 for doc in range(0, 60, 4)} for n in range(3, 43)}
    rows = rows_of(run)
    monkeypatch.setattr("findwell.engines.local.CACHED_ROWS", 100)
    for frame in (
        rows,
        rows.sample(fraction=1, shuffle=True, seed=3),
        pl.concat([rows, rows[5:7]]).sort("query", maintain_order=True),
        rows.with_columns(
            score=pl.when(pl.int_range(pl.len()) == 250).then(float("nan")).otherwise("score")
        ),
        rows.with_columns(score=pl.lit(1.0)),
    ):
        compare_both(frame, gold, "findwell", monkeypatch)
        compare_both(frame.to_pandas(), gold, "trec_eval", monkeypatch)


def test_plain_input_is_read_by_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties, empty lists, missing and extra queries need no code in Python, in many pieces."""
    monkeypatch.setattr(native, "PIECE", 1 << 16)
    scored = {f"q{n}": {f"d{n * at % 97}": at % 7 for at in range(n % 40)} for n in range(1400)}
    listed = {query: list(docs) for query, docs in scored.items()}
    gold = {f"q{n}": {f"d{at}": at % 4 for at in range(n % 30)} for n in range(5, 1405)}
    labels = {query: [doc for doc, grade in docs.items() if grade] for query, docs in gold.items()}
    for name, field, lists in (("run", "retrieved", listed), ("gold", "gold", labels)):
        lines = (json.dumps({"query": query, field: docs}) for query, docs in lists.items())
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    files = tmp_path / "run.jsonl", tmp_path / "gold.jsonl"
    inputs: list[tuple[Any, Any]] = [(scored, gold), (listed, labels), files]
    expected = [compare_both(run, labelled, "findwell", monkeypatch) for run, labelled in inputs]
    assert all(part[0] == "read" for parts in expected for part in parts)
    monkeypatch.setattr(in_memory, "run_from_objects", None)
    monkeypatch.setattr(in_memory, "gold_from_objects", None)
    monkeypatch.setattr(json_lines, "_stream", None)
    monkeypatch.setattr(json_lines, "_collect", None)
    for run, labelled in inputs:
        assert (findwell.evaluate(run, labelled, ["AP"])["AP"] or 0) > 0


def test_what_is_packed_does_not_change_with_the_objects() -> None:
    run = {"q": {"d1": 2.0, "d2": 1.0}}
    read = load_run(run)
    run["q"].clear()
    assert read.collect().rows["doc"].to_list() == ["d1", "d2"]


def test_references_are_given_back() -> None:
    """Whether an input is packed or declined, its ids and numbers are referred to as before."""
    native_kernel = kernel()
    assert native_kernel is not None
    doc, score = "a-document" * int(random.random() + 2), 1.5 + random.random()
    before = sys.getrefcount(doc), sys.getrefcount(score)
    plain: dict[str, Any] = {f"q{n}": {doc: score} for n in range(100)}
    declined = {**plain, "last": {doc: None}}
    lists = {f"q{n}": [doc] for n in range(100)}
    for _ in range(50):
        native_kernel.pack(plain, False, False)
        assert native_kernel.pack(declined, False, True) is None
        native_kernel.pack(lists, True, True)
    del plain, declined, lists
    assert (sys.getrefcount(doc), sys.getrefcount(score)) == before

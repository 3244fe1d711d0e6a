"""JSON lines read in bulk and one by one: the same run, the same gold, the same columns."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from findwell.core.errors import InputError
from findwell.io.read import format as source
from findwell.io.read import load_gold, load_run, load_samples
from tests.sample import jsonl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from findwell.core.data import Gold
    from tests.conftest import Save

RETRIEVED: dict[str, Callable[[list[str]], list[Any]]] = {
    "ids": list,
    "numbers": lambda docs: [hash(doc) % 1000 for doc in docs],
    "objects": lambda docs: [{"doc": doc} for doc in docs],
    "scored": lambda docs: [{"doc": doc, "score": n / 7} for n, doc in enumerate(docs)],
    "whole scores": lambda docs: [{"score": n, "doc": doc} for n, doc in enumerate(docs)],
    "texts": lambda docs: [{"doc": d, "text": f'about "{d}": é\n', "score": 1.5} for d in docs],
    "spans": lambda docs: [{"doc": d, "start": n, "end": n + 2} for n, d in enumerate(docs)],
    "half spans": lambda docs: [{"doc": d, "text": "1.5", "start": 0, "end": 1} for d in docs],
    "ids under id": lambda docs: [{"id": doc} for doc in docs],
    "some scored": lambda docs: [{"doc": d} | ({"score": 1} if d > "d5" else {}) for d in docs],
    "mixed": lambda docs: [{"doc": d} if d > "d5" else d for d in docs],
}
GOLD: dict[str, Callable[[list[str]], Any]] = {
    "ids": list,
    "groups": lambda docs: [docs[:1], docs[1:3], docs[:2]],
    "graded groups": lambda docs: [{"docs": docs[:2], "grade": 2}, {"docs": docs[2:3], "grade": 0}],
    "graded": lambda docs: [{"doc": doc, "grade": n / 2} for n, doc in enumerate(docs)],
    "ungraded": lambda docs: [{"docs": docs}],
    "texts": lambda docs: [{"doc": d, "text": f"[{d}] é"} for d in docs],
    "quotes": lambda docs: [{"docs": docs[:1], "quote": "so", "start": 3, "end": 5}],
    "mapping": lambda docs: dict.fromkeys(docs, 1),
    "one": lambda docs: docs[0],
    "mixed": lambda docs: [docs[0], docs[1:]],
    "some graded": lambda docs: [{"docs": docs[:1]}, {"docs": docs[1:], "grade": 3}],
}
ABOUT: dict[str, Callable[[int], dict[str, Any]]] = {
    "nothing": lambda _: {},
    "a text": lambda n: {"topic": f"t{n % 3}", "question": f"why {n}?", "reference": "so"},
    "quotes": lambda n: {"note": f'say "no": {{"query": {n}}}', "other": "\\"},
    "numbers": lambda n: {"hops": n % 3, "cost": n / 3, "hard": n % 2 == 0},
    "sometimes": lambda n: {"late": n} if n > 20 else {},
    "null": lambda n: {"topic": None, "level": n if n % 2 else None},
    "lists": lambda n: {"tags": [f"a{n}", "b"], "empty": []},
    "objects": lambda n: {"meta": {"source": f"s{n}"}, "deep": [{"x": n}]},
    "several types": lambda n: {"level": n if n % 2 else f"l{n}"},
    "emoji": lambda n: {"mood": "😀" if n % 2 else "é"},
}


def _records(retrieved: str, gold: str, about: str, count: int = 40) -> list[dict[str, Any]]:
    random.seed(7)
    records = []
    for number in range(count):
        docs = [f"d{random.randrange(10)}" for _ in range(4)]
        records.append(
            {
                "query": f"q{number}",
                "retrieved": RETRIEVED[retrieved](docs if number % 5 else []),
                "gold": GOLD[gold](docs) if number % 7 else [],
                **ABOUT[about](number),
            }
        )
    return records


def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findwell.io.read.json.frame_of", lambda *_: None)


def _golds_equal(one: Gold, other: Gold) -> None:
    assert_frame_equal(one.queries, other.queries, check_dtypes=False)
    assert one.item_offset.tolist() == other.item_offset.tolist()
    assert one.item_grade.tolist() == other.item_grade.tolist()
    assert one.member_item.tolist() == other.member_item.tolist()
    assert one.member_doc.to_list() == other.member_doc.to_list()
    assert (one.member_facts is None) == (other.member_facts is None)
    if one.member_facts is not None and other.member_facts is not None:
        assert_frame_equal(one.member_facts, other.member_facts)
    assert one.findings == other.findings
    assert one.flaws == other.flaws


CASES = [
    *((retrieved, "ids", "nothing") for retrieved in RETRIEVED),
    *(("ids", gold, "a text") for gold in GOLD),
    *(("scored", "groups", about) for about in ABOUT),
]


# block, whether only ASCII, with texts or not; the first two take turns in the quick tests
WAYS = [(1_500, False, True), (1 << 20, True, False), (1_500, False, False), (1 << 20, True, True)]


@pytest.mark.parametrize(
    ("case", "block", "ascii_only", "texts"),
    [
        pytest.param(
            *(case, *way),
            marks=() if way == WAYS[at % 2] else pytest.mark.slow,
            id="-".join((*case, *map(str, way))),
        )
        for way in WAYS
        for at, case in enumerate(CASES)
    ],
)
def test_both_ways_read_the_same(
    case: tuple[str, str, str],
    *,
    ascii_only: bool,
    texts: bool,
    block: int,
    save: Save,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = _records(*case)
    text = "\n".join(json.dumps(record, ensure_ascii=ascii_only) for record in records)
    path = save("s.jsonl", text)
    monkeypatch.setattr(source, "BLOCK", block)

    def read() -> tuple[pl.DataFrame, Gold, pl.DataFrame, Gold]:
        samples = load_samples(path, texts=texts)
        run = load_run(path, texts=texts).collect()
        return samples.run.collect().rows, samples.gold, run.rows, load_gold(path, texts=texts)

    fast = read()
    _slow(monkeypatch)
    slow = read()
    assert_frame_equal(fast[0], slow[0])
    assert_frame_equal(fast[2], slow[2])
    _golds_equal(fast[1], slow[1])
    _golds_equal(fast[3], slow[3])


ALIKE = [("ids", "ids"), ("scored", "graded groups"), ("objects", "groups"), ("texts", "graded")]


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize(("retrieved", "gold"), ALIKE)
@pytest.mark.parametrize("about", ["nothing", "a text", "numbers", "sometimes", "lists"])
def test_records_that_are_alike_are_read_in_bulk(
    retrieved: str,
    gold: str,
    about: str,
    *,
    texts: bool,
    save: Save,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("findwell.io.read.json.read_part", refuse)
    path = save("s.jsonl", jsonl(_records(retrieved, gold, about)))
    assert load_samples(path, texts=texts).gold.queries.height == 40


ODD: dict[str, str] = {
    "what describes it twice": '{"query":"b","retrieved":[],"gold":["x"],"by":"s","by":"t"}',
    "an id under two names": '{"query": "b", "retrieved": [{"doc":"x","id":"y"}], "gold": ["x"]}',
    "a number among ids": '{"query": "b", "retrieved": ["x", 7], "gold": ["x"]}',
    "a query that is a number": '{"query": 7, "retrieved": ["x"], "gold": ["x"]}',
    "nothing retrieved": '{"query": "b", "retrieved": null, "gold": ["x"]}',
    "nothing gold": '{"query": "b", "retrieved": [], "gold": null}',
    "a blank line": "  ",
    "a carriage return": '{"query": "b", "retrieved": ["x"], "gold": ["x"]}\r',
    "spaces": '  {  "query" : "b" , "retrieved":["x"],"gold" : [ "x" ] }  ',
    "escapes": '{"query": "b\\u00e9", "retrieved": ["\\ud83d\\ude00"], "gold": ["\\/x"]}',
    "a blank id": '{"query": "b", "retrieved": [""], "gold": ["x", " "]}',
    "an empty group": '{"query": "b", "retrieved": ["x"], "gold": [[]]}',
    "ids like truths": '{"query": "true", "retrieved": ["false", "1.5", "[x]"], "gold": ["-0"]}',
    "another field": '{"query": "b", "retrieved": ["x"], "gold": ["x"], "late": 1}',
}


@pytest.mark.parametrize("case", ODD)
def test_odd_lines_are_read_alike(case: str, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [{"query": f"a{n}", "retrieved": ["x", "y"], "gold": ["x"]} for n in range(200)]
    path = save("s.jsonl", jsonl(plain) + ODD[case] + "\n")
    fast = load_samples(path)
    _slow(monkeypatch)
    slow = load_samples(path)
    assert_frame_equal(fast.run.collect().rows, slow.run.collect().rows)
    _golds_equal(fast.gold, slow.gold)


WRONG: dict[str, str] = {
    "a field twice": '{"query": "b", "retrieved": ["x"], "retrieved": ["y"], "gold": ["x"]}',
    "the query twice": '{"query": "b", "query": "c", "retrieved": ["x"], "gold": ["x"]}',
    "an id twice": '{"query": "b", "retrieved": [{"doc": "x", "doc": "y"}], "gold": ["x"]}',
    "a grade twice": '{"query": "b", "retrieved": [], "gold": [{"doc":"x","grade":1,"grade":0}]}',
    "a document graded twice": '{"query": "b", "retrieved": [], "gold": {"x": 1, "x": 0}}',
    "a float among ids": '{"query": "b", "retrieved": ["x", 1.5], "gold": ["x"]}',
    "a truth among ids": '{"query": "b", "retrieved": ["x", true], "gold": ["x"]}',
    "a null among ids": '{"query": "b", "retrieved": ["x", null], "gold": ["x"]}',
    "an id that is a float": '{"query": 1.5, "retrieved": ["x"], "gold": ["x"]}',
    "no id": '{"query": null, "retrieved": ["x"], "gold": ["x"]}',
    "a list among ids": '{"query": "b", "retrieved": ["x", ["y"]], "gold": ["x"]}',
    "a list too deep": '{"query": "b", "retrieved": ["x"], "gold": [[["x"]]]}',
    "no score": '{"query": "b", "retrieved": [{"doc": "x", "score": "high"}], "gold": []}',
    "no grade": '{"query": "b", "retrieved": [], "gold": [{"doc": "x", "grade": null}]}',
    "broken": '{"query": "b", "retrieved": ["x"',
    "no object": "[1]",
    "two objects": '{"query": "b", "retrieved": [], "gold": []} {}',
    "twice": '{"query": "a3", "retrieved": ["x"], "gold": ["x"]}',
    "half a pair": '{"query": "b", "retrieved": ["\\ud800"], "gold": ["x"]}',
    "no gold": '{"query": "b", "retrieved": ["x"]}',
}


@pytest.mark.parametrize("block", [300, 1 << 20])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_lines_are_refused_alike(
    case: str, block: int, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = [{"query": f"a{n}", "retrieved": ["x", "y"], "gold": ["x"]} for n in range(40)]
    path = save("s.jsonl", jsonl(plain) + WRONG[case] + "\n")
    monkeypatch.setattr(source, "BLOCK", block)
    with pytest.raises(InputError, match=r"s\.jsonl") as fast:
        load_samples(path)
    skipped = load_samples(path, skip_bad=True)
    assert skipped.gold.queries.height == 40
    assert [finding.kind for finding in skipped.gold.findings] == ["skipped-record"]
    assert "line 41" in skipped.gold.findings[0].examples[0]
    _slow(monkeypatch)
    with pytest.raises(InputError) as slow:
        load_samples(path)
    assert fast.value.what == slow.value.what


def test_numbers_go_on_across_blocks(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{"retrieved": ["x"], "gold": ["x"]} for _ in range(100)]
    monkeypatch.setattr(source, "BLOCK", 300)
    samples = load_samples(save("s.jsonl", jsonl(records)))
    assert samples.gold.queries["query"].to_list() == [str(n) for n in range(1, 101)]


@pytest.mark.slow
def test_a_large_file_costs_little_more_than_parsing(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    random.seed(1)
    with path.open("w") as file:
        for number in range(100_000):
            docs = [f"doc-{random.randrange(10**7):07}" for _ in range(20)]
            record = {
                "query": f"q{number}",
                "question": f"what is the meaning of thing number {number} in the manual?",
                "retrieved": [{"doc": doc, "score": 1 / (n + 1)} for n, doc in enumerate(docs)],
                "gold": [docs[:1], docs[3:5]],
            }
            file.write(json.dumps(record) + "\n")
    parse, load = (
        min(_seconds(function, path) for _ in range(3))
        for function in (pl.read_ndjson, load_samples)
    )
    assert load < 3 * parse  # 2 on a quiet machine


def _seconds(function: Callable[[Path], object], path: Path) -> float:
    start = time.perf_counter()
    function(path)
    return time.perf_counter() - start

"""Runs that share no documents, or few: refused, or reported."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import AlignError
from findwell.loop.tuning import Pool, convex_combination, fuse, tune_weight
from findwell.loop.tuning.pool import FEWEST_PLACES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

QUERIES = [f"q{number}" for number in range(30)]
GOLD = {query: [f"d{number}"] for number, query in enumerate(QUERIES)}
ENGINE = "elasticsearch-rrf"


def lists(rename: Any = str, shift: int = 0, size: int = 5) -> dict[str, list[str]]:
    """Return a run whose lists hold neighbouring documents, under other names."""
    return {
        query: [rename(f"d{number + shift + place}") for place in range(size)]
        for number, query in enumerate(QUERIES)
    }


def hashed(doc: str) -> str:
    return hashlib.sha256(doc.encode()).hexdigest()[:16]


def as_uuid(doc: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, doc))


class Document:
    """What LangChain returns; without an id findwell makes one from the text."""

    def __init__(self, text: str, id: str | None = None) -> None:  # noqa: A002
        self.page_content, self.metadata, self.id = text, dict[str, str](), id


def test_hashes_against_uuids_are_refused_and_explained() -> None:
    with pytest.raises(AlignError) as refused:
        findwell.tuning.fuse([lists(hashed), lists(as_uuid)], ENGINE)
    said = str(refused.value)
    assert "share no document (0 of 150 possible documents, over 30 queries" in said
    assert f"{hashed('d0')!r}" in said
    assert f"{as_uuid('d0')!r}" in said
    assert "--read id_from (id_from=)" in said
    assert "--disjoint (disjoint=True)" in said


def test_tune_refuses_too_with_runs_records_and_retrievers() -> None:
    runs = [lists(hashed), lists(as_uuid)]
    with pytest.raises(AlignError, match="share no document"):
        findwell.tuning.tune(runs, GOLD, "RR", engine=ENGINE)
    with pytest.raises(AlignError, match="share no document"):
        findwell.tuning.tune(runs, GOLD, "RR", space={"knobs": {"engine": [ENGINE, "qdrant-rrf"]}})
    with pytest.raises(AlignError, match="share no document"):
        tune_weight([_scored(run) for run in runs], GOLD, "RR")
    with pytest.raises(AlignError, match="share no document"):
        convex_combination([_scored(run) for run in runs], [0.5, 0.5])
    by_text = {query: [Document(f"text {doc}") for doc in docs] for query, docs in lists().items()}
    by_id = {
        query: [Document(f"text {doc}", as_uuid(doc)) for doc in docs]
        for query, docs in lists().items()
    }
    gold = [{"query": query, "question": query, "gold": docs} for query, docs in GOLD.items()]
    retrievers: Any = {"bm25": by_text.__getitem__, "dense": by_id.__getitem__}
    with pytest.raises(AlignError, match="the ids of bm25 were made from texts") as refused:
        findwell.tuning.tune(retrievers, gold, "RR", engine=ENGINE)
    assert refused.value.where == "run bm25 and run dense"


def _scored(run: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    return {
        query: {doc: 1 / (2 + at) for at, doc in enumerate(docs)} for query, docs in run.items()
    }


def test_the_command_names_both_files(cli: Findwell, tmp_path: Path) -> None:
    files = []
    for name, rename in (("bm25", hashed), ("dense", as_uuid)):
        records = [{"query": query, "retrieved": docs} for query, docs in lists(rename).items()]
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text("".join(json.dumps(each) + "\n" for each in records))
    gold = tmp_path / "gold.json"
    gold.write_text(json.dumps(GOLD))
    output = tmp_path / "fused.jsonl"
    for command in (["fuse"], ["tune", "--gold", gold]):
        done = cli(command[0], *files, *command[1:], "--engine", ENGINE, "-o", output)
        assert done.code == 2
        assert f"{files[0]} and {files[1]}: the runs share no document" in done.err
        assert not output.exists()
    assert cli("fuse", *files, "--engine", ENGINE, "--disjoint", "-o", output).code == 0


def test_different_collections_are_fused_when_that_is_meant() -> None:
    runs = [lists(), lists("faq-{}".format)]
    with pytest.raises(AlignError, match="what stands before the number"):
        fuse(runs, ENGINE)
    fused = fuse(runs, ENGINE, disjoint=True)
    assert fused.rows.height == 2 * 5 * len(QUERIES)
    assert not fused.findings
    gold = {query: [*docs, f"faq-{docs[0]}"] for query, docs in GOLD.items()}
    assert findwell.tuning.tune(
        runs, gold, "RR", engine="qdrant-rrf", disjoint=True
    ).choice.n == len(QUERIES)


def test_runs_may_meet_through_a_third() -> None:
    first, last = lists(shift=0), lists(shift=5)
    between = lists(shift=3)
    with pytest.raises(AlignError, match="share no document"):
        fuse([first, last], ENGINE)
    found = fuse([first, last, between], ENGINE)
    assert [each.kind for each in found.findings] == ["few-shared-documents"]
    with pytest.raises(AlignError, match="share no document"):
        fuse([first, between, lists(as_uuid), lists(as_uuid, shift=1)], ENGINE)


def test_few_shared_documents_are_a_finding_with_counts() -> None:
    run, other = lists(), lists(as_uuid)
    for query in QUERIES[:2]:
        other[query] = run[query]
    (found,) = fuse([run, other], ENGINE).findings
    assert (found.kind, found.count) == ("few-shared-documents", 28)
    assert "they share 10 of 150 possible documents, over 30 queries" in found.message
    tuned = findwell.tuning.tune([run, other], GOLD, "RR", engine=ENGINE)
    assert "few-shared-documents" in [each.kind for each in tuned.findings]
    other[QUERIES[1]] = [as_uuid(doc) for doc in run[QUERIES[1]]]
    other[QUERIES[0]] = [run[QUERIES[0]][0], *map(as_uuid, run[QUERIES[0]][1:])]
    with pytest.raises(AlignError, match="share almost no document"):
        fuse([run, other], ENGINE)


def test_usual_overlap_and_too_little_evidence_are_fine() -> None:
    assert not Pool.of([lists(), lists(shift=3)]).findings  # two of five
    few = {query: [as_uuid(query)] for query in QUERIES[: FEWEST_PLACES - 1]}
    some = {query: docs[:1] for query, docs in lists().items()}
    (found,) = fuse([some, few], ENGINE).findings  # 30 possible documents
    assert found.kind == "few-shared-documents"
    assert not fuse([{"q": ["a", "b"]}, {"q": ["c"]}], ENGINE).findings


def test_a_fused_run_keeps_texts_and_places(cli: Findwell, tmp_path: Path) -> None:
    entry = {"doc": "a:0", "text": "Alpha.", "source": "a", "start": 0, "end": 6}
    more = {"doc": "b:7", "text": "Beta.", "source": "b", "start": 7, "end": 12}
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    one.write_text(json.dumps({"query": "q", "retrieved": [entry, {"doc": "c"}]}) + "\n")
    other.write_text(
        json.dumps({"query": "q", "retrieved": [more, {"doc": "a:0"}]})
        + "\n"
        + json.dumps({"query": "nothing", "retrieved": []})
        + "\n"
    )
    output = tmp_path / "fused.jsonl"
    assert cli("fuse", one, other, "--engine", ENGINE, "-o", output).code == 0
    first, second = (json.loads(line) for line in output.read_text().splitlines())
    kept = {each.pop("doc"): each for each in first["retrieved"]}
    assert {name: kept["a:0"][name] for name in entry if name != "doc"} == {
        name: value for name, value in entry.items() if name != "doc"
    }
    assert kept["b:7"]["start"] == 7
    assert set(kept["c"]) == {"score"}
    assert second["retrieved"] == []
    gold = [{"query": "q", "gold": [{"doc": "b", "start": 7, "end": 12}]}]
    fused = findwell.tuning.fuse([one, other], ENGINE)
    assert findwell.evaluate(fused, gold, "recall@3", by="spans")["recall@3"] == 1.0

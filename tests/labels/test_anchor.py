"""Labels find their characters, and find them again when documents and chunks change."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import FindwellError, InputError, OptionError
from findwell.loop.labels.anchor import Anchored, anchor, drift
from tests.strategies import examples

if TYPE_CHECKING:
    from findwell.core.findings import Finding

SPANS = Path(__file__).parents[2] / "../shared/data/spans"
DOCS = {
    "guide": "Charge it first. It takes four hours. Then press the red button. Wait.",
    "faq": "Why red? Because. Where? On the left. Why so? Because.",
}
CHUNKS = {
    "g1": "Charge it first. It takes four hours.",
    "g2": "Then press the  red button.",
    "f1": "Because.",
    "f2": "Where? On the left side.",
    "x": "A text that is nowhere in the documents at all.",
}


def places(anchored: Anchored) -> list[tuple[Any, ...]]:
    return anchored.labels.select("id", "doc", "start", "end", "status").rows()


def finding(anchored: Anchored, kind: str) -> Finding:
    return next(each for each in anchored.findings if each.kind == kind)


def test_every_status() -> None:
    gold = [
        {"query": "q1", "question": "how?", "gold": ["g1", ["g2", "gone"]]},
        {"query": "q2", "gold": [{"doc": "f1", "grade": 2}, "f2"]},
        {"query": "q3", "gold": ["x"]},
        {"query": "q4", "gold": []},
    ]
    anchored = anchor(gold, DOCS, chunks=CHUNKS, min_score=0.8)
    assert places(anchored) == [
        ("g1", "guide", 0, 37, "exact"),
        ("g2", "guide", 38, 64, "normalised"),
        ("gone", None, None, None, "lost"),
        ("f1", None, None, None, "ambiguous"),
        ("f2", "faq", 18, 37, "fuzzy"),
        ("x", None, None, None, "lost"),
    ]
    for doc, start, end, quote in anchored.labels.select("doc", "start", "end", "quote").rows():
        assert doc is None or DOCS[doc][start:end] == quote
    assert [(each.kind, each.count) for each in anchored.findings] == [
        ("lost-label", 2),
        ("ambiguous-label", 1),
        ("fuzzy-label", 1),
        ("query-left-empty", 1),
    ]
    assert finding(anchored, "lost-label").examples == (
        "q1: gone (unknown id)",
        "q3: A text that is nowhere in the documents… (no such text)",
    )
    assert finding(anchored, "ambiguous-label").examples == ("q2: Because. (faq 9–17, faq 46–54)",)
    assert finding(anchored, "query-left-empty").examples == ("q3",)
    assert repr(anchored) == "Anchored(2 lost, 1 ambiguous, 1 exact, 1 fuzzy, 1 normalised)"


def test_records() -> None:
    gold = [
        {"query": "q1", "question": "how?", "gold": ["g1", ["g2", "f2"], {"doc": "x", "grade": 3}]},
        {"query": "q2", "gold": [{"doc": "g2", "grade": 0.5}]},
        {"query": "q3", "gold": ["x"]},
    ]
    g1 = {"doc": "guide", "start": 0, "end": 37, "quote": DOCS["guide"][:37], "grade": 1}
    g2 = {"doc": "guide", "start": 38, "end": 64, "quote": DOCS["guide"][38:64], "grade": 1}
    f2 = {"doc": "faq", "start": 18, "end": 37, "quote": "Where? On the left.", "grade": 1}
    anchored = anchor(gold, DOCS, chunks=CHUNKS, min_score=0.8)
    assert list(anchored.records()) == [
        {"query": "q1", "question": "how?", "gold": [g1, [g2, f2]]},
        {"query": "q2", "gold": [g2 | {"grade": 0.5}]},
        {"query": "q3", "gold": []},
    ]
    assert [json.loads(line) for line in anchored.jsonl().splitlines()] == list(anchored.records())


@pytest.mark.parametrize(
    ("ambiguous", "entries"), [("leave", []), ("first", [(9, 17)]), ("all", [(9, 17), (46, 54)])]
)
def test_ambiguous(ambiguous: str, entries: list[tuple[int, int]]) -> None:
    anchored = anchor({"q": ["f1"]}, DOCS, chunks=CHUNKS, ambiguous=ambiguous)
    (record,) = anchored.records()
    items = record["gold"]
    assert len(items) == min(1, len(entries))  # the places are alternatives, not items
    spans = [each for item in items for each in (item if isinstance(item, list) else [item])]
    assert [(span["start"], span["end"]) for span in spans] == entries
    assert finding(anchored, "ambiguous-label").count == 1


def test_offsets_of_chunks_count() -> None:
    chunks = [{"id": "f1", "text": "Because.", "source": "faq", "start": 46, "end": 54}]
    anchored = anchor({"q": ["f1"]}, DOCS, chunks=chunks)
    assert places(anchored) == [("f1", "faq", 46, 54, "exact")]
    assert not anchored.findings
    assert places(anchor({"q": ["f1"]}, DOCS, chunks=[chunks[0] | {"text": None}])) == places(
        anchored
    )


@pytest.mark.parametrize(
    ("change", "note"),
    [({"start": 0, "end": 8}, "not at 0–8"), ({"source": "old/guide"}, "not in old/guide")],
)
def test_offsets_that_lead_elsewhere_are_told(change: dict[str, Any], note: str) -> None:
    chunk = {"id": "c", "text": "Wait.", "source": "guide", "start": 65, "end": 70}
    anchored = anchor({"q": ["c"]}, DOCS, chunks=[chunk | change])
    assert places(anchored) == [("c", "guide", 65, 70, "exact")]
    assert finding(anchored, "other-place").examples == (f"q: Wait. ({note})",)


def test_without_chunks() -> None:
    """Quotes are looked for, texts that serve as ids too, and any other id is a document."""
    gold = [{"query": "q", "gold": [{"quote": "red button"}, {"doc": "faq", "quote": "Why so?"}]}]
    assert [row[1:] for row in places(anchor(gold, DOCS))] == [
        ("guide", 53, 63, "exact"),
        ("faq", 38, 45, "exact"),
    ]
    texts = [{"user_input": "?", "reference_contexts": ["It takes four hours."]}]
    anchored = anchor(texts, DOCS)
    assert [row[1:] for row in places(anchored)] == [("guide", 17, 37, "exact")]
    assert not anchored.findings
    assert places(anchor({"q": {"faq": 1, "who": 1}}, DOCS)) == [
        ("faq", "faq", 0, 54, "exact"),
        ("who", None, None, None, "lost"),
    ]
    spans = [{"query": "q", "gold": [{"doc": "guide", "start": 65, "end": 70}]}]
    assert anchor(spans, DOCS).labels["quote"].to_list() == ["Wait."]


def test_nothing_to_anchor() -> None:
    anchored = anchor([{"query": "q", "gold": []}], DOCS, chunks=CHUNKS)
    assert repr(anchored) == "Anchored(no labels)"
    assert list(anchored.records()) == [{"query": "q", "gold": []}]


def test_what_a_user_may_get_wrong(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="unknown choice for ambiguous labels 'frist'"):
        anchor({"q": ["g1"]}, DOCS, chunks=CHUNKS, ambiguous="frist")
    with pytest.raises(OptionError, match="minimum score"):
        anchor({"q": ["x"]}, DOCS, chunks=CHUNKS, min_score=2)
    with pytest.raises(InputError, match="no such file"):
        anchor({"q": ["g1"]}, tmp_path / "none", chunks=CHUNKS)
    with pytest.raises(InputError, match="has no quote to look for"):
        drift([{"query": "q", "gold": [{"doc": "faq", "start": 0, "end": 3}]}], DOCS)
    with pytest.raises(InputError, match="has no quote to look for"):
        drift({"q": ["faq"]}, DOCS)
    with pytest.raises(FindwellError, match="could not be written"):
        anchor({"q": ["g1"]}, DOCS, chunks=CHUNKS).write(tmp_path / "none" / "gold.jsonl")


def spans_gold(*quotes: str) -> Anchored:
    return anchor([{"query": "q", "gold": [{"quote": quote} for quote in quotes]}], DOCS)


def fate(drifted: Anchored) -> list[tuple[Any, ...]]:
    return drifted.labels.select("status", "doc", "start", "end").rows()


def test_what_becomes_of_labels() -> None:
    gold = spans_gold("Charge it first.", "It takes four hours.", "Wait.", "On the left.")
    assert {row[0] for row in fate(drift(gold, DOCS))} == {"kept"}
    new = {"guide": "Charge it first! It needs four hours. Wait. Or wait. Wait.", "faq": "Why?"}
    drifted = drift(gold, new, min_score=0.8)
    assert fate(drifted) == [
        ("edited", "guide", 0, 15),
        ("edited", "guide", 17, 37),
        ("ambiguous", None, None, None),
        ("lost", None, None, None),
    ]
    old = drifted.labels.select("old_doc", "old_start", "old_end").rows()
    assert old == [("guide", 0, 16), ("guide", 17, 37), ("guide", 65, 70), ("faq", 25, 37)]
    assert [(each.kind, each.count) for each in drifted.findings] == [
        ("lost-label", 1),
        ("ambiguous-label", 1),
        ("edited-label", 2),
    ]
    assert drifted.labels["note"].to_list()[-1] == "no such text"
    again = drift(drifted, new)
    assert [row[0] for row in fate(again)] == ["kept", "kept"]


def test_a_document_that_is_gone() -> None:
    gold = spans_gold("It takes four hours.", "On the left.")
    drifted = drift(gold, {"manual": DOCS["guide"]})
    assert fate(drifted) == [("moved", "manual", 17, 37), ("lost", None, None, None)]
    assert drifted.labels["note"].to_list() == ["not in guide", "no such document"]
    assert finding(drifted, "lost-label").count == 1


def test_a_place_beside_others_is_kept() -> None:
    gold = anchor({"q": ["f1"]}, DOCS, chunks=CHUNKS, ambiguous="first")
    assert fate(drift(gold, DOCS)) == [("kept", "faq", 9, 17)]


def test_the_documents_before_tell_places_separate_calls() -> None:
    chunks = [{"id": "f1", "text": "Because.", "source": "faq", "start": 46, "end": 54}]
    gold = anchor({"q": ["f1"]}, DOCS, chunks=chunks)
    new = DOCS | {"faq": "News! " + DOCS["faq"]}
    assert fate(drift(gold, new)) == [("ambiguous", None, None, None)]
    told = drift(gold, new, before=DOCS)
    assert fate(told) == [("moved", "faq", 52, 60)]
    assert told.labels["note"].to_list() == ["distinguished by the text around it"]
    twice = {"faq": DOCS["faq"] + "\n" + DOCS["faq"]}
    moved = {"faq": "x" + twice["faq"]}
    assert fate(drift(gold, moved, before=DOCS)) == [("ambiguous", None, None, None)]
    other = {"faq": "something else"}  # the gold was not made for these
    assert fate(drift(gold, new, before=other)) == [("ambiguous", None, None, None)]


def test_new_chunks() -> None:
    gold = spans_gold("Charge it first. It takes four hours.", "Wait.", "Why red?", "On the left.")
    chunks = [
        {"id": "n1", "text": "Charge it first."},
        {"id": "n2", "text": "It takes four hours."},
        {"id": "n3", "text": "then press the red button. wait."},
        {"id": "n4", "text": "On", "source": "faq", "start": 25, "end": 27},
        {"id": "n5", "text": "Not of these documents, not one word of it."},
    ]
    drifted = drift(gold, DOCS, chunks=chunks)
    told = drifted.labels.select("chunks", "cut").rows()
    assert told == [(["n1", "n2"], "split"), (["n3"], "whole"), ([], "none"), (["n4"], "partly")]
    assert drifted.labels["covered"].to_list() == pytest.approx([1, 1, 0, 3 / 12])
    assert [(each.kind, each.count) for each in drifted.findings] == [
        ("lost-chunk", 1),
        ("left-out-text", 1),
        ("none-label", 1),
        ("partly-label", 1),
        ("split-label", 1),
    ]
    assert list(drifted.records()) == list(gold.records())


def test_a_file_goes_round(tmp_path: Path) -> None:
    gold = spans_gold("Wait.", "On the left.")
    gold.write(tmp_path / "gold.jsonl")
    drifted = drift(tmp_path / "gold.jsonl", {"guide": DOCS["guide"], "faq": "O! " + DOCS["faq"]})
    assert fate(drifted) == [("kept", "guide", 65, 70), ("moved", "faq", 28, 40)]
    drifted.write(tmp_path / "new.jsonl")
    assert list(drift(tmp_path / "new.jsonl", DOCS).records()) == list(gold.records())


WORDS = st.text("abc .\n", min_size=1, max_size=30)


@examples(60)
@given(st.lists(WORDS, min_size=3, max_size=8), st.data())
def test_edits_elsewhere_keep_the_characters(parts: list[str], data: st.DataObject) -> None:
    """Whatever is inserted or deleted around a label, its new place holds the same characters."""
    number = data.draw(st.integers(0, len(parts) - 1))
    label = f"<label {number} of them>"
    parts = [*parts[:number], label, *parts[number + 1 :]]
    gold = anchor([{"query": "q", "gold": [{"quote": label}]}], {"d": "".join(parts)})
    others = [
        part if part is label else data.draw(st.one_of(st.just(part), WORDS, st.just("")))
        for part in parts
    ]
    new = "".join(others)
    (row,) = drift(gold, {"d": new}).labels.iter_rows(named=True)
    assert new[row["start"] : row["end"]] == label == row["quote"]
    same = row["start"] == row["old_start"]
    assert row["status"] == ("kept" if same else "moved")


@pytest.fixture(scope="module")
def published() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The questions as records with spans, and the documents."""
    if not SPANS.is_dir():
        pytest.skip("the data of the spans is not there")
    docs = {path.stem: path.read_text("utf-8") for path in (SPANS / "corpora").glob("*.md")}
    records = []
    with (SPANS / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            entries = [
                {"doc": row["corpus_id"], "start": entry["start_index"], "end": entry["end_index"]}
                for entry in json.loads(row["references"])
            ]
            records.append({"query": str(number), "question": row["question"], "gold": entries})
    return records, docs


def test_published_spans_survive_edits(published: Any) -> None:
    """472 questions: paragraphs go and come, and what is left of the labels is found again."""
    records, docs = published
    gold = anchor(records, docs)
    assert (gold.queries.height, gold.labels.height) == (472, 790)
    assert gold.summary().rows() == [("exact", 790)]
    rnd = random.Random(3)
    new = {}
    for doc, text in docs.items():
        parts = text.split("\n")
        kept = [part for part in parts if len(part) < 40 or rnd.random() < 0.98]
        kept[rnd.randrange(len(kept))] += "\nA new paragraph, which says nothing of interest."
        new[doc] = "\n".join(kept)
    drifted = drift(gold, new, before=docs)
    for doc, start, end, quote, status, old in zip(
        *drifted.labels.select("doc", "start", "end", "quote", "status"),
        gold.labels["quote"],
        strict=True,
    ):
        if status in ("kept", "moved"):
            assert new[doc][start:end] == quote == old
        if status == "lost":
            assert old not in new[drifted_doc(gold, old)]
    counts = dict(drifted.summary().rows())
    assert counts.get("kept", 0) + counts.get("moved", 0) > 0.97 * 790
    assert "ambiguous" not in counts
    assert dict(drift(gold, new).summary().rows())["ambiguous"] > 80  # without the text around


def drifted_doc(gold: Anchored, quote: str) -> str:
    return str(gold.labels.filter(pl.col("quote") == quote)["doc"][0])


def test_published_spans_survive_a_new_chunker(published: Any) -> None:
    """From chunks of one size to chunks of another, by text alone: each label is in some chunk."""
    records, docs = published
    gold = anchor(records, docs)
    chunks = [
        {"id": f"{doc}-{start}", "text": text[start : start + 800], "source": doc}
        for doc, text in docs.items()
        for start in range(0, len(text), 400)
    ]
    drifted = drift(gold, docs, chunks=chunks)
    assert set(drifted.labels["cut"]) <= {"whole", "split"}
    short = drifted.labels.filter(pl.col("end") - pl.col("start") <= 400)
    assert set(short["cut"]) == {"whole"}  # which the overlap guarantees

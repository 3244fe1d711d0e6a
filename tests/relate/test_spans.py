"""Chunks and gold as characters of documents: labels that a new chunker does not break."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import findwell
from findwell.core.errors import InputError
from tests.sample import kinds
from tests.strategies import examples

SPANS = Path(__file__).parents[2] / "../shared/data/spans"
MANUAL = "Charge the bike before the first ride. It takes four hours. Then press the red button."
REPAIRS = "Only a dealer may open the motor. Call us first."
CORPUS = {"manual": MANUAL, "repairs": REPAIRS}


def span(doc: str, text: str) -> dict[str, Any]:
    start = CORPUS[doc].index(text)
    return {"doc": doc, "start": start, "end": start + len(text)}


stretches = st.builds(
    lambda doc, start, size: {"doc": doc, "start": start, "end": start + size},
    st.sampled_from(["d", "e"]),
    st.integers(0, 12),
    st.integers(0, 12),
)


def characters(place: dict[str, Any]) -> set[tuple[str, int]]:
    return {(place["doc"], at) for at in range(place["start"], place["end"])}


@examples(120)
@given(
    st.lists(stretches, max_size=6),
    st.lists(stretches, min_size=1, max_size=4),
    st.sampled_from([0.2, 0.5, 1.0]),
)
def test_the_share_of_characters_decides(
    chunks: list[dict[str, Any]], gold: list[dict[str, Any]], threshold: float
) -> None:
    gold = [*gold, {"doc": "d", "start": 0, "end": 4}]
    record = {"query": "q", "retrieved": chunks, "gold": gold}
    result = findwell.evaluate([record], measures="recall", by=f"spans(threshold={threshold})")
    relation = result.relation("run")
    found = {
        (rank, relation.member_doc[item])
        for rank, item in zip(relation.edge_rank.tolist(), relation.edge_item.tolist(), strict=True)
    }
    wanted = set()
    for item in gold:
        want = characters(item)
        held: set[tuple[str, int]] = set()
        for rank, chunk in enumerate(chunks, start=1):
            least = threshold * len(want) - 1e-9
            mine = characters(chunk) & want
            completes = len(held) < least <= len(held | mine)
            if mine and (len(mine) >= least or completes):
                wanted.add((rank, f"{item['doc']}[{item['start']}:{item['end']}]"))
            held |= mine
    assert found == wanted


def test_a_span_cut_in_pieces_is_found_with_the_last_of_them() -> None:
    gold = [span("manual", "It takes four hours.")]
    halves = [
        span("manual", "ride. It takes"),
        span("repairs", "dealer"),
        span("manual", "four hours. Th"),
    ]
    record = {"query": "q", "retrieved": halves, "gold": gold}
    measures = ["recall@1", "recall@2", "recall@3", "P"]
    result = findwell.evaluate([record], measures=measures, by="spans(threshold=0.9)")
    assert result.values == {"recall@1": 0, "recall@2": 0, "recall@3": 1, "P": pytest.approx(1 / 3)}


CHUNKS = {
    "with offsets": [span("manual", "It takes four hours."), span("repairs", "Call us first.")],
    "as texts": [{"text": "It takes four hours."}, {"text": "Call us first."}],
    "as quotes of a document": [
        {"doc": "manual", "text": "It takes  FOUR hours."},
        {"doc": "repairs", "text": "Call us first."},
    ],
    "as plain texts": ["It takes four hours.", "Call us first."],
    "as whole documents": ["manual", "repairs"],
}


@pytest.mark.parametrize("gold", CHUNKS)
@pytest.mark.parametrize("retrieved", CHUNKS)
def test_every_way_to_name_a_place(retrieved: str, gold: str) -> None:
    record = {"query": "q", "retrieved": CHUNKS[retrieved], "gold": CHUNKS[gold]}
    result = findwell.evaluate([record], measures=["recall", "P"], by="spans", corpus=CORPUS)
    whole_gold_only = gold == "as whole documents" and retrieved != gold
    assert result.values == ({"recall": 0, "P": 0} if whole_gold_only else {"recall": 1, "P": 1})
    assert not kinds(result)


def test_chunks_of_the_corpus_know_where_they_were_cut() -> None:
    cut = [(0, 38), (39, 59), (60, len(MANUAL))]
    chunks = [
        {"chunk_id": f"c{at}", "doc_id": "manual", "start": a, "end": z, "text": MANUAL[a:z]}
        for at, (a, z) in enumerate(cut)
    ]
    record = {"query": "q", "retrieved": ["c1", "c0"], "gold": [span("manual", "It takes four")]}
    result = findwell.evaluate([record], measures=["RR", "recall"], by="spans", corpus=chunks)
    assert result.values == {"RR": 1.0, "recall": 1.0}
    # a quote that is found in a chunk stands in the document that the chunk was cut from
    quoted = {"query": "q", "retrieved": ["c0", "c1"], "gold": [{"text": "takes four hours"}]}
    result = findwell.evaluate([quoted], measures=["RR"], by="spans", corpus=chunks)
    assert result["RR"] == 0.5
    assert result.relation("run").member_doc.to_list() == ["manual[42:58]"]


def test_nothing_is_guessed_in_silence() -> None:
    record = {
        "query": "q",
        "retrieved": [
            {"text": "the"},
            {"text": "not in any document, not even nearly"},
            {"doc": "gone"},
            {"text": "Only a dealer can open the motor."},
            span("manual", "Charge the bike"),
        ],
        "gold": [span("manual", "Charge the bike"), span("repairs", "Only a dealer may open")],
    }
    result = findwell.evaluate([record], measures="recall", by="spans", corpus=CORPUS)
    assert result["recall"] == 1.0
    assert kinds(result) == {
        "ambiguous-quote": 1,
        "lost-quote": 1,
        "fuzzy-quote": 1,
        "no-place": 1,
    }


@pytest.mark.parametrize(
    ("retrieved", "gold", "where"),
    [
        (["a", "b"], [span("manual", "Charge")], "run"),
        ([span("manual", "Charge")], ["a"], "gold"),
        (["a text"], [span("manual", "Charge")], "run"),
    ],
)
def test_without_places_there_is_a_clear_error(retrieved: Any, gold: Any, where: str) -> None:
    record = {"query": "q", "retrieved": retrieved, "gold": gold}
    with pytest.raises(InputError, match="no document has a place, for example 'a") as error:
        findwell.evaluate([record], measures="P", by="spans")
    assert error.value.where == where
    assert "corpus" in error.value.fix


def test_alternatives() -> None:
    either = [span("manual", "It takes four hours."), span("repairs", "Call us first.")]
    record = {"query": "q", "retrieved": [either[1]], "gold": [either]}
    assert findwell.evaluate([record], measures="recall", by="spans")["recall"] == 1.0


@pytest.mark.skipif(not SPANS.exists(), reason="the shared data is not here")
def test_labels_survive_a_new_chunker() -> None:
    text = (SPANS / "corpora/state_of_the_union.md").read_text(encoding="utf-8")
    with (SPANS / "questions_df.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["corpus_id"] == "state_of_the_union"]
    for size in (200, 700):  # a perfect retriever over two chunkers
        chunks = {
            f"{size}-{at}": (at, min(at + size, len(text))) for at in range(0, len(text), size)
        }
        corpus = [
            {"chunk_id": name, "doc_id": "speech", "start": a, "end": z, "text": text[a:z]}
            for name, (a, z) in chunks.items()
        ]
        records = []
        for number, row in enumerate(rows):
            gold = [
                {"doc": "speech", "start": part["start_index"], "end": part["end_index"]}
                for part in json.loads(row["references"])
            ]
            hit = [
                name
                for name, (a, z) in chunks.items()
                if any(a < part["end"] and part["start"] < z for part in gold)
            ]
            records.append({"query": f"q{number}", "retrieved": hit, "gold": gold})
        result = findwell.evaluate(
            records, measures=["recall", "P"], by="spans(threshold=1)", corpus=corpus
        )
        assert result["recall"] == 1.0
        assert (result["P"] or 0) > 0.3


def test_words_of_places_without_texts_are_missed() -> None:
    place = {"doc": "a.md", "start": 0, "end": 9}
    worded = {**place, "text": "one two 3"}
    for retrieved, gold, role in ((worded, place, "gold"), (place, worded, "run")):
        record = {"query": "q", "retrieved": [retrieved], "gold": [gold]}
        with pytest.raises(InputError, match="no document has a text") as stop:
            findwell.evaluate([record], measures="recall/span-words")
        assert role in str(stop.value.where)
        assert "--corpus" in stop.value.fix
        found = findwell.evaluate(
            [record], measures="recall/span-words", corpus={"a.md": "one two 3"}
        )
        assert found.values == {"recall/span-words": 1.0}


def test_spans_that_no_chunk_can_hold() -> None:
    golds = [(3, 3), (0, 4), (8, 30), (40, 50)]
    record = {
        "query": "q",
        "retrieved": [{"doc": "a", "start": 0, "end": 9}],
        "gold": [{"doc": "a", "start": start, "end": end} for start, end in golds],
    }
    result = findwell.evaluate([record], measures="recall", corpus={"a": "nine char"})
    assert {each.kind: each.examples for each in result.findings} == {
        "empty-span": ("q / a 3–3",),
        "span-beyond-end": ("q / a 8–30", "q / a 40–50"),
    }
    assert result["recall"] == 1 / 4  # they count as not found
    alone = findwell.evaluate([record], measures="recall", by="spans")
    assert [each.kind for each in alone.findings] == ["empty-span"]

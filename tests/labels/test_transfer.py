"""Labels go out in the formats of others and come back the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError, OptionError, SaveError

if TYPE_CHECKING:
    from pathlib import Path

RUNS = {
    "one": {"q1": ["a", "b", "c"], "q2": ["d", "e"]},
    "two": {"q1": ["c", "f"], "q2": ["d", "g"]},
}
TEXTS = {doc: f"This is the text of {doc}, “quoted”;\nwith a comma, and more." for doc in "abcdefg"}
QUESTIONS = {"q1": "What is one?", "q2": "What, then, is two?"}
# several annotators, one adjudication, a note, a selection
SAID: list[dict[str, Any]] = [
    {"query": "q1", "doc": "a", "grade": 3, "annotator": "ann", "note": 'says "it", clearly'},
    {"query": "q1", "doc": "b", "grade": 0, "annotator": "ann"},
    {"query": "q1", "doc": "a", "grade": 1, "annotator": "ben", "start": 8, "end": 16},
    {"query": "q2", "doc": "d", "grade": 2, "annotator": "ben"},
    {"query": "q2", "doc": "e", "grade": 0, "annotator": "ben"},
]
FINAL = {("q1", "a"): 2.0, ("q1", "b"): 0.0, ("q2", "d"): 2.0, ("q2", "e"): 0.0}


def new_pool(folder: Path, **how: Any) -> Path:
    findwell.labels.pool(RUNS, folder, queries=QUESTIONS, corpus=TEXTS, **how)
    return folder


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    folder = new_pool(tmp_path / "pool", purpose="values", judged={"q1": {"a": 1, "c": 1}})
    with findwell.labels.Labels.open(folder) as labels:
        for each in SAID:
            labels.set(**each)
        labels.adjudicate("q1", "a", 2, annotator="eva")
        labels.skip("q1", "c", annotator="ann")
    return folder


def grades(labels: findwell.labels.Labels) -> dict[tuple[str, str], float]:
    rows = labels.gold().rows().select("query", "doc", "grade").rows()
    return {(query, doc): grade for query, doc, grade in rows}


KEPT = [
    "query", "doc", "grade", "annotator", "time", "note", "start", "end", "planned", "stratum",
    "design", "state", "subtopic",
]  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "db"])
def test_everything_comes_back(suffix: str, pool: Path, tmp_path: Path) -> None:
    """Also who said it when, with which probability, and into a pool of another design."""
    with findwell.labels.Labels.open(pool) as labels:
        before = labels.frame().filter(pl.col("grade").is_not_null()).select(KEPT)
        file = pool
        if suffix != "db":
            file = tmp_path / f"labels.{suffix}"
            labels.export(file)
    with findwell.labels.Labels.open(new_pool(tmp_path / "other")) as labels:
        assert labels.import_labels(file) == 6
        after = labels.frame().select(KEPT)
        assert grades(labels) == FINAL
    same = pl.col("time").dt.truncate("1ms")
    assert after.with_columns(same).equals(before.with_columns(same))
    assert before["planned"].null_count() == 0
    assert before["stratum"].n_unique() == 2


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "txt"])
def test_what_is_exported_is_the_same_gold(suffix: str, pool: Path, tmp_path: Path) -> None:
    file = tmp_path / f"labels.{suffix}"
    with findwell.labels.Labels.open(pool) as labels:
        labels.export(file)
    measures = ["nDCG@3", "P@2", "recall@3", "AP"]
    expected = findwell.evaluate(RUNS["one"], pool, measures).values
    assert findwell.evaluate(RUNS["one"], file, measures).values == expected


def test_qrels(pool: Path, tmp_path: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        labels.export(tmp_path / "qrels.txt")
    assert (tmp_path / "qrels.txt").read_text() == "q1 0 a 2\nq1 0 b 0\nq2 0 d 2\nq2 0 e 0\n"


FORMATS = {  # a file, and whether grades survive
    "qrels": ("labels.txt", True),
    "beir": ("folder", True),
    "ragas": ("ragas.jsonl", False),
    "deepeval": ("deepeval.jsonl", False),
    "autorag": ("folder", False),
    "spans": ("spans.jsonl", True),
}


@pytest.mark.parametrize("form", FORMATS)
def test_formats_of_others_come_back(form: str, pool: Path, tmp_path: Path) -> None:
    name, graded = FORMATS[form]
    with findwell.labels.Labels.open(pool) as labels:
        labels.export(tmp_path / name, form)
    with findwell.labels.Labels.open(new_pool(tmp_path / "other"), "kim") as labels:
        labels.import_labels(tmp_path / name, form)
        found = grades(labels)
        assert labels.annotators() == ["kim"]
        assert set(labels.frame()["design"]) == {"imported"}
    relevant = {pair: 1.0 for pair, grade in FINAL.items() if grade}
    assert found == (FINAL if graded else relevant)


def test_a_beir_folder_is_whole(pool: Path, tmp_path: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        labels.export(tmp_path / "beir", "beir")
        with pytest.raises(SaveError, match="it already exists"):
            labels.export(tmp_path / "beir", "beir")
    test = (tmp_path / "beir" / "qrels" / "test.tsv").read_text().splitlines()
    assert test[0] == "query-id\tcorpus-id\tscore"
    corpus = findwell.io.load_corpus(tmp_path / "beir")
    assert dict(corpus.select("doc", "text").rows()) == TEXTS
    gold = findwell.io.load_gold(tmp_path / "beir")
    assert gold.queries["question"].to_list() == list(QUESTIONS.values())
    assert not list(tmp_path.glob(".findwell-*"))


def test_ragas_and_deepeval_records(pool: Path, tmp_path: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        labels.export(tmp_path / "ragas.jsonl", "ragas")
        labels.export(tmp_path / "deepeval.jsonl", "deepeval")
    first = json.loads((tmp_path / "ragas.jsonl").read_text().splitlines()[0])
    assert first["user_input"] == QUESTIONS["q1"]
    assert first["reference_contexts"] == [TEXTS["a"]]
    assert first["reference_context_ids"] == ["a"]
    assert sorted(first["retrieved_context_ids"]) == ["a", "b", "c", "f"]
    other = json.loads((tmp_path / "deepeval.jsonl").read_text().splitlines()[0])
    assert (other["input"], other["context"]) == (QUESTIONS["q1"], [TEXTS["a"]])


def test_autorag_tables(pool: Path, tmp_path: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        labels.export(tmp_path / "autorag", "autorag")
    answers = pl.read_parquet(tmp_path / "autorag" / "qa.parquet")
    assert answers.select("qid", "retrieval_gt").rows() == [("q1", [["a"]]), ("q2", [["d"]])]
    corpus = pl.read_parquet(tmp_path / "autorag" / "corpus.parquet")
    assert {"doc_id", "contents", "metadata", "path", "start_end_idx"} <= set(corpus.columns)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_phoenix(suffix: str, pool: Path, tmp_path: Path) -> None:
    """Annotations are of one run: the position of a document in its list, from 0."""
    file = tmp_path / f"phoenix.{suffix}"
    with findwell.labels.Labels.open(pool) as labels:
        labels.export(file, "phoenix")
    rows = pl.read_csv(file) if suffix == "csv" else pl.read_parquet(file)
    first = rows.row(0, named=True)
    assert (first["span_id"], first["document_position"]) == ("q1", 0)
    assert (first["label"], first["score"], first["annotator_kind"]) == ("relevant", 3.0, "HUMAN")
    assert first["explanation"] == 'says "it", clearly'
    with findwell.labels.Labels.open(new_pool(tmp_path / "other")) as labels:
        assert labels.import_labels(file) == 6
        assert sorted(labels.annotators()) == ["ann", "ben", "eva"]
        row = labels.frame().row(0, named=True)
        assert (row["doc"], row["grade"], row["note"]) == ("a", 3.0, 'says "it", clearly')
        with pytest.raises(InputError, match="has no document at position 9 in run 'two'"):
            labels.import_labels(rows.with_columns(document_position=9), run="two")
        with pytest.raises(OptionError, match="unknown run 'nine'"):
            labels.import_labels(rows, run="nine")
    with findwell.labels.Labels.open(pool) as labels:
        labels.export(file, "phoenix", run="two")  # only d is in it, with a label
    assert (pl.read_csv(file) if suffix == "csv" else pl.read_parquet(file)).height == 1


def test_subtopics(tmp_path: Path) -> None:
    with findwell.labels.Labels.open(new_pool(tmp_path / "pool"), "ann") as labels:
        with pytest.raises(InputError, match="no label to export"):
            labels.export(tmp_path / "x.txt", "subtopic-qrels")
        labels.set("q1", "a", 1, subtopic="price")
        labels.set("q1", "b", 1, subtopic="price")
        labels.set("q1", "b", 2, subtopic="size")
        labels.set("q1", "c", 0, subtopic="size")
        labels.export(tmp_path / "topics.txt", "subtopic-qrels")
        expected = labels.gold()
    assert len(expected.item_grade) == 3  # two subtopics, and a document relevant to none
    again = findwell.io.load_gold(tmp_path / "topics.txt")
    measures = ["recall@1", "recall@2", "nDCG@3"]
    values = findwell.evaluate(RUNS["one"], expected, measures).values
    assert values["recall@1"] == 0.5
    assert findwell.evaluate(RUNS["one"], again, measures).values == values
    with findwell.labels.Labels.open(new_pool(tmp_path / "other"), "ann") as labels:
        labels.import_labels(tmp_path / "topics.txt")
        assert findwell.evaluate(RUNS["one"], labels.gold(), measures).values == values


def test_spans_survive_another_chunker(tmp_path: Path) -> None:
    document = "Charge it first. Then press the red button twice. It starts."
    run = [{"query": "q", "question": "How?", "retrieved": [{"id": "c1", "text": document[17:49]}]}]
    findwell.labels.pool([run], tmp_path / "pool")
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        labels.set("q", "c1", 1, start=5, end=25)
        labels.export(tmp_path / "spans.jsonl", "spans")
    anchored = findwell.labels.anchor(tmp_path / "spans.jsonl", {"manual": document})
    place = anchored.labels.select("doc", "start", "end", "quote").row(0)
    assert place == ("manual", 22, 42, "press the red button")


def test_pairs_that_are_not_in_the_pool(pool: Path) -> None:
    other = {"q1": {"a": 1, "zzz": 2}, "q9": {"x": 1}}
    with findwell.labels.Labels.open(pool) as labels:
        before = labels.frame()
        with pytest.raises(InputError, match=r"2 of 3 labels .* q1 / zzz, q9 / x") as stop:
            labels.import_labels(other, annotator="kim")
        assert "add=True" in stop.value.fix
        assert labels.frame().equals(before)  # all or none
        assert labels.import_labels(other, annotator="kim", add=True) == 3
        added = labels.candidates().filter(design="imported")
        assert added.select("query", "doc").rows() == [("q1", "zzz"), ("q9", "x")]
        assert labels.next("lea") is not None
        labels.set("q9", "x", 2, annotator="lea")


@pytest.mark.parametrize(("grade", "code"), [(7, 0), (0.5, 0), (-2, 1)])
def test_grades_of_others(grade: float, code: int, pool: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        before = labels.history().height
        if code:
            assert labels.import_labels({"q1": {"c": grade}}) == 1
            assert labels.frame().filter(doc="c", annotator="imported")["grade"].to_list() == [0.0]
        else:
            with pytest.raises(InputError, match="nothing was imported"):
                labels.import_labels({"q1": {"b": 1, "c": grade}})
            assert labels.history().height == before


def test_formats_that_are_not_known(pool: Path, tmp_path: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        with pytest.raises(OptionError, match="does not say which format"):
            labels.export(tmp_path / "labels.doc")
        with pytest.raises(OptionError, match="unknown format of labels 'trek'"):
            labels.export(tmp_path / "labels.doc", "trek")
        with pytest.raises(OptionError, match="run= is for phoenix"):
            labels.export(tmp_path / "labels.csv", run="one")
        with pytest.raises(OptionError, match="unknown run 'nine'"):
            labels.export(tmp_path / "labels.csv", "phoenix", run="nine")
        with pytest.raises(InputError, match="there is no label to import"):
            labels.import_labels(pl.DataFrame({"query": ["q1"], "doc": ["a"], "grade": [None]}))
    assert not list(tmp_path.glob("labels.*"))


def test_ids_that_qrels_cannot_hold(tmp_path: Path) -> None:
    findwell.labels.pool(
        [[{"user_input": "Why?", "retrieved_contexts": ["Because it is."]}]], tmp_path / "p"
    )
    with findwell.labels.Labels.open(tmp_path / "p", "ann") as labels:
        labels.set("Why?", "Because it is.", 1)
        with pytest.raises(InputError, match="holds white space"):
            labels.export(tmp_path / "qrels.txt")
        labels.export(tmp_path / "ragas.jsonl", "ragas")
    assert findwell.io.load_gold(tmp_path / "ragas.jsonl").queries.height == 1

"""Where texts come from, and every odd text: a defined result or a clear error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError
from tests.sample import jsonl, kinds
from tests.strategies import by_measure

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

TEXT_RELATIONS = ("exact", "exact-sentence", "rouge", "rouge-sentence", "containment", "words")
every_relation = pytest.mark.parametrize("by", TEXT_RELATIONS)

CHUNKS = ["The battery lasts six hours.", "Charge it before the first ride.", "Call a dealer."]
GOLD = ["Charge it before the first ride!"]
IDS, GOLD_IDS = ["c0", "c1", "c2"], ["c1"]
CORPUS = dict(zip(IDS, CHUNKS, strict=True))


def score(data: Any, by: str = "rouge", **options: Any) -> dict[str, float | None]:
    return findwell.evaluate(
        data, measures=["P@3", "recall@1", "recall@2"], by=by, **options
    ).values


WANTED = {"P@3": pytest.approx(1 / 3), "recall@1": 0.0, "recall@2": 1.0}

SHAPES: dict[str, dict[str, Any]] = {
    "findwell, texts beside ids": {
        "query": "q",
        "retrieved": [{"doc": doc, "text": text} for doc, text in CORPUS.items()],
        "gold": [{"doc": "c1", "text": GOLD[0]}],
    },
    "findwell, texts": {
        "query": "q",
        "retrieved": [{"text": text} for text in CHUNKS],
        "gold": [{"text": text} for text in GOLD],
    },
    "findwell, texts as ids": {"query": "q", "retrieved": CHUNKS, "gold": GOLD},
    "ragas": {"user_input": "?", "retrieved_contexts": CHUNKS, "reference_contexts": GOLD},
    "ragas with ids": {
        "user_input": "?",
        "retrieved_contexts": CHUNKS,
        "retrieved_context_ids": IDS,
        "reference_contexts": GOLD,
        "reference_context_ids": GOLD_IDS,
    },
    "deepeval": {"input": "?", "retrieval_context": CHUNKS, "context": GOLD},
    "continuous-eval": {"question": "?", "retrieved_context": CHUNKS, "ground_truth_context": GOLD},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_texts_of_every_shape(shape: str, save: Save) -> None:
    record = SHAPES[shape]
    result = findwell.evaluate([record], measures=["P@3", "recall@1", "recall@2"], by="rouge")
    assert result.values == WANTED
    assert not kinds(result)  # texts that serve as ids concern nobody here
    path = save("samples.jsonl", jsonl([record] * (1 if "query" in record else 3)))
    assert score(path) == WANTED
    assert score(save("samples.json", json.dumps([record]))) == WANTED


def test_ids_count_by_id_and_texts_by_text() -> None:
    record = SHAPES["ragas with ids"] | {"reference_context_ids": ["c2"]}
    both = findwell.evaluate([record], measures=["RR", "RR/rouge"])
    assert both.values == {"RR": pytest.approx(1 / 3), "RR/rouge": 0.5}


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_tables_with_a_column_of_texts(form: str, tmp_path: Path) -> None:
    run: Any = pl.DataFrame({"query": ["q"] * 3, "doc": IDS, "text": CHUNKS, "score": [3, 2, 1]})
    gold: Any = pl.DataFrame({"query": ["q"], "doc": ["g"], "text": GOLD})
    if form != "frame":
        paths = tmp_path / f"run.{form}", tmp_path / f"gold.{form}"
        for table, path in zip((run, gold), paths, strict=True):
            getattr(table, f"write_{form}")(path)
        run, gold = paths
    found = findwell.evaluate(run, gold, ["P@3", "recall@1", "recall@2"], by="exact")
    assert found.values == WANTED


def test_autorag_files(tmp_path: Path) -> None:
    qa, corpus, run = (tmp_path / f"{name}.parquet" for name in ("qa", "corpus", "result"))
    pl.DataFrame(
        {"qid": ["a"], "query": ["?"], "retrieval_gt": [[GOLD_IDS]], "generation_gt": [["so"]]}
    ).write_parquet(qa)
    pl.DataFrame({"doc_id": IDS, "contents": CHUNKS, "metadata": [{"page": 1}] * 3}).write_parquet(
        corpus
    )
    columns = {
        "retrieved_contents": [CHUNKS],
        "retrieved_ids": [IDS],
        "retrieve_scores": [[3, 2, 1]],
    }
    pl.DataFrame(columns).write_parquet(run)
    result = findwell.evaluate(run, qa, ["P@3", "recall@1", "recall@2"], by="rouge", corpus=corpus)
    assert result.values == WANTED
    ids_only = findwell.evaluate(
        {"a": IDS}, qa, ["P@3", "recall@1", "recall@2"], by="rouge", corpus=corpus
    )
    assert ids_only.values == WANTED


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    for doc, text in CORPUS.items():
        (folder / f"{doc}.txt").write_text(text, encoding="utf-8")
    return folder


def _beir(tmp_path: Path) -> Path:
    rows = [{"_id": doc, "title": "A title", "text": text} for doc, text in CORPUS.items()]
    (tmp_path / "corpus.jsonl").write_text(jsonl(rows), encoding="utf-8")
    return tmp_path


CORPORA: dict[str, Any] = {
    "a dict": lambda _: CORPUS,
    "dicts": lambda _: {doc: {"text": text} for doc, text in CORPUS.items()},
    "records": lambda _: [{"id": doc, "text": text} for doc, text in CORPUS.items()],
    "a frame": lambda _: pl.DataFrame({"doc_id": IDS, "contents": CHUNKS}),
    "a BEIR folder": _beir,
    "a folder": _folder,
}


@pytest.mark.parametrize("form", CORPORA)
def test_the_corpus_in_its_forms(form: str, tmp_path: Path) -> None:
    corpus = CORPORA[form](tmp_path)
    end = ".txt" if form == "a folder" else ""
    run = {"q": [f"{doc}{end}" for doc in IDS]}
    gold = {"q": [f"{doc}{end}" for doc in GOLD_IDS]}
    found = findwell.evaluate(run, gold, ["P@3", "recall@1", "recall@2"], by="exact", corpus=corpus)
    assert found.values == WANTED
    # the gold may be texts while the run names documents
    texts = findwell.evaluate(
        run, {"q": GOLD}, ["P@3", "recall@1", "recall@2"], by="exact", corpus=corpus
    )
    assert texts.values == WANTED


def test_a_document_without_a_text_is_a_finding() -> None:
    run = {"q": ["c0", "gone", "c1", "gone too"]}
    result = findwell.evaluate(run, {"q": ["c1"]}, ["P", "recall"], by="rouge", corpus=CORPUS)
    assert result.values == {"P": 0.25, "recall": 1.0}
    told = {found.kind: (found.count, found.examples) for found in result.findings}
    assert told == {"unknown-text": (1, ("gone",)), "id-as-text": (1, ("gone too",))}
    lost = findwell.evaluate(
        {"q": ["c0"]}, {"q": ["c1", "x"]}, ["recall"], by="rouge", corpus=CORPUS
    )
    assert lost["recall"] == 0
    assert [found.message for found in lost.findings] == [
        "1 gold document has no text and is left out."
    ]


@every_relation
def test_ids_without_texts_are_refused(by: str, files: tuple[Path, Path], cli: Findwell) -> None:
    with pytest.raises(InputError) as error:
        findwell.evaluate({"q": ["d1", "d2"]}, {"q": ["d1"]}, "P", by=by)
    assert error.value.what == "no document has a text, only ids such as 'd1'"
    assert "--corpus" in error.value.fix
    with pytest.raises(InputError) as error:
        findwell.evaluate({"q": ["d1", "d2"]}, {"q": ["a gold text"]}, "P", by=by)
    assert error.value.where == "run"
    with pytest.raises(InputError, match="no document has a text in the corpus, only ids such as"):
        findwell.evaluate({"q": ["d1"]}, {"q": ["c1"]}, "P", by=by, corpus=CORPUS)
    run, gold = files
    done = cli("score", run, "--gold", gold, "--by", "containment", "-m", "P")
    assert done.code == 2
    assert "no document has a text, only ids such as" in done.err


def test_ids_beyond_ascii_are_not_taken_for_texts_in_silence() -> None:
    run = {"q": ["文档一", "c1"]}
    result = findwell.evaluate(run, {"q": ["文档一"]}, "P", by="exact", corpus=CORPUS)
    assert result["P"] == 0.5
    assert [(found.kind, found.run) for found in result.findings] == [
        ("id-as-text", ""),
        ("id-as-text", "run"),
    ]


def test_a_text_does_not_depend_on_its_batch() -> None:
    """Ids that stand for texts do so whatever else is in their batch."""
    rows = [
        {"query": "q1", "retrieved": [{"doc": "d1", "text": "alpha beta"}], "gold": ["alpha beta"]},
        {"query": "q2", "retrieved": ["gamma delta"], "gold": ["gamma delta"]},
    ]
    whole = findwell.evaluate(rows, measures="recall", by="exact")
    alone = [findwell.evaluate([row], measures="recall", by="exact")["recall"] for row in rows]
    assert whole["recall"] == 1
    assert alone == [1, 1]


def test_texts_are_told_from_ids_by_the_whole_run() -> None:
    """A batch of one-word chunks among others is no reason to stop."""
    frames = [
        pl.DataFrame({"query": [f"q{at}"] * 2, "doc": docs})
        for at, docs in enumerate([["yes", "no"], ["a whole text", "maybe"], ["no", "yes"]])
    ]
    run = findwell.core.data.RunStream("run", lambda: iter(frames), order="listed")
    gold = {f"q{at}": ["yes", "a gold text"] for at in range(3)}
    result = findwell.evaluate(run, gold, ["recall"], by="exact")
    assert by_measure(result) == {"recall": {"q0": 0.5, "q1": 0.0, "q2": 0.5}}
    assert not kinds(result)


@every_relation
def test_lists_that_are_empty(by: str) -> None:
    data = [
        {"query": "full", "retrieved": ["Some text."], "gold": ["Some text."]},
        {"query": "nothing found", "retrieved": [], "gold": ["Some text."]},
        {"query": "nothing to find", "retrieved": ["Some text."], "gold": []},
        {"query": "neither", "retrieved": [], "gold": []},
    ]
    result = by_measure(findwell.evaluate(data, measures=["P", "recall", "nDCG@3"], by=by))
    for values in result.values():
        assert list(values.values()) == [1.0, 0.0, None, None]


@every_relation
def test_blank_texts_cover_nothing_and_are_nothing_to_find(by: str) -> None:
    data = [
        {"query": "q", "retrieved": ["", " \n", "…", "A text."], "gold": ["", "—!", "A text."]},
        {"query": "only blanks", "retrieved": ["", "x y"], "gold": [" ", "..."]},
    ]
    result = findwell.evaluate(data, measures=["recall", "relevant"], by=by)
    values = by_measure(result)
    assert values["recall"] == {"q": 1.0, "only blanks": None}
    assert values["relevant"]["only blanks"] == 0
    assert kinds(result)["no-relevant-item"] == 1
    if by in ("exact", "rouge", "containment"):  # by sentence, blanks are not even there
        assert kinds(result)["blank-text"] == 4
        assert findwell.evaluate(data[:1], measures="P", by=by)["P"] == 0.25


@every_relation
def test_chunks_of_one_character(by: str) -> None:
    data = [{"retrieved_context": ["a", "b", "b", "c"], "ground_truth_context": ["b", "z"]}]
    result = findwell.evaluate(data, measures=["recall", "RR", "P"], by=by)
    assert result["recall"] == 0.5
    assert result["RR"] == 0.5
    assert result["P"] == 0.25


@every_relation
@pytest.mark.parametrize(
    ("chunk", "gold", "other"),
    [
        ("הסוללה מחזיקה שש שעות. יש לטעון אותה.", "הסוללה מחזיקה שש שעות.", "אין תשובה."),
        ("البطارية تدوم ست ساعات. اشحنها أولا.", "البطارية تدوم ست ساعات.", "لا جواب."),
        ("电池可以用六个小时。请先充电。", "电池可以用六个小时。", "没有。"),
        ("電池は六時間もちます。先に充電してください。", "電池は六時間もちます。", "ありません。"),
        ("배터리는 여섯 시간 갑니다. 먼저 충전하세요.", "배터리는 여섯 시간 갑니다.", "없음."),
        ("แบตเตอรี่ใช้ได้หกชั่วโมง\nชาร์จก่อน", "แบตเตอรี่ใช้ได้หกชั่วโมง", "ไม่มี"),
    ],
    ids=["Hebrew", "Arabic", "Chinese", "Japanese", "Korean", "Thai"],
)
def test_scripts(by: str, chunk: str, gold: str, other: str) -> None:
    data = [{"query": "q", "retrieved": [other, chunk, gold], "gold": [gold]}]
    result = findwell.evaluate(data, measures=["recall", "RR"], by=by)
    assert result["recall"] == 1.0
    by_chunk = {"exact": 1 / 3, "rouge": 0.5, "containment": 0.5}
    assert by not in by_chunk or result["RR"] == pytest.approx(by_chunk[by])
    nothing = [data[0] | {"retrieved": [other]}]
    if by != "words":  # which may share a character
        assert findwell.evaluate(nothing, measures="success", by=by)["success"] == 0.0


def test_invalid_utf8_is_named_with_its_place(save: Save) -> None:
    good = jsonl([{"retrieved_context": ["a b"], "ground_truth_context": ["a b"]}]).encode()
    path = save("bad.jsonl", good + good.replace(b"a b", b"a \xff b"))
    with pytest.raises(InputError, match=r"(?i)UTF-8") as error:
        score(path)
    assert "line 2" in str(error.value)
    corpus = save("corpus.jsonl", b'{"id": "c0", "text": "fine"}\n{"id": "c1", "text": "\xe9"}\n')
    with pytest.raises(InputError, match="not UTF-8") as error:
        findwell.evaluate({"q": ["c0"]}, {"q": ["c1"]}, "P", by="rouge", corpus=corpus)
    assert "line 2" in str(error.value)


@pytest.mark.parametrize("by", ["exact", "rouge", "containment", "semantic"])
def test_one_of_a_group_is_enough(by: str) -> None:
    data = [
        {
            "query": "q",
            "retrieved": ["The battery lasts long.", "Nothing.", "It takes four hours."],
            "gold": [["It takes four hours.", "Four hours it takes."], ["The battery lasts long."]],
        }
    ]
    embedder = (lambda texts: [[t.count("f"), t.count("b"), t.count("N")] for t in texts]) if (
        by == "semantic"
    ) else None  # fmt: skip
    result = findwell.evaluate(
        data, measures=["recall@1", "recall@3", "relevant"], by=by, embedder=embedder
    )
    assert result.values == {"recall@1": 0.5, "recall@3": 1.0, "relevant": 2.0}


def test_gold_texts_that_are_equal_keep_the_higher_grade() -> None:
    data = [
        {
            "query": "q",
            "retrieved": ["a b"],
            "gold": [{"text": "A b.", "grade": 1}, {"text": "a B", "grade": 3}],
        }
    ]
    result = findwell.evaluate(data, measures=["DCG", "relevant"], by="exact")
    assert result.values == {"DCG": 3.0, "relevant": 1.0}
    assert kinds(result) == {"equal-gold": 1}


def test_findings_do_not_quote_whole_chunks() -> None:
    chunk = "A long chunk. " * 200
    record = {"query": "q", "retrieved": [chunk, chunk], "gold": ["A long chunk."]}
    (found,) = findwell.evaluate([record], measures="P", by="containment").findings
    assert found.kind == "duplicate-document"
    assert len(found.examples[0]) == len("q / ") + 40


def test_queries_of_one_kind_of_text_do_not_meet_those_of_another() -> None:
    data = [
        {"query": "q1", "retrieved": ["one two"], "gold": ["three four"]},
        {"query": "q2", "retrieved": ["three four"], "gold": ["one two"]},
    ]
    for by in TEXT_RELATIONS:
        assert findwell.evaluate(data, measures="recall", by=by)["recall"] == 0.0

"""Judgements as people keep them: spreadsheets of questions, chunks and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError
from findwell.io.read import load_gold, load_run
from tests import sample
from tests.lazy import lazy
from tests.sample import delimited, gold_table, kinds, run_table, score

if TYPE_CHECKING:
    from tests.conftest import Save

pd = lazy("pandas")

LABELS = [("What is it?", "c1", 1), ("What is it?", "c2", 0), ("Why?", "c3", 1)]
RUN = {"What is it?": ["c2", "c1"], "Why?": ["c3"]}
HEADERS = [
    ("question", "chunk", "label"),
    ("query", "passage", "relevance"),
    ("Question", "Context", "is_relevant"),
    ("user_input", "text", "relevant"),
    ("query", "document", "rating"),
    ("question", "chunk_id", "score"),
]
WORDS = [("yes", "no"), ("TRUE", "False"), ("relevant", "not relevant"), (" Y", "n "), ("1", "0")]
WORDS += [("Relevant", "NOT_RELEVANT"), ("relevant", "irrelevant"), ("1.0", "0.0")]


def labelled(header: tuple[str, ...], yes: str = "1", no: str = "0", separator: str = ",") -> str:
    rows = [header, *((query, doc, yes if grade else no) for query, doc, grade in LABELS)]
    return "".join(separator.join(row) + "\n" for row in rows)


@pytest.mark.parametrize("name", ["labels.csv", "labels.txt"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("header", HEADERS, ids="-".join)
def test_labels_are_a_gold(header: tuple[str, ...], separator: str, name: str, save: Save) -> None:
    gold = save(name if separator != "\t" else "labels", labelled(header, separator=separator))
    result = findwell.evaluate(RUN, gold, ["RR", "judged@2"])
    assert (result["RR"], result["judged@2"]) == (0.75, 1)
    assert not result.findings


def test_questions_join_labels_with_records_and_tables(save: Save) -> None:
    gold = save("labels.csv", labelled(("question", "chunk", "label")))
    asked = [
        {"query": f"q{n}", "question": f"{question}\n", "retrieved": docs}
        for n, (question, docs) in enumerate(RUN.items())
    ]
    rows = [
        {"query_id": each["query"], "question": each["question"], "doc_id": doc, "rank": rank}
        for each in asked
        for rank, doc in enumerate(each["retrieved"])
    ]
    for run in (asked, pl.DataFrame(rows)):
        result = findwell.evaluate(run, gold, ["RR"])
        assert result["RR"] == 0.75
    ids = [{**each, "gold": ["c1"] if each["query"] == "q0" else ["c3"]} for each in asked]
    by_question = pl.DataFrame(rows).drop("query_id")
    assert findwell.evaluate(by_question, ids, ["RR"])["RR"] == 0.75


@pytest.mark.parametrize(("yes", "no"), WORDS)
def test_words_that_are_clear_are_grades(yes: str, no: str, save: Save) -> None:
    gold = save("labels.csv", labelled(("question", "chunk", "label"), yes, no))
    assert load_gold(gold).rows()["grade"].to_list() == [1, 0, 1]
    word = [{"query": "q", "gold": [{"doc": "a", "grade": yes}, {"doc": "b", "grade": no}]}]
    if yes[0].isalpha():
        assert load_gold(word).rows()["grade"].to_list() == [1, 0]


@pytest.mark.parametrize("word", ["maybe", "partially relevant", "highly", "good", "N/A", "1,5"])
def test_words_that_are_not_clear_are_refused(word: str, save: Save) -> None:
    gold = save("labels.csv", labelled(("question", "chunk", "label"), no=word, separator=";"))
    with pytest.raises(InputError, match=rf"line 3: the grade '{word}' is not a number") as stop:
        load_gold(gold)
    assert "yes and no" in stop.value.fix
    with pytest.raises(InputError, match=f"the grade '{word}'"):
        load_gold([{"query": "q", "gold": {"a": word}}])


def test_truths_of_frames_are_grades() -> None:
    table = {"question": ["a", "a"], "chunk": ["x", "y"], "label": [True, False]}
    for frame in (pl.DataFrame(table), pd.DataFrame(table)):
        gold = load_gold(frame)
        assert gold.rows()["grade"].to_list() == [1, 0]
        assert gold.queries.rows() == [("a", "a")]
        assert gold.queries.columns == ["query", "question"]


def test_texts_as_ids_are_told(save: Save) -> None:
    gold = save("g.csv", 'question,chunk,label\nWhy?,"It is\nred, mostly.",1\nWhy?,blue,0\n')
    run = save("r.csv", 'question,chunk,score\nWhy?,blue,2\nWhy?,"It is\nred, mostly.",1\n')
    result = findwell.evaluate(run, gold, ["RR"])
    assert result["RR"] == 0.5
    assert [(each.kind, each.count, each.run) for each in result.findings] == [
        ("text-as-id", 1, ""),
        ("text-as-id", 1, "r"),
    ]
    by_text = findwell.evaluate(run, gold, ["RR"], by="exact")
    assert by_text["RR"] == 0.5
    assert not by_text.findings


@pytest.mark.parametrize("form", ["run", "gold"])
def test_semicolons_separate_too(form: str, save: Save) -> None:
    tables: dict[str, Any] = {"run": run_table(), "gold": gold_table()}
    paths = {name: save(f"{name}.csv", delimited(table)) for name, table in tables.items()}
    paths[form] = save("other.txt", delimited(tables[form], ";"))
    assert score(*paths.values()) == score(sample.RUN)
    assert score(*paths.values(), **{f"{form}_format": "csv"}) == score(sample.RUN)
    queries = save("queries.csv", "query;topic\nq1;a\nq2;b\n")
    run, gold = paths.values()
    assert findwell.evaluate(run, gold, queries=queries).by("topic").height


def test_a_decimal_comma_is_refused_with_what_to_write(save: Save) -> None:
    with pytest.raises(InputError, match="score '0,5' is not a number") as stop:
        load_run(save("run.csv", "query;doc;score\nq1;d1;0,5\n")).collect()
    assert "0.5" in stop.value.fix


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_blanks_around_ids_are_no_part_of_them(separator: str, save: Save) -> None:
    table = {name: [f" {each} " for each in column] for name, column in run_table().items()}
    run = save("run.csv" if separator != "\t" else "run.tsv", delimited(table, separator))
    assert score(run) == score(sample.RUN)
    found = load_run(run).collect().findings
    assert [(each.kind, each.count) for each in found] == [("padded-id", 9)] * 2
    assert found[0].examples == ("' q1 '", "' q2 '", "' q10 '")
    frame = pl.DataFrame({"query": ["q1"], "doc": [" d1"]})
    assert load_run(frame).collect().rows["doc"].to_list() == [" d1"]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_same_however_a_table_is_cut(
    rows: int, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {name: [f" {each}" for each in column] for name, column in run_table().items()}
    run = save("run.csv", delimited({**table, "similarity": ["1"] * 9}))
    text = save(
        "text.csv", delimited({"question": ["Who ?"] * 4, "chunk": ["a b", "c", "d e", "f"]})
    )
    whole = [load_run(path).collect() for path in (run, text)]
    assert [len(each.findings) for each in whole] == [3, 1]
    monkeypatch.setattr("findwell.io.read.tables.ROWS", rows)
    for path, same in zip((run, text), whole, strict=True):
        cut = load_run(path).collect()
        assert cut.rows.equals(same.rows)
        assert cut.findings == same.findings


QUOTED = 'query,doc,score,note\nq1,"d\n1",3,"a ""b"", c\n\nd"\nq1,d2,2,\n'


@pytest.mark.parametrize("change", ["", "crlf", "mark"])
def test_line_breaks_inside_quotes(change: str, save: Save) -> None:
    text = QUOTED.replace("\n", "\r\n") if change == "crlf" else QUOTED
    run = load_run(save("run.csv", b"\xef\xbb\xbf" * (change == "mark") + text.encode()))
    first = "d\r\n1" if change == "crlf" else "d\n1"
    assert run.collect().rows.rows() == [("q1", first, 3.0), ("q1", "d2", 2.0)]


def test_kinds_of_findings_of_labels_name_the_gold() -> None:
    labels = pl.DataFrame({"question": ["a"], "chunk": ["one two"], "label": [1]})
    assert kinds(findwell.evaluate({"a": ["one two"]}, labels)) == {"text-as-id": 1}

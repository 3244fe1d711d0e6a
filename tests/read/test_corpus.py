"""Texts by id come in from all the places that people keep them in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import InputError
from findwell.io.read.corpus import load_corpus
from tests.lazy import lazy
from tests.strategies import examples

if TYPE_CHECKING:
    from tests.conftest import Save

pd = lazy("pandas")

ROWS = [("a", "one"), ("b", "two")]
TEXTS = dict(ROWS)


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    "data",
    [
        TEXTS,
        {"a": {"title": "T", "text": "one"}, "b": {"text": "two"}},
        {"queries": {}, "corpus": TEXTS, "relevant_docs": {}},
        {"corpus": TEXTS},
        [{"doc": "a", "text": "one"}, {"doc": "b", "text": "two"}],
        [{"_id": "a", "title": "T", "text": "one"}, {"_id": "b", "title": "", "text": "two"}],
        [{"id": "a", "page_content": "one"}, {"id": "b", "page_content": "two"}],
        pl.DataFrame(ROWS, schema=["doc_id", "contents"], orient="row"),
        pl.DataFrame(ROWS, schema=["Passage_ID", "Passage"], orient="row"),
        pl.DataFrame(ROWS, schema=["docno", "body"], orient="row").lazy(),
        lambda: pd.DataFrame(ROWS, columns=["chunk_id", "content"]),
        pl.DataFrame(ROWS, schema=["id", "chunk"], orient="row").to_arrow(),
    ],
)
def test_python_objects(data: Any) -> None:
    assert load_corpus(data() if callable(data) else data).rows() == ROWS


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.jsonl", lines({"_id": "a", "title": "T", "text": "one"}, {"_id": "b", "text": "two"})),
        ("c.jsonl", lines({"id": "a", "text": "one"}) + "\n" + lines({"id": "b", "text": "two"})),
        ("c.json", json.dumps(TEXTS)),
        ("c.json", json.dumps(TEXTS, indent=1)),
        ("c.json", json.dumps({"queries": {}, "corpus": TEXTS, "relevant_docs": {}}, indent=2)),
        ("c.json", json.dumps([{"id": "a", "text": "one"}, {"id": "b", "text": "two"}])),
        ("c.json", json.dumps([{"id": "a", "text": "one"}, {"id": "b", "text": "two"}], indent=2)),
        ("c.csv", "id,text\na,one\nb,two\n"),
        ("c.csv", 'text,doc_id\n"one",a\r\ntwo,b\r\n'),
        ("c.tsv", "id\ttext\ttitle\na\tone\tT\nb\ttwo\tT\n"),
        ("c.tsv", "a\tone\nb\ttwo\n"),
        ("c.tsv", "a\tone\r\nb\ttwo"),
        ("noending", "\ufeffid,text\na,one\nb,two\n"),
    ],
)
def test_files(save: Save, name: str, content: str) -> None:
    assert load_corpus(save(name, content)).rows() == ROWS
    assert load_corpus(save(f"{name}.gz", gzip.compress(content.encode()))).rows() == ROWS


def test_one_record_is_no_mapping(save: Save) -> None:
    assert load_corpus(save("c.jsonl", lines({"id": "a", "text": "one"}))).rows() == ROWS[:1]


def test_bare_tsv_takes_quotes_and_tabs_as_they_are(save: Save) -> None:
    path = save("c.tsv", 'a\tsays "hi\nb\tone\ttwo\n')
    assert load_corpus(path).rows() == [("a", 'says "hi'), ("b", "one\ttwo")]


def test_ids_are_text(save: Save) -> None:
    assert load_corpus({7: "one"})["doc"].to_list() == ["7"]
    assert load_corpus(save("c.csv", "id,text\n007,one\n"))["doc"].to_list() == ["007"]
    assert load_corpus(pl.DataFrame({"id": [7], "text": ["x"]}))["doc"].to_list() == ["7"]


def test_a_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.md").write_bytes(b"zwei\r\n")
    (tmp_path / "sub" / "a.TXT").write_bytes(b"\xef\xbb\xbfone")
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "other.pdf").write_bytes(b"%PDF")
    rows = [("b.md", "zwei\r\n"), ("empty.txt", ""), ("sub/a.TXT", "one")]
    assert load_corpus(tmp_path).rows() == rows
    assert load_corpus(str(tmp_path / "b.md")).rows() == rows[:1]


def test_a_beir_folder(save: Save) -> None:
    path = save("beir/corpus.jsonl", lines({"_id": "a", "title": "T", "text": "one"}))
    save("beir/readme.md", "not a document")
    assert load_corpus(path.parent).rows() == ROWS[:1]


def test_offsets(save: Save) -> None:
    full = [("a", "one", "d", 0, 3), ("b", "two", "d", 4, 7)]
    names = ["doc", "text", "source", "start", "end"]
    table = pl.DataFrame(full, schema=names, orient="row")
    assert load_corpus(table).equals(table)
    assert load_corpus(table.to_dicts()).equals(table)
    assert load_corpus(save("c.csv", table.write_csv())).equals(table)
    assert load_corpus(save("c.jsonl", table.write_ndjson())).equals(table)
    other = table.rename({"doc": "chunk_id", "source": "doc_id", "start": "start_index"})
    assert load_corpus(other.drop("end")).equals(table)
    chain = [
        {"id": a, "page_content": text, "metadata": {"source": d, "start_index": start}}
        for a, text, d, start, _ in full
    ]
    assert load_corpus(chain).equals(table)
    assert load_corpus(save("d.jsonl", lines(*chain))).equals(table)


def test_autorag(tmp_path: Path) -> None:
    """AutoRAG's end is the last character; (0, 0) is what it writes where it found nothing."""
    rows = {
        "doc_id": ["a", "b"],
        "contents": ["one", "two"],
        "path": ["d", "d"],
        "start_end_idx": [[4, 6], [0, 0]],
        "metadata": [{"last_modified_datetime": "x", "prev_id": None}] * 2,
    }
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows).write_parquet(path)
    assert load_corpus(path).rows() == [("a", "one", "d", 4, 7), ("b", "two", "d", None, None)]
    pl.DataFrame(rows).select("doc_id", "contents", "metadata").write_parquet(path)
    assert load_corpus(path).rows() == ROWS


def test_offsets_may_stand_for_the_text() -> None:
    row = {"id": "a", "source": "d", "start": 1, "end": 3}
    assert load_corpus([row]).rows() == [("a", None, "d", 1, 3)]


def test_some_without_offsets() -> None:
    rows = [{"id": "a", "text": "x", "source": "d", "start": 1}, {"id": "b", "text": "y"}]
    assert load_corpus(rows).rows() == [("a", "x", "d", 1, 2), ("b", "y", None, None, None)]


def test_a_repeated_text_counts_once() -> None:
    assert load_corpus([{"id": "a", "text": "x"}] * 2).rows() == [("a", "x")]


def test_blank_texts_are_texts(save: Save) -> None:
    assert load_corpus({"a": ""}).rows() == [("a", "")]
    assert load_corpus(save("c.csv", "id,text\na,\nb,two\n")).rows() == [("a", ""), ("b", "two")]


def test_texts_that_look_like_something_else(save: Save) -> None:
    texts = ["[1, 2]", '{"a": 1}', "true", "12", "NaN", " ", "\x00"]
    rows = [(str(n), text) for n, text in enumerate(texts)]
    records = [{"id": n, "text": text} for n, text in rows]
    assert load_corpus(save("c.jsonl", lines(*records))).rows() == rows
    assert load_corpus(pl.DataFrame(records)).rows() == rows


@pytest.mark.parametrize(
    ("data", "what", "fix"),
    [
        ({}, "there is no text", ""),
        ([], "there is no text", ""),
        ({"a": None}, "no text of 'a'", ""),
        ({"a": 3}, "the text of 'a' is of type int", ""),
        ({"a": "\ud800"}, "half of a character", ""),
        ({" ": "x"}, "' ' is not an id", ""),
        ({"a": {"body_text": "x"}}, "no text of 'a'; found 'body_text'", "did you mean"),
        ([{"key": "a", "text": "x"}], "no id; found 'key', 'text'", "name it 'doc'"),
        ([{"docid_": "a", "text": "x"}], "no id", "did you mean docid"),
        ([{"id": None, "text": "x"}], "'None' is not an id", ""),
        ([{"id": 1.5, "text": "x"}], "'1.5' is not an id", ""),
        (["x"], "a str is not a record", ""),
        (3, "a int is not a corpus", ""),
        ("no/such/file", "no such file", ""),
        ("x" * 5000, "cannot be read", ""),
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "'a' has more than one text", ""),
        ([{"id": "a", "text": "x", "start": 3, "end": 1}], "the offsets of 'a' are 3 and 1", ""),
        ([{"id": "a", "text": "x", "start": -1}], "the offsets of 'a'", ""),
        ([{"id": "a", "text": "x", "start": "y"}], "the offsets of 'a'", ""),
        ([{"id": "a", "source": "d", "start": 3}], "the offsets of 'a'", ""),
        (pl.DataFrame({"x": ["a"], "y": ["b"]}), "no id; found 'x', 'y'", ""),
        (pl.DataFrame({"id": ["a"], "y": ["b"]}), "no text of 'a'; found 'id', 'y'", ""),
    ],
)
def test_what_cannot_be_read(data: Any, what: str, fix: str) -> None:
    with pytest.raises(InputError) as error:
        load_corpus(data)
    assert what in error.value.what
    assert fix in error.value.fix


@pytest.mark.parametrize(
    ("name", "content", "where", "what"),
    [
        ("c.txt", b"ok\nbad \xff", "c.txt, line 2", "are not UTF-8"),
        ("c.csv", b"id,text\na,\xe9\n", "c.csv, line 2", "not UTF-8"),
        ("c.jsonl", b'{"id": "a", "text": "\xff"}\n', "c.jsonl, line 1", "not UTF-8"),
        (
            "c.jsonl",
            b'{"id": "a", "text": "x"}\n{"id": \n{"id":"b"}',
            "c.jsonl, line 2",
            "not valid",
        ),
        (
            "c.jsonl",
            b'{"id": "a", "text": "x"}\n{"id": "b"}\n',
            "c.jsonl, line 2",
            "no text of 'b'",
        ),
        ("c.jsonl", b'{"id": "a", "text": "x"}\n{"id": "b", "text": [1]}', "line 2", "type list"),
        ("c.json", b'{"a": ', "c.json", "not valid JSON"),
        ("c.csv", b"key,text\na,x\n", "c.csv", "no id; found 'key', 'text'"),
        ("c.csv", b"id,text,start\na,x,y\n", "c.csv, line 2", "the offsets of 'a'"),
        ("c.tsv", b"a\tone\n\ttwo\n", "c.tsv, line 2", "'' is not an id"),
        ("c.csv", b"\n \n", "c.csv", "only blank lines"),
        ("c.csv", b"", "c.csv", "the file is empty"),
        ("c.json", b'{"a": "\\ud800"}', "c.json", "half of a character"),
    ],
)
def test_files_that_cannot_be_read(
    save: Save, name: str, content: bytes, where: str, what: str
) -> None:
    with pytest.raises(InputError) as error:
        load_corpus(save(name, content))
    assert where in error.value.where
    assert what in error.value.what


def test_a_folder_without_texts(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    with pytest.raises(InputError, match=r"no text file in this folder .* only a\.pdf"):
        load_corpus(tmp_path)


def test_the_file_of_a_folder_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"x\n\n\xc3(")
    with pytest.raises(InputError) as error:
        load_corpus(tmp_path)
    assert error.value.where.endswith("a.md, line 3")


@examples(50)
@given(st.dictionaries(st.text(min_size=1).filter(str.strip), st.text(), min_size=1, max_size=5))
def test_every_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str]
) -> None:
    """In bulk or one by one, from memory or from files."""
    rows = list(texts.items())
    records = [{"id": name, "text": text} for name, text in rows]
    path = tmp_path_factory.mktemp("corpus") / "c"
    assert load_corpus(texts).rows() == rows
    assert load_corpus(pl.DataFrame(records)).rows() == rows
    for content in (lines(*records), json.dumps(records), json.dumps(texts)):
        path.write_text(content, encoding="utf-8", newline="")
        assert load_corpus(path).rows() == rows
    pl.DataFrame(records).write_parquet(path)
    assert load_corpus(path).rows() == rows

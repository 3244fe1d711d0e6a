"""One thing under two names, or a name that stands twice: never resolved in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError
from findwell.io.read import format as source
from findwell.io.read import load_gold, load_run, load_samples
from findwell.io.read.corpus import load_corpus
from tests.lazy import lazy
from tests.sample import delimited, jsonl

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Save

pd = lazy("pandas")

REFUSED = {
    "a query": '{"q1": {"a": 1}, "q1": {"b": 2}}',
    "a query with lists": '{"q1": ["a"], "q1": ["b"]}',
    "a document": '{"q1": {"a": 1, "a": 2}}',
    "a field": '[{"query": "q1", "retrieved": ["a"], "retrieved": ["b"], "gold": []}]',
    "an id": '[{"query": "q1", "query": "q2", "retrieved": ["a"], "gold": []}]',
    "a score": '[{"query": "q1", "retrieved": [{"doc": "a", "score": 1, "score": 2}], "gold": []}]',
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_name_that_stands_twice_in_json_is_refused(case: str, save: Save) -> None:
    path = save("run.json", REFUSED[case])
    with pytest.raises(InputError, match=r"run\.json.* occurs more than once") as stop:
        load_run(path)
    assert "keep one" in stop.value.fix
    if REFUSED[case].startswith("{"):
        with pytest.raises(InputError, match="occurs more than once"):
            load_gold(path)


def test_a_gold_of_llama_index_in_which_a_query_stands_twice(save: Save) -> None:
    text = '{"queries": {"q": "?"}, "relevant_docs": {"q": ["a"], "q": ["b"]}}'
    with pytest.raises(InputError, match="'q' occurs more than once"):
        load_gold(save("gold.json", text))


def test_a_corpus_in_which_an_id_stands_twice(save: Save) -> None:
    for text in ('{"a": "one", "a": "two"}', '{"corpus": {"a": "one", "a": "two"}}'):
        with pytest.raises(InputError, match=r"corpus\.json: the id 'a' occurs more than once"):
            load_corpus(save("corpus.json", text))


def test_a_list_in_a_cell_in_which_a_name_stands_twice(save: Save) -> None:
    cell = '[{""doc"": ""a"", ""doc"": ""b""}]'
    path = save("run.csv", f'query,retrieved\nq1,"{cell}"\n')
    with pytest.raises(InputError, match=r"line 2.*'doc' occurs more than once"):
        load_run(path).collect()


@pytest.mark.parametrize("name", ["s.jsonl", "s.json"])
def test_what_only_describes_the_query_is_a_finding(name: str, save: Save) -> None:
    lines = [
        '{"query": "q1", "retrieved": ["a"], "gold": ["a"], "topic": "x", "topic": "y"}',
        '{"query": "q2", "retrieved": ["a"], "gold": ["a"]}',
    ]
    text = "\n".join(lines) if name == "s.jsonl" else f"[{', '.join(lines)}]"
    result = findwell.evaluate(save(name, text), None, "RR")
    assert [(each.kind, each.count, each.examples) for each in result.findings] == [
        ("repeated-field", 1, ("topic",))
    ]
    assert result.queries["topic"].to_list() == ["y", None]


RIVALS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "ids": (
        [{"query_id": "1", "id": "2", "contexts": ["a"], "reference_contexts": ["a"]}],
        [("query_id", "id")],
    ),
    "texts": (
        [{"id": "1", "retrieved_contexts": ["b"], "contexts": ["a"], "reference_contexts": ["a"]}],
        [("retrieved_contexts", "contexts")],
    ),
    "entries": (
        [{"query": "1", "retrieved": [{"doc": "b", "id": "a"}], "gold": ["a"]}],
        [("doc", "id")],
    ),
    "entries of the gold": (
        [{"query": "1", "retrieved": ["a"], "gold": [{"docs": ["b"], "doc": "a"}]}],
        [("docs", "doc")],
    ),
    "ids and texts": (
        [
            {
                "id": "1",
                "retrieved_context_ids": ["a"],
                "retrieved_contexts": ["x y"],
                "reference_context_ids": ["a"],
            }
        ],
        [],
    ),
    "the same id twice": (
        [{"query": "1", "retrieved": [{"doc": "a", "id": "a"}], "gold": ["a"]}],
        [],
    ),
}


@pytest.mark.parametrize("case", RIVALS)
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_fields_of_records(
    case: str, block: int, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, names = RIVALS[case]
    many = [
        {key: f"{value}-{n}" if key in ("query", "id", "query_id") else value for key, value in one}
        for n in range(3)
        for one in (record.items() for record in records)
    ]
    monkeypatch.setattr(source, "BLOCK", block)
    for given in (many, save("s.jsonl", jsonl(many)), save("s.json", json.dumps(many))):
        found = [each for each in load_samples(given).gold.findings if each.kind == "two-names"]
        assert [(each.count, each.examples) for each in found] == [
            (3, (other,)) for _, other in names
        ]
        assert all(
            repr(chosen) in each.message for each, (chosen, _) in zip(found, names, strict=True)
        )
        run = load_run(given).collect().findings
        assert len([each for each in run if each.kind == "two-names"]) == len(
            [1 for chosen, _ in names if chosen != "docs"]
        )


TABLES: dict[str, tuple[dict[str, list[Any]], list[tuple[str, tuple[str, ...]]]]] = {
    "documents": ({"doc_id": ["a", "b"], "docno": ["b", "a"]}, [("doc_id", ("docno",))]),
    "chunks": ({"chunk_id": ["b", "a"], "doc_id": ["a", "b"]}, [("doc_id", ("chunk_id",))]),
    "scores": (
        {"doc": ["a", "b"], "score": [2, 1], "similarity": [1, 2]},
        [("score", ("similarity",))],
    ),
    "queries": (
        {"doc": ["a", "b"], "query_id": ["q", "q"], "query": ["Why?", "Why?"]},
        [("query_id", ("query",))],
    ),
    "ranks that count": (
        {"doc": ["a", "b"], "rank": [1, 2], "position": [2, 1]},
        [("rank", ("position",))],
    ),
    "ranks that do not": (
        {"doc": ["a", "b"], "score": [2, 1], "rank": [1, 2], "position": [2, 1]},
        [],
    ),
    "upper and lower case": ({"Doc": ["a", "b"], "doc": ["b", "a"]}, [("Doc", ("doc",))]),
}
FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "polars": pl.DataFrame,
    "pandas": lambda columns: pd.DataFrame(data=columns),
}


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("form", ["polars", "pandas", "csv", "parquet"])
def test_columns_of_tables(case: str, form: str, save: Save) -> None:
    columns, names = TABLES[case]
    table = columns if "query_id" in columns else {"query": ["q", "q"], **columns}
    run: Any
    if form in FRAMES:
        run = FRAMES[form](table)
    else:
        run = save(f"run.{form}", delimited(table))
        if form == "parquet":
            pl.DataFrame(table).write_parquet(run)
    result = findwell.evaluate(run, {"q": ["a"]}, ["RR"])
    assert result["RR"] == 1
    found = [each for each in result.findings if each.kind == "two-names"]
    assert [(each.count, each.examples) for each in found] == [(1, other) for _, other in names]
    assert all(repr(chosen) in each.message for each, (chosen, _) in zip(found, names, strict=True))
    gold = load_gold(run)
    assert len([each for each in gold.findings if each.kind == "two-names"]) == sum(
        chosen not in ("score", "rank") for chosen, _ in names
    )


def test_two_columns_of_the_same_name(save: Save) -> None:
    frame = pd.DataFrame([["q", "a", "b"]], columns=["query", "doc", "doc"])
    for run in (frame, save("run.csv", "query,doc,doc\nq,a,b\n")):
        result = findwell.evaluate(run, {"q": ["a"]}, ["RR"])
        assert result["RR"] == 1
        assert [(each.kind, each.examples) for each in result.findings] == [("two-names", ("doc",))]


@pytest.mark.parametrize("grades", [{"label": [1], "score": [0]}, {"grade": [1], "sim": [0]}])
def test_a_score_beside_the_grade_is_no_grade(grades: dict[str, list[int]]) -> None:
    gold = load_gold(pl.DataFrame({"query": ["q"], "doc": ["a"], **grades}))
    assert gold.rows()["grade"].to_list() == [1]
    assert not gold.findings

"""Results of retrieval frameworks: every source, as objects, dicts and JSON, reads the same.

The real frameworks are asked in tests/frameworks; here stand the fields that they have.
"""

from __future__ import annotations

import json
import sqlite3
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError, InputError
from findwell.io.read.format import EntryNotes
from findwell.io.read.objects import (
    ObjectSource,
    entries_of,
    known_sources,
    register_source,
)
from findwell.io.read.traces.span import TakenParts
from findwell.io.read.vocabulary import tools
from tests.lazy import lazy
from tests.members import quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.conftest import Findwell, Save

pd = lazy("pandas")
IDS = ["7", "3", "5"]
TEXTS = ["It lasts six hours.", "Charge it first.", "Press the red button."]
FALLING, RISING = (0.9, 0.4, 0.1), (0.1, 0.4, 0.9)
NO_BLOB = {"blob": None, "embedding": None}


def _each(make: Callable[[str, str, float], Any], scores: tuple[float, ...] = FALLING) -> list[Any]:
    return [make(*each) for each in zip(IDS, TEXTS, scores, strict=True)]


def _node(doc: str, text: str) -> dict[str, Any]:
    related = {"1": {"node_id": "guide"}}
    return {"id_": doc, "text": text, "metadata": {"page": 1}, "relationships": related}


# what each source answers to one query: three results, as a client gives them or as JSON
ANSWERS: dict[str, Any] = {
    "langchain": _each(lambda doc, text, _: {"id": doc, "page_content": text, "metadata": {}}),
    "langchain-dump": _each(
        lambda doc, text, _: {
            "lc": 1,
            "id": ["langchain", "schema", "document", "Document"],
            "kwargs": {"id": doc, "page_content": text, "metadata": {}},
        }
    ),
    "langchain, scored": _each(
        lambda doc, text, score: [{"id": doc, "page_content": text, "metadata": {}}, score], RISING
    ),
    "langchain, a chain": {
        "input": "?",
        "context": _each(lambda doc, text, _: {"id": doc, "page_content": text, "metadata": {}}),
        "answer": "…",
    },
    "llama-index": _each(lambda doc, text, score: {"node": _node(doc, text), "score": score}),
    "llama-index-node": _each(lambda doc, text, _: _node(doc, text)),
    "llama-index, a response": {
        "response": "…",
        "source_nodes": _each(lambda doc, text, score: {"node": _node(doc, text), "score": score}),
    },
    "haystack": _each(
        lambda doc, text, score: {"id": doc, "content": text, "meta": {}, "score": score, **NO_BLOB}
    ),
    "haystack, a pipeline": {
        "retriever": {
            "documents": _each(
                lambda doc, text, score: {"id": doc, "content": text, "score": score, **NO_BLOB}
            )
        }
    },
    "qdrant": {
        "points": _each(
            lambda doc, text, score: {"id": int(doc), "score": score, "payload": {"text": text}}
        )
    },
    "qdrant, euclid": _each(
        lambda doc, text, score: {"id": int(doc), "score": score, "payload": {"text": text}}, RISING
    ),
    "qdrant, groups": {
        "groups": _each(
            lambda doc, text, score: {
                "id": "g",
                "hits": [{"id": int(doc), "score": score, "payload": {"text": text}}],
            }
        )
    },
    "elasticsearch": {
        "took": 3,
        "hits": {
            "total": {"value": 3},
            "hits": _each(
                lambda doc, text, score: {
                    "_index": "i",
                    "_id": doc,
                    "_score": score,
                    "_source": {"content": text},
                }
            ),
        },
    },
    "weaviate": {
        "objects": _each(
            lambda doc, text, score: {
                "uuid": doc,
                "metadata": {"distance": score, "score": None, "certainty": None},
                "properties": {"text": text},
            },
            RISING,
        )
    },
    "pinecone": {
        "matches": _each(
            lambda doc, text, score: {
                "id": doc,
                "score": score,
                "values": [],
                "metadata": {"text": text},
            }
        ),
        "namespace": "",
    },
    "pinecone-search-json": {
        "result": {
            "hits": _each(
                lambda doc, text, score: {
                    "_id": doc,
                    "_score": score,
                    "fields": {"chunk_text": text},
                }
            )
        },
        "usage": {},
    },
    "pinecone-search": {
        "result": {
            "hits": _each(
                lambda doc, text, score: {
                    "id": doc,
                    "score": score,
                    "fields": {"chunk_text": text},
                }
            )
        }
    },
    "pinecone-search-dict": _each(
        lambda doc, text, score: {"id_": doc, "score_": score, "fields": {"chunk_text": text}}
    ),
    "milvus": [
        _each(
            lambda doc, text, score: {
                "my_key": int(doc),
                "distance": score,
                "entity": {"text": text},
            }
        )
    ],
    "chroma": {
        "ids": [IDS],
        "distances": [list(RISING)],
        "documents": [TEXTS],
        "metadatas": [[{"page": 1}, None, {"page": 3}]],
        "embeddings": None,
    },
    "chroma, one query": {"ids": IDS, "documents": TEXTS, "metadatas": None},
    "lancedb": _each(
        lambda doc, text, score: {"id": doc, "text": text, "_distance": score, "vector": [1.0]},
        RISING,
    ),
    "azure": {
        "value": _each(
            lambda doc, text, score: {
                "@search.score": score,
                "@search.reranker_score": None,
                "id": doc,
                "content": text,
            }
        )
    },
    "pgvector": _each(
        lambda doc, text, score: {"id": int(doc), "content": text, "distance": score}, RISING
    ),
    "pgvector, tuples": _each(lambda doc, text, score: [int(doc), text, score], RISING),
    "txtai": _each(lambda doc, text, score: {"id": doc, "text": text, "score": score}),
    "dspy": {"passages": TEXTS, "indices": [7, 3, 5]},
    "chunk_id": _each(lambda doc, text, score: {"chunk_id": doc, "body": text, "score": score}),
    "doc_id": _each(lambda doc, text, _: {"doc_id": doc, "passage": text}),
}
DICTS = {"milvus", "haystack, a pipeline"}  # which are never objects
TUPLES = {"milvus", "pgvector, tuples"}  # which would be groups of a gold


def _as_object(value: Any) -> Any:
    """Turn dicts with names that attributes may have into objects, but not those of users."""
    own = {"payload", "metadata", "meta", "properties", "fields", "_source", "entity", "kwargs"}
    if isinstance(value, list):
        return [_as_object(each) for each in value]
    if not isinstance(value, dict):
        return value
    return SimpleNamespace(
        **{
            name: each
            if name in own and not {"distance", "score"} & set(each or ())
            else _as_object(each)
            for name, each in value.items()
        }
    )


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("form", ["dict", "json", "object"])
def test_every_source_gives_ids_texts_and_falling_scores(name: str, form: str) -> None:
    answer = ANSWERS[name]
    if form == "json":
        answer = json.loads(json.dumps(answer))
    if form == "object" and name not in DICTS:
        answer = _as_object(answer)
    notes = EntryNotes()
    found = entries_of(answer, notes=notes)
    assert [entry["doc"] for entry in found] == IDS
    assert [entry["text"] for entry in found] == TEXTS
    scores = [entry["score"] for entry in found if "score" in entry]
    assert scores == sorted(scores, reverse=True)
    assert {abs(score) for score in scores} in (set(), set(FALLING))
    assert not notes.findings()


def test_every_declared_source_and_response_is_tested() -> None:
    names = {name.partition(",")[0] for name in ANSWERS}
    assert set(known_sources()) <= names
    assert set(tools()["columns"]) <= names
    tested = json.dumps(ANSWERS)
    lacking = [path for path in tools()["responses"] if f'"{path.split(".")[-1]}"' not in tested]
    assert lacking == ["source_documents"]


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("by", quick([None, "exact"], None))
def test_the_same_data_gives_the_same_values(name: str, by: str | None, save: Save) -> None:
    """As ids, dicts, objects, records, and JSON and JSON lines in files."""
    answer = ANSWERS[name]
    gold: Any = {"q1": [{"doc": "3", "text": TEXTS[1]}, {"doc": "5", "text": TEXTS[2]}]}
    plain = [{"doc": doc, "text": text} for doc, text in zip(IDS, TEXTS, strict=True)]
    record = {"query": "q1", "retrieved": answer}
    runs: list[Any] = [
        {"q1": plain},
        [record],
        save("records.json", json.dumps([record])),
        save("run.jsonl", json.dumps(record) + "\n"),
    ]
    if name != "haystack, a pipeline":  # which looks like a run by query
        runs += [{"q1": answer}, save("run.json", json.dumps({"q1": answer}))]
    if name not in DICTS:
        runs += [[{"query": "q1", "retrieved": _as_object(answer)}]]
    names = ["RR", "AP", "nDCG@2", "P@2"]
    values = [findwell.evaluate(run, gold, names, by=by).values for run in runs]
    assert values == [values[0]] * len(runs)
    assert values[0]["RR"] == 0.5


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in TUPLES])
def test_gold_and_corpus_take_the_same_objects(name: str) -> None:
    answer = ANSWERS[name]
    for given in (answer, answer if name in DICTS else _as_object(answer)):
        loaded = findwell.io.load_gold([{"query": "q1", "gold": given}], texts=True)
        assert sorted(loaded.rows()["doc"]) == sorted(IDS)
        assert set(loaded.rows()["text"]) == set(TEXTS)
        if name in {"langchain, scored", "haystack, a pipeline"}:
            continue
        corpus = findwell.io.load_corpus(given)
        assert corpus.select("doc", "text").rows() == list(zip(IDS, TEXTS, strict=True))


def _documents(**metadata: str) -> list[dict[str, Any]]:
    return [
        {"id": None, "page_content": text, "metadata": {"source": f"{doc}.md"} | metadata}
        for doc, text in zip(IDS, TEXTS, strict=True)
    ]


def test_ids_come_from_the_field_that_is_named(save: Save, cli: Findwell) -> None:
    gold = {"q1": ["3.md"]}
    found = findwell.evaluate(
        {"q1": _documents()}, gold, "RR", reading=findwell.Reading(id_from="metadata.source")
    )
    assert found["RR"] == 0.5
    assert not found.findings
    run = save("run.json", json.dumps({"q1": _documents()}))
    path = save("gold.json", json.dumps(gold))
    arguments = ("score", run, "--gold", path, "-m", "RR", "--format", "csv")
    assert ",RR,0.5," in cli(*arguments, "--read", "id_from=metadata.source").out
    done = cli(*arguments)
    assert done.code == 2
    assert "the gold names documents as the field source of the run does" in done.err
    assert ",RR,0.0," in cli(*arguments, "--by", "ids").out


@pytest.mark.parametrize(
    ("answer", "id_from"),
    [
        ([{"id": "x", "payload": {"doc": {"url": "3"}}, "score": 1}], "payload.doc.url"),
        ([{"id": "x", "payload": {"url": "3"}, "score": 1}], "metadata.url"),
        ([{"id": "x", "payload": {"url": "3"}, "score": 1}], "url"),
        ([{"id": "x", "payload": {"a.url": "3"}, "score": 1}], "payload.a.url"),
        ([{"id": "x", "content": "…", "url": "3", **NO_BLOB}], "meta.url"),
        ([({"id": "x", "page_content": "…", "metadata": {"url": 3}}, 0.5)], "metadata.url"),
        (
            [{"node": {"id_": "x", "text": "…", "metadata": {"url": "3"}}, "score": 1}],
            "metadata.url",
        ),
        ([{"serial": 3, "words": "…"}], "serial"),
    ],
)
def test_the_field_of_the_id_may_be_named_in_several_ways(answer: object, id_from: str) -> None:
    assert [entry["doc"] for entry in entries_of(answer, id_from=id_from)] == ["3"]


def test_a_named_field_that_is_missing_is_an_error() -> None:
    with pytest.raises(InputError, match=r"no 'metadata.url'.* holds source \(query 'q1'\)"):
        findwell.io.load_run({"q1": _documents()}, id_from="metadata.url")


def test_ids_and_own_entries_need_no_named_field() -> None:
    gold: Any = {"q1": ["3.md", {"doc": "x", "grade": 0}]}
    assert (
        findwell.evaluate(
            {"q1": _documents()}, gold, "RR", reading=findwell.Reading(id_from="metadata.source")
        )["RR"]
        == 0.5
    )
    saved = [{"doc": "text-1", "text": "…", "metadata": {"source": "3.md"}}]
    assert (
        findwell.evaluate(
            {"q1": saved}, gold, "RR", reading=findwell.Reading(id_from="metadata.source")
        )["RR"]
        == 1
    )


def test_an_id_in_the_metadata_serves_and_a_finding_says_so() -> None:
    given = [{"page_content": "…", "metadata": {"chunk_id": doc, "source": "guide"}} for doc in IDS]
    found = findwell.evaluate({"q1": given}, {"q1": ["3"]}, "RR")
    assert found["RR"] == 0.5
    (finding,) = found.findings
    assert (finding.kind, finding.count) == ("id-from-metadata", 3)
    assert "metadata.chunk_id" in finding.message


def test_an_id_that_counts_the_chunks_of_each_document_is_refused() -> None:
    def chunk(text: str, source: str) -> dict[str, Any]:
        return {"page_content": text, "metadata": {"chunk_id": 0, "source": source}}

    run = {"q1": [chunk("One.", "a.md")], "q2": [chunk("Two.", "b.md")]}
    with pytest.raises(InputError, match=r"chunk_id is '0' in chunks of 'a.md' and of 'b.md'"):
        findwell.evaluate(run, {"q1": ["0"], "q2": ["0"]}, "RR")
    same = {"q1": [chunk("One.", "a.md")], "q2": [chunk("One.", "copy.md")]}  # a hash, perhaps
    assert findwell.evaluate(same, {"q1": ["0"], "q2": ["0"]}, "RR")["RR"] == 1
    named = findwell.Reading(id_from="metadata.chunk_id")
    assert findwell.evaluate(run, {"q1": ["0"], "q2": ["0"]}, "RR", reading=named)["RR"] == 1


def test_chunks_that_lost_their_ids_are_refused_where_the_gold_has_ids() -> None:
    run = {
        "q1": [{"id": "a", "page_content": "One.", "metadata": {}}],
        "q2": [{"id": None, "page_content": "Two.", "metadata": {}}],
    }
    with pytest.raises(AlignError, match=r"1 retrieved object has no id.*'Two\.'"):
        findwell.evaluate(run, {"q1": ["a"], "q2": ["b"]}, "RR")
    assert findwell.evaluate(run, {"q1": ["a"], "q2": ["b"]}, "RR", by="ids")["RR"] == 0.5
    gold = {"q1": ["a"], "q2": run["q2"]}  # which has lost the same
    assert findwell.evaluate(run, gold, "RR")["RR"] == 1


def test_a_column_is_refused_since_its_index_may_hold_the_ids() -> None:
    scores = pd.Series({"x": 1, "a": 2})
    records = [{"query": "q1", "retrieved": scores}, {"query": "q2", "retrieved": ["c"]}]
    for run in ({"q1": scores}, {"q1": pl.Series(["a"])}, scores, records):
        with pytest.raises(InputError, match=r"Series is|of type pandas\.Series, not a list"):
            findwell.evaluate(run, {"q1": ["a"], "q2": ["c"]}, "RR")


def test_without_an_id_the_text_serves_and_a_finding_says_so() -> None:
    gold = {"q1": [_documents()[1]]}
    found = findwell.evaluate({"q1": _documents()}, gold, "RR")
    assert found["RR"] == 0.5
    counted = {(each.run, each.kind): each.count for each in found.findings}
    assert counted == {("", "text-as-id"): 1, ("run", "text-as-id"): 3, ("run", "only-ids"): 1}
    assert "A hash of the text" in found.findings[0].message
    # where texts are compared, ids do not matter
    assert not findwell.evaluate({"q1": _documents()}, gold, "RR", by="exact").findings


def test_equal_texts_have_equal_ids_wherever_they_stand() -> None:
    corpus = findwell.io.load_corpus(_documents())
    assert corpus["doc"].to_list() == [each["doc"] for each in entries_of(_documents())]


def test_scores_never_reorder() -> None:
    mixed = [(doc, score) for doc, score in zip(IDS, (0.1, 0.9, 0.5), strict=True)]
    assert [(each["doc"], each["score"]) for each in entries_of(mixed)] == mixed
    for dialect in ("findwell", "trec_eval"):
        values = findwell.evaluate({"q1": mixed}, {"q1": ["7"]}, "RR", dialect=dialect)
        assert values["RR"] == 1


@pytest.mark.parametrize(
    ("metadata", "span"),
    [
        ({"source": "guide.md", "start_index": 17}, (17, 36)),
        ({"source": "guide.md", "start_char_idx": 17, "end_char_idx": 30}, (17, 30)),
        ({"source": "guide.md", "start": "2024-01-01"}, None),
    ],
)
def test_offsets_become_spans(metadata: Mapping[str, Any], span: tuple[int, int] | None) -> None:
    (entry,) = entries_of([{"page_content": TEXTS[0], "metadata": metadata}])
    assert entry["source"] == "guide.md"
    assert (entry["start"], entry["end"]) == span if span else "start" not in entry


def test_fields_of_texts_hold_objects() -> None:
    """Objects without ids are compared with bare texts; with ids, by id."""
    record = {"user_input": "?", "retrieved_contexts": _documents()}
    by_text = [record | {"reference_contexts": [TEXTS[1]]}]
    assert findwell.evaluate(by_text, measures="RR")["RR"] == 0.5
    assert findwell.evaluate(by_text, measures="RR", by="exact")["RR"] == 0.5
    known = [each | {"id": doc} for doc, each in zip(IDS, _documents(), strict=True)]
    samples = [record | {"retrieved_contexts": known}]
    found = findwell.evaluate(samples, {"?": ["3"]}, "RR")
    assert found["RR"] == 0.5
    assert "text-as-id" not in {each.kind for each in found.findings}
    both = [record | {"retrieved_contexts": known, "reference_contexts": [known[2]]}]
    assert findwell.evaluate(both, measures="RR")["RR"] == pytest.approx(1 / 3)
    assert findwell.evaluate(both, measures="RR", by="exact")["RR"] == pytest.approx(1 / 3)
    assert findwell.evaluate(
        both, measures="RR", reading=findwell.Reading(id_from="metadata.source")
    )["RR"] == (pytest.approx(1 / 3))


@pytest.mark.parametrize("lacking", ["retrieved_contexts", "reference_contexts"])
def test_where_an_object_lacks_its_id_both_sides_are_texts(lacking: str) -> None:
    """Ids of one side never equal texts of the other."""
    known = [each | {"id": doc} for doc, each in zip(IDS, _documents(), strict=True)]
    record = {"user_input": "?", "retrieved_contexts": known, "reference_contexts": known[1:]}
    record[lacking] = [*record[lacking][:-1], _documents()[-1]]
    assert findwell.evaluate([record], measures="recall")["recall"] == 1.0
    assert findwell.evaluate([record], measures="RR")["RR"] == 0.5


def test_groups_of_the_gold_hold_objects() -> None:
    one, two, three = ({"id": doc, "content": "…", **NO_BLOB} for doc in IDS)
    gold = findwell.io.load_gold(
        {"q1": [[one, two], [(three, 0.5)], {**one, "id": "9", "grade": 2}]}
    )
    assert sorted(gold.rows().select("doc", "grade").rows()) == [
        ("3", 1.0),
        ("5", 1.0),
        ("7", 1.0),
        ("9", 2.0),
    ]
    assert len(gold.item_grade) == 3


class Row(NamedTuple):
    """A row of a database."""

    id: int
    content: str
    distance: float


def test_rows_of_databases() -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    row = connection.execute("SELECT 7 AS id, 'Six hours.' AS content, 0.5 AS distance").fetchone()
    named = Row(7, "Six hours.", 0.5)
    for each in (row, named, (7, "Six hours.", -0.5)):
        assert entries_of([each]) == [{"doc": "7", "text": "Six hours.", "score": -0.5}]
    connection.close()


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "arrow"])
def test_tables_of_hits(kind: str) -> None:
    table = pl.DataFrame({"id": IDS, "text": TEXTS, "_distance": RISING})
    given: Any = {
        "polars": lambda: table,
        "lazy": table.lazy,
        "pandas": table.to_pandas,
        "arrow": table.to_arrow,
    }[kind]()
    assert [each["doc"] for each in entries_of(given)] == IDS
    assert findwell.evaluate({"q1": given}, {"q1": ["3"]}, "RR")["RR"] == 0.5


def test_other_iterables() -> None:
    def answer() -> Iterator[dict[str, Any]]:
        yield from ANSWERS["azure"]["value"]

    assert [each["doc"] for each in entries_of(answer())] == IDS
    assert findwell.evaluate({"q1": answer()}, {"q1": ["3"]}, "RR")["RR"] == 0.5
    assert entries_of([UUID(int=1), 7, "x"])[0] == {"doc": str(UUID(int=1))}
    assert entries_of(None) == entries_of([]) == []
    (entry,) = entries_of({"passages": ["bare"]})
    assert entry["text"] == "bare"


def test_models_of_pydantic_read_as_objects() -> None:
    pydantic: Any = pytest.importorskip("pydantic")

    class Closed(pydantic.BaseModel):  # type: ignore[misc]
        id: str
        text: str
        _score: float = 0.25

        @property
        def source(self) -> str:
            return f"{self.id}.md"

    class Open(pydantic.BaseModel):  # type: ignore[misc]
        model_config = pydantic.ConfigDict(extra="allow")
        id: str

    given = {"id": "7", "text": TEXTS[0], "source": "7.md"}
    results = [Closed(id="7", text=TEXTS[0]), Open(**given, _score=0.25), Open(**given)]
    results[0].__dict__["start"] = 2  # as `object.__setattr__` does
    scored = {"doc": "7", **given, "score": 0.25}
    del scored["id"]
    placed = {"start": 2, "end": 2 + len(TEXTS[0])}
    bare = {name: value for name, value in scored.items() if name != "score"}
    assert entries_of(results) == [scored | placed, scored, bare]


class Unknown:
    """Nothing that a retriever gives."""

    def __repr__(self) -> str:
        return "<unknown>"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([Unknown()], r"test_objects.Unknown is not an id.*<unknown>"),
        (Unknown(), r"test_objects.Unknown is not an id"),
        ([{"colour": "red"}], "dict is not an id.* only colour"),
        ([{"id": None, "payload": {"page": 1}}], "no id and no text, only id, payload"),
        ([("a", "b", "c", 4)], "not an id, and no document with its score"),
        ([[{"doc": "a"}], [{"doc": "b"}]], "answers to 2 queries"),
        ({"ids": [["a"], ["b"]], "documents": None}, "answers to 2 queries"),
        ([{"id": 0.5, "content": "…", **NO_BLOB}], "'0.5' is not an id"),
    ],
)
def test_what_cannot_be_read(answer: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        entries_of(answer)
    assert caught.value.fix


def test_the_error_of_an_evaluation_names_the_query() -> None:
    with pytest.raises(InputError, match=r"test_objects.Unknown is not an id.*\(query 'q1'\)"):
        findwell.evaluate({"q1": [Unknown()]}, {"q1": ["a"]})
    with pytest.raises(InputError, match=r"is one dict, not a list \(query 'q1'\)"):
        findwell.evaluate([{"query": "q1", "retrieved": _documents()[0]}], {"q1": ["a"]})


def test_several_runs_of_objects_are_told_from_answers() -> None:
    run = {"q1": ANSWERS["elasticsearch"]}
    found = findwell.evaluate({"a": run, "b": {"q1": ["3"]}}, {"q1": ["3"]}, "RR")
    assert found.summary["value"].to_list() == [0.5, 1.0]


def test_a_source_of_your_own() -> None:
    source = ObjectSource(
        "acme", needs=("ref", "words"), doc=("ref",), text=("words",), score=(("far", "lower"),)
    )
    register_source(source)
    found = entries_of([{"ref": "a", "words": "…", "far": 0.5}])
    assert found == [{"doc": "a", "text": "…", "score": -0.5}]


def test_every_search_of_several_may_hold_objects() -> None:
    """Hops are records of their own, and no results."""
    document = {"page_content": "It lasts.", "metadata": {"source": "a.md"}, "id": "b"}
    for second in ({"query": "then", "retrieved": [document]}, [document]):
        record = {"query": "q", "hops": [{"query": "first", "retrieved": ["a", "x"]}, second]}
        result = findwell.evaluate([{**record, "gold": ["a", "b", "c"]}], measures=["recall"])
        assert result["recall"] == pytest.approx(2 / 3)


def test_chunks_with_offsets_are_places_in_their_documents(save: Save) -> None:
    """In every form; the id of a chunk says nothing about its document."""
    node: dict[str, Any] = {
        "id_": "chunk-9",
        "text": "lasts six hours",
        "relationships": {},
        "metadata": {},
    }
    node |= {"ref_doc_id": "guide", "start_char_idx": 3, "end_char_idx": 18}
    cut = {"source": "guide", "start_index": 3}
    document = {"id": "chunk-9", "page_content": "lasts six hours", "metadata": cut}
    own = {"doc": "chunk-9", "source": "guide", "start": 3, "end": 18}
    other = {"doc": "chunk-1", "source": "other", "start": 3, "end": 18}
    gold: Any = {"q1": [{"doc": "guide", "start": 5, "end": 15}]}
    for entry in (document, {"node": node, "score": 1.0}, _as_object(node), own):
        runs: list[Any] = [{"q1": [other, entry]}, [{"query": "q1", "retrieved": [other, entry]}]]
        if entry is not node and not isinstance(entry, SimpleNamespace):
            line = json.dumps({"query": "q1", "retrieved": [other, entry]}) + "\n"
            runs.append(save("run.jsonl", line))
        for run in runs:
            assert findwell.evaluate(run, gold, "RR", by="spans")["RR"] == 0.5
        found = findwell.evaluate(
            {"q1": [{"doc": "guide", "start": 0, "end": 20}]}, {"q1": [entry]}, "RR", by="spans"
        )
        assert found["RR"] == 1


@pytest.mark.parametrize("name", ANSWERS)
def test_entries_are_read_as_they_are(name: str) -> None:
    """What was saved reads the same again, scores whose sign was turned included."""
    entries = entries_of(ANSWERS[name])
    assert entries_of(entries) == entries_of(json.loads(json.dumps(entries))) == entries


def test_a_chunk_without_an_id_is_known_by_its_place() -> None:
    def chunk(**metadata: object) -> dict[str, object]:
        return {"page_content": "…", "metadata": metadata}

    def ids(*found: dict[str, object]) -> list[str]:
        return [entry["doc"] for entry in entries_of(list(found))]

    assert ids(chunk(source="a.md", start_index=0), chunk(source="a.md", start_index=90)) == [
        "a.md:0",
        "a.md:90",
    ]
    # the id of the document is not that of the chunk; one of its own is
    assert ids(chunk(document_id="a", start_index=7)) == ["a:7"]
    assert ids(chunk(document_id="a", chunk_id="c3", start_index=7)) == ["c3"]
    assert ids(chunk(document_id="a")) == ["a"]
    notes = EntryNotes()
    same = [
        chunk(source="a", start_index=0),
        {**chunk(source="a", start_index=0), "page_content": "x"},
    ]
    entries_of(same, notes=notes)
    assert [each.kind for each in notes.findings()] == ["shared-id"]


def test_traces_name_chunks_as_objects_do() -> None:
    parts = TakenParts()
    metadata = {"source": "a.md", "start_index": 90}
    assert parts.document(0, "s", text="…", metadata=metadata).id == "a.md:90"
    assert parts.document(0, "s", text="…", metadata={"source": "a.md"}).id.startswith("text-")
    assert parts.document(0, "s", text="…", metadata={"doc_id": "a", "start": 1}).id == "a:1"

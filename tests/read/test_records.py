"""findwell's own records: one JSON object a query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import InputError
from tests import sample
from tests.sample import jsonl, ranked, score
from tests.strategies import by_measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Save

Records = list[dict[str, Any]]

RETRIEVED: dict[str, Callable[[str, list[str]], list[Any]]] = {
    "strings": lambda _, docs: docs,
    "objects": lambda _, docs: [{"doc": doc} for doc in docs],
    "objects with scores": lambda q, docs: [{"doc": d, "score": sample.RUN[q][d]} for d in docs],
    "objects with texts": lambda _, docs: [{"doc": doc, "text": f"about {doc}"} for doc in docs],
    "id instead of doc": lambda _, docs: [{"id": doc} for doc in docs],
    "mixed": lambda _, docs: [docs[0], *({"doc": doc, "score": 1} for doc in docs[1:])],
    "scores that contradict": lambda _, docs: [{"doc": d, "score": i} for i, d in enumerate(docs)],
}
GRADED: dict[str, Callable[[dict[str, int]], Any]] = {
    "mapping": dict,
    "objects with docs": lambda gold: [{"docs": [d], "grade": g} for d, g in gold.items()],
    "objects with one doc": lambda gold: [{"doc": d, "grade": g} for d, g in gold.items()],
    "objects with a relevance": lambda gold: [{"doc": d, "relevance": g} for d, g in gold.items()],
    "objects with an id and a label": lambda gold: [{"id": d, "label": g} for d, g in gold.items()],
    "grades as texts": lambda gold: [{"doc": d, "rel": str(g)} for d, g in gold.items()],
    "docs without a list": lambda gold: [{"docs": d, "grade": float(g)} for d, g in gold.items()],
}


def _records(retrieved: str = "strings", gold: str = "mapping") -> Records:
    return [
        {
            "query": query,
            "question": f"what about {query}?",
            "retrieved": RETRIEVED[retrieved](query, docs),
            "gold": GRADED[gold](sample.GOLD[query]),
        }
        for query, docs in ranked().items()
    ]


@pytest.mark.parametrize(
    ("retrieved", "gold"),
    [
        pytest.param(
            *(retrieved, gold),
            # each in turn with one of the others
            marks=() if (ours - theirs) % len(GRADED) in (0, 3) else pytest.mark.slow,
        )
        for ours, retrieved in enumerate(RETRIEVED)
        for theirs, gold in enumerate(GRADED)
    ],
)
def test_records_hold_run_and_gold(retrieved: str, gold: str, save: Save) -> None:
    records = _records(retrieved, gold)
    path = save("samples.jsonl", jsonl(records))
    expected = score(sample.RUN)
    assert score(path, None) == expected
    assert score(records, None) == expected
    assert score(path, path) == expected
    assert score(sample.RUN, path) == expected
    assert score(path) == expected


LAYOUTS: dict[str, Callable[[Records], bytes]] = {
    "lines": lambda records: jsonl(records).encode(),
    "ascii": lambda records: "\n".join(map(json.dumps, records)).encode(),
    "carriage returns": lambda records: jsonl(records).replace("\n", "\r\n").encode(),
    "blank lines": lambda records: b"\n  \n" + jsonl(records).replace("\n", "\n\n").encode(),
    "byte-order mark": lambda records: b"\xef\xbb\xbf" + jsonl(records).encode(),
    "gzip": lambda records: sample.gzipped(jsonl(records), members=3),
    "a JSON list": lambda records: json.dumps(records, indent=2).encode(),
    "a JSON list on one line": lambda records: json.dumps(records).encode(),
    "a JSON list with a mark": lambda r: b"\xef\xbb\xbf" + json.dumps(r).encode(),
}


@pytest.mark.parametrize("name", ["records.jsonl", "records.json", "records", "records.txt"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_under_every_name(layout: str, name: str, save: Save) -> None:
    path = save(name, LAYOUTS[layout](_records()))
    assert score(path, None) == score(sample.RUN)
    assert score(path, path) == score(sample.RUN)


@pytest.mark.parametrize(
    "gold",
    [
        ["d1", ["d2", "d3"]],
        ["d1", ("d3", "d2")],
        [["d1"], {"docs": ["d2", "d3"]}],
        [{"docs": ["d1"], "grade": 1}, {"docs": ["d3", "d2"], "grade": 1.0}],
    ],
    ids=repr,
)
def test_and_of_ors(gold: list[Any], save: Save) -> None:
    run = {"q1": ["d3", "x", "d2", "d1"]}
    result = findwell.evaluate(run, {"q1": gold}, ["recall@1", "recall", "AP", "P@3"])
    # d3 satisfies the pair at rank 1; d2 adds nothing to it
    assert result["recall@1"] == 0.5
    assert result["recall"] == 1
    path = save("gold.jsonl", jsonl([{"query": "q1", "gold": gold}]))
    assert score(run, path) == score(run, {"q1": gold})


@pytest.mark.parametrize("gold", ["d1", ["d1"], ("d1",), {"d1"}, {"d1": 1}, [["d1"]]], ids=repr)
def test_one_relevant_document_in_every_spelling(gold: Any) -> None:
    assert score({"q1": ["x", "d1"]}, [{"query": "q1", "gold": gold}]) == score(
        {"q1": ["x", "d1"]}, {"q1": {"d1": 1}}
    )


def test_a_set_lists_documents_that_are_all_needed() -> None:
    assert findwell.evaluate({"q1": ["a"]}, {"q1": {"a", "b"}}, ["recall"])["recall"] == 0.5


def test_further_fields_describe_the_queries(save: Save) -> None:
    records = [
        {"query": 1, "retrieved": ["a"], "gold": ["a"], "topic": "x", "hops": 1, "tags": ["t"]},
        {"query": 2, "retrieved": ["a"], "gold": ["b"], "topic": "y", "reference": "so"},
        {"query": 3, "retrieved": ["a"], "gold": ["a"], "topic": "y", "hops": 2},
    ]
    path = save("samples.jsonl", jsonl(records))
    result = findwell.evaluate(path, measures=["P@1"])
    columns = ["query", "topic", "hops", "tags", "reference"]
    assert sorted(result.queries.columns) == sorted(columns)
    by_topic = {row["slice"]: row["value"] for row in result.by("topic").iter_rows(named=True)}
    assert by_topic == {"x": 1.0, "y": 0.5}
    by_hops = {row["slice"]: row["value"] for row in result.by("hops").iter_rows(named=True)}
    assert by_hops == {"1": 1.0, "2": 1.0, None: 0.0}


def test_fields_of_several_types_become_text() -> None:
    records = [
        {"query": "a", "retrieved": ["x"], "gold": ["x"], "level": 1},
        {"query": "b", "retrieved": ["x"], "gold": ["x"], "level": "hard"},
        {"query": "c", "retrieved": ["x"], "gold": ["x"], "level": {"deep": True}},
    ]
    result = findwell.evaluate(records, measures=["P@1"])
    assert result.by("level")["slice"].to_list() == ["1", "hard", '{"deep": true}']


def test_records_without_a_query_are_numbered(save: Save) -> None:
    path = save("s.jsonl", jsonl([{"retrieved": ["a"], "gold": ["a"]} for _ in range(3)]))
    result = findwell.evaluate(path, measures=["P@1"])
    assert by_measure(result)["P@1"] == {"1": 1.0, "2": 1.0, "3": 1.0}


def test_a_long_line_is_a_line(save: Save) -> None:
    docs = [f"doc-{number:06}" for number in range(30_000)]
    record = {"query": "q1", "retrieved": docs, "gold": docs[:1]}
    for name, content in (
        ("a.jsonl", json.dumps(record).encode()),
        ("b.jsonl", jsonl([record]).encode()),
        ("c.jsonl.gz", sample.gzipped(jsonl([record]))),
        ("d.jsonl.gz", sample.gzipped(json.dumps(record), members=2)),
    ):
        assert findwell.evaluate(save(name, content), measures=["RR"])["RR"] == 1


WRONG: dict[str, tuple[Any, str]] = {
    "retrieved is a string": ({"retrieved": "d1"}, "is of type str, not a list"),
    "retrieved is a number": ({"retrieved": 5}, "is of type int, not a list"),
    "retrieved is a mapping": ({"retrieved": {"d1": 1.0}}, "is of type dict, not a list"),
    "retrieved is missing": ({"retreived": ["d1"]}, "did you mean retrieved"),
    "an entry without doc": ({"retrieved": [{"text": "x"}]}, "has no doc, only text"),
    "an empty entry": ({"retrieved": [{}]}, "has no doc, only nothing"),
    "a nested list": ({"retrieved": [["d1"]]}, "is not an id"),
    "no id": ({"retrieved": [None]}, "'None' is not an id"),
    "a float": ({"retrieved": [1.5]}, "'1.5' is not an id"),
    "a truth": ({"retrieved": [True]}, "'True' is not an id"),
    "an empty id": ({"retrieved": [""]}, "'' is not an id"),
    "a blank id": ({"retrieved": [" \t"]}, "is not an id"),
    "a score that is none": (
        {"retrieved": [{"doc": "d1", "score": "high"}]},
        "the score 'high' of query 'q1' is not a number",
    ),
    "a score that is a list": ({"retrieved": [{"doc": "d1", "score": [1]}]}, "is not a number"),
    "ranks in another order": (
        {"retrieved": [{"doc": "d1", "rank": 2}, {"doc": "d2", "rank": 1}]},
        "not in the order of its ranks",
    ),
    "ranks of objects in another order": (
        {"retrieved": [{"id": "d1", "body": "x", "rank": 2}, {"id": "d2", "body": "x", "rank": 1}]},
        "not in the order of its ranks",
    ),
    "a query that is none": ({"query": None, "retrieved": ["d1"]}, "'None' is not an id"),
    "a query that is a list": ({"query": ["q1"], "retrieved": ["d1"]}, "is not an id"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_runs(case: str, save: Save) -> None:
    record, message = WRONG[case]
    path = save("run.jsonl", jsonl([{"query": "q1"} | record]))
    for data in (path, [{"query": "q1"} | record]):
        with pytest.raises(InputError, match=message):
            score(data, {"q1": ["d1"]})


WRONG_GOLD: dict[str, tuple[Any, str]] = {
    "an empty group": ([[]], "names no document"),
    "no documents": ([{"docs": []}], "names no document"),
    "no docs": ([{"text": "x"}], "names no document"),
    "none": ([None], "names no document"),
    "nested too deeply": ([[["d1"]]], "is not an id"),
    "a grade that is none": ([{"docs": ["d1"], "grade": "high"}], "the grade 'high'"),
    "a grade that is null": ({"d1": None}, "the grade 'None'"),
    "a grade beyond floats": ({"d1": 10**400}, "is not a finite number"),
    "a grade that is not finite": ({"d1": float("inf")}, "is not a finite number"),
    "a grade that is NaN": ([{"docs": ["d1"], "grade": float("nan")}], "is not a finite number"),
    "an empty id": ([""], "'' is not an id"),
    "a score, which may be a grade": ([{"doc": "d1", "score": 0}], "has a score, and no grade"),
    "an id and its grade, or two": ([["d1", 0]], "may be two ids, or an id and its grade"),
}


@pytest.mark.parametrize("case", WRONG_GOLD)
def test_wrong_golds(case: str, save: Save) -> None:
    gold, message = WRONG_GOLD[case]
    path = save("gold.jsonl", jsonl([{"query": "q1", "gold": gold}]))
    for data in (path, [{"query": "q1", "gold": gold}]):
        with pytest.raises(InputError, match=message):
            score({"q1": ["d1"]}, data)


@pytest.mark.parametrize("role", ["run", "gold"])
def test_two_records_of_one_query_are_refused(role: str, save: Save) -> None:
    records = [{"query": "q1", "retrieved": ["a"], "gold": ["a"]}] * 2
    path = save("twice.jsonl", jsonl(records))
    with pytest.raises(InputError, match="query 'q1' has more than one record"):
        score(*((path, {"q1": ["a"]}) if role == "run" else ({"q1": ["a"]}, path)))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([1, 2], "record 1 is of type int, not an object"),
        ([[1]], "record 1 is of type list"),
        ("text", "not recognised|no such file|not str"),
        ({"q1": ["d1"]}, "not dict"),
        (7, "not int"),
    ],
)
def test_what_are_no_records(records: Any, message: str) -> None:
    with pytest.raises(findwell.FindwellError, match=message):
        score(records, None)

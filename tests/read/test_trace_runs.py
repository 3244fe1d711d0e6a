"""A trace is a run: `findwell score` of traces gives the numbers of the same lists as records."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import InputError
from tests.read.made_traces import (
    FILES,
    MadeCall,
    MadeDoc,
    openinference,
    otlp_request,
    otlp_span,
    root_span,
)

if TYPE_CHECKING:
    from tests.conftest import Findwell

MEASURES = ["nDCG@5", "recall@3", "P@3", "RR"]
RANDOM = random.Random(18)
CORPUS = [MadeDoc(f"d{n}", f"Document {n} tells of {n * 7} things.", 0.0) for n in range(20)]


def found(count: int) -> tuple[MadeDoc, ...]:
    chosen = RANDOM.sample(CORPUS, count)
    return tuple(MadeDoc(doc.id, doc.text, 0.9 - n / 10) for n, doc in enumerate(chosen))


QUESTIONS = [f"What of  number {n}?" for n in range(9)]
CALLS = [
    MadeCall(50 + n, 90 + n, text, found(5 if n % 4 else n), seconds=n, query=f"q{n}")
    for n, text in enumerate(QUESTIONS)
]
GOLD = [
    {"query": f"q{n}", "question": text, "gold": [doc.id for doc in RANDOM.sample(CORPUS, 4)]}
    for n, text in enumerate(QUESTIONS)
]
RECORDS = [
    {
        "question": call.question,
        "retrieved": [{"doc": doc.id, "score": doc.score, "text": doc.text} for doc in call.docs],
        "latency_ms": call.latency_ms,
    }
    for call in CALLS
]


def lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lines(tmp_path_factory.mktemp("gold") / "gold.jsonl", GOLD)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, gold: Path) -> findwell.Result:
    """The result of the same lists as records."""
    path = lines(tmp_path_factory.mktemp("run") / "run.jsonl", RECORDS)
    return findwell.evaluate(path, gold, MEASURES)


def values(result: findwell.Result) -> dict[str, Any]:
    return {
        "summary": {name: result[name] for name in MEASURES},
        "queries": result.per_query.sort("query", "measure").to_dicts(),
        "findings": [(each.kind, each.count) for each in result.findings],
    }


def renamed(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"queries": [each | {"run": ""} for each in found["queries"]]}


@pytest.mark.parametrize("name", FILES)
def test_every_form_scores_as_the_same_records(
    tmp_path: Path, gold: Path, expected: findwell.Result, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name](CALLS))
    result = findwell.evaluate(path, gold, MEASURES)
    assert renamed(values(result)) == renamed(values(expected))
    assert result.about[name.split(".", maxsplit=1)[0]]["latency_ms"].to_list() == [12.5] * len(
        CALLS
    )


def test_texts_match_as_those_of_records(tmp_path: Path) -> None:
    texts = [each | {"gold": [doc.text for doc in CORPUS[:6]]} for each in GOLD]
    gold = lines(tmp_path / "gold.jsonl", texts)
    path = tmp_path / "t.pb"
    path.write_bytes(FILES["otlp.pb"](CALLS))
    records = lines(tmp_path / "run.jsonl", RECORDS)
    measures = ["recall@5", "P@3"]
    expected = findwell.evaluate(records, gold, measures, by="exact")
    result = findwell.evaluate(path, gold, measures, by="exact")
    assert result["recall@5"] == expected["recall@5"] != 0
    assert result["P@3"] == expected["P@3"]


def test_the_order_of_spans_does_not_matter(tmp_path: Path, gold: Path) -> None:
    path = tmp_path / "t.jsonl"
    found = []
    for calls in (CALLS, CALLS[::-1], CALLS + CALLS):
        path.write_bytes(FILES["otlp-openinference.jsonl"](calls))
        found.append(values(findwell.evaluate(path, gold, MEASURES)))
    assert found[0] == found[1] == found[2]


def test_ids_of_queries_from_an_attribute(tmp_path: Path, cli: Findwell) -> None:
    ids = lines(tmp_path / "ids.jsonl", [{"query": e["query"], "gold": e["gold"]} for e in GOLD])
    path = tmp_path / "t.pb"
    path.write_bytes(FILES["otlp.pb"](CALLS))
    records = [each | {"query": f"q{n}"} for n, each in enumerate(RECORDS)]
    expected = findwell.evaluate(lines(tmp_path / "run.jsonl", records), ids, MEASURES)
    result = findwell.evaluate(
        path, ids, MEASURES, reading=findwell.Reading(query_from="metadata.query_id")
    )
    assert renamed(values(result)) == renamed(values(expected))
    given = cli("score", path, "-g", ids, "-m", "RR", "--read", "query_from=metadata.query_id")
    assert f"{expected['RR']:.3f}" in given.out
    refused = cli("score", path, "-g", ids, "-m", "RR")
    assert refused.code == 2
    assert "it only has ids" in refused.err
    assert "--read query_from" in refused.err
    assert "no_such" in cli("score", path, "-g", ids, "--read", "query_from=no_such").err
    other = cli("score", tmp_path / "run.jsonl", "-g", ids, "--read", "query_from=x")
    assert "attribute of traces" in other.err


def test_questions_that_do_not_match(tmp_path: Path, gold: Path) -> None:
    path = tmp_path / "t.pb"
    others = [MadeCall(n, n + 1, f"Something else {n}", found(3)) for n in range(1, 4)]
    path.write_bytes(FILES["otlp.pb"](others))
    with pytest.raises(InputError, match="no question of the run is one of the gold"):
        findwell.evaluate(path, gold, MEASURES)
    path.write_bytes(FILES["otlp.pb"]([*others, *CALLS]))
    result = findwell.evaluate(path, gold, MEASURES)
    assert ("extra-query", 3) in [(each.kind, each.count) for each in result.findings]
    again = [MadeCall(900, 901, QUESTIONS[1], (), seconds=1000)]
    path.write_bytes(FILES["otlp.pb"](CALLS + again))
    repeated = findwell.evaluate(path, gold, MEASURES)
    assert repeated["RR"] == result["RR"]
    assert ("asked-again", 1) in [(each.kind, each.count) for each in repeated.findings]


def reranked() -> list[MadeCall]:
    return [
        MadeCall(
            *(call.trace, call.span + 500, call.question, call.docs[::-1][:3], "RERANKER"),
            seconds=call.seconds + 0.1,
            inputs=call.docs,
        )
        for call in CALLS[1:]
    ]


RERANKS = [name for name in FILES if "gen_ai" not in name and "memory" not in name]


@pytest.fixture(scope="module")
def wanted() -> findwell.Result:
    """The result of the lists before and after a reranker."""
    after = [CALLS[0].docs, *(call.docs for call in reranked())]
    lists = {
        "before": [[doc.id for doc in call.docs] for call in CALLS],
        "after": [[doc.id for doc in docs] for docs in after],
    }
    runs = {
        which: dict(zip([f"q{n}" for n in range(9)], docs, strict=True))
        for which, docs in lists.items()
    }
    return findwell.evaluate(runs, {each["query"]: each["gold"] for each in GOLD}, MEASURES)


@pytest.mark.parametrize("name", RERANKS)
def test_a_reranker_gives_two_runs(
    tmp_path: Path, gold: Path, wanted: findwell.Result, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name]([*CALLS, *reranked()]))
    result = findwell.evaluate(path, gold, MEASURES)
    stem = name.split(".", maxsplit=1)[0]
    assert [*result.runs] == [stem, f"{stem}-reranked"]
    for run, which in ((stem, "before"), (f"{stem}-reranked", "after")):
        assert [result[run, each] for each in MEASURES] == [
            wanted[which, each] for each in MEASURES
        ]


@pytest.mark.parametrize("traced", [0, 3])
def test_retrievers_that_are_not_traced(
    tmp_path: Path, gold: Path, wanted: findwell.Result, traced: int
) -> None:
    """What went into a reranker is what was retrieved; else reranking would gain too much."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(FILES["otlp-openinference.jsonl"]([*CALLS[:traced], *reranked()]))
    result = findwell.evaluate(path, gold, MEASURES)
    for run, which in (("t", "before"), ("t-reranked", "after")):
        assert [result[run, each] for each in MEASURES] == [
            wanted[which, each] for each in MEASURES
        ]
    alone = [replace(call, inputs=()) for call in reranked()]
    path.write_bytes(FILES["otlp-openinference.jsonl"](alone))
    assert [*findwell.evaluate(path, gold, MEASURES).runs] == ["t-reranked"]


def test_a_name_is_for_one_run(tmp_path: Path, gold: Path, wanted: findwell.Result) -> None:
    """As of compare: the lists that came last."""
    path = tmp_path / "t.pb"
    path.write_bytes(FILES["otlp.pb"]([*CALLS, *reranked()]))
    alone = findwell.evaluate({"app": path}, gold, MEASURES)
    assert [alone[each] for each in MEASURES] == [wanted["after", each] for each in MEASURES]


def test_hops_of_an_agent(tmp_path: Path) -> None:
    """The trace is asked the question of the gold; each of its hops has one of its own."""
    gold = lines(tmp_path / "gold.jsonl", GOLD[:2])
    calls = [MadeCall(7, 70 + n, f"step {n}", CALLS[n + 1].docs, seconds=n) for n in range(3)]
    spans = [otlp_span(call, openinference(call)) for call in calls[::-1]]
    spans += [root_span(7, QUESTIONS[0]), otlp_span(CALLS[1], openinference(CALLS[1]))]
    path = lines(tmp_path / "t.jsonl", [otlp_request([span]) for span in spans])
    hops = [{"retrieved": [doc.id for doc in call.docs]} for call in calls]
    records = [
        {"query": "q0", "hops": hops},
        {"query": "q1", "hops": [{"retrieved": [doc.id for doc in CALLS[1].docs]}]},
    ]
    measures = ["recall", "recall@1hops", "recall@2hops", "P@8"]
    expected = findwell.evaluate(lines(tmp_path / "run.jsonl", records), gold, measures)
    result = findwell.evaluate(path, gold, measures)
    assert [result[each] for each in measures] == [expected[each] for each in measures]
    assert result["recall@1hops"] != result["recall"]


def test_traces_that_say_nothing(tmp_path: Path, gold: Path) -> None:
    path = tmp_path / "t.jsonl"
    silent = {"gen_ai.operation.name": "retrieval"}
    lines(path, [otlp_request([otlp_span(CALLS[0], silent)])])
    with pytest.raises(InputError, match="none of the spans has a question"):
        findwell.evaluate(path, gold)
    asked = silent | {"gen_ai.retrieval.query.text": QUESTIONS[0]}
    lines(path, [otlp_request([otlp_span(CALLS[0], asked)])])
    with pytest.raises(InputError, match="do not say which documents"):
        findwell.evaluate(path, gold)
    lines(path, [otlp_request([root_span(1, "Why?")])])
    with pytest.raises(InputError, match="no retrieval call among 1 spans"):
        findwell.evaluate(path, gold)
    path.write_bytes(FILES["otlp-gen_ai.jsonl"](CALLS))
    with pytest.raises(InputError, match="does not hold both"):
        findwell.evaluate(path)


def test_a_folder_of_traces(tmp_path: Path, gold: Path, expected: findwell.Result) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    for number, call in enumerate(CALLS):
        (folder / f"{number}.pb").write_bytes(FILES["otlp.pb"]([call]))
    result = findwell.evaluate(folder, gold, MEASURES)
    assert renamed(values(result)) == renamed(values(expected))


@pytest.mark.parametrize("name", ["langfuse.jsonl", "langfuse-api.json", "langfuse.csv", "otlp"])
def test_searches_that_were_logged_as_spans(
    name: str, tmp_path: Path, gold: Path, cli: Findwell
) -> None:
    """Langfuse had no type for retrievers before its version 3, and many still log a SPAN."""
    spans = [replace(call, kind="SPAN") for call in CALLS]
    path = tmp_path / f"t{Path(name).suffix or '.jsonl'}"
    path.write_bytes(FILES["otlp-langfuse.jsonl" if name == "otlp" else name](spans))
    expected = findwell.evaluate(lines(tmp_path / "run.jsonl", RECORDS), gold, MEASURES)
    refused = cli("score", path, "-g", gold, "-m", "RR")
    assert refused.code == 2
    assert "--read search_span=retrieve" in refused.err
    searched = findwell.Reading(search_span="retrieve")
    result = findwell.evaluate(path, gold, MEASURES, reading=searched)
    assert renamed(values(result)) == renamed(values(expected))
    given = cli("score", path, "-g", gold, "-m", "RR", "--read", "search_span=retrieve")
    assert f"{expected['RR']:.3f}" in given.out


def test_a_search_span_that_is_not_there(tmp_path: Path, gold: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(FILES["langfuse.jsonl"]([*CALLS[1:], replace(CALLS[0], kind="SPAN")]))
    with pytest.raises(InputError, match="no span is named 'retreive'") as error:
        findwell.evaluate(path, gold, "RR", reading=findwell.Reading(search_span="retreive"))
    assert "--read search_span=retrieve " in error.value.fix
    records = lines(tmp_path / "run.jsonl", RECORDS)
    with pytest.raises(
        InputError, match="names spans of traces, but this run is not made of traces"
    ):
        findwell.evaluate(records, gold, "RR", reading=findwell.Reading(search_span="retrieve"))

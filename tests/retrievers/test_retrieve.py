"""Asking retrievers: what they may be, how they are called, and what becomes of their failures."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError, OptionError, RetrieverError
from findwell.core.progress import Progress
from findwell.retrievers import dispatch

QUERIES = {f"q{n}": f"question {n}" for n in range(1, 21)}
GOLD = [
    {"query": query, "question": question, "gold": ["d1"]} for query, question in QUERIES.items()
]


def docs(run: findwell.Run, query: str = "q1") -> list[str | None]:
    return run.rows.filter(query=query)["doc"].to_list()


class ByInvoke:
    def invoke(self, question: str, config: object = None) -> list[str]:
        assert config is None
        return ["d1", "d2", question]


class ByRetrieve:
    async def aretrieve(self, question: str) -> list[str]:
        return ["d1", "d2", question]


class ByRun:
    def run(self, query: str, top_k: int = 9) -> dict[str, Any]:
        return {"documents": [{"id": f"d{n}", "content": query} for n in range(1, top_k + 1)]}


class AsyncCall:
    async def __call__(self, question: str) -> list[str]:
        await asyncio.sleep(0)
        return ["d1", "d2", question]


def search(question: str) -> list[str]:
    return ["d1", "d2", question]


async def search_async(question: str) -> list[str]:
    return ["d1", "d2", question]


def search_with_size(index: str, question: str, *, limit: int) -> list[str]:
    assert (index, question.partition(" ")[0]) == ("index", "question")
    return [f"d{n}" for n in range(1, limit + 1)]


@pytest.mark.parametrize(
    "retriever",
    [
        search,
        search_async,
        lambda question: (name for name in ("d1", "d2", question)),
        ByInvoke(),
        ByInvoke().invoke,
        ByRetrieve(),
        ByRun(),
        AsyncCall(),
        partial(search_with_size, "index"),
    ],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_what_a_retriever_may_be(retriever: Any, concurrency: int) -> None:
    run = findwell.retrieve(retriever, QUERIES, k=2, concurrency=concurrency)
    assert run.rows["query"].unique(maintain_order=True).to_list() == list(QUERIES)
    assert all(docs(run, query) == ["d1", "d2"] for query in QUERIES)
    assert run.about is not None
    assert run.about["latency_ms"].min() >= 0  # type: ignore[operator]
    assert run.about["error"].null_count() == len(QUERIES)


def test_order_scores_and_texts_are_those_of_the_answer() -> None:
    answer = [{"id": "a", "text": "one", "score": 0.1}, {"id": "b", "text": "two", "score": 0.9}]
    run = findwell.retrieve(lambda _: answer, {"q1": "?"})
    assert run.rows.select("doc", "text").rows() == [("a", "one"), ("b", "two")]
    assert run.rows["score"].null_count() == 0
    assert findwell.evaluate(run, {"q1": ["b"]}, "RR")["RR"] == 0.5  # the score does not reorder


@pytest.mark.parametrize(
    ("queries", "names"),
    [
        ({"a": "what?"}, ["a"]),
        (["what?", "who?", "what?"], ["what?", "who?", "what? (2)"]),
        ([{"query": 7, "question": "what?"}], ["7"]),
        (pl.DataFrame({"qid": ["a"], "text": ["what?"]}), ["a"]),
        ([{"query": "what is it?"}], ["what is it?"]),
    ],
)
def test_what_queries_may_be(queries: object, names: list[str]) -> None:
    assert findwell.retrieve(lambda question: [question], queries).rows["query"].to_list() == names


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ({}, "no query"),
        ({"a": " "}, "1 of 1 queries have no question"),
        ([{"query": "a", "question": "x"}, {"query": "a", "question": "y"}], "more than once"),
        ([{"name": "a"}], "no column 'query'"),
    ],
)
def test_queries_that_cannot_be_asked(queries: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        findwell.retrieve(search, queries)


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("wait", [False, True])
def test_a_question_that_raises_is_a_failure_of_that_question(
    concurrency: int, *, wait: bool
) -> None:
    def sometimes(question: str) -> list[str]:
        if question.endswith("0"):
            raise ConnectionError("the index is away\nand more")
        return ["d1"]

    async def sometimes_async(question: str) -> list[str]:
        return sometimes(question)

    asked = sometimes_async if wait else sometimes
    run = findwell.retrieve(asked, QUERIES, concurrency=concurrency)
    assert run.about is not None
    errors = dict(run.about.select("query", "error").drop_nulls().rows())
    assert errors == dict.fromkeys(("q10", "q20"), "ConnectionError: the index is away")
    assert docs(run, "q10") == [None]
    assert run.about.filter(query="q10")["latency_ms"].to_list() == [None]
    (found,) = run.findings
    assert (found.kind, found.count) == ("failed-query", 2)
    assert found.examples[0] == "q10: ConnectionError: the index is away"


@pytest.mark.parametrize("dialect", ["findwell", "trec_eval"])
def test_a_failure_counts_as_nothing_retrieved_in_every_dialect(dialect: str) -> None:
    def sometimes(question: str) -> list[str]:
        if question.endswith("0"):
            raise ValueError
        return ["d1"]

    result = findwell.evaluate(sometimes, GOLD, "success@1", dialect=dialect)
    assert result["success@1"] == 0.9
    assert result.timing["sometimes"].error_rate == 0.1
    assert "failed-query" in {found.kind for found in result.findings}


def test_failures_are_bounded() -> None:
    def never(question: str) -> list[str]:
        calls.append(question)
        raise ValueError("no index")

    calls: list[str] = []
    with pytest.raises(RetrieverError, match="10 of 10 questions, the last time with ValueError"):
        findwell.retrieve(never, QUERIES)
    assert len(calls) == 10
    calls.clear()
    with pytest.raises(RetrieverError, match="3 of 3"):
        findwell.retrieve(never, QUERIES, max_errors=2)
    with pytest.raises(RetrieverError, match="2 of 2"):
        findwell.retrieve(never, {"a": "x", "b": "y"})  # nothing was answered at all
    with pytest.raises(RetrieverError):
        findwell.retrieve(never, QUERIES, concurrency=3, timeout=5)


def test_an_answer_that_cannot_be_read_is_a_failure_with_the_fix() -> None:
    with pytest.raises(RetrieverError, match="no retrieved object that findwell knows"):
        findwell.retrieve(lambda _: [object()], QUERIES)
    with pytest.raises(RetrieverError, match="async def"):
        findwell.retrieve(lambda question: search_async(question + "?"), QUERIES)


@pytest.mark.parametrize("wait", [False, True])
def test_a_question_without_an_answer_in_time_has_failed(*, wait: bool) -> None:
    over, waited = threading.Event(), []

    def slow(question: str) -> list[str]:
        if question == "question 3":
            waited.append(over.wait(60))
        return ["d1"]

    async def slow_async(question: str) -> list[str]:
        if question == "question 3":
            await asyncio.sleep(60)
            waited.append(False)
        return ["d1"]

    run = findwell.retrieve(slow_async if wait else slow, QUERIES, timeout=0.3)
    assert not waited  # nobody waited for it to the end
    over.set()
    assert run.about is not None
    errors = run.about.select("query", "error").drop_nulls().rows()
    assert errors == [("q3", "TimeoutError: no answer within 0.3 s")]
    assert docs(run, "q4") == ["d1"]


@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize("wait", [False, True])
def test_retries(timeout: float | None, monkeypatch: pytest.MonkeyPatch, *, wait: bool) -> None:
    asked: Counter[str] = Counter()
    monkeypatch.setattr(dispatch, "PAUSE", 0.02)

    def flaky(question: str) -> list[str]:
        asked[question] += 1
        if question in ("question 3", "question 4") and asked[question] < 3:
            raise ValueError
        return ["d1"]

    async def flaky_async(question: str) -> list[str]:
        return flaky(question)

    retriever = flaky_async if wait else flaky
    run = findwell.retrieve(retriever, QUERIES, retries=1, timeout=timeout)
    assert run.about is not None
    assert run.about["error"].count() == 2
    assert (asked["question 3"], asked["question 1"]) == (2, 1)
    asked.clear()
    run = findwell.retrieve(retriever, QUERIES, retries=2, timeout=timeout)
    assert run.about is not None
    assert run.about["error"].count() == 0
    third = run.about.filter(query="q3")["latency_ms"].item()
    assert third >= 60  # two pauses: what the user of the retriever waits


def test_a_retry_after_too_long_a_wait() -> None:
    asked: Counter[str] = Counter()

    def slow_once(question: str) -> list[str]:
        asked[question] += 1
        time.sleep(1 if question == "question 3" and asked[question] == 1 else 0)
        return ["d1"]

    run = findwell.retrieve(slow_once, QUERIES, timeout=0.3, retries=1)
    assert run.about is not None
    assert run.about["error"].count() == 0
    assert asked["question 3"] == 2


@pytest.mark.parametrize("wait", [False, True])
def test_warm_up_is_not_measured(*, wait: bool) -> None:
    asked: list[str] = []

    def cold(question: str) -> list[str]:
        time.sleep(0 if asked else 0.2)
        asked.append(question)
        return ["d1"]

    async def cold_async(question: str) -> list[str]:
        return cold(question)

    run = findwell.retrieve(cold_async if wait else cold, QUERIES, warmup=2)
    assert len(asked) == len(QUERIES) + 2
    assert run.about is not None
    assert run.about["latency_ms"].max() < 150  # type: ignore[operator]


@pytest.mark.parametrize("wait", [False, True])
def test_several_at_a_time(*, wait: bool) -> None:
    now, most, lock = 0, 0, threading.Lock()

    def count(step: int) -> None:
        nonlocal now, most
        with lock:
            now += step
            most = max(most, now)

    def slow(_: str) -> list[str]:
        count(1)
        time.sleep(0.02)
        count(-1)
        return ["d1"]

    async def slow_async(_: str) -> list[str]:
        count(1)
        await asyncio.sleep(0.02)
        count(-1)
        return ["d1"]

    run = findwell.retrieve(slow_async if wait else slow, QUERIES, concurrency=4)
    assert most == 4
    found = findwell.evaluate(run, GOLD, "RR").timing[run.name]
    assert found.concurrency == 4
    assert found.throughput is not None
    # calls in flight on average, however slow the machine: one after the other it would be below 1
    assert run.about is not None
    mean = run.about["latency_ms"].mean()
    assert isinstance(mean, float)
    assert found.throughput * mean / 1000 > 1.5
    assert found.p50 is not None
    assert found.p50 >= 20


def test_an_async_retriever_inside_an_event_loop() -> None:
    async def notebook() -> findwell.Run:
        return findwell.retrieve(search_async, QUERIES, k=1)

    assert docs(asyncio.run(notebook())) == ["d1"]


def test_processor_and_memory_are_measured() -> None:
    def busy(_: str) -> list[str]:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return ["d1"]

    few = dict(list(QUERIES.items())[:4])
    for concurrency in (1, 2):
        about = findwell.retrieve(busy, few, concurrency=concurrency).about
        assert about is not None
        assert 15 <= about["cpu_ms"].mean() < 100  # type: ignore[operator]
        assert about["peak_memory_mb"].min() > 10  # type: ignore[operator]


def test_the_size_of_the_context_is_measured() -> None:
    def find(question: str) -> list[dict[str, str]]:
        if question == "question 2":
            raise ValueError
        if question == "question 3":
            return []
        return [{"id": "a", "text": "Größe: 4"}, {"id": "b", "text": "Charging takes 4 hours."}]

    about = findwell.retrieve(find, dict(list(QUERIES.items())[:3])).about
    assert about is not None
    assert about["context_bytes"].to_list() == [10 + 23, None, None]
    assert about["context_tokens"].to_list() == [3 + 5, None, None]
    timing = findwell.evaluate(find, GOLD, "RR", by="ids").timing["find"]
    assert (timing.context_bytes, timing.context_tokens) == (33.0, 8.0)


def test_offsets_are_places_in_the_source() -> None:
    def find(_: str) -> list[dict[str, Any]]:
        return [{"id": "c9", "text": "lasts", "metadata": {"source": "guide", "start_index": 3}}]

    gold = [{"query": "q1", "question": "?", "gold": [{"doc": "guide", "start": 3, "end": 8}]}]
    assert findwell.evaluate(find, gold, "recall", by="spans")["recall"] == 1.0


def test_progress_counts_failures() -> None:
    def sometimes(question: str) -> list[str]:
        if question.endswith("0"):
            raise ValueError
        return ["d1"]

    steps: list[Progress] = []
    findwell.retrieve(sometimes, QUERIES, progress=steps.append)
    assert steps[-1] == Progress(20, 20, "2 failed")
    assert all(before.done < after.done for before, after in pairwise(steps))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"timeout": 0}, "timeout is 0"),
        ({"retries": -1}, "retries is -1"),
        ({"max_errors": 1.5}, "max_errors is 1.5"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        findwell.retrieve(search, QUERIES, **options)


def test_what_is_no_retriever() -> None:
    with pytest.raises(OptionError, match="ByInvoke is a class"):
        findwell.retrieve(ByInvoke, QUERIES)
    with pytest.raises(InputError, match="a dict is not a retriever"):
        findwell.retrieve({"q1": ["d1"]}, QUERIES)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"missing a required .*argument: 'limit'"):
        findwell.retrieve(partial(search_with_size, "index"), QUERIES)


def test_evaluate_and_compare_ask_on_the_way() -> None:
    one = findwell.retrievers.Retriever(lambda _: ["x", "d1"], k=1)
    both = {"one": one, "two": search}
    result = findwell.evaluate(both, GOLD, ["success@1"], by="ids")
    assert (result["one", "success@1"], result["two", "success@1"]) == (0.0, 1.0)
    assert set(result.timing) == {"one", "two"}
    for found in (
        findwell.compare(both, GOLD, by="ids"),
        findwell.compare(both, gold=GOLD, by="ids"),
    ):
        assert found["two", "recall@5"]["wins"] == 20
        assert set(found.timing) == {"one", "two"}
    mixed = findwell.evaluate({"run": {"q1": ["d1"]}, "asked": search}, GOLD, "success@1")
    assert (mixed["run", "success@1"], mixed["asked", "success@1"]) == (0.05, 1.0)


def test_the_questions_of_a_table_are_asked() -> None:
    gold = {query: ["d1"] for query in QUERIES}
    assert findwell.evaluate(search, gold, "RR", queries=QUERIES)["RR"] == 1.0
    table = pl.DataFrame({"query": list(QUERIES), "question": list(QUERIES.values())})
    assert findwell.evaluate(search, gold, "RR", queries=table)["RR"] == 1.0
    with pytest.raises(InputError, match="no questions to ask"):
        findwell.evaluate(search, gold, "RR")
    with pytest.raises(InputError, match="19 of 20 queries have no question"):
        findwell.evaluate(search, gold, "RR", queries={"q1": "question 1"})
    with pytest.raises(InputError, match="a retriever is asked questions, and there are none"):
        findwell.evaluate(search, measures="RR")


def test_a_judge_needs_no_gold() -> None:
    def find(question: str) -> list[dict[str, str]]:
        return [{"id": "a", "text": f"The answer to {question}"}, {"id": "b", "text": "Noise."}]

    judged = findwell.judges.judge(
        find,
        ["context_precision@2"],
        queries=QUERIES,
        judge=lambda sample: {"relevance": ["answer" in chunk for chunk in sample.chunks]},
    )
    assert judged["context_precision@2"] == 1.0


def test_results_keep_what_retrieval_cost(tmp_path: Path) -> None:
    result = findwell.evaluate(search, GOLD, "RR")
    result.save(tmp_path / "saved")
    assert findwell.load(tmp_path / "saved").timing == result.timing


def test_costs_by_slice() -> None:
    gold = [{**record, "topic": record["query"][1:2]} for record in GOLD]
    result = findwell.evaluate(search, gold, "RR")
    slices = result.timing_by("topic")["search"]
    assert slices["1"].n == 11
    assert sum(found.n for found in slices.values()) == 20
    printed = result.as_dict(by=["topic"])["timing_slices"]
    assert {entry["slice"] for entry in printed} == set(slices)


def test_generators_are_read_within_the_measured_time() -> None:
    def lazy(_: str) -> Iterator[str]:
        time.sleep(0.02)
        yield "d1"

    about = findwell.retrieve(lazy, {"q1": "?"}).about
    assert about is not None
    assert about["latency_ms"].item() >= 20


async def _stream(question: str) -> AsyncIterator[str]:
    yield question


def test_what_yields_asynchronously_is_named() -> None:
    with pytest.raises(RetrieverError, match="async_generator"):
        findwell.retrieve(_stream, {"q1": "?"})


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
def test_a_retriever_that_returns_none_has_failed(awaited: bool) -> None:
    def sometimes(question: str) -> list[str] | None:
        return ["d1"] if question == "question 1" else None

    async def later(question: str) -> list[str] | None:
        return sometimes(question)

    run = findwell.retrieve(later if awaited else sometimes, dict(list(QUERIES.items())[:2]))
    assert run.about is not None
    first, second = run.about["error"].to_list()
    assert first is None
    assert second.startswith("the retriever returned None")
    assert [each.kind for each in run.findings] == ["failed-query"]
    with pytest.raises(RetrieverError, match="returned None"):
        findwell.retrieve(lambda _: None, QUERIES)


class _Index:
    """A retriever whose method is a new object each time that it is named."""

    def search(self, question: str) -> list[str]:
        return [question[-1:]]


def test_an_evaluation_that_asks_again_says_so() -> None:
    """It asks: an index may have changed since. `retrieve` asks once for all of them."""
    gold = [{"query": "q1", "question": "question 1", "gold": ["1"]}]
    index = _Index()

    def kinds(retriever: Any, **options: Any) -> list[str]:
        found = findwell.evaluate(retriever, gold, "RR", **options).findings
        return [each.kind for each in found]

    assert kinds(index.search) == []
    assert kinds(index.search) == ["retriever-asked-again"]
    assert kinds(findwell.retrievers.Retriever(index.search, k=1)) == []
    assert kinds(index.search, queries={"q1": "question 1"}) == ["retriever-asked-again"]
    assert kinds(_Index().search) == []  # another index, and perhaps at the same address
    run = findwell.retrieve(index.search, gold)
    assert kinds(run) == kinds(run) == []
    compared = findwell.compare({"one": index.search, "two": _Index().search}, gold, measures="RR")
    assert [(each.run, each.kind) for each in compared.findings] == [
        ("one", "retriever-asked-again")
    ]

"""Votes, units of the model's own, money, the cache, progress and options of a judge."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.judges.client.budget import CallBudget, Limits, Prices
from findwell.judges.client.cache import Cache
from findwell.judges.find import find_judge
from findwell.judges.llm.judge import LLMJudge
from findwell.judges.settings import Judge
from findwell.judges.verdicts import Judgement
from tests.client.asking import HASTE, KEY
from tests.client.server import Call, Reaction, chat, error, serve
from tests.judges.building import FOUR
from tests.judges.judging import (
    ALL,
    REFERENCE,
    TEXTS,
    check_shape,
    check_totals,
    expect,
    first,
    judge_of,
    left_out,
    sample,
    sentences,
    verdicts,
)
from tests.judges.model import read_prompt, spoilt, well

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from findwell.core.progress import Progress


def test_votes_are_counted_and_their_agreement_is_told() -> None:
    grades = iter([3, 0, 2, 2, 2])

    def spoil(_: Call, said: dict[str, Any]) -> dict[str, Any]:
        if "relevance" in said:
            value = next(grades)
            said["relevance"][0] |= {"grade": value, "quote": "The capital" if value else ""}
        return said

    with serve(spoilt(spoil)) as server:
        retry = replace(HASTE, concurrency=1)
        judge = judge_of(server, votes=5, retry=retry)
        [judged] = judge.judge([sample(0, TEXTS[:1])], frozenset({"relevance"}))
        bodies = [call.body for call in server.calls]
    assert judged["relevance"].row == (Judgement(2, quote="The capital"),)
    assert [body["seed"] for body in bodies] == [0, 1, 2, 3, 4]
    assert {body["temperature"] for body in bodies} == {0.7}
    assert judge.about()["agreement"] == {"relevance": 0.3}  # 3 of 10 pairs
    assert judge.about()["votes"] == 5


def test_a_majority_says_yes_and_a_tie_says_no() -> None:
    for votes, wins in [((1, 1, 0), 1), ((1, 0, 0), 0), ((1, 0), 0), ((1, 1, 0, 0), 0)]:
        said = iter(votes)

        def script(_: Call, said: Iterator[int] = said) -> Reaction:
            entry = {"statement": "c1.s1", "relevant": bool(next(said))}
            return chat(json.dumps({"statements": [entry]}))

        with serve(script) as server:
            judge = judge_of(server, votes=len(votes))
            [judged] = judge.judge([sample(0, ["Brazil."])], frozenset({"statements"}))
        assert judged["statements"].rows[0][0].value == wins


def test_votes_that_fail_leave_it_to_the_others() -> None:
    def script(call: Call) -> Reaction:
        return error(500) if call.body.get("seed") == 1 else well(call)

    with serve(script) as server:
        judge = judge_of(server, votes=3)
        judged = judge.judge([sample()], ALL)
    assert judged == [expect(sample())]
    check_totals(judge, judged)
    assert judge.about()["agreement"] == dict.fromkeys(sorted(FOUR), 1.0)


def test_all_votes_judge_the_same_entities() -> None:
    names = iter(["Brazil", "Rio", "Brasília"])

    def spoil(call: Call, said: dict[str, Any]) -> dict[str, Any]:
        return {"entities": [next(names)]} if "reference" in read_prompt(call.prompt).data else said

    with serve(spoilt(spoil)) as server:
        [judged] = judge_of(server, votes=3).judge([sample()], ALL)
        assert len(server.calls) == 1 + 3 * 2
    assert judged["entities"].items == ("Brazil",)


def test_the_model_may_list_claims_and_statements() -> None:
    one = replace(sample(0, TEXTS[:3]), items={"claims": ("not used",)}, parts={})
    with serve(well) as server:
        judge = judge_of(server, decompose=True)
        [judged] = judge.judge([one], ALL)
        assert len(server.calls) == 3 + 2
    assert judged["claims"].items == sentences(REFERENCE)
    assert judged["statements"].parts[2] == (
        "It says: Ferries are boats.",
        "It says: They carry cars.",
    )
    assert judged["statements"].rows[0][0] == Judgement(
        1, quote="The capital of Brazil is Brasília."
    )
    assert judge.about()["decompose"] is True
    check_shape(one, judged)
    check_totals(judge, [judged])


def test_a_statement_that_comes_from_nowhere_is_unproven() -> None:
    def spoil(_: Call, said: dict[str, Any]) -> dict[str, Any]:
        if "chunks" in said:
            said["chunks"][0]["statements"][0] = {"quote": "made up", "text": "Brazil capital"}
        return said

    with serve(spoilt(spoil)) as server:
        judge = judge_of(server, decompose=True)
        [judged] = judge.judge([sample()], frozenset({"statements"}))
    assert judged["statements"].rows[0][0] == Judgement(1, quote="made up", unproven=True)
    assert judge.about()["unproven"] == {"statements": 1}


def test_statements_of_single_chunks_are_listed_again() -> None:
    def spoil(call: Call, said: dict[str, Any]) -> dict[str, Any]:
        if first(call) and "chunks" in said:
            said["chunks"][1]["statements"] = ["plain text"]
            del said["chunks"][3]
        return said

    with serve(spoilt(spoil)) as server:
        [judged] = judge_of(server, decompose=True).judge([sample()], frozenset({"statements"}))
        again = [read_prompt(call.prompt) for call in server.calls if not first(call)]
    assert [set(read.chunks) for read in again] == [{"c2", "c4"}]
    assert [len(row) for row in judged["statements"].rows] == [2, 2, 2, 2, 1]


@pytest.mark.parametrize(
    "script", [lambda _: chat("no"), lambda _: error(500), lambda _: chat("{", finish="length")]
)
def test_units_that_are_never_listed_fail_as_a_whole(script: Any) -> None:
    with serve(script) as server:
        judge = judge_of(server, decompose=True)
        [judged] = judge.judge([sample()], frozenset({"claims", "statements"}))
    assert set(judged.failures) == {"claims", "statements"}
    assert judged["claims"].rows == judged["statements"].rows == ()
    check_totals(judge, [judged])


def test_a_reference_of_which_no_claim_is_listed_fails() -> None:
    with serve(lambda _: chat('{"claims": []}')) as server:
        judge = judge_of(server, decompose=True, attempts=2)
        [judged] = judge.judge([sample()], frozenset({"claims"}))
        assert len(server.calls) == 2
    assert str(judged.failures["claims"]) == "malformed: no item of a text that has one"


def test_a_budget_keeps_what_is_done(tmp_path: Path) -> None:
    samples = [sample(number) for number in range(10)]
    with serve(well) as server, Cache.open(tmp_path) as cache:
        budget = CallBudget(Limits(max_calls=8))
        judge = judge_of(server, cache=cache, budget=budget)
        judged = judge.judge(samples, ALL)
        assert len(server.calls) == 8
        reasons = {str(each.failure) for one in judged for each in verdicts(one) if each.failure}
        assert reasons == {"budget: one more call would exceed max_calls 8"}
        assert any(all(each.value is not None for each in one["relevance"].row) for one in judged)
        check_totals(judge, judged)
        rest = judge_of(server, cache=cache)
        assert rest.dry_run(samples, ALL).calls == 21 - 8
        assert rest.judge(samples, ALL) == [expect(each) for each in samples]
        assert len(server.calls) == 21
        assert rest.about()["stored"] == 8


@pytest.mark.parametrize("more", [{}, {"votes": 3}, {"separate_calls": True}, {"decompose": True}])
def test_a_dry_run_says_what_is_asked_then(more: Any, tmp_path: Path) -> None:
    samples = [sample(number, TEXTS[: number % 6]) for number in range(12)]
    with serve(well) as server, Cache.open(tmp_path) as cache:
        budget = CallBudget(prices=Prices(1.0, 2.0))
        judge = judge_of(server, cache=cache, budget=budget, **more)
        forecast = judge.dry_run(samples, ALL)
        assert not server.calls
        assert judge.about()["requests"] == 0
        judge.judge(samples, ALL)
        assert forecast.calls == len(server.calls)
        assert forecast.cost is not None
        sent = sum(
            len(message["content"]) / 4
            for call in server.calls
            for message in call.body["messages"]
        )
        assert sent < forecast.prompt_tokens < 2.5 * sent  # with the schema
        again = judge.dry_run(samples, ALL)
        assert (again.calls, again.stored, again.cost) == (0, forecast.calls, 0.0)


def test_a_dry_run_knows_what_must_be_asked_again(tmp_path: Path) -> None:
    with serve(spoilt(left_out)) as server, Cache.open(tmp_path) as cache:
        judge = judge_of(server, cache=cache, attempts=1)
        judge.judge([sample()], ALL)
        more = judge_of(server, cache=cache)
        forecast = more.dry_run([sample()], ALL)
        before = len(server.calls)
        assert more.judge([sample()], ALL)
        assert forecast.calls == len(server.calls) - before == 2


def test_modes_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))
    calls = []
    with serve(well) as server:
        for mode in ("use", "use", "refresh", "off"):
            judge_of(server, cache=mode).judge([sample()], ALL)
            calls.append(len(server.calls))
        assert calls == [3, 3, 6, 9]
    with pytest.raises(OptionError, match="cache mode"):
        LLMJudge(Judge("openai:m", cache="on")).judge([sample()], ALL)


def test_what_refresh_asked_again_is_known_from_then_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))
    with serve(well) as server:
        judge_of(server, cache="use").judge([sample()], ALL)
        judge = judge_of(server, cache="refresh")
        for _ in range(2):  # two runs of one evaluation see the same entities
            judge.judge([sample()], ALL)
        assert len(server.calls) == 6


def test_answers_that_cannot_be_kept_are_told(tmp_path: Path) -> None:
    with serve(well) as server, Cache.open(tmp_path) as cache:
        cache._connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON answer"
            " BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
        judge = judge_of(server, cache=cache)
        assert judge.judge([sample()], ALL) == [expect(sample())]
    [finding] = judge.findings()
    assert (finding.kind, finding.examples) == ("unsaved-answer", ("disk full",))


def test_progress_is_told_in_samples() -> None:
    seen: list[Progress] = []
    with serve(well) as server:
        budget = CallBudget(prices=Prices(1.0, 1.0))
        judge_of(server, budget=budget).judge([sample(n) for n in range(40)], ALL, seen.append)
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert len(set(done)) > 10
    assert seen[-1].done == 40
    assert all(progress.done < 40 for progress in seen[:-1])
    assert {progress.total for progress in seen} == {40}
    assert re.fullmatch(r"1,215 tokens, cost 0\.001215, \d\S* s per call", seen[-1].note)


def test_an_evaluation_passes_on_what_a_judge_tells_of_its_progress() -> None:
    seen: list[Progress] = []
    record = {"query": "1", "question": "Why?", "contexts": ["Because it is."], "reference": "So."}
    with serve(well) as server:
        findwell.judges.judge([record], judge=judge_of(server), progress=seen.append)
    assert (seen[-1].done, seen[-1].total) == (1, 1)
    assert "tokens" in seen[-1].note


def test_a_dry_run_of_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findwell.judges.llm.judge.FORECAST_SAMPLES", 7)
    samples = [sample(number) for number in range(20)]
    with serve(well) as server:
        judge = judge_of(server)
        forecast = judge.dry_run(samples, ALL)
        judged = judge.judge(samples, ALL)
    assert judged == [expect(each) for each in samples]
    assert forecast.requests == 60
    check_totals(judge, judged)


def test_options_go_to_the_server() -> None:
    with serve(well) as server:
        judge = judge_of(server, options={"temperature": None, "max_tokens": 99, "seed": 5})
        judge.judge([sample()], ALL)
        for call in server.calls:
            assert (call.body["max_tokens"], call.body["seed"]) == (99, 5)
            assert "temperature" not in call.body
            assert call.body["response_format"]["json_schema"]["strict"] is True
    assert judge.about()["options"] == {"seed": 5, "max_tokens": 99}


def test_a_serverleft_out_structured_output() -> None:
    def script(call: Call) -> Reaction:
        if "response_format" in call.body:
            return error(400, "response_format is not supported", param="response_format")
        return well(call)

    with serve(script) as server:
        judge = judge_of(server)
        assert judge.judge([sample()], ALL) == [expect(sample())]
    assert judge.about()["server"] == {"forms": ["none"], "left_out": []}


@pytest.mark.parametrize("name", ["votes", "attempts", "call_tokens"])
def test_numbers_are_positive(name: str) -> None:
    numbers: dict[str, Any] = {name: 0}
    with pytest.raises(OptionError, match=name):
        LLMJudge(Judge("openai:m", **numbers))


def test_what_is_told_about_a_judge() -> None:
    with serve(well) as server:
        judge = judge_of(server)
        judge.judge([sample()], ALL)
        about = judge.about()
        assert judge.name == about["judge"] == "openai:some-model"
        assert about["endpoint"] == server.url
        assert about["calls"] == 3
        assert about["prompt_tokens"] == 30
        assert set(about["seconds"]) == {"p50", "p90", "p99"}
        assert Counter(about["verdicts"]) == Counter(
            relevance=5, claims=10, entities=25, statements=10
        )


def test_a_spec_names_a_judge(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["llama3:8b"]\nprompt = 1.0\ncompletion = 2.0\n')
    with serve(well) as server:
        settings = Judge(
            "openai:llama3:8b",
            base_url=server.url,
            key=KEY,
            cache="off",
            concurrency=2,
            max_calls=2,
            prices=str(prices),
            votes=1,
        )
        assert KEY not in repr(settings)
        judge = find_judge(settings)
        [judged] = judge.judge([sample()], ALL)
        assert server.calls[0].body["model"] == "llama3:8b"
    about = judge.about()
    assert (judge.name, about["calls"]) == ("openai:llama3:8b", 2)
    assert about["cost"] == pytest.approx(40e-6)
    assert set(about["failed_verdicts"]) == {"budget"}
    assert any(verdict.value is None for verdict in verdicts(judged))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"max_cost": 1.0}, "a limit on cost needs prices"),
        ({"votes": 0}, "votes must be at least 1"),
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"base_url": "ftp://x"}, "not an http address"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        find_judge(Judge("openai:m", **options))


def test_a_judge_needs_a_model() -> None:
    with pytest.raises(OptionError, match="openai needs the name of a"):
        find_judge("openai:")


def test_the_settings_of_a_judge_have_one_budget_for_all_systems() -> None:
    record = {"query": "1", "question": "Why?", "contexts": ["Because it is."], "reference": "So."}
    others = [{**record, "contexts": [f"Because of {number}."]} for number in range(3)]
    with serve(well) as server:
        judge = Judge("openai:m", base_url=server.url, key=KEY, cache="off", max_calls=2)
        compared = findwell.compare(
            [record], *([other] for other in others), measures="P/relevance", judge=judge
        )
        assert len(server.calls) == 2
    assert compared.values["value"].is_null().to_list() == [False, False, True, True]


def test_a_panel_asks_the_server_that_is_given() -> None:
    record = {"query": "1", "question": "Why?", "contexts": ["Because it is."]}
    with serve(well) as server:
        panel = ["openai:m", Judge("openai:n", cache="off"), "local:text"]
        findwell.evaluate(
            [record],
            measures="P/relevance",
            judge=panel,
            reading=findwell.Reading(base_url=server.url),
        )
        assert {call.body["model"] for call in server.calls} == {"m", "n"}

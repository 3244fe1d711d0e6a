"""The check of a model: what it sees, what it recommends, where it is kept, who goes by it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import FindwellError, JudgeError, OptionError
from findwell.judges.find import find_judge
from findwell.judges.llm.check import CHECKED_ASPECTS, find_check, forecast_check, load_cases
from findwell.judges.settings import Judge
from findwell.judges.verdicts import Judged
from findwell.show import render
from tests.client.asking import HASTE, KEY
from tests.client.server import Call, Reaction, Server, chat, error, serve
from tests.judges.judging import judge_of, sample
from tests.judges.model import read_prompt
from tests.judges.single_model import only, read, with_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

Labels = dict[tuple[str, str], int]
CASES, SHA256 = load_cases()
RELEVANT = {
    (case.sample.question, chunk): right
    for case in CASES
    for chunk, right in zip(case.sample.chunks, case.relevance, strict=True)
}
SUPPORTED = {
    (claim, chunk): right
    for case in CASES
    for claim, row in zip(case.sample.items["claims"], case.claims, strict=True)
    for chunk, right in zip(case.sample.chunks, row, strict=True)
}


def matrix(call: Call, relevant: Labels | None = None, supported: Labels | None = None) -> Reaction:
    """Give the verdicts that are right, or those that are given, in one answer."""
    relevant, supported = relevant or RELEVANT, supported or SUPPORTED
    prompt = read_prompt(call.prompt)
    said: dict[str, Any] = {}
    if '"relevance":' in prompt.task:
        said["relevance"] = [
            {
                "chunk": each,
                "quote": prompt.data[each] * bool(right),
                "grade": right,
            }
            for each in prompt.ids("relevance")
            for right in [relevant[prompt.data["question"], prompt.data[each]]]
        ]
    if '"claims":' in prompt.task:
        said["claims"] = [
            {
                "claim": each,
                "found": [
                    {"chunk": chunk, "quote": text}
                    for chunk, text in prompt.chunks.items()
                    if supported[prompt.listed[each], text]
                ],
            }
            for each in prompt.ids("claims")
        ]
    return chat(json.dumps(said))


def single(call: Call) -> Reaction:
    """Give the verdict that is right, by one word."""
    data, task = read(call.prompt)
    if "claim" in data:
        right = SUPPORTED[data["claim"], data["chunk"]]
    else:
        right = RELEVANT[data["question"], data["chunk"]]
    if "digit" in task:
        return chat(str(right))
    word, other = ("yes", "no") if right else ("no", "yes")
    return with_tokens(chat(word), [{word: 0.8, other: 0.2}])


def both(call: Call) -> Reaction:
    return matrix(call) if "response_format" in call.body else single(call)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))


def settings(server: Server, **more: Any) -> Judge:
    return Judge("openai:some-model", base_url=server.url, key=KEY, retry=HASTE, **more)


def test_the_cases_are_sound() -> None:
    assert len(CASES) >= 10
    assert len({case.sample.question for case in CASES}) == len(CASES)
    labels = [*RELEVANT.values(), *SUPPORTED.values()]
    assert 0.25 < sum(label > 0 for label in labels) / len(labels) < 0.5
    for case in CASES:
        assert len(case.relevance) == len(case.sample.chunks) == len(set(case.sample.chunks))
        assert any(case.relevance)
        assert all(len(row) == len(case.sample.chunks) for row in case.claims)
        assert all(label in range(4) for label in case.relevance)
    assert max(len(case.sample.chunks) for case in CASES) >= 10  # how long may an answer be?


def test_a_model_that_can_do_all_is_asked_for_a_matrix() -> None:
    with serve(both) as server:
        found = findwell.judges.check(settings(server))
    assert found.recommended == "matrix"
    assert [each.way for each in found.ways] == ["matrix", "single"]
    for each in found.ways:
        assert (each.failed, each.right, each.kappa) == (0, each.verdicts, 1.0)
        assert each.verdicts == len(RELEVANT) + len(SUPPORTED)
    assert found["matrix"].calls == len(CASES)
    assert (found.output, found.logprobs, found.left_out) == ("json_schema", True, ())
    assert found.longest == 5
    assert KEY not in json.dumps(found.as_dict())


def test_a_model_that_is_cut_off_is_asked_one_by_one() -> None:
    with serve(only(single, chat("{", finish="length"))) as server:
        found = findwell.judges.check(settings(server))
        assert found.recommended == "single"
        assert [each.way for each in found.ways] == ["matrix", "single"]
        assert found["matrix"].failed == found["matrix"].verdicts
        assert set(found["matrix"].reasons) == {"cut off"}
        assert found["matrix"].given_up
        assert found["matrix"].calls == 3  # of three cases
        assert found["single"].right == found["single"].verdicts
        assert all("max_tokens" in call.body for call in server.calls)
        count = len(server.calls)
        again = findwell.judges.check(settings(server))
        assert (again.recommended, again.stored, len(server.calls)) == ("single", True, count)
        assert again.as_dict() == found.as_dict()
        refreshed = findwell.judges.check(settings(server, cache="refresh"))
        assert not refreshed.stored
        assert len(server.calls) == 2 * count
        other = Judge("openai:other", base_url=server.url, key=KEY, retry=HASTE)
        assert not findwell.judges.check(other).stored


def test_what_fails_least_is_recommended_where_nothing_else_is_better_than_chance() -> None:
    def script(call: Call) -> Reaction:
        if "response_format" not in call.body:
            return chat("yes")
        return matrix(call) if len(read_prompt(call.prompt).chunks) <= 3 else chat("{}")

    with serve(script) as server:
        found = findwell.judges.check(settings(server))
    assert found["single"].kappa == 0.0
    assert not found.logprobs
    # the long case fails as a matrix, and nothing else
    long = next(case for case in CASES if len(case.sample.chunks) >= 10)
    assert found["matrix"].failed == len([*long.labelled(Judged())])
    assert found.recommended == "matrix"


def test_a_judge_that_says_yes_to_all_is_chance_and_never_recommended() -> None:
    with serve(lambda call: chat("yes" if "response_format" not in call.body else "{}")) as server:
        found = findwell.judges.check(settings(server))
        assert found.recommended == ""
        assert found["single"].is_chance
        assert (found["single"].kappa, found["single"].kappa_low) == (0.0, None)
        assert "no better than chance" in found.in_words()
        for how in ("table", "markdown"):
            assert "no better than chance: do not use this judge" in render(found, how)
        again = findwell.judges.check(settings(server))
        assert (again.stored, again.recommended) == (True, "")
        sample = {"question": "Why?", "contexts": ["So."]}
        for judge in (
            settings(server, ask="auto"),
            settings(server),
            settings(server, cache="off"),
        ):
            with pytest.raises(JudgeError, match="no better than chance"):
                findwell.evaluate([sample], measures="P@1/relevance", judge=judge)


def test_a_way_that_is_chance_is_not_recommended_though_it_takes_the_fewest_calls() -> None:
    """Verdicts as a matrix are drawn by lot, single ones are right."""
    dice = random.Random(1)
    drawn = {pair: dice.choice((0, 2)) for pair in RELEVANT}
    held = {pair: int(dice.random() < 0.4) for pair in SUPPORTED}
    lot = partial(matrix, relevant=drawn, supported=held)
    with serve(
        lambda call: lot(call) if "response_format" in call.body else single(call)
    ) as server:
        found = findwell.judges.check(settings(server))
    way = found["matrix"]
    assert way.failed_share <= 0.05
    assert way.kappa_low is not None
    assert way.kappa_low <= 0 < found["single"].kappa_low  # type: ignore[operator]
    assert (way.is_chance, found.recommended) == (True, "single")
    assert "no better than chance: matrix" in render(found, "table")


def test_a_check_that_did_not_end_is_not_kept(tmp_path: Path) -> None:
    with serve(both) as server:
        with pytest.raises(JudgeError, match="did not finish"):
            findwell.judges.check(settings(server, max_calls=3))
        assert not list((tmp_path / "cache").glob("judge-checks/*"))
        found = findwell.judges.check(settings(server))
        assert found["matrix"].calls == len(CASES) - 3  # the others are in the cache
    with serve(lambda _: error(500)) as broken, pytest.raises(FindwellError):
        findwell.judges.check(settings(broken))


def test_a_check_on_a_busy_server_says_nothing_about_the_model(tmp_path: Path) -> None:
    later = Reaction(b"", 429, {"Retry-After": "1000"})
    with (
        serve(lambda call: later if call.number % 3 == 2 else both(call)) as server,
        pytest.raises(JudgeError, match="did not finish"),
    ):
        findwell.judges.check(settings(server))
    assert not list((tmp_path / "cache").glob("judge-checks/*"))


def test_auto_goes_by_the_check() -> None:
    def script(call: Call) -> Reaction:
        data, _ = read(call.prompt)
        known = data.get("question") in {question for question, _ in RELEVANT}
        if "response_format" in call.body:
            return chat("{", finish="length")
        return single(call) if known else chat("yes" if "Brazil" in data["chunk"] else "no")

    aspects = frozenset({"claims"})
    with serve(script) as server:
        options = {"cache": "use", "ask": "auto"}
        judge = judge_of(server, **options)
        [judged] = judge.judge([sample()], aspects)
        assert judged["claims"].rows[0][0].value == 1
        about = judge.about()
        assert (about["ask"], about["check"]["recommended"]) == ("single", "single")
        assert about["calls"] == len(server.calls)  # the check is counted
        [finding] = judge.findings()
        assert finding.kind == "way-to-ask"
        assert finding.examples[0].startswith("-J ask=single (matrix: 0% right, 100% failed")
        count = len(server.calls)
        second = judge_of(server, **options)
        assert second.dry_run([sample()], aspects).calls == 0
        assert second.judge([sample()], aspects) == [judged]
        assert second.about()["check"] == about["check"]
        assert len(server.calls) == count
        plain = judge_of(server, ask="single", cache="use")
        assert plain.judge([sample()], aspects) == [judged]
        assert len(server.calls) == count


def test_the_way_that_a_kept_check_recommends_is_the_default() -> None:
    """Never the matrix against its advice, and nothing is checked without being asked to."""
    cut_off = chat("{", finish="length")
    aspects = frozenset({"relevance"})
    with serve(only(single, cut_off)) as server:
        assert judge_of(server).find_way(ask=True) == "matrix"
        assert not server.calls
        findwell.judges.check(settings(server))
        server.script = only(lambda _: chat("no"), cut_off)
        for more in ({"cache": "use"}, {"cache": "refresh"}, {"cache": "off"}):
            server.calls.clear()
            judge = judge_of(server, **more)
            assert judge.dry_run([sample()], aspects).calls == len(sample().chunks)
            [judged] = judge.judge([sample()], aspects)
            assert [verdict.value for verdict in judged["relevance"].row] == [0] * 5
            assert not any("response_format" in call.body for call in server.calls)
            assert judge.about()["ask"] == "single"
            [finding] = judge.findings()
            assert finding.kind == "way-to-ask"
        named = judge_of(server, ask="matrix", cache="use")
        named.judge([sample()], aspects)
        assert named.about()["ask"] == "matrix"


def lenient(call: Call) -> Reaction:
    """Say yes to everything, but more probably where that is right."""
    data, task = read(call.prompt)
    if "digit" in task:
        return chat("2")
    known = data.get("question") in {question for question, _ in RELEVANT}
    if "claim" in data:
        right = SUPPORTED.get((data["claim"], data["chunk"]), 0)
    elif known:
        right = RELEVANT[data["question"], data["chunk"]]
    else:
        right = "Brazil" in data["chunk"]
    chance = 0.95 if right else 0.65
    return with_tokens(chat("yes"), [{"yes": chance, "no": 1 - chance}])


def test_a_model_that_is_too_kind_is_cut_where_the_cases_say() -> None:
    with serve(only(lenient, chat("{", finish="length"))) as server:
        found = findwell.judges.check(settings(server))
        relevance, claims = found["single"].aspects
        for each in (relevance, claims):
            assert each.kappa == 0.0
            assert 0.65 < (each.cutoff or 0) < 0.95
            assert each.kappa_held_out == pytest.approx(1.0)
        assert (found.recommended, found.left_to_local) == ("single", ())
        assert found["single"].seconds_a_call is not None
        kept = findwell.judges.check(settings(server))
        assert replace(kept, stored=False) == found
        judge = judge_of(server, cache="use")
        [judged] = judge.judge([sample()], frozenset({"relevance"}))
        said = [bool(verdict.value) for verdict in judged["relevance"].row]
        assert said == ["Brazil" in chunk for chunk in sample().chunks]
        assert judge.about()["cutoffs"] == found["single"].cutoffs
        estimate = judge_of(server, cache="off").dry_run([sample()], frozenset({"relevance"}))
        assert estimate.seconds == pytest.approx(
            estimate.calls * (found["single"].seconds_a_call or 0)
        )


def test_an_aspect_that_local_judges_better_is_left_to_it() -> None:
    def script(call: Call) -> Reaction:
        data, _ = read(call.prompt)
        wrong = "claim" in data and len(data["chunk"]) % 4 == 0
        return chat("yes") if wrong else single(call)

    with serve(only(script, chat("{", finish="length"))) as server:
        found = findwell.judges.check(settings(server))
    assert found.left_to_local == ("claims",)
    assert "leave claims to local" in found.in_words()
    shown = " ".join(render(found, "table").split())
    assert "leave claims to --judge local" in shown


def test_a_check_that_breaks_ends_the_job_and_no_matrix_is_asked(tmp_path: Path) -> None:
    with serve(both) as server:
        judge = judge_of(server, ask="auto", cache="use", max_calls=3)
        with pytest.raises(JudgeError, match="did not finish") as stop:
            judge.judge([sample()], frozenset({"relevance"}))
        assert "-J ask=matrix or -J ask=single" in stop.value.fix
        assert len(server.calls) == 3
        asked = {question for question, _ in RELEVANT}
        assert all(read_prompt(call.prompt).data["question"] in asked for call in server.calls)
    assert not list((tmp_path / "cache").glob("judge-checks/*"))


def test_a_dry_run_of_a_model_that_will_be_checked_counts_the_check() -> None:
    aspects = frozenset({"relevance"})
    with serve(both) as server:
        judge = judge_of(server, ask="auto")
        check = forecast_check(settings(server, cache="off"))
        assert judge.dry_run([sample()], aspects).calls == check.calls + len(sample().chunks)
        assert not server.calls


def test_a_check_is_no_batch_and_costs_what_single_calls_cost() -> None:
    prices = {"prices": "2, 4"}
    costs = []
    for batch in (False, True):
        with serve(both) as server:
            judge = find_judge(settings(server, ask="auto", batch=batch, **prices))
            find_check(judge, ask=True)  # type: ignore[arg-type]
            costs.append(judge.about()["cost"])
            estimate = forecast_check(settings(server, batch=batch, cache="off", **prices))
            costs.append(estimate.cost)
    assert costs[0] > 0
    assert costs[:2] == pytest.approx(costs[2:])


def test_an_estimate_asks_nobody() -> None:
    with serve(both) as server:
        estimate = forecast_check(settings(server))
        assert not server.calls
        findwell.judges.check(settings(server))
        grades = sum("digit" in call.prompt for call in server.calls)
        assert estimate.calls == len(server.calls) - grades
        assert forecast_check(settings(server, ask="matrix")).calls == 0


@pytest.mark.parametrize("judge", ["local", "replay:x", 7])
def test_only_models_are_checked(judge: Any) -> None:
    with pytest.raises(OptionError):
        findwell.judges.check(judge)


def test_names_of_ways_are_checked() -> None:
    with pytest.raises(OptionError, match="did you mean single"):
        Judge("openai:m", ask="singel")
    with pytest.raises(OptionError, match="max_failures must be"):
        Judge("openai:m", max_failures=0.0)
    assert frozenset({"relevance", "claims"}) == CHECKED_ASPECTS


def test_the_command_shows_the_check(cli: Findwell) -> None:
    with serve(only(single, chat("{", finish="length"))) as server:
        command = (
            "judge",
            "check",
            "openai:some-model",
            "-J",
            f"base_url={server.url}",
            "-J",
            "concurrency=4",
        )
        estimate = cli(*command, "--dry-run")
        assert estimate.code == 0, estimate
        assert not server.calls
        done = cli(*command)
        assert done.code == 0, done
        assert "ask it for one verdict at a time: -J ask=single" in done.out
        assert "judge-checks" not in done.err
        again = cli(*command, "--format", "json")
        assert "-J cache=refresh checks it again" in again.err
        shown = again.answer
        assert shown["recommended"] == "single"
        assert [way["way"] for way in shown["ways"]] == ["matrix", "single"]
        one = cli(*command, "-J", "ask=matrix", "--format", "json")
        assert [way["way"] for way in one.answer["ways"]] == ["matrix"]
    bad = cli("judge", "check", "local:text")
    assert bad.code == 2
    assert "asks no model" in bad.err

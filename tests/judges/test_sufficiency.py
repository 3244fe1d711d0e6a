"""Sufficiency: one verdict about a list as a whole, and every cutoff is another list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import MeasureError, OptionError
from findwell.judges.client.protocol import Reason
from findwell.judges.find import find_judge
from findwell.judges.replay import FunctionJudge, ReplayJudge, record
from findwell.judges.verdicts import Judgement, JudgeReason, Sample
from tests.client.server import Call, Reaction, chat, serve
from tests.judges.judging import judge_of
from tests.judges.model import read_prompt, spoilt, well

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

SUFFICIENCY = frozenset({"sufficiency"})
CHUNKS = ("Brasília is a capital.", "Rio has beaches.", "It was founded in 1960.")
QUESTION = "Was a capital founded?"


def sample(*chunks: str, question: str = QUESTION) -> Sample:
    return Sample("q", question, chunks)


def records(*lengths: int) -> list[dict[str, Any]]:
    return [
        {"query_id": f"q{length}", "question": QUESTION, "contexts": CHUNKS[:length]}
        for length in lengths
    ]


def all_there(sample: Sample) -> dict[str, Any]:
    """Say yes where the capital and its founding stand somewhere in the chunks."""
    text = " ".join(sample.chunks)
    return {"sufficiency": "capital" in text and "founded" in text}


# --- what is measured -----------------------------------------------------------------------------


def test_the_mean_of_verdicts_about_whole_lists() -> None:
    result = findwell.evaluate(records(3, 2, 1, 0), measures="context_sufficiency", judge=all_there)
    assert result.values == {"context_sufficiency": 0.25}
    assert result.per_query["value"].to_list() == [1.0, 0.0, 0.0, 0.0]


def test_no_reference_is_needed_but_a_question() -> None:
    with pytest.raises(findwell.FindwellError, match="no query has a question, which judging suff"):
        findwell.evaluate(
            [{"query": "q", "question": " ", "contexts": ["a"]}],
            measures="context_sufficiency",
            judge=all_there,
        )


def test_every_cutoff_is_judged_for_itself_and_equal_lists_once() -> None:
    asked: list[tuple[str, int]] = []

    def judge(sample: Sample) -> dict[str, Any]:
        asked.append((sample.query, len(sample.chunks)))
        return {"sufficiency": len(sample.chunks) == 2}  # no more and no fewer

    names = ["context_sufficiency", *(f"context_sufficiency@{k}" for k in (1, 2, 9))]
    result = findwell.evaluate(records(3, 2), measures=names, judge=judge)
    assert list(result.values) == names
    assert list(result.values.values()) == [0.5, 0.0, 1.0, 0.5]
    assert sorted(asked) == [("q2", 1), ("q2", 2), ("q3", 1), ("q3", 2), ("q3", 3)]
    for name in names:  # each alone is what it is in company
        alone = findwell.evaluate(records(3, 2), measures=[name], judge=judge)
        assert alone.values == {name: result[name]}


def test_a_dialect_that_reads_the_whole_list_is_given_all_that_was_asked() -> None:
    """LiveRAG's nDCG reads below its cutoff, and here nothing is below it."""
    for name in ("nDCG@2/sufficiency", "nDCG@2/sufficiency(depth=2)"):
        result = findwell.evaluate(
            records(3),
            measures=[name],
            dialect="liverag",
            judge=lambda _: {"sufficiency": True},
        )
        assert list(result.values.values()) == [1.0]


@pytest.mark.parametrize("name", ["recall@2", "success@2", "P@2", "RR@2", "nDCG@2", "F@2"])
def test_any_measure_over_it_is_the_verdict_about_its_cutoff(name: str) -> None:
    result = findwell.evaluate(
        records(3),
        measures=[f"{name}/sufficiency", f"{name.replace('2', '3')}/sufficiency"],
        judge=lambda sample: {"sufficiency": len(sample.chunks) == 2},
    )
    assert list(result.values.values()) == [1.0, 0.0]


def test_a_cutoff_that_was_not_judged_is_an_error(tmp_path: Path) -> None:
    fresh = findwell.evaluate(records(3, 2), measures="context_sufficiency@2", judge=all_there)
    for result in (fresh, findwell.load(fresh.save(tmp_path / "saved"))):
        assert result.values == {"context_sufficiency@2": 0.0}
        for name in ("context_sufficiency", "context_sufficiency@1", "success@3/sufficiency"):
            with pytest.raises(MeasureError, match="has no relation 'sufficiency") as stop:
                _ = result.score(name).values
            assert name in stop.value.fix
        with pytest.raises(MeasureError, match="no relation"):
            findwell.statistics.curve(result, ["context_sufficiency"], [1, 2])


def test_it_is_no_relation_for_measures_that_name_none() -> None:
    with pytest.raises(OptionError, match="every cutoff is another list"):
        findwell.evaluate(records(3), measures="success@2", by="sufficiency", judge=all_there)


def test_a_depth_of_its_own_is_a_cutoff() -> None:
    result = findwell.evaluate(records(3), measures="recall/sufficiency(depth=2)", judge=all_there)
    assert result.values == {"context_sufficiency@2": 0.0}
    with pytest.raises(OptionError, match="depth=-1 of sufficiency is out of range"):
        findwell.evaluate(records(3), measures="recall/sufficiency(depth=-1)", judge=all_there)


# --- other judges ---------------------------------------------------------------------------------


def test_a_function_says_one_thing_about_all_chunks() -> None:
    judge = FunctionJudge(lambda _: {"sufficiency": [1, 1, 1]})
    (judged,) = judge.judge([sample(*CHUNKS)], SUFFICIENCY)
    assert judged.failures["sufficiency"].reason is JudgeReason.UNFIT
    quote = {"value": 1, "reason": "there", "quote": "in 1960"}
    (judged,) = FunctionJudge(lambda _: {"sufficiency": quote}).judge(
        [sample(*CHUNKS)], SUFFICIENCY
    )
    assert judged["sufficiency"].rows == ((Judgement(1, "there", "in 1960"),),)
    assert judged["sufficiency"].chunks == 3


def test_a_panel_votes() -> None:
    panel = find_judge([all_there, lambda _: {"sufficiency": 1}, lambda _: {"sufficiency": 0}])
    yes, no = panel.judge([sample(*CHUNKS), sample(CHUNKS[0])], SUFFICIENCY)
    assert [judged["sufficiency"].row[0].value for judged in (yes, no)] == [1, 0]
    assert panel.about()["agreement"]["sufficiency"][0]["same"] == 0.5


def test_a_recorded_verdict_serves_for_the_same_list_only(tmp_path: Path) -> None:
    one = sample(*CHUNKS)
    judged = FunctionJudge(all_there).judge([one], SUFFICIENCY)
    record([one], judged, tmp_path / "v")
    replay = ReplayJudge(tmp_path / "v")
    assert replay.judge([one], SUFFICIENCY) == judged
    (shorter,) = replay.judge([sample(*CHUNKS[:2])], SUFFICIENCY)
    assert shorter.failures["sufficiency"].reason is JudgeReason.OTHER_TEXTS
    assert not shorter.verdicts


def test_the_local_judge_says_that_it_cannot() -> None:
    result = findwell.evaluate(
        records(3, 0), measures=["context_sufficiency", "P@1/relevance"], judge="local:text"
    )
    row = result.summary.filter(measure="context_sufficiency").to_dicts()[0]
    assert (row["failed"], row["lower"], row["upper"]) == (1, 0.0, 0.5)
    assert result["P@1/relevance"] is not None
    (finding,) = [each for each in result.findings if each.kind == "judge-failed"]
    assert "needs a language model" in finding.message
    assert "--judge openai:MODEL" in finding.fix


# --- a language model -----------------------------------------------------------------------------


def test_a_model_is_asked_once_and_shown_all_chunks() -> None:
    with serve(well) as server:
        judge = judge_of(server)
        yes, no, nothing = judge.judge([sample(*CHUNKS), sample(CHUNKS[1]), sample()], SUFFICIENCY)
        assert sorted(len(read_prompt(call.prompt).chunks) for call in server.calls) == [1, 3]
    (verdict,) = yes["sufficiency"].row
    assert (verdict.value, verdict.reason) == (1, "all of it is there")
    assert (verdict.quote, verdict.unproven) == ("Brasília is a capital.", False)
    assert no["sufficiency"].row[0].value == 0
    assert "founded" in no["sufficiency"].row[0].reason
    assert nothing["sufficiency"].row == ()
    assert judge.about()["verdicts"] == {"sufficiency": 2}


def test_sixty_chunks_are_one_call() -> None:
    with serve(well) as server:
        judge_of(server).judge([sample(*(f"Chunk {n}." for n in range(60)))], SUFFICIENCY)
        assert [len(read_prompt(call.prompt).chunks) for call in server.calls] == [60]


def test_a_list_that_does_not_fit_a_call_fails_and_is_never_cut() -> None:
    with serve(well) as server:
        judge = judge_of(server, call_tokens=40)
        long, short = judge.judge([sample(*CHUNKS), sample(CHUNKS[0])], SUFFICIENCY)
        assert len(server.calls) == 1
    failure = long.failures["sufficiency"]
    assert failure.reason is Reason.TOO_LONG
    assert "one call shows 40" in failure.detail
    assert short["sufficiency"].row[0].value == 0


def test_a_server_for_which_it_is_too_much_is_not_asked_about_halves() -> None:
    with serve(lambda _: chat("half", finish="length")) as server:
        (judged,) = judge_of(server).judge([sample(*CHUNKS)], SUFFICIENCY)
        assert len(server.calls) == 1
    failure = judged["sufficiency"].row[0].failure
    assert failure is not None
    assert failure.reason is Reason.CUT_OFF


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"sufficient": 1}, "a value of the wrong type"),
        ({"found": [{"chunk": "c9", "quote": ""}]}, "an unknown id"),
        ({"reason": 7}, "a value of the wrong type"),
        ({"list": "c1"}, "an id left out"),
    ],
)
def test_a_malformed_answer_is_asked_again(change: dict[str, Any], fault: str) -> None:
    def spoil(call: Call, said: dict[str, Any]) -> dict[str, Any]:
        if "attempt" not in call.prompt:
            said["sufficiency"][0] |= change
        return said

    with serve(spoilt(spoil)) as server:
        judge = judge_of(server)
        (judged,) = judge.judge([sample(*CHUNKS)], SUFFICIENCY)
        assert len(server.calls) == 2
        assert len(read_prompt(server.calls[1].prompt).chunks) == 3
    assert judged["sufficiency"].row[0].value == 1
    assert fault in judge.about()["malformed"]


def test_a_yes_without_a_quote_that_is_there_is_unproven() -> None:
    def script(call: Call) -> Reaction:
        entry = {"list": "all", "found": [{"chunk": "c1", "quote": "made up"}], "reason": ""}
        del call
        return chat(json.dumps({"sufficiency": [{**entry, "sufficient": True}]}))

    with serve(script) as server:
        (judged,) = judge_of(server).judge([sample(*CHUNKS)], SUFFICIENCY)
    assert judged["sufficiency"].row == (Judgement(1, quote="made up", unproven=True),)


def test_without_a_question_nothing_is_asked() -> None:
    with serve(well) as server:
        (judged,) = judge_of(server).judge([sample(*CHUNKS, question=" ")], SUFFICIENCY)
        assert not server.calls
    assert judged.failures["sufficiency"].reason is JudgeReason.NO_QUESTION


# --- the command line -----------------------------------------------------------------------------


def test_it_is_explained(save: Save, cli: Findwell, tmp_path: Path) -> None:
    path = save("s.jsonl", "\n".join(map(json.dumps, records(3))))
    one = Sample("q3", QUESTION, CHUNKS)
    judge = FunctionJudge(
        lambda _: {"sufficiency": {"value": 1, "reason": "Founded 1960.", "quote": "in 1960"}}
    )
    record([one], judge.judge([one], SUFFICIENCY), tmp_path / "v")
    done = cli(
        "explain", path, "-m", "context_sufficiency@3", "--judge", f"replay:{tmp_path / 'v'}"
    )
    assert done.code == 0
    assert "3 chunks together" in done.out
    assert "Founded 1960." in done.out
    assert "context_sufficiency@3 (findwell) = " in done.out


def test_a_curve_asks_for_every_cutoff(save: Save, cli: Findwell) -> None:
    path = save("s.jsonl", "\n".join(map(json.dumps, records(3, 2))))
    with serve(well) as server:
        named = ("curve", path, "-m", "context_sufficiency", "--at", "1,3", "--format", "json")
        done = cli(*named, "--judge", "openai:m", "-J", f"base_url={server.url}", "-J", "cache=off")
    assert [(row["k"], row["value"]) for row in done.answer["curve"]] == [
        (1, 0.0),
        (3, 0.5),
    ]

"""Nothing to judge, and very much to judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from findwell.core.errors import OptionError
from findwell.judges.verdicts import Judgement
from tests.client.server import Call, serve
from tests.judges.building import sample_of
from tests.judges.judging import (
    ALL,
    REFERENCE,
    TEXTS,
    check_shape,
    check_totals,
    expect,
    judge_of,
    sample,
    verdicts,
)
from tests.judges.model import read_prompt, spoilt, well


def test_no_samples_no_calls() -> None:
    with serve(well) as server:
        assert judge_of(server).judge([], ALL) == []
        assert judge_of(server).dry_run([], ALL).calls == 0
        assert not server.calls


def test_no_chunks_leave_claims_and_entities_to_be_missed() -> None:
    with serve(well) as server:
        judge = judge_of(server)
        [judged] = judge.judge([sample(0, [])], ALL)
        assert len(server.calls) == 1  # entities are the reference's
    assert judged == expect(sample(0, []))
    assert judged["claims"].rows == ((), ())
    assert judged["entities"].rows == ((), (), (), (), ())
    check_totals(judge, [judged])


@pytest.mark.parametrize("reference", ["", "  \n"])
def test_no_reference_no_claims_no_entities(reference: str) -> None:
    one = replace(sample(), reference=reference, items={"claims": ()})
    with serve(well) as server:
        [judged] = judge_of(server).judge([one], ALL)
        assert len(server.calls) == 2
    assert (judged["claims"].items, judged["entities"].items, judged.failures) == ((), (), {})
    assert judged["relevance"].row == expect(sample())["relevance"].row


def test_a_reference_without_entities() -> None:
    one = sample(0, TEXTS, "it has none.")
    with serve(well) as server:
        [judged] = judge_of(server).judge([one], ALL)
        assert len(server.calls) == 3
    assert judged == expect(one)
    assert judged["entities"].rows == ()


def test_no_question_is_a_reason() -> None:
    one = replace(sample(), question=" ")
    with serve(well) as server:
        judge = judge_of(server)
        [judged] = judge.judge([one], ALL)
    assert set(judged.failures) == {"relevance", "statements"}
    assert judged["relevance"].row == ()
    assert judged["claims"].rows == expect(sample())["claims"].rows
    check_totals(judge, [judged])


def test_statements_belong_to_chunks() -> None:
    one = replace(sample(), parts={})
    with serve(well) as server, pytest.raises(OptionError, match="5 chunks have 0 lists"):
        judge_of(server).judge([one], ALL)


def test_duplicates_are_asked_about_once() -> None:
    with serve(well) as server:
        judge = judge_of(server)
        judged = judge.judge([sample()] * 10, ALL)
        assert len(server.calls) == 3
    assert judged == [expect(sample())] * 10
    assert judge.about()["repeated"] == 27


def test_entities_that_are_not_in_the_reference_are_not_counted() -> None:
    def spoil(call: Call, said: dict[str, Any]) -> dict[str, Any]:
        if "reference" in read_prompt(call.prompt).data:
            said["entities"] = ["Atlantis", "brasília", "Brasília", *said["entities"]]
        return said

    with serve(spoilt(spoil)) as server:
        judge = judge_of(server)
        [judged] = judge.judge([sample()], frozenset({"entities"}))
    assert judged["entities"].items == ("brasília", "The", "Brazil", "Rio", "1960")
    about = judge.about()
    assert about["invented"] == 1
    assert about["asked_again"] == 2
    assert [finding.kind for finding in judge.findings()] == ["invented-item"]


def test_two_hundred_chunks_go_in_several_calls() -> None:
    chunks = [f"Chunk {number} of Brazil. The capital is {number}." for number in range(200)]
    one = sample(0, chunks)
    with serve(well) as server:
        judge = judge_of(server)
        [judged] = judge.judge([one], ALL)
        assert len(server.calls) == 1 + 5 + 2
        forecast = judge_of(server).dry_run([one], ALL)
    assert forecast.calls == 8
    assert judged == expect(one)
    check_totals(judge, [judged])


def test_chunks_are_divided_by_their_length() -> None:
    one = sample(0, [f"{number} Brazil " * 100 for number in range(20)])
    with serve(well) as server:
        [judged] = judge_of(server, call_tokens=1000).judge([one], ALL)
        for call in server.calls:
            assert sum(map(len, read_prompt(call.prompt).data.values())) < 4 * 1500
        assert len(server.calls) > 10
    assert judged == expect(one)


def test_a_chunk_of_a_hundred_thousand_tokens_is_cut_with_a_finding() -> None:
    start = "The capital of Brazil is Brasília. "
    long = start + "word " * 100_000
    inside = {"claims": (REFERENCE,), "statements": ((long,), ("S.",))}
    one = sample_of("q", "The capital?", (long, "Short."), REFERENCE, **inside)
    with serve(well) as server:
        judge = judge_of(server)
        [judged] = judge.judge([one], ALL)
        assert all(len(call.prompt) < 4 * 33_000 for call in server.calls)
    check_shape(one, judged)
    assert judged["relevance"].row[0] == Judgement(1, quote="The capital of Brazil")
    assert all(verdict.value is not None for verdict in verdicts(judged))
    assert judge.about()["cut"] == 2
    [finding] = judge.findings()
    assert (finding.kind, finding.examples) == ("cut-text", ("q c1", "q c1.s1"))
    assert judged["statements"].parts == one.parts["statements"]  # only what is shown is cut


def test_findings_are_about_what_was_judged_last() -> None:
    with serve(well) as server:
        judge = judge_of(server, call_tokens=20)
        judge.judge([sample(0, ["Brazil " * 100])], frozenset({"relevance"}))
        assert [finding.examples for finding in judge.findings()] == [("q0 c1",)]
        judge.judge([sample(1, ["Brazil."])], frozenset({"relevance"}))
        assert judge.findings() == ()
        assert judge.about()["cut"] == 1


def test_very_many_claims_and_entities() -> None:
    reference = " ".join(f"Name{number} is {number}." for number in range(130))
    one = sample(0, TEXTS[:2], reference)
    with serve(well) as server:
        [judged] = judge_of(server).judge([one], ALL)
    assert len(judged["claims"].rows) == 130
    assert judged == expect(one)

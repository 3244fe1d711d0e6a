"""Judges made of functions, of recorded verdicts, and of other judges; and how they are found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import InputError, OptionError
from findwell.judges.client.protocol import Reason
from findwell.judges.find import find_judge
from findwell.judges.local import LocalJudge
from findwell.judges.panel import PanelJudge
from findwell.judges.replay import (
    FunctionJudge,
    ReplayJudge,
    as_judged,
    as_record,
    fingerprint,
    record,
)
from findwell.judges.settings import Judge
from findwell.judges.verdicts import (
    AspectVerdicts,
    Judged,
    JudgeFailure,
    Judgement,
    JudgeReason,
    Sample,
)
from tests.judges.building import FOUR, judged_of, sample_of
from tests.strategies import examples

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.core.progress import Progress
    from tests.conftest import Save

ALL = FOUR
RELEVANCE: frozenset[str] = frozenset({"relevance"})
SAMPLE = sample_of(
    "q1",
    "Where is Rome?",
    ("Rome is in Italy.", "Paris\u2028is nice."),
    reference="Rome is in Italy.",
    claims=("Rome is in Italy.", "It is old."),
    statements=(("Rome is in Italy.",), ("Paris is nice.", "So it is.")),
)
WHOLE: dict[str, Any] = {
    "relevance": [3, {"value": 0, "reason": "other city", "quote": "Paris is nice."}],
    "claims": [[True, False], [0, 0]],
    "entity_texts": ["Rome", "Italy"],
    "entities": [[1, 0], [1, 0]],
    "statements": [[1], [0, 0]],
}


def values(row: tuple[Judgement, ...]) -> list[int | None]:
    return [verdict.value for verdict in row]


def ask(answer: object, aspects: frozenset[str] = ALL) -> Judged:
    (judged,) = FunctionJudge(lambda _: answer, name="it").judge([SAMPLE], aspects)
    return judged


# --- plain data -----------------------------------------------------------------------------------


def test_a_whole_answer_is_taken_as_it_is() -> None:
    judged = ask(WHOLE)
    assert values(judged["relevance"].row) == [3, 0]
    assert judged["relevance"].row[1].reason == "other city"
    assert judged["claims"].items == SAMPLE.items["claims"]
    assert [values(row) for row in judged["claims"].rows] == [[1, 0], [0, 0]]
    assert judged["entities"].items == ("Rome", "Italy")
    assert [values(row) for row in judged["statements"].rows] == [[1], [0, 0]]
    assert not judged.failures


def test_there_and_back_again() -> None:
    judged = ask(WHOLE)
    assert as_judged(json.loads(json.dumps(as_record(judged))), SAMPLE, ALL) == judged
    assert ask(judged) == judged


@pytest.mark.parametrize(
    ("change", "aspect", "reason"),
    [
        ({"relevance": [1]}, "relevance", "1 verdict about relevance, but there are 2 chunks"),
        ({"relevance": "33"}, "relevance", "is not a list of verdicts"),
        ({"relevance": None}, "relevance", "no verdicts about relevance"),
        ({"claims": [[1, 1]]}, "claims", "verdicts about 1 of 2 claims"),
        ({"claims": [[1, 1], [1]]}, "claims", "1 verdict about claim 2"),
        ({"claims": [[1, 1], 5]}, "claims", "is not a list of verdicts about claim 2"),
        ({"claim_texts": "x"}, "claims", "claim_texts is not a list of texts"),
        ({"entity_texts": ["Rome"]}, "entities", "verdicts about 2 of 1 entities"),
        ({"entity_texts": [1, 2]}, "entities", "entity_texts is not a list of texts"),
        ({"statements": [[1]]}, "statements", "the statements of 1 of 2 chunks"),
        ({"statements": [[1], [0]]}, "statements", "1 verdict about the statements of chunk 2"),
        ({"statement_texts": [["a"]]}, "statements", "statements of 1 chunks"),
        ({"failures": {"claims": "no luck"}}, "claims", "no luck"),
    ],
)
def test_what_does_not_fit_fails_its_aspect_alone(
    change: dict[str, Any], aspect: str, reason: str
) -> None:
    judged = ask(WHOLE | change)
    assert list(judged.failures) == [aspect]
    assert reason in str(judged.failures[aspect])
    assert values(judged["relevance"].row) == ([] if aspect == "relevance" else [3, 0])


def test_entities_without_their_texts_fail() -> None:
    judged = ask({name: value for name, value in WHOLE.items() if name != "entity_texts"})
    assert judged.failures == {
        "entities": JudgeFailure(JudgeReason.UNFIT, "entities without entity_texts")
    }


@pytest.mark.parametrize("grade", [4, -1, 1.5, "3", [1], float("nan"), {"value": 7}])
def test_a_grade_that_is_none_fails_alone(grade: object) -> None:
    judged = ask(WHOLE | {"relevance": [grade, 1]})
    assert values(judged["relevance"].row) == [None, 1]
    assert "is not a grade from 0 to 3" in str(judged["relevance"].row[0].failure)
    assert not judged.failures


def test_a_verdict_that_is_missing_says_so() -> None:
    judged = ask(WHOLE | {"relevance": [None, {"value": None, "reason": "too long"}]})
    assert [str(verdict.failure) for verdict in judged["relevance"].row] == [
        "no verdict",
        "no verdict: too long",
    ]
    assert values(ask(WHOLE | {"claims": [[2, 0], [0, 0]]})["claims"].rows[0]) == [None, 0]


def test_a_quote_is_looked_for_in_its_chunk() -> None:
    quotes = ["Rome  is\nin", "nowhere"]
    row = [{"value": 1, "quote": quote} for quote in quotes]
    found = ask(WHOLE | {"relevance": row})["relevance"].row
    assert [verdict.unproven for verdict in found] == [False, True]
    no = ask(WHOLE | {"relevance": [{"value": 0, "quote": "nowhere"}, 0]})["relevance"].row
    assert not no[0].unproven


def test_what_is_proven_stays_proven_and_what_is_not_does_not() -> None:
    relevance = (Judgement(1, quote="“rome is  in”"), Judgement(2, quote="", unproven=True))
    statements = ((Judgement(1, quote="Rome is in"),), (Judgement(1), Judgement(0)))
    parts = (("That is where Rome is.",), ("Paris is nice.", "So it is."))
    judged = Judged(
        {
            "relevance": AspectVerdicts((relevance,)),
            "statements": AspectVerdicts(statements, parts=parts),
        }
    )
    assert as_judged(as_record(judged), SAMPLE, frozenset(judged.verdicts)) == judged


# --- functions ------------------------------------------------------------------------------------


def test_a_function_that_fails_costs_its_sample_only() -> None:
    def picky(sample: Sample) -> dict[str, Any]:
        if sample.query == "bad":
            raise ZeroDivisionError("by nothing")
        return {"relevance": [1] * len(sample.chunks)}

    judge = FunctionJudge(picky)
    samples = [Sample("good", "?", ("a",)), Sample("bad", "?", ("a",)), Sample("fine", "?", ())]
    good, bad, fine = judge.judge(samples, RELEVANCE)
    assert values(good["relevance"].row) == [1]
    assert str(bad.failures["relevance"]) == "error in the judge: ZeroDivisionError: by nothing"
    assert fine == judged_of(relevance=())
    assert judge.about()["calls"] == 3
    assert judge.about()["failed"] == 1


def test_a_function_that_stops_on_purpose_stops() -> None:
    def stops(sample: Sample) -> None:
        raise InputError(f"nothing about {sample.query}")

    with pytest.raises(InputError, match="nothing about q1"):
        FunctionJudge(stops).judge([SAMPLE], ALL)


@pytest.mark.parametrize("answer", [None, 3, "yes", [1, 2]])
def test_a_function_must_return_a_dict(answer: object) -> None:
    judged = ask(answer)
    assert judged.failures.keys() == ALL
    assert "no dict" in str(judged.failures["claims"])


def test_async_functions_are_refused() -> None:
    async def judge(sample: Sample) -> dict[str, Any]:
        return {"relevance": [sample.query]}

    with pytest.raises(OptionError, match="cannot be async"):
        FunctionJudge(judge)


def test_the_name_of_a_function() -> None:
    assert FunctionJudge(len).name == "function:len"  # type: ignore[arg-type]
    assert FunctionJudge(len, name="size").name == "size"  # type: ignore[arg-type]


def test_progress_is_told() -> None:
    steps: list[Progress] = []
    FunctionJudge(lambda _: {}).judge([SAMPLE] * 3, RELEVANCE, steps.append)
    assert [(step.done, step.total) for step in steps] == [(1, 3), (2, 3), (3, 3)]


# --- replay ---------------------------------------------------------------------------------------


def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    judge = LocalJudge(None, entities="rules")
    samples = [SAMPLE, Sample("q2", "Who?", (), reference=""), Sample("q3", "", ("x",))]
    judged = judge.judge(samples, RELEVANCE | {"claims", "entities"})
    record(samples, judged, tmp_path / "verdicts.jsonl", judge=judge)
    replay = ReplayJudge(tmp_path / "verdicts.jsonl")
    assert replay.judge(samples[::-1], RELEVANCE | {"claims", "entities"}) == judged[::-1]
    assert replay.name == "replay:local:text"
    assert replay.about()["recorded"] == judge.about()
    assert (replay.about()["replayed"], replay.about()["missing"]) == (3, 0)


def test_failures_are_recorded_too(tmp_path: Path) -> None:
    judged = Judged(failures={"claims": JudgeFailure(Reason.UNREACHABLE, "no server")})
    record([SAMPLE], [judged], tmp_path / "v")
    assert ReplayJudge(tmp_path / "v").judge([SAMPLE], frozenset({"claims"})) == [judged]
    assert ReplayJudge(tmp_path / "v").name == "replay:v"


def test_verdicts_about_other_texts_are_not_replayed(tmp_path: Path) -> None:
    judged = FunctionJudge(lambda _: WHOLE).judge([SAMPLE], ALL)
    record([SAMPLE], judged, tmp_path / "v")
    replay = ReplayJudge(tmp_path / "v")
    changed = Sample(SAMPLE.query, SAMPLE.question, ("Rome is in Italy!", "Paris"))
    other = Sample("q9", SAMPLE.question, SAMPLE.chunks)
    first, second = replay.judge([changed, other], RELEVANCE)
    assert first.failures["relevance"].reason is JudgeReason.OTHER_TEXTS
    assert str(second.failures["relevance"]) == "not recorded: no verdicts about this query"
    assert fingerprint(changed) != fingerprint(SAMPLE)


def test_an_aspect_that_was_not_recorded_fails(tmp_path: Path) -> None:
    record([SAMPLE], [judged_of(relevance=(Judgement(1), Judgement(0)))], tmp_path / "v")
    (judged,) = ReplayJudge(tmp_path / "v").judge([SAMPLE], RELEVANCE | {"claims"})
    assert values(judged["relevance"].row) == [1, 0]
    assert str(judged.failures["claims"]) == "not recorded: this aspect"


HEADER = '{"findwell": "verdicts", "layout": 1, "aspects": ["relevance"]}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "this is not a file of verdicts"),
        ("[]\n", "line 1: a list, not an object"),
        ("nonsense", "line 1: this is not JSON"),
        ('{"query": "q"}', "this is not a file of verdicts"),
        (HEADER.replace("1", "9", 1), "layout 9, this findwell reads 1"),
        (HEADER + '{"texts": "x"}', "line 2: no query"),
        (HEADER + '{"query": "q"}\n\n{"query": "q"}', "line 4: query 'q' a second time"),
        (HEADER + "{", "line 2: this is not JSON"),
    ],
)
def test_files_that_hold_no_verdicts(save: Save, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReplayJudge(save("verdicts.jsonl", content))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        ReplayJudge(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        ReplayJudge(tmp_path / "bytes")


@examples(40)
@given(st.lists(st.tuples(st.text(max_size=30), st.integers(0, 3)), max_size=5))
def test_any_text_survives_recording(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int]]
) -> None:
    sample = Sample("\ud800", "?", tuple(text for text, _ in rows))
    judged = judged_of(relevance=tuple(Judgement(value, text, text) for text, value in rows))
    path = tmp_path_factory.mktemp("replay") / "v"
    record([sample], [judged], path)
    assert ReplayJudge(path).judge([sample], RELEVANCE) == [judged]


# --- panels ---------------------------------------------------------------------------------------


def fixed(name: str, *grades: int | None) -> FunctionJudge:
    return FunctionJudge(lambda _: {"relevance": list(grades)}, name=name)


def panel_says(*judges: FunctionJudge, how: Any = "majority") -> Judged:
    (judged,) = PanelJudge(judges, how=how).judge([SAMPLE], RELEVANCE)
    return judged


def test_the_majority_decides_and_a_tie_is_the_lower() -> None:
    assert values(
        panel_says(fixed("a", 3, 1), fixed("b", 3, 0), fixed("c", 0, 0))["relevance"].row
    ) == [
        3,
        0,
    ]
    assert values(panel_says(fixed("a", 3, 1), fixed("b", 0, 0))["relevance"].row) == [0, 0]


def test_the_mean_is_rounded_and_a_half_goes_down() -> None:
    judges = fixed("a", 3, 1), fixed("b", 2, 0)
    assert values(panel_says(*judges, how="mean")["relevance"].row) == [2, 0]
    judged = panel_says(*judges, fixed("c", 3, 1), how="mean")
    assert values(judged["relevance"].row) == [3, 1]
    assert judged["relevance"].row[0].reason == "a 3, b 2, c 3"


def test_who_failed_has_no_vote() -> None:
    judged = panel_says(fixed("a", 3, None), fixed("b", None, None), fixed("c", 3, None))
    assert values(judged["relevance"].row) == [3, None]
    assert judged["relevance"].row[0].reason == "a 3, b failed, c 3"
    broken = FunctionJudge(lambda _: None, name="broken")
    assert values(panel_says(broken, fixed("a", 2, 1))["relevance"].row) == [2, 1]
    assert "no dict" in str(panel_says(broken, broken).failures["relevance"])


def test_the_quote_is_of_one_who_said_the_same() -> None:
    def quoting(grade: int, quote: str) -> FunctionJudge:
        return FunctionJudge(
            lambda _: {"relevance": [{"value": grade, "quote": quote}, 0]}, name=f"{quote[:4]}"
        )

    judged = panel_says(quoting(0, "Rome"), quoting(2, "Italy"), quoting(2, "in Italy"))
    assert judged["relevance"].row[0].quote == "Italy"
    assert not judged["relevance"].row[0].unproven
    assert panel_says(quoting(2, "no"), quoting(2, "nope"))["relevance"].row[0].unproven


def test_claims_and_statements_are_voted_one_by_one() -> None:
    whole = FunctionJudge(lambda _: WHOLE, name="a")
    other = FunctionJudge(lambda _: WHOLE | {"claims": [[0, 0], [0, 0]]}, name="b")
    (judged,) = PanelJudge([whole, whole, other]).judge([SAMPLE], ALL)
    assert [values(row) for row in judged["claims"].rows] == [[1, 0], [0, 0]]
    assert [values(row) for row in judged["statements"].rows] == [[1], [0, 0]]
    assert judged["claims"].items == SAMPLE.items["claims"]
    assert judged["statements"].parts == SAMPLE.parts["statements"]


def test_judges_that_speak_of_different_claims_cannot_be_counted() -> None:
    one = FunctionJudge(lambda _: {"claim_texts": ["a"], "claims": [[1, 1]]}, name="a")
    other = FunctionJudge(lambda _: {"claim_texts": ["b"], "claims": [[1, 1]]}, name="b")
    (judged,) = PanelJudge([one, other]).judge([SAMPLE], frozenset({"claims"}))
    assert judged.failures["claims"].reason is JudgeReason.OTHER_ITEMS


def test_entities_that_few_judges_list_are_none() -> None:
    def listing(*texts: str) -> FunctionJudge:
        rows = [[1, 0] for _ in texts]
        return FunctionJudge(lambda _: {"entity_texts": list(texts), "entities": rows})

    judges = [listing("Rome", "Italy"), listing("the ROME"), listing("Italy", "Rome", "Europe")]
    (judged,) = PanelJudge(judges).judge([SAMPLE], frozenset({"entities"}))
    assert judged["entities"].items == ("Rome", "Italy")
    assert [values(row) for row in judged["entities"].rows] == [[1, 0], [1, 0]]


def test_how_far_the_judges_agree_is_told() -> None:
    panel = PanelJudge([fixed("a", 3, 0), fixed("b", 3, 1), fixed("c", None, 0)])
    panel.judge([SAMPLE, SAMPLE], RELEVANCE)
    told = panel.about()["agreement"]["relevance"]
    assert [each["judges"] for each in told] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert [each["verdicts"] for each in told] == [4, 2, 2]
    assert [each["same"] for each in told] == [0.5, 1.0, 0.0]
    assert told[0]["kappa"] == pytest.approx(0.3333)
    assert told[1]["kappa"] is None
    json.dumps(panel.about())


def test_a_panel_needs_two_and_a_known_way() -> None:
    with pytest.raises(OptionError, match="a panel needs at least two judges"):
        PanelJudge([fixed("a", 1, 1)])
    with pytest.raises(OptionError, match="unknown way to decide 'vote'"):
        PanelJudge([fixed("a", 1, 1), fixed("b", 1, 1)], how="vote")  # type: ignore[arg-type]


def test_progress_counts_all_judges() -> None:
    steps: list[Progress] = []
    PanelJudge([fixed("a", 1, 1), fixed("b", 1, 1)]).judge([SAMPLE] * 2, RELEVANCE, steps.append)
    assert [(step.done, step.total, step.note) for step in steps] == [
        (1, 4, "a"),
        (2, 4, "a"),
        (3, 4, "b"),
        (4, 4, "b"),
    ]


def test_no_samples() -> None:
    assert PanelJudge([fixed("a"), fixed("b")]).judge([], ALL) == []


# --- finding --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("local:text", "local:text"),
        (" local:text ", "local:text"),
        ("local:text(relevance=0.6)", "local:text(relevance=0.6)"),
        ("local:text(claims=0.60,entities=rules)", "local:text(claims=0.6)"),
        ("local:text()", "local:text"),
        ("local", "local"),
        (len, "function:len"),
        (
            ["local:text", "local:text(relevance=0.6)"],
            "panel(local:text+local:text(relevance=0.6),majority)",
        ),
    ],
)
def test_specs(spec: object, name: str) -> None:
    assert find_judge(spec).name == name


def test_a_replay_by_its_spec(tmp_path: Path) -> None:
    path = tmp_path / "odd (name):x.jsonl"
    record([SAMPLE], [judged_of(relevance=(Judgement(1), Judgement(0)))], path)
    judge = find_judge(f"replay:{path}")
    assert values(judge.judge([SAMPLE], RELEVANCE)[0]["relevance"].row) == [1, 0]
    assert find_judge(judge) is judge


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("locl", "did you mean local"),
        ("local:txt", "unknown judge 'local:txt'"),
        ("local:text(relevanse=0.5)", "did you mean relevance"),
        ("local:text(relevance=high)", "is not a number"),
        ("local:text(relevance=7)", "the threshold of relevance must be between 0 and 1, not 7"),
        ("replay", "needs the name of a file: replay:FILE"),
        ("replay:", "needs the name of a file: replay:FILE"),
        ("", "unknown judge ''"),
        (7, "int is not a judge"),
        ([], "list is not a judge"),
        (["local:text"], "a panel needs at least two judges"),
    ],
)
def test_specs_that_name_nothing(spec: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        find_judge(spec)


@pytest.mark.parametrize("spec", ["local:text", "local", "replay:verdicts.jsonl"])
def test_options_that_a_judge_does_not_have(spec: str) -> None:
    with pytest.raises(OptionError, match=r"takes no base_url, votes\n"):
        find_judge(Judge(spec, base_url="http://127.0.0.1", votes=3))

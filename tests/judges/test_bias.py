"""Judges with a known bias and known probabilities: what cards find, to the digit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.judges.cards.card import ALONE, NO_ORDER, JudgeCard, forecast_probe, judge_card
from findwell.judges.cards.labels import LabelledSamples, load_labels
from findwell.judges.client.cache import Cache
from findwell.judges.find import find_judge
from findwell.judges.replay import FunctionJudge
from findwell.judges.verdicts import Judgement
from findwell.show import render
from tests.client.server import Call, Reaction, chat, serve
from tests.judges.judging import judge_of
from tests.judges.model import answer, read_prompt, well
from tests.judges.single_model import read, with_tokens

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.judges.verdicts import Sample

QUESTIONS, CHUNKS = 4, 3
ROWS = [
    {"question": f"Where is the harbour {n}?", "chunk": f"Text {n} {at}.", "label": int(at == 0)}
    for n in range(QUESTIONS)
    for at in range(CHUNKS)
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))


def prefers_first(call: Call) -> Reaction:
    """Find the chunk that stands first relevant, and no other."""
    said = answer(call.prompt)
    data = read_prompt(call.prompt).data
    for each in said["relevance"]:
        first = each["chunk"] == "c1"
        each |= {"grade": 3 if first else 0, "quote": data[each["chunk"]] if first else ""}
    return chat(json.dumps(said))


def test_a_judge_that_goes_by_the_place() -> None:
    with serve(prefers_first) as server:
        judge = judge_of(server)
        card = judge_card(ROWS, judge=judge, probe_bias=True)
    assert card["kappa"].value == 1.0  # the best stands first, and nobody would suspect it
    assert card.bias is not None
    # every chunk moves: of three chunks the old and the new first one flip
    shuffled = card.bias["flips when shuffled"]
    assert (shuffled.flips, shuffled.n) == (8, 12)
    assert shuffled.value == pytest.approx(8 / 12)
    first = card.bias["yes more often when first"]
    assert (first.value, first.n) == (1.0, 8)
    earlier = card.bias["yes more often when earlier"]
    assert earlier.n == 12
    assert earlier.value == pytest.approx(8 / 12)
    again = card.bias["flips when asked again"]
    assert (again.flips, again.n, again.value) == (0, 12, 0.0)
    assert (card.bias.calls, card.bias.failed) == (2 * QUESTIONS, 0)
    assert len(server.calls) == 3 * QUESTIONS
    for each in (shuffled, first, earlier):
        assert each.low is not None
        assert each.value is not None
        assert each.low <= each.value


def test_a_judge_that_does_not_agree_with_itself() -> None:
    """It changes its mind about every chunk whenever it is asked about a question once more."""
    asked: dict[str, int] = {}

    def fickle(call: Call) -> Reaction:
        said = answer(call.prompt)
        data = read_prompt(call.prompt).data
        times = asked[data["question"]] = asked.get(data["question"], 0) + 1
        for each in said["relevance"]:
            yes = times % 2
            each |= {"grade": yes, "quote": data[each["chunk"]] if yes else ""}
        return chat(json.dumps(said))

    with serve(fickle) as server, Cache.open() as cache:
        judge = judge_of(server, cache=cache)
        first = judge_card(ROWS, judge=judge, probe_bias=True)
        calls = len(server.calls)
        second = judge_card(ROWS, judge=judge_of(server, cache=cache), probe_bias=True)
    assert first.bias is not None
    assert first.bias["flips when shuffled"].flips == 12
    assert first.bias["yes more often when first"].value == 0.0  # half of them each way
    assert first.bias["flips when asked again"].flips == 0  # asked for the third time
    # a second card finds the first two answers in the cache, and asks only what must be asked
    assert calls == 3 * QUESTIONS
    assert len(server.calls) - calls == QUESTIONS
    assert second.bias is not None
    assert second.bias.calls == QUESTIONS
    assert second.bias["flips when asked again"].flips == 12  # for the fourth


def test_a_good_judge_has_no_bias_and_the_calls_are_known_before() -> None:
    asked = LabelledSamples.of(load_labels(ROWS), "relevance")
    with serve(well) as server:
        judge = judge_of(server)
        planned = forecast_probe(judge, asked)
        assert not server.calls
        card = judge_card(ROWS, judge=judge, probe_bias=True)
    assert card.bias is not None
    assert sum(each.calls for each in planned) == card.bias.calls == 2 * QUESTIONS
    assert [each.value for each in card.bias.figures] == [0.0] * 4


def test_the_budget_holds_for_the_probe_and_the_card_stays() -> None:
    with serve(prefers_first) as server:
        judge = judge_of(server, max_calls=QUESTIONS + 1)
        card = judge_card(ROWS, judge=judge, probe_bias=True)
    assert len(server.calls) == QUESTIONS + 1
    assert card["kappa"].value == 1.0
    assert card.bias is not None
    assert card.bias["flips when shuffled"].n == CHUNKS  # one question was asked about
    again = card.bias["flips when asked again"]
    assert (again.value, again.n, again.reason) == (None, 0, "no verdict was given both times")
    assert card.bias.failed == (2 * QUESTIONS - 1) * CHUNKS


def test_the_local_judge_has_no_place_and_no_chance() -> None:
    labels = [
        {**row, "chunk": f"The harbour {n % 4}. {row['chunk']}"} for n, row in enumerate(ROWS)
    ]
    card = judge_card(labels, judge="local:text", probe_bias=True)
    assert card.bias is not None
    assert [each.value for each in card.bias.figures] == [0.0] * 4
    assert card.bias["flips when shuffled"].n == 12
    assert card.bias.calls == 0


def test_where_there_is_no_place_to_be_first() -> None:
    with serve(certain(lambda _: 0.9)) as server:
        card = judge_card(ROWS, judge=judge_of(server, ask="single"), probe_bias=True)
    assert card.bias is not None
    shuffled = card.bias["flips when shuffled"]
    assert (shuffled.value, shuffled.reason) == (None, ALONE)
    assert card.bias["flips when asked again"].n == 12
    apart = [{**row, "question": f"{row['question']} {at}"} for at, row in enumerate(ROWS)]
    card = judge_card(apart, judge="local:text", probe_bias=True)
    assert card.bias is not None
    assert card.bias["yes more often when first"].reason == NO_ORDER


def test_some_judges_cannot_be_probed(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text('{"findwell": "verdicts", "layout": 1, "aspects": ["relevance"]}\n')
    for judge, fix in ((f"replay:{path}", "recorded"), (["local:text", "local:text"], "alone")):
        with pytest.raises(OptionError, match="cannot be probed") as error:
            judge_card(ROWS, judge=judge, probe_bias=True)
        assert fix in str(error.value)


def test_every_chunk_moves() -> None:
    rows = [
        {"question": f"q{n}", "chunk": f"{at}", "label": 1}
        for n in range(30)
        for at in range(2 + n)
    ]
    asked = LabelledSamples.of(load_labels(rows), "relevance")
    moved = asked.shuffled()
    assert (asked.place != moved.place).all()
    for pair, row in enumerate(rows):
        sample = moved.samples[moved.sample[pair]]
        assert sample.chunks[moved.place[pair]] == row["chunk"]
        assert sample.question == row["question"]


# --- probabilities --------------------------------------------------------------------------------


def certain(chance_of: Any) -> Any:
    """Return a model that says yes to a chunk with the probability that a function gives."""

    def script(call: Call) -> Reaction:
        data, task = read(call.prompt)
        if "digit" in task:
            return with_tokens(chat("1"), [{"1": 1.0}])
        chance = chance_of(data["chunk"])
        return with_tokens(
            chat("yes" if chance > 0.5 else "no"), [{"yes": chance, "no": 1 - chance}]
        )

    return script


def test_a_model_that_is_too_sure_of_itself() -> None:
    """It is 95 % sure, and right in 12 of 16 cases: both about yes and about no."""
    rows = [
        {
            "question": f"Who owns ship {n}?",
            "chunk": f"{said} {n}-{at}",
            "label": int((said == "yes") == (at > 0)),
        }
        for n in range(4)
        for said in ("yes", "no")
        for at in range(4)
    ]
    with serve(certain(lambda chunk: 0.95 if chunk.startswith("yes") else 0.05)) as server:
        card = judge_card(rows, judge=judge_of(server, ask="single"))
    found = card.calibration
    assert found is not None
    assert found.n == 32
    told = [(each.n, round(each.predicted, 6), each.observed) for each in found.bins]
    assert told == [(16, 0.05, 0.25), (16, 0.95, 0.75)]
    assert found.expected_calibration_error == pytest.approx(0.2)
    # a quarter is off by 0.95, the rest by 0.05
    assert found.brier == pytest.approx(0.25 * 0.95**2 + 0.75 * 0.05**2)
    assert found.uninformed == 0.25


def test_a_card_keeps_calibration_and_bias_and_old_cards_have_none(tmp_path: Path) -> None:
    card = judge_card(ROWS, judge="local:text", probe_bias=True)
    assert JudgeCard.load(card.save(tmp_path / "new.json")) == card
    old = json.loads((tmp_path / "new.json").read_text())
    del old["calibration"], old["bias"]
    (tmp_path / "old.json").write_text(json.dumps(old))
    loaded = JudgeCard.load(tmp_path / "old.json")
    assert (loaded.calibration, loaded.bias) == (None, None)
    assert loaded["kappa"] == card["kappa"]


def test_judges_without_probabilities_have_no_calibration() -> None:
    card = judge_card(ROWS, judge=lambda sample: {"relevance": [1] * len(sample.chunks)})
    assert card.calibration is None
    assert "calibration" not in card.as_dict()


def test_the_local_judge_tells_the_score_that_its_threshold_is_about() -> None:
    labels = [{**row, "chunk": f"The harbour {n % 4}."} for n, row in enumerate(ROWS)]
    judge = find_judge("local:text")
    asked = LabelledSamples.of(load_labels(labels), "relevance")
    said = [each for each in asked.ask(judge) if each is not None]
    line = judge.about()["thresholds"]["relevance"][0]
    assert [bool(each.value) for each in said] == [(each.probability or 0) >= line for each in said]


# --- side by side ---------------------------------------------------------------------------------


def by_chunk(name: str, yes: str) -> FunctionJudge:
    """Say yes to the chunks whose last digit is among these; of `?` nothing is known."""

    def judge(sample: Sample) -> dict[str, Any]:
        said = [Judgement(int(chunk[-2] in yes)).value for chunk in sample.chunks]
        return {"relevance": [None if "?" in yes and value == 0 else value for value in said]}

    return FunctionJudge(judge, name=name)


def test_judges_side_by_side() -> None:
    right, half, none = by_chunk("right", "0"), by_chunk("half", "01"), by_chunk("none", "")
    found = findwell.judges.compare(ROWS, [right, half, none])
    assert [card.judge for card in found.cards] == ["right", "half", "none"]
    # of 12 pairs, 4 are true; `half` says yes to these and 4 more: (8/12 − 4/9) / (1 − 4/9)
    assert [card["kappa"].value for card in found.cards] == pytest.approx([1.0, 0.4, 0.0])
    assert [each.value for each in found.differences] == pytest.approx([-0.6, -1.0])
    assert [each.n for each in found.differences] == [12, 12]
    for card, judge in zip(found.cards, (right, half, none), strict=True):
        assert card.figures == judge_card(ROWS, judge=judge).figures
    shown = found.as_dict()
    assert [each["judge"] for each in shown["judges"]] == ["right", "half", "none"]
    assert [(each["judge"], each["from"]) for each in shown["differences"]] == [
        ("half", "right"),
        ("none", "right"),
    ]


def test_differences_are_measured_on_what_both_have_judged() -> None:
    found = findwell.judges.compare(ROWS, [by_chunk("some", "01?"), by_chunk("right", "0")])
    assert [card.pairs for card in found.cards] == [8, 12]
    assert found.differences[0].n == 8
    assert found.differences[0].value == pytest.approx(1.0 - found.cards[0]["kappa"].value)  # type: ignore[operator]


@pytest.mark.parametrize("judges", [["local:text"], ["local:text", "local:text"], []])
def test_judges_that_cannot_be_compared(judges: list[str]) -> None:
    with pytest.raises(OptionError, match="two different judges or more are compared"):
        findwell.judges.compare(ROWS, judges)


def test_a_judge_at_chance_is_never_marked_as_the_best() -> None:
    def wrong(sample: Sample) -> dict[str, Any]:
        return {"relevance": [int("right" not in chunk) for chunk in sample.chunks]}

    rows = [
        {"question": str(n), "chunk": chunk, "label": int(chunk == "right")}
        for n in range(4)
        for chunk in ("right", "left")
    ]
    found = findwell.judges.compare(rows, [lambda it: {"relevance": [0] * len(it.chunks)}, wrong])
    assert [card["kappa"].value for card in found.cards] == [0.0, -1.0]
    assert "**0.0000**" not in render(found, "markdown")

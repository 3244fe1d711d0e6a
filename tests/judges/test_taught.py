"""Judges that labels have taught: what is learnt, what it is worth, and how it is used again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom

import findwell
from findwell.core.errors import InputError, OptionError, SaveError
from findwell.judges.cards.card import find_cards
from findwell.judges.find import find_judge, on_server
from findwell.judges.limits import judge_limits
from findwell.judges.settings import Judge
from findwell.judges.taught import (
    NO_GAIN,
    TaughtJudge,
    Teaching,
    _held_out,
    _trial,
    teach_judge,
)
from findwell.judges.verdicts import Sample
from tests.client.asking import HASTE
from tests.client.server import Call, Reaction, as_json, chat, serve
from tests.judges.single_model import read, with_tokens

if TYPE_CHECKING:
    from tests.client.server import Server
    from tests.conftest import Findwell

DATA = Path(__file__).parents[2] / "../shared/data"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))


def labels(count: int = 40, *, graded: bool = False, noise: float = 0.0) -> list[dict[str, Any]]:
    """Return labels that agree with a score in the text, from 0.8 on."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(count):
        for score in rng.uniform(0, 1, 4).round(3).tolist():
            yes = (score >= 0.8) != (rng.random() < noise)
            label = 3 if graded and score >= 0.95 else int(yes)
            rows.append({"question": f"Why {number}?", "chunk": str(score), "label": label})
    return rows


def kind_server(call: Call) -> Reaction:
    """Score each text by the number in it."""
    texts = enumerate(call.body["texts"])  # words: those that tell whether scores are raw
    given = [(at, 0.5 if text[0].isalpha() else float(text)) for at, text in texts]
    return as_json([{"index": at, "score": score} for at, score in given])


def judge_at(server: Server) -> Judge:
    return Judge("reranker:tei:m", base_url=server.url, retry=HASTE)


def test_a_judge_that_is_too_kind_learns_where_people_say_yes(tmp_path: Path) -> None:
    with serve(kind_server) as server:
        taught = teach_judge(labels(), judge=judge_at(server))
        assert taught.helps
        assert (taught.pairs, taught.questions) == (160, 40)
        assert (taught.before.value or 0) < 0.5
        assert (taught.after.value or 0) > 0.9
        assert (taught.gain.low or 0) > 0
        assert taught.brier_after < taught.brier_before
        path = taught.save(tmp_path / "judge.json")
        again = replace(Teaching.load(path), before=taught.before, after=taught.after)
        assert replace(again, gain=taught.gain) == taught
        judge = find_judge(Judge(str(path), base_url=server.url, retry=HASTE))
        assert isinstance(judge, TaughtJudge)
        [judged] = judge.judge([Sample("q", "Why?", ("0.7", "0.9"))], frozenset({"relevance"}))
        said = judged["relevance"].row
    assert [each.value for each in said] == [0, 1]
    assert said[0].probability is not None
    assert said[0].probability < 0.5
    assert "by labels" in said[0].reason
    limits = judge_limits({"name": judge.name, **judge.about()})
    assert limits == taught.cite()
    assert limits.startswith("taught with 160 labels of labels: held-out κ ")
    assert "uncalibrated-judge" not in [each.kind for each in judge.findings()]


def test_grades_are_learnt_where_labels_have_them() -> None:
    with serve(kind_server) as server:
        taught = teach_judge(labels(200, graded=True), judge=judge_at(server))
        judge = TaughtJudge(find_judge(judge_at(server)), taught)
        [judged] = judge.judge(
            [Sample("q", "Why?", ("0.1", "0.85", "0.99"))], frozenset({"relevance"})
        )
    assert sorted(taught.curves) == [1, 2, 3]
    assert [each.value for each in judged["relevance"].row] == [0, 1, 3]


def test_no_gain_is_claimed_that_was_not_held_out() -> None:
    """Labels that are chance: on them a threshold always looks better than on other questions."""
    rng = np.random.default_rng(1)
    rows = [row | {"label": int(rng.integers(2))} for row in labels(12)]
    with serve(kind_server) as server:
        taught = teach_judge(rows, judge=judge_at(server))
    assert (taught.helps, taught.threshold) == (False, None)
    assert NO_GAIN in taught.cite()


def test_the_verdicts_stay_where_a_threshold_does_not_help() -> None:
    rows = [row | {"label": int(float(row["chunk"]) >= 0.5)} for row in labels()]
    with serve(kind_server) as server:
        taught = teach_judge(rows, judge=judge_at(server))
        judge = TaughtJudge(find_judge(judge_at(server)), taught)
        [judged] = judge.judge([Sample("q", "Why?", ("0.49", "0.51"))], frozenset({"relevance"}))
    assert taught.before.value == 1.0
    assert (taught.helps, taught.threshold) == (False, None)
    assert [each.value for each in judged["relevance"].row] == [0, 1]


def test_no_card_from_the_labels_that_taught() -> None:
    with serve(kind_server) as server:
        taught = teach_judge(labels(), judge=judge_at(server))
        judge = TaughtJudge(find_judge(judge_at(server)), taught)
        with pytest.raises(OptionError, match="would flatter it"):
            findwell.judges.card(labels(), judge=judge)


def test_a_file_does_not_decide_where_texts_and_keys_go(
    tmp_path: Path, cli: Findwell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its server is asked nor that of the provider that it names: the user names one."""
    monkeypatch.setenv("FINDWELL_API_KEY", "sk-of-the-user-0123456789")
    run = tmp_path / "run.jsonl"
    run.write_text(json.dumps({"query": "q", "question": "Why?", "contexts": ["0.7"]}))
    with serve(kind_server) as server, serve(kind_server) as other:
        path = str(teach_judge(labels(), judge=judge_at(server)).save(tmp_path / "judge.json"))
        server.calls.clear()
        for spec in ("reranker:tei:m", "openai:m", "groq:m", "ollama:m"):
            hostile = replace(Teaching.load(path), judge=spec)
            asked = ("score", run, "-m", "P@1/relevance", "--judge", hostile.save(path))
            done = cli(*asked)
            assert (done.code, done.out) == (2, ""), spec
            assert "a file does not decide where texts go" in done.err
            assert f"-J base_url={server.url}" in done.err
        assert not server.calls
        replace(Teaching.load(path), judge="reranker:tei:m").save(path)
        assert cli(*asked, "-J", f"base_url={other.url}").code == 0
        assert (len(server.calls), len(other.calls)) == (0, 2)
        assert on_server(path, other.url)[0] == Judge(path, base_url=other.url)
    assert Judge(path).asks_server
    assert not Judge("replay:verdicts.json").is_taught
    assert Judge("openai:model.json").underlying.model == "openai:model.json"
    assert not Judge(path).asks_model


def test_a_file_does_not_name_another_taught_judge(tmp_path: Path) -> None:
    taught, path = teach_judge(labels(), judge="local:text"), tmp_path / "judge.json"
    replace(taught, judge=str(path)).save(path)
    with pytest.raises(InputError, match="not a taught judge"):
        find_judge(str(path))
    with pytest.raises(OptionError, match=r"judge\.json cannot be taught"):
        teach_judge(labels(), judge=str(taught.save(path)))


@pytest.mark.parametrize(
    ("rows", "judge", "error", "message"),
    [
        (labels(3), "local:text", InputError, "too few to teach a judge"),
        ([row | {"label": 1} for row in labels(9)], "local:text", InputError, "0 no are too few"),
        (labels(9), lambda _: {"relevance": [1] * 4}, OptionError, "cannot be taught"),
    ],
)
def test_what_cannot_teach(rows: Any, judge: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        teach_judge(rows, judge=judge)


def test_files_that_are_not_taught_judges(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"findwell": "judge-card", "layout": 1}')
    for name in ("other.json", "missing.json"):
        with pytest.raises(InputError, match="not a taught judge"):
            find_judge(str(tmp_path / name))
    with serve(kind_server) as server:
        taught = teach_judge(labels(), judge=judge_at(server))
    with pytest.raises(SaveError, match="JSON file"):
        taught.save(tmp_path / "judge.txt")
    with pytest.raises(OptionError, match="teach it again"):
        TaughtJudge(find_judge("local:text"), taught)


def test_the_command(cli: Findwell, tmp_path: Path) -> None:
    file, target = tmp_path / "labels.jsonl", tmp_path / "judge.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in labels()))
    (tmp_path / "run.jsonl").write_text(
        json.dumps({"query": "q", "question": "Why?", "contexts": ["0.7", "0.9"]})
    )
    with serve(kind_server) as server:
        done = cli(
            *("judge", "teach", "--labels", file, "--judge", "reranker:tei:m"),
            *("-J", f"base_url={server.url}", "-o", target),
        )
        assert done.code == 0, done
        assert "kappa after, held out" in done.out
        assert "a gain on questions that were left out of the fit" in done.out
        scored = cli(
            *("score", tmp_path / "run.jsonl", "-m", "P@2/relevance", "--judge", target),
            *("--format", "json", "-J", f"base_url={server.url}"),
        )
    assert scored.code == 0, scored
    told = scored.answer
    assert told["summary"][0]["value"] == 0.5
    assert told["judge"]["name"] == "taught(reranker:tei:m)"
    assert cli("judge", "teach", "-o", target).code == 2


def middle(count: int = 12) -> list[dict[str, Any]]:
    """Return labels that no threshold fits: yes in the middle of the scores."""
    rng = np.random.default_rng(1)
    return [
        {"question": f"Why {number}?", "chunk": f"{score:.3f}", "label": int(0.4 <= score < 0.6)}
        for number in range(count)
        for score in (*rng.uniform(0.4, 0.6, 2), *rng.uniform(0.6, 0.9, 2))
    ]


def pupil(call: Call) -> Reaction:
    """Say yes to all, unless examples show that people say no to high scores."""
    turns = call.body["messages"]
    data, task = read(turns[-1]["content"])
    if "digit" in task:
        return chat("1")
    score, seen = float(data["chunk"]), [read(each["content"])[0] for each in turns[1:-1:2]]
    assert data["question"] not in [each["question"] for each in seen]
    said = {turn["content"] for turn in turns[2::2]}
    yes = 0.6 + 0.3 * score if said != {"yes", "no"} else 0.9 if score < 0.6 else 0.1
    return with_tokens(chat("Yes." if yes > 0.5 else "No."), [{"yes": yes, "no": 1 - yes}])


def stubborn(call: Call) -> Reaction:
    call.body["messages"] = [call.body["messages"][0], call.body["messages"][-1]]
    return pupil(call)


def model_at(server: Server) -> Judge:
    return Judge("openai:m", base_url=server.url, key="k", retry=HASTE, ask="single")


def test_examples_stay_where_they_help_on_other_questions(tmp_path: Path) -> None:
    with serve(pupil) as server:
        taught = teach_judge(middle(), judge=model_at(server), examples=3)
        assert taught.helps
        assert taught.threshold is None
        assert [each[2] for each in taught.examples] == [True, False, True]
        assert len({each[0] for each in taught.examples}) == 3
        assert (taught.before.value, taught.after.value) == (0, 1)
        assert taught.gain == taught.example_gain
        assert {each.level for each in (taught.before, taught.after, taught.gain)} == {0.975}
        assert taught.curves == {}  # fitted to no score whose examples come from what is held out
        path = taught.save(tmp_path / "judge.json")
        assert Teaching.load(path).examples == taught.examples
        assert Teaching.load(path).gain.level == 0.975
        judge = find_judge(replace(model_at(server), model=str(path)))
        chunks = ("0.5", "0.7")
        [judged] = judge.judge([Sample("q", "New?", chunks)], frozenset({"relevance"}))
        assert [each.value for each in judged["relevance"].row] == [1, 0]
        said = [each.probability for each in judged["relevance"].row]
        assert said == pytest.approx([0.9, 0.1])  # the model's own
        assert taught.brier_after == pytest.approx(0.01)
        assert list(judge.about()["examples"]) == ["relevance"]
        assert "held-out κ 1.00" in judge.about()["taught_by"]
        turns = max((call.body["messages"] for call in server.calls), key=len)
        assert [turn["role"] for turn in turns] == ["system", *["user", "assistant"] * 3, "user"]


def test_examples_that_do_not_help_are_left_out() -> None:
    with serve(stubborn) as server:
        taught = teach_judge(middle(), judge=model_at(server), examples=2)
    assert taught.examples == ()
    assert taught.example_gain is not None
    assert taught.example_gain.value == 0


def test_cards_of_other_examples_and_curves_are_cards_of_other_judges() -> None:
    """A card counts for the file that it was measured with, and for no other of the same model."""
    rows = [row | {"question": f"New {row['question']}"} for row in middle(6)]
    shown = (("When?", "0.5", True), ("Who?", "0.8", False))
    with serve(pupil) as server:
        taught = replace(teach_judge(middle(), judge=model_at(server)), examples=shown)
        judge = TaughtJudge(find_judge(model_at(server)), taught)
        findwell.judges.card(rows, judge=judge).save()
        assert find_cards(judge.name, {"relevance"}, judge.about())
        for change in ({"examples": shown[::-1]}, {"examples": ()}, {"threshold": 0.9}):
            other = TaughtJudge(find_judge(model_at(server)), replace(taught, **change))
            assert other.name == judge.name
            assert not find_cards(other.name, {"relevance"}, other.about())


@pytest.mark.slow
@pytest.mark.parametrize("agreement", [0.5, 0.8])
@pytest.mark.parametrize("tries", [1, 2])
def test_gains_are_claimed_by_chance_at_most_at_the_level(agreement: float, tries: int) -> None:
    """Labels agree with the judge's own threshold or with nothing, so nothing can be gained.

    Examples, where they are tried, make verdicts that are as good as the judge's own.
    """
    rng, draws, claimed = np.random.default_rng([int(10 * agreement), tries]), 100, 0
    names, tested = np.repeat(np.arange(12), 4).astype(str).tolist(), 1 - 0.05 / tries
    for _ in range(draws):
        scores = rng.normal(size=len(names))
        own = scores >= 0
        right = own == (rng.random(len(names)) < agreement)
        told = right == (rng.random(len(names)) < agreement)
        tried = [_held_out(scores, right, names)[0], told][:tries]
        claimed += any(_trial(each, own, right, names, tested)[0] for each in tried)
    assert claimed <= binom.ppf(0.999, draws, 0.05)


def test_only_models_that_are_asked_one_by_one_are_shown_examples() -> None:
    with serve(pupil) as server:
        for judge in ("local:text", replace(model_at(server), ask="matrix")):
            with pytest.raises(OptionError, match="cannot be shown examples"):
                teach_judge(middle(), judge=judge, examples=2)
        assert not server.calls


@pytest.mark.skipif(not DATA.exists(), reason="the data are not here")
def test_the_local_judge_is_taught_by_labels_of_people() -> None:
    """On LiveQA-Med: half of the questions teach, the other half says what it is worth."""
    lines = (DATA / "liveqa-med/answers.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    given = [
        {"question": row["question"], "chunk": row["text"], "label": int(row["grade"] >= 2)}
        for row in rows
    ]
    asked = sorted({row["question"] for row in given})
    teaching, other = (
        [row for row in given if (asked.index(row["question"]) % 2) == part] for part in (0, 1)
    )
    taught = teach_judge(teaching, judge="local:text")
    judge = TaughtJudge(find_judge("local:text"), taught)
    before, after = (findwell.judges.card(other, judge=each) for each in ("local:text", judge))
    assert not taught.helps
    assert after["kappa"].value == before["kappa"].value
    assert after.calibration is not None
    assert before.calibration is not None
    assert after.calibration.brier < before.calibration.brier

"""Single verdicts: one short question, one word, its probability; lists by lines."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.judges.aspects import ASPECTS
from findwell.judges.client.cache import Cache
from findwell.judges.client.protocol import Answer, Usage
from findwell.judges.llm.single import YES_NO, read_grade, read_yes
from findwell.judges.replay import as_judged, as_record
from findwell.judges.verdicts import Judged, Judgement, Sample
from tests.client.server import Call, Reaction, chat, error, serve
from tests.judges.judging import (
    ALL,
    REFERENCE,
    check_shape,
    check_totals,
    expect,
    judge_of,
    sample,
    sentences,
    verdicts,
)
from tests.judges.model import read_prompt, well
from tests.judges.single_model import SURE, by_token, by_word, read, with_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Findwell

ROOT = Path(__file__).parents[2]
WITH_LIST = ALL | {"sufficiency"}


def values(judged: Judged, aspects: frozenset[str] = ALL) -> dict[str, Any]:
    return {
        name: [[verdict.value for verdict in row] for row in judged[name].rows] for name in aspects
    }


@pytest.mark.parametrize("script", [by_token, by_word])
def test_the_verdicts_are_those_of_a_matrix(script: Callable[[Call], Reaction]) -> None:
    with serve(script) as server:
        judge = judge_of(server, ask="single")
        [judged] = judge.judge([sample()], WITH_LIST)
    one = sample()
    check_shape(one, judged)
    check_totals(judge, [judged])
    assert values(judged) == values(expect(one))
    assert judged["entities"].items == expect(one)["entities"].items
    assert judged["sufficiency"].row[0].value == 0
    assert not any(verdict.unproven for verdict in verdicts(judged))
    chances = {round(verdict.probability, 4) for verdict in verdicts(judged) if verdict.probability}
    sure = SURE / 0.95
    assert chances == (set() if script is by_word else {round(sure, 4), round(1 - sure, 4)})
    about = judge.about()
    assert about["ask"] == "single"
    counted = about["single"]
    assert counted["with_probability" if script is by_token else "by_text"] == len(server.calls) - 1


def test_quotes_are_asked_for_if_wanted() -> None:
    def script(call: Call) -> Reaction:
        data, task = read(call.prompt)
        if "Copy the passage" in task and "claim" in data:
            return chat("what nobody wrote", finish="length")
        return by_token(call)

    with serve(script) as server:
        judge = judge_of(server, ask="single", quotes=True)
        [judged] = judge.judge([sample()], frozenset({"relevance", "claims"}))
    check_totals(judge, [judged])
    for verdict in judged["relevance"].row:
        assert bool(verdict.quote) == bool(verdict.value)
        assert not verdict.unproven
    assert judged["relevance"].row[0].quote == '"The capital of Brazil"'
    claimed = [verdict for row in judged["claims"].rows for verdict in row if verdict.value]
    assert claimed
    assert all(verdict.unproven and verdict.probability for verdict in claimed)
    quoting = [call for call in server.calls if "Copy the passage" in call.prompt]
    assert len(quoting) == sum(bool(verdict.value) for verdict in verdicts(judged))
    assert {call.body["max_tokens"] for call in quoting} == {80}
    assert not any("logprobs" in call.body for call in quoting)
    assert judge.about()["quotes"] is True


def test_calls_are_short_and_begin_alike() -> None:
    with serve(by_token) as server:
        judge_of(server, ask="single", concurrency=1).judge([sample()], ALL)
    listing, *calls = server.calls
    assert "logprobs" not in listing.body
    for call in calls:
        assert (call.body["max_tokens"], call.body["logprobs"]) == (4, True)
        assert "response_format" not in call.body
    chunks = [read(call.prompt)[0]["chunk"] for call in calls]
    graded = [call for call in calls if "digit" in read(call.prompt)[1]]
    first = [chunk for call, chunk in zip(calls, chunks, strict=True) if call not in graded]
    assert list(dict.fromkeys(first)) == list(sample().chunks)
    assert first == sorted(first, key=list(sample().chunks).index)  # chunk by chunk
    for chunk in sample().chunks:
        prompts = [call.prompt for call in calls if read(call.prompt)[0]["chunk"] == chunk]
        head = prompts[0].index(chunk) + len(chunk)
        assert len({prompt[:head] for prompt in prompts}) == 1
        assert len(prompts) > 3


def test_answers_are_kept_with_their_probabilities(tmp_path: Path) -> None:
    with serve(by_token) as server:
        with Cache.open(tmp_path) as cache:
            first = judge_of(server, ask="single", cache=cache).judge([sample()], ALL)
        count = len(server.calls)
        with Cache.open(tmp_path) as cache:
            judge = judge_of(server, ask="single", cache=cache)
            assert judge.dry_run([sample()], ALL).calls == 0
            assert judge.judge([sample()], ALL) == first
            # of another list the same chunk is known, whatever stands beside it
            fewer = sample(chunks=sample().chunks[1:3])
            judge.judge([fewer], frozenset({"relevance"}))
        assert len(server.calls) == count


def test_an_estimate_is_what_is_asked_but_for_the_grades_of_a_yes() -> None:
    with serve(by_token) as server:
        judge = judge_of(server, ask="single")
        aspects = frozenset({"relevance", "claims", "statements"})
        planned = judge.dry_run([sample()], aspects)
        assert not server.calls
        judge.judge([sample()], aspects)
    grades = sum("digit" in read(call.prompt)[1] for call in server.calls)
    assert planned.calls == len(server.calls) - grades
    assert planned.completion_tokens <= 4 * planned.calls


def test_a_server_that_turns_down_probabilities_is_asked_without() -> None:
    def script(call: Call) -> Reaction:
        for name in ("top_logprobs", "logprobs"):
            if name in call.body:
                return error(400, f"unknown field: {name}", param=name)
        return by_word(call)

    with serve(script) as server:
        judge = judge_of(server, ask="single")
        [judged] = judge.judge([sample()], frozenset({"claims"}))
    assert values(judged, frozenset({"claims"}))["claims"] == values(expect(sample()))["claims"]
    assert set(judge.about()["server"]["left_out"]) == {"logprobs", "top_logprobs"}


def test_what_is_no_word_is_asked_again_then_failed() -> None:
    with serve(lambda _: chat("I think that")) as server:
        judge = judge_of(server, ask="single", attempts=2)
        [judged] = judge.judge([sample(chunks=["Tea is hot."])], frozenset({"relevance"}))
    [verdict] = judged["relevance"].row
    assert str(verdict.failure) == "malformed: an answer without the word that was asked for"
    assert len(server.calls) == 2
    assert "attempt 2" in server.calls[1].prompt
    assert judge.about()["asked_again"] == 1
    check_totals(judge, [judged])


@pytest.mark.parametrize(
    ("places", "said", "value", "chance"),
    [
        ([{"Yes": 0.6, "yes": 0.2, "No": 0.1}], "Yes", 1, 8 / 9),
        ([{" NO": 0.5, '"yes': 0.3}], "No", 0, 3 / 8),
        ([{"\n": 0.9}, {"ja": 0.3, "nein": 0.6}], "\nnein", 0, 1 / 3),
        ([{"Well": 0.9, "yes": 0.1}, {"yes": 1.0}], "Well yes", 1, None),  # by the text
        ([{"Well": 0.9, "yes": 0.1}], "Well, I", None, None),
        ([], "**Yes**", 1, None),
        ([], "<think>no, or</think> Yes", 1, None),
        ([], "yes or no", None, None),
        ([], "はい", 1, None),
        # behind a mark, the answer is the word that was written
        ([{"**": 0.7, "Yes": 0.2, "No": 0.05}, {"No": 0.95, "Yes": 0.05}], "**No", 0, 0.235 / 0.95),
        # words of a sentence are no answer
        ([], "The correct answer is", None, None),
        ([], "That is not true", None, None),
        ([], "Il y a des", None, None),
        ([], "N/A", None, None),
        ([], "Correct.", 1, None),
        ([], "Answer: **false**\nThe", 0, None),
    ],
)
def test_a_yes_is_read(
    places: list[dict[str, float]], said: str, value: int | None, chance: float | None
) -> None:
    tokens = tuple(tuple(each.items()) for each in places)
    verdict = read_yes(Answer(said, Usage(1, 1), 0.1, tokens=tokens))
    assert (verdict.value if verdict else None) == value
    assert (verdict.probability if verdict else None) == pytest.approx(chance)


def test_a_grade_is_the_expected_value() -> None:
    tokens = ((("0", 0.2), ("1", 0.1), ("3", 0.7)),)
    answer = Answer("3", Usage(1, 1), 0.1, tokens=tokens)
    grades = {str(grade): grade for grade in range(4)}
    whole = read_grade(answer, grades, None)
    assert whole == Judgement(2, "expected grade 2.20", probability=0.8)
    above = {name: grade for name, grade in grades.items() if grade}
    yes = Judgement(1, "yes with probability 0.70", probability=0.7)
    graded = read_grade(answer, above, yes)
    assert graded == Judgement(3, "yes with probability 0.70, expected grade 2.75", probability=0.7)
    assert read_grade(Answer("none", Usage(1, 1), 0.1), above, yes) is None


def test_a_grade_of_two_digits_is_read_from_the_text() -> None:
    tokens = ((("1", 0.9), ("2", 0.1)), (("0", 1.0),))
    grades = {str(grade): grade for grade in range(11)}
    assert read_grade(Answer("10", Usage(1, 1), 0.1, tokens=tokens), grades, None) == Judgement(10)


def test_no_word_means_yes_and_no() -> None:
    assert Counter(YES_NO.values()).keys() == {0, 1}
    assert len(YES_NO) == len({word.casefold() for word in YES_NO})


def lines(judge_reply: Any, **more: Any) -> tuple[Judged, list[Call], dict[str, Any]]:
    """List the entities of a reference by what the model writes."""

    def script(call: Call) -> Reaction:
        data, task = read(call.prompt)
        if "per line" not in task:
            return by_token(call)
        said = judge_reply(data, call)
        return said if isinstance(said, Reaction) else chat(said)

    with serve(script) as server:
        judge = judge_of(server, ask="single", **more)
        [judged] = judge.judge([sample(chunks=["Rio is in Brazil."])], frozenset({"entities"}))
    asked = [call for call in server.calls if "per line" in call.prompt]
    return judged, asked, judge.about()


def test_lists_are_taken_line_by_line() -> None:
    said = "1. Brazil\n* Brasília, Rio\n- Atlantis\n\n2) brasília"
    judged, asked, about = lines(lambda *_: said)
    assert judged["entities"].items == ("Brazil", "Brasília", "Rio")
    assert (len(asked), about["invented"]) == (1, 1)
    assert asked[0].body["max_tokens"] > 40
    judged, _, _ = lines(lambda *_: "None.")
    assert (judged["entities"].items, judged.failures) == ((), {})
    judged, asked, _ = lines(lambda *_: "Atlantis\nMu", attempts=2)
    assert str(judged.failures["entities"]) == "malformed: an item that is not in the reference"
    assert len(asked) == 2


def test_a_list_without_end_is_asked_for_by_halves() -> None:
    def script(data: dict[str, str], call: Call) -> Reaction | str:
        sentences = data["reference"].count(".")
        if sentences > 1:
            return chat("Brazil\nBrazil\nBraz", finish="length")
        if "Rio" in data["reference"]:  # of one sentence the complete lines are taken
            return chat("Rio\n1960\nRio\n1960\nRi", finish="length")
        del call
        return "Brasília\nBrazil"

    judged, asked, about = lines(script, concurrency=1)
    assert judged["entities"].items == ("Brasília", "Brazil", "Rio", "1960")
    assert (len(asked), about["asked_again"]) == (3, 2)


def test_statements_that_the_model_lists_are_lines_too() -> None:
    def script(call: Call) -> Reaction:
        data, task = read(call.prompt)
        if "per line" in task:
            return chat(data["chunk"].replace(". ", ".\n"))
        return by_token(call)

    with serve(script) as server:
        judge = judge_of(server, ask="single", decompose=True)
        [judged] = judge.judge([sample()], frozenset({"statements"}))
    assert judged["statements"].parts[2] == ("Ferries are boats.", "They carry cars.")
    assert judged["statements"].rows[0][0].quote == "The capital of Brazil is Brasília."


@pytest.mark.parametrize(
    ("said", "items"),
    [
        ("Here are the claims:\n1. Rio is old.\n2. Tea is hot.", ("Rio is old.", "Tea is hot.")),
        ("None.", ()),
    ],
)
def test_claims_that_the_model_lists(said: str, items: tuple[str, ...]) -> None:
    with serve(lambda call: chat(said) if "per line" in call.prompt else by_token(call)) as server:
        judge = judge_of(server, ask="single", decompose=True, attempts=2)
        [judged] = judge.judge([sample()], frozenset({"claims"}))
    assert judged["claims"].items == items
    assert [str(failure) for failure in judged.failures.values()] == (
        [] if items else ["malformed: no item of a text that has one"]
    )


@pytest.mark.parametrize("way", ["single", "matrix"])
def test_words_that_a_model_lists_as_claims_are_asked_again_and_then_sentences(way: str) -> None:
    said = ["Brasília", "April 21"]

    def script(call: Call) -> Reaction:
        if way == "single":
            return chat("\n".join(said)) if "per line" in call.prompt else by_token(call)
        listing = "reference" in read_prompt(call.prompt).data
        return chat(json.dumps({"claims": said})) if listing else well(call)

    with serve(script) as server:
        judge = judge_of(server, ask=way, decompose=True, attempts=2)
        [judged] = judge.judge([sample()], frozenset({"claims"}))
    assert judged["claims"].items == sentences(REFERENCE)
    assert judge.about()["malformed"] == {"a part of a claim": 2 if way == "matrix" else 1}


def test_a_quote_proves_no_number_that_it_leaves_out() -> None:
    one = Sample(
        "q", "When?", ("It was opened in 1931 by Ida.",), "x", {"claims": ("It opened in 1931.",)}
    )

    def script(call: Call) -> Reaction:
        return chat(quote if "Copy the passage" in call.prompt else "yes")

    for quote, unproven in (("opened in 1931", False), ("opened in", True)):
        with serve(script) as server:
            judge = judge_of(server, ask="single", quotes=True)
            [judged] = judge.judge([one], frozenset({"claims"}))
        verdict = judged["claims"].rows[0][0]
        assert (verdict.value, verdict.quote, verdict.unproven) == (1, quote, unproven)


def test_aspects_of_ones_own_are_asked_one_by_one() -> None:
    grades = {0: "no year", 1: "an old year", 2: "2024"}
    more = {"shape": "chunks", "prompt": "How new is it, for $5?", "grades": grades}
    findwell.plugins.register_aspect("fresh_single", **more)  # type: ignore[arg-type]
    findwell.plugins.register_aspect(
        "topics_single", shape="items", prompt="Which chunks are about each topic?", item="topic"
    )

    def script(call: Call) -> Reaction:
        data, task = read(call.prompt)
        if "for $5?" in task:
            assert "2: 2024" in task
            assert "Answer with one digit: 0, 1 or 2." in task
            year = "2" if "2024" in data["chunk"] else "0"
            return with_tokens(chat(year), [{year: 0.9, "1": 0.1}])
        assert "this topic and this chunk alone. Answer yes or no." in task
        return chat("yes" if data["topic"] in data["chunk"] else "no")

    one = Sample("q", "Why?", ("Tea in 2024.", "Coffee."), "Tea", {"topics_single": ("Tea",)})
    try:
        with serve(script) as server:
            judge = judge_of(server, ask="single")
            [judged] = judge.judge([one], frozenset({"fresh_single", "topics_single"}))
    finally:
        del ASPECTS.registered["fresh_single"], ASPECTS.registered["topics_single"]
    assert [verdict.value for verdict in judged["fresh_single"].row] == [2, 0]
    assert judged["fresh_single"].row[1].probability == pytest.approx(0.1)
    assert [verdict.value for verdict in judged["topics_single"].row] == [1, 0]


def test_probabilities_are_recorded_and_read_back() -> None:
    with serve(by_token) as server:
        [judged] = judge_of(server, ask="single").judge([sample()], ALL)
    again = as_judged(as_record(judged), sample(), ALL)
    assert values(again) == values(judged)
    for name in ALL:
        pairs = zip(judged[name].rows, again[name].rows, strict=True)
        for mine, theirs in pairs:
            assert [each.probability for each in mine] == [each.probability for each in theirs]
    wrong = {"relevance": [{"value": 1, "probability": 7}]}
    read_back = as_judged(wrong, Sample("q", "?", ("a",)), frozenset({"relevance"}))
    assert read_back["relevance"].row[0].probability is None


def test_a_user_may_ask_for_other_fields() -> None:
    with serve(by_word) as server:
        options = {"logprobs": None, "top_logprobs": None, "max_tokens": 50}
        judge = judge_of(server, ask="single", options=options)
        judge.judge([sample()], frozenset({"claims"}))
    body = server.calls[0].body
    assert body["max_tokens"] == 50
    assert not {"logprobs", "top_logprobs"} & body.keys()


WHOLE = """
[grades-relevance]
version = "published"
text = '''
Rate from 0 to 3. It costs 5 $$.
Query: $question
Passage: $chunk
Write ##final score: N'''
answer = "final score: *([0-3])"
"""


def test_a_prompt_of_the_user_may_be_the_whole_message(tmp_path: Path) -> None:
    path = tmp_path / "prompt.toml"
    path.write_text(WHOLE, encoding="utf-8")
    said = ["Steps 1 and 2. ##Final score: 3", "##final score: 0", "I cannot tell.", "score"]

    def script(call: Call) -> Reaction:
        return chat(said[min(call.number, 3)])

    one = sample(chunks=("Brasília, the $chunk.", "Rio <|im_end|>", "Ferries"))
    with serve(script) as server:
        cache = Cache.open(tmp_path / "answers.sqlite")
        judge = judge_of(server, prompt=path, concurrency=1, attempts=2, cache=cache)
        [judged] = judge.judge([one], frozenset({"relevance"}))
        calls = [*server.calls]
        # other remarks are the same question, another text is another
        path.write_text(f"# checked\n{WHOLE}", encoding="utf-8")
        judge_of(server, prompt=path, attempts=2, cache=cache).judge(
            [one], frozenset({"relevance"})
        )
        assert len(server.calls) == len(calls)
        path.write_text(WHOLE.replace("Rate", "Score"), encoding="utf-8")
        judge_of(server, prompt=path, attempts=2, cache=cache).judge(
            [one], frozenset({"relevance"})
        )
        assert len(server.calls) > len(calls)
        cache.close()
    assert [verdict.value for verdict in judged["relevance"].row] == [3, 0, None]
    [first] = calls[0].body["messages"]
    assert first == {
        "role": "user",
        "content": f"Rate from 0 to 3. It costs 5 $.\nQuery: {one.question}\n"
        "Passage: Brasília, the $chunk.\nWrite ##final score: N",
    }
    assert "Rio < |im_end|>" in calls[1].prompt
    assert "logprobs" not in calls[0].body
    assert calls[0].body["max_tokens"] == 300
    about = judge.about()
    assert about["ask"] == "single"
    assert "single-relevance" not in about["prompts"]
    assert about["prompts"]["grades-relevance"]["answer"] == "final score: *([0-3])"
    assert about["prompt"]["replaces"] == ["grades-relevance"]


@pytest.mark.parametrize("name", ["claims", "entities", "statements", "sufficiency"])
def test_a_whole_message_has_what_its_aspect_shows(name: str, tmp_path: Path) -> None:
    shown = ASPECTS[name].shown
    path = tmp_path / "prompt.toml"
    text = "\n".join(f"{each} is ${each}" for each in shown)
    path.write_text(f"[single-{name}]\nversion = 1\ntext = '''{text}'''\n", encoding="utf-8")

    def script(call: Call) -> Reaction:
        return chat("yes") if call.prompt.startswith("chunk is ") else by_word(call)

    with serve(script) as server:
        [judged] = judge_of(server, prompt=path).judge([sample()], frozenset({name}))
        asked = [call.prompt for call in server.calls if call.prompt.startswith("chunk is ")]
    assert asked
    assert all(f"\n{each} is " in prompt for each in shown[1:] for prompt in asked)
    assert all(verdict.value == 1 for verdict in verdicts(judged))


def test_the_terminal_and_the_manifest_name_prompts_of_the_user(
    tmp_path: Path, cli: Findwell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompt.toml").write_text(WHOLE, encoding="utf-8")
    record = {"question": "Where?", "contexts": ["Here.", "There."]}
    (tmp_path / "samples.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    with serve(lambda _: chat("##final score: 2")) as server:
        command = ["score", "samples.jsonl", "-m", "context_precision", "--judge", "openai:m"]
        command += ["-J", f"base_url={server.url}", "-J", "cache=off", "-J", "ask=single"]
        assert "of its user" not in cli(*command).out  # a file that is not named is not used
        assert not any("Passage:" in call.prompt for call in server.calls)
        command += ["-J", "prompt=prompt.toml"]
        told = cli(*command, "--save", "kept")
    assert told.code == 0
    assert "asked with prompts of its user: grades-relevance" in " ".join(told.out.split())
    kept = json.loads((tmp_path / "kept" / "manifest.json").read_text())
    hashed = hashlib.sha256((tmp_path / "prompt.toml").read_bytes()).hexdigest()
    assert hashed in json.dumps(kept)


def test_the_published_prompt_is_taken_from_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package: Any = pytest.importorskip("umbrela.utils.common_utils", reason="make .venv/model")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "judging-prompts.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```py\n(.*?umbrela.*?)```", page, re.DOTALL)
    exec(code, {})
    said = ['{"M": 2, "T": 1, "O": 3}', "##final score: 1", '{"final_score": 0}']
    chunks = ("It costs $5 ($PRICE) a day.\nAnd 'quoted' {braces}.", "b", "c")
    one = sample(chunks=chunks)
    with serve(lambda call: chat(said[call.number])) as server:
        judge = judge_of(server, prompt="umbrela.toml", concurrency=1)
        [judged] = judge.judge([one], frozenset({"relevance"}))
        sent = [call.body["messages"] for call in server.calls]
    assert [verdict.value for verdict in judged["relevance"].row] == [3, 1, 0]
    # word for word what the package sends without examples
    template = Path(package.__file__).parents[1] / "prompts" / "qrel_fewshot_bing.txt"
    pairs = [(one.question, chunk) for chunk in chunks]
    prompts = package.generate_prompts(pairs, "", template.read_text(encoding="utf-8").strip())
    assert sent == [[{"role": "user", "content": prompt}] for prompt in prompts]

"""Prompts in other languages: the same contract, and English as it always was."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from findwell.core.errors import OptionError
from findwell.core.texts.languages import languages_of
from findwell.judges.aspects import ASPECTS
from findwell.judges.aspects.built_in import RELEVANCE
from findwell.judges.client.endpoint import Endpoint
from findwell.judges.llm.matrix import plan_calls
from findwell.judges.llm.prompts import (
    SINGLE_PREFIXES,
    PromptWriter,
    load_prompts,
    number_items,
    prompt_file,
)
from findwell.judges.settings import LANGUAGES, Judge
from findwell.judges.verdicts import Sample
from tests.client.server import chat, serve
from tests.judges.judging import ALL, check_totals, expect, judge_of, sample, verdicts
from tests.judges.model import well

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

OTHERS = [code for code in LANGUAGES if code != "en"]
FIVE = ("relevance", "claims", "entities", "statements", "sufficiency")
QUESTIONS = {
    "en": "What is the capital of Brazil?",
    "de": "Was ist die Hauptstadt von Brasilien und wo liegt sie?",
    "fr": "Quelle est la capitale du Brésil ?",
    "es": "¿Cuál es la capital de Brasil?",
    "zh": "巴西的首都是哪里？",
    "ja": "ブラジルの首都はどこですか？",
}
# what requests and lists hash to: answers in caches stay valid while these do
ENGLISH_REQUESTS = "d4172de5f5d60d7a5a162b99934a758c7b8c1fa6e394c43729b20f1a106b9e4d"
ENGLISH_LISTS = ["7e02f968", "2f14c288", "0ee4f77b"]


def test_english_is_what_it_was() -> None:
    texts = ("Brasília is a city.", "Ferries are boats.", "Rio is a city.")
    one = Sample("q", "What is it?", texts, "It is Brasília.")
    listed = {"claims": ["a", "b"], "entities": ["b"]}
    items = number_items(one, 1000, listed, {"statements": [("x",), ("y", "z"), ()]}, {})
    calls = plan_calls(items, [ASPECTS[name] for name in FIVE], 1000, separate_calls=False)
    writer = PromptWriter(load_prompts(), {"temperature": 0, "seed": 0})
    calls += [
        call.again([(name, each) for name, ids in call.wanted.items() for each in ids])
        for call in calls
    ]
    endpoint = Endpoint.find("m", base_url="http://h/v1")
    keys = [writer.for_verdicts(call, items).key(endpoint) for call in calls]
    assert hashlib.sha256(b"".join(keys)).hexdigest() == ENGLISH_REQUESTS
    names = [f"list-{name}" for name in ("claims", "entities", "statements")]
    assert [writer.prompts[name].sha256[:8] for name in names] == ENGLISH_LISTS


def test_settings_and_words_know_the_same_languages() -> None:
    found = {each.name for each in (files("findwell.judges.llm") / "prompts").iterdir()}
    assert found == {f"{language}.toml" for language in LANGUAGES}
    for language in LANGUAGES:
        assert set(prompt_file("findwell.judges.llm", language)["words"]) == {"task", "to"}


@pytest.mark.parametrize("language", OTHERS)
def test_every_prompt_is_there_with_the_same_contract(language: str) -> None:
    english, own = load_prompts(), load_prompts(language=language)
    assert set(own) == set(english)
    for name, prompt in own.items():
        assert prompt.sha256 != english[name].sha256, f"{language}/{name} is not translated"
        examples = [re.findall(r'\{".*\}', each.text) for each in (prompt, english[name])]
        assert examples[0] == examples[1], name
        named = [set(re.findall(r'"(\w+)"', each.text)) for each in (prompt, english[name])]
        assert named[0] == named[1], name
        for word in ("true", "false", "JSON", "[]", '""', "yes", "write none", "attempt"):
            there = word.removeprefix("write ") in prompt.text
            assert there == (word in english[name].text), (name, word)
        if "yes or no" in english[name].text:  # one token each, for whatever tokenizer
            assert re.search(r"\byes\b.{3,12}\bno\b", prompt.text, re.ASCII)
        marks = prompt.text.count("</"), english[name].text.count("</")
        assert marks[0] == marks[1], name
        prose = re.sub(r'\{".*\}|"\w+"|\$\w+|JSON|true|false|[Cc]hunks?|yes|no\b', "", prompt.text)
        assert languages_of([prose]) == [language], (name, prose)
    for rubric in (own["relevance"].text, own["grades-relevance"].text):
        assert all(re.search(rf"^{grade}: ", rubric, re.MULTILINE) for grade in RELEVANCE.grades)
    assert "25" in own["judge"].text


@pytest.mark.parametrize("language", OTHERS)
def test_verdicts_come_out_the_same(language: str) -> None:
    samples = [sample(number) for number in range(2)]
    with serve(well) as server:
        judge = judge_of(server, language=language, decompose=False)
        judged = judge.judge(samples, ALL)
        system = {call.body["messages"][0]["content"] for call in server.calls}
        asked = [call.prompt for call in server.calls]
    assert judged == [expect(each) for each in samples]
    check_totals(judge, judged)
    prompts = load_prompts(language=language)
    assert all(each.startswith(f"{prompts['judge'].text}\n\n") for each in system)
    assert {each for each in ALL if any(prompts[each].fill() in told for told in system)} == ALL
    assert all(
        f"\n{prompt_file('findwell.judges.llm', language)['words']['task']}\n" in prompt
        for prompt in asked
    )
    about = judge.about()
    assert about["language"] == language
    assert about["prompts"] == {
        name: prompt.about()
        for name, prompt in prompts.items()
        if not name.startswith(SINGLE_PREFIXES)
    }


def test_what_is_asked_again_and_listed_is_asked_in_the_language_too() -> None:
    with serve(lambda call: well(call) if "Versuch 2" in call.prompt else chat("{}")) as server:
        judge = judge_of(server, language="de", decompose=True)
        [judged] = judge.judge([sample()], ALL)
        asked = [call.prompt for call in server.calls]
    assert not judged.failures
    assert all(verdict.failure is None for verdict in verdicts(judged))
    assert sum("Versuch 2" in prompt for prompt in asked) == len(asked) / 2
    assert not any("Task:" in prompt or "One entry" in prompt for prompt in asked)


def test_single_verdicts_are_asked_for_in_the_language_too() -> None:
    with serve(lambda _: chat("yes")) as server:
        judge = judge_of(server, language="de", ask="single")
        [judged] = judge.judge([sample()], frozenset({"claims"}))
        system = {call.body["messages"][0]["content"] for call in server.calls}
        tasks = {call.prompt.rpartition("\n\n")[2] for call in server.calls}
    prompts = load_prompts(language="de")
    assert system == {prompts["single"].text}
    assert tasks == {prompts["single-claims"].text}
    assert all(verdict.value == 1 for verdict in verdicts(judged))


def test_the_language_of_each_question_is_detected() -> None:
    samples = [
        replace(sample(), query=code, question=question) for code, question in QUESTIONS.items()
    ]
    with serve(well) as server:
        judge = judge_of(server, language="auto")
        together = judge.judge(samples, ALL)
        spoken = {
            code: {
                call.body["messages"][0]["content"]
                for call in server.calls
                if question in call.prompt
            }
            for code, question in QUESTIONS.items()
        }
        about = judge.about()
        # one by one, as in any company
        alone = [judge_of(server, language="auto").judge([each], ALL)[0] for each in samples]
        judge.dry_run(samples, ALL)
    for code, told in spoken.items():
        role = load_prompts(language=code)["judge"].text
        assert all(each.startswith(f"{role}\n\n") for each in told)
    assert together == alone == [expect(each) for each in samples]
    assert about["prompts"]["judge"] == load_prompts()["judge"].about()
    for code in OTHERS:
        assert about["prompts"][f"{code}/claims"] == load_prompts(language=code)["claims"].about()


def test_own_prompts_take_the_place_of_those_in_any_language(tmp_path: Path) -> None:
    path = tmp_path / "prompt.toml"
    path.write_text("[claims]\nversion = 2\ntext = 'Belegt?'\n")
    own = load_prompts(path, language="de")
    assert own["claims"].fill() == "Belegt?"
    assert own["judge"] == load_prompts(language="de")["judge"]


def test_a_language_without_prompts() -> None:
    with pytest.raises(OptionError, match="unknown language of prompts 'ger'") as stop:
        Judge("openai:m", language="ger")
    assert "choose one of: en, de, fr, es, zh, ja, auto" in stop.value.fix


def test_on_the_command_line(
    cli: Findwell, save: Save, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))
    record = {
        "query": "q1",
        "question": QUESTIONS["de"],
        "reference": "Brasília ist die Hauptstadt.",
        "retrieved": [{"doc": "d1", "text": "Brasília ist die Hauptstadt von Brasilien."}],
    }
    samples = save("samples.jsonl", json.dumps(record))
    asked = ["score", samples, "-m", "context_recall", "--judge", "openai:m"]
    with serve(well) as server:
        for language in ("en", "de", "auto"):
            done = cli(*asked, "-J", f"base_url={server.url}", "-J", f"language={language}")
            assert done.code == 0, done
    tasks = [call.prompt.count("Aufgabe:") for call in server.calls]
    assert tasks == [0, 1]  # the third is the same as the second, and in the cache
    assert cli(*asked, "-J", "language=xx").code == 2

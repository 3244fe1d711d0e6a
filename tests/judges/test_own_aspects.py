"""Aspects of a user's own: registered by name, shape and prompt, judged as findwell's own are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import FindwellError, OptionError
from findwell.judges.aspects import ASPECTS
from findwell.judges.find import find_judge
from findwell.judges.llm.prompts import example_entry, schema
from findwell.judges.replay import ReplayJudge, record
from findwell.judges.verdicts import JudgeReason, Sample
from tests.client.server import Call, Reaction, chat, serve
from tests.judges.judging import check_totals, judge_of
from tests.judges.model import read_prompt

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

ROWS = [
    {
        "query_id": "tea",
        "question": "How hot is tea?",
        "contexts": ["Tea is hot. In 2024 it was hotter.", "Coffee is cold.", "Tea grows in 2023."],
        "reference": "Tea is hot. It grows.",
    }
]
SHAPES = {
    "recent": {"shape": "chunks", "prompt": "Does the chunk name a year? It costs $5."},
    "fresh": {
        "shape": "chunks",
        "prompt": "How new is the chunk?",
        "grades": {0: "it names no year", 1: "it names an old year", 2: "it names 2024"},
    },
    "topics": {"shape": "items", "prompt": "Which chunks are about each topic?", "item": "topic"},
    "dated": {"shape": "parts", "prompt": "Does each sentence name a year?", "item": "sentence"},
    "agrees": {"shape": "list", "prompt": "Do the chunks agree with each other?"},
}
# what each is measured by, and the value that comes of the verdicts below
MEASURED = {
    "P@3/recent": 2 / 3,
    "RR/recent": 1.0,
    "P(rel=2)@3/fresh": 1 / 3,
    "recall/topics": 0.5,
    "nDCG@1/topics": 1.0,
    "P@1/dated": 0.5,
    "success/agrees": 1.0,
    "success@1/agrees": 0.0,
}


@pytest.fixture(autouse=True)
def _aspects() -> None:
    for name, given in SHAPES.items():
        findwell.plugins.register_aspect(name, **given)  # type: ignore[arg-type]


def year(text: str) -> int:
    """Return 2 for this year, 1 for another, 0 for none."""
    found = re.findall(r"20\d\d", text)
    return max((2 if each == "2024" else 1 for each in found), default=0)


def judge(sample: Sample) -> dict[str, Any]:
    return {
        "recent": [bool(year(chunk)) for chunk in sample.chunks],
        "fresh": [year(chunk) for chunk in sample.chunks],
        "topics": [[topic in chunk for chunk in sample.chunks] for topic in sample.items["topics"]],
        "dated": [[bool(year(part)) for part in parts] for parts in sample.parts["dated"]],
        "agrees": len(sample.chunks) > 1,
    }


def answer(call: Call) -> Reaction:
    """Answer as a model that read the task: every field is asked for by a line of its own."""
    read = read_prompt(call.prompt)
    said: dict[str, Any] = {}
    for name in re.findall(r'^"(\w+)":', read.task, re.MULTILINE):
        ids = read.ids(name)
        if name in ("recent", "fresh"):
            grade = {each: year(read.chunks[each]) for each in ids}
            value = grade if name == "fresh" else {each: bool(grade[each]) for each in ids}
            key = "grade" if name == "fresh" else "yes"
            said[name] = [
                {"chunk": each, "quote": "20" if grade[each] else "", key: value[each]}
                for each in ids
            ]
        elif name == "topics":
            units = {line.partition(" ")[0]: line for line in read.data["topics"].split("\n")}
            said[name] = [
                {
                    "topic": each,
                    "found": [
                        {"chunk": chunk, "quote": text}
                        for chunk, text in read.chunks.items()
                        if units[each].partition(" ")[2] in text
                    ],
                }
                for each in units
            ]
        elif name == "dated":
            lines = [line for text in read.data.values() for line in text.split("\n")]
            parts = dict(line.partition(" ")[::2] for line in lines if ".sentence" in line)
            said[name] = [{"sentence": each, "yes": bool(year(parts[each]))} for each in parts]
        else:
            entry = {"list": "all", "found": [{"chunk": "c1", "quote": "Tea"}], "reason": "so"}
            said[name] = [{**entry, "yes": len(read.chunks) > 1}]
    return chat(json.dumps(said))


def test_a_function_judges_them() -> None:
    result = findwell.evaluate(ROWS, measures=MEASURED, judge=judge)
    assert result.values == pytest.approx(MEASURED)


def test_a_model_judges_them() -> None:
    with serve(answer) as server:
        asked = judge_of(server)
        result = findwell.evaluate(ROWS, measures=MEASURED, judge=asked)
        texts = ["\n".join(each["content"] for each in it.body["messages"]) for it in server.calls]
    assert result.values == pytest.approx(MEASURED)
    assert not [each for each in result.findings if each.kind != "text-as-id"]
    (recent,) = [text for text in texts if '"recent":' in text]
    assert "Does the chunk name a year? It costs $5. One entry for each id:" in recent
    assert '\n"recent": c1 to c3\n' in recent
    assert '{"chunk": "c1", "quote": "…", "yes": true}' in recent
    assert "2: it names 2024" in recent
    assert asked.about()["prompts"]["recent"]["own"] is True
    assert len(texts) == 4  # chunks and items together, parts, the list twice


def test_parts_of_two_aspects_do_not_mix() -> None:
    for name in ("first", "second"):
        findwell.plugins.register_aspect(name, shape="parts", prompt="Does each part name a year?")

    def script(call: Call) -> Reaction:
        read = read_prompt(call.prompt)
        (name,) = re.findall(r'^"(\w+)":', read.task, re.MULTILINE)
        lines = dict(line.partition(" ")[::2] for line in read.data["c1"].split("\n"))
        return chat(json.dumps({name: [{"part": e, "yes": bool(year(lines[e]))} for e in lines]}))

    parts = {"first": (("In 2024.", "No."),), "second": (("No.", "In 2024."),)}
    with serve(script) as server:
        one = Sample("q", "?", ("In 2024. No.",), parts=parts)
        (judged,) = judge_of(server).judge([one], frozenset(parts))
    found = {name: [verdict.value for verdict in judged[name].rows[0]] for name in parts}
    assert found == {"first": [1, 0], "second": [0, 1]}


@pytest.mark.parametrize("ask", ["matrix", "single"])
@pytest.mark.parametrize("shape", ["chunks", "parts", "list"])
def test_what_needs_the_reference_is_shown_it_and_relevance_is_not(shape: str, ask: str) -> None:
    more: dict[str, Any] = {"shape": shape, "prompt": "Does it contradict the reference?"}
    findwell.plugins.register_aspect("contradicts", needs="reference", **more)
    one = Sample("q", "How hot?", ("Tea is cold.",), "Tea boils.")
    one = replace(one, parts={"contradicts": (("Tea is cold.",),)})
    try:
        with serve(lambda _: chat("no")) as server:
            judge = judge_of(server, ask=ask, attempts=1)
            judge.judge([one], frozenset({"relevance", "contradicts"}))
            asked = {
                ("contradict" in call.prompt, "Tea boils." in call.prompt) for call in server.calls
            }
            [judged] = judge.judge([replace(one, reference=" ")], frozenset({"contradicts"}))
    finally:
        del ASPECTS.registered["contradicts"]
    assert asked == {(True, True), (False, False)}
    assert judged.failures["contradicts"].reason is JudgeReason.NO_REFERENCE


def test_a_judge_knows_aspects_that_were_registered_after_it_was_made() -> None:
    ASPECTS.registered.pop("recent")
    with serve(answer) as server:
        asked = judge_of(server)
        findwell.plugins.register_aspect(
            "recent", shape="chunks", prompt="Does the chunk name a year?"
        )
        judged = asked.judge([Sample("q", "?", ("In 2024.",))], frozenset({"recent"}))
    assert judged[0]["recent"].row[0].value == 1
    check_totals(asked, judged)


def test_panels_and_recordings_hold_them(tmp_path: Path) -> None:
    parts = {"dated": (("Tea is hot.", "In 2024."), ("No.",))}
    items = {"topics": ("Tea", "Milk")}
    one = Sample("q", "?", ("Tea is hot. In 2024.", "No."), "Tea. Milk.", items, parts)
    panel = find_judge([judge, judge, lambda _: {}])
    judged = panel.judge([one], frozenset(SHAPES))
    assert [verdict.value for verdict in judged[0]["fresh"].row] == [2, 0]
    record([one], judged, tmp_path / "v", judge=panel)
    assert ReplayJudge(tmp_path / "v").judge([one], frozenset(SHAPES)) == judged


def test_the_local_judge_cannot() -> None:
    (judged,) = find_judge("local:text").judge([Sample("q", "?", ("a",))], frozenset({"recent"}))
    assert judged.failures["recent"].reason is JudgeReason.NEEDS_MODEL


def test_a_model_lists_items_of_its_own() -> None:
    findwell.plugins.register_aspect(
        "topics",
        shape="items",
        prompt="Which chunks are about each topic?",
        list_prompt="what the reference is about, in one word each.",
        item="topic",
    )

    def script(call: Call) -> Reaction:
        if "<reference" in call.prompt:
            system = call.body["messages"][0]["content"]
            assert "what the reference is about, in one word each. The entries" in system
            return chat('{"topics": ["Tea", "tea", "Milk"]}')
        return answer(call)

    with serve(script) as server:
        asked = judge_of(server)
        result = findwell.evaluate(
            ROWS, measures=["recall/topics"], judge=asked, reading=findwell.Reading(keep=3)
        )
        assert len(server.calls) == 2
    assert result["recall/topics"] == 0.5
    with pytest.raises(FindwellError, match="has no parameter 'splitter'"):
        findwell.evaluate(ROWS, measures=["recall/topics(splitter=lines)"], judge=judge)


def test_prompts_of_a_file_replace_theirs(tmp_path: Path) -> None:
    path = tmp_path / "prompt.toml"
    path.write_text("[recent]\nversion = 7\ntext = '\"recent\": ask about each id'\n")
    with serve(answer) as server:
        asked = judge_of(server, prompt=path)
    assert asked.about()["prompts"]["recent"]["version"] == "7"


def test_a_saved_result_brings_them_along(tmp_path: Path, cli: Findwell) -> None:
    result = findwell.evaluate(
        ROWS, measures=MEASURED, judge=judge, reading=findwell.Reading(keep=3)
    )
    folder = result.save(tmp_path / "saved")
    fresh = ASPECTS["fresh"]
    for name in SHAPES:
        del ASPECTS.registered[name]
    assert findwell.load(folder).values == pytest.approx(MEASURED)
    assert ASPECTS["fresh"] == fresh
    assert cli("score", folder, "-m", "P@1/recent").code == 0


def test_they_are_listed_and_explained(cli: Findwell, save: Save) -> None:
    listed = cli("measures", "--relations").out
    assert "judged: Which chunks are about each topic?" in listed
    path = save("s.jsonl", "\n".join(map(json.dumps, ROWS)))
    with serve(answer) as server:
        model = ("--judge", "openai:m", "-J", f"base_url={server.url}", "-J", "cache=off")
        done = cli("explain", path, "-m", "P@1/dated", *model)
    assert done.code == 0
    assert "In 2024 it was hotter." in done.out


@pytest.mark.parametrize("name", [*SHAPES, "relevance", "claims", "entities", "sufficiency"])
def test_the_example_of_an_entry_has_the_form_of_its_schema(name: str) -> None:
    form = schema([name])["properties"][name]["items"]  # type: ignore[index, call-overload]
    assert list(example_entry(ASPECTS[name])) == form["required"]  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "claims"}, "the aspect claims is findwell's own"),
        ({"name": "rouge"}, "rouge is a relation already"),
        ({"name": "Not a name"}, "is not a valid name of an aspect"),
        ({"shape": "chunk"}, "did you mean chunks"),
        ({"prompt": "  "}, "has no prompt"),
        ({"needs": "answer"}, "unknown need of an aspect"),
        ({"grades": {1: "yes"}}, "the grades of mine are 1, not 0, 1, 2 …"),
        ({"grades": {0: "a", 1: "b", 2: "c"}, "shape": "parts"}, "only chunks are graded"),
        ({"item": "Topic 1", "shape": "items"}, "is not a valid name of an item"),
        ({"list_prompt": "x"}, "chunks are not listed"),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"name": "mine", "shape": "chunks", "prompt": "Is it?"}
    with pytest.raises(OptionError, match=message):
        findwell.plugins.register_aspect(**usual | given)
    assert "mine" not in ASPECTS


def test_an_installed_package_brings_an_aspect(tmp_path: Path) -> None:
    (tmp_path / "thirdparty.py").write_text(
        "from findwell.plugins import register_aspect\n"
        "register_aspect('recent', shape='chunks', prompt='Is it about this year?')\n"
    )
    info = tmp_path / "thirdparty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[findwell.aspects]\nrecent = thirdparty\n")
    done = subprocess.run(
        [sys.executable, "-m", "findwell", "measures", "--relations"],
        env={"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Is it about this year?" in done.stdout, done

"""Who judged and what that is worth stands wherever judged numbers do; who gives no verdict."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.judges.limits import NO_VERDICT, UNCHECKED, judge_limits, judge_lines, verdict_limit
from findwell.judges.local import LocalJudge
from findwell.judges.panel import PanelJudge
from findwell.judges.replay import FunctionJudge, ReplayJudge, record
from findwell.judges.verdicts import Sample
from findwell.show import render
from findwell.show.gate import advice, as_junit, lines, summary
from findwell.show.report import report

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

TEXT_LINE = (
    "judge local:text: κ with people 0.26, 0.12, 0.11 on TREC DL19/20/21 (relevance); "
    "significantly wrong in 26% of 1,953 pairs of real systems; for smoke tests only"
)
LOCAL_LINE = (
    "judge local: κ with people 0.33, 0.23, 0.24 on TREC DL19/20/21 (relevance); significantly "
    "wrong in 5% of 1,953 pairs of real systems"
)


def records(*, best: int) -> list[dict[str, Any]]:
    """Return samples with the chunk that has the words of the question at this place."""
    made = []
    for number in range(30):
        question = f"What is the capital of country{number}?"
        chunks = ["Bananas are yellow.", "Rain falls."]
        chunks.insert(best, f"The capital of country{number} is a town. Number {number % 3}.")
        topic = "even" if number % 2 == 0 else "odd"
        made.append(
            {"query": str(number), "question": question, "contexts": chunks, "topic": topic}
        )
    return made


GOOD, BAD = records(best=0), records(best=2)


def says_first(sample: Sample) -> dict[str, Any]:
    return {"relevance": [int("capital" in chunk) for chunk in sample.chunks]}


def compared(judge: object, **options: Any) -> findwell.Comparison:
    systems = {"good": GOOD, "bad": BAD}
    return findwell.compare(systems, measures="context_precision", judge=judge, **options)


def test_the_line_of_each_kind_of_judge(tmp_path: Path) -> None:
    sample = Sample("q", "Why?", ("a", "b"))
    text, function = LocalJudge(None), FunctionJudge(says_first)
    record([sample], text.judge([sample], frozenset({"relevance"})), tmp_path / "v", judge=text)
    panel = PanelJudge([text, function])
    about = {
        judge.name: {"name": judge.name, **judge.about()}
        for judge in (text, function, panel, ReplayJudge(tmp_path / "v"))
    }
    assert judge_lines([about["local:text"]]) == [TEXT_LINE]
    assert judge_limits(about[function.name]) == UNCHECKED
    assert f"local:text: {judge_limits(about['local:text'])}" in judge_limits(about[panel.name])
    assert judge_limits(about["replay:local:text"]) == judge_limits(about["local:text"])
    limited = {name for name, each in about.items() if verdict_limit(each, "relevance")}
    assert limited == about.keys() - {function.name}
    assert judge_lines([{"name": "local"}]) == [LOCAL_LINE]
    moved = judge_limits({"name": "local(relevance=0.48)"})
    assert "with its usual settings" in moved
    assert judge_limits({"name": "local:onnx:mine"}) == UNCHECKED
    assert not judge_limits({})


def test_a_card_is_what_a_judge_is_worth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))
    labels = [
        {"question": each["question"], "chunk": chunk, "label": int("capital" in chunk)}
        for each in GOOD
        for chunk in each["contexts"]
    ]
    judge = FunctionJudge(says_first, name="mine")
    findwell.judges.card(labels, judge=judge).save()
    result = findwell.evaluate(GOOD, measures="context_precision", judge=judge)
    limits = result.as_dict()["judge"]["limits"]
    assert limits.startswith("κ 1.00 (")
    assert limits.endswith("on 90 labels of labels, relevance")
    assert not verdict_limit(result.judge, "relevance")


def test_local_text_gives_no_verdict_on_any_surface(tmp_path: Path) -> None:
    found = compared("local:text", slices="topic")
    assert found["bad", "context_precision"]["difference"] < -0.5
    rows = [*found.comparisons.to_dicts(), *found.slices.to_dicts()]
    assert len(rows) == 3
    for row in rows:
        assert (row["p"], row["p_adjusted"]) == (None, None)
        assert NO_VERDICT in row["reason"]
        assert row["verdict"] == "unknown"
    told = found.as_dict()
    assert told["judges"] == [TEXT_LINE]
    for shown in (repr(found), found.to_markdown(), found._repr_html_(), found.to_latex()):
        flat = " ".join(shown.split()).replace("\\_", "_")
        assert "significantly wrong in 26% of 1,953 pairs" in flat
        assert not {"better", "worse"} & set(flat.split())
        assert "textbf" not in flat
    assert "unknown" in repr(found)
    assert repr(found.plot("forest")).endswith("unknown>")
    folders = []
    for name, given in (("good", GOOD), ("bad", BAD)):
        result = findwell.evaluate({name: given}, measures="context_precision", judge="local:text")
        folders.append(result.save(tmp_path / name))
    again = findwell.compare(*folders)
    assert again["bad", "context_precision"]["p"] is None
    assert TEXT_LINE in report(*folders)


def test_local_says_what_its_verdict_is_worth() -> None:
    pytest.importorskip("onnxruntime")
    found = compared("local")
    assert found["bad", "context_precision"]["verdict"] == "worse"
    assert LOCAL_LINE in " ".join(repr(found).split())
    assert found.as_dict()["judges"] == [LOCAL_LINE]


def test_a_measure_that_no_judge_decides_keeps_its_verdict() -> None:
    with_gold = [
        [{**each, "retrieved": each["contexts"], "gold": [each["contexts"][at]]} for each in given]
        for given, at in ((GOOD, 0), (BAD, 0))
    ]
    for given in with_gold:
        for each in given:
            del each["contexts"]
    found = findwell.compare(
        dict(zip(("good", "bad"), with_gold, strict=True)),
        measures=["RR", "context_precision"],
        judge="local:text",
    )
    known = {row["measure"]: row["p"] for row in found.comparisons.to_dicts()}
    assert known["RR"] is not None
    assert known["context_precision"] is None


def test_every_form_of_a_result_names_the_judge() -> None:
    result = findwell.evaluate(GOOD, measures="context_precision", judge="local:text")
    for how in ("table", "markdown", "latex"):
        flat = " ".join(render(result, how).split())
        assert "significantly wrong in 26% of 1,953 pairs" in flat, how
    assert TEXT_LINE in " ".join(repr(result).split())
    assert TEXT_LINE in result._repr_html_()
    assert f"judge {result.judge['name']}: {result.as_dict()['judge']['limits']}" == TEXT_LINE
    (explained,) = findwell.explain(result, query="0")
    assert explained.judge_limits == result.as_dict()["judge"]["limits"]


def test_the_best_is_not_marked_by_a_judge_without_verdicts() -> None:
    systems = {"good": GOOD, "bad": BAD, "other": BAD}
    for judge, marked in (("local:text", False), (says_first, True)):
        result = findwell.evaluate(systems, measures="context_precision", judge=judge)
        assert ("**1.000**" in render(result, "markdown")) is marked
        assert ('class="near"' in report(result)) is marked


@pytest.mark.parametrize("decide", ["interval", "value"])
def test_a_gate_on_local_text_is_undecided(decide: str) -> None:
    result = findwell.evaluate(GOOD, measures="context_precision", judge="local:text")
    found = findwell.gate(result, ["context_precision>=0.1", "failed<=0"], decide=decide)
    judged, counted = found.verdicts
    assert (judged.outcome, judged.reason, judged.judge) == ("undecided", NO_VERDICT, TEXT_LINE)
    assert (counted.outcome, counted.judge) == ("pass", "")
    assert found.exit_code == 3
    assert findwell.gate(result, "context_precision>=0.1", undecided="pass").passed
    assert "significantly wrong in 26%" in " ".join(render(found, "table", width=60).split())
    assert TEXT_LINE in lines(found)[0]
    assert "for smoke tests" in as_junit(found)
    assert "ask another judge" in advice(found)
    assert "more queries" not in summary(found, "")
    assert found.as_dict()["requirements"][0]["judge"] == TEXT_LINE
    against = findwell.gate(
        compared("local:text"), "context_precision>=baseline-0.9", decide=decide
    )
    assert against.exit_code == 3
    saved = findwell.gate(result, "context_precision>=baseline-0.1", baseline=result, decide=decide)
    assert saved.outcome == "undecided"


def test_a_gate_on_another_judge_is_decided_and_names_it() -> None:
    result = findwell.evaluate(GOOD, measures="context_precision", judge=says_first)
    (found,) = findwell.gate(result, "context_precision>=0.1").verdicts
    assert found.outcome == "pass"
    assert found.judge == f"judge function:says_first: {UNCHECKED}"


def test_local_text_chooses_no_setting() -> None:
    names = [f"q{number}" for number in range(12)]
    runs = [dict.fromkeys(names, each) for each in (["a", "b"], ["b", "a"])]
    options: dict[str, Any] = {"engine": "qdrant-rrf", "corpus": {"a": "one", "b": "two"}}
    gold = [{"query": name, "question": f"{name}?", "gold": ["a"]} for name in names]
    for judge in ("local:text", findwell.Judge("local:text"), ["local:text", says_first]):
        with pytest.raises(OptionError, match="cannot choose a setting"):
            findwell.tuning.tune(runs, gold, "P@1/relevance", judge=judge, **options)
    found = findwell.tuning.tune(runs, gold, "P@1/relevance", judge=says_first, **options)
    (limits,) = (each for each in found.findings if each.kind == "judge-limits")
    assert UNCHECKED in limits.message
    for how in ("table", "markdown", "html"):  # on the same page as what was chosen
        assert UNCHECKED in " ".join(render(found, how).split())
    assert limits.examples == ("P@1/relevance",)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    places = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    for place, given in zip(places, (GOOD, BAD), strict=True):
        place.write_text("".join(f"{json.dumps(each)}\n" for each in given))
    return places


JUDGED = ("-m", "context_precision@2", "--judge", "local:text")


def test_the_command_line_says_so(cli: Findwell, files: tuple[Path, Path], tmp_path: Path) -> None:
    compared = cli("compare", *files, *JUDGED)
    assert "unknown" in compared.out
    assert TEXT_LINE in " ".join(compared.out.split())
    gated = cli("compare", *files, *JUDGED, "--no-regression", "context_precision@2")
    assert gated.code == 3
    assert "ask another judge" in gated.err
    assert cli("score", files[0], *JUDGED, "--require", "context_precision@2>=0.1").code == 3
    for how in ("csv", "jsonl"):
        shown = cli("score", files[0], *JUDGED, "--format", how)
        assert TEXT_LINE in shown.out
        shown = cli("compare", *files, *JUDGED, "--format", how)
        assert TEXT_LINE in shown.out
    rows = list(csv.DictReader(io.StringIO(cli("compare", *files, *JUDGED, "--format", "csv").out)))
    assert rows[0]["p"] == ""
    assert NO_VERDICT in rows[0]["reason"]
    curve = cli("curve", files[0], "-m", "context_precision", *JUDGED[2:], "--at", "1,2")
    assert TEXT_LINE in " ".join(curve.out.split())
    power = cli("power", *files, *JUDGED, "--difference", "0.1")
    assert TEXT_LINE in " ".join(power.out.split())
    assert cli("report", *files, *JUDGED, "-o", tmp_path / "page.html").code == 0
    assert TEXT_LINE in (tmp_path / "page.html").read_text()


def test_a_baseline_is_not_replaced_on_the_word_of_local_text(
    cli: Findwell, files: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "baseline"
    update = ("--baseline", folder, "--update-baseline")
    assert cli("score", files[0], *JUDGED, *update).code == 0
    again = cli("score", files[1], *JUDGED, *update)
    assert again.code == 1
    assert "has a judge that gives no verdict" in again.err
    assert findwell.load(folder)["context_precision@2"] == pytest.approx(1.0)

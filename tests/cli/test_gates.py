"""`findwell score --require`: verdicts, exit codes, baselines, JUnit, the summary of GitHub."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import findwell
from tests import values
from tests.comparison.test_gates import BETTER, NOISY, OLD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Outcome, Save

PASS, FAIL, OPEN = "recall>=0.1", "recall>=0.99", "recall>=0.64"


class Score:
    """Scores a run with recalls as wanted, in the test's folder."""

    def __init__(self, cli: Findwell, save: Save, folder: Path) -> None:
        self.cli, self.save, self.folder = cli, save, folder
        self.gold = save("gold.json", json.dumps(values.gold(60)))

    def __call__(self, scores: object, *options: object) -> Outcome:
        run = self.save("run.json", json.dumps(values.run(scores)))
        return self.cli("score", run, "--gold", self.gold, "-m", "recall", *options)


@pytest.fixture
def score(cli: Findwell, save: Save, tmp_path: Path) -> Score:
    return Score(cli, save, tmp_path)


def require(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--require", text)]


@pytest.mark.parametrize(
    ("asked", "options", "code"),
    [
        ([PASS], [], 0),
        ([PASS, FAIL], [], 1),
        ([PASS, OPEN], [], 3),
        ([OPEN, FAIL], [], 1),
        ([OPEN], ["--undecided", "pass"], 0),
        ([OPEN], ["--undecided", "fail"], 1),
        ([OPEN], ["--decide", "value"], 0),
        ([FAIL], ["--undecided", "pass"], 1),
        (["queries>=60", "undefined<=5%", "failed<=0", "judged@5>=0.8"], [], 0),
        (["queries>=61"], ["--undecided", "pass"], 1),
    ],
)
def test_exit_codes(asked: list[str], options: list[str], code: int, score: Score) -> None:
    done = score(OLD, *require(*asked), *options)
    assert done.code == code
    assert "requirements: " in done.out


def test_what_is_printed(score: Score) -> None:
    shown = score(OLD, *require(PASS, OPEN, "P@3>=0.1"), "--format", "json").answer
    assert shown["gate"] == "undecided"
    assert [row["outcome"] for row in shown["requirements"]] == ["pass", "undecided", "pass"]
    assert [row["measure"] for row in shown["summary"]] == ["recall", "P@3"]
    plain = score(OLD, "--format", "json").answer
    assert "gate" not in plain
    lines = score(OLD, *require(OPEN), "--format", "csv")
    assert lines.out.startswith("run,measure,value")
    assert "? undecided: recall>=0.64 (run): recall is 0." in lines.err
    assert "the interval spans the threshold" in lines.err
    marked = score(OLD, *require(FAIL), "--format", "markdown").out
    assert "| ✗ fail | recall\\>=0.99 |" in marked


def test_advice_names_what_is_undecided(cli: Findwell, save: Save) -> None:
    run = save("run.json", json.dumps(values.run([0.6])))
    gold = save("gold.json", json.dumps(values.gold(1)))
    alone = cli("score", run, "--gold", gold, "-m", "recall", *require("recall>=0.5"))
    assert alone.code == 3
    assert "one query says nothing about the spread: add queries" in alone.err


def test_a_figure_that_the_run_lacks_is_no_matter_of_queries(score: Score) -> None:
    done = score(OLD, *require("p90<=300ms"))
    assert done.code == 3
    assert "the run has no such columns: leave this requirement out" in done.err
    assert "add queries" not in done.err


def test_junit(score: Score, tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    assert score(OLD, *require(PASS, FAIL, OPEN), "--junit", path).code == 1
    suite = ET.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    cases = list(suite.iter("testcase"))
    assert [case.get("name") for case in cases] == [PASS, FAIL, OPEN]
    assert [case[0].tag for case in cases] == ["system-out", "failure", "error"]
    assert "0.99" in str(cases[1][0].get("message"))
    score(OLD, *require(OPEN), "--junit", path, "--undecided", "pass")
    assert next(ET.parse(path).getroot().iter("testcase"))[0].tag == "system-out"


def test_the_summary_for_github(
    score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    assert score(OLD).code == 0
    assert not path.exists()  # nothing was required
    score(OLD, *require(OPEN))
    text = path.read_text(encoding="utf-8")
    assert "**requirements: undecided**" in text
    assert "--undecided pass" in text
    assert "| recall |" in text


# baselines


def test_against_a_baseline(score: Score, tmp_path: Path) -> None:
    baseline = values.result(OLD).save(tmp_path / "baseline")
    line = require("recall>=baseline-0.02")
    assert score(BETTER, *line, "--baseline", baseline).code == 0
    assert score(OLD, *line, "--baseline", baseline).code == 0
    assert score(NOISY, *line, "--baseline", baseline).code == 3
    worse = score(OLD - 0.1, *line, "--baseline", baseline)
    assert worse.code == 1
    assert "✗ fail" in worse.out


def test_the_baseline_moves_only_on_purpose_and_only_up(score: Score, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "baseline"
    line = [*require("recall>=baseline-0.02"), "--baseline", folder]
    first = score(OLD, *line, "--update-baseline")
    assert first.code == 0
    assert "baseline saved" in first.err
    before = findwell.load(folder)["recall"]

    assert score(BETTER, *line).code == 0
    assert findwell.load(folder)["recall"] == before  # nobody asked

    worse = score(OLD - 0.1, *line, "--update-baseline")
    assert worse.code == 1
    assert "stays as it is" in worse.err
    assert findwell.load(folder)["recall"] == before

    undecided = score(NOISY, *line, "--update-baseline")
    assert undecided.code == 3
    assert findwell.load(folder)["recall"] == before

    assert score(BETTER, *line, "--update-baseline").code == 0
    assert findwell.load(folder)["recall"] == pytest.approx(BETTER.mean())


def test_the_ratchet_without_requirements(score: Score, tmp_path: Path) -> None:
    folder = tmp_path / "baseline"
    options = ["--baseline", folder, "--update-baseline"]
    assert score(OLD, *options).code == 0
    for worse in (OLD - 0.1, np.append(OLD[:-1], OLD[-1] - 0.1)):  # surely, or by a little
        fell = score(worse, *options)
        assert fell.code == 1
        assert "worse than the baseline: ✗ fail: recall>=baseline (run)" in fell.err
        assert f"to replace it all the same: --save {folder}" in fell.err
        assert findwell.load(folder)["recall"] == pytest.approx(OLD.mean())
    assert score(OLD - 0.1, "--save", folder).code == 0
    assert findwell.load(folder)["recall"] == pytest.approx((OLD - 0.1).mean(), abs=0.01)


def test_the_baseline_keeps_what_was_not_asked_for(
    score: Score, cli: Findwell, save: Save, tmp_path: Path
) -> None:
    folder = tmp_path / "baseline"
    options = ["--baseline", folder, "--update-baseline"]
    assert score(OLD, "-m", "nDCG", *options).code == 0
    moved = score(BETTER, *options)
    assert moved.code == 0
    assert "also measured, because the baseline has it: nDCG" in moved.err
    now = findwell.load(folder)
    assert [str(measure) for measure in now.measures] == ["recall", "nDCG"]
    late = {query: ["x", *docs][: len(docs)] for query, docs in values.run(BETTER).items()}
    run = save("late.json", json.dumps(late))
    asked = ["score", run, "--gold", score.gold, "-m", "success@20", *options]
    fell = cli(*asked)
    assert fell.code == 1
    assert "nDCG>=baseline" in fell.err
    fewer = save("fewer.json", json.dumps(dict(list(values.gold(60).items())[:50])))
    run = save("good.json", json.dumps(values.run(BETTER)))
    lost = cli("score", run, "--gold", fewer, "-m", "recall", *options)
    assert lost.code == 1
    assert "10 queries of the baseline have no value now" in lost.err
    assert findwell.load(folder).summary.equals(now.summary)


def test_no_baseline_is_begun_with_what_fails(score: Score, tmp_path: Path) -> None:
    folder = tmp_path / "baseline"
    done = score(OLD, *require(FAIL), "--baseline", folder, "--update-baseline")
    assert done.code == 1
    assert "no baseline is saved" in done.err
    assert not folder.exists()


def test_two_equal_values_decide_nothing(cli: Findwell, save: Save) -> None:
    gold = save("two.json", json.dumps({"q": ["a"], "r": ["b"]}))
    run = save("run.json", json.dumps({"q": ["a", *"vwxy"], "r": ["b", *"vwxy"]}))
    done = cli("score", run, "--gold", gold, *require("P@5>=0.199"), "--format", "csv")
    assert done.code == 3
    assert "? undecided: P@5>=0.199 (run): P@5 is 0.200, 0.031 … 0.875 (95%)" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--require", "recall"], "is not a valid requirement"),
        (["--require", "recal>=0.5"], "unknown measure 'recal'"),
        (["--require", "recall>=baseline"], "needs a baseline, and there is none"),
        (["--require", "recall>=baseline", "--baseline", "nosuch"], "nosuch: this is not a"),
        (["--require", "recall>=0.5", "--baseline", "nosuch"], "nothing is compared"),
        (["--baseline", "nosuch"], "nothing is compared with the baseline"),
        (["--update-baseline"], "--update-baseline needs --baseline"),
        (["--junit", "x.xml"], "--junit needs a --require"),
        (["--require", "recall>=0.5", "--undecided", "maybe"], "'maybe' is not one of"),
        (["--require", "recall>=0.5", "--junit", "no/such/x.xml"], "could not be written"),
        (["--update-baseline", "--baseline", "gold.json"], "not a findwell result that may be"),
    ],
)
def test_mistakes(
    options: list[str],
    message: str,
    score: Score,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = score(OLD, *options)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.json", "run.json"]

"""The pytest plugin: the fixture, readable failures, and no price for those who do not use it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import findwell
from findwell.core.errors import FindwellError
from findwell.pytest_plugin import assert_retrieval
from tests import values

if TYPE_CHECKING:
    from _pytest.pytester import Pytester, RunResult

pytest_plugins = ["pytester"]

SCORES = np.round(np.random.default_rng(5).beta(4, 2, 60), 1)
RECORDS = [
    {"query": "q1", "question": "Why?", "retrieved": ["a"], "gold": ["a"]},
    {"query": "q2", "question": "How?", "retrieved": ["x"], "gold": ["b"]},
    {"query": "q3", "question": "When?\x1b[31m", "retrieved": ["y", "c"], "gold": ["c"]},
]


def run(pytester: Pytester, monkeypatch: pytest.MonkeyPatch, *options: str) -> RunResult:
    """Run pytest in a process of its own, where the plugin is loaded once."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester.runpytest_subprocess("-p", "findwell.pytest_plugin", *options)


def test_in_a_project(pytester: Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pytester.mkdir("suite")
    (folder / "samples.json").write_text(json.dumps(RECORDS))
    (folder / "test_retrieval.py").write_text(
        "from findwell.pytest_plugin import assert_retrieval\n"
        "def test_good(findwell_evaluate):\n"
        "    result = findwell_evaluate('samples.json', measures=['RR'])\n"
        "    assert_retrieval(result, 'RR>=0.4', 'queries>=3', decide='value')\n"
        "def test_bad(findwell_evaluate):\n"
        "    result = findwell_evaluate('samples.json', measures=['RR'])\n"
        "    assert_retrieval(result, 'RR>=0.9', 'recall@1>=0.1', decide='value')\n"
    )
    done = run(pytester, monkeypatch)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "*retrieval does not meet its requirements",
            "*fail: RR>=0.9 (samples): RR is 0.500, * … * (95%), on 3 queries",
            "*pass: recall@1>=0.1 (samples): *",
            "*worst by RR (samples):",
            "*q2  0.0000  How?",
            "*q3  0.5000  When?*",
        ]
    )
    done.stdout.no_fnmatch_line("*choose(*")  # the traceback ends at the test


def test_it_is_listed_and_can_be_left_out(
    pytester: Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(pytester, monkeypatch, "--fixtures")
    done.stdout.fnmatch_lines(["findwell_evaluate*", "*Measure runs against*gold*"])


def test_it_is_an_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"findwell": "findwell.pytest_plugin"}


def test_loading_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, findwell.pytest_plugin\n"
        "heavy = {'numpy', 'polars', 'scipy', 'rich', 'click', 'findwell.evaluation.comparison'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_paths_are_found_beside_the_test(
    pytester: Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pytester.mkdir("suite")
    (folder / "a.json").write_text('{"q": ["a"]}')
    (folder / "gold.json").write_text('{"q": ["a"]}')
    (folder / "about.csv").write_text("query,lang\nq,en\n")
    (pytester.path / "b.json").write_text('{"q": ["b"]}')
    (folder / "test_paths.py").write_text(
        "def test_paths(findwell_evaluate):\n"
        "    runs = ['a.json', 'b.json']\n"
        "    found = findwell_evaluate(runs, 'gold.json', 'RR', queries='about.csv')\n"
        "    assert found.runs == ['a', 'b']\n"
        "    assert found.by('lang').height == 2\n"
        "    assert findwell_evaluate({'q': ['a']}, {'q': ['a']}, 'RR')['RR'] == 1\n"
    )
    run(pytester, monkeypatch).assert_outcomes(passed=1)


# the assertion alone


def test_what_is_undecided_fails_unless_it_may_pass() -> None:
    result, line = values.result(SCORES), f"recall>={SCORES.mean():.3f}"
    with pytest.raises(AssertionError, match="undecided") as failed:
        assert_retrieval(result, line)
    assert "undecided='pass' or decide='value'" in str(failed.value)
    assert_retrieval(result, line, undecided="pass")
    assert_retrieval(result, "recall>=0.1", undecided="fail")
    with pytest.raises(AssertionError, match=r"fail: recall>=0\.99"):
        assert_retrieval(result, "recall>=0.99", undecided="pass")


def test_the_worst_queries_are_shown() -> None:
    result = values.result(SCORES)
    with pytest.raises(AssertionError) as failed:
        assert_retrieval(result, "recall>=0.99", "undefined<=0", worst=3)
    lines = str(failed.value).splitlines()
    shown = lines[lines.index("  worst by recall (run):") + 1 :]
    lowest = sorted(SCORES)[:3]
    assert [float(line.split()[1]) for line in shown] == pytest.approx(lowest)
    with pytest.raises(AssertionError) as failed:
        assert_retrieval(findwell.evaluate(RECORDS, measures=["unjudged@2"]), "unjudged@2<=0.1")
    assert "q2  0.5000" in str(failed.value).split("worst")[1]


def test_a_baseline(tmp_path: Path) -> None:
    folder = values.result(SCORES).save(tmp_path / "baseline")
    assert_retrieval(values.result(SCORES), "recall>=baseline", baseline=folder)
    worse = values.result(np.maximum(SCORES - 0.1, 0))
    with pytest.raises(AssertionError, match=r"baseline 0\.\d+: −0\.\d+"):
        assert_retrieval(worse, "recall>=baseline-0.02", baseline=folder)


def test_several_runs_and_control_characters() -> None:
    with pytest.raises(AssertionError) as failed:
        assert_retrieval(findwell.evaluate(RECORDS, measures=["RR"]), "RR>=0.9", decide="value")
    assert "\x1b" not in str(failed.value)
    runs = {"a": values.run(SCORES), "b": values.run(np.ones(60))}
    both = findwell.evaluate(runs, values.gold(60), ["recall"])
    with pytest.raises(AssertionError) as failed:
        assert_retrieval(both, "recall>=0.9")
    assert "worst by recall (a)" in str(failed.value)
    assert "worst by recall (b)" not in str(failed.value)


def test_mistakes() -> None:
    result = values.result(SCORES)
    with pytest.raises(ValueError, match="needs a requirement"):
        assert_retrieval(result)
    with pytest.raises(FindwellError, match="unknown measure"):
        assert_retrieval(result, "recal>=0.1")
    with pytest.raises(FindwellError, match="unknown choice for undecided gates 'skip'"):
        assert_retrieval(result, "recall>=0.1", undecided="skip")

"""A measure that has no value for any query: exit code 3, said on standard error, still printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import findwell
from tests.client.server import chat, serve
from tests.sample import jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

SAMPLES = [
    {
        "query": query,
        "question": "Which pump?",
        "retrieved": ["The blue one."],
        "gold": ["The red one."],
    }
    for query in "ab"
]


@pytest.fixture
def path(save: Save) -> Path:
    return save("samples.jsonl", jsonl(SAMPLES))


def test_a_judge_that_fails_every_time(
    cli: Findwell, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    with serve(lambda _: chat("no")) as server:
        judge = (
            "--judge",
            "openai:m",
            "-J",
            f"base_url={server.url}",
            "-J",
            "cache=off",
            "-J",
            "attempts=1",
        )
        asked = ("-m", "recall", "-m", "P/relevance", *judge, "--format", "json")
        done = cli("score", path, *asked)
        gated = cli("score", path, *asked, "--require", "recall>=0", "--undecided", "pass")
        curve = cli("curve", path, "-m", "P/relevance", *judge, "--format", "json")
    assert done.code == gated.code == curve.code == 3
    rows = {row["measure"]: (row["value"], row["n"]) for row in done.answer["summary"]}
    assert rows == {"recall": (0.0, 2), "P/relevance": (None, 0)}  # what was measured is there
    for each, name in ((done, "P"), (gated, "P"), (curve, "P@20")):  # as deep as it was asked
        (line,) = [line for line in each.err.splitlines() if line.startswith("not measured")]
        assert line.startswith(f"not measured: {name}/relevance (samples): no query has a value (")
        assert "failed: 1 of 1 verdicts" in line


@pytest.fixture
def empty(save: Save) -> tuple[Path, Path]:
    """Return a run that retrieved nothing, which has no value in the dialect autorag."""
    return save("run.json", '{"q": [], "r": []}'), save("gold.json", '{"q": ["a"], "r": ["b"]}')


def test_queries_without_a_value(cli: Findwell, empty: tuple[Path, Path], tmp_path: Path) -> None:
    run, gold = empty
    asked = (run, "--gold", gold, "--dialect", "autorag", "-m", "recall")
    done = cli("score", *asked, "--save", tmp_path / "saved")
    assert done.code == 3
    assert "recall" in done.out
    assert "not measured: recall (run): no query has a value (nothing was retrieved)" in done.err
    report = cli("report", tmp_path / "saved", "-o", tmp_path / "page.html")
    assert report.code == 3
    assert "not measured: recall (run)" in report.err
    assert (tmp_path / "page.html").exists()
    both = (run, run.parent / "other.json", *asked[1:])
    both[1].write_text(run.read_text())
    compared = cli("compare", *both, "--format", "json")
    assert compared.code == 3
    assert compared.answer["comparisons"][0]["n"] == 0
    assert "not measured: recall (other against run): no query has a value in both" in compared.err
    power = cli("power", *both, "--difference", "0.1")
    assert power.code == 3
    assert "not measured: recall" in power.err
    assert cli("explain", *asked).code == 0  # it says why there is no value


def test_a_baseline_does_not_move_to_nothing(
    cli: Findwell, empty: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, "recall", dialect="autorag").save(
        tmp_path / "baseline"
    )
    before = (folder / "manifest.json").read_bytes()
    run, gold = empty
    asked = ("score", run, "--gold", gold, "--dialect", "autorag", "-m", "recall")
    done = cli(*asked, "--baseline", folder, "--update-baseline")
    assert done.code == 3
    assert "the baseline stays as it is" in done.err
    assert (folder / "manifest.json").read_bytes() == before


def test_help_says_so(cli: Findwell) -> None:
    assert "measure has no value for any query" in " ".join(cli("--help").out.split())

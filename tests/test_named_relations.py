"""Every surface names the relation with its parameters, wherever it is not plain ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.show.page import page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from findwell.show.web.folders import ResultFolders
from tests.reports.test_page import unpacked
from tests.sample import jsonl

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

RECORDS = [
    {"query": f"q{number}", "retrieved": [f"a b c {number}", "x"], "gold": [gold]}
    for number, gold in enumerate(["a b", "b c 1", "z", "a b c 3"])
]
# what was asked for, and how it is named: a threshold is always said
NAMED = {
    "containment(across=no)": "containment(across=no)",
    "containment": "containment",
    "rouge": "rouge(threshold=0.7)",
    "rouge-sentence(threshold=0.9)": "rouge-sentence(threshold=0.9)",
}
SURFACES = {
    "score": ("table", "json", "jsonl", "csv", "tsv", "markdown", "latex"),
    "compare": ("table", "json", "jsonl", "csv", "tsv", "markdown", "latex"),
    "explain": ("table", "json", "markdown"),
    "curve": ("table", "json", "csv", "markdown"),
    "power": ("table", "json", "markdown"),
}


@pytest.fixture
def path(save: Save) -> Path:
    return save("samples.jsonl", jsonl(RECORDS))


def plain(text: str) -> str:
    """Undo what Markdown and LaTeX escape."""
    return text.replace("\\", "")


@pytest.mark.parametrize(("by", "name"), NAMED.items())
def test_the_command_line(by: str, name: str, path: Path, cli: Findwell) -> None:
    for command, formats in SURFACES.items():
        files = [path, path] if command in ("compare", "power") else [path]
        # one of them in every format; how a relation is named does not depend on the format
        for how in formats if "across" in by else formats[:2]:
            done = cli(command, *files, "--by", by, "-m", "recall", "--format", how)
            assert done.code == 0, done
            assert name in plain(done.out), (command, how, done.out)
            assert ("across=no" in done.out) == ("across=no" in by)


def test_plain_ids_go_without_saying(cli: Findwell, save: Save) -> None:
    run, gold = save("run.json", '{"q": ["a"]}'), save("gold.json", '{"q": ["a"]}')
    for command in ("score", "compare", "explain", "curve", "power"):
        files = [run, run] if command in ("compare", "power") else [run]
        done = cli(command, *files, "--gold", gold, "-m", "recall")
        assert done.code == 0, done
        assert " by ids" not in done.out


def test_gates_in_every_place(
    path: Path, cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, junit = tmp_path / "summary.md", tmp_path / "junit.xml"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    by = ("--by", "rouge(threshold=0.6)", "-m", "recall")
    done = cli("score", path, *by, "--require", "recall>=0.1", "--junit", junit, "--format", "csv")
    assert "recall by rouge(threshold=0.6) is" in done.err
    assert "recall by rouge(threshold=0.6) is" in junit.read_text(encoding="utf-8")
    assert plain(summary.read_text(encoding="utf-8")).count("rouge(threshold=0.6)") == 2
    done = cli("compare", path, path, *by, "--no-regression", "recall", "--junit", junit)
    assert "requirements: pass · by rouge(threshold=0.6)" in done.out
    assert "recall by rouge(threshold=0.6) is" in junit.read_text(encoding="utf-8")


def test_the_report_the_notebook_and_the_list_of_results(tmp_path: Path) -> None:
    result = findwell.evaluate(
        RECORDS, None, ["recall", "P/exact"], by="rouge", reading=findwell.Reading(keep=5)
    )
    folder = result.save(tmp_path / "monday")
    panel = lay_side_by_side([folder])
    assert "by rouge(threshold=0.7), exact" in page(prepare(panel))
    assert "by rouge(threshold=0.7), exact" in result._repr_html_()
    case = unpacked(prepare(panel).data)["cases"][0]
    assert [gold["relation"] for gold in case["gold"]] == ["rouge(threshold=0.7)", "exact"]
    both = findwell.compare({"a": result, "b": result})
    assert "by rouge(threshold=0.7), exact" in both._repr_html_()
    assert (
        "by rouge(threshold=0.7), exact" in ResultFolders([tmp_path]).results()[0].row()["measure"]
    )


def test_the_assertion_of_a_test() -> None:
    from findwell.pytest_plugin import assert_retrieval

    result = findwell.evaluate(RECORDS, None, "recall", by="rouge")
    with pytest.raises(AssertionError, match=r"recall by rouge\(threshold=0.7\) is"):
        assert_retrieval(result, "recall>=0.99", decide="value")


def test_systems_that_were_matched_otherwise_are_not_compared_in_silence() -> None:
    systems = {
        by: findwell.evaluate(RECORDS, None, "recall", by=by)
        for by in ("exact", "rouge", "rouge(threshold=0.8)")
    }
    found = findwell.compare(systems, permutations=100)
    told = {each.run: each.examples for each in found.findings if each.kind == "other-choice"}
    assert told == {
        "rouge": ("relation: rouge(threshold=0.7) instead of exact",),
        "rouge(threshold=0.8)": ("relation: rouge(threshold=0.8) instead of exact",),
    }

"""The examples run as they are, without a warning, and print what they are there to show."""

import os
import re
import runpy
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

import findwell
from findwell.cli import cli as commands

SOURCE = Path(findwell.__file__).parents[1]
EXAMPLES = Path(__file__).parents[1] / "examples"
SHOWS = {
    "choose_k.py": ("minilm: recall >= 0.85 from k = 7", "bm25: recall >= 0.85 at no k"),
    "chunk_sizes.py": (
        "200 characters:  recall@5/spans 0.461  recall@250tokens/spans 0.466",
        "800 characters:  recall@5/spans 0.687  recall@250tokens/spans 0.475",
    ),
    "compare_and_gate.py": ("recall@5: +0.196", "31 questions better, 9 worse", "pass: nDCG@10"),
    "own_judge.py": ("context_precision: 0.889", "by the labels of a person: 0.943"),
    "own_measure.py": ("wasted_reading(rel=3)@5   0.197", "wasted_reading@5          0.327"),
    "rechunking.py": (
        "characters, overlap  0:  recall@1/spans 0.00  recall@3/spans 0.33",
        "characters, overlap 30:  recall@1/spans 0.67  recall@3/spans 1.00",
    ),
    "tune_retriever.py": (
        "chosen: k1=1.6 b=0.25 stem=true",
        "on others: 0.600",
        "+0.011, unclear",
        "662 questions asked instead of 1638",
    ),
    "slices_and_report.py": (
        "paraphrase  bm25    0.312",
        "minilm found nothing for q",
        "from the saved result: 0.791",
    ),
}


def exit_code(path: Path, folder: Path, patch: pytest.MonkeyPatch) -> object:
    """Run a script in a folder, as `python PATH` would, and return what it exits with."""
    patch.chdir(folder)
    patch.setattr(sys, "argv", [str(path)])
    patch.setenv("PYTHONPATH", str(SOURCE))  # for what the script starts
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as stop:
        return stop.code or 0
    return 0


@pytest.mark.parametrize("name", SHOWS)
def test_an_example_shows_what_it_is_about(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(EXAMPLES / name, tmp_path, monkeypatch) == 0
    printed = capsys.readouterr().out
    for line in SHOWS[name]:
        assert line in printed, printed
    if name == "slices_and_report.py":
        page = tmp_path / "findwell-example" / "report.html"
        assert page.read_text("utf-8").startswith("<!doctype html>")
        assert (page.parent / "result" / "manifest.json").is_file()


def test_the_gate_of_the_example_can_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (EXAMPLES / "compare_and_gate.py").read_text("utf-8")
    swapped = re.sub("bm25|minilm", lambda name: {"bm25": "minilm"}.get(name[0], "bm25"), text)
    changed = tmp_path / "changed.py"
    changed.write_text(swapped, "utf-8")
    assert exit_code(changed, tmp_path, monkeypatch) == 1
    assert "fail: nDCG@10>=baseline" in capsys.readouterr().out


def test_the_example_of_the_plugin_is_a_test_that_passes(tmp_path: Path) -> None:
    installed = any(entry.name == "findwell" for entry in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "findwell.pytest_plugin")
    options = ("-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", os.devnull)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *plugin, EXAMPLES / "ci" / "test_retrieval.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_every_example_is_tested_and_described() -> None:
    elsewhere = {"frameworks.py"}  # with the frameworks: tests/retrievers/test_real_frameworks.py
    assert SHOWS.keys() | elsewhere == {path.name for path in EXAMPLES.glob("*.py")}
    described = (EXAMPLES / "README.md").read_text("utf-8")
    files = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.[py]*")}
    files = {name for name in files if name.endswith((".py", ".yml"))}
    assert set(re.findall(r"\]\(([^)]+)\)", described)) == files


@pytest.mark.parametrize("name", ["check", "report", "score"])
def test_the_workflow_of_the_example_uses_options_that_exist(name: str) -> None:
    text = (EXAMPLES / "ci" / "retrieval.yml").read_text("utf-8").partition("jobs:")[2]
    used = re.search(rf"findwell {name} (.*?)(?:\n      -|\Z)", text, re.DOTALL)
    assert used is not None
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    known = {option for each in command.params for option in each.opts}
    assert set(re.findall(r"(?<!\w)--?[a-z-]+(?= )", used[1])) <= known


def test_the_pictures_are_what_the_script_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = EXAMPLES / "maintenance" / "make_images.py"
    runpy.run_path(str(path))["main"](tmp_path)
    capsys.readouterr()
    made = sorted(tmp_path.iterdir())
    assert [each.name for each in made] == ["chunk-sizes.svg", "learn-curve.svg"]
    for each in made:
        shipped = EXAMPLES.parent / "docs" / "images" / each.name
        assert each.read_text("utf-8") == shipped.read_text("utf-8")

"""What workflows call exists, and they try every Python that the project supports."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


@each_workflow
def test_targets_and_files_exist(path: Path) -> None:
    text = path.read_text("utf-8")
    called = re.findall(r"run: make (\w+)", text)
    assert called or path.name == "wheels.yml"  # which builds and needs nothing else
    assert set(called) <= TARGETS
    for file in re.findall(r"(?:tests|\.github)/[\w./-]+\.(?:py|sh)", text):
        assert (ROOT / file).is_file(), file


@each_workflow
def test_actions_are_pinned_and_nothing_but_reading_is_allowed(path: Path) -> None:
    text = path.read_text("utf-8")
    actions = re.findall(r"uses: (\S+)", text)
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in actions)
    assert re.findall(r"^permissions:\n((?:  .*\n)+)", text, re.MULTILINE) == ["  contents: read\n"]
    assert "secrets." not in text
    assert text.count("timeout-minutes:") == text.count("runs-on:")


def test_every_supported_python_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    matrix = re.search(r"python: \[(.*)\]", text)
    assert matrix is not None
    assert re.findall(r"[\d.]+", matrix[1]) == supported
    assert project["requires-python"] == f">={supported[0]}"

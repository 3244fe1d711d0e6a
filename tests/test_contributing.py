"""The recipes of RECIPES.md work: they are applied to a copy of the sources, and tried there.

A recipe is a heading "How to add …". It writes files ("New file `PATH`:"), puts lines into others
("In `PATH`, below `LINE`:", "above") and changes words ("In `PATH`, `OLD` becomes `NEW`."). Its
shell examples must then print what they say, and the tests that it names in backticks must pass.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "RECIPES.md").read_text(encoding="utf-8")
CODE = r"\n\n```\w+\n(.*?)```"
NEW_FILE = re.compile(rf"^New file `([^`]+)`:{CODE}", re.DOTALL | re.MULTILINE)
INSERTED = re.compile(rf"^In `([^`]+)`, (above|below) `([^`]+)`:{CODE}", re.DOTALL | re.MULTILINE)
REPLACED = re.compile(r"^In `([^`]+)`, `([^`]+)` becomes `([^`]+)`\.", re.MULTILINE)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
RECIPES = dict(
    re.findall(r"^## How to add (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
)
NEW_FILES = [name for recipe in RECIPES.values() for name, _ in NEW_FILE.findall(recipe)]
COPIED = ("src", "tests", "examples", "docs", "benchmarks", "pyproject.toml", "conftest.py")


def apply(recipe: str, root: Path) -> list[Path]:
    """Do what a recipe says, and return the files that it wrote."""
    written = []
    for name, text in NEW_FILE.findall(recipe):
        assert not (root / name).exists(), f"{name} is there already"
        (root / name).write_text(text, encoding="utf-8")
        written.append(root / name)
    for name, side, line, text in INSERTED.findall(recipe):
        at = f"{line}\n"
        replace_once(root / name, at, at + text if side == "below" else text + at)
    for name, old, new in REPLACED.findall(recipe):
        replace_once(root / name, old, new)
    return written


def replace_once(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path.name}"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project to which all recipes were applied."""
    root = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, root / name)
    for recipe in RECIPES.values():
        apply(recipe, root)
    return root


def run(command: list[str], root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with the findwell of the copy first in every path."""
    env = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(root / "src"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.docs
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_does_what_it_says(name: str, copy: Path, tmp_path: Path) -> None:
    findwell = tmp_path / "findwell"
    findwell.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m findwell "$@"\n')
    findwell.chmod(0o755)
    blocks = CONSOLE.findall(RECIPES[name])
    assert blocks
    for part in re.split(r"^\$ ", "".join(blocks), flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = run(["bash", "-c", command], copy, tmp_path)
        assert done.returncode == 0, f"$ {command}\n{done.stderr}"
        same = doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS)
        assert same, f"$ {command}\n{done.stdout}{done.stderr}"


def test_what_the_recipes_write_has_the_style_of_the_project(copy: Path) -> None:
    new = [name for name in NEW_FILES if name.endswith(".py")]
    edits = [*INSERTED.findall(PAGE), *REPLACED.findall(PAGE)]
    edited = [name for name, *_ in edits if name.endswith(".py")]
    long_lines = ["--extend-ignore", "E501"]  # a text that grows is for its author to wrap
    for arguments in (
        ["format", *edited],
        ["format", "--check", *new],
        ["check", *new],
        ["check", *long_lines, *edited],
    ):
        done = run([sys.executable, "-m", "ruff", *arguments, "--no-cache"], copy, copy)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_users_do_without_changing_findwell() -> None:
    blocks = "".join(re.findall(r"```pycon\n(.*?)```", PAGE, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, "RECIPES.md", None, 0)
    assert len(test.examples) > 5
    assert doctest.DocTestRunner().run(test).failed == 0


def test_there_is_a_recipe_for_everything_that_is_registered() -> None:
    kinds = " ".join(RECIPES)
    for kind in (
        "measure",
        "input: records",
        "file format",
        "relation",
        "aspect",
        "dialect",
        "chart",
    ):
        assert kind in kinds
    assert "a command" in RECIPES


def test_the_paths_that_are_named_exist() -> None:
    named = set(re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w./-]+)`", PAGE))
    assert {name for name in named.difference(NEW_FILES) if not (ROOT / name).exists()} <= {
        "tests/ROOM"
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_the_tests_that_run_by_themselves_pass(name: str, copy: Path) -> None:
    """What a recipe adds is part of the registries, whose tests must hold for it."""
    asked = [shlex.split(each) for each in re.findall(r"`pytest ([^`]+)`", RECIPES[name])]
    doctests = [[path] for path, text in NEW_FILE.findall(RECIPES[name]) if ">>> " in text]
    for arguments in asked + doctests:
        pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        done = run([*pytest_, *arguments], copy, copy)
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_types_of_the_recipes_hold(copy: Path) -> None:
    sources = [name for name in NEW_FILES if name.endswith(".py")]
    mypy = [sys.executable, "-m", "mypy", "--cache-dir", str(copy / ".mypy_cache")]
    done = run([*mypy, *sources], copy, copy)
    assert done.returncode == 0, done.stdout

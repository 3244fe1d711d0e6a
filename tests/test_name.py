"""The old name is gone: on the package index it belongs to another evaluation tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OLD = "karat"
MAY_TELL = {"CHANGELOG.md", "docs/decisions/0024-the-name.md", "tests/test_name.py"}


def tracked() -> list[str]:
    """Return the files of the project; outside a clone of the repository there is no list."""
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("not a git repository")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_old_name_is_gone() -> None:
    found = [
        name
        for name in tracked()
        if name not in MAY_TELL
        and (OLD in name.lower() or OLD.encode() in (ROOT / name).read_bytes().lower())
    ]
    assert not found


def test_nothing_is_installed_from_the_index_under_our_name() -> None:
    """Nothing is released yet, so such a command would install a stranger's program, or none."""
    names = [name for name in tracked() if name.endswith((".md", ".py", ".yml"))]
    found = [
        name
        for name in names
        for command in ("pip install findwell", "pip install 'findwell", 'pip install "findwell')
        if name != "tests/test_name.py" and command in (ROOT / name).read_text(encoding="utf-8")
    ]
    assert not found


def test_one_place_says_how_extras_are_installed() -> None:
    """A release changes `how_to_install`, and no other line of the sources."""
    sources = (ROOT / "src").rglob("*.py")
    assert [path.name for path in sources if "pip install '.[" in path.read_text("utf-8")] == [
        "errors.py"
    ]

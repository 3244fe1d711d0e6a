"""A third party adds a measure with a decorator, or with an entry point of its package."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

import findwell
from findwell.core import plugins

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation

PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar
import findwell

@dataclass(frozen=True, kw_only=True)
class Depth(findwell.Measure):
    """How deep the list is, in units of `unit`."""
    unit: float = 1.0
    name: ClassVar[str] = "depth"
    aliases: ClassVar = {"how_deep": {}}
    needs_relevant: ClassVar[bool] = False

    def compute(self, relation):
        return relation.depth / self.unit
'''


def test_decorator() -> None:
    @findwell.plugins.register_measure
    class Times(findwell.Measure):
        factor: float = 2.0

        name: ClassVar[str] = "times"

        def compute(self, relation: "Relation") -> "Floats":
            return np.full(relation.n, self.factor)

    measures = ["TIMES@3", "times(factor=3)"]
    result = findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, measures=measures)
    assert result.values == {"times@3": 2.0, "times(factor=3)": 3.0}
    assert {Times(), Times(factor=2.0)} == {Times()}  # a value: frozen, so it has a hash


def test_decorator_of_a_dataclass() -> None:
    @findwell.plugins.register_measure
    @dataclass(frozen=True, kw_only=True)
    class Twice(findwell.Measure):
        name: ClassVar[str] = "twice"

        def compute(self, relation: "Relation") -> "Floats":
            return np.full(relation.n, 2.0)

    assert findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, measures="TWICE@3")["twice@3"] == 2.0


def test_a_name_cannot_be_taken_over() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Other(findwell.Measure):
        name: ClassVar[str] = "AP"

    with pytest.raises(findwell.FindwellError, match="taken"):
        findwell.plugins.register_measure(Other)


def install(folder: Path, target: str, group: str = "measures") -> None:
    info = folder / "thirdparty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[findwell.{group}]\ndepth = {target}\n")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "run.json").write_text('{"q": ["a", "b", "c"]}')
    (folder / "gold.json").write_text('{"q": ["a"]}')
    command = [sys.executable, "-m", "findwell", "score", "run.json", "-g", "gold.json", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_entry_point(tmp_path: Path) -> None:
    (tmp_path / "thirdparty.py").write_text(PLUGIN)
    install(tmp_path, "thirdparty:Depth")
    done = run(tmp_path, "-m", "how-deep(unit=2)", "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert "run,depth(unit=2),1.5" in done.stdout


def test_a_broken_plugin_is_named(tmp_path: Path) -> None:
    install(tmp_path, "thirdparty_that_is_gone:Depth")
    assert run(tmp_path, "-m", "RR").returncode == 0  # nobody asked for what it brings
    done = run(tmp_path, "-m", "depth")
    assert done.returncode == 2
    assert "plugin 'depth'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_long_path_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "thirdparty:Depth")
    monkeypatch.setattr(sys, "path", ["x" * 5000])
    assert not plugins._has_plugins.__wrapped__()
    monkeypatch.setattr(sys, "path", ["x" * 5000, str(tmp_path)])
    assert plugins._has_plugins.__wrapped__()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else"
)
@pytest.mark.parametrize("place", ["closed", "closed/below"])
def test_a_closed_folder_is_no_obstacle(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "closed" / "below").mkdir(parents=True)
        (Path(folder) / "closed").chmod(0)
        monkeypatch.setattr(sys, "path", [str(Path(folder) / place)])
        os.seteuid(65534)
        try:
            assert not plugins._has_plugins.__wrapped__()
        finally:
            os.seteuid(0)


COMMAND = """
import click

@click.command("{name}", short_help="Say how deep it is.")
@click.option("--unit", default="m")
def command(unit):
    click.echo(f"3 {{unit}}")
"""


def findwell_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "findwell", *arguments],
        cwd=folder,
        env={"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_package_brings_a_command(tmp_path: Path) -> None:
    (tmp_path / "thirdparty.py").write_text(COMMAND.format(name="depth"))
    install(tmp_path, "thirdparty:command", "commands")
    assert findwell_command(tmp_path, "depth").stdout == "3 m\n"
    assert "Say how deep it is." in findwell_command(tmp_path, "--help").stdout
    (tmp_path / "findwell.toml").write_text('[depth]\nunit = "km"\n')
    done = findwell_command(tmp_path, "--trust", "depth")
    assert (done.stdout, "config: findwell.toml sets unit" in done.stderr) == ("3 km\n", True)


@pytest.mark.parametrize("target", ["thirdparty:command", "thirdparty_that_is_gone:command"])
def test_a_command_that_cannot_be_added_is_named(tmp_path: Path, target: str) -> None:
    (tmp_path / "thirdparty.py").write_text(COMMAND.format(name="score"))
    install(tmp_path, target, "commands")
    assert findwell_command(tmp_path, "measures").returncode == 0  # it is not asked for
    assert findwell_command(tmp_path, "--help").returncode == 0
    done = findwell_command(tmp_path, "depth")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "command" in done.stderr
    assert "fix: " in done.stderr

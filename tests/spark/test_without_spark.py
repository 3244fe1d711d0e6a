"""What is said where Spark is missing, and what never depends on it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.core.errors import OptionError, how_to_install
from findwell.evaluation.spark.session import require_java

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

lacking = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is not None, reason="pyspark is installed here"
)


def test_findwell_never_imports_pyspark() -> None:
    """Nor does its module for Spark, until something is evaluated."""
    code = (
        "import sys, findwell, findwell.cli.score, findwell.show.result\n"
        "assert 'findwell.spark' not in sys.modules\n"
        "findwell.spark.evaluate, findwell.spark.compare, findwell.spark.gate\n"
        "findwell.spark.SparkResult\n"
        "assert not {'pyspark', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        findwell.spark.evaluat  # type: ignore[attr-defined]  # noqa: B018


@lacking
def test_without_pyspark_the_extra_is_named() -> None:
    with pytest.raises(OptionError, match="needs the package pyspark") as caught:
        findwell.spark.evaluate("run", "gold")
    assert caught.value.fix == how_to_install("spark")


def test_without_java_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OptionError, match="there is none in JAVA_HOME") as caught:
        require_java()
    assert "openjdk-17-jre-headless" in caught.value.fix
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    for said, wanted in (
        ('openjdk version "1.8.0_392"', "needs Java 17, and this is 8"),
        ("nothing", "does not say its version"),
    ):
        program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
        program.chmod(0o755)
        with pytest.raises(OptionError, match=wanted):
            require_java()
    program.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\"' >&2\n")
    require_java()


def test_options_of_one_engine_are_refused_by_the_other(cli: Findwell) -> None:
    for arguments, said in (
        (["--write", "x"], "--write needs --engine spark"),
        (["--master", "yarn"], "--master needs --engine spark"),
        (["--engine", "spark", "--per-query"], "--per-query is not for --engine spark"),
        (["--engine", "spark", "--query-from", "question"], "--query-from is not for --engine"),
        (["--engine", "spark", "--labels", "x"], "--labels is not for --engine spark"),
        (["--engine", "spark", "b.parquet"], "one RUN at a time"),
        (["--column", "query"], "'query' is not NAME=COLUMN"),
    ):
        done = cli("score", "a.parquet", *arguments)
        assert done.code == 2
        assert said in done.err.replace("\n", " ")


def test_a_project_on_spark_can_be_measured_on_this_machine(
    cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "findwell.toml").write_text('engine = "spark"\nmaster = "yarn"\npartitions = 7\n')
    (tmp_path / "both.jsonl").write_text('{"query": "q", "retrieved": ["a"], "gold": ["a"]}\n')
    assert cli("--trust", "score", "both.jsonl", "--engine", "local").code == 0
    done = cli("--trust", "score", "both.jsonl", "--engine", "local", "--partitions", "3")
    assert "--partitions needs --engine spark" in done.err.replace("\n", " ")


@lacking
def test_the_command_says_what_to_install(cli: Findwell) -> None:
    done = cli("score", "a.parquet", "--gold", "b.parquet", "--engine", "spark")
    assert done.code == 2
    assert "pip install '.[spark]'" in done.err

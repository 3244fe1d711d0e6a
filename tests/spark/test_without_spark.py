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
        "findwell.spark.evaluate, findwell.spark.load\n"
        "findwell.spark.SparkResult\n"
        "assert not {'pyspark', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="has no evaluat; did you mean evaluate"):
        findwell.spark.evaluat  # type: ignore[attr-defined]  # noqa: B018


@lacking
def test_without_pyspark_the_extra_is_named() -> None:
    with pytest.raises(OptionError, match="needs the package pyspark") as caught:
        findwell.spark.evaluate("run", "gold")
    assert caught.value.fix == how_to_install("spark")


def test_without_java_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OptionError, match="not found in JAVA_HOME") as caught:
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
        (["-S", "write=x"], "-S write needs --on spark"),
        (["-S", "master=yarn"], "-S master needs --on spark"),
        (
            ["--on", "spark", "--read", "run_format=trec"],
            "--read run_format is not for --on spark",
        ),
        (
            ["--on", "spark", "--read", "query_from=question"],
            "--read query_from is not for --on",
        ),
        (["--on", "spark", "--labels", "x"], "--labels is not for --on spark"),
        (["--on", "spark", "b.parquet"], "one RUN at a time"),
        (["-S", "columns.query"], "this is not NAME=VALUE: -S columns"),
    ):
        done = cli("score", "a.parquet", *arguments)
        assert done.code == 2
        assert said in done.err.replace("\n", " ")


def test_a_project_on_spark_can_be_measured_on_this_machine(
    cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "findwell.toml").write_text(
        'on = "spark"\n[spark]\nmaster = "yarn"\npartitions = 7\n'
    )
    (tmp_path / "both.jsonl").write_text('{"query": "q", "retrieved": ["a"], "gold": ["a"]}\n')
    assert cli("--trust", "score", "both.jsonl", "--on", "local").code == 0
    done = cli("--trust", "score", "both.jsonl", "--on", "local", "-S", "partitions=3")
    assert "-S partitions needs --on spark" in done.err.replace("\n", " ")


@lacking
def test_the_command_says_what_to_install(cli: Findwell) -> None:
    done = cli("score", "a.parquet", "--gold", "b.parquet", "--on", "spark")
    assert done.code == 2
    assert "pip install '.[spark]'" in done.err

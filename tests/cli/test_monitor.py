"""`findwell monitor`: the subcommands as a user types them."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING

import click
import pytest

from findwell.cli.monitor import command as group
from findwell.loop.monitoring.store import TraceStore
from tests.monitoring.sending import Sender, ServerProcess, TraceBodies
from tests.monitoring.test_receiver import as_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save


@pytest.fixture
def traces(save: Save) -> Path:
    """Write what the file exporter of the collector writes: a request a line."""
    bodies = TraceBodies(3)
    return save("traces.jsonl", b"".join(as_json(bodies.body(n)) + b"\n" for n in range(4)))


def test_files_are_ingested_once(traces: Path, tmp_path: Path, cli: Findwell) -> None:
    store = tmp_path / "store"
    first = cli("monitor", "ingest", traces, "--store", store)
    assert (first.code, first.err) == (0, "")
    assert first.out == f"{traces}: 72 spans, 12 new calls\n"
    again = cli("monitor", "ingest", traces, traces.parent, "--store", store)
    assert f"{traces}: 72 spans, 12 known\n" in again.out
    with TraceStore.open(store) as opened:
        assert opened.scan().collect().height == opened.counts().calls == 12
        assert opened.counts().files == 1


def test_rules_of_intake(traces: Path, tmp_path: Path, cli: Findwell) -> None:
    options = ("--store", tmp_path / "store", "--redact", "readers", "--intake", "sample=0.5")
    done = cli("monitor", "ingest", traces, *options)
    assert "left out" in done.out
    with TraceStore.open(tmp_path / "store") as opened:
        found = opened.scan().collect()
    assert 0 < found.height < 12
    assert "readers" not in json.dumps(found.to_dicts(), default=str)
    assert "[redacted]" in json.dumps(found.to_dicts(), default=str)
    cli("monitor", "ingest", traces, "--store", tmp_path / "bare", "--intake", "texts=no")
    with TraceStore.open(tmp_path / "bare") as opened:
        assert opened.scan().collect()["texts"].list.explode().null_count() == 60


def test_retention(traces: Path, tmp_path: Path, cli: Findwell, save: Save) -> None:
    old = {"question": "Q?", "retrieved": ["d1"], "time": "2020-02-02T10:00:00Z"}
    both = (traces, save("old.jsonl", json.dumps(old) + "\n"))
    done = cli("monitor", "ingest", *both, "--store", tmp_path / "store", "--intake", "keep=90d")
    assert "old.jsonl: 1 spans, 1 left out" in done.out
    cli("monitor", "ingest", *both, "--store", tmp_path / "all")
    days = sorted(each.name for each in (tmp_path / "all" / "queries").iterdir())
    assert days[0] == "day=2020-02-02"
    cli("monitor", "ingest", traces, "--store", tmp_path / "all", "--intake", "keep=90d")
    assert len(list((tmp_path / "all" / "queries").iterdir())) == len(days) - 1


def test_marks(traces: Path, tmp_path: Path, cli: Findwell) -> None:
    cli("monitor", "ingest", traces, "--store", tmp_path / "store")
    done = cli(
        "monitor", "mark", "v2.3 chunker", "--store", tmp_path / "store", "--time",
        "2026-11-16T10:30+01:00",
    )  # fmt: skip
    assert done.out == "2026-11-16 09:30:00 UTC  v2.3 chunker\n"
    cli("monitor", "mark", "now", "--store", tmp_path / "store")
    with TraceStore.open(tmp_path / "store") as opened:
        assert sorted(each.name for each in opened.marks()) == ["now", "v2.3 chunker"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingest", "nothing.jsonl", "--store", "made"], "no such file"),
        (["ingest", "bad.txt", "--store", "made"], "there are no spans in it"),
        (["ingest", "bad.txt", "--store", "made", "--redact", "("], "is not a regular expression"),
        (["ingest", "bad.txt", "--store", "made", "--intake", "sample=2"], "the sample is 2"),
        (
            ["ingest", "bad.txt", "--store", "made", "--intake", "keep=soon"],
            "is not a length of time",
        ),
        (["ingest", "bad.txt"], "--store is missing"),
        (["mark", "v2", "--store", "made"], "there is no trace store here"),
        (["serve", "--store", "made", "--host", "0.0.0.0"], "no token is set"),
        (["serve", "--store", "made", "--limit", "request=much"], "(--limit request)"),
        (["serv"], "did you mean serve"),
    ],
)
def test_mistakes_leave_nothing_behind(
    arguments: list[str],
    message: str,
    cli: Findwell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_text("name,age\nanna,7\n")
    before = sorted(tmp_path.iterdir())
    done = cli("monitor", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert sorted(tmp_path.iterdir()) == before


def test_the_store_is_named_when_it_is_not_one(traces: Path, tmp_path: Path, cli: Findwell) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    done = cli("monitor", "ingest", traces, "--store", tmp_path / "mine")
    assert done.code == 2
    assert "the folder holds something else" in done.err


@pytest.mark.slow
def test_a_server_that_is_told_to_stop(tmp_path: Path) -> None:
    """It puts what it acknowledged into files, says where it listened, and ends as it was told."""
    with ServerProcess(
        tmp_path / "store", "--intake", "keep=90d", "--limit", "rate=100000"
    ) as server:
        sender = Sender(server.port)
        sender.send(TraceBodies(5).body(1))
        sender.close()
    assert server.process.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert len(list((tmp_path / "store").rglob("*.parquet"))) == 1


@pytest.mark.parametrize("name", group.commands)
def test_subcommands_explain_themselves(name: str, cli: Findwell) -> None:
    done = cli("monitor", name, "--help-all")
    assert (done.code, done.err) == (0, "")
    assert all(len(line) <= 80 for line in done.out.splitlines())
    found = group.get_command(click.Context(group), name)
    assert found is not None
    shown = " ".join(done.out.split())
    for option in (each for each in found.params if isinstance(each, click.Option)):
        text = option.help or ""
        assert re.match(r"[A-Z].*\.$", text, re.DOTALL), (option.opts, text)
        default = option.to_info_dict()["default"]
        if default not in (None, False, (), []) and not option.is_flag:
            assert f"[default: {default}" in shown, option.opts
    spelled = [text for option in found.params for text in option.opts]
    assert len(spelled) == len(set(spelled))  # else one of two would silently win


def test_the_help_lists_all(cli: Findwell) -> None:
    shown = cli("monitor", "--help").out
    assert all(re.search(rf"^  {name} ", shown, re.MULTILINE) for name in group.commands)

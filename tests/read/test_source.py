"""Where bytes come from: names, gzip, pipes, and how the format is told."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError, OptionError
from findwell.io.read import format as source
from findwell.io.read import known_formats
from findwell.io.read.format import Source
from tests import sample
from tests.sample import delimited, gold_table, jsonl, ranked, run_table, score
from tests.strategies import by_measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Findwell, Save

NAMES = ["run", "run.trec", "run.json", "run.csv.txt", "run.parquet", "run.gz", "run.tsv.gz", ".x"]


def _parquet(table: dict[str, list[Any]]) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(table).write_parquet(out)
    return out.getvalue()


CONTENT: dict[str, tuple[str | bytes, str | bytes]] = {
    "trec": (sample.trec_run(), sample.qrels()),
    "csv": (delimited(run_table()), delimited(gold_table())),
    "tsv": (delimited(run_table(), "\t"), delimited(gold_table(), "\t")),
    "parquet": (_parquet(run_table()), _parquet(gold_table())),
    "jsonl": (
        jsonl({"query": query, "retrieved": docs} for query, docs in ranked().items()),
        jsonl({"query": query, "gold": docs} for query, docs in sample.GOLD.items()),
    ),
    "json": (json.dumps(sample.RUN, indent=1), json.dumps(sample.GOLD, indent=1)),
}


@pytest.mark.parametrize(
    ("name", "content", "packed"),
    [
        pytest.param(
            *(name, content, packed),
            # every name with every content; and the ways to pack them in turn
            marks=() if packed == "plain" or (at + to) % 4 == 0 else pytest.mark.slow,
        )
        for at, name in enumerate(NAMES)
        for to, content in enumerate(CONTENT)
        for packed in ("plain", "gzip", "zstd")
    ],
)
def test_the_content_tells_the_format(name: str, content: str, packed: str, save: Save) -> None:
    pack = {"plain": bytes, "gzip": gzip.compress, "zstd": sample.zstd.compress}[packed]
    run, gold = (
        pack(data.encode() if isinstance(data, str) else data) for data in CONTENT[content]
    )
    assert score(save(name, run), save("gold" + name, gold)) == score(sample.RUN)


WIDE = ["utf-16", "utf-32", "utf-16-be", "utf-32-be"]


@pytest.mark.parametrize("content", sorted(CONTENT.keys() - {"parquet"}))
@pytest.mark.parametrize("encoding", WIDE)
def test_what_windows_calls_unicode(
    encoding: str, content: str, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, gold = (str(text) for text in CONTENT[content])
    mark = "\ufeff" if encoding.endswith("-be") else ""  # else Python writes it
    paths = [
        save("run", (mark + run).encode(encoding)),
        save("gold", (mark + gold).encode(encoding)),
    ]
    assert score(*paths) == score(sample.RUN)
    paths[0].write_bytes(gzip.compress(paths[0].read_bytes()))
    monkeypatch.setattr(source, "BLOCK", 40)
    assert score(*paths) == score(sample.RUN)


def test_lines_of_utf_16_are_counted_as_ever(save: Save) -> None:
    path = save("run", (sample.trec_run() + "q1 Q0 x\n").encode("utf-16"))
    with pytest.raises(InputError, match="line 10: found 3 columns"):
        score(path)


@pytest.mark.parametrize("content", CONTENT)
def test_a_named_format_is_taken_at_its_word(content: str, save: Save) -> None:
    run, gold = CONTENT[content]
    named = {"run_format": content, "gold_format": "qrels" if content == "trec" else content}
    assert score(save("run.txt", run), save("gold.txt", gold), **named) == score(sample.RUN)


@pytest.mark.parametrize(
    ("content", "named"), [(one, other) for one in CONTENT for other in CONTENT if one != other]
)
def test_a_wrong_format_is_an_input_error(content: str, named: str, save: Save) -> None:
    path = save("run.txt", CONTENT[content][0])
    with pytest.raises(InputError, match=r"run\.txt"):
        score(path, run_format=named)


@pytest.mark.parametrize(
    ("option", "name", "near"),
    [("run_format", "treck", "trec"), ("gold_format", "qrel", "qrels"), ("run_format", "PARQ", "")],
)
def test_an_unknown_format_gets_a_suggestion(option: str, name: str, near: str, save: Save) -> None:
    path = save("run.trec", sample.trec_run())
    with pytest.raises(OptionError, match=rf"unknown .* format '{name}'") as stop:
        score(path, save("qrels", sample.qrels()), **{option: name})
    assert near in str(stop.value)


def test_every_format_is_covered_here() -> None:
    others = {"qrels", "subtopic-qrels", "labels", "traces", "xlsx"}  # tested where they are read
    assert set(known_formats()) == {*CONTENT} | others


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/bm25.trec", "bm25"),
        ("bm25.v2.trec.gz", "bm25.v2"),
        ("run", "run"),
        (".hidden", ".hidden"),
        ("x.gz", "x"),
        ("/dev/stdin", "stdin"),
    ],
)
def test_a_run_is_called_as_its_file(path: str, name: str) -> None:
    assert Source(Path(path)).name == name


@pytest.mark.parametrize("role", ["run", "gold"])
@pytest.mark.parametrize("kind", [str, Path])
def test_paths_of_every_type(
    kind: Callable[[Path], Any], role: str, files: tuple[Any, Any]
) -> None:
    run, gold = files
    pair = (kind(run), gold) if role == "run" else (run, kind(gold))
    assert score(*pair) == score(sample.RUN)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "/etc/passwd/x"])
def test_impossible_paths(name: str) -> None:
    with pytest.raises(InputError):
        score(name)


def test_a_named_pipe(files: tuple[Path, Path], tmp_path: Path) -> None:
    run, gold = files
    pipe = tmp_path / "pipe.trec"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(run.read_bytes()))
    writer.start()
    result = findwell.evaluate(pipe, gold, sample.MEASURES)
    writer.join()
    assert result.runs == ["pipe"]
    assert by_measure(result) == score(sample.RUN)


def test_a_pipe_that_is_joined_by_questions(tmp_path: Path, save: Save) -> None:
    records = [{"query": "q1", "question": "Who?", "retrieved": ["a"]}]
    gold = save("labels.csv", "question,chunk,label\nWho?,a,1\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(jsonl(records)))
    writer.start()
    result = findwell.evaluate(pipe, gold, ["RR"])
    writer.join()
    assert (result.runs, result["RR"]) == (["pipe"], 1)


@pytest.mark.parametrize("content", ["trec", "jsonl", "parquet"])
def test_standard_input(content: str, cli: Findwell, save: Save) -> None:
    run, gold = CONTENT[content]
    data = run.encode() if isinstance(run, str) else run
    done = cli("score", "-", "-g", save("gold", gold), "-m", "RR", "--format=jsonl", stdin=data)
    assert done.code == 0, done.err
    row = json.loads(done.out)
    assert (row["run"], row["value"]) == ("stdin", findwell.evaluate(sample.RUN, sample.GOLD)["RR"])


def test_the_gold_may_come_from_standard_input(cli: Findwell, files: tuple[Path, Path]) -> None:
    run, gold = files
    done = cli("score", run, "--gold", "-", "-m", "RR", stdin=gold.read_bytes())
    assert done.code == 0, done.err


def test_standard_input_only_once(cli: Findwell) -> None:
    done = cli("score", "-", "--gold", "-")
    assert done.code == 2
    assert "only once" in done.err


def test_process_substitution(files: tuple[Path, Path], tmp_path: Path) -> None:
    run, gold = files
    script = (
        f"{sys.executable} -m findwell score <(cat {run}) <(gzip -c {run}) --gold <(cat {gold})"
        f" -m RR --format csv"
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert {line.split(",")[2] for line in lines[1:]} == {
        str(findwell.evaluate(sample.RUN, sample.GOLD, ["RR"])["RR"])
    }


def test_messages_about_a_pipe_name_what_the_user_wrote(cli: Findwell, save: Save) -> None:
    gold = save("qrels.txt", sample.qrels())
    done = cli("score", "-", "--gold", gold, stdin=b"q1 Q0 d1 1 1 t\nq1 Q0 d1 1 t\n")
    assert done.code == 2
    assert "/dev/stdin, line 2:" in done.err
    empty = cli("score", "-", "--gold", gold, stdin=b"")
    assert "/dev/stdin: the pipe was empty" in empty.err


def test_nothing_of_a_pipe_stays_behind(save: Save, tmp_path: Path) -> None:
    """The copy of a pipe goes when its process ends."""
    gold = save("qrels.txt", sample.qrels())
    room = tmp_path / "tmp"
    room.mkdir()
    command = [sys.executable, "-m", "findwell", "score", "-", "--gold", str(gold)]
    run, environment = sample.trec_run().encode(), os.environ | {"TMPDIR": str(room)}
    subprocess.run(command, input=run, env=environment, check=True, capture_output=True)
    assert not list(room.iterdir())

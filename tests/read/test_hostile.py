"""Files made by accident or malice: an answer or a clear refusal, soon, in bounded memory."""

from __future__ import annotations

import gzip
import io
import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from tests import sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Findwell, Outcome, Save

MEMORY = 3 << 30  # address space, of which Python with polars needs a good part before it begins
SECONDS = 60
ESCAPES = ["\x1b", "\x07", "\x9b", "\x00", "\u202e", "\r", "\x7f"]


@pytest.fixture
def findwell_confined() -> Callable[..., Outcome]:
    """Call findwell with little time and memory."""
    from tests.conftest import Outcome

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def call(*arguments: object) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "findwell", *map(str, arguments)],
            capture_output=True,
            timeout=SECONDS,
            check=False,
            preexec_fn=limit,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()[-2000:]
        assert b"panicked" not in done.stderr, done.stderr.decode()[-2000:]
        assert len(done.stderr) < 5000
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture
def gold(save: Save) -> Path:
    return save("qrels.txt", sample.qrels())


def _write(path: Path, chunks: Iterator[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(chunks)
    return path


HUGE_LINES = {
    "words": b"q1 Q0 d1 1 1 t ",
    "letters": b"x",
    "after a good line": b"q1 Q0 d1 1 1 t\n",
    "a JSON list": b"[",
    "a JSON record": b'{"query": "q1", "retrieved": ["',
    "a CSV header": b"query,doc,score,",
    "a CSV cell": b"query,doc,score\nq1,",
}


@pytest.mark.slow
@pytest.mark.parametrize("start", HUGE_LINES)
def test_one_line_of_200_megabytes(
    start: str, findwell_confined: Callable[..., Outcome], gold: Path, tmp_path: Path
) -> None:
    head = HUGE_LINES[start]
    chunks = iter([head, *[b"x" * (1 << 20)] * 200])
    done = findwell_confined("score", _write(tmp_path / "run", chunks), "--gold", gold)
    assert done.code == 2
    assert "findwell: " in done.err


@pytest.mark.parametrize(
    "start",
    [
        b"q1 Q0 d1 1 1 t\n",
        *(pytest.param(each, marks=pytest.mark.slow) for each in (b"", b"query,doc,score\n", b"{")),
    ],
)
def test_ten_megabytes_of_nothing(
    start: bytes, findwell_confined: Callable[..., Outcome], gold: Path, save: Save
) -> None:
    done = findwell_confined("score", save("run", start + b"\0" * (10 << 20)), "--gold", gold)
    assert done.code == 2
    assert len(done.err) < 1000


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("run.jsonl", '{"query": "q1", "retrieved": ['),
        *(
            pytest.param(name, opening, marks=pytest.mark.slow)
            for name, opening in (
                ("run.json", "["),
                ("run.json", '{"a":'),
                ("run.json", '{"query": "q1", "retrieved": ['),
                ("run.jsonl", "["),
                ("run.jsonl", '{"a":'),
            )
        ),
    ],
)
def test_json_nested_a_million_times(
    opening: str, name: str, findwell_confined: Callable[..., Outcome], gold: Path, save: Save
) -> None:
    nested = opening + "[" * 1_000_000 + "]" * 1_000_000
    done = findwell_confined("score", save(name, nested), "--gold", gold)
    assert done.code == 2
    assert "not valid JSON" in done.err


def _bomb(head: bytes, unit: bytes, ending: str) -> bytes:
    """Compress a gigabyte to about one megabyte."""
    block = unit * ((1 << 20) // len(unit))
    out = io.BytesIO()
    file: Any = (
        sample.zstd.ZstdFile(out, "wb")
        if ending == "zst"
        else gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9)
    )
    with file:
        file.write(head)
        for _ in range(1000):
            file.write(block)
    return out.getvalue()


BOMBS = {
    "zeros": (b"", b"\0" * 64),
    "line breaks": (b"", b"\n"),
    "lines of a run": (b"", b"q1 Q0 d1 1 1 t\n"),
    "lines of judgements": (b"", b"q1 0 d1 1\n"),
    "zeros behind a good line": (b"q1 Q0 d1 1 1 t\n", b"\0"),
    "rows of a table": (b"query,doc,score\n", b"q1,d1,1\n"),
    "records": (b"", b'{"query": "q1", "retrieved": [], "gold": []}\n'),
    "a JSON list": (b"[", b"[], "),
}


@pytest.mark.slow
@pytest.mark.parametrize("role", ["run", "gold"])
@pytest.mark.parametrize(
    ("kind", "ending"), [*((kind, "gz") for kind in BOMBS), ("lines of a run", "zst")]
)
def test_a_bomb_is_refused(
    kind: str, ending: str, role: str, findwell_confined: Callable[..., Outcome], save: Save
) -> None:
    files = {"run": save("run", sample.trec_run()), "gold": save("gold", sample.qrels())}
    files[role] = save(f"bomb.{ending}", _bomb(*BOMBS[kind], ending))
    done = findwell_confined("score", files["run"], "--gold", files["gold"])
    assert done.code == 2
    assert f"bomb.{ending}" in done.err


def test_a_csv_of_20000_columns(cli: Findwell, gold: Path, save: Save) -> None:
    extra = ",".join(f"c{number}" for number in range(20_000))
    cells = ",".join(["1"] * 20_000)
    before = save("before.csv", f"query,doc,score,{extra}\nq1,d3,1,{cells}\n")
    assert cli("score", before, "--gold", gold, "-m", "RR").code == 0
    behind = save("behind.csv", f"{extra},query,doc,score\n{cells},q1,d3,1\n")
    assert cli("score", behind, "--gold", gold, "-m", "RR").code == 0


def test_a_hundred_thousand_grades(save: Save) -> None:
    count = 100_000
    gold = save("qrels", "".join(f"q1 0 d{n} {n / 7!r}\n" for n in range(1, count + 1)))
    result = findwell.evaluate({"q1": [f"d{count}"]}, gold, ["nDCG@1", "P@1", "nDCG"])
    assert result["nDCG@1"] == 1


def test_ids_of_a_megabyte(cli: Findwell, save: Save) -> None:
    long, other = "x" * (1 << 20), "y" * (1 << 20)
    run = save("run", f"{long} Q0 {long} 1 1 t\n{long} Q0 {other} 2 1 t\n")
    gold = save("gold", f"{long} 0 {long} 1\n")
    formats = ("--read", "run_format=trec", "--read", "gold_format=qrels")
    done = cli("score", run, "--gold", gold, "-m", "RR", "--format", "jsonl", *formats)
    assert json.loads(done.out)["value"] == 0.5
    detected = cli("score", run, "--gold", gold, "-m", "RR", "--format", "jsonl")
    assert detected.out == done.out


@pytest.mark.slow
def test_a_million_blank_lines(cli: Findwell, gold: Path, save: Save) -> None:
    blank = "\n" * 1_000_000
    for name, text in (("none", blank), ("spaces", "  \n" * 1_000_000)):
        done = cli("score", save(name, text), "--gold", gold)
        assert done.code == 2
        assert "only blank lines" in done.err
    behind = save("behind", sample.trec_run() + blank + "q1 Q0 x\n")
    done = cli("score", behind, "--gold", gold)
    assert f"line {1_000_000 + sample.trec_run().count(chr(10)) + 1}:" in done.err
    assert sample.score(save("between", sample.trec_run() + blank)) == sample.score(sample.RUN)


@pytest.mark.parametrize("how", ["table", "markdown"])
@pytest.mark.parametrize("mark", ESCAPES, ids=ascii)
def test_ids_cannot_steer_the_terminal(mark: str, how: str, cli: Findwell, save: Save) -> None:
    name = f"a{mark}]0;owned{mark}[31mb"
    records: list[dict[str, Any]] = [
        {"query": name, "retrieved": [name, name], "gold": [name], "topic": name},
        {"query": f"{name}2", "retrieved": [], "gold": [name, {"doc": "x", "grade": 0}]},
        {"query": f"{name}3", "retrieved": [name], "gold": []},
    ]
    path = save("samples.jsonl", sample.jsonl(records))
    done = cli("score", path, "--per-query", "--slice", "topic", "--format", how)
    assert done.code == 0
    assert mark not in done.out + done.err
    assert "owned" in done.out
    checked = cli("check", path)
    assert "owned" in checked.out
    assert mark not in checked.out + checked.err


@pytest.mark.parametrize("mark", ESCAPES, ids=ascii)
def test_messages_cannot_steer_the_terminal(mark: str, cli: Findwell, save: Save) -> None:
    record = {"query": f"a{mark}b", "retrieved": [{f"x{mark}": 1}], "gold": []}
    twice = [{"query": f"a{mark}b", "retrieved": ["x", "x"], "gold": ["x"]}]
    for path, options in (
        (save("a.jsonl", sample.jsonl([record])), []),
        (save("b.jsonl", sample.jsonl(twice)), ["--dialect", "trec_eval"]),
    ):
        done = cli("score", path, *options)
        assert done.code == 2
        assert mark not in done.err


def test_200_000_documents_for_one_query(save: Save) -> None:
    count = 200_000
    lines = (f"q1 Q0 d{n} {n} {count - n} t\n" for n in range(count))
    run = save("run", "".join(lines))
    result = findwell.evaluate(run, {"q1": [f"d{count - 1}"]}, ["RR", "recall"])
    assert result["RR"] == pytest.approx(1 / count)
    assert result["recall"] == 1


@pytest.mark.slow
def test_a_run_of_many_tiny_queries_scattered(save: Save) -> None:
    lines = [f"q{n % 50_000} Q0 d{n} 1 {n} t\n" for n in range(100_000)]
    gold = {f"q{n}": [f"d{n}"] for n in range(50_000)}
    result = findwell.evaluate(save("run", "".join(lines)), gold, ["RR"])
    assert result["RR"] == 0.5

"""Mistakes of users: a clear message, exit code 2, no traceback, nothing left behind."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from tests import sample
from tests.sample import gold_table, jsonl, run_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Findwell, Outcome, Process, Save

Content = str | bytes
RUN, QRELS = sample.trec_run(), sample.qrels()
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x00"
JUNK = np.random.default_rng(7).bytes(5000)
REFUSED = 2


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("run.trec", RUN)
    return out.getvalue()


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(columns).write_parquet(out)
    return out.getvalue()


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def refuse(cli: Findwell, tmp_path: Path) -> Callable[..., str]:
    """Call findwell so that it fails as it should, and return the message."""

    def call(*arguments: object) -> str:
        before = _names(tmp_path)
        done = cli(*arguments, "--save", tmp_path / "saved", "-o", tmp_path / "out")
        assert _names(tmp_path) == before
        return clear(done)

    return call


def clear(done: Outcome) -> str:
    """Check that a failure is explained in a few lines and return them."""
    assert done.code == REFUSED, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.startswith("findwell: ")
    assert done.err.endswith("\n")
    assert len(done.err.splitlines()) <= 3
    assert len(done.err) < 700
    assert done.err[:-1].replace("\n", "").isprintable()
    return done.err


# what is wrong with a run: its content and what the message must say
BAD_RUNS: dict[str, tuple[Content, list[str]]] = {
    "empty": ("", ["run.txt: the file is empty"]),
    "blank": ("\n \n\t\n", ["run.txt", "only blank lines"]),
    "comments": ("# one\n# two\n", ["run.txt", "comments"]),
    "5 columns": ("q1 Q0 d1 1 1 t\nq1 Q0 d2 2 0.5\n", ["line 2", "5 columns", "instead of 6"]),
    "7 columns": ("q1 Q0 d1 1 1 t\n\nq1 Q0 d 2 2 0.5 t\n", ["line 3", "7 columns"]),
    "a score": ("# c\nq1 Q0 d1 1 1 t\nq1 Q0 d2 2 high t\n", ["line 3", "score 'high'"]),
    "a score with a comma": ("q1 Q0 d1 1 0,5 t\n", ["line 1", "'0,5' is not a number"]),
    "UTF-8": (b"q1 Q0 d1 1 1 t\nq1 Q0 d\xff\xfe 2 0.5 t\n", ["line 2", "not UTF-8"]),
    "latin-1": ("q1 Q0 é 1 1 t\n".encode("latin-1"), ["line 1", "not UTF-8"]),
    "half of UTF-16": ("q1 Q0 d1 1 1 t\n".encode("utf-16")[:-1], ["run.txt", "mark of UTF-16"]),
    "UTF-16 without its mark": ("q1 Q0 d1 1 1 t\n".encode("utf-16-le"), ["run.txt"]),
    "NUL": (b"q1 Q0 d1 1 1 t\n" * 9000 + b"q1 Q0 \0 1 1 t\n", ["line 9001", "NUL"]),
    "junk": (JUNK, ["run.txt", "was not recognised"]),
    "a picture": (PNG * 9, ["run.txt", "was not recognised"]),
    "a zip file": (_zip(), ["run.txt", "was not recognised", "is a zip archive"]),
    "half a zstd file": (b"\x28\xb5\x2f\xfd\x00", ["run.txt", "the zstd data is broken"]),
    "a bzip2 file": (b"BZh91AY&SY", ["was not recognised", "is a bzip2 file"]),
    "judgements": (QRELS, ["line 1", "are run and gold swapped?"]),
    "text": ("Once upon a time\n", ["line 1", "4 columns"]),
    "prose": ("Once upon a time there was a run\n", ["was not recognised"]),
    "broken JSON line": (
        '{"query": "q1", "retrieved": []}\n\n{"query": "q2", "retrieved": [}\n',
        ["line 3", "not valid JSON"],
    ),
    "a line that is a list": (
        '{"query": "q1", "retrieved": []}\n[1]\n',
        ["record 2 is of type list"],
    ),
    "a list of numbers": ("[1, 2]", ["record 1 is of type int"]),
    "nested wrongly": ('{"q1": {"d1": {"d2": 1}}}', ["not a number"]),
    "half a JSON": ('{"q1": {"d1": 1.0}, ', ["not valid JSON"]),
    "no retrieved": ('{"query": "q1", "gold": []}\n', ["no field 'retrieved'"]),
    "an id that is null": ('{"query": null, "retrieved": []}\n', ["'None' is not an id"]),
    "an id that is a float": ('{"query": "q1", "retrieved": [1.5]}\n', ["'1.5' is not an id"]),
    "an id that is true": ('{"query": "q1", "retrieved": [true]}\n', ["'True' is not an id"]),
    "an id that is a list": ('{"query": "q1", "retrieved": [["d1"]]}\n', ["is not an id"]),
    "an empty id": ('{"query": "q1", "retrieved": [""]}\n', ["'' is not an id"]),
    "a blank id": ('{"query": "  ", "retrieved": []}\n', ["'  ' is not an id"]),
    "an empty id in a dict": ('{"q1": {"": 1.0}}', ["'' is not an id"]),
    "a CSV id that is missing": ("query,doc,score\nq1,d1,1\nq1,,2\n", ["line 3", "doc is missing"]),
    "a CSV id that is blank": ('query,doc,score\n"  ",d1,1\n', ["line 2", "query is missing"]),
    "a CSV score": ("query,doc,score\nq1,d1,1\nq1,d2,x\n", ["line 3", "score 'x'"]),
    "a CSV with a long line": ("query,doc,score\nq1,d1,1,4\n", ["line 2", "found 4 columns"]),
    "a CSV without rows": ("query,doc,score\n", ["the table has no rows"]),
    "a CSV that is not UTF-8": (
        b"query,doc,score\nq1,d,2\nq1,d\xff,1\n",
        ["run.txt, line 3: the bytes", "not UTF-8"],
    ),
    "records that are not UTF-8": (
        '{"query": "q1", "retrieved": []}\n{"query": "é", "retrieved": []}\n'.encode("latin-1"),
        ["run.txt, line 2: the bytes", "not UTF-8"],
    ),
    "JSON that is not UTF-8": (
        '{\n"q1": {\n"é": 1}}'.encode("latin-1"),
        ["run.txt, line 3: the bytes", "not UTF-8"],
    ),
    "an empty object": ("{}", ["run.txt", "contains no queries"]),
    "an empty list": ("[]\n", ["run.txt", "contains no queries"]),
    "a truncated parquet": (_parquet(run_table())[:-200], ["run.txt", "cannot be read"]),
    "a parquet header": (b"PAR1", ["run.txt", "cannot be read"]),
    "a parquet without doc": (
        _parquet({"query": ["q1"], "documnt": ["d1"]}),
        ["no column for the doc", "'documnt'"],
    ),
    "a parquet of floats": (_parquet({"query": [1.5], "doc": ["d"]}), ["holds Float64"]),
    "a parquet of lists": (_parquet({"query": ["q1"], "doc": [["d"]]}), ["holds List"]),
    "a truncated gzip": (gzip.compress(RUN.encode())[:-12], ["gzip data is broken"]),
    "a broken gzip": (b"\x1f\x8b" + JUNK, ["gzip data is broken"]),
    "an empty gzip": (gzip.compress(b""), ["run.txt"]),
}
BAD_GOLDS: dict[str, tuple[Content, list[str]]] = {
    "empty": ("", ["gold.txt: the file is empty"]),
    "3 columns": ("q1 0 d1 1\nq1 d1 1\n", ["line 2", "3 columns", "instead of 4"]),
    "a grade": ("q1 0 d1 1\nq1 0 d2 good\n", ["line 2", "grade 'good' is not a number"]),
    "a grade NaN": ("q1 0 d1 1\nq1 0 d2 nan\n", ["'d2'", "'q1'", "not a finite number"]),
    "a grade inf": ("q1 0 d1 inf\n", ["'d1'", "not a finite number"]),
    "a CSV grade NaN": ("query,doc,grade\nq1,d1,nan\n", ["not a finite number"]),
    "a JSON grade": ('{"query": "q1", "gold": {"d1": "x"}}\n', ["grade 'x'"]),
    "a run": (RUN, ["line 1", "are run and gold swapped?"]),
    "nothing relevant": ("q1 0 d1 0\nq2 0 d1 -1\n", ["no relevant item", "highest grade is 0"]),
    "no gold": ('{"query": "q1", "golds": []}\n', ["no field 'gold'", "did you mean gold?"]),
    "an empty group": ('{"query": "q1", "gold": [[]]}\n', ["'q1' an item names no document"]),
    "a query twice": ('{"query": "q1", "gold": ["a"]}\n' * 2, ["'q1' has more than one record"]),
    "junk": (JUNK, ["gold.txt", "was not recognised"]),
    "an empty object": ("{}", ["gold.txt", "contains no queries"]),
    "an empty list": ("[]", ["gold.txt", "contains no queries"]),
    "a truncated gzip": (gzip.compress(QRELS.encode())[:-12], ["gzip data is broken"]),
    "a truncated parquet": (_parquet(gold_table())[:-99], ["gold.txt", "cannot be read"]),
}


@pytest.mark.parametrize("case", BAD_RUNS)
def test_bad_runs(case: str, refuse: Callable[..., str], save: Save) -> None:
    content, words = BAD_RUNS[case]
    message = refuse("score", save("run.txt", content), "--gold", save("gold.txt", QRELS))
    assert all(word in message for word in words), message


@pytest.mark.parametrize("case", BAD_GOLDS)
def test_bad_golds(case: str, refuse: Callable[..., str], save: Save) -> None:
    content, words = BAD_GOLDS[case]
    message = refuse("score", save("run.txt", RUN), "--gold", save("gold.txt", content))
    assert all(word in message for word in words), message


def test_a_csv_without_needed_columns_lists_those_found(
    refuse: Callable[..., str], save: Save
) -> None:
    gold = save("gold.txt", QRELS)
    run = save("run.csv", "querry,document_name,score\nq1,d1,1\n")
    message = refuse("score", run, "--gold", gold)
    assert "no column for the query; found 'querry', 'document_name', 'score'" in message
    assert "did you mean query" in message
    named = refuse("score", save("x.txt", "a,b\n1,2\n"), "--gold", gold, "--read", "run_format=csv")
    assert "found 'a', 'b'" in named


class TestFiles:
    """Paths that cannot be read."""

    @pytest.mark.parametrize("role", ["run", "gold"])
    def test_missing(self, role: str, refuse: Callable[..., str], files: tuple[Path, Path]) -> None:
        run, gold = files
        wrong = (run.with_name("runs.trec"), gold) if role == "run" else (run, f"{gold}t")
        message = refuse("score", wrong[0], "--gold", wrong[1])
        assert "no such file" in message
        assert f"did you mean {'run.trec' if role == 'run' else 'qrels.txt'}" in message

    def test_missing_folder(self, refuse: Callable[..., str], files: tuple[Path, Path]) -> None:
        assert "no such file" in refuse("score", "/no/such/run.trec", "--gold", files[1])
        asked = refuse("score", "app:search", "--gold", files[1])
        assert "ask it first: findwell run app:search -o run.jsonl" in asked

    def test_directory(self, refuse: Callable[..., str], files: tuple[Path, Path]) -> None:
        run, gold = files
        assert "this is a directory" in refuse("score", run.parent, "--gold", gold)
        assert "this is a directory" in refuse("score", run, "--gold", gold.parent)

    def test_a_file_as_folder(self, refuse: Callable[..., str], files: tuple[Path, Path]) -> None:
        run, gold = files
        assert "Not a directory" in refuse("score", run / "x", "--gold", gold)

    def test_a_name_too_long(self, refuse: Callable[..., str], files: tuple[Path, Path]) -> None:
        assert "too long" in refuse("score", "x" * 300, "--gold", files[1])

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_no_permission(self, refuse: Callable[..., str], files: tuple[Path, Path]) -> None:
        run, gold = files
        run.chmod(0)
        assert "Permission denied" in refuse("score", run, "--gold", gold)

    @pytest.mark.parametrize("table", ["missing.csv", "run.trec", "empty.csv", "junk.jsonl"])
    def test_a_table_of_queries(
        self, table: str, refuse: Callable[..., str], files: tuple[Path, Path], save: Save
    ) -> None:
        run, gold = files
        save("empty.csv", "")
        save("junk.jsonl", JUNK)
        refuse("score", run, "--gold", gold, "--queries", run.with_name(table))


SWAPS: dict[str, tuple[str, Content, Content]] = {
    "trec": ("trec", RUN, QRELS),
    "records": (
        "records",
        jsonl([{"query": "q1", "retrieved": ["d1"]}]),
        jsonl([{"query": "q1", "gold": ["d1"]}]),
    ),
}


@pytest.mark.parametrize("case", SWAPS)
def test_run_and_gold_swapped(case: str, refuse: Callable[..., str], save: Save) -> None:
    _, run, gold = SWAPS[case]
    message = refuse("score", save("gold", gold), "--gold", save("run", run))
    assert "swapped" in message or "no field 'retrieved'" in message


WRONG_OPTIONS: dict[str, tuple[list[str], list[str]]] = {
    "measure": (["-m", "nDGC@10"], ["unknown measure", "did you mean nDCG"]),
    "no measure": (["-m", ""], ["not the name of a measure"]),
    "cutoff 0": (["-m", "P@0"], ["P"]),
    "cutoff -1": (["-m", "P@-1"], ["P"]),
    "cutoff 5.5": (["-m", "nDCG@5.5"], ["5.5", "whole number"]),
    "cutoff x": (["-m", "P@x"], ["x"]),
    "cutoff where none is": (["-m", "bpref@5"], ["takes no cutoff"]),
    "parameter": (["-m", "nDCG(gian=exp)@10"], ["no parameter 'gian'", "did you mean gain"]),
    "parameter value": (["-m", "nDCG(gain=exponential)@10"], ["exponential"]),
    "parameter form": (["-m", "nDCG(exp)@10"], ["'exp'", "name=value"]),
    "relation": (["-m", "recall@5/roug"], ["roug"]),
    "dialect": (["--dialect", "trec"], ["unknown dialect 'trec'", "did you mean trec_eval"]),
    "ids": (["--read", "ids=uid"], ["unknown id normaliser", "did you mean uuid"]),
    "ids without a group": (["--read", "ids=regex:abc"], ["has no group"]),
    "level 95": (["--level", "95"], ["--level: 95 must be at least 0 and below 1"]),
    "an option of findwell": (["--config", "a"], ["before the command: findwell --config … score"]),
    "no setting": (["--read", "id=x"], ["unknown setting 'id' of --read", "fix: did you mean ids"]),
    "ids, broken": (["--read", "ids=regex:(("], ["not a regular expression"]),
    "level": (["--rel", "9"], ["no relevant item", "the highest grade is 3"]),
    "run format": (["--read", "run_format=trek"], ["unknown run format", "did you mean trec"]),
    "gold format": (["--read", "gold_format=qrel"], ["unknown gold format", "did you mean qrels"]),
    "run format of golds": (["--read", "run_format=qrels"], ["unknown run format 'qrels'"]),
    "parquet on text": (["--read", "run_format=parquet"], ["run.trec", "cannot be read"]),
    "json on text": (["--read", "run_format=json"], ["run.trec", "not valid JSON"]),
    "jsonl on text": (["--read", "run_format=jsonl"], ["run.trec, line 1", "not valid JSON"]),
    "csv on text": (["--read", "run_format=csv"], ["run.trec", "no column for the query"]),
    "tsv on text": (["--read", "gold_format=tsv"], ["qrels.txt", "no column for the query"]),
    "slice": (["--slice", "topic"], ["unknown column of the queries 'topic'", "--queries FILE"]),
    "cluster": (
        ["--read", "cluster=topic"],
        ["unknown column of the queries 'topic'", "--queries FILE"],
    ),
}


def test_what_click_refuses_is_said_in_our_words(cli: Findwell) -> None:
    said = {
        ("score", "--measure"): "--measure needs a value\n  fix: `findwell score --help`",
        ("measures", "a", "b"): "too many arguments: b\n  fix: `findwell measures --help`",
        ("explain", "a", "--worst", "0"): "--worst: 0 must be at least 1",
        ("--help-all",): "unknown option --help-all\n  fix: `findwell --help` lists the options",
    }
    for words, message in said.items():
        done = cli(*words)
        assert (done.code, message in done.err) == (2, True), done.err


@pytest.mark.parametrize("case", WRONG_OPTIONS)
def test_wrong_options(case: str, refuse: Callable[..., str], files: tuple[Path, Path]) -> None:
    options, words = WRONG_OPTIONS[case]
    message = refuse("score", files[0], "--gold", files[1], *options)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("ours", "theirs", "guess"),
    [
        ("Q1", "q1", "case"),
        ("001", "1", "zeros"),
        ("1.0", "1", "1.0"),
        ("q1", "1", "before the number"),
        ("apple", "pear", "the same queries"),
    ],
)
def test_no_query_in_common(
    ours: str, theirs: str, guess: str, refuse: Callable[..., str], save: Save
) -> None:
    run, gold = save("r", f"{ours} Q0 d1 1 1 t\n"), save("g", f"{theirs} 0 d1 1\n")
    message = refuse("score", run, "--gold", gold)
    assert f"the run has {ours!r}, the gold has {theirs!r}" in message
    assert guess in message


RUNS_ALONE = {
    "trec": (RUN, "does not hold both"),
    "jsonl": ('{"query": "q1", "retrieved": ["d1"]}\n', "no field 'gold'"),
    "json": ('{"q1": {"d1": 1}}', "one list of records is needed"),
    "csv": ("query,doc,score\nq1,d1,1\n", "no field 'retrieved' and no field 'gold'"),
}


@pytest.mark.parametrize("case", RUNS_ALONE)
@pytest.mark.parametrize("named", [False, True])
def test_a_run_alone_asks_for_the_gold(
    case: str, named: bool, refuse: Callable[..., str], save: Save
) -> None:
    content, words = RUNS_ALONE[case]
    format_ = ["--read", f"run_format={case}"] if named else []
    message = refuse("score", save("run", content), *format_)
    assert words in message
    assert "--gold FILE" in message
    assert "--gold FILE" in refuse("score", *([save("run", content)] * 2), *format_)


class TestSaving:
    """Results that cannot be written."""

    @pytest.mark.parametrize("target", ["taken", "taken/file.txt", "run.trec"])
    def test_over_something_else(
        self, target: str, cli: Findwell, files: tuple[Path, Path], save: Save
    ) -> None:
        run, gold = files
        mine = save("taken/file.txt", "mine")
        before = _names(run.parent)
        done = cli("score", run, "--gold", gold, "--save", run.parent / target)
        assert "not a findwell result" in clear(done)
        assert _names(run.parent) == before
        assert mine.read_text() == "mine"

    @pytest.mark.parametrize("option", ["--save", "-o"])
    def test_below_a_file(self, option: str, cli: Findwell, files: tuple[Path, Path]) -> None:
        run, gold = files
        before = _names(run.parent)
        clear(cli("score", run, "--gold", gold, option, run / "out"))
        assert _names(run.parent) == before

    def test_output_into_a_folder(self, cli: Findwell, files: tuple[Path, Path]) -> None:
        run, gold = files
        before = _names(run.parent)
        clear(cli("score", run, "--gold", gold, "-o", run.parent))
        clear(cli("score", run, "--gold", gold, "-o", run.parent / "none" / "out"))
        assert _names(run.parent) == before

    @pytest.mark.parametrize(
        ("command", "unbuffered"), [("score", ""), ("score", "1"), ("check", "1"), ("--help", "")]
    )
    def test_standard_output_is_full(
        self, command: str, unbuffered: str, files: tuple[Path, Path]
    ) -> None:
        run, gold = map(str, files)
        inputs = [run, "--gold", gold] if command in ("score", "check") else []
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "findwell", command, *inputs],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            )
        assert done.returncode == REFUSED
        assert done.stderr == "findwell: the output could not be written: No space left on device\n"

    @pytest.mark.parametrize(
        ("option", "room"),
        [("--save", 0), ("--save", 300), ("--save", 1500), ("-o", 0), ("-o", 99)],
    )
    def test_the_disk_is_full(
        self, option: str, room: int, cli: Findwell, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        run, gold = files
        before = _names(tmp_path)
        target = tmp_path / "new" / "out" if option == "--save" else tmp_path / "out"
        arguments = ("score", run, "--gold", gold, option, target, "--format", "jsonl")
        with _room_on_the_disk(room):
            message = clear(cli(*arguments))
        assert "could not be" in message
        assert "too large" in message
        assert _names(tmp_path) == before

    def test_an_old_result_survives_a_full_disk(
        self, cli: Findwell, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        run, gold = files
        folder = tmp_path / "out"
        assert cli("score", run, "--gold", gold, "--save", folder).code == 0
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        with _room_on_the_disk(500):
            clear(cli("score", run, "--gold", gold, "--save", folder))
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert _names(tmp_path)[:1] == ["out"]


@contextlib.contextmanager
def _room_on_the_disk(size: int) -> Iterator[None]:
    """Let no file become larger, as if the disk were full; Python ignores the signal."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("how", ["table", "csv"])
def test_a_terminal_of_few_letters(how: str, process: Process, save: Save) -> None:
    run, gold = save("文.trec", "文 Q0 d1 1 1 t\n"), save("g", "文 0 d1 1\nф 0 d1 1\n")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = process("score", run, "--gold", gold, "--per-query", "--format", how, env=environment)
    assert done.code == 0
    assert "\\u6587" in done.out
    assert "Traceback" not in done.err


def test_what_is_compared_is_not_left_to_a_guess(cli: Findwell, save: Save) -> None:
    """Texts or places on both sides, and nobody said by what to match."""
    place = {"doc": "manual.md", "start": 0, "end": 9}
    text = {"doc": "manual.md", "text": "Four hours."}
    path = save("places.jsonl", jsonl([{"query": "q", "retrieved": [place], "gold": [place]}]))
    assert "by spans" in cli("score", path, "-m", "recall").out
    path = save("texts.jsonl", jsonl([{"query": "q", "retrieved": [text], "gold": [text]}]))
    done = cli("score", path, "-m", "recall")
    assert done.code == 0
    assert "has texts in run and gold, but only document ids are compared" in done.err
    assert not cli("score", path, "-m", "recall", "--by", "ids").err
    rows = pl.DataFrame([{"query": "q"} | text])
    found = findwell.io.check(rows, rows)
    assert [each.fix for each in found if each.kind == "only-ids"] == [
        "--by containment, rouge or exact compares texts; --by ids says that ids are meant"
    ]
    assert not findwell.io.check(
        [{"query": "q", "retrieved": ["manual.md"]}], [{"query": "q", "gold": [text]}]
    )


def test_gold_that_is_quotes_says_what_to_do(cli: Findwell, save: Save) -> None:
    record = {"query": "q", "retrieved": ["manual.md"], "gold": [{"quote": "Four hours."}]}
    done = cli("score", save("quotes.jsonl", jsonl([record])), "-m", "recall")
    assert done.code == 2
    assert "an item is a text, and names no document" in done.err
    assert "--by containment, rouge or exact" in done.err

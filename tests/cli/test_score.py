"""`findwell score`: what it prints, in which shape, and where."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.cli import COMMANDS
from findwell.io.native import kernel
from tests import sample
from tests.sample import jsonl, ranked
from tests.strategies import by_measure
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

SUMMARY = ["run", "measure", "value", "low", "high", "n", "undefined", "failed"]
PER_QUERY = ["run", "query", "measure", "value", "reason"]
FORMATS = ["table", "json", "jsonl", "csv", "tsv", "markdown"]
ESCAPE = "\x1b"

Files = tuple[Path, Path]


def _expected(*measures: str) -> findwell.Result:
    return findwell.evaluate(sample.RUN, sample.GOLD, list(measures))


def test_the_contract_of_json(cli: Findwell, files: Files) -> None:
    run, gold = files
    done = cli(
        *("score", run, "--gold", gold, "-m", "nDCG@10", "-m", "recall@100"),
        *("--per-query", "--format", "json"),
    )
    assert (done.code, done.err) == (0, "")
    shown = done.answer
    assert list(shown)[:2] == ["summary", "per_query"]
    assert [list(row) for row in shown["summary"]] == [SUMMARY] * 2
    assert [list(row) for row in shown["per_query"]] == [PER_QUERY] * 6
    expected = _expected("nDCG@10", "recall@100")
    assert shown["summary"] == expected.summary.to_dicts()
    assert [row["measure"] for row in shown["summary"]] == ["nDCG@10", "recall@100"]
    assert {(row["query"], row["measure"]): row["value"] for row in shown["per_query"]} == {
        (query, measure): value
        for measure, values in by_measure(expected).items()
        for query, value in values.items()
    }
    assert [found["kind"] for found in shown["findings"]] == ["tied-scores"]


def test_per_query_rows_only_when_asked_for(cli: Findwell, files: Files) -> None:
    run, gold = files
    shown = cli("score", run, "--gold", gold, "--format", "json").answer
    assert "per_query" not in shown


def test_findings_in_json(cli: Findwell, save: Save) -> None:
    run = save("run.trec", "q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\nextra Q0 a 1 1 t\n")
    gold = save("qrels.txt", "q1 0 a 1\nq2 0 a 1\nq3 0 a 0\n")
    done = cli("score", run, "--gold", gold, "-m", "recall", "--per-query", "--format=json")
    assert done.err == ""  # the findings are in the data
    shown = done.answer
    assert {row["kind"]: row["count"] for row in shown["findings"]} == {
        "duplicate-document": 1,
        "extra-query": 1,
        "missing-query": 2,
        "no-relevant-item": 1,
    }
    for row in shown["findings"]:
        assert list(row)[:4] == ["kind", "count", "examples", "message"]
        assert row["examples"]
    undefined = [row for row in shown["per_query"] if row["value"] is None]
    assert [(row["query"], row["reason"]) for row in undefined] == [("q3", "no relevant item")]
    assert all(row["reason"] is None for row in shown["per_query"] if row not in undefined)
    (summary,) = shown["summary"]
    assert (summary["value"], summary["n"], summary["undefined"]) == (0.5, 2, 1)


def test_findings_on_standard_error(cli: Findwell, save: Save) -> None:
    run = save("run.trec", "q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n")
    done = cli("score", run, "--gold", save("qrels.txt", "q1 0 a 1\n"), "--format=csv")
    assert done.err.startswith("note: run: 1 document was retrieved again")
    assert "again" not in done.out


def _parse(how: str, text: str) -> list[dict[str, Any]]:
    if how == "json":
        rows: list[dict[str, Any]] = json.loads(text)["result"]["summary"]
        return rows
    if how == "jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if how in ("csv", "tsv"):
        return list(csv.DictReader(io.StringIO(text), delimiter="," if how == "csv" else "\t"))
    if how == "markdown":
        cells = [
            [cell.strip(" *") for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if line.startswith("|")
        ]
    else:  # cells are two spaces apart
        lines = [line.strip() for line in text.splitlines() if "@" in line or "value" in line]
        cells = [re.split(r"\s{2,}", line) for line in lines]
    header, *body = [row for row in cells if not re.fullmatch(r"[-: ]+", row[0])]
    return [dict(zip(header, row, strict=True)) for row in body]


@pytest.mark.parametrize("how", FORMATS)
def test_every_format_parses_back(how: str, cli: Findwell, files: Files) -> None:
    run, gold = files
    measures = ["nDCG@10", "P@1", "recall@2"]
    done = cli("score", run, "-g", gold, *(f"-m{name}" for name in measures), "--format", how)
    assert done.code == 0
    assert [line[:5] for line in done.err.splitlines()] == (
        [] if how == "json" else ["note:", "  fix"]
    )
    assert done.out.endswith("\n")
    rows = _parse(how, done.out)
    assert [row["measure"].replace("\\", "") for row in rows] == measures
    expected = _expected(*measures)
    exact = how not in ("table", "markdown")
    for row in rows:
        value = expected[row["measure"]]
        assert float(row["value"]) == (value if exact else pytest.approx(value, abs=5e-4))
        assert int(row["n"]) == 3


@pytest.mark.parametrize("how", FORMATS)
def test_output_goes_to_a_file(how: str, cli: Findwell, files: Files, tmp_path: Path) -> None:
    run, gold = files
    target = tmp_path / "out.txt"
    target.write_text("old")
    printed = cli("score", run, "--gold", gold, "--format", how, "-o", "-")
    done = cli("score", run, "--gold", gold, "--format", how, "-o", target)
    assert done.code == 0
    if how == "json":  # it says where everything is
        assert json.loads(done.out)["files"] == [str(target)]
    else:
        assert done.out == ""
    assert target.read_text() == printed.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.txt", "qrels.txt", "run.trec"]


@pytest.mark.parametrize("target", ["/dev/null", "-"])
def test_devices_are_written_to_and_not_replaced(target: str, cli: Findwell, files: Files) -> None:
    run, gold = files
    done = cli("score", run, "--gold", gold, "-o", target)
    assert done.code == 0
    assert bool(done.out) == (target == "-")
    assert not Path("/dev/null").is_file()


def test_several_runs(cli: Findwell, save: Save, files: Files) -> None:
    run, gold = files
    other = save(
        "other.jsonl", jsonl({"query": q, "retrieved": d[::-1]} for q, d in ranked().items())
    )
    shown = cli("score", run, other, "--gold", gold, "-m", "RR", "--format=json").answer
    assert [row["run"] for row in shown["summary"]] == ["run", "other"]
    assert shown["summary"][0]["value"] != shown["summary"][1]["value"]
    table = cli("score", run, other, "--gold", gold, "-m", "RR", "-m", "P@1").out
    assert re.search(r"^ *run +RR +P@1$", table, re.MULTILINE)


def test_the_same_name_twice_is_numbered(cli: Findwell, files: Files) -> None:
    run, gold = files
    shown = cli("score", run, run, "--gold", gold, "-m", "RR", "--format=json").answer
    assert [row["run"] for row in shown["summary"]] == ["run", "run-2"]


def test_samples_need_no_gold(cli: Findwell, save: Save) -> None:
    records = [
        {"query": query, "retrieved": docs, "gold": sample.GOLD[query], "topic": query[:2]}
        for query, docs in ranked().items()
    ]
    path = save("samples.jsonl", jsonl(records))
    shown = cli("score", path, "-m", "AP", "--format=json").answer
    assert shown["summary"][0]["value"] == _expected("AP")["AP"]


def test_rel_moves_the_level(cli: Findwell, files: Files) -> None:
    run, gold = files
    shown = cli("score", run, "-g", gold, "-m", "AP", "--rel=2", "--format=json").answer
    expected = findwell.evaluate(sample.RUN, sample.GOLD, ["AP"], rel=2)
    assert shown["summary"][0]["value"] == expected.summary["value"][0]
    assert shown["summary"][0]["undefined"] == 1


def test_slices(cli: Findwell, save: Save) -> None:
    run = save("run.trec", sample.trec_run())
    gold = save(
        "gold.jsonl",
        jsonl(
            {"query": query, "gold": docs, "kind": "long" if query == "q1" else "short"}
            for query, docs in sample.GOLD.items()
        ),
    )
    call = ("score", run, "--gold", gold, "-m", "P@1", "--slice", "kind", "--format")
    shown = cli(*call, "json").answer
    assert [(row["column"], row["slice"], row["n"]) for row in shown["slices"]] == [
        ("kind", "long", 1),
        ("kind", "short", 2),
    ]
    rows = list(csv.DictReader(io.StringIO(cli(*call, "csv").out)))
    assert [row["slice"] for row in rows] == ["long", "short"]
    assert "by kind" in cli(*call, "table").out
    unknown = cli("score", run, "--gold", gold, "--slice", "kid")
    assert unknown.code == 2
    assert "did you mean kind" in unknown.err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", "query,topic\nq1,x\nq2,y\nq10,y\n"),
        ("q.jsonl", '{"query":"q1","topic":"x"}\n{"query":"q2","topic":"y"}\n'),
        ("q.tsv", "query\ttopic\nq1\tx\nq2\ty\n"),
    ],
)
def test_a_table_about_the_queries(
    name: str, content: str, cli: Findwell, files: Files, save: Save
) -> None:
    run, gold = files
    call = ("score", run, "--gold", gold, "-m", "RR", "--queries", save(name, content))
    done = cli(*call, "--slice", "topic", "--format=json")
    assert done.code == 0, done.err
    assert {"x", "y"} <= {row["slice"] for row in done.answer["slices"]}


def test_queries_in_a_table_keep_their_zeros(cli: Findwell, save: Save) -> None:
    run, gold = save("r", "007 Q0 a 1 1 t\n"), save("g", "007 0 a 1\n")
    table = save("q.csv", "query,topic\n007,x\n")
    done = cli("score", run, "-g", gold, "--queries", table, "--slice=topic", "--format=csv")
    assert done.code == 0, done.err
    assert ",x," in done.out


def test_bounds(cli: Findwell, save: Save) -> None:
    run, gold = save("r", "q Q0 a 1 2 t\nq Q0 b 2 1 t\n"), save("g", "q 0 a 1\n")
    call = ("score", run, "--gold", gold, "-m", "P@2", "--bounds")
    (row,) = cli(*call, "--format=json").answer["summary"]
    assert (row["value"], row["lower"], row["upper"]) == (0.5, 0.5, 1.0)
    assert "upper" in cli(*call).out


def test_per_query_in_every_format(cli: Findwell, files: Files) -> None:
    run, gold = files
    call = ("score", run, "--gold", gold, "-m", "RR", "--per-query", "--format")
    rows = [json.loads(line) for line in cli(*call, "jsonl").out.splitlines()]
    assert [list(row) for row in rows] == [[*PER_QUERY, "relation"]] * 3
    assert next(csv.DictReader(io.StringIO(cli(*call, "csv").out)))["query"] == "q1"
    for how in ("table", "markdown"):
        assert all(query in cli(*call, how).out for query in sample.GOLD)


@pytest.mark.parametrize("missing", ["zero", "skip", "error"])
def test_missing(missing: str, cli: Findwell, save: Save) -> None:
    run, gold = save("r", "q Q0 a 1 2 t\n"), save("g", "q 0 a 1\np 0 a 1\n")
    done = cli(
        "score", run, "-g", gold, "-m", "RR", "--read", f"missing={missing}", "--format=jsonl"
    )
    if missing == "error":
        assert (done.code, done.out) == (2, "")
    else:
        assert json.loads(done.out)["value"] == {"zero": 0.5, "skip": 1.0}[missing]


@pytest.mark.parametrize("dialect", ["findwell", "trec_eval", "trec_eval-9"])
def test_dialect(dialect: str, cli: Findwell, files: Files) -> None:
    run, gold = files
    done = cli("score", run, "-g", gold, "-m", "AP", "--dialect", dialect, "--format=json")
    assert done.answer["dialect"] == dialect


def test_ids(cli: Findwell, save: Save) -> None:
    run, gold = save("r", "q Q0 a#1 1 2 t\n"), save("g", "q 0 a 1\n")
    done = cli(
        "score", run, "-g", gold, "-m", "RR", "--read", "ids=chunk-to-doc:#", "--format=jsonl"
    )
    assert json.loads(done.out)["value"] == 1


class TestSave:
    """`--save`, and what `findwell.load` makes of it."""

    def test_load_and_score_again(self, cli: Findwell, files: Files, tmp_path: Path) -> None:
        run, gold = files
        folder = tmp_path / "deep" / "result"
        done = cli("score", run, "--gold", gold, "-m", "P@1", "--save", folder)
        assert done.code == 0
        assert f"saved: {folder}" in done.err
        again = findwell.load(folder)
        assert again["P@1"] == _expected("P@1")["P@1"]
        rescored = again.score(sample.MEASURES)
        assert by_measure(rescored) == sample.score(sample.RUN)
        names = {path.name for path in folder.iterdir()}
        assert {"manifest.json", "summary.json", "per_query.parquet", "relation.parquet"} <= names
        manifest = json.loads((folder / "manifest.json").read_text())
        assert len(manifest["inputs"]) == 2
        assert all(len(entry["sha256"]) == 64 for entry in manifest["inputs"])

    def test_groups_empty_lists_and_slices_survive(self, cli: Findwell, save: Save) -> None:
        records: list[dict[str, Any]] = [
            {"query": "a", "retrieved": ["x", "y"], "gold": [["x", "z"], "y"], "topic": "s"},
            {"query": "b", "retrieved": [], "gold": ["y"], "topic": None},
            {"query": "c", "retrieved": ["x"], "gold": []},
        ]
        path = save("samples.jsonl", jsonl(records))
        folder = path.parent / "out"
        assert cli("score", path, "--save", folder, "--bounds").code == 0
        before = findwell.evaluate(path, measures=sample.MEASURES, bounds=True)
        after = findwell.load(folder).score(sample.MEASURES)
        assert by_measure(after) == by_measure(before)
        assert after.summary.equals(before.summary)
        assert after.by("topic").equals(before.by("topic"))
        assert after.findings == before.findings

    def test_saving_again_replaces(self, cli: Findwell, files: Files, tmp_path: Path) -> None:
        run, gold = files
        folder = tmp_path / "out"
        for measure in ("P@1", "RR"):
            assert cli("score", run, "--gold", gold, "-m", measure, "--save", folder).code == 0
        assert [str(measure) for measure in findwell.load(folder).measures] == ["RR"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "qrels.txt", "run.trec"]

    def test_an_empty_folder_will_do(self, cli: Findwell, files: Files, tmp_path: Path) -> None:
        run, gold = files
        (tmp_path / "out").mkdir()
        assert cli("score", run, "--gold", gold, "--save", tmp_path / "out").code == 0
        findwell.load(tmp_path / "out")

    @pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"layout": 99}', "null", "\x00"])
    def test_a_broken_folder_is_refused(self, manifest: str, files: Files, tmp_path: Path) -> None:
        folder = findwell.evaluate(*files).save(tmp_path / "out")
        (folder / "manifest.json").write_text(manifest)
        with pytest.raises(findwell.FindwellError, match=r"not a complete findwell result|layout"):
            findwell.load(folder)

    @pytest.mark.parametrize("name", ["manifest.json", "relation.parquet", "queries.parquet"])
    def test_an_incomplete_folder_is_refused(self, name: str, files: Files, tmp_path: Path) -> None:
        folder = findwell.evaluate(*files).save(tmp_path / "out")
        (folder / name).unlink()
        with pytest.raises(findwell.FindwellError, match="not a complete findwell result"):
            findwell.load(folder)


class TestProcess:
    """What only shows in a process of its own."""

    def test_data_on_stdout_the_rest_on_stderr(self, cli: Findwell, save: Save) -> None:
        run = save("run.trec", "q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n")
        gold = save("qrels.txt", "q1 0 a 1\n")
        done = cli("score", run, "--gold", gold, "--format=jsonl", "--save", run.parent / "s")
        assert done.code == 0
        assert all(json.loads(line) for line in done.out.splitlines())
        assert [line.partition(":")[0] for line in done.err.splitlines()] == [
            *("note", "  fix", "saved"),
        ]

    @pytest.mark.parametrize(
        ("variables", "coloured"),
        [
            ({}, True),
            ({"NO_COLOR": "1"}, False),
            ({"NO_COLOR": ""}, True),
            ({"TERM": "dumb"}, False),
        ],
        ids=repr,
    )
    def test_colour_only_on_a_terminal_that_wants_it(
        self, variables: dict[str, str], coloured: bool, save: Save
    ) -> None:
        gold = save("qrels.txt", "".join(f"q{at} 0 d 1\n" for at in range(40)))
        hit, miss = (
            "".join(f"q{at} Q0 {doc} 1 1 t\n" for at in range(1, 40)) for doc in ("d", "x")
        )
        first = "q0 Q0 d 1 1 t\n"
        run, other = save("good.trec", first + hit), save("other.trec", first + miss)
        shown, code = on_terminal(["score", run, other, "-g", gold], 80, **variables)
        assert (code, "nDCG@10" in shown) == (0, True)
        assert (f"{ESCAPE}[1;32m" in shown) == coloured

    def test_no_colour_in_a_pipe(self, cli: Findwell, files: Files) -> None:
        run, gold = files
        assert ESCAPE not in cli("score", run, run, "--gold", gold).out

    def test_a_reader_that_stops_early(self, files: Files) -> None:
        run, gold = files
        script = (
            f"{sys.executable} -m findwell score {run} --gold {gold} --per-query --format jsonl"
            f" | head -1; echo ${{PIPESTATUS[0]}}"
        )
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stderr.startswith("note: ") or not done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout.splitlines()[1] in ("0", "141")

    def test_a_reader_that_is_gone(self, save: Save) -> None:
        many = "".join(f"q{number} Q0 d1 1 1 t\n" for number in range(20_000))
        judged = "".join(f"q{number} 0 d1 1\n" for number in range(20_000))
        run, gold = save("run", many), save("gold", judged)
        script = (
            f"{sys.executable} -m findwell score {run} --gold {gold} --per-query --format jsonl"
            f" | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
        )
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True
        )
        assert (done.stderr, done.stdout) == ("", "141\n")

    def test_closed_standard_output(self, files: Files) -> None:
        run, gold = files
        script = f"{sys.executable} -m findwell score {run} --gold {gold} >&-"
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False
        )
        assert "Traceback" not in done.stderr

    def test_version(self, cli: Findwell) -> None:
        built = "native kernel" if kernel() else "without the native kernel"
        assert cli("--version").out == f"findwell, version {findwell.__version__} ({built})\n"


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_explains_itself(command: str, flag: str, cli: Findwell) -> None:
    done = cli(*([command] if command else []), flag)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: findwell")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scor"], "did you mean score"),
        (["zzz"], "unknown command 'zzz'"),
        (["score"], "RUN... is missing"),
        (["score", "-", "-"], "standard input can be read only once"),
        (["score", "a", "--form", "json"], "--format"),
        (["score", "a", "--format", "xml"], "markdown"),
        (["score", "a", "--rel", "high"], "high"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, cli: Findwell) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_no_command_shows_the_help(cli: Findwell) -> None:
    done = cli()
    assert done.code == 2
    assert "findwell score run.trec --gold qrels.txt" in done.out + done.err


@pytest.mark.parametrize("name", ["page.html", "PAGE.HTM"])
def test_text_is_not_written_to_a_page(cli: Findwell, tmp_path: Path, name: str) -> None:
    run, gold = tmp_path / "run.trec", tmp_path / "gold.qrels"
    run.write_text("q1 Q0 d1 1 1.0 x\n")
    gold.write_text("q1 0 d1 1\n")
    done = cli("score", str(run), "--gold", str(gold), "-o", str(tmp_path / name))
    assert done.code == 2
    assert "writes text, not a page" in done.err
    assert "findwell report" in done.err
    assert not (tmp_path / name).exists()

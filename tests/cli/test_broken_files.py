"""Broken files of every kind: exit code 2, no traceback, the file, the line, and what to do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError
from findwell.evaluation.results.store import _own_hash
from findwell.show.web.app import view_site
from findwell.show.web.folders import ResultFolders
from findwell.show.web.server import TokenGuard
from tests import sample
from tests.cli.test_bad_input import clear

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

RUN, QRELS = sample.trec_run(), sample.qrels()
CSV = "query,doc,score\n"
LONG = 70_000  # more than the bytes by which a format was recognised
HALF = "\\ud800"


def parquet(columns: Any) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(columns).write_parquet(out)
    return out.getvalue()


# the file as a run, and how the message begins
RUNS: dict[str, tuple[str | bytes, str]] = {
    "comments only": ("# a\n#b\n \n", "RUN: the file contains only blank lines and comments"),
    "half a surrogate pair in JSON": (
        '{"q1":\n {"d' + HALF + '": 1}}',
        "RUN, line 2: '",
    ),
    "in a list of records": ('[{"query": "q1", "retrieved": ["' + HALF + '"]}]', "RUN, line 1: '"),
    "in JSON lines": ('{"query": "q1", "retrieved": ["' + HALF + '"]}\n', "RUN, line 1: '"),
    "in a list of a cell": (
        'query,retrieved\nq1,"[""' + HALF + '""]"\n',
        "RUN, line 2: record 1: '",
    ),
    "as bytes": (b'{"q1": {"\xed\xa0\x80": 1}}', "RUN, line 1: the bytes b'\\xed\\xa0\\x80"),
    "an unclosed quote": (
        f'{CSV}q1,d1,1\nq1,"d2,2\nq2,d3,3\n',
        "RUN, line 3: the quote that opens here is never closed (column 'doc')",
    ),
    "a quote that closes lines later": (
        f'{CSV}q1,"d1,1\nq1,"d2,2\n',
        "RUN, line 2: the quote that opens here is never closed (column 'doc')",
    ),
    "an unclosed quote below a field of two lines": (
        f'{CSV}q1,"d\n1",1\nq1,d2,"2\n',
        "RUN, line 4: the quote that opens here is never closed (column 'score')",
    ),
    "text behind a quote": (
        f'{CSV}q1,"d1"x,1\n',
        "RUN, line 2: something follows the closing quote (column 'doc')",
    ),
    "a stray quote": (
        f'{CSV}q1,d1,1\nq1,d"2,1\n',
        "RUN, line 3: a quote stands inside a text that is not in quotes (column 'doc')",
    ),
    "too many columns": (
        f"{CSV}q1,d1,1\n\nq1,d2,2,3\n",
        "RUN, line 4: found 4 columns, and the header names 3",
    ),
    "a row below blank lines": (
        f"{CSV}q1,d1,1\n\n\nq1,d2,x\n",
        "RUN, line 5: the score 'x' is not a number (column 'score')",
    ),
    "a row below a field of two lines": (
        f'{CSV}q1,"d\n1",1\nq1,d2,x\n',
        "RUN, line 4: the score 'x' is not a number (column 'score')",
    ),
    "a record of a cell": (
        'query,retrieved\nq1,"[""d1""]"\n\nq2,d2\n',
        "RUN, line 4: record 3: the text in 'retrieved' is not a list",
    ),
    "only a header": (CSV, "RUN: the table has no rows"),
    "carriage returns alone": (
        f"{CSV}q1,d1,1\n".replace("\n", "\r"),
        "RUN: the table has no rows: its lines end in carriage returns alone",
    ),
    "JSON that breaks off": ('{"q1": {\n"d1": 1.0},\n', "RUN, line 3: not valid JSON: "),
    "a JSON line that breaks off": (
        '{"query": "q1", "retrieved": []}\n{"query": "q2", \n',
        "RUN, line 2: not valid JSON: Expecting property name enclosed in double quotes (column",
    ),
    "a parquet page": (
        parquet(sample.run_table())[:60] + b"\xff" * 40 + parquet(sample.run_table())[100:],
        "RUN: the table cannot be read: ",
    ),
    "a parquet of bytes": (
        parquet({"query": ["q1"], "doc": ["d1"], "score": [b"x"]}),
        "RUN: the column 'score' holds Binary, which is not a valid score",
    ),
    "a parquet of categories": (
        parquet({"query": ["q1"], "doc": ["d1"], "score": pl.Series(["x"], dtype=pl.Categorical)}),
        "RUN, row 1: the score 'x' is not a number (column 'score')",
    ),
}
GOLDS: dict[str, tuple[str | bytes, str]] = {
    "a grade nan": ("q1 0 d1 1\nq1 0 d2 nan\n", "GOLD, line 2: the grade 'nan' of document 'd2'"),
    "a grade inf": ("# c\n\nq1 0 d1 inf\n", "GOLD, line 3: the grade 'inf' of document 'd1'"),
    "a grade in CSV": (
        "query,doc,grade\nq1,d1,1\nq1,d2,inf\n",
        "GOLD, line 3: the grade 'inf' is not a finite number (column 'grade')",
    ),
    "a grade in JSON lines": (
        '{"query": "q1", "gold": {"d1": NaN}}\n',
        "GOLD, line 1: the grade 'nan' is not a finite number (query 'q1')",
    ),
    "nothing relevant": ("q1 0 d1 0\n", "GOLD: the gold has no relevant item"),
    "no query of the run": ("q9 0 d1 1\n", "RUN and GOLD: run and gold share no query"),
}


@pytest.mark.parametrize("case", RUNS)
@pytest.mark.parametrize("command", ["score", "explain"])
def test_runs(case: str, command: str, cli: Findwell, save: Save) -> None:
    content, begins = RUNS[case]
    run = save("run.x", content)
    message = clear(cli(command, run, "--gold", save("gold.x", QRELS)))
    assert message.startswith(f"findwell: {begins.replace('RUN', str(run))}")
    assert "\n  fix: " in message


@pytest.mark.parametrize("case", GOLDS)
def test_golds(case: str, cli: Findwell, save: Save) -> None:
    content, begins = GOLDS[case]
    run, gold = save("run.x", RUN), save("gold.x", content)
    message = clear(cli("score", run, "--gold", gold))
    begins = begins.replace("RUN", str(run)).replace("GOLD", str(gold))
    assert message.startswith(f"findwell: {begins}")
    assert "\n  fix: " in message


@pytest.mark.parametrize("name", ["run.x", "gold.x"])
@pytest.mark.parametrize("content", ["[]", "{}", "[{}]", "null"])
@pytest.mark.parametrize("command", ["score", "explain", "check"])
def test_json_of_nothing(command: str, content: str, name: str, cli: Findwell, save: Save) -> None:
    run, gold = save("run.trec", RUN), save("qrels.txt", QRELS)
    empty = save(name, content)
    inputs = (empty, "--gold", gold) if name == "run.x" else (run, "--gold", empty)
    assert str(empty) in clear(cli(command, *inputs))


def test_a_grade_beside_others_is_left_out_with_skip_bad(save: Save) -> None:
    path = save("gold", QRELS + "q1 0 d9 inf\n")
    gold = findwell.io.load_gold(path, skip_bad=True)
    assert "d9" not in gold.member_doc
    (found,) = (each for each in gold.findings if each.kind == "skipped-record")
    assert f"line {len(QRELS.splitlines()) + 1}: the grade 'inf'" in found.examples[0]


@pytest.mark.parametrize(
    ("content", "begins"),
    [
        ("query,topic\n", "FILE: the table has no rows"),
        ("query,topic\n\n\n", "FILE: the table has no rows"),
        ("query,topic\nq1,a\n\n,b\n", "FILE, line 4: 'None' is not an id (column 'query')"),
        ('query,topic\nq1,"a\n', "FILE, line 2: the quote that opens here is never closed"),
        ("query,topic\nq1,a,b\n", "FILE, line 2: found 3 columns, and the header names 2"),
        ('{"query": "q1"}\n\n{"query": null}\n', "FILE, line 3: 'None' is not an id"),
        ('{"query": "q1"}\n{"query": \n', "FILE, line 2: not valid JSON"),
        ('{"query": "q1"}\n[1]\n', "FILE, line 2: a list is not an object"),
        ("query,topic\nq9,a\n", "FILE: no query of this table is in the gold"),
    ],
)
def test_tables_of_queries(content: str, begins: str, cli: Findwell, save: Save) -> None:
    table = save("about.x", content)
    inputs = (save("run", RUN), "--gold", save("gold", QRELS), "--queries", table)
    message = clear(cli("score", *inputs))
    assert message.startswith(f"findwell: {begins.replace('FILE', str(table))}")
    assert "\n  fix: " in message


def test_columns_about_queries_that_polars_would_not_read(cli: Findwell, save: Save) -> None:
    wide = json.dumps({"query": "q1", "n": 10**30, "x": [1]})
    other = json.dumps({"query": "q2", "n": "a", "x": {}})
    table = save("about.jsonl", f"{wide}\n{other}\n")
    inputs = (save("run", RUN), "--gold", save("gold", QRELS), "--queries", table)
    done = cli("score", *inputs, "--slice", "n", "-m", "RR")
    assert done.code == 0
    assert str(10**30) in done.out


class TestDetection:
    """What a file begins with."""

    @pytest.mark.parametrize("query", ["{q1}", "[1]", "{", "[", "[]", "{}x", "[1"])
    def test_a_query_that_begins_with_a_bracket(
        self, query: str, cli: Findwell, save: Save
    ) -> None:
        run = save("run", f"{query} Q0 d1 1 0.5 t\n{query} Q0 d2 2 0.25 t\n")
        done = cli("score", run, "--gold", save("gold", f"{query} 0 d2 1\n"), "-m", "RR")
        assert done.code == 0, done.err
        assert "0.500" in done.out

    @pytest.mark.parametrize(
        "start",
        [
            f"# {'x' * LONG}\n",
            "# x\n" * LONG,
            "\n" * LONG,
            f"q0 Q0 {'d' * LONG} 1 0.5 t\n",
        ],
        ids=["a long comment", "many comments", "blank lines", "a long id"],
    )
    def test_a_run_that_begins_late(self, start: str, cli: Findwell, save: Save) -> None:
        done = cli("score", save("run", start + RUN), "--gold", save("gold", QRELS), "-m", "RR")
        assert done.code == 0, done.err

    def test_a_first_record_that_is_long(self, cli: Findwell, save: Save) -> None:
        first = {"notes": "x" * LONG, "query": "q1", "retrieved": ["d3"]}
        second = {"notes": "", "query": "q2", "retrieved": ["d2"]}
        run = save("run", "".join(json.dumps(each) + "\n" for each in (first, second)))
        done = cli("score", run, "--gold", save("gold", QRELS), "-m", "RR")
        assert done.code == 0, done.err

    def test_a_header_that_is_long(self, cli: Findwell, save: Save) -> None:
        run = save("run", f"query,{'x' * LONG},doc,score\nq1,,d3,1\n")
        done = cli("score", run, "--gold", save("gold", QRELS), "-m", "RR")
        assert done.code == 0, done.err


def test_grades_that_are_huge(cli: Findwell, save: Save) -> None:
    run, gold = save("run", RUN), save("gold", "q1 0 d1 1e308\nq1 0 d2 1e308\nq1 0 d3 1\n")
    done = cli("score", run, "--gold", gold, "-m", "AP", "-m", "P@2")
    assert done.code == 0
    assert "Warning" not in done.err
    for measure in ("nDCG@5", "DCG", "RNDCG"):
        message = clear(cli("score", run, "--gold", gold, "-m", measure))
        assert message.startswith(f"findwell: {gold}: the grade 1e+308 is too large to be added up")


@pytest.mark.parametrize("time", [float("inf"), float("-inf"), float("nan"), 1e308])
def test_times_that_are_none(time: float) -> None:
    records = [
        {"query": f"q{at}", "retrieved": ["d"], "gold": ["d"], "latency_ms": each}
        for at, each in enumerate([time, time, 3.0])
    ]
    (timing,) = findwell.evaluate(records, measures=["RR"]).timing.values()
    assert (timing.n, timing.p50) == (1, 3.0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
class TestNobody:
    """Folders that may not be looked into."""

    @pytest.fixture
    def closed(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as place:
            Path(place).chmod(0o755)
            folder = Path(place) / "closed"
            folder.mkdir()
            folder.chmod(0)
            # what is imported later may lie where nobody else may look
            findwell.evaluate({"q": ["d"]}, {"q": ["d"]}, by="rouge", corpus={"d": "one"})
            os.seteuid(65534)
            yield folder
            os.seteuid(0)

    def test_gold_and_corpus(self, closed: Path) -> None:
        run = {"q1": ["d1"]}
        with pytest.raises(InputError, match="closed"):
            findwell.evaluate(run, closed)
        with pytest.raises(InputError, match="closed"):
            findwell.evaluate(run, {"q1": ["d1"]}, by="rouge", corpus=closed)


def test_a_name_that_is_no_unicode(cli: Findwell, tmp_path: Path) -> None:
    run, gold = tmp_path / os.fsdecode(b"run-\xff"), tmp_path / os.fsdecode(b"gold-\xff")
    run.write_text(RUN)
    gold.write_text(QRELS)
    for command in ("score", "check", "explain"):
        assert cli(command, run, "--gold", gold).code == 0
    assert cli("score", run, "--gold", gold, "--save", tmp_path / "saved").code == 0
    assert cli("report", tmp_path / "saved", "-o", tmp_path / "page.html").code == 0


CHANGING: dict[str, str | bytes] = {
    "trec": RUN,
    "gzip": gzip.compress(RUN.encode()),
    "csv": sample.delimited(sample.run_table()),
    "jsonl": '{"query": "q1", "retrieved": ["d1"]}\n{"query": "q2", "retrieved": ["d1"]}\n',
    "parquet": parquet(sample.run_table()),
}


@pytest.mark.parametrize("kind", CHANGING)
@pytest.mark.parametrize("size", [-1, 0, 30])
def test_a_file_that_changes_while_it_is_read(kind: str, size: int, save: Save) -> None:
    path = save("run", CHANGING[kind])
    run = findwell.io.load_run(path)
    if size < 0:
        path.unlink()
    else:
        os.truncate(path, size)
    with pytest.raises(InputError, match=str(path)) as error:
        run.collect()
    assert error.value.fix


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Save a result with scores that JSON cannot write."""
    run = {"q1": {"a": float("inf"), "b": float("nan"), "c": float("-inf")}, "q2": {"b": 1.0}}
    result = findwell.evaluate(
        run, {"q1": ["b"], "q2": ["b"]}, ["recall@5", "RR"], reading=findwell.Reading(keep=5)
    )
    return result.save(tmp_path / "results" / "r")


class TestStrangeScores:
    """Scores that are infinite or not a number are ranked, and shown."""

    def test_report(self, saved: Path, cli: Findwell, tmp_path: Path) -> None:
        assert cli("report", saved, "-o", tmp_path / "page.html").code == 0
        page = (tmp_path / "page.html").read_text()
        assert "Infinity" not in page
        assert "NaN" not in page.replace("isNaN", "").replace("Number.NaN", "")

    def test_view(self, saved: Path) -> None:
        from starlette.testclient import TestClient

        folders = ResultFolders([saved.parent])
        client = TestClient(
            TokenGuard(view_site(folders), "t", 4711), base_url="http://127.0.0.1:4711"
        )
        client.cookies.set("findwell-4711", "t")
        (name,) = (each.id for each in folders.results())
        assert client.get(f"/report?r={name}").status_code == 200
        for query in range(2):
            assert client.get(f"/api/case?r={name}&query={query}").status_code == 200

    def test_explain_as_json(self, saved: Path, cli: Findwell) -> None:
        done = cli("explain", saved, "--format", "json", "--worst", "2")
        assert done.code == 0

        def refuse(name: str) -> None:
            raise AssertionError(name)

        json.loads(done.out, parse_constant=refuse)


def reseal(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a manifest and write its hash anew, as a program that edits it would."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.pop("sha256")
    change(manifest)
    path.write_text(json.dumps(manifest | {"sha256": _own_hash(manifest)}))


MANIFESTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a list of policies": (lambda it: it.update(policies=[]), "'policies' is a list instead of an"),
    "an unknown policy": (lambda it: it["policies"].update(x="y"), "policies: 'x' is 'y'"),
    "a run that is a number": (lambda it: it.update(runs=[1]), "'runs' is a whole number instead"),
    "no measure": (lambda it: it.update(measures=[]), "it names no run or no measure"),
    "an unknown measure": (lambda it: it.update(measures=["x"]), "unknown measure 'x'"),
    "an unknown dialect": (lambda it: it.update(dialect="x"), "unknown dialect 'x'"),
    "no findings": (lambda it: it.pop("findings"), "'findings' is missing"),
    "another finding": (
        lambda it: it.update(findings=[{"kind": "x"}]),
        "'findings.count' is missing",
    ),
    "a level": (lambda it: it["interval"].update(level=7), "the level is 7"),
    "a level that is true": (
        lambda it: it["interval"].update(level=True),
        "'interval.level' is true or false instead of a whole number",
    ),
    "a cluster": (lambda it: it["interval"].update(cluster="x"), "unknown column of the queries"),
    "no tables": (lambda it: it.update(files={}), "there is no queries.parquet"),
    "an aspect": (lambda it: it["judge"].update(aspects={"x": 1}), "is a whole number instead"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_manifests(case: str, saved: Path, cli: Findwell, save: Save) -> None:
    change, what = MANIFESTS[case]
    reseal(saved, change)
    run = save("run", "q1 Q0 b 1 1 t\n")
    gold = save("gold", "q1 0 b 1\n")
    gate = ("--baseline", saved, "--require", "RR>=baseline")
    for command in (
        ("report", saved),
        ("compare", saved, saved),
        ("score", run, "--gold", gold, *gate),
    ):
        message = clear(cli(*command))
        assert f"{saved / 'manifest.json'}: " in message
        assert what in message
        assert "\n  fix: " in message


@pytest.mark.parametrize("content", ['{"layout": 3, "versions": "x"}', "[]", "7", '{"layout": []}'])
def test_manifests_that_are_none(content: str, saved: Path, cli: Findwell) -> None:
    (saved / "manifest.json").write_text(content)
    assert str(saved) in clear(cli("report", saved))


TABLES: dict[str, tuple[str, Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "no column": ("relation", lambda it: it.drop("depth"), "there is no column 'depth'"),
    "another type": (
        "relation",
        lambda it: it.with_columns(edge_rank=pl.lit("x")),
        "the column 'edge_rank' holds String",
    ),
    "other lengths": (
        "relation",
        lambda it: it.with_columns(edge_item=pl.lit([], pl.List(pl.Int64))),
        "the lists of 'edge_item' differ in length",
    ),
    "a rank beyond the list": (
        "relation",
        lambda it: it.with_columns(depth=pl.lit(0)),
        "a number in 'edge_rank' is out of range",
    ),
    "an endless list": (
        "relation",
        lambda it: it.with_columns(depth=pl.lit(2**60)),
        "'depth' is not a number of documents",
    ),
    "a grade": (
        "relation",
        lambda it: it.with_columns(pl.col("item_grade").list.eval(pl.element() / 0)),
        "a grade in 'item_grade' is not a finite number",
    ),
    "other queries": (
        "queries",
        lambda it: it.reverse(),
        "the run 'run' has queries of another result",
    ),
    "gaps": (
        "queries",
        lambda it: it.with_columns(query=pl.lit(None, pl.String)),
        "the column 'query' has gaps",
    ),
    "no run": ("listed", lambda it: it.drop("run"), "there is no column 'run'"),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_of_results(case: str, saved: Path) -> None:
    name, change, what = TABLES[case]
    path = saved / f"{name}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    own = hashlib.sha256(path.read_bytes()).hexdigest()
    reseal(saved, lambda it: it["files"].update({path.name: own}))
    with pytest.raises(InputError, match=r"\.parquet: the file is damaged: ") as error:
        findwell.load(saved)
    assert what in error.value.what
    assert error.value.fix


def test_agreement_names_the_file(cli: Findwell, save: Save) -> None:
    good = save("good.jsonl", '{"query": "q1", "retrieved": ["a", "b"]}\n')
    blank = save("blank.jsonl", '{"query": "q1", "retrieved": ["a", " "]}\n')
    other = save("other.jsonl", '{"query": "q2", "retrieved": ["a", "b"]}\n')
    rankings = ("--kind", "rankings")
    assert f"findwell: {blank}: ' ' is not an id" in clear(
        cli("labels", "agree", good, blank, *rankings)
    )
    message = clear(cli("labels", "agree", good, other, *rankings))
    assert message.startswith(f"findwell: {good} and {other}: the two runs share no query")


def test_half_a_pair_in_what_is_anchored(cli: Findwell, save: Save) -> None:
    gold = save("gold.jsonl", '{"query": "q1", "gold": [{"quote": "' + HALF + '"}]}\n')
    corpus = save("corpus.json", '{"d": "one"}')
    assert f"{gold}, line 1" in clear(cli("labels", "anchor", gold, "--corpus", corpus))
    whole = save("whole.jsonl", '{"query": "q1", "gold": [{"quote": "one"}]}\n')
    broken = save("broken.json", '{"d":\n "' + HALF + '"}')
    assert f"{broken}, line 2" in clear(cli("labels", "anchor", whole, "--corpus", broken))

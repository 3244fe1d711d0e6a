"""`findwell compare`: what it prints, gates, files for CI, mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell
from tests import values
from tests.comparison.test_comparison import KEYS, NEW, OLD
from tests.comparison.test_gates import BETTER, NOISY
from tests.comparison.test_gates import OLD as SIXTY

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

DEMO = Path(findwell.__file__).parent / "demo"
RUNS = (DEMO / "bm25.trec", DEMO / "minilm.trec")
GOLD = ("--gold", DEMO / "questions.jsonl")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Save results to compare."""
    every = {"old": SIXTY, "better": BETTER, "noisy": NOISY, "short": SIXTY[:40]}
    return {name: values.result(each).save(tmp_path / name) for name, each in every.items()}


def test_json_has_the_promised_keys(cli: Findwell) -> None:
    done = cli("compare", *RUNS, *GOLD, "-m", "recall@10", "--format", "json")
    assert done.code == 0
    shown = done.answer
    (row,) = shown["comparisons"]
    assert list(row)[: len(KEYS)] == KEYS
    assert (row["baseline"], row["system"], row["measure"]) == ("bm25", "minilm", "recall@10")
    again = findwell.compare(*RUNS, gold=GOLD[1], measures="recall@10")
    assert row == again["recall@10"]
    assert shown["findings"]
    assert done.err == ""


def test_the_table(cli: Findwell) -> None:
    done = cli("compare", *RUNS, *GOLD, "-m", "recall@5", "-m", "success@1", "--slice", "wording")
    assert done.code == 0
    assert "against bm25 · 95 queries" in done.out
    assert re.search(r"recall@5 +minilm +better +0\.618 +0\.814 +\+0\.196 ", done.out)
    assert "by McNemar's test: success@1" in done.out
    assert "by wording" in done.out
    assert "queries that moved most in recall@5" in done.out
    assert "There is an awful shriek" in done.out
    assert done.err.startswith(
        "note: 4 queries have no relevant item and are excluded from the means ("
    )


@pytest.mark.parametrize("how", ["jsonl", "csv", "tsv", "markdown", "latex"])
def test_other_formats(how: str, cli: Findwell, tmp_path: Path) -> None:
    done = cli("compare", *RUNS, *GOLD, "-m", "P@5", "--format", how)
    cli("compare", *RUNS, *GOLD, "-m", "P@5", "--format", how, "-o", tmp_path / "out")
    assert done.code == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == done.out
    begins = {
        "jsonl": '{"baseline": "bm25", "system": "minilm", "measure": "P@5", "verdict": "better", ',
        "csv": "baseline,system,measure,verdict,difference,low,high,p,p_adjusted",
        "tsv": "baseline\tsystem\tmeasure\tverdict\tdifference",
        "markdown": "**minilm is better than bm25**: P@5 0.202 → 0.279",
        "latex": r"% needs \usepackage{booktabs}",
    }
    assert done.out.startswith(begins[how])


def test_records_and_saved_results(cli: Findwell, save: Save, folders: dict[str, Path]) -> None:
    records = [
        save(
            f"{name}/samples.jsonl",
            "".join(
                json.dumps({"query": query, "retrieved": docs, "gold": ["d0", "d1"]}) + "\n"
                for query, docs in values.run(each).items()
            ),
        )
        for name, each in (("old", OLD), ("new", NEW))
    ]
    done = cli("compare", *records, "--format", "json", "-o", "-")
    assert [row["system"] for row in done.answer["comparisons"]] == ["new/samples"] * 6
    done = cli("compare", folders["old"], folders["better"], "--format", "json")
    (row,) = done.answer["comparisons"]
    assert (row["baseline"], row["system"], row["measure"]) == ("old", "better", "recall")


def test_options(cli: Findwell, folders: dict[str, Path]) -> None:
    three = [folders[name] for name in ("old", "better", "noisy")]
    options = ("--format", "json", "--seed", "4", "--level", "0.9", "--moved", "1")
    shown = cli("compare", *three, *options, "--baseline", "noisy").answer
    assert shown["baseline"] == "noisy"
    assert (shown["seed"], shown["level"], shown["permutations"]) == (4, 0.9, 10_000)
    assert {row["correction"] for row in shown["comparisons"]} == {"holm"}
    assert len(shown["moved"]) == 4
    by_path = cli("compare", *three, *options, "--baseline", folders["noisy"]).answer
    assert by_path["baseline"] == "noisy"
    pairs = cli("compare", *three, *options, "--all-pairs", "--test", "t").answer
    assert len(pairs["comparisons"]) == 3
    assert {row["correction"] for row in pairs["comparisons"]} == {"tukey"}
    assert {row["test"] for row in pairs["comparisons"]} == {"t"}


@pytest.mark.parametrize(
    ("system", "options", "code"),
    [
        ("better", [], 0),
        ("old", [], 0),
        ("noisy", [], 3),
        ("noisy", ["--undecided", "pass"], 0),
        ("noisy", ["--undecided", "fail"], 1),
        ("noisy", ["--margin", "0.2"], 0),
    ],
)
def test_the_gate(
    system: str, options: list[str], code: int, cli: Findwell, folders: dict[str, Path]
) -> None:
    asked = ("compare", folders["old"], folders[system], "--no-regression", "recall,P@1", *options)
    assert cli(*asked).code == code


def test_what_the_gate_says(cli: Findwell, folders: dict[str, Path], tmp_path: Path) -> None:
    asked = ("compare", folders["better"], folders["old"], "--no-regression", "recall")
    assert cli(*asked).code == cli(*asked, "--undecided", "pass").code == 1
    shown = cli(*asked, "--format", "json").answer
    assert shown["gate"] == "fail"
    assert shown["requirements"][0]["requirement"] == "recall>=baseline"
    assert "✗ fail" in cli(*asked).out
    done = cli(*asked, "--format", "csv", "--junit", tmp_path / "junit.xml")
    assert "✗ fail: recall>=baseline (old): recall is" in done.err
    assert 'failures="1"' in (tmp_path / "junit.xml").read_text()


def test_the_summary_for_github(
    cli: Findwell, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    asked = ("compare", folders["old"], folders["noisy"], "--format", "json")
    assert cli(*asked).code == 0
    assert cli(*asked, "--no-regression", "recall").code == 3
    text = path.read_text(encoding="utf-8")
    assert text.startswith("before\n### Retrieval\n\n**noisy is not clearly different from old**")
    assert text.count("### Retrieval") == 2
    assert "| ? undecided | recall\\>=baseline |" in text
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "such.md"))
    done = cli(*asked)
    assert done.code == 0
    assert "could not be written to $GITHUB_STEP_SUMMARY: No such file" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "RUN... is missing"),
        (["a.json"], "compare needs two systems or more; you gave 1"),
        (["a.json", "b.json", "--baseline", "c"], "unknown baseline 'c'"),
        (["a.json", "b.json", "-m", "recal"], "unknown measure 'recal'"),
        (["a.json", "nosuch.json"], "nosuch.json: no such file"),
        (["a.json", "b.json", "--level", "2"], "level is 2.0"),
        (["a.json", "b.json", "--seed", "-1"], "seed is -1"),
        (["a.json", "b.json", "--slice", "topic"], "unknown column of the queries 'topic'"),
        (["a.json", "b.json", "--no-regression", "recal@5"], "unknown measure 'recal'"),
        (["a.json", "b.json", "--junit", "x.xml"], "--junit needs --no-regression"),
        (["a.json", "b.json", "--margin", "0.1"], "--margin needs --no-regression"),
        (["a.json", "other.json"], "share no query"),
        (["a.json", "."], "not a complete findwell result"),
        (["-", "-"], "standard input can be read only once"),
        (["a.json", "b.json", "--undecided", "skip"], "'skip' is not one of"),
    ],
)
def test_mistakes(  # noqa: PLR0917
    arguments: list[str],
    message: str,
    cli: Findwell,
    save: Save,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    save("a.json", '{"q": ["a"]}')
    save("b.json", '{"q": ["b"]}')
    save("gold.json", '{"q": ["a"]}')
    record = {"query": "z", "retrieved": ["a"], "gold": ["a"]}
    if "share no query" in message:
        save("a.json", json.dumps([{**record, "query": "y"}]))
        save("other.json", json.dumps([record]))
    else:
        arguments = [*arguments, "--gold", "gold.json"]
    before = sorted(tmp_path.iterdir())
    done = cli("compare", *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    assert sorted(tmp_path.iterdir()) == before


def test_options_without_effect_on_results(cli: Findwell, folders: dict[str, Path]) -> None:
    both = (folders["old"], folders["better"])
    done = cli("compare", *both, "--by", "exact")
    assert done.code == 2
    assert "by has no effect" in done.err
    assert cli("compare", *both, "--dialect", "findwell").code == 0


CORE = """
import sys
sys.modules["scipy"] = None
from findwell.cli import main
main(sys.argv[1:])
"""


def without_extras(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CORE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_core_compares_two_systems() -> None:
    measures = ("-m", "recall@5", "-m", "success@1", "--format", "json", "-o", "-")
    done = without_extras("compare", *RUNS, *GOLD, *measures)
    assert done.returncode == 0, done.stderr
    tests = [row["test"] for row in json.loads(done.stdout)["result"]["comparisons"]]
    assert tests == ["permutation", "mcnemar"]
    whole = ("-m", "RR", "--format", "json", "-o", "-")
    several = without_extras("compare", *RUNS, RUNS[0], *GOLD, *whole)
    corrections = [row["correction"] for row in json.loads(several.stdout)["result"]["comparisons"]]
    assert corrections == ["holm", "holm"]
    student = without_extras("compare", *RUNS, *GOLD, "--test", "t")
    assert student.returncode == 2
    assert "pip install '.[stats]'" in student.stderr

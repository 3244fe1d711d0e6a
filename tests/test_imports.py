"""What a job imports: only what it touches, so that small evaluations start at once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from findwell.io.native import kernel
from findwell.measures import grammar, known_measures, parse_measure

if TYPE_CHECKING:
    from pathlib import Path

# modules of our own that a job may import, and libraries that it may not
OWN_BUDGET = {"import": 50, "trec": 84, "jsonl": 84, "dicts": 76, "compare": 98}
HEAVY = {"polars", "scipy", "rich", "pandas", "pyarrow", "importlib.metadata", "numpy.ma"}
# scoring by ids waits for no server, no judge, no comparison, and for no other relation
UNUSED = {
    *("asyncio", "ssl", "sqlite3", "urllib.request", "tomllib", "rich.console"),
    *(
        f"findwell.{room}"
        for room in [
            "judges.client",
            "judges.embeddings",
            "judges.llm",
            "judges.local",
            "judges.cards",
            "judges.aspects",
            "evaluation.comparison",
            "evaluation.spark",
            "evaluation.results.store",
            "show.web",
            "io.read.traces",
            "io.read.shapes",
            "io.read.labels_database",
            "io.read.corpus",
            "relations.judged",
            "relations.match.rouge",
        ]
    ),
}
# a command in each of the formats that are named first, in turn
FORMATTED = (
    "import runpy, sys\n"
    "_, formats, *command = sys.argv\n"
    "for each in formats.split(','):\n"
    "    sys.argv[:] = ['findwell', *command, '--format', each]\n"
    "    try: runpy.run_module('findwell', run_name='__main__')\n"
    "    except SystemExit: pass\n"
)
DICTS = "import findwell\nprint(findwell.evaluate({'q': {'d': 1.0}}, {'q': {'d': 1}}))\n"
COMPARED = (
    "import findwell\n"
    "runs = {'old': {'q': {'c': 2.0, 'd': 1.0}}, 'new': {'q': {'d': 1.0}}}\n"
    "print(findwell.compare(runs, gold={'q': {'d': 1}}))\n"
)
LISTED = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def imported(code: str, folder: Path, *arguments: str) -> set[str]:
    """Return the modules that a fresh process has imported after running some code."""
    command = [sys.executable, "-c", code + LISTED, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def check(modules: set[str], job: str) -> None:
    assert not HEAVY & modules
    own = {name for name in modules if name.partition(".")[0] == "findwell"}
    assert len(own) <= OWN_BUDGET[job], sorted(own)


def test_importing_findwell(tmp_path: Path) -> None:
    check(imported("import findwell", tmp_path), "import")


@pytest.mark.skipif(kernel() is None, reason="the native kernel is not built")
@pytest.mark.parametrize("job", ["trec", "jsonl"])
def test_scoring_and_comparing_files(job: str, tmp_path: Path) -> None:
    if job == "trec":
        run, gold = "q1 Q0 d1 1 0.5 t\nq2 Q0 d1 1 0.5 t\n", "q1 0 d1 1\nq2 0 d2 1\n"
    else:
        run = '{"query": "q1", "retrieved": ["d1"]}\n{"query": "q2", "retrieved": ["d1"]}\n'
        gold = '{"query": "q1", "gold": ["d1"]}\n{"query": "q2", "gold": ["d2"]}\n'
    (tmp_path / f"run.{job}").write_text(run)
    (tmp_path / f"gold.{job}").write_text(gold)
    arguments = ("score", f"run.{job}", "--gold", f"gold.{job}")
    modules = imported(FORMATTED, tmp_path, "table,json", *arguments)
    check(modules, job)
    assert job != "trec" or not UNUSED & modules
    other = run.replace('"retrieved": ["d1"]', '"retrieved": ["d2"]').replace("Q0 d1", "Q0 d2")
    (tmp_path / f"other.{job}").write_text(other)
    compared = ("compare", f"run.{job}", f"other.{job}", "--gold", f"gold.{job}")
    check(imported(FORMATTED, tmp_path, "table,json,markdown", *compared), "compare")


@pytest.mark.skipif(kernel() is None, reason="the native kernel is not built")
def test_evaluating_and_comparing_dicts(tmp_path: Path) -> None:
    check(imported(DICTS, tmp_path), "dicts")
    check(imported(COMPARED, tmp_path), "compare")


def test_measures_of_every_day_are_found_in_their_modules() -> None:
    """The short way by a measure's own name finds what the long way over all of them finds."""
    known = known_measures()
    for name, module in grammar.MODULES.items():
        assert known[name].__module__ == f"findwell.measures.{module}"
        assert grammar._lookup(f"{name}@5", name) == (known[name], {})
        assert parse_measure(name.lower()) == parse_measure(name.upper())


def test_no_pattern_of_a_name_matches_a_plain_one() -> None:
    """Plain names and aliases are looked up first, whatever their order."""
    plain, patterns = grammar._spellings(tuple(known_measures().values()))
    assert not [name for name in plain for pattern, *_ in patterns if pattern.fullmatch(name)]

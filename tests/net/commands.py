"""Which commands are recorded, and how they are run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import findwell
from findwell.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

INPUTS = Path(__file__).parent / "inputs"
DEMO = Path(findwell.__file__).parent / "demo"
GOLD = "--gold questions.jsonl"
BOTH = f"bm25.trec minilm.trec {GOLD}"
JUDGED = "judged.jsonl --judge local:text"
TRACED = "q01"

# name → arguments; every command that prints JSON is here, which a test checks
COMMANDS = {
    "score": f"score {BOTH} --slice wording --bounds",
    "score-exact": "score texts.jsonl --by exact -m recall@3 -m nDCG@3 -m P@3 --per-query",
    "score-rouge": "score texts.jsonl --by rouge -m recall@3 -m nDCG@3 -m P@3 --per-query",
    "score-spans": "score spans.jsonl --by spans -m recall@3 -m IoU@3 -m P@3 --per-query",
    "score-judged": (
        f"score {JUDGED} -m context_precision -m context_recall -m context_entities_recall "
        "-m context_relevancy --per-query"
    ),
    "score-nuggets": "score nuggets.jsonl -m recall@2 -m recall(support=1)@2 -m AP --per-query",
    "score-hops": "score hops.jsonl -m recall@1hops -m items_per(unit=hops) -m AP --per-query",
    "score-gate": f"score bm25.trec {GOLD} -m recall@5 --require recall@5>=0.5",
    "compare": f"compare {BOTH} -m recall@5 -m nDCG@10 --slice wording",
    "compare-corrected": f"compare {BOTH} minilm2.trec -m recall@5 -m RR --all-pairs",
    "check": f"check {BOTH}",
    "check-untidy": "check untidy.trec --gold untidy.qrels",
    "check-records": "check untidy.jsonl",
    "explain": f"explain bm25.trec {GOLD} -q {TRACED} -m nDCG@10 -m AP -m bpref -m RBP",
    "explain-dialects": (
        f"explain bm25.trec {GOLD} -q {TRACED} -m AP -m nDCG --dialect findwell "
        "--dialect trec_eval --dialect autorag"
    ),
    "explain-judged": f"explain {JUDGED} -q j1 -m context_precision -m context_recall",
    "curve": f"curve {BOTH} -m recall -m P --at 1,3,5,10",
    "fuse": "fuse bm25.trec minilm.trec --engine elasticsearch-rrf --format jsonl",
    "tune": f"tune {BOTH} -m nDCG@10 --engine elasticsearch-rrf --seed 1",
    "power": f"power {BOTH} -m recall@5",
    "agree": "labels agree bm25.trec minilm.trec",
    "choose": "choose --known ids --use order --needs several --labels partial -k 10",
    "measures": "measures",
    "measures-one": "measures nDCG",
    "pool": "labels pool bm25.trec minilm.trec --depth 5 -o pool --queries questions.jsonl",
    "anchor": "labels anchor chunks-gold.jsonl --chunks chunks.jsonl --corpus documents.jsonl "
    "-o new",
}
LISTED_LINES = 200  # of an answer that is not one JSON object
ENVIRONMENT = {
    "COLUMNS": "100",
    "NO_COLOR": "1",
    "FINDWELL_CONFIG": "none",
    "FINDWELL_TUNINGS": "none",
}
# keys whose values depend on when, where and with which versions a command ran
MASKED = re.compile(
    r"seconds|duration|elapsed|created|written|started|at|version|versions|findwell|python|"
    r"platform|hash|sha256|path|folder|memory|throughput|size"
)


@contextlib.contextmanager
def folder(root: Path) -> Iterator[None]:
    """Work in a folder with the files of the demo and of the net."""
    for source in (*DEMO.iterdir(), *INPUTS.iterdir()):
        shutil.copy(source, root)
    shutil.copy(root / "minilm.trec", root / "minilm2.trec")
    before = Path.cwd()
    kept = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.chdir(root)
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        os.chdir(before)
        for name, value in kept.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


def answer(arguments: str) -> dict[str, Any]:
    """Run one command, and return its exit code, its JSON and what it said to standard error."""
    out, err, code = io.StringIO(), io.StringIO(), None
    kept = os.dup(1)  # a command that fails closes standard output
    whole = Path("answer.json")  # standard output has the first rows of long tables
    whole.unlink(missing_ok=True)
    words = arguments.split()
    if "--format" not in words:
        words += ["--format", "json", *([] if "-o" in words else ["-o", str(whole)])]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code
    os.dup2(kept, 1)
    os.close(kept)
    try:
        printed: Any = json.loads(whole.read_text() if whole.exists() else out.getvalue())
    except json.JSONDecodeError:
        printed = out.getvalue().splitlines()[:LISTED_LINES]
    return {
        "arguments": arguments,
        "exit": code,
        "stdout": masked(printed),
        "stderr": [without_numbers(line) for line in err.getvalue().splitlines()],
    }


def masked(found: Any, key: str = "") -> Any:
    """Hide what differs from run to run."""
    if MASKED.fullmatch(key) and not isinstance(found, dict | list):
        return "…"
    if isinstance(found, dict):
        return {name: masked(value, name) for name, value in found.items()}
    if isinstance(found, list):
        return [masked(value) for value in found]
    return found


def without_numbers(line: str) -> str:
    """Hide times in a line of standard error."""
    return re.sub(r"\d+(\.\d+)? ?(ms|s)\b", "… s", line)

"""Small evaluations: 1,000 queries, as most people have, where start-up is most of the time.

Every command is a process of its own, as in the section on whole commands.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from typing import TYPE_CHECKING

from benchmarks.commands import findwell_command, spend
from benchmarks.data import ensure
from benchmarks.report import Table, shown_seconds
from benchmarks.tools import TOOLS

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.commands import Spent
    from benchmarks.data import Files
    from benchmarks.sections import Facts

PEER = "pytrec-eval-terrier"
ONE, TWO = "pytrec_eval, script", "pytrec_eval, script of two runs"
COMPARE = "findwell compare, TREC"
# both runs and the mean difference of each measure, without an interval or a test
TWO_RUNS = """
import json, sys
from statistics import fmean
import pytrec_eval
first, second, gold, *names = sys.argv[1:]
with open(gold) as judgements, open(first) as before, open(second) as after:
    evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judgements), set(names))
    old, new = (evaluator.evaluate(pytrec_eval.parse_run(run)) for run in (before, after))
print(json.dumps({name: fmean(new[q][name] - old[q][name] for q in old) for name in names}))
"""
LEAST_ROUNDS = 7  # a short time varies more than a long one
REMARK = """\
Whole commands on {files}, start-up included: the script with pytrec_eval that section 14 measures,
and `findwell score` of the same files and of JSON lines with lists of ids; then a script with
pytrec_eval that prints the mean differences of two runs, and `findwell compare` of these runs, with
intervals, tests and verdicts. The best of {rounds} rounds, in turns. *Ratio* is the time divided by
that of the script that reads as many runs."""


def small(files: Files, rounds: int, facts: Facts) -> Table:
    """Time the commands of a small evaluation."""
    ensure(files)
    run, gold, other = _json_lines(files.run), _json_lines(files.gold), _other_run(files.run)
    paths = [str(files.run), str(other), str(files.gold)]
    start = findwell_command(files.run, files.gold)[:3]
    commands = {
        ONE: TOOLS[PEER].command(files),
        "findwell score, TREC": findwell_command(files.run, files.gold),
        "findwell score, JSON lines": findwell_command(run, gold),
        TWO: [sys.executable, "-c", TWO_RUNS, *paths, *TOOLS[PEER].spelling],
        COMPARE: [*start, "compare", *paths[:2], "--gold", paths[2], "--format", "json"],
    }
    best: dict[str, Spent] = {}
    rounds = max(rounds, LEAST_ROUNDS) if rounds > 1 else 1
    for number in range(rounds + 1):  # the first one leaves compiled modules behind
        for name, command in commands.items():
            spent, _ = spend(command)
            if number:
                best[name] = spent.best(best.get(name))
        print(f"round {number} of {rounds}  small evaluations", file=sys.stderr)
    script = {name: best[TWO if name in (TWO, COMPARE) else ONE] for name in best}
    rows = [
        (
            name,
            shown_seconds(spent.wall),
            shown_seconds(spent.cpu),
            f"{spent.wall / script[name].wall:.2f}",
            f"{spent.cpu / script[name].cpu:.2f}",
        )
        for name, spent in best.items()
    ]
    facts.small = {name: spent.wall / script[name].wall for name, spent in best.items()}
    header = ("command", "wall s", "CPU s", "ratio, wall", "ratio, CPU")
    remark = REMARK.format(files=files, rounds=rounds)
    return Table("20. Small evaluations", remark, header, rows)


def _json_lines(path: Path) -> Path:
    """Write what a TREC file lists as one record per query."""
    field = "retrieved" if path.suffix == ".trec" else "gold"
    written = path.with_suffix(".jsonl").with_stem(f"{path.stem}-{field}")
    lines = (line.split() for line in path.read_text("utf-8").splitlines())
    with written.open("w", encoding="utf-8") as file:
        for query, rows in groupby(lines, key=lambda row: row[0]):
            docs = [row[2] for row in rows if field == "retrieved" or int(row[3]) > 0]
            file.write(json.dumps({"query": query, field: docs}) + "\n")
    return written


def _other_run(path: Path) -> Path:
    """Write a run like another, without every tenth line."""
    written = path.with_stem(f"{path.stem}-other")
    lines = path.read_text("utf-8").splitlines(keepends=True)
    written.write_text("".join(line for at, line in enumerate(lines) if at % 10), "utf-8")
    return written

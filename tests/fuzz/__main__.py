"""Run many cases and list what is wrong with them, the same complaints together."""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.cases import Case, cases
from tests.fuzz.checking import flaws
from tests.fuzz.running import run

if TYPE_CHECKING:
    from tests.conftest import Outcome


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default="", help="part of the name of a plan")
    chosen = parser.parse_args()
    groups: dict[str, list[str]] = defaultdict(list)
    codes: dict[int, int] = defaultdict(int)
    for case in islice(cases(chosen.seed, only=chosen.only), chosen.count):
        with tempfile.TemporaryDirectory() as folder:
            done = run(case, Path(folder))
        codes[done.code] += 1
        for flaw in flaws(case, done):
            groups[_complaint(case, done, flaw)].append(f"{case.name}\n      {done.err[-1500:]}")
    for key, names in sorted(groups.items(), key=lambda each: -len(each[1])):
        print(f"{len(names):5} {key}\n    e.g. {names[0]}")
    print(dict(codes), sum(map(len, groups.values())), "flaws")


def _complaint(case: Case, done: Outcome, flaw: str) -> str:
    """Return what cases with the same complaint have in common."""
    lines = done.err.strip().replace(case.target, "FILE").split("\n")
    if "Traceback" in done.err:
        places = re.findall(r'src/(findwell/[^"]*)", line (\d+)', done.err)
        shown = f"{':'.join(places[-1]) if places else ''} {lines[-1]}"
    else:
        shown = "\n".join(lines[-2:])
    return f"{flaw[:16]} | " + re.sub(r"'[^']*'|(?<!:)\b\d+", "…", shown)[:170]


if __name__ == "__main__":
    main()

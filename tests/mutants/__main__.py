"""Draw mutants, run the tests against each, and report the kill rate: see the package."""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]
PACKAGE = "findwell"
# room → the tests that should notice; the cheap ones first
TESTS = {
    "measures": ["tests/measures", "tests/dialects", "tests/test_invariances.py"],
    "statistics": ["tests/statistics", "tests/comparison", "tests/labels"],
    "relations": [
        *("tests/relate", "tests/align", "tests/engines", "tests/test_invariances.py"),
        *("tests/dialects", "tests/spans", "tests/read", "tests/judges"),
    ],
    "core": ["tests/core", "tests/measures", "tests/engines", "tests/test_invariances.py"],
}
LIMIT = 3000  # seconds after which a mutant counts as killed: it hangs
SWAPS: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Div],
    ast.Pow: [ast.Mult],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
}


@dataclass(frozen=True)
class Mutant:
    """One change: the n-th place of a file that can be changed, and how."""

    file: str
    line: int
    what: str
    text: str  # the whole file, changed


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, object]]:
    """Go through what can be changed: node, field, new value. Types and docstrings are left."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
            for other in SWAPS.get(type(node.op), []):
                yield node, "op", other()
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            for other in SWAPS.get(type(node.ops[0]), []):
                yield node, "ops", [other()]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
            yield node, "op", ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, "value", not node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node, "value", node.value + 1
        elif isinstance(node, ast.IfExp):
            yield node, "test", ast.UnaryOp(ast.Not(), node.test)


def counted(tree: ast.Module) -> ast.Module:
    """Take out what no number depends on: annotations, and code for types only."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, ast.Constant(None) if name == "annotation" else None)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return tree


def draw(pick: random.Random, rooms: list[str]) -> Mutant:
    """Draw a file by its size, a place in it and a change."""
    files = sorted(
        path for room in rooms for path in (PROJECT / "src" / PACKAGE / room).rglob("*.py")
    )
    while True:
        path = pick.choices(files, weights=[file.stat().st_size for file in files])[0]
        source = path.read_text(encoding="utf-8")
        choices = list(places(counted(ast.parse(source))))
        if not choices:
            continue
        chosen = pick.randrange(len(choices))
        tree = ast.parse(source)
        node, name, new = list(places(counted(tree)))[chosen]
        before = ast.unparse(node)
        setattr(node, name, new)
        after = ast.unparse(ast.fix_missing_locations(node))
        if before == after:
            continue
        changed = ast.unparse(ast.fix_missing_locations(tree))
        file = str(path.relative_to(PROJECT / "src"))
        return Mutant(file, getattr(node, "lineno", 0), f"{before}  →  {after}", changed)


def killed(mutant: Mutant) -> bool:
    """Run the tests against a copy of the sources with this change."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for source in PROJECT.iterdir():
            if source.is_file():
                shutil.copy(source, root)
            elif not source.name.startswith("."):
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, root / source.name, ignore=ignored)
        (root / "src" / mutant.file).write_text(mutant.text, encoding="utf-8")
        room = Path(mutant.file).parts[1]
        try:
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-x",
                    "-q",
                    "-m",
                    "not slow",
                    "-p",
                    "no:cacheprovider",
                ]
                + TESTS[room],
                cwd=root,
                env={**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0


def main() -> int:
    """Draw, run and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--rooms", nargs="*", default=list(TESTS), choices=list(TESTS))
    given = parser.parse_args()
    pick = random.Random(given.seed)
    mutants = [draw(pick, given.rooms) for _ in range(given.count)]
    for room in sorted({Path(mutant.file).parts[1] for mutant in mutants}):
        file = next(mutant.file for mutant in mutants if Path(mutant.file).parts[1] == room)
        same = (PROJECT / "src" / file).read_text(encoding="utf-8")
        if killed(Mutant(file, 0, "nothing", same)):
            print(f"the tests of {room} fail without a mutant: no kill would mean anything")
            return 1
        print(f"the tests of {room} pass without a mutant", file=sys.stderr, flush=True)
    alive = []
    with ThreadPoolExecutor(given.jobs) as workers:
        for number, (mutant, dead) in enumerate(
            zip(mutants, workers.map(killed, mutants), strict=True), start=1
        ):
            if not dead:
                alive.append(mutant)
                print(f"alive: {mutant.file}:{mutant.line}  {mutant.what}", flush=True)
            print(f"{number - len(alive)} of {number} killed", file=sys.stderr, flush=True)
    print(f"killed {given.count - len(alive)} of {given.count} (seed {given.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Today's figures: lines of code, edges between rooms, options, names, modules."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

import findwell
from findwell.cli import SETTINGS, cli
from tests import sample
from tests.test_architecture import FILES, ROOMS, SOURCE, here, imports, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

Figures: TypeAlias = dict[str, dict[str, int]]


def room_of(path: Path) -> str:
    """Return the folder at the top of the package that a file belongs to; a surface is cli's."""
    return here(path) if path != SOURCE / "__init__.py" else "__init__"


@functools.cache
def parsed(text: str) -> ast.Module:
    """Parse a file once."""
    return ast.parse(text)


def code_lines(text: str) -> int:
    """Count lines that are neither blank nor comments nor docstrings."""
    tree = parsed(text)
    lines = {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    docstrings = [
        node for node in statements(tree) if isinstance(node, ast.Expr) and is_text(node.value)
    ]
    if text.count('"""') > 2 * len(docstrings):  # texts of several lines, some of them blank
        for node in ast.walk(tree):
            if isinstance(node, ast.expr) and (is_text(node) or isinstance(node, ast.JoinedStr)):
                lines.update(lines_of(node))
    return len(lines.difference(*map(lines_of, docstrings)))


def is_text(node: ast.AST) -> bool:
    """Return whether a node is a text in quotes."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def lines_of(node: ast.Expr | ast.expr) -> range:
    """Return the numbers of the lines that a node covers."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def lines_by_room() -> dict[str, int]:
    """Count the lines of code of each room."""
    counted: Counter[str] = Counter()
    for path in (*FILES, SOURCE / "__init__.py"):
        counted[room_of(path)] += code_lines(path.read_text(encoding="utf-8"))
    return dict(sorted(counted.items()))


def edges() -> int:
    """Count the pairs of rooms of which one imports the other."""
    return len(
        {
            (room_of(path), other)
            for path in FILES
            for other in imports(path.read_text(encoding="utf-8"))
            if other != room_of(path)
        }
    )


def commands(
    group: click.Group, context: click.Context, prefix: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """Go through all commands, those inside others too."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, context, f"{prefix}{name} ")
        elif command is not None:
            yield f"{prefix}{name}", command


def options_by_command() -> dict[str, int]:
    """Count the options of each command."""
    with click.Context(cli, **SETTINGS) as context:
        return {
            name: sum(isinstance(parameter, click.Option) for parameter in command.params)
            for name, command in commands(cli, context)
        }


def help_lines() -> dict[str, int]:
    """Count the lines of the help of each command, at 80 columns."""
    with click.Context(cli, **SETTINGS) as context:
        return {
            name: len(
                command.get_help(
                    # click keeps the help option that it made first: it must be that of the cli
                    click.Context(command, parent=context, info_name=name, terminal_width=80)
                ).splitlines()
            )
            for name, command in commands(cli, context)
        }


def modules_of_score(folder: Path) -> dict[str, int]:
    """Count what is imported to score a TREC file: of the package, and in all."""
    (folder / "run.trec").write_text(sample.trec_run())
    (folder / "qrels.txt").write_text(sample.qrels())
    program = (
        "import sys\n"
        "from findwell.cli import main\n"
        "try:\n"
        "    main(['score', 'run.trec', '--gold', 'qrels.txt', '-m', 'nDCG@10'])\n"
        "except SystemExit:\n"
        "    own = sum(name.split('.')[0] == 'findwell' for name in sys.modules)\n"
        "    print(own, len(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    own, every = done.stderr.split()[-2:]
    return {"own modules": int(own), "all modules": int(every)}


def classes_with_an_interval() -> int:
    """Count the classes that have limits, `low` and `high`, among their fields."""
    found = 0
    for path in FILES:
        for node in statements(parsed(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                fields = {
                    each.target.id
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
                found += {"low", "high"} <= fields
    return found


def passed_by_score(folder: Path) -> dict[str, int]:
    """Count the modules whose functions a score calls, and how often it goes to another room.

    Threads take turns, so the second figure is not the same in every run: it is the least of three.
    """
    command = ["score", "run.trec", "--gold", "qrels.txt", "-m", "nDCG@10"]
    found = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", PASSED, *command],
            cwd=folder,
            env=os.environ | {"FINDWELL_NATIVE": "0"},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append([int(each) for each in done.stderr.split()[-2:]])
    modules, switches = (min(each) for each in zip(*found, strict=True))
    return {"modules entered": modules, "switches of room": switches}


PASSED = """
import sys
from findwell.cli import main
importing, last, entered, switches = 0, "", set(), 0
def note(frame, event, _):
    global importing, last, switches
    code = frame.f_code
    if code.co_name == "<module>":
        importing += {"call": 1, "return": -1}.get(event, 0)
        return
    name = code.co_filename.replace("\\\\", "/").partition("/src/findwell/")[2]
    if event == "call" and not importing and name:
        entered.add(name)
        room = name.partition("/")[0]
        switches += room != last
        last = room
sys.setprofile(note)
try:
    main(sys.argv[1:])
except SystemExit:
    sys.setprofile(None)
sys.stderr.write(f"{len(entered)} {switches}")
"""


def figures(folder: Path) -> Figures:
    """Return all figures."""
    lines = lines_by_room()
    options = options_by_command()
    return {
        "code lines": {"all": sum(lines.values()), **lines},
        "options": {"all": sum(options.values()), **options},
        "help lines": help_lines(),
        "package": {
            "files": len(FILES) + 1,
            "rooms": len({room_of(path) for path in FILES}),
            "edges between rooms": edges(),
            "exported modules": sum(len(about["exports"]) for about in ROOMS.values()),
            "classes with an interval": classes_with_an_interval(),
            "public names": len(findwell.__all__),
        },
        "score of a TREC file": modules_of_score(folder) | passed_by_score(folder),
    }

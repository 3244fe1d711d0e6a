"""The reference of findings and errors, from the places in the code where they are made."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import findwell
from findwell.core import errors
from findwell.core.findings import FindingKind
from website.commands import cell
from website.doctests import fenced

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(findwell.__file__).parent
FINDING = {"Finding": 3, "finding_about": 2, "finding_about_rows": 2}  # where the message stands
FINDINGS = """# Findings

What is worth knowing about your files, counted and with examples; `findwell check` lists them,
every result holds them, and `kind` in JSON is the word of the first column. In the messages, …
stands for what is found.

| kind | message | what to do |
|---|---|---|"""
ERRORS = """# Errors

A mistake that you can mend raises one of these, all of them `findwell.FindwellError`; on the
command line it is a message and exit code 2. `error.what`, `error.where` and `error.fix` hold its
parts. In the messages, … stands for what is found.
"""


def findings_page() -> str:
    """Return the page of findings."""
    rows: dict[tuple[str, str], str] = {}
    for call in calls():
        name = called(call)
        if name not in FINDING or not call.args:
            continue
        kind = kind_of(call.args[0])
        message = argument(call, FINDING[name], "message")
        if kind and message:
            rows[kind, message] = argument(call, FINDING[name] + 1, "fix")
    lines = [
        f"| `{kind}` | {cell(text)} | {cell(fix)} |" for (kind, text), fix in sorted(rows.items())
    ]
    return "\n".join([FINDINGS, *lines, ""])


def errors_page() -> str:
    """Return the page of errors, by class."""
    classes = {
        name: cls
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, errors.FindwellError)
    }
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    for call in calls():
        name = called(call)
        if name in classes and (message := argument(call, 0, "what")):
            rows[name][message] = argument(call, 9, "fix")
    lines = [ERRORS]
    for name, cls in classes.items():
        lines += [f"## {name}", "", fenced(inspect.getdoc(cls) or ""), ""]
        if rows[name]:
            lines += ["| message | what to do |", "|---|---|"]
            lines += [f"| {cell(text)} | {cell(fix)} |" for text, fix in sorted(rows[name].items())]
            lines.append("")
    return "\n".join(lines)


def calls() -> Iterator[ast.Call]:
    """Go through all calls of findwell's code."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield node


def called(call: ast.Call) -> str:
    """Return the name of what is called."""
    return call.func.id if isinstance(call.func, ast.Name) else ""


def kind_of(node: ast.expr) -> str:
    """Return the kind of a finding: a word, or one of those that code decides by."""
    if isinstance(node, ast.Attribute):
        return str(FindingKind[node.attr]) if node.attr in FindingKind.__members__ else ""
    return text_of(node)


def argument(call: ast.Call, position: int, name: str) -> str:
    """Return an argument as text."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return text_of(keyword.value)
    return text_of(call.args[position]) if position < len(call.args) else ""


def text_of(node: ast.expr) -> str:
    """Return the text of a literal; what is put into it becomes an ellipsis."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + (text_of(node.right) or "…") if text_of(node.left) else ""
    return ""

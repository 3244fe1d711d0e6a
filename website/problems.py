"""The reference of findings and errors, from the places in the code where they are made."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import findwell
from findwell.core import errors
from findwell.core.findings import FindingKind, fill_in_count
from website.commands import cell
from website.doctests import fenced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCES = Path(findwell.__file__).parent
FINDING = {"Finding": 3, "finding_about": 2, "finding_about_rows": 2}  # where the message stands
FINDINGS = """# Findings

Look here when findwell reports a finding and you want to know what to do. `findwell check`
lists the findings of your files, with counts and examples; every result holds them. In JSON,
`kind` is the word of the first column. In the messages, … stands for a name or a number.

| kind | message | what to do |
|---|---|---|"""
ERRORS = """# Errors

Look here when a command stops with a message. Search for its words, or open the page of what
you were doing.

Every mistake that you can fix raises a `findwell.FindwellError`. On the command line it is a
message and exit code 2; in Python `error.what`, `error.where` and `error.fix` hold its parts.
In the messages, … stands for a name or a number.
"""
TASKS = {  # the folders of the source that a page is about; the last page has all others
    "reading": ("Reading files and objects", ("io",)),
    "evaluating": ("Measuring and matching", ("evaluation", "measures", "relations", "engines")),
    "judging": ("Judging", ("judges",)),
    "retrieving": ("Asking a retriever", ("retrievers",)),
    "tuning": ("Tuning and fusing", ("loop/tuning",)),
    "labelling": ("Labels and questions", ("loop/labels",)),
    "monitoring": ("Watching production", ("loop/monitoring",)),
    "options": ("Comparing, options and reports", ("",)),
}


LEAD = """A command stopped with a message: find its words here, and what to do. … stands for a
name or a number. [All errors](../errors.md)"""


def findings_page() -> str:
    """Return the page of findings."""
    rows: dict[tuple[str, str], str] = {}
    for call in calls(sources()):
        name = called(call)
        if name not in FINDING or not call.args:
            continue
        kind = kind_of(call.args[0])
        message = _counted(argument(call, FINDING[name], "message"))
        if kind and message:
            rows[kind, message] = argument(call, FINDING[name] + 1, "fix")
    lines = [
        f"| `{kind}` | {cell(text)} | {cell(fix)} |" for (kind, text), fix in sorted(rows.items())
    ]
    return "\n".join([FINDINGS, *lines, ""])


def _counted(message: str) -> str:
    return "…" + fill_in_count(message, 2)[1:] if message.startswith("#") else message


def errors_pages() -> dict[str, str]:
    """Return the pages of errors: an overview, and one per task."""
    classes = {
        name: inspect.getdoc(cls) or ""
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, errors.FindwellError)
    }
    rows: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for path in sources():
        folder = path.relative_to(SOURCES).parent.as_posix()
        (task, *_) = (page for page, (_, own) in TASKS.items() if folder.startswith(own))
        for call in calls([path]):
            name = called(call)
            if name in classes and (message := argument(call, 0, "what")):
                rows[task][name][message] = argument(call, 9, "fix")
    overview = [ERRORS, "| you were | errors |", "|---|---|"]
    found = {}
    for task, (title, _) in TASKS.items():
        overview.append(f"| [{title}](errors/{task}.md) | {', '.join(sorted(rows[task]))} |")
        lines = [f"# Errors: {title.lower()}", "", LEAD, ""]
        for name, messages in sorted(rows[task].items()):
            lines += [f"## {name}", "", "| message | what to do |", "|---|---|"]
            lines += [f"| {cell(text)} | {cell(fix)} |" for text, fix in sorted(messages.items())]
            lines.append("")
        found[f"reference/errors/{task}.md"] = "\n".join(lines)
    for name, text in classes.items():
        overview += ["", f"## {name}", "", fenced(text)]
    return {"reference/errors.md": "\n".join([*overview, ""]), **found}


def sources() -> list[Path]:
    """Return the files of findwell's code."""
    return sorted(SOURCES.rglob("*.py"))


def calls(paths: Iterable[Path]) -> Iterator[ast.Call]:
    """Go through all calls in files."""
    for path in paths:
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

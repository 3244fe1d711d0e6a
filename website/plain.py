"""Every page of the site as Markdown, and `llms.txt`, which lists them: for coding agents.

`python -m website.plain PAGES SITE` puts them next to the built pages.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from textwrap import dedent

TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
TAB = re.compile(r'^=== "(?P<title>[^"]+)"\n(?P<body>(?:\n| {4}.*\n)+)', re.MULTILINE)
HEAD = re.compile(r"\A---\n.*?\n---\n\n", re.DOTALL)  # the title of such a page
NAME = re.compile(r"^::: (?P<module>[\w.]+)\.(?P<name>\w+)$", re.MULTILINE)
INTRODUCTION = """\
# findwell

> Measures how good the retrieval of a RAG system is: a Python library and the command `findwell`.
> It says whether a change made retrieval better, by how much, how sure that is, and for which
> queries.

Every page is also available as Markdown. `findwell skill` prints one page on how to work with
findwell. `findwell COMMAND --format json` prints one object; `findwell schema COMMAND` prints its
layout.
"""
FIRST = ("start", "how-to", "guide", "learn", "reference", "decisions")


def write_plain(pages: Path, site: Path) -> None:
    """Copy the pages as Markdown into the site, and write `llms.txt`."""
    listed: dict[str, list[str]] = {}
    for source in sorted(pages.rglob("*.md")):
        relative = source.relative_to(pages)
        text = without_tabs(with_docstrings(source.read_text(encoding="utf-8")))
        target = site / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        found = TITLE.search(text)
        part = relative.parts[0] if len(relative.parts) > 1 else "guide"
        listed.setdefault(part, []).append(f"- [{found[1] if found else relative}]({relative})")
    lines = [INTRODUCTION]
    for part in sorted(listed, key=FIRST.index):
        lines += [f"## {part.capitalize()}", "", *listed[part], ""]
    (site / "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def with_docstrings(text: str) -> str:
    """Replace the directives of mkdocstrings by signatures and docstrings."""

    def written(directive: re.Match[str]) -> str:
        value = getattr(importlib.import_module(directive["module"]), directive["name"])
        try:
            signature = str(inspect.signature(value))
        except (TypeError, ValueError):
            signature = ""
        title = f"# {directive['module']}.{directive['name']}"
        text = f"{title}\n\n    {directive['name']}{signature}\n\n{inspect.getdoc(value) or ''}\n"
        return text if signature else text.replace(f"\n\n    {directive['name']}\n", "\n", 1)

    return NAME.sub(written, HEAD.sub("", text))


def without_tabs(text: str) -> str:
    """Put the tabs of a page below each other, each under its name.

    >>> without_tabs('=== "Python"\\n\\n    import findwell\\n')
    '**Python**\\n\\nimport findwell\\n'
    """
    return TAB.sub(lambda tab: f"**{tab['title']}**\n{dedent(tab['body'])}", text)


if __name__ == "__main__":
    write_plain(Path(sys.argv[1]), Path(sys.argv[2]))

"""Put the pages of the documentation site together: `python -m website FOLDER`."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from textwrap import dedent, indent

import click

import findwell
from findwell.cli import cli, schema
from findwell.cli.envelope import as_text
from website import commands, measures, problems, python, relations

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/findwell-eval/findwell/blob/main"
PAGES = {
    "reference/findings.md": problems.findings_page,
    "reference/relations.md": relations.page,
}
_LINK = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")

_CONSOLE = re.compile(
    r"^(?P<tab> *)```console\n(?P<lines>.*?)^(?P=tab)```\n", re.MULTILINE | re.DOTALL
)


def assemble(folder: Path) -> None:
    """Write all pages of the site into a folder, which is emptied first."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(ROOT / "docs", folder)
    for source in (ROOT / "docs").rglob("*.md"):
        text = with_links_to_the_repository(source.read_text(encoding="utf-8"), source)
        text = with_drawn_tables(text)
        (folder / source.relative_to(ROOT / "docs")).write_text(text, encoding="utf-8")
    (folder / "demo-report.html").write_text(demo_report(), encoding="utf-8")
    made = {name: page() for name, page in PAGES.items()}
    for part in (commands.pages, measures.pages, problems.errors_pages, python.pages):
        made |= part()
    for name, text in made.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    root = click.Context(cli, info_name="findwell")
    for name, command in schema.commands_with_json(root):
        target = folder / "schemas" / f"{name.replace(' ', '-')}.schema.json"
        target.write_text(as_text(schema.schema_of(name, command)), encoding="utf-8")


def demo_report() -> str:
    """Return the report of the demo, which the first page shows."""
    demo = Path(findwell.__file__).parent / "demo"
    runs = [demo / "bm25.trec", demo / "minilm.trec"]
    gold, corpus = demo / "questions.jsonl", demo / "passages.jsonl"
    measures = ["recall@5", "nDCG@10", "RR"]
    return findwell.report(findwell.evaluate(runs, gold, measures, corpus=corpus))


def with_links_to_the_repository(text: str, source: Path) -> str:
    """Let links that lead out of docs/ lead to the repository: the site lacks those files."""

    def replaced(link: re.Match[str]) -> str:
        target = (source.parent / link["path"]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.exists():
            return link[0]
        return f"]({REPOSITORY}/{target.relative_to(ROOT)}{link['anchor'] or ''})"

    return _LINK.sub(replaced, text)


def with_drawn_tables(text: str) -> str:
    """Let Markdown that a command prints stand below the command, as the table that it is."""

    def drawn(block: re.Match[str]) -> str:
        parts: list[list[str]] = []
        for line in dedent(block["lines"]).splitlines():
            if line.startswith("$ ") or not parts:
                parts.append([])
            parts[-1].append(line)
        written, code = "", ""
        for command, *output in parts:
            if any(line.startswith("| ") for line in output):
                table = "\n".join(output)
                written += f"```console\n{code}{command}\n```\n\n{table}\n\n"
                code = ""
            else:
                code += "\n".join([command, *output]) + "\n"
        written += f"```console\n{code}```\n" if code else ""
        return indent(written, block["tab"])

    return _CONSOLE.sub(drawn, text)


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))

"""Put the pages of the documentation site together: `python -m website FOLDER`."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from website import commands, measures, problems, python, relations

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/findwell-eval/findwell/blob/main"
PAGES = {
    "reference/commands.md": commands.page,
    "reference/errors.md": problems.errors_page,
    "reference/findings.md": problems.findings_page,
    "reference/measures.md": measures.page,
    "reference/python.md": python.page,
    "reference/relations.md": relations.page,
}
_LINK = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def assemble(folder: Path) -> None:
    """Write all pages of the site into a folder, which is emptied first."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(ROOT / "docs", folder)
    for source in (ROOT / "docs").rglob("*.md"):
        text = with_links_to_the_repository(source.read_text(encoding="utf-8"), source)
        (folder / source.relative_to(ROOT / "docs")).write_text(text, encoding="utf-8")
    for name, page in PAGES.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(), encoding="utf-8")


def with_links_to_the_repository(text: str, source: Path) -> str:
    """Let links that lead out of docs/ lead to the repository: the site lacks those files."""

    def replaced(link: re.Match[str]) -> str:
        target = (source.parent / link["path"]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.exists():
            return link[0]
        return f"]({REPOSITORY}/{target.relative_to(ROOT)}{link['anchor'] or ''})"

    return _LINK.sub(replaced, text)


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))

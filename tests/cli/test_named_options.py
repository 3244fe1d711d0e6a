"""Options that pages and messages name exist."""

from __future__ import annotations

import re
from pathlib import Path

import click

from findwell.cli import SETTINGS, cli
from tests.budgets.figures import commands

ROOT = Path(__file__).parents[2]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
# of pip, pytest, gunicorn, spark-submit, promptfoo and of programs in examples; `--help-…` is made
# of a topic
OTHERS = {
    *("--archives", "--find-links", "--force-reinstall", "--forked", "--no-deps", "--no-index"),
    *("--filter-prompts", "--filter-providers", "--no-cache-dir"),
    *("--out", "--pool", "--preload", "--questions", "--help"),
}
# options of earlier days, of pytest and of benchmarks
OF_ITS_DAY_OR_OTHERS = {
    *("CHANGELOG.md", "CONTRIBUTING.md", "RECIPES.md", "benchmarks.md", "judge-cards.md"),
}


def known_options() -> set[str]:
    found: set[str] = set()
    with click.Context(cli, **SETTINGS) as context:
        for _, command in [*commands(cli, context), ("", cli)]:
            for each in command.get_params(context):
                found |= {*each.opts, *each.secondary_opts}
    return found


def test_every_option_that_is_named_exists() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    pages = [page for page in pages if page.parent.name != "decisions"]
    pages = [page for page in pages if page.name not in OF_ITS_DAY_OR_OTHERS]
    sources = (ROOT / "src").rglob("*")
    written = [path for path in sources if path.suffix in (".py", ".toml", ".js", ".j2")]
    known = known_options() | OTHERS
    unknown = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (*pages, *written)
        for name in OPTION.findall(path.read_text(encoding="utf-8"))
        if name not in known
    }
    assert not unknown

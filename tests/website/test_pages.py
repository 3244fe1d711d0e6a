"""The pages of the site that are made from the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from findwell.cli import COMMANDS
from findwell.measures import known_measures
from findwell.relations.match import known_matchers
from tests.lazy import lazy

pytestmark = pytest.mark.docs

website = lazy("website.__main__")
choosing, commands, measures, pictures, plain, problems, python, relations = (
    lazy(f"website.{name}")
    for name in (
        *("choosing", "commands", "measures", "pictures"),
        *("plain", "problems", "python", "relations"),
    )
)


@pytest.mark.parametrize("cls", known_measures().values(), ids=lambda cls: cls.name)
def test_every_measure_has_a_formula_that_can_be_typeset(cls: type) -> None:
    section = "\n".join(measures.section(cls.name, cls))  # type: ignore[attr-defined]
    assert "<math" in section
    assert "```pycon" in section
    assert "merror" not in section


@pytest.mark.parametrize("cls", known_measures().values(), ids=lambda cls: cls.name)
def test_every_measure_says_when_to_use_it(cls: type) -> None:
    section = "\n".join(measures.section(cls.name, cls))  # type: ignore[attr-defined]
    (use,) = (part for part in section.split("\n\n") if part.startswith("**When to use:** "))
    assert use.endswith(".")
    assert use.count(". ") <= 1, "one or two sentences"


def test_all_measures_commands_and_names_are_listed() -> None:
    found = measures.pages()
    shown = "\n".join(found.values())
    assert [name for name in known_measures() if shown.count(f"\n## {name} ") != 1] == []
    written = commands.pages()
    assert all(f"reference/commands/{name}.md" in written for name in COMMANDS)
    assert "::: findwell.evaluate" in python.pages()["reference/python/findwell/evaluate.md"]
    namespaces = [page for page in python.pages() if page.count("/") == 2]
    navigation = (Path(__file__).parents[2] / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in [*found, *written, *namespaces] if page not in navigation] == []


def test_the_diagrams_of_the_course_are_what_the_script_draws() -> None:
    drawn = {f"{name}.svg": draw() for name, draw in pictures.PICTURES.items()}
    assert {path.name: path.read_text("utf-8") for path in pictures.FOLDER.iterdir()} == drawn


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put all pages together."""
    folder = tmp_path_factory.mktemp("pages") / "docs"
    website.assemble(folder)
    return folder


def test_links_out_of_the_docs_lead_to_the_repository(pages: Path) -> None:
    text = (pages / "tuning-honesty.md").read_text()
    assert "](../tests/" not in text
    assert "/blob/main/tests/tuning/simulation.py)" in text


def test_the_course_has_the_rules_of_findwell_choose() -> None:
    page = Path(__file__).parents[2] / "docs" / "learn" / "choosing.md"
    assert choosing.table() in page.read_text(encoding="utf-8")


def test_findings_and_errors_are_listed_with_what_to_do() -> None:
    findings, errors = problems.findings_page(), "\n".join(problems.errors_pages().values())
    for kind in ("no-relevant-item", "tied-scores", "text-as-id"):
        assert f"| `{kind}` |" in findings
    assert "## InputError" in errors
    assert errors.count("\n| ") > 200


def test_all_relations_are_listed_with_their_parameters() -> None:
    shown = relations.page()
    for name, cls in known_matchers().items():
        assert f"| [{name}](#{name}) |" in shown
        section = shown.partition(f"\n## {name} ")[2].partition("\n## ")[0]
        assert all(f"`{key}={value}`" in section for key, value in cls.parameters().items())


def test_every_page_is_there_as_markdown_with_its_docstrings(pages: Path, tmp_path: Path) -> None:
    site = tmp_path / "html"
    plain.write_plain(pages, site)
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    for page in pages.rglob("*.md"):
        assert f"]({page.relative_to(pages)})" in listed
        assert ":::" not in (site / page.relative_to(pages)).read_text(encoding="utf-8")
    evaluated = (site / "reference/python/findwell/evaluate.md").read_text(encoding="utf-8")
    assert evaluated.startswith("# findwell.evaluate\n\n    evaluate(run")
    assert "Measure how well" in evaluated


def test_tables_that_a_command_prints_are_drawn() -> None:
    table = "| run | RR |\n| --- | ---: |\n| a | 1 |"
    text = f"```console\n$ ls demo\nrun\n$ findwell score\n{table}\n$ ls\n```\nNext\n"
    assert website.with_drawn_tables(text) == (
        f"```console\n$ ls demo\nrun\n$ findwell score\n```\n\n{table}\n\n"
        "```console\n$ ls\n```\nNext\n"
    )


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("is the difference significant", "comparing.md"),
        ("how many queries do I need", "comparing.md"),
        ("choose a chunk size", "how-to/compare-chunkers.md"),
        ("no labels", "start/no-labels.md"),
        ("which measure should you use", "learn/choosing.md"),
        ("which measure (metric) fits", "learn/choosing.md"),
        ("## p value", "comparing.md"),
        ("false-alarm", "alarms.md"),
    ],
)
def test_search_finds_what_people_type(typed: str, answer: str) -> None:
    page = Path(__file__).parents[2] / "docs" / answer
    assert typed.lower() in " ".join(page.read_text(encoding="utf-8").lower().split())


def test_tables_inside_a_tab_stay_in_it() -> None:
    text = '=== "Command line"\n\n    ```console\n    $ findwell score\n    | RR |\n    ```\n'
    assert website.with_drawn_tables(text) == (
        '=== "Command line"\n\n    ```console\n    $ findwell score\n    ```\n\n    | RR |\n\n'
    )


def test_tabs_stand_below_each_other_in_markdown() -> None:
    text = 'Ask.\n\n=== "Command line"\n\n    run\n\n=== "Python"\n\n    findwell.gate\n\nNext\n'
    assert plain.without_tabs(text) == (
        "Ask.\n\n**Command line**\n\nrun\n\n**Python**\n\nfindwell.gate\n\nNext\n"
    )


def test_the_glossary_has_the_words_of_the_house() -> None:
    text = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = {
        word for line in text.splitlines() if ":" not in line for word in line.split("**")[1::2]
    }
    asked = [
        "unit",
        "item",
        "relation",
        "measure",
        "dialect",
        "aspect",
        "run",
        "finding",
        "signal",
        "verdict",
    ]
    assert {*asked, "gold labels"} <= words

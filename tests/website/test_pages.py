"""The pages of the site that are made from the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from findwell.cli import COMMANDS
from findwell.measures import known_measures
from findwell.relations.match import known_matchers
from website import choosing, commands, measures, problems, python, relations
from website.__main__ import assemble


@pytest.mark.parametrize("cls", known_measures().values(), ids=lambda cls: cls.name)
def test_every_measure_has_a_formula_that_can_be_typeset(cls: type) -> None:
    section = "\n".join(measures.section(cls.name, cls))  # type: ignore[attr-defined]
    assert "<math" in section
    assert "```pycon" in section
    assert "merror" not in section


def test_all_measures_commands_and_names_are_listed() -> None:
    shown = measures.page()
    assert all(f"\n## {name} " in shown for name in known_measures())
    assert all(f"\n## findwell {name}\n" in commands.page() for name in COMMANDS)
    assert "::: findwell.evaluate" in python.page()


def test_links_out_of_the_docs_lead_to_the_repository(tmp_path: Path) -> None:
    assemble(tmp_path / "docs")
    text = (tmp_path / "docs" / "tuning.md").read_text()
    assert "](../tests/" not in text
    assert "/blob/main/tests/tuning/simulation.py)" in text


def test_the_course_has_the_rules_of_findwell_choose() -> None:
    page = Path(__file__).parents[2] / "docs" / "learn" / "choosing.md"
    assert choosing.table() in page.read_text(encoding="utf-8")


def test_findings_and_errors_are_listed_with_what_to_do() -> None:
    findings, errors = problems.findings_page(), problems.errors_page()
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

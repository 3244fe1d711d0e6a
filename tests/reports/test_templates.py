"""The templates: every text in them is escaped, nothing in them is missing in silence."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import TemplateNotFound, UndefinedError

import findwell
from findwell.core import display
from findwell.show import html, render
from tests import hostile

TEMPLATES = Path(html.__file__).parent / "templates"
# the page's own style and script, its data (see `script_json`), and drawings (see `escape.xml`)
SAFE = {"style | safe", "script | safe", "data | safe", "chart.svg | safe", "row.strip | safe"}
SAFE |= {"chart.axes[few | int] | safe", "answer.bar | safe", "narrow.svg | safe"}


def test_only_what_findwell_made_is_marked_as_safe() -> None:
    found = {
        each.strip()
        for path in TEMPLATES.iterdir()
        for each in re.findall(r"\{\{(.*?)\}\}", path.read_text(encoding="utf-8"))
        if "safe" in each
    }
    assert found == SAFE
    for path in TEMPLATES.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "autoescape" not in text
        assert not re.search(r"\s[\w-]+=\{\{", text), f"{path.name} has an attribute without quotes"


@pytest.mark.parametrize("attack", hostile.ATTACKS)
def test_every_text_is_visible_and_escaped(attack: str) -> None:
    environment = html._environment()
    shown = environment.from_string('<p title="{{ text }}">{{ text }}</p>').render(text=attack)
    inside = shown.removeprefix('<p title="').removesuffix("</p>")
    assert not re.search("[<>\x1b\x07\u202e\u2066\u2028\u2029]", inside.replace('">', ""))
    assert '"' not in inside.replace('">', "")


def test_what_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        html.render("error.html.j2")
    with pytest.raises(TemplateNotFound):
        html.render("nothing.html.j2")


def test_the_import_waits_for_no_template() -> None:
    modules = "findwell.evaluation.results.result, findwell.show.html"
    code = f"import {modules}, sys; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_is_shown_needs_only_its_own_module() -> None:
    code = (
        "from findwell.evaluation.results.result import Result\n"
        "from findwell.evaluation.evaluate import evaluate\n"
        "print(evaluate({'q': ['a']}, {'q': ['a']}, 'RR')._repr_html_()[:5])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "<div>\n"


def test_what_cannot_be_shown_is_refused() -> None:
    result = findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, "RR")
    assert display.render(result, "latex").startswith("% needs")
    assert display.render(findwell.explain(result)[0], "text").startswith("query q")
    with pytest.raises(TypeError, match="cannot be shown as csv"):
        render(findwell.explain(result)[0], "csv")
    with pytest.raises(TypeError, match="str cannot be shown"):
        display.render("text", "html")


def test_every_style_is_used() -> None:
    """Classes and ids of style sheets occur in a string of the code, a template or a script."""
    show = TEMPLATES.parent
    strings = [
        node.value
        for path in show.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for path in (*TEMPLATES.iterdir(), *(show / "assets").glob("*.js")):
        strings += re.findall(r'"[^"\n]*"|`[^`]*`', path.read_text(encoding="utf-8"))
    words = set(re.findall(r"[\w-]+", " ".join(strings)))
    made = re.compile(r"[cks]\d|word-\w+")  # numbered colours, verdicts of signals
    found = {
        name
        for path in (show / "assets").glob("*.css")
        for selector in re.findall(r"([^{}]+)\{", path.read_text(encoding="utf-8"))
        for name in re.findall(r"[.#]([A-Za-z_][\w-]*)", selector)
        if name not in words and not made.fullmatch(name)
    }
    assert found == set()

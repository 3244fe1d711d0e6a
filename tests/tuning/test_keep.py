"""When the choice is not better on held-out queries, every surface says what to keep."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.estimate import Estimate
from findwell.core.verdict import UNCLEAR, Verdict
from findwell.loop.tuning.choice import CURRENT, Gain, worth_keeping
from findwell.show import render, tuning

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

QUERIES = 40


def noisy() -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Make a good retriever and one that only brings noise."""
    pick = random.Random(1)
    docs = [f"d{number}" for number in range(QUERIES)]
    gold = {f"q{number}": [f"d{number}"] for number in range(QUERIES)}

    def run(hit: float) -> dict[str, dict[str, float]]:
        found = {}
        for query, (wanted,) in gold.items():
            others = pick.sample([doc for doc in docs if doc != wanted], 9)
            first = [wanted, *others] if pick.random() < hit else [*others, wanted]
            found[query] = {doc: 1 / (1 + at) for at, doc in enumerate(first)}
        return found

    return {"bm25": run(0.9), "dense": run(0.0)}, gold


@pytest.fixture(scope="module")
def found() -> findwell.tuning.Tuning:
    runs, gold = noisy()
    made: findwell.tuning.Tuning = findwell.tuning.tune(
        runs, gold, "RR", engine="elasticsearch-rrf", permutations=200
    )
    return made


def test_python_says_what_to_keep_and_has_no_snippet(found: findwell.tuning.Tuning) -> None:
    best = {gain.over: gain.value for gain in found.gains}["bm25"]
    assert (found.choice.held_out.value or 0.0) <= (best or 0.0)
    assert (found.keep, found.snippet) == ("bm25", None)
    said = found.as_dict()
    assert (said["keep"], said["snippet"]) == ("bm25", None)


def test_the_first_line_of_every_text_says_what_to_keep(found: findwell.tuning.Tuning) -> None:
    for text in (render(found, "table", width=80), repr(found), found.to_markdown()):
        assert text.splitlines()[0].lstrip("*").startswith("Keep bm25: fusing is not better")
        assert "paste" not in text
    page = tuning.page(found)
    main = page[page.index("<main") :]
    assert main.index("Keep bm25") < main.index("tuned by RR")
    assert 'id="snippet"' not in main
    assert "Configuration" not in page
    notebook = found._repr_html_()
    assert notebook.index("Keep bm25") < notebook.index("<table")


def test_the_command_says_it_too(cli: Findwell, tmp_path: Path) -> None:
    runs, gold = noisy()
    for name, content in {**runs, "gold": gold}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    files = [tmp_path / f"{name}.json" for name in runs]
    how = ("--gold", tmp_path / "gold.json", "-m", "RR", "--engine", "elasticsearch-rrf")
    done = cli("tune", *files, *how)
    assert done.out.startswith("Keep bm25: ")
    assert '"retriever"' not in done.out
    assert cli("tune", *files, *how, "--format", "json").answer["keep"] == "bm25"


def test_a_hybrid_that_is_better_has_a_snippet() -> None:
    gold = {f"q{number}": [f"d{number}", f"e{number}"] for number in range(20)}
    halves = [
        {query: [docs[at], f"x{at}", f"y{at}", "z"] for query, docs in gold.items()}
        for at in range(2)
    ]
    made: findwell.tuning.Tuning = findwell.tuning.tune(
        halves, gold, "recall@3", engine="elasticsearch-rrf"
    )
    assert made.keep is None
    assert made.snippet is not None
    assert "Keep" not in repr(made).splitlines()[0]
    assert 'id="snippet"' in tuning.page(made)


def test_the_current_setting_of_a_retriever_is_kept() -> None:
    records = [
        {"query": f"q{number}", "question": f"{number}", "gold": [f"d{number}"]}
        for number in range(30)
    ]

    def make(shift: int = 0) -> Any:
        return lambda question: [f"d{int(question) + shift + at}" for at in range(3)]

    made = findwell.tuning.tune(make, records, "RR", space={"knobs": {"shift": [-1, 0, 1]}})
    assert made.keep == "current"
    assert made.as_dict()["keep"] == "current"
    said = "Keep the current setting (shift=0): the search found nothing better"
    assert repr(made).startswith(said)
    assert said in tuning.page(made)
    assert made._repr_html_().index("Keep") < made._repr_html_().index("<table")
    worse = findwell.tuning.tune(
        make, records, "RR", space={"knobs": {"shift": [-2, 0]}}, current={"shift": -2}
    )
    assert worse.keep is None


def test_the_best_that_is_not_beaten_is_kept() -> None:
    def gain(over: str, value: float, difference: float | None) -> Gain:
        found = Estimate(difference, None, None, 0.95, "", 0)
        return Gain(over, Verdict(UNCLEAR, found), None, value)

    gains = [gain(CURRENT, 0.6, -0.1), gain("bm25", 0.6, -0.1), gain("dense", 0.4, 0.1)]
    kept = worth_keeping(gains, higher_is_better=True)
    assert kept is not None
    assert kept.over == "bm25"
    lower = worth_keeping(gains, higher_is_better=False)
    assert lower is not None
    assert lower.over == "dense"
    assert worth_keeping([gain("a", 0.5, None), gain("b", 0.4, 0.1)], higher_is_better=True) is None

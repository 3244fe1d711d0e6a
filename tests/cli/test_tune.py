"""`findwell tune` on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell

if TYPE_CHECKING:
    from tests.conftest import Findwell

DEMO = Path(findwell.__file__).parent / "demo"
BM25, MINILM = DEMO / "bm25.trec", DEMO / "minilm.trec"
QUESTIONS = DEMO / "questions.jsonl"
USUAL: tuple[Any, ...] = (
    *("tune", BM25, MINILM, "--gold", QUESTIONS, "-m", "nDCG@10", "-m", "recall@5"),
    *("--engine", "weaviate-relative", "--current", "0.5", "--slice", "wording"),
)


@pytest.fixture(scope="module")
def tuned() -> findwell.tuning.Tuning:
    """Return what the command finds, from Python."""
    return findwell.tuning.tune(
        [str(BM25), str(MINILM)],
        str(QUESTIONS),
        ["nDCG@10", "recall@5"],
        engine="weaviate-relative",
        current=0.5,
        slices="wording",
    )


def test_table_json_page_and_python_say_the_same(
    cli: Findwell, tuned: findwell.tuning.Tuning, tmp_path: Path
) -> None:
    expected = tuned.as_dict()
    page, picture, run = tmp_path / "t.html", tmp_path / "t.svg", tmp_path / "fused.trec"
    whole = tmp_path / "t.json"
    written = [str(each) for each in (page, picture, run, whole)]
    found = cli(*USUAL, "--format", "json", *(word for each in written for word in ("-o", each)))
    assert found.code == 0
    assert json.loads(found.out)["files"] == written
    envelope = json.loads(whole.read_text())
    said = {**envelope["result"], "findings": expected["findings"]}
    assert len(envelope["findings"]) == len(expected["findings"])
    assert said == json.loads(json.dumps(expected))
    held = f"{expected['held_out']['value']:.3f}"
    html, table = page.read_text(), cli(*USUAL)
    for text in (table.out, html, repr(tuned), tuned.to_markdown(), tuned._repr_html_()):
        assert held in text
        assert f"{expected['in_sample']:.3f}" in text
        for gain in expected["gains"]:
            assert gain["verdict"] in text
            assert f"{abs(gain['difference']):.3f}" in text
    assert "alpha=" in table.out
    assert "chosen" in picture.read_text()
    assert "note: 4 queries have no relevant item" in table.err
    fused = findwell.evaluate(str(run), str(QUESTIONS), "nDCG@10")
    assert fused["nDCG@10"] == pytest.approx(expected["in_sample"], abs=1e-12)


def test_the_json_is_what_the_documentation_promises(tuned: findwell.tuning.Tuning) -> None:
    said = tuned.as_dict()
    assert list(said["held_out"]) == ["value", "low", "high"]
    assert said["engine"] == "weaviate-relative"
    assert said["chosen"] == tuned.chosen.as_dict()
    assert said["plateau"][0].keys() == said["chosen"].keys()
    names = {"over", "difference", "low", "high", "p", "verdict"}
    assert [gain["over"] for gain in said["gains"]] == ["current", "bm25", "minilm"]
    assert all(names <= gain.keys() for gain in said["gains"])
    assert 0 <= said["stability"] <= 1
    assert said["optimism"] == said["in_sample"] - said["held_out"]["value"]


def test_the_table_fits_a_terminal(cli: Findwell) -> None:
    table = cli(*USUAL).out.partition("to paste into")[0]
    assert max(map(len, table.splitlines()[1:])) <= 80
    chart = re.findall(r"│(.*)", table)
    assert len(chart) == 11
    assert "◆" in "".join(chart)
    assert "○" in "".join(chart)


def test_the_same_seed_gives_the_same_output(cli: Findwell) -> None:
    first, again = (cli(*USUAL, "--format", "json", "--seed", "3").out for _ in range(2))
    assert first == again
    assert first != cli(*USUAL, "--format", "json", "--seed", "4").out


def test_three_runs_and_a_constant(cli: Findwell) -> None:
    three = ("tune", BM25, MINILM, BM25, "--gold", QUESTIONS, "--engine", "qdrant-rrf")
    assert "the best 8 settings" in cli(*three, "--step", "0.25").out
    constant = ("tune", BM25, MINILM, "--gold", QUESTIONS, "--engine", "course-rrf")
    found = cli(*constant, "--current", "60", "--format", "json").answer
    assert found["current"] == {"k": 60.0}
    assert set(found["chosen"]) == {"k"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--engine", "weaviat"), "did you mean weaviate"),
        (("--engine", "qdrant-dbsf"), "no weights and no constant"),
        (("--engine", "qdrant-rrf", "--current", "2"), "share of the first of two runs"),
        (("--engine", "opensearch-rrf", "--current", "0.7,0.7"), "does not take the weights"),
        (("--engine", "qdrant-rrf", "--folds", "1"), "--folds"),
        (("--engine", "qdrant-rrf", "--slice", "nothing"), "nothing"),
        (("--engine", "qdrant-rrf", "-o", "no/such/folder/x.trec"), "no/such/folder"),
    ],
)
def test_mistakes_are_named(cli: Findwell, options: tuple[str, ...], says: str) -> None:
    done = cli("tune", BM25, MINILM, "--gold", QUESTIONS, *options)
    assert done.code == 2
    assert says in done.err


def test_few_queries_and_other_runs(cli: Findwell, tmp_path: Path) -> None:
    gold = tmp_path / "few.jsonl"
    gold.write_text("".join(QUESTIONS.read_text().splitlines(keepends=True)[:9]))
    done = cli("tune", BM25, MINILM, "--gold", gold, "--engine", "qdrant-rrf")
    assert done.code == 2
    assert "fewer than 10" in done.err
    other = tmp_path / "other.trec"
    other.write_text("z1 Q0 d1 1 0.5 x\n")
    done = cli("tune", BM25, other, "--gold", QUESTIONS, "--engine", "qdrant-rrf")
    assert done.code == 2
    assert "shares no query with" in done.err


def test_ids_with_blanks_go_to_json_lines(cli: Findwell, tmp_path: Path) -> None:
    records = [
        {"query": f"q{n}", "retrieved": [{"doc": f"my doc {n}", "score": 1.0}]} for n in range(12)
    ]
    run, gold, out = tmp_path / "a.jsonl", tmp_path / "gold.json", tmp_path / "fused.jsonl"
    run.write_text("".join(json.dumps(each) + "\n" for each in records))
    gold.write_text(json.dumps({f"q{n}": [f"my doc {n}"] for n in range(12)}))
    both = ("tune", run, run, "--gold", gold, "--engine", "qdrant-rrf", "-m", "RR")
    done = cli(*both, "-o", tmp_path / "fused.trec")
    assert done.code == 2
    assert ".jsonl" in done.err
    assert not (tmp_path / "fused.trec").exists()
    assert cli(*both, "-o", out).code == 0
    assert findwell.evaluate(str(out), str(gold), "RR")["RR"] == 1


def test_a_dry_run_counts_each_document_once(cli: Findwell) -> None:
    judged = ("-m", "P@3/relevance", "--judge", "openai:some-model", "-J", "cache=off", "--dry-run")
    corpus = ("--corpus", DEMO / "passages.jsonl", "-J", "base_url=http://localhost:1/v1")
    done = cli(
        "tune", BM25, MINILM, "--gold", QUESTIONS, "--engine", "qdrant-rrf", *judged, *corpus
    )
    assert done.code == 0
    assert "nothing was asked" in done.out

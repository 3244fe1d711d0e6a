"""`findwell labels pool`: a folder to label from, and what precision the budget buys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

DEMO = Path(findwell.__file__).parent / "demo"
RUNS = (DEMO / "bm25.trec", DEMO / "minilm.trec")
TEXTS = ("--queries", DEMO / "questions.jsonl", "--corpus", DEMO / "passages.jsonl")


def test_for_ordering(cli: Findwell, tmp_path: Path) -> None:
    done = cli("labels", "pool", *RUNS, *TEXTS, "--budget", 200, "-o", tmp_path / "pool")
    assert done.code == 0
    assert "1,589 pairs, 95 queries, 2 runs · mm-ns" in done.out
    assert "for that, --for values" in done.err
    assert max(map(len, done.out.splitlines())) <= 80
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        pair = labels.next()
        assert pair is not None
        assert pair.total == 200
        assert pair.question.endswith("?")
        assert pair.text


def test_the_same_as_in_python(cli: Findwell, tmp_path: Path) -> None:
    how = ("--for", "values", "--budget", 150, "--judge", "local:text", "--format", "json")
    done = cli("labels", "pool", *RUNS, *TEXTS, *how, "-o", tmp_path / "one")
    assert done.code == 0, done.err
    shown = done.answer
    made = findwell.labels.pool(
        RUNS,
        tmp_path / "two",
        queries=DEMO / "questions.jsonl",
        corpus=DEMO / "passages.jsonl",
        purpose="values",
        budget=150,
        judge="local:text",
    )
    assert shown["precision"] == made.precision().to_dicts()
    assert shown["pool"]["judge"] == "local:text"
    for name in ("one", "two"):
        with findwell.labels.Labels.open(tmp_path / name) as labels:
            drawn = labels.candidates()
        assert drawn.drop("best").equals(
            made.pairs.select("query", "doc", "judge", "design", "stratum", "probability", "place")
            .with_columns(sampled=made.pairs["place"].is_not_null())
            .drop("place")
        )
    assert made.pairs["stratum"].n_unique() > 1


def test_the_order_of_runs_and_queries_changes_nothing(tmp_path: Path) -> None:
    one = {"q1": ["a", "b"], "q2": ["c", "d", "e"]}
    two = {"q1": ["b", "x"], "q2": ["y", "c"]}
    turned = [dict(reversed(run.items())) for run in (two, one)]
    offered = []
    for number, runs in enumerate(
        ({"one": one, "two": two}, dict(zip(("two", "one"), turned, strict=True)))
    ):
        for purpose in ("ordering", "values"):
            folder = tmp_path / f"{number}{purpose}"
            findwell.labels.pool(runs, folder, purpose=purpose, budget=5)
            with findwell.labels.Labels.open(folder, "ann") as labels:
                seen = []
                while (pair := labels.next()) is not None:
                    seen.append((pair.query, pair.doc))
                    labels.set(pair.query, pair.doc, int(pair.doc in "ac"))
            offered.append(seen)
    assert offered[:2] == offered[2:]


def test_grades_that_were_given_before(cli: Findwell, save: Save, tmp_path: Path) -> None:
    run = save("run.json", json.dumps({"q": [f"d{number}" for number in range(10)]}))
    judged = save("judged.txt", "".join(f"q 0 d{number} {number % 3}\n" for number in range(9)))
    how = ("--for", "values", "--judged", judged, "--budget", 8)
    done = cli("labels", "pool", run, *how, "-o", tmp_path / "pool")
    assert done.code == 0
    assert " no grade of the judge" in done.err
    with findwell.labels.Labels.open(tmp_path / "pool") as labels:
        strata = labels.candidates()["stratum"]
    assert sorted(strata.unique()) == ["judge 0", "judge 1", "judge 2", "not judged"]


def test_a_dry_run_writes_nothing(cli: Findwell, tmp_path: Path) -> None:
    how = (
        "--judge",
        "openai:m",
        "-J",
        "base_url=http://127.0.0.1:9/v1",
        "-J",
        "cache=off",
        "--dry-run",
    )
    done = cli("labels", "pool", *RUNS, *TEXTS, "--for", "values", *how, "-o", tmp_path / "pool")
    assert done.code == 0
    assert done.out.startswith("calls: 95")
    assert not (tmp_path / "pool").exists()


def test_a_pool_of_records_that_hold_everything(cli: Findwell, save: Save, tmp_path: Path) -> None:
    record = {"user_input": "Why?", "retrieved_contexts": ["Because.", "So."]}
    guidelines = save("guide.md", "1 answers the question.")
    done = cli("labels", "pool", save("samples.jsonl", json.dumps(record) + "\n"), "--highest", 1,
        "--guidelines", guidelines, "-o", tmp_path / "pool",
    )  # fmt: skip
    assert done.code == 0
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        assert labels.guidelines == "1 answers the question."
        assert labels.highest == 1
        pair = labels.next()
        assert pair is not None
        assert (pair.question, pair.text) == ("Why?", "Because.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run.json", "--overlap", "150%"], "'150%' is not a share"),
        (["run.json", "--overlap", "some"], "'some' is not a share"),
        (["run.json", "--for", "values", "--method", "mtf"], "biases absolute values"),
        (["run.json", "--for", "nothing"], "'nothing' is not one of"),
        (["run.json", "--budget", "0"], "0 must be at least 1"),
        (["run.json", "-o", "run.json"], "this is not a folder"),
        (["empty.json"], "contains no queries"),
        (["run.json", "--queries", "nosuch"], "nosuch: no such file"),
        (["run.json", "--judge", "locl"], "unknown judge 'locl'"),
        (["run.json", "--judged", "run.json", "--judge", "local:text"], "are both given"),
        (["run.json", "--pilot", "other.json"], "no pair of the pilot"),
    ],
)
def test_mistakes(
    arguments: list[str], message: str, cli: Findwell, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(save("run.json", '{"q": ["a", "b"]}').parent)
    save("empty.json", "{}")
    save("other.json", '{"r": {"a": 1}}')
    done = cli("labels", "pool", *arguments)
    assert done.code == 2
    assert message in done.err
    assert not Path("pool").exists()


def test_a_pool_is_made_larger(cli: Findwell, tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    cli("labels", "pool", *RUNS, "--for", "values", "--budget", 40, "-o", folder)
    with findwell.labels.Labels.open(folder, "ann") as labels:
        while (pair := labels.next()) is not None:
            labels.set(pair.query, pair.doc, int(len(pair.doc) % 4 == 0))
    shown = cli("labels", "pool", folder, "--format", "json").answer
    assert shown["precision"][0]["basis"] == "pilot of 40 labels"
    done = cli("labels", "pool", folder, "--budget", 90)
    assert done.code == 0
    assert "what the labels of the pilot make likely" in done.err
    with findwell.labels.Labels.open(folder, "ann") as labels:
        assert labels.progress().left == 50
    for arguments in (["--depth", "5"], ["--for", "ordering"], ["-o", tmp_path / "other"]):
        assert cli("labels", "pool", folder, *arguments).code == 2


def test_verdicts_of_a_saved_result(cli: Findwell, tmp_path: Path) -> None:
    """They are those that asking the judge again would give."""
    how = ("--corpus", DEMO / "passages.jsonl", "--gold", DEMO / "questions.jsonl")
    judge = ("-m", "P@3/relevance", "--judge", "local:text", "--save", tmp_path / "judged")
    assert cli("score", RUNS[0], *how, *judge).code == 0
    pool = ("--for", "values", "--budget", 60, "--depth", 3)
    done = cli(
        "labels",
        "pool",
        RUNS[0],
        *TEXTS,
        *pool,
        "--judged",
        tmp_path / "judged",
        "-o",
        tmp_path / "a",
    )
    assert done.code == 0, done.err
    cli("labels", "pool", RUNS[0], *TEXTS, *pool, "--judge", "local:text", "-o", tmp_path / "b")
    grades = []
    for name in "ab":
        with findwell.labels.Labels.open(tmp_path / name) as labels:
            grades.append(labels.candidates()["judge"].to_list())
    assert grades[0] == grades[1]
    assert set(grades[0]) > {0.0}
    assert (
        cli("score", RUNS[0], "--gold", DEMO / "questions.jsonl", "--save", tmp_path / "c").code
        == 0
    )
    done = cli(
        "labels",
        "pool",
        RUNS[0],
        "--for",
        "values",
        "--judged",
        tmp_path / "c",
        "-o",
        tmp_path / "d",
    )
    assert done.code == 2
    assert "no verdicts about relevance" in done.err

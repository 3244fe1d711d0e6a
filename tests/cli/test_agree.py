"""`findwell labels agree`: tells what it is given, prints, refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell
from tests import sample

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

DEMO = Path(findwell.__file__).parent / "demo"


def test_rankings(cli: Findwell) -> None:
    done = cli("labels", "agree", DEMO / "bm25.trec", DEMO / "minilm.trec", "--details", "-k", "10")
    assert done.code == 0
    assert "rankings: the mean over queries" in done.out
    assert " q01 " in done.out
    shown = cli("labels", "agree", *[DEMO / "bm25.trec"] * 2, "--format", "json").answer
    assert shown["kind"] == "rankings"
    assert shown["agreement"][0]["value"] == pytest.approx(1.0)


def test_labels(cli: Findwell, save: Save) -> None:
    qrels = save("qrels.txt", sample.qrels())
    done = cli("labels", "agree", qrels, qrels)
    assert done.code == 0
    assert "how often: the first in rows" in done.out
    table = save("labels.csv", "query,verdict\nq1,good\nq2,bad\n")
    done = cli("labels", "agree", table, table, "--column", "verdict", "--format", "csv")
    assert done.out.splitlines()[2].startswith("kappa,1.0,")


def test_systems(cli: Findwell, tmp_path: Path) -> None:
    runs = [DEMO / "bm25.trec", DEMO / "minilm.trec"]
    folder = findwell.evaluate(runs, DEMO / "questions.jsonl").save(tmp_path / "result")
    done = cli(
        "labels", "agree", folder, folder, "-m", "recall@5", "--format", "markdown", "--details"
    )
    assert done.code == 0
    assert "| tau recall@5 | 1.000 | 2 | 0 |" in done.out
    assert "| recall@5 | bm25 | 0.6181 | 0.6181 |" in done.out


def test_findings_are_told(cli: Findwell, save: Save) -> None:
    one, other = save("a.txt", "q1 0 a 1\nq1 0 b 0\n"), save("b.txt", "q1 0 a 1\n")
    assert (
        "1 label is only on one side and left out (q1 b)" in cli("labels", "agree", one, other).err
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.json"], "agreement needs two sides; you gave one"),
        (["a.json", "a.json"], "may hold rankings or labels\n  fix: say --kind"),
        (["nosuch", "a.json"], "nosuch: no such file"),
        (["a.json", "nosuch", "--kind", "rankings"], "nosuch: no such file"),
        (["a.json", "a.json", "--kind", "rankings", "-p", "1"], "persistence p is 1.0"),
        (["a.json", "a.json", "--kind", "labels", "--level", "7"], "level is 7.0"),
        (["a.json", "a.json", "--kind", "systems"], "not a complete findwell result"),
        (["a.json", "b.json", "--kind", "rankings"], "share no query"),
        (["table.csv", "table.csv", "--column", "x"], "unknown column 'x'"),
    ],
)
def test_mistakes(
    arguments: list[str], message: str, cli: Findwell, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(save("a.json", '{"q": {"a": 1}}').parent)
    save("b.json", '{"r": {"a": 1}}')
    save("table.csv", "query,verdict\nq1,a\n")
    done = cli("labels", "agree", *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert done.out == ""

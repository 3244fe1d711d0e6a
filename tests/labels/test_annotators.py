"""Several annotators: who labels what, blind to each other, and how far they agree."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.loop.labels.label_pool import uniform

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

RUNS = [{f"q{q}": [f"d{d}" for d in range(6)] for q in range(10)}]
NAMES = ("ann", "ben", "eva")


def label_all(pool: Path, grade: dict[str, int] | None = None) -> None:
    """Let all annotators take turns until nothing is left."""
    with findwell.labels.Labels.open(pool) as labels:
        going = list(NAMES)
        while going:
            for name in list(going):
                pair = labels.next(name)
                if pair is None:
                    going.remove(name)
                else:
                    assert pair.grade is None  # blind to what others said
                    labels.set(pair.query, pair.doc, (grade or {}).get(name, 0), annotator=name)


@pytest.mark.parametrize("purpose", ["ordering", "values"])
def test_overlap(purpose: str, tmp_path: Path) -> None:
    findwell.labels.pool(RUNS, tmp_path / "pool", overlap=0.3, purpose=purpose, seed=5)
    label_all(tmp_path / "pool")
    with findwell.labels.Labels.open(tmp_path / "pool") as labels:
        rows = labels.frame().select("query", "doc", "annotator").rows()
        assert all(labels.progress(name).left == 0 for name in NAMES)
    times = Counter((query, doc) for query, doc, _ in rows)
    shared = {pair for pair in times if uniform(5, "overlap", *pair) < 0.3}
    assert len(times) == 60
    assert 8 <= len(shared) <= 28
    assert {pair for pair, count in times.items() if count == 3} == shared
    assert {count for pair, count in times.items() if pair not in shared} == {1}
    alone = Counter(name for query, doc, name in rows if (query, doc) not in shared)
    assert max(alone.values()) - min(alone.values()) <= 2  # they share the work


def test_a_pair_that_somebody_looks_at_is_not_offered_to_others(tmp_path: Path) -> None:
    findwell.labels.pool(RUNS, tmp_path / "pool", purpose="values")
    with (
        findwell.labels.Labels.open(tmp_path / "pool") as one,
        findwell.labels.Labels.open(tmp_path / "pool") as two,
    ):
        first, second = one.next("ann"), two.next("ben")
        assert first is not None
        assert second is not None
        assert (first.query, first.doc) != (second.query, second.doc)
        again = one.next("ann")  # a reload shows the same pair
        assert again is not None
        assert (again.query, again.doc) == (first.query, first.doc)


def test_what_annotators_share_depends_on_names_and_seed_alone(tmp_path: Path) -> None:
    for number, runs in enumerate((RUNS, [dict(reversed(RUNS[0].items()))])):
        findwell.labels.pool(runs, tmp_path / str(number), overlap=0.5)
        label_all(tmp_path / str(number))
    counted = []
    for number in range(2):
        with findwell.labels.Labels.open(tmp_path / str(number)) as labels:
            rows = labels.frame().select("query", "doc").rows()
            counted.append({pair for pair, count in Counter(rows).items() if count == 3})
    assert counted[0] == counted[1]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """Ann and Ben agree but about q1; Eva says 1 to everything."""
    findwell.labels.pool([{"q1": ["a", "b"], "q2": ["c", "d", "e"]}], tmp_path / "pool", highest=1)
    said = {"ann": "10100", "ben": "01100", "eva": "11111"}
    with findwell.labels.Labels.open(tmp_path / "pool") as labels:
        for name, grades in said.items():
            for doc, grade in zip("abcde", grades, strict=True):
                query = "q1" if doc in "ab" else "q2"
                labels.set(query, doc, int(grade), annotator=name)
    return tmp_path / "pool"


def test_agreement(pool: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        found = labels.agreement()
    # pairs of annotators that agree: a 1 of 3, b 1, c 3, d 1, e 1
    assert found["agreement"] == pytest.approx(7 / 15)
    assert found["prevalence"] == pytest.approx(9 / 15)
    least = found.details.filter(of="query").row(0, named=True)
    assert (least["name"], least["agreement"]) == ("q1", pytest.approx(1 / 3))
    two = dict(found.details.filter(of="two annotators").select("name", "agreement").rows())
    assert two == {
        "ann – ben": pytest.approx(0.6),
        "ann – eva": pytest.approx(0.4),
        "ben – eva": pytest.approx(0.4),
    }
    ann = found.details.filter(of="annotator", name="ann").row(0, named=True)
    assert (ann["agreement"], ann["prevalence"], ann["shared"]) == (pytest.approx(0.5), 0.4, 5)


def test_the_same_from_python_and_the_command_line(pool: Path, cli: Findwell) -> None:
    found = findwell.labels.agree(pool)
    assert found.kind == "annotators"
    with findwell.labels.Labels.open(pool) as labels:
        assert findwell.labels.agree(labels).as_dict() == found.as_dict()
        assert labels.agreement()["alpha (nominal)"] == found["alpha (nominal)"]
    assert cli("labels", "agree", pool, "--format", "json").answer == found.as_dict()
    shown = cli("labels", "agree", pool / "labels.db", "--details").out
    assert "annotators: n counts pairs" in shown
    assert shown.index(" q1 ") < shown.index(" q2 ")  # the least clear query first


def test_adjudication_does_not_count_as_agreement(pool: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        before = labels.agreement().summary
        labels.adjudicate("q1", "a", 1, annotator="kim")
        assert labels.agreement().summary.equals(before)


def test_nobody_shares_a_pair(tmp_path: Path) -> None:
    findwell.labels.pool([{"q1": ["a", "b"]}], tmp_path / "pool")
    with findwell.labels.Labels.open(tmp_path / "pool") as labels:
        assert labels.agreement()["agreement"] is None  # there is no label at all
        labels.set("q1", "a", 1, annotator="ann")
        labels.set("q1", "b", 1, annotator="ben")
        found = labels.agreement()
    assert found["agreement"] is None
    assert [each.kind for each in found.findings] == ["single-label"]


def test_one_side_that_is_no_pool(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"q": ["a"]}))
    with pytest.raises(OptionError, match="agreement needs two sides"):
        findwell.labels.agree(tmp_path / "run.json")

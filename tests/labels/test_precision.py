"""What precision a budget buys: what is announced is what repeated samples give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError, OptionError
from findwell.loop.labels.label_pool import allocate, draw

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.core.data import Bools, Floats

QUERIES, DEPTH = 60, 10


def collection(rng: np.random.Generator) -> tuple[list[dict[str, list[str]]], dict[str, set[str]]]:
    """Return two runs of which the first is better, and what is relevant; queries differ."""
    runs: list[dict[str, list[str]]] = [{}, {}]
    relevant: dict[str, set[str]] = {}
    for number in range(QUERIES):
        query = f"q{number}"
        ease = rng.beta(1.5, 3)
        docs = [f"d{each}" for each in range(30)]
        rate = ease * np.exp(-np.arange(30) / 12)
        relevant[query] = {doc for doc, p in zip(docs, rate, strict=True) if rng.random() < p}
        for run, noise in zip(runs, (4, 9), strict=True):
            order = np.argsort(np.arange(30) + rng.normal(0, noise, 30))
            run[query] = [docs[at] for at in order[:DEPTH]]
    return runs, relevant


def judged_by(
    rng: np.random.Generator, relevant: dict[str, set[str]], runs: list[dict[str, list[str]]]
) -> dict[str, dict[str, int]]:
    """Return the grades of a judge who errs about one pair in six."""
    grades: dict[str, dict[str, int]] = {}
    for run in runs:
        for query, docs in run.items():
            for doc in docs:
                right = (doc in relevant[query]) == (rng.random() > 1 / 6)
                grades.setdefault(query, {}).setdefault(doc, int(right))
    return grades


class Simulation:
    """A pool whose truth is known, and what samples of it give."""

    def __init__(self, folder: Path, *, judge: bool, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        runs, self.relevant = collection(rng)
        judged = judged_by(rng, self.relevant, runs) if judge else None
        self.pool = findwell.labels.pool(runs, folder, purpose="values", budget=200, judged=judged)
        pairs = self.pool.pairs
        self.truth = np.array(
            [doc in self.relevant[query] for query, doc in pairs.select("query", "doc").rows()]
        ).astype(float)
        self.query = pairs["query"].rle_id().to_numpy()
        self.strata = pairs["stratum"].to_list()
        ranks = self.pool.ranks.filter(run=0)
        self.top = np.zeros(pairs.height)
        self.top[ranks["pair"].to_numpy()] = 1.0

    def estimates(self, budget: int, repeats: int) -> tuple[Floats, Floats]:
        """Estimate P@10 and pooled recall@10 of the first run from samples, stratum by stratum."""
        rng = np.random.default_rng(9)
        names, code = np.unique(self.strata, return_inverse=True)
        found = []
        for _ in range(repeats):
            drawn = draw(self.strata, rng.random(len(self.truth)), budget)
            label: Bools = drawn.place >= 0
            expected = np.zeros(len(names))
            for stratum in range(len(names)):
                expected[stratum] = self.truth[label & (code == stratum)].mean()
            rest = np.where(label, self.truth - expected[code], 0) / drawn.probability
            value = expected[code] + rest
            found.append((value @ self.top, value.sum()))
        above, below = np.array(found).T
        return above / (DEPTH * QUERIES), above / below


def announced(
    pool: findwell.labels.LabelPool, budget: int, measure: str, **how: object
) -> tuple[float, str]:
    row = pool.precision([budget], **how).filter(measure=measure).row(0, named=True)  # type: ignore[arg-type]
    return row["these"], row["basis"]


@pytest.mark.parametrize("judge", [False, True])
def test_what_is_announced_from_a_full_pilot_is_what_samples_give(
    judge: bool, tmp_path: Path
) -> None:
    made = Simulation(tmp_path / "pool", judge=judge)
    pilot = {
        query: {doc: int(doc in made.relevant[query]) for doc in docs}
        for query, docs in made.pool.pairs.group_by("query", maintain_order=True).agg("doc").rows()
    }
    for budget in (100, 200):
        precision, recall = made.estimates(budget, 400)
        for values, measure in ((precision, "P@10"), (recall, "recall@10")):
            half, basis = announced(made.pool, budget, measure, pilot=pilot)
            assert half == pytest.approx(1.96 * values.std(), rel=0.15)
            assert basis.startswith("pilot of")


def test_the_judge_alone_promises_no_gain_of_strata(tmp_path: Path) -> None:
    made = Simulation(tmp_path / "pool", judge=True)
    precision, _ = made.estimates(200, 300)
    half, basis = announced(made.pool, 200, "P@10")
    assert basis == "judge"
    assert 1.0 < half / (1.96 * precision.std()) < 1.8


def test_without_anything_it_is_the_worst_case(tmp_path: Path) -> None:
    made = Simulation(tmp_path / "pool", judge=False)
    precision, _ = made.estimates(200, 300)
    half, basis = announced(made.pool, 200, "P@10")
    assert basis == "worst case"
    assert half / (1.96 * precision.std()) > 1.0
    assert announced(made.pool, 200, "recall@10")[0] is None


def test_about_new_queries(tmp_path: Path) -> None:
    """Half-widths cover what other queries would have given: pools of other queries differ so."""
    truths = []
    for seed in range(60):
        runs, relevant = collection(np.random.default_rng(1000 + seed))
        hits = [len(set(docs) & relevant[query]) / DEPTH for query, docs in runs[0].items()]
        truths.append(np.mean(hits))
    made = Simulation(tmp_path / "pool", judge=False)
    pilot = {query: dict.fromkeys(docs, 1) for query, docs in made.relevant.items()}
    for query, docs in made.pool.pairs.group_by("query").agg("doc").rows():
        pilot[query] = {doc: int(doc in made.relevant[query]) for doc in docs}
    everything = made.pool.pairs.height
    row = made.pool.precision([everything], pilot=pilot).filter(measure="P@10").row(0, named=True)
    assert row["these"] == 0
    assert row["new"] == pytest.approx(1.96 * np.std(truths), rel=0.25)


def test_more_labels_are_never_worse(tmp_path: Path) -> None:
    for purpose in ("values", "ordering"):
        runs, _ = collection(np.random.default_rng(3))
        pool = findwell.labels.pool(runs, tmp_path / purpose, purpose=purpose, budget=100)
        for _, rows in pool.precision([50, 100, 200, 400, pool.pairs.height]).group_by(
            "run", "measure"
        ):
            widths = rows.sort("budget")["these"].drop_nulls().to_list()
            assert widths == sorted(widths, reverse=True)
            assert not widths or widths[-1] == 0


def test_orders_have_bounds(tmp_path: Path) -> None:
    runs = [{"q": [f"d{number}" for number in range(10)]}]
    pool = findwell.labels.pool(
        runs, tmp_path / "pool", purpose="ordering", method="depth", budget=4
    )
    row = pool.precision([4]).filter(measure="P@10").row(0, named=True)
    assert row["these"] == pytest.approx(0.3)  # six of ten may be relevant or not


def test_a_pilot_of_other_pairs(tmp_path: Path) -> None:
    runs, _ = collection(np.random.default_rng(3))
    pool = findwell.labels.pool(runs, tmp_path / "pool", purpose="values", budget=50)
    with pytest.raises(AlignError, match="no pair of the pilot"):
        pool.precision(pilot={"other": ["d1"]})


def test_the_sample_is_what_it_says() -> None:
    """Every pair is drawn as often as its probability says."""
    rng = np.random.default_rng(4)
    strata = ["a"] * 70 + ["b"] * 25 + ["c"] * 5
    times = np.zeros(100)
    for _ in range(2000):
        drawn = draw(strata, rng.random(100), 20)
        assert (drawn.place >= 0).sum() == 20
        times += drawn.place >= 0
    assert drawn.probability[[0, 70, 95]].tolist() == [0.2, 0.16, 0.4]
    assert np.abs(times / 2000 - drawn.probability).max() < 0.05


def test_every_beginning_of_a_sample_is_one() -> None:
    rng = np.random.default_rng(6)
    strata = ["a"] * 80 + ["b"] * 20
    drawn = draw(strata, rng.random(100), 50)
    order = np.argsort(np.where(drawn.place >= 0, drawn.place, 1000))[:50]
    for size in (5, 10, 25):
        of_b = (order[:size] >= 80).sum()
        assert abs(of_b - size / 5) <= 1


def test_a_larger_budget_holds_the_smaller_sample() -> None:
    keys = np.random.default_rng(8).random(200)
    strata = ["a", "b"] * 100
    small, large = (set(np.flatnonzero(draw(strata, keys, n).place >= 0)) for n in (30, 60))
    assert small < large


@pytest.mark.parametrize("sizes", [[90, 9, 1], [1, 1, 1, 500], [10], [3, 3, 3]])
def test_allocation(sizes: list[int]) -> None:
    for budget in range(len(sizes), sum(sizes) + 2):
        counts = allocate(np.array(sizes), budget)
        assert counts.sum() == min(budget, sum(sizes))
        assert (counts <= sizes).all()
        assert (counts >= 1).all()


def test_probabilities_stay_with_the_labels(tmp_path: Path) -> None:
    made = Simulation(tmp_path / "pool", judge=True)
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        for _ in range(50):
            pair = labels.next()
            assert pair is not None
            labels.set(pair.query, pair.doc, 1)
        frame = labels.frame()
        assert frame["design"].unique().to_list() == ["sample"]
        planned = made.pool.pairs.select("query", "doc", "stratum", planned="probability")
        assert frame.select(planned.columns).equals(
            frame.select("query", "doc").join(
                planned, on=["query", "doc"], how="left", maintain_order="left"
            )
        )
        # of a sample that is not finished the chance is that of what has been labelled
        sizes = dict(made.pool.pairs["stratum"].value_counts().rows())
        for stratum, rows in frame.group_by("stratum"):
            expected = rows.height / sizes[stratum[0]]
            assert rows["probability"].to_list() == pytest.approx([expected] * rows.height)
        while (pair := labels.next()) is not None:
            labels.set(pair.query, pair.doc, 0)
        done = labels.frame()
        assert done.height == 200
        assert done["probability"].to_list() == pytest.approx(done["planned"].to_list())
        assert labels.candidates()["sampled"].sum() == 200
    assert pl.Series(done["planned"]).is_between(0, 1).all()


def test_a_pair_out_of_turn_is_no_part_of_the_sample(tmp_path: Path) -> None:
    """Labels of pairs that were not drawn, or whose turn has not come, have no probability."""
    made = Simulation(tmp_path / "pool", judge=True)
    pairs = made.pool.pairs
    first, later = (pairs.filter(place=place).row(0, named=True) for place in (0, 2))
    other = pairs.filter(pl.col("place").is_null()).row(0, named=True)
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        for each in (first, later, other):
            labels.set(each["query"], each["doc"], 1)
        rows = labels.frame().to_dicts()
        assert [row["design"] for row in rows] == ["sample", "sample", "chosen"]
        assert [row["planned"] for row in rows] == [
            first["probability"],
            later["probability"],
            None,
        ]
        sizes = dict(pairs["stratum"].value_counts().rows())
        assert rows[0]["probability"] == 1 / sizes[first["stratum"]]
        assert [row["probability"] for row in rows[1:]] == [None, None]
        second = pairs.filter(place=1).row(0, named=True)
        labels.skip(second["query"], second["doc"])  # its turn is over, though it has no label
        probability = labels.frame().filter(doc=later["doc"], query=later["query"])["probability"]
        assert probability[0] in (1 / sizes[later["stratum"]], 2 / sizes[later["stratum"]])


def test_no_precision_is_announced_for_ranks_that_are_not_pooled(tmp_path: Path) -> None:
    """Of a pool of 5 documents a run labels cannot tell P@10, however many there are."""
    runs, _ = collection(np.random.default_rng(3))
    for purpose in ("values", "ordering"):
        pool = findwell.labels.pool(runs, tmp_path / purpose, purpose=purpose, depth=5)
        assert set(pool.precision()["measure"]) == {"P@5", "recall@5"}
        assert set(pool.precision(k=3)["measure"]) == {"P@3", "recall@3"}
        with pytest.raises(OptionError, match=r"its labels cannot tell P@10"):
            pool.precision(k=10)


def test_a_sample_is_made_larger(tmp_path: Path) -> None:
    made = Simulation(tmp_path / "pool", judge=True)
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        other = findwell.labels.Labels.open(tmp_path / "pool", "ben")
        while (pair := labels.next()) is not None:
            labels.set(pair.query, pair.doc, 1)
        assert other.next() is None
        before = labels.frame()
        assert labels.extend(300) == 300
        assert other.progress().left == 100  # a process that was open before sees it, too
        other.close()
        assert labels.settings["budget"] == 300
        kept = labels.frame()
        assert kept["planned"].to_list() == before["planned"].to_list()
        assert kept["probability"].to_list() == pytest.approx(before["probability"].to_list())
        while (pair := labels.next()) is not None:
            labels.set(pair.query, pair.doc, 0)
        after = labels.frame()
        assert after.height == 300
        for stratum, rows in after.group_by("stratum"):
            size = made.pool.pairs.filter(stratum=stratum[0]).height
            assert rows["probability"].to_list() == pytest.approx(
                [rows.height / size] * rows.height
            )
        with pytest.raises(OptionError, match="300 pairs are in the sample already"):
            labels.extend(100)


def test_an_order_is_made_longer(tmp_path: Path) -> None:
    runs, _ = collection(np.random.default_rng(3))
    findwell.labels.pool(runs, tmp_path / "pool", budget=60)
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        while (pair := labels.next()) is not None:
            labels.set(pair.query, pair.doc, 0)
        assert len(labels) == 60
        labels.extend(120)
        assert labels.progress().left == 60


def test_a_pool_is_its_own_pilot(tmp_path: Path) -> None:
    made = Simulation(tmp_path / "pool", judge=False)
    with findwell.labels.Labels.open(tmp_path / "pool", "ann") as labels:
        for _ in range(80):
            pair = labels.next()
            assert pair is not None
            labels.set(pair.query, pair.doc, int(pair.doc in made.relevant[pair.query]))
        again = labels.pool()
        assert again.pairs.equals(made.pool.pairs)
        assert again.ranks.equals(made.pool.ranks)
        found = again.precision([200], pilot=labels).filter(measure="P@10")
    assert found["basis"][0] == "pilot of 80 labels"
    precision, _ = made.estimates(200, 300)
    assert found["these"][0] == pytest.approx(1.96 * precision.std(), rel=0.25)

"""Verdict, interval, corrected p and gate of a comparison always say the same about 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import findwell
from findwell.evaluation.comparison.gates import no_regression
from tests import values
from tests.strategies import examples

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.evaluation.comparison.compare import Comparison

PARTS = 100  # of a query that can be found
LEVELS = [0.5, 0.75, 0.9, 0.95, 0.99]
GATES = {"better": "pass", "same": "pass", "worse": "fail", "unclear": "undecided"}


def tied(rng: np.random.Generator, queries: int) -> Floats:
    return rng.choice([0.0, 0.5, 1.0], queries)


def skewed(rng: np.random.Generator, queries: int) -> Floats:
    return np.round(rng.beta(0.2, 4, queries), 4)


def sparse(rng: np.random.Generator, queries: int) -> Floats:
    return rng.choice([0.7, 1.0, 0.0], queries, p=[0.1, 0.8, 0.1])


def hits(rng: np.random.Generator, queries: int) -> Floats:
    return rng.choice([0.0, 1.0], queries)


KINDS = {each.__name__: each for each in (tied, skewed, sparse, hits)}


def drawn(kind: str, systems: int, queries: int, shift: float, seed: int) -> list[Floats]:
    rng = np.random.default_rng(seed)
    base = KINDS[kind](rng, queries)
    moved = [base]
    for number in range(1, systems):
        changed = rng.random(queries) < rng.choice([0.1, 0.5, 1.0])
        new = np.where(changed, KINDS[kind](rng, queries), base)
        if kind != "hits":
            new += np.where(changed, shift * number, 0.0)
        moved.append(new)
    return [np.round(each.clip(0, 1), 6) for each in moved]


def compared(scores: list[Floats], **options: Any) -> Comparison:
    runs = {f"s{at}": values.run(each, PARTS) for at, each in enumerate(scores)}
    return findwell.compare(
        runs,
        gold=values.gold(len(scores[0]), PARTS),
        measures=["recall"],
        permutations=199,
        **options,
    )


def agree(row: dict[str, Any], level: float, which: str = "_adjusted") -> bool:
    """Say whether 0 is excluded, after asserting that p and interval say the same."""
    p, low, high = row[f"p{which}"], row[f"low{which}"], row[f"high{which}"]
    shown = p is not None and p <= (1 - level) * (1 + 1e-9)
    assert shown == (low is not None and not low <= 0 <= high), row
    if low is not None:
        assert low <= row["difference"] <= high, row
    return shown


@examples(80)
@given(
    kind=st.sampled_from(list(KINDS)),
    systems=st.integers(2, 4),
    queries=st.one_of(st.integers(1, 12), st.sampled_from([25, 60])),
    shift=st.sampled_from([0.0, 0.001, 0.05, 0.3, -0.1]),
    seed=st.integers(0, 10_000),
    level=st.sampled_from(LEVELS),
    test=st.sampled_from(["auto", "permutation", "t"]),
    all_pairs=st.booleans(),
    clustered=st.booleans(),
    unpaired=st.booleans(),
)
@example("skewed", 2, 10, 0.05, 1, 0.95, "auto", False, False, False)
@example("tied", 4, 60, 0.3, 3, 0.95, "auto", True, False, False)
@example("sparse", 2, 60, 0.05, 0, 0.95, "permutation", False, False, True)
@example("hits", 2, 6, 0.0, 0, 0.5, "auto", False, True, True)
def test_verdict_interval_p_and_gate_agree(  # noqa: PLR0917
    kind: str,
    systems: int,
    queries: int,
    shift: float,
    seed: int,
    level: float,
    test: str,
    all_pairs: bool,
    clustered: bool,
    unpaired: bool,
) -> None:
    scores = drawn(kind, systems, queries, shift, seed)
    names = [f"q{at}" for at in range(queries)]
    about = pl.DataFrame(
        {
            "query": names,
            "part": [f"part {at % 3}" for at in range(queries)],
            "source": [at // 2 for at in range(queries)],
        }
    )
    found = compared(
        scores,
        queries=about,
        level=level,
        test=test,
        all_pairs=all_pairs,
        unpaired=unpaired,
        slices=["part"],
        **({"cluster": "source"} if clustered else {}),
    )
    for row in [*found.comparisons.to_dicts(), *found.slices.to_dicts()]:
        agree(row, level, "")
        shown = agree(row, level)
        assert shown == (row["verdict"] in ("better", "worse")), row
        if shown:
            assert (row["verdict"] == "better") == (row["difference"] > 0)
        if row["verdict"] == "same":
            assert row["wins"] == row["losses"] == 0
    report = findwell.gate(found, no_regression(found, "recall"))
    for verdict in report.verdicts:
        assert verdict.outcome == GATES[found[verdict.run, "recall"]["verdict"]], verdict


@pytest.mark.parametrize("cluster", [None, "source"])
def test_a_gate_against_a_saved_baseline_agrees_with_the_verdict(cluster: str | None) -> None:
    for seed in range(12):
        old, new = drawn("skewed", 2, 10, 0.02 * (seed % 3), seed)
        about = [{"query": f"q{at}", "source": at // 2} for at in range(10)]
        before, after = (
            findwell.evaluate(
                values.run(each, PARTS),
                values.gold(10, PARTS),
                ["recall"],
                queries=about,
                cluster=cluster,
            )
            for each in (old, new)
        )
        verdict = findwell.compare({"old": before, "new": after})["recall"]["verdict"]
        report = findwell.gate(after, ["recall>=baseline", "recall>=0.5"], baseline=before)
        assert report.verdicts[0].outcome == GATES[verdict]
        against, alone = report.as_dict()["requirements"]
        assert against["verdict"] == verdict
        assert "verdict" not in alone


def test_clusters_that_agree_in_both_groups_leave_a_doubt() -> None:
    """Three clusters with the same sums on both sides do not show that the next one has."""
    scores = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    about = [{"query": f"q{at}", "source": at // 2} for at in range(6)]
    found = compared([scores, scores], queries=about, unpaired=True, cluster="source")
    assert found["recall"]["low"] < 0 < found["recall"]["high"]
    assert findwell.gate(found, "recall>=baseline").outcome == "undecided"


def test_few_queries_that_all_gain_have_an_interval_without_0() -> None:
    """Ten small gains are shown by the sign flips; one further query may lose all."""
    moved = np.array([0.02, 0.01, 0.03, 0.05, 0.02, 0.01, 0.04, 0.02, 0.01, 0.02])
    row = compared([np.full(10, 0.5), 0.5 + moved])["recall"]
    assert (row["verdict"], row["p"]) == ("better", 2 / 2**10)
    assert 0 < row["low"] < row["difference"] < row["high"]
    assert "by the test" in row["method"]


def test_runs_that_share_nothing_with_the_gold_are_not_the_same() -> None:
    gold = {f"q{at}": [f"d{at}"] for at in range(8)}
    strange = {query: ["elsewhere"] for query in gold}
    found = findwell.compare({"a": strange, "b": dict(strange)}, gold=gold, measures=["recall"])
    row = found["recall"]
    assert row["verdict"] == "unclear"
    assert row["reason"].startswith("no retrieved document is in the gold")
    assert findwell.gate(found, "recall>=baseline").outcome == "undecided"
    matched = findwell.compare({"a": gold, "b": dict(gold)}, gold=gold, measures=["recall"])
    assert matched["recall"]["verdict"] == "same"


def test_python_json_and_tables_have_the_same_verdict() -> None:
    found = compared(drawn("hits", 3, 60, 0.0, 4), slices=[])
    for row, shown in zip(
        found.comparisons.to_dicts(), found.as_dict()["comparisons"], strict=True
    ):
        verdict = found.verdicts[row["baseline"], row["system"], row["measure"]]
        assert row["verdict"] == shown["verdict"] == verdict.word
        assert (row["low_adjusted"], row["p_adjusted"]) == (verdict.difference.low, verdict.p)
        assert f" {row['verdict']} " in repr(found)
        assert f"| {row['verdict']} |" in found.to_markdown()

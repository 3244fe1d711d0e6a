"""Comparisons: the numbers, what is paired with what, names, edge cases, findings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import findwell
from findwell.core.errors import AlignError, FindwellError, MeasureError, OptionError
from findwell.evaluation.inputs import unique_names
from tests import values
from tests.lazy import lazy
from tests.strategies import examples

if TYPE_CHECKING:
    from findwell.evaluation.comparison.compare import Comparison

stats = lazy("scipy.stats")
contingency_tables = lazy("statsmodels.stats.contingency_tables")
multitest = lazy("statsmodels.stats.multitest")

KEYS = [
    *("baseline", "system", "measure", "verdict", "difference", "low", "high", "p", "p_adjusted"),
    *("effect", "wins", "ties", "losses", "n"),
]
DEMO = Path(findwell.__file__).parent / "demo"
RNG = np.random.default_rng(6)
OLD, NEW, ODD = (np.round(RNG.beta(2, 2, 30), 1) for _ in range(3))


def compared(*systems: Any, **options: Any) -> Comparison:
    """Compare runs with these values of recall, called a, b, c, …"""
    runs = {"abcdefgh"[at]: values.run(each) for at, each in enumerate(systems)}
    options.setdefault("measures", ["recall"])
    return findwell.compare(runs, gold=values.gold(max(map(len, systems))), **options)


def findings(comparison: Comparison) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {found.kind: (found.count, found.examples) for found in comparison.findings}


def test_the_numbers_of_a_row() -> None:
    row = compared(OLD, NEW, test="t")["recall"]
    moved = NEW - OLD
    assert list(row)[: len(KEYS)] == KEYS
    assert row["difference"] == pytest.approx(moved.mean())
    assert row["effect"] == pytest.approx(moved.mean() / moved.std(ddof=1))
    assert row["p"] == pytest.approx(stats.ttest_rel(NEW, OLD).pvalue)
    assert row["low"] < row["difference"] < row["high"]
    up, down = int((moved > 1e-9).sum()), int((moved < -1e-9).sum())
    assert (row["wins"], row["ties"], row["losses"]) == (up, 30 - up - down, down)
    assert (row["n"], row["left_out"], row["test"]) == (30, 0, "t")
    assert (row["baseline_value"], row["system_value"]) == pytest.approx((OLD.mean(), NEW.mean()))


def test_the_permutation_test_is_that_of_scipy() -> None:
    old, new = OLD[:8], NEW[:8]
    expected = stats.permutation_test(
        (new - old,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    row = compared(old, new)["recall"]
    assert row["test"] == "exact"
    assert row["p"] == pytest.approx(expected.pvalue)


def test_hit_or_miss_is_tested_by_mcnemar() -> None:
    old, new = (OLD > 0.5).astype(float), (NEW > 0.4).astype(float)
    row = compared(old, new)["recall"]
    table = [[((old == x) & (new == y)).sum() for y in (1, 0)] for x in (1, 0)]
    assert row["test"] == "mcnemar"
    assert row["p"] == pytest.approx(contingency_tables.mcnemar(table, exact=True).pvalue)
    assert compared(old, new, test="permutation")["recall"]["test"] == "permutation"
    success = compared(OLD, NEW, measures="success@1")
    assert success["success@1"]["test"] == "mcnemar"
    with pytest.raises(OptionError, match="unknown test 'wilcoxon'"):
        compared(OLD, NEW, test="wilcoxon")


def test_several_systems_are_corrected_by_holm_for_each_measure() -> None:
    found = compared(OLD, NEW, ODD, OLD[::-1], measures=["recall", "P@5"])
    for measure in ("recall", "P@5"):
        rows = found.comparisons.filter(pl.col("measure") == measure)
        assert rows["system"].to_list() == ["b", "c", "d"]
        assert rows["correction"].unique().to_list() == ["holm"]
        holm = multitest.multipletests(rows["p"], method="holm")[1]
        assert rows["p_adjusted"].to_list() == pytest.approx(holm.tolist())
    alone = compared(OLD, NEW)["recall"]
    assert (alone["p_adjusted"], alone["correction"]) == (alone["p"], "none")


def test_the_order_of_the_systems_is_of_no_matter() -> None:
    """A report has the best first, `compare` the order given: both say the same."""
    better = [np.minimum(OLD + gain, 1.0) for gain in (0.2, 0.3, 0.4)]  # p is the same for all
    found, turned = compared(OLD, *better), compared(OLD, *better[::-1])
    assert found["b", "recall"]["p"] == found["d", "recall"]["p"]
    for name, other in zip("bcd", "dcb", strict=True):
        assert found[name, "recall"] == turned[other, "recall"] | {"system": name}


def test_all_pairs_are_corrected_together() -> None:
    found = compared(OLD, NEW, ODD, all_pairs=True)
    pairs = found.comparisons.select("baseline", "system").rows()
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.comparisons["correction"].unique().to_list() == ["tukey"]
    for row in found.comparisons.to_dicts():
        assert row["p_adjusted"] >= row["p"] - 0.02  # random, but never much smaller
    assert found["c", "recall"]["baseline"] == "a"


def test_slices_are_corrected_after_benjamini_and_hochberg() -> None:
    records = [
        [
            {"query": f"q{at}", "retrieved": docs, "gold": [f"d{n}" for n in range(10)]}
            | {"topic": "xyz"[at % 3] if at else None, "half": at % 2}
            for at, docs in enumerate(values.run(each).values())
        ]
        for each in (OLD, NEW)
    ]
    found = findwell.compare(*records, measures="recall", slices=["topic", "half"])
    rows = found.slices
    assert rows.columns[:2] == ["column", "slice"]
    assert rows.select("column", "slice").rows() == [
        *(("topic", each) for each in ("x", "y", "z", None)),
        *(("half", each) for each in ("0", "1")),
    ]
    assert rows["n"].to_list() == [9, 10, 10, 1, 15, 15]
    expected = multitest.multipletests(rows["p"], method="fdr_bh")[1]
    assert rows["p_adjusted"].to_list() == pytest.approx(expected.tolist())
    odd = np.arange(30) % 2 == 1
    assert rows["difference"][5] == pytest.approx((NEW - OLD)[odd].mean())
    with pytest.raises(OptionError, match="unknown column of the queries 'tpic'"):
        findwell.compare(*records, measures="recall", slices="tpic")


def test_queries_of_a_cluster_are_not_independent() -> None:
    same = {"queries": pl.DataFrame({"query": [f"q{n}" for n in range(30)], "pdf": [0, 1] * 15})}
    alone = compared(OLD, NEW)
    found = compared(OLD, NEW, cluster="pdf", **same)
    assert found.cluster == "pdf"
    assert found["recall"]["p"] in {0.5, 1.0}  # two clusters have four patterns of signs
    assert found["recall"]["difference"] == alone["recall"]["difference"]
    hits = compared(OLD > 0.5, NEW > 0.5, cluster="pdf", **same)["recall"]
    assert hits["test"] == "exact"
    pairs = compared(OLD, NEW, ODD, cluster="pdf", all_pairs=True, **same)
    assert "cluster" in pairs["b", "recall"]["reason"]
    with pytest.raises(OptionError, match="McNemar"):
        compared(OLD > 0.5, NEW > 0.5, cluster="pdf", test="mcnemar", **same)


def test_few_clusters_cannot_show_anything_and_it_is_said() -> None:
    about = pl.DataFrame({"query": [f"q{n}" for n in range(30)], "pdf": [n % 5 for n in range(30)]})
    better = np.minimum(OLD + 0.3, 1)
    found = compared(OLD, better, cluster="pdf", queries=about, slices="pdf")
    row = found["recall"]
    said = "5 clusters differ, so that p cannot fall below 0.0625: it takes 6 for p ≤ 0.05"
    assert (row["p"], row["smallest_p"], row["reason"]) == (0.0625, 0.0625, said)
    assert found.as_dict()["comparisons"][0]["reason"] == said
    for shown in (repr(found), found.to_markdown().replace("\\", ""), found._repr_html_()):
        assert said.replace("<", "&lt;") in shown.replace("<", "&lt;").replace("&amp;", "&")
    slices = found.as_dict()["slices"]
    assert all(
        "1 cluster differs, so that p cannot fall below 1" in row["reason"] for row in slices
    )
    enough = about.with_columns(pdf=pl.Series([n % 6 for n in range(30)]))
    row = compared(OLD, better, cluster="pdf", queries=enough)["recall"]
    assert (row["p"], row["reason"]) == (2 / 2**6, "")
    several = compared(OLD, better, np.maximum(OLD - 0.3, 0), cluster="pdf", queries=enough)
    assert several["b", "recall"]["reason"] == (
        "6 clusters differ, so that p cannot fall below 0.0312, or 0.0625 corrected for 2 tests: "
        "it takes 7 for p ≤ 0.05"
    )


def test_few_queries_that_differ_and_few_permutations_are_said_too() -> None:
    better = OLD.copy()
    better[:3] = (OLD[:3] + 0.5) % 1
    assert compared(OLD, better)["recall"]["reason"].startswith(
        "3 queries differ, so that p cannot"
    )
    hits = compared(np.zeros(9), np.repeat([1.0, 0.0], [4, 5]))["recall"]
    assert (hits["test"], hits["p"], hits["smallest_p"]) == ("mcnemar", 0.125, 0.125)
    drawn = compared(OLD, NEW, permutations=10)["recall"]["reason"]
    assert drawn.startswith(
        "10 permutations are drawn, so that p cannot fall below 0.0909: it takes 19"
    )
    assert not compared(OLD, NEW, permutations=20)["recall"]["reason"]
    assert not compared(OLD[:4], NEW[:4], test="t")["recall"]["reason"]


def test_the_queries_that_moved_most() -> None:
    records = [
        {"query": "q1", "question": "Why?", "retrieved": ["x"], "gold": ["a"]},
        {"query": "q2", "retrieved": ["b"], "gold": ["b"]},
        {"query": "q3", "retrieved": ["x", "y"], "gold": ["x", "z"]},
    ]
    better = [{**record, "retrieved": ["a", "z"]} for record in records]
    found = findwell.compare({"old": records, "new": better}, measures=["recall", "RR"], moved=1)
    assert found.moved.filter(pl.col("measure") == "recall").rows() == [
        ("old", "new", "recall", "q2", "", 1.0, 0.0, -1.0),
        ("old", "new", "recall", "q1", "Why?", 0.0, 1.0, 1.0),
    ]
    fewer = findwell.compare({"old": records, "new": better}, measures="unjudged@1", moved=1).moved
    assert fewer.rows()[-1][3:] == ("q1", "Why?", 1.0, 0.0, -1.0)  # which is a gain
    assert not findwell.compare(records, better, measures="RR", moved=0).moved.height


def test_less_is_better_for_some_measures() -> None:
    run, other = {"q": ["u", "v"], "r": ["a"]}, {"q": ["a"], "r": ["a"]}
    gold = {"q": ["a"], "r": ["a"]}
    row = findwell.compare(run, other, gold=gold, measures="unjudged@2")["unjudged@2"]
    assert row["difference"] < 0
    assert (row["wins"], row["losses"]) == (1, 0)


# what can be compared


def test_systems_come_in_any_form(tmp_path: Path) -> None:
    old, new = values.result(OLD), values.result(NEW)
    expected = findwell.compare(old, new)["recall"]["difference"]
    folders = [old.save(tmp_path / "old"), new.save(tmp_path / "new")]
    both = findwell.evaluate(
        {"old": values.run(OLD), "new": values.run(NEW)}, values.gold(30), ["recall"]
    )
    files = [tmp_path / "run-old.json", tmp_path / "run-new.json"]
    for path, each in zip(files, (OLD, NEW), strict=True):
        path.write_text(json.dumps(values.run(each)))
    (tmp_path / "gold.json").write_text(json.dumps(values.gold(30)))
    by_gold: dict[str, Any] = {"gold": tmp_path / "gold.json", "measures": "recall"}
    ways = {
        "results": (findwell.compare(old, new), ("run", "run-2")),
        "folders": (findwell.compare(*folders), ("old", "new")),
        "one result": (findwell.compare(both), ("old", "new")),
        "one folder": (findwell.compare(both.save(tmp_path / "both")), ("old", "new")),
        "files": (findwell.compare(*files, **by_gold), ("run-old", "run-new")),
        "named files": (
            findwell.compare(dict(zip("xy", files, strict=True)), **by_gold),
            ("x", "y"),
        ),
        "named results": (findwell.compare({"x": old, "y": new}), ("x", "y")),
        "a folder and a file": (
            findwell.compare(folders[0], files[1], **by_gold),
            ("old", "run-new"),
        ),
    }
    for way, (found, names) in ways.items():
        assert found["recall"]["difference"] == expected, way
        assert found.systems == names, way


def test_names_say_where_systems_differ(tmp_path: Path) -> None:
    for folder in ("main", "branch"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.json").write_text('{"q": ["a"], "r": ["b"]}')
        values.result(OLD).save(tmp_path / folder / "result")
    runs = [tmp_path / folder / "run.json" for folder in ("main", "branch")]
    found = findwell.compare(*runs, gold={"q": ["a"], "r": ["b"]})
    assert found.systems == ("main/run", "branch/run")
    found = findwell.compare(tmp_path / "main" / "result", f"{tmp_path}/branch/result/")
    assert found.systems == ("main/result", "branch/result")


def test_runs_of_two_results_with_the_same_names() -> None:
    both = findwell.evaluate(
        {"bm25": values.run(OLD), "minilm": values.run(NEW)}, values.gold(30), ["recall"]
    )
    found = findwell.compare({"monday": both, "tuesday": both})
    assert found.systems == ("monday/bm25", "monday/minilm", "tuesday/bm25", "tuesday/minilm")


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "a-2"]), min_size=1, max_size=3)))
def test_names_are_unique(spellings: list[list[str]]) -> None:
    names = unique_names(spellings)
    assert len(set(names)) == len(names) == len(spellings)


def test_the_baseline_can_be_named() -> None:
    found = compared(OLD, NEW, ODD, baseline="c")
    assert found.baseline == "c"
    assert found.systems == ("c", "a", "b")
    assert found["a", "recall"]["difference"] == pytest.approx((OLD - ODD).mean())
    with pytest.raises(OptionError, match="unknown baseline 'd'"):
        compared(OLD, NEW, baseline="d")


def test_results_are_measured_anew() -> None:
    old, new = values.result(OLD), values.result(NEW, "P@1")
    assert [str(each) for each in findwell.compare(old, new).measures] == ["recall"]
    assert findwell.compare(old, new, measures=["nDCG@5"])["ndcg_cut_5"]["n"] == 30
    with pytest.raises(MeasureError, match="has no relation 'rouge'"):
        findwell.compare(old, new, measures="recall/rouge")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gold": {"q": ["a"]}}, "gold has no effect"),
        ({"by": "exact"}, "by has no effect"),
        ({"dialect": "trec_eval"}, "measured in the dialect findwell, not in trec_eval"),
        ({"permutations": 0}, "0 permutations"),
        ({"level": 1.0}, "level is 1.0"),
        ({"seed": -1}, "seed is -1"),
        ({"measures": "recal"}, "unknown measure 'recal'"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FindwellError, match=message):
        findwell.compare(values.result(OLD), values.result(NEW), **options)


def test_other_refusals() -> None:
    old = values.result(OLD)
    with pytest.raises(OptionError, match="compare needs two systems or more; you gave 1"):
        findwell.compare(old)
    with pytest.raises(OptionError, match="compare has no option 'colour'"):
        findwell.compare(old, old, colour="red")  # type: ignore[call-arg]
    trec = findwell.evaluate(values.run(OLD), values.gold(30), ["recall"], dialect="trec_eval")
    with pytest.raises(OptionError, match="dialect trec_eval, not in findwell"):
        findwell.compare(old, trec)
    with pytest.raises(AlignError, match="share no query: one has 'q', the other 'q0'"):
        findwell.compare(old, findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, ["recall"]))
    found = compared(OLD, NEW, ODD)
    with pytest.raises(OptionError, match="several systems"):
        found["recall"]
    with pytest.raises(MeasureError, match="P@5 was not compared"):
        found["b", "P@5"]


# edge cases: defined, and explained


def test_unequal_queries_are_intersected_and_listed() -> None:
    old, new = values.result(OLD[:20]), values.result(NEW)
    found = findwell.compare(old, new)
    row = found["recall"]
    assert (row["n"], row["left_out"]) == (20, 10)
    assert row["difference"] == pytest.approx((NEW[:20] - OLD[:20]).mean())
    listed = tuple(f"q{number}" for number in range(20, 30))
    assert findings(found)["unpaired-query"] == (10, listed)
    assert found.values["n"].to_list() == [20, 30]


def test_values_that_only_one_side_has_are_left_out() -> None:
    run = {"q": ["a"], "r": ["x"], "s": ["c"]}
    one = findwell.evaluate(run, {"q": ["a"], "r": [], "s": ["c"]}, ["recall"])
    other = findwell.evaluate(run, {"q": ["a"], "r": ["b"], "s": []}, ["recall"])
    found = findwell.compare(one, other)
    assert (found["recall"]["n"], found["recall"]["left_out"]) == (1, 2)
    assert findings(found)["no-value"] == (2, ("r", "s"))
    assert findings(found)["other-gold"] == (2, ("s", "r"))


def test_no_value_in_common() -> None:
    run = {"q": ["a"], "r": ["x"]}
    one = findwell.evaluate(run, {"q": ["a"], "r": []}, ["recall"])
    other = findwell.evaluate(run, {"q": [], "r": ["b"]}, ["recall"])
    row = findwell.compare(one, other)["recall"]
    assert (row["n"], row["difference"], row["p"], row["effect"]) == (0, None, None, None)
    assert row["reason"] == "no query has a value in both"


def test_one_query() -> None:
    row = compared([0.2], [0.9])["recall"]
    assert (row["difference"], row["low"], row["effect"]) == (pytest.approx(0.7), None, None)
    assert row["p"] == 1.0
    assert row["reason"].startswith("one query says nothing about the spread; 1 query differs")


def test_constant_differences() -> None:
    row = compared([0.2] * 5, [0.5] * 5)["recall"]
    assert row["low"] < 0.3 < row["high"]
    assert row["p"] == 2 / 2**5
    assert row["reason"].startswith("every query differs by the same amount; 5 queries differ")


@pytest.mark.parametrize("each", [OLD, OLD > 0.5])
def test_identical_systems(each: Any) -> None:
    row = compared(each, each)["recall"]
    assert (row["difference"], row["p"], row["effect"]) == (0.0, 1.0, 0.0)
    assert (row["wins"], row["ties"], row["losses"]) == (0, 30, 0)
    assert "no query differs" in row["reason"]


def test_more_systems_than_queries() -> None:
    systems = [RNG.random(2).round(1) for _ in range(6)]
    assert compared(*systems).comparisons.height == 5
    found = compared(*systems, all_pairs=True).comparisons
    assert found.height == 15
    assert found["p_adjusted"].is_between(0, 1).all()


def test_choices_that_differ_are_said() -> None:
    old, new = values.run(OLD[:20]), values.run(NEW)
    one = findwell.evaluate(new, values.gold(30), ["recall"])
    other = findwell.evaluate(
        old, values.gold(30), ["recall"], reading=findwell.Reading(missing="skip")
    )
    found = findwell.compare(one, other)
    assert findings(found)["other-choice"] == (1, ("missing: skip instead of zero",))
    texts = [{"query": "q", "retrieved": ["a b c"], "gold": ["a b"]}]
    by_text = [findwell.evaluate(texts, measures="recall", by=by) for by in ("exact", "rouge")]
    assert findings(findwell.compare(*by_text))["other-choice"] == (
        1,
        ("relation: rouge(threshold=0.7) instead of exact",),
    )


@examples(30)
@given(
    st.lists(st.tuples(*[st.integers(0, 10)] * 2), min_size=1, max_size=12),
    st.integers(0, 3),
)
def test_turned_round_it_is_the_same(pairs: list[tuple[int, int]], seed: int) -> None:
    old, new = ([pair[side] / 10 for pair in pairs] for side in (0, 1))
    there, back = (
        compared(*order, seed=seed, permutations=200, test="permutation")["recall"]
        for order in ((old, new), (new, old))
    )
    assert there["difference"] == pytest.approx(-back["difference"])
    assert there["p"] == back["p"]
    assert (there["wins"], there["ties"], there["losses"]) == (
        *(back[name] for name in ("losses", "ties", "wins")),
    )
    assert there["wins"] + there["ties"] + there["losses"] == there["n"] == len(pairs)


# the object


def test_frames_and_json() -> None:
    found = compared(OLD, NEW)
    for frame, rows in (
        (found.comparisons, found.rows),
        (found.values, found.value_rows),
        (found.moved, found.moved_rows),
    ):
        assert frame.to_dicts() == list(rows)
        assert frame.columns == list(rows[0])
    assert not found.slices.height
    assert found.slices.columns == ["column", "slice", *found.comparisons.columns]
    assert found.values.columns == ["system", "measure", "value", "n", "undefined"]
    shown = json.loads(json.dumps(found.as_dict()))
    assert list(shown["comparisons"][0])[: len(KEYS)] == KEYS
    assert (shown["seed"], shown["permutations"], shown["level"]) == (0, 10_000, 0.95)
    with pytest.raises(AttributeError):
        found.seed = 1  # type: ignore[misc]


def test_inputs_are_not_changed() -> None:
    runs = {"a": values.run(OLD), "b": values.run(NEW)}
    copy = json.dumps(runs)
    findwell.compare(runs, gold=values.gold(30), measures=["recall"])
    assert json.dumps(runs) == copy


CODE = """
import json, findwell
folder = {folder!r}
found = findwell.compare(folder + "/bm25.trec", folder + "/minilm.trec",
    gold=folder + "/questions.jsonl", slices="kind", all_pairs=True, permutations=2000, seed=7)
print(json.dumps(found.as_dict()))
"""


def test_the_same_seed_gives_the_same_at_any_number_of_workers() -> None:
    names = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    shown = []
    for workers in ("1", "5"):
        env = os.environ | dict.fromkeys(names, workers)
        code = CODE.format(folder=str(DEMO))
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, env=env, check=True
        )
        shown.append(json.loads(done.stdout))
    for other in shown[1:]:
        for rows in ("comparisons", "slices"):
            for one, again in zip(shown[0][rows], other[rows], strict=True):
                assert one["p"] == again["p"]
                assert one["p_adjusted"] == again["p_adjusted"]
                assert one["difference"] == pytest.approx(again["difference"], abs=1e-12)
    seeds = [compared(OLD, NEW, seed=seed)["recall"]["p"] for seed in (7, 7, 8)]
    assert seeds[0] == seeds[1] != seeds[2]


@pytest.mark.parametrize("all_pairs", [False, True])
def test_intervals_say_what_the_corrected_p_says(*, all_pairs: bool) -> None:
    rng = np.random.default_rng(5)
    base = rng.beta(5, 5, 120)
    shifts = (0.0, 0.02, 0.025, 0.03, 0.035, 0.06, -0.025)
    systems = [np.clip(base + shift + rng.normal(0, 0.15, 120), 0, 1).round(1) for shift in shifts]
    found = compared(base.round(1), *systems, all_pairs=all_pairs)
    rows = found.comparisons.to_dicts()
    # within the little by which a permutation test and an interval differ at the border
    clear = [row for row in rows if abs(row["p_adjusted"] - 0.05) > 0.01]
    leaves_out_0 = [row["low_adjusted"] > 0 or row["high_adjusted"] < 0 for row in clear]
    assert leaves_out_0 == [row["p_adjusted"] < 0.05 for row in clear]
    uncorrected = [row["low"] > 0 or row["high"] < 0 for row in clear]
    assert uncorrected != leaves_out_0  # the correction decides some of them


def test_intervals_of_slices_are_corrected_as_their_p() -> None:
    rng = np.random.default_rng(3)
    old = rng.beta(5, 5, 300).round(1)
    shift = np.repeat([0.0, 0.05, 0.08, 0.0, 0.04, 0.12], 50)
    new = np.clip(old + shift + rng.normal(0, 0.15, 300), 0, 1).round(1)
    about = {f"q{at}": {"topic": "abcdef"[at // 50]} for at in range(300)}
    queries = [{"query": query, **each} for query, each in about.items()]
    found = compared(old, new, slices="topic", queries=queries)
    rows = found.slices.to_dicts()
    shown = [row["p_adjusted"] < 0.05 for row in rows]
    assert 0 < sum(shown) < 6
    assert [row["low_adjusted"] > 0 or row["high_adjusted"] < 0 for row in rows] == shown
    widths = [(row["high_adjusted"] - row["low_adjusted"]) for row in rows]
    assert all(wide > row["high"] - row["low"] for wide, row in zip(widths, rows, strict=True))


def test_an_unclear_verdict_is_shown_without_scipy() -> None:
    """How many queries would tell needs SciPy, which is an extra; the verdict does not."""
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import findwell\n"
        "runs = {'a': {f'q{n}': ['x', 'd'] if n % 3 else ['d'] for n in range(20)},\n"
        "        'b': {f'q{n}': ['x', 'd'] if n % 4 else ['d'] for n in range(20)}}\n"
        "print(findwell.compare(runs, gold={f'q{n}': ['d'] for n in range(20)}, measures='RR'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("b is not clearly different from a\n")


def test_the_headline_says_what_else_differs() -> None:
    """Better or worse may be the gold or the relation: said next to the verdict, in every form."""
    names = [f"q{number}" for number in range(12)]
    found = [{"id": "x", "text": "one two"}, {"id": "a", "text": "one two three"}]
    run = dict.fromkeys(names, found)
    gold = [{"query": name, "gold": [{"id": "a", "text": "one two three"}]} for name in names]
    old = findwell.evaluate({"old": run}, gold, ["RR"], by="ids")
    assert "but" not in str(
        findwell.compare(old, findwell.evaluate({"new": run}, gold, ["RR"], by="ids"))
    )
    rule = findwell.compare(
        old, findwell.evaluate({"new": run}, gold, ["RR"], by="rouge(threshold=0.5)")
    )
    other = {name: ["x"] for name in names[:3]} | {name: ["a"] for name in names[3:]}
    labels = findwell.compare(old, findwell.evaluate({"new": run}, other, ["RR"], by="ids"))
    for page in (str(labels), labels.to_markdown()):
        assert "but the gold labels differ for 3 queries" in page
    assert "but measured with another option (relation: rouge" in " ".join(str(rule).split())

"""Gates: how requirements are read, three verdicts, baselines, coverage, and what comes of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import findwell
from findwell.core.errors import FindwellError, OptionError
from findwell.evaluation.comparison.gates import GateReport, check_update, gate, no_regression
from findwell.evaluation.comparison.requirements import parse_requirement
from findwell.statistics.intervals import interval
from findwell.statistics.paired import paired
from tests import values

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.evaluation.comparison.requirements import RequirementVerdict


RNG = np.random.default_rng(61)
OLD = np.round(RNG.beta(4, 2, 60), 1)
BETTER = np.minimum(OLD + 0.2, 1.0)
NOISY = np.clip(OLD + RNG.choice([-0.3, 0.3], 60), 0, 1)


def verdict(scores: Any, requirement: str, **options: Any) -> RequirementVerdict:
    (found,) = gate(values.result(scores), requirement, **options).verdicts
    return found


# the text of a requirement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recall@5>=0.8", ("recall@5", ">=", 0.8, None, False)),
        (" recall@5  ≥ .8 ", ("recall@5", ">=", 0.8, None, False)),
        ("recall@5>=80%", ("recall@5", ">=", 0.8, None, True)),
        ("nDCG(gain=exp)@10>1e-1", ("nDCG(gain=exp)@10", ">", 0.1, None, False)),
        ("unjudged@5 ≤ 1", ("unjudged@5", "<=", 1.0, None, False)),
        ("AP(over=retrieved)<baseline", ("AP(over=retrieved)", "<", 0.0, 1.0, False)),
        ("P@5>=baseline-0.02", ("P@5", ">=", -0.02, 1.0, False)),
        ("P@5>=Baseline − 0.02", ("P@5", ">=", -0.02, 1.0, False)),
        ("P@5>=baseline*0.98", ("P@5", ">=", 0.0, 0.98, False)),
        ("P@5>=baseline * .98 + .01", ("P@5", ">=", 0.01, 0.98, False)),
        ("Undefined<=5%", ("undefined", "<=", 0.05, None, True)),
        ("failed<=0", ("failed", "<=", 0.0, None, False)),
    ],
)
def test_requirements(text: str, expected: tuple[Any, ...]) -> None:
    found = parse_requirement(text)
    assert (found.subject, found.sign, found.number, found.factor, found.share) == expected
    assert parse_requirement(found.text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recall@5", "is not a valid requirement"),
        ("recall@5=0.8", "is not a valid requirement"),
        ("recall@5==0.8", "is not a valid requirement"),
        ("recall@5=>0.8", "is not a valid requirement"),
        (">=0.8", "is not a valid requirement"),
        ("", "is not a valid requirement"),
        ("recall@5>=", "neither a number nor a baseline"),
        ("recall@5>=high", "neither a number nor a baseline"),
        ("recall@5>=0,8", "neither a number nor a baseline"),
        ("recall@5>=nan", "neither a number nor a baseline"),
        ("recall@5>=0.8>=0.7", "neither a number nor a baseline"),
        ("recall@5>=baseline-2%", r"points or per cent(.|\n)*baseline\*0.98"),
        ("recall@5>=baseline-", "neither a number nor a baseline"),
        ("recall@5>=1e999", "too large"),
        ("recal@5>=0.8", "unknown measure 'recal'"),
        ("recall@1,5>=0.8", "several measures"),
        ("recall@5>=80", "recall@5 is never 80"),
        ("P@5<-0.1", "is never -0.1"),
        ("errors<=-1", "errors is never -1"),
        ("undefined<=0.05", "whole number, or a share"),
        ("undefined<=baseline", "not compared with a baseline"),
    ],
)
def test_what_is_no_requirement(text: str, message: str) -> None:
    with pytest.raises(FindwellError, match=message):
        parse_requirement(text)


# verdicts


def test_the_interval_decides() -> None:
    found = interval(OLD)
    assert found.low is not None
    assert found.high is not None
    middle = float(OLD.mean())
    assert verdict(OLD, f"recall>={found.low - 0.001}").outcome == "pass"
    assert verdict(OLD, f"recall>={found.high + 0.001}").outcome == "fail"
    open_ = verdict(OLD, f"recall>={middle}")
    assert (open_.outcome, open_.reason) == ("undecided", "the interval spans the threshold")
    assert (open_.value, open_.low, open_.high) == pytest.approx((middle, found.low, found.high))
    assert verdict(OLD, f"recall<={found.high + 0.001}").outcome == "pass"
    assert verdict(OLD, f"recall<{found.low - 0.001}").outcome == "fail"


def test_the_value_decides_if_asked_to() -> None:
    mean = float(OLD.mean())
    assert verdict(OLD, f"recall>={mean - 0.001}", decide="value").outcome == "pass"
    assert verdict(OLD, f"recall>={mean + 0.001}", decide="value").outcome == "fail"
    assert verdict(OLD, f"recall>={mean}", decide="value").decided_by == "value"
    with pytest.raises(OptionError, match="unknown way to decide 'mean'"):
        verdict(OLD, "recall>=0.5", decide="mean")


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=20),
    st.floats(0, 1),
    st.sampled_from([">=", "<=", ">", "<"]),
)
def test_the_value_and_the_interval_never_contradict(
    scores: list[float], number: float, sign: str
) -> None:
    asked, found = parse_requirement(f"recall{sign}{number}"), interval(scores)
    by_interval, _ = asked.decide(found, by_value=False)
    by_value, _ = asked.decide(found, by_value=True)
    if by_interval != "undecided":
        assert found.value is not None
        assert by_value == by_interval or abs(found.value - number) < 1e-6


def test_rounding_is_no_difference() -> None:
    assert verdict([0.1] * 3 + [0.7] * 3, "recall>=0.4", decide="value").outcome == "pass"
    assert verdict([0.3] * 5, "recall>=0.3", decide="value").outcome == "pass"
    assert verdict([0.3] * 5, "recall>0.3", decide="value").outcome == "fail"


@pytest.mark.parametrize("queries", [2, 5, 30])
def test_equal_values_decide_nothing_that_is_near(queries: int) -> None:
    near = verdict([0.2] * queries, "recall>=0.199")
    assert (near.outcome, near.reason) == ("undecided", "the interval spans the threshold")
    assert near.low is not None
    assert near.high is not None
    assert near.low < 0.199
    assert near.high > 0.21
    assert verdict([0.2] * 30, "recall>=0.1").outcome == "pass"


def test_what_has_no_interval_is_undecided_and_says_why() -> None:
    one = verdict([1.0], "recall>=0.5")
    assert (one.outcome, one.reason) == ("undecided", "one query says nothing about the spread")
    gold = {"q": ["a"], "r": ["b"], "s": ["c"]}
    equal = gate(findwell.evaluate(gold, gold, ["DCG"]), "DCG>=0.5")
    assert equal.exit_code == 3
    assert equal.verdicts[0].reason.startswith("all values are equal, and nothing bounds them")
    queries = [{"query": query, "source": "a.pdf"} for query in gold]
    clustered = findwell.evaluate(gold, gold, ["recall"], queries=queries, cluster="source")
    assert "one cluster says nothing" in gate(clustered, "recall>=0.5").verdicts[0].reason
    run, graded = {"q": ["a"], "r": ["b"]}, {"q": {"a": 1}, "r": {"b": 2}}
    none = findwell.evaluate(run, graded, ["recall(rel=2)@1"])
    short = gate(none, "recall(rel=2)@1>=0.5").verdicts[0]
    assert (short.n, short.outcome) == (1, "undecided")


def test_no_value_at_all_is_undecided() -> None:
    skipped = findwell.evaluate(
        {"x": ["a"]},
        {"x": [], "q": ["a"]},
        ["recall"],
        reading=findwell.Reading(missing="skip"),
        dialect="findwell",
    )
    found = gate(skipped, "recall>=0.5", decide="value").verdicts[0]
    assert (found.outcome, found.value, found.reason) == (
        "undecided",
        None,
        "no query has a value",
    )


def test_a_result_without_intervals_gets_one() -> None:
    bare = findwell.evaluate(values.run(OLD), values.gold(60), ["recall"], level=None)
    assert gate(bare, "recall>=0.1").verdicts[0].low == verdict(OLD, "recall>=0.1").low


# baselines


def test_the_difference_from_a_baseline() -> None:
    found = verdict(BETTER, "recall>=baseline+0.05", baseline=values.result(OLD))
    moved = BETTER - OLD
    assert found.outcome == "pass"
    assert found.difference == pytest.approx(moved.mean())
    assert (found.baseline, found.value) == pytest.approx((OLD.mean(), BETTER.mean()))
    (expected,) = paired(OLD, BETTER)
    limits = (expected.difference.low, expected.difference.high)
    assert (found.low, found.high) == pytest.approx(limits)
    assert verdict(OLD, "recall>=baseline", baseline=values.result(BETTER)).outcome == "fail"
    noisy = verdict(NOISY, "recall>=baseline", baseline=values.result(OLD))
    assert noisy.outcome == "undecided"
    assert verdict(NOISY, "recall>=baseline-0.2", baseline=values.result(OLD)).outcome == "pass"


@pytest.mark.parametrize("measure", ["recall", "success@1", "GMAP", "unjudged@5"])
@pytest.mark.parametrize("line", ["baseline", "baseline-0.001", "baseline*0.999"])
def test_identical_runs_pass(measure: str, line: str) -> None:
    result = values.result(OLD, measure)
    sign, line = (">=", line) if measure != "unjudged@5" else ("<=", line.replace("-", "+"))
    if measure == "unjudged@5":
        line = line.replace("0.999", "1.001")
    assert gate(result, f"{measure}{sign}{line}", baseline=result).outcome == "pass"
    assert gate(result, f"{measure}>baseline+0.001", baseline=result).outcome == "fail"


def test_a_part_of_the_baseline() -> None:
    half = np.round(BETTER / 2, 1)
    found = verdict(half, "recall>=baseline*0.3", baseline=values.result(BETTER))
    assert found.outcome == "pass"
    assert found.difference == pytest.approx((half - 0.3 * BETTER).mean())
    lower = verdict(half, "recall>=baseline*0.9", baseline=values.result(BETTER))
    assert lower.outcome == "fail"


def test_a_baseline_is_a_folder_too(tmp_path: Path) -> None:
    folder = values.result(OLD, "P@1").save(tmp_path / "baseline")
    assert verdict(BETTER, "recall>=baseline", baseline=folder).outcome == "pass"


def test_runs_are_compared_by_name_or_with_the_only_one() -> None:
    runs = {"a": values.run(OLD), "b": values.run(BETTER)}
    both = findwell.evaluate(runs, values.gold(60), ["recall"])
    assert [each.outcome for each in gate(both, "recall>=baseline", baseline=both).verdicts] == [
        "pass",
        "pass",
    ]
    against = gate(both, "recall>baseline", baseline=values.result(OLD)).verdicts
    assert [(each.run, each.outcome) for each in against] == [("a", "fail"), ("b", "pass")]
    with pytest.raises(OptionError, match="none is called run: a, b"):
        gate(values.result(OLD), "recall>=baseline", baseline=both)


def test_without_a_baseline() -> None:
    with pytest.raises(OptionError, match="needs a baseline, and there is none"):
        verdict(OLD, "recall>=baseline")
    first = verdict(OLD, "recall>=baseline", no_baseline="pass")
    assert (first.outcome, first.reason) == ("pass", "there is no baseline yet")


def test_another_dialect_is_refused_and_other_queries_are_said() -> None:
    trec = findwell.evaluate(values.run(OLD), values.gold(60), ["recall"], dialect="trec_eval")
    with pytest.raises(OptionError, match="dialect trec_eval"):
        verdict(OLD, "recall>=baseline", baseline=trec)
    found = gate(values.result(OLD), "recall>=baseline", baseline=values.result(OLD[:40]))
    assert found.verdicts[0].n == 40
    assert [(each.kind, each.count) for each in found.findings] == [("unpaired-query", 20)]


# coverage: facts about the evaluation


def test_coverage_is_decided_by_the_value() -> None:
    run = {"q": ["a", "u"], "r": ["u", "v"], "s": ["c"]}
    result = findwell.evaluate(run, {"q": ["a"], "r": ["b"], "s": []}, ["recall@2", "judged@2"])
    met = ["judged@2>=0.16", "undefined<=1", "undefined<=34%", "failed<=0", "queries>=3"]
    missed = ["judged@2>=0.5", "undefined<=0", "undefined<=33%", "queries>=4", "unjudged@2<=0.1"]
    assert {each.outcome for each in gate(result, met).verdicts} == {"pass"}
    verdicts = gate(result, missed).verdicts
    assert {each.outcome for each in verdicts} == {"fail"}
    assert {each.decided_by for each in verdicts} == {"value"}
    assert all(each.low is None for each in verdicts)
    assert verdicts[2].value == pytest.approx(1 / 3)


# what is measured


def test_measures_are_added_and_found_at_their_level() -> None:
    run, gold = {"q": ["a", "b"], "r": ["c"]}, {"q": {"a": 1, "b": 2}, "r": {"c": 2}}
    result = findwell.evaluate(run, gold, ["recall@1"], rel=2)
    found = gate(result, ["recall@1>=0.1", "P@2>=0.1"], decide="value").verdicts
    assert [each.measure for each in found] == ["recall(rel=2)@1", "P@2"]
    assert [str(measure) for measure in result.measures] == ["recall(rel=2)@1"]
    with pytest.raises(FindwellError, match="has no relation 'rouge'"):
        gate(result, "recall/rouge>=0.5")


# what comes of it


@pytest.mark.parametrize(
    ("outcomes", "undecided", "code"),
    [
        (["pass"], "error", 0),
        (["pass", "undecided"], "error", 3),
        (["pass", "undecided"], "pass", 0),
        (["pass", "undecided"], "fail", 1),
        (["undecided", "fail"], "error", 1),
        (["undecided", "fail"], "pass", 1),
        ([], "error", 0),
    ],
)
def test_exit_codes(outcomes: list[str], undecided: str, code: int) -> None:
    lines = {"pass": "recall>=0.1", "fail": "recall>=0.99", "undecided": "recall>=0.66"}
    asked = [lines[outcome] for outcome in outcomes]
    found = gate(values.result(OLD), asked, undecided=undecided)
    assert [each.outcome for each in found.verdicts] == outcomes
    assert (found.exit_code, found.passed) == (code, code == 0)
    with pytest.raises(OptionError, match="undecided gates 'skip'"):
        gate(values.result(OLD), asked, undecided="skip")


def test_json() -> None:
    shown = gate(values.result(OLD), ["recall>=0.1", "queries>=60"]).as_dict()
    assert shown["gate"] == "pass"
    assert [row["requirement"] for row in shown["requirements"]] == ["recall>=0.1", "queries>=60"]
    assert json.loads(json.dumps(shown)) == shown
    assert GateReport(()).as_dict() == {"gate": "pass", "requirements": []}


# what may take the place of a baseline


def succession(baseline: findwell.Result, result: findwell.Result, *slices: str) -> dict[str, Any]:
    """Return what speaks against it, by kind; worse measures under "worse"."""
    found = check_update(result, baseline, slices)
    said: dict[str, Any] = {each.kind: each.examples for each in found.findings}
    said |= {"worse": [each.measure for each in found.worse]} if found.worse else {}
    assert found.allowed == (not said)
    return said


def test_a_measure_that_was_not_asked_for_is_measured_as_well() -> None:
    first_last = {f"q{n}": [*docs[1:], docs[0]] for n, docs in enumerate(values.run(OLD).values())}
    swapped = {query: docs[::-1] for query, docs in values.run(OLD).items()}
    gold = {query: dict.fromkeys(docs, 1) | {"d0": 5} for query, docs in values.gold(60).items()}
    before = findwell.evaluate(values.run(OLD), gold, ["recall", "nDCG"])
    for run in (first_last, swapped):
        after = findwell.evaluate(run, gold, ["recall"])
        assert after["recall"] == before["recall"]
        assert succession(before, after) == {"worse": ["nDCG"]}
    found = check_update(findwell.evaluate(values.run(OLD), gold, ["P@5"]), before)
    assert found.allowed
    assert [str(measure) for measure in found.added] == ["recall", "nDCG"]
    assert [str(measure) for measure in found.result.measures] == ["P@5", "recall", "nDCG"]
    strict = findwell.evaluate(values.run(OLD), gold, ["recall"], rel=2)
    assert [str(each) for each in check_update(strict, before).added] == ["recall", "nDCG"]


def test_a_value_that_is_worse_by_little_is_worse() -> None:
    little = OLD.copy()
    little[0] -= 0.1
    assert succession(values.result(OLD), values.result(little)) == {"worse": ["recall"]}
    assert succession(values.result(little), values.result(OLD)) == {}
    assert succession(values.result(OLD), values.result(OLD)) == {}
    low = values.result(little, "unjudged@5")
    assert succession(low, values.result(OLD, "unjudged@5")) == {}
    more = {query: [*docs, "u"] for query, docs in values.run(little).items()}
    unjudged = findwell.evaluate(more, values.gold(60), ["unjudged@5"])
    assert succession(low, unjudged) == {"worse": ["unjudged@5"]}


def test_nothing_of_a_baseline_is_lost() -> None:
    whole, part = values.result(OLD), values.result(OLD[:58])
    assert succession(whole, part) == {"lost-query": ("q58", "q59")}
    assert succession(part, whole) == {}
    runs = {"a": values.run(OLD), "b": values.run(BETTER)}
    both = findwell.evaluate(runs, values.gold(60), ["recall"])
    one = findwell.evaluate({"b": runs["b"]}, values.gold(60), ["recall"])
    assert succession(both, one) == {"lost-run": ("a",)}
    assert succession(one, both) == {"worse": ["recall"]}  # a is worse than the only run
    about = [{"query": f"q{n}", "topic": "odd" if n % 2 else "even"} for n in range(60)]
    sliced = findwell.evaluate(values.run(OLD), values.gold(60), ["recall"], queries=about)
    assert succession(sliced, whole) == {"lost-column": ("topic",)}
    texts = [{"query": "q", "retrieved": ["a b c"], "gold": ["a b"]}]
    by_both = findwell.evaluate(texts, measures=["recall/exact", "recall/rouge"])
    by_one = findwell.evaluate(texts, measures=["recall/exact"])
    assert succession(by_both, by_one) == {"lost-measure": ("recall/rouge",)}
    assert succession(by_one, by_both) == {}


def test_what_was_measured_otherwise_takes_no_place() -> None:
    whole = values.result(OLD)
    run, gold = values.run(BETTER), values.gold(60)
    fewer = {query: docs[:9] for query, docs in gold.items()}
    assert list(succession(whole, findwell.evaluate(run, fewer, ["recall"]))) == ["other-gold"]
    skipping = findwell.evaluate(run, gold, ["recall"], reading=findwell.Reading(missing="skip"))
    assert succession(whole, skipping) == {"other-choice": ("missing: skip instead of zero",)}
    texts = [{"query": "q", "retrieved": ["a b c"], "gold": ["a b"]}]
    exact, rouge = (findwell.evaluate(texts, measures="recall", by=by) for by in ("exact", "rouge"))
    assert succession(exact, rouge) == {
        "other-choice": ("relation: rouge(threshold=0.7) instead of exact",)
    }
    with pytest.raises(OptionError, match="dialect trec_eval"):
        check_update(whole, findwell.evaluate(run, gold, ["recall"], dialect="trec_eval"))


def test_a_slice_that_is_surely_worse() -> None:
    about = [{"query": f"q{n}", "topic": "a" if n < 40 else "b"} for n in range(60)]
    shifted = np.where(np.arange(60) < 40, BETTER, np.maximum(OLD - 0.3, 0))
    before, after = (
        findwell.evaluate(values.run(each), values.gold(60), ["recall"], queries=about)
        for each in (OLD, shifted)
    )
    assert after["recall"] > before["recall"]  # type: ignore[operator]
    assert succession(before, after) == {}
    assert succession(before, after, "topic") == {"worse-slice": ("topic=b: recall",)}
    noisy = findwell.evaluate(values.run(np.maximum(NOISY, OLD)), values.gold(60), queries=about)
    assert "worse-slice" not in succession(before, noisy, "topic")


@pytest.mark.parametrize(
    ("scores", "margin", "outcome"),
    [
        (BETTER, 0.0, "pass"),
        (OLD, 0.0, "pass"),
        (NOISY, 0.0, "undecided"),
        (NOISY, 0.2, "pass"),
        (np.maximum(OLD - 0.2, 0), 0.0, "fail"),
        (np.maximum(OLD - 0.2, 0), 0.05, "fail"),
        (np.maximum(OLD - 0.2, 0), 0.3, "pass"),
    ],
)
def test_no_regression(scores: Any, margin: float, outcome: str) -> None:
    comparison = findwell.compare(values.result(OLD), values.result(scores))
    asked = no_regression(comparison, "recall", margin=margin)
    assert gate(comparison, asked).outcome == outcome
    by_value = gate(comparison, asked, decide="value")
    fell = float((scores - OLD).mean()) < -margin - 1e-9
    assert by_value.outcome == ("fail" if fell else "pass")


def test_no_regression_of_what_should_be_low() -> None:
    run, other = {"q": ["u", "v"], "r": ["u"]}, {"q": ["a"], "r": ["a"]}
    gold = {"q": ["a"], "r": ["a"]}
    comparison = findwell.compare(run, other, gold=gold, measures="unjudged@2")
    assert gate(comparison, no_regression(comparison, "unjudged@2")).outcome == "pass"
    back = findwell.compare(other, run, gold=gold, measures="unjudged@2")
    (found,) = gate(back, no_regression(back, "unjudged@2", margin=0.1)).verdicts
    assert (found.requirement, found.outcome) == ("unjudged@2<=baseline+0.1", "fail")
    with pytest.raises(OptionError, match="margin is -1"):
        no_regression(comparison, "unjudged@2", margin=-1)


def test_a_comparison_is_held_against_its_own_baseline() -> None:
    systems = {"old": OLD, "better": BETTER, "worse": np.maximum(OLD - 0.2, 0)}
    runs = {name: values.run(scores) for name, scores in systems.items()}
    comparison = findwell.compare(runs, gold=values.gold(60), measures=["recall"])
    found = findwell.gate(comparison, "recall>=baseline-0.02")
    assert [(each.run, each.outcome) for each in found.verdicts] == [
        ("better", "pass"),
        ("worse", "fail"),
    ]
    alone = gate(values.result(BETTER), "recall>=baseline-0.02", baseline=values.result(OLD))
    two = findwell.compare(
        {name: runs[name] for name in ("old", "better")}, gold=values.gold(60), measures="recall"
    )
    (first,) = findwell.gate(two, "recall>=baseline-0.02").verdicts
    (same,) = alone.verdicts
    assert (first.low, first.high, first.difference) == (same.low, same.high, same.difference)
    for asked in ("recall>=0.8", "recall>=baseline*0.9", "failed<=0"):
        with pytest.raises(OptionError, match="does not compare with the baseline"):
            gate(comparison, asked)
    with pytest.raises(OptionError, match="has a baseline already"):
        gate(comparison, "recall>=baseline", baseline=values.result(OLD))


def test_results_are_folders_too(tmp_path: Path) -> None:
    result, folder = values.result(OLD), values.result(OLD).save(tmp_path / "saved")
    assert findwell.gate(folder, "recall>=0.1") == findwell.gate(result, "recall>=0.1")

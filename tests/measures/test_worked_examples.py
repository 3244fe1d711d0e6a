"""Every measure, worked out by hand on lists short enough to check with a pencil."""

from __future__ import annotations

import math
from typing import Any

import pytest

import findwell


def value(name: str, run: Any, gold: Any, **options: Any) -> float | None:
    """Return one measure of one query."""
    return findwell.evaluate({"q": run}, {"q": gold}, [name], **options)[name]


def log2(number: float) -> float:
    return math.log2(number)


FLAT_RUN = ["a", "x", "y", "b", "c", "z"]  # hits at 1, 4, 5 of 6
FLAT_GOLD = ["a", "b", "c", "d"]
FLAT = {
    "P": 3 / 6,
    "P@1": 1 / 1,
    "P@4": 2 / 4,
    "P@10": 3 / 10,  # ÷ k, also when fewer were retrieved
    "recall": 3 / 4,
    "recall@4": 2 / 4,
    "F": 2 * (1 / 2) * (3 / 4) / (1 / 2 + 3 / 4),  # 3/5
    "F@4": 1 / 2,
    "IoU": 3 / (4 + 3),  # 3 of 4 items, and 3 units that cover none
    "IoU@4": 2 / (4 + 2),
    "F(beta=2)": 5 * (1 / 2) * (3 / 4) / (4 * (1 / 2) + 3 / 4),  # 15/22
    "RR": 1.0,
    "RR@1": 1.0,
    "success@1": 1.0,
    "all_found": 0.0,
    "AP": (1 + 2 / 4 + 3 / 5) / 4,  # 21/40
    "AP@4": (1 + 2 / 4) / 4,  # 3/8
    "AP(over=retrieved)": (1 + 2 / 4 + 3 / 5) / 3,  # 7/10
    "AP(over=retrieved)@4": (1 + 2 / 4) / 2,  # 3/4
    "AP(over=min)": (1 + 2 / 4 + 3 / 5) / 4,  # no cutoff: over the relevant
    "AP(over=min)@2": 1 / 2,
    "AP(over=min)@5": (1 + 2 / 4 + 3 / 5) / 4,
    "GMAP": (1 + 2 / 4 + 3 / 5) / 4,
    "Rprec": 2 / 4,
    "DCG": 1 + 1 / log2(5) + 1 / log2(6),
    "nDCG": (1 + 1 / log2(5) + 1 / log2(6)) / (1 + 1 / log2(3) + 1 / 2 + 1 / log2(5)),
    "nDCG@1": 1.0,
    "nDCG@2": 1 / (1 + 1 / log2(3)),
    "nDCG@4": (1 + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / 2 + 1 / log2(5)),
    "RBP(p=0.5)": 0.5 * (1 + 1 / 8 + 1 / 16),  # 19/32
    "RBP(p=0.5)@4": 0.5 * (1 + 1 / 8),  # 9/16
    # x, y, z are unjudged, as is everything below
    "RBP_residual(p=0.5)": 1 - 0.5 * (1 + 1 / 8 + 1 / 16),  # 13/32
    # every grade is the highest, 1: each hit satisfies one reader in two
    "ERR(max=1)": 1 / 2 + 1 / 2 * 1 / 2 / 4 + 1 / 4 * 1 / 2 / 5,  # 47/80
    "ERR(max=1)@3": 1 / 2,
    "IPrec@0": 1.0,
    "IPrec@0.25": 1.0,  # ⌊.25 · 4 + .9⌋ = 1 item
    "IPrec@0.5": 3 / 5,  # 2 items: max(2/4, 3/5)
    "IPrec@0.75": 3 / 5,
    "IPrec@1": 0.0,  # never gets there
    # levels 0, .1, .2 ask for 0, 1, 1 items; .3 … .7 for 2, 2, 2, 3, 3; .8 … 1 for 4
    "11pt": (1 + 1 + 1 + 5 * 3 / 5) / 11,  # 6/11
    "bpref": 3 / 4,  # no judged non-relevant document: each hit counts in full
    "judged": 3 / 6,
    "judged@2": 1 / 2,
    "judged@10": 3 / 6,  # of the six there are
    "unjudged": 3 / 6,
    "unjudged@2": 1 / 2,
    "unjudged@10": 3 / 10,
    "queries": 1.0,
    "retrieved": 6.0,
    "retrieved@4": 4.0,
    "relevant": 4.0,
    "relevant_retrieved": 3.0,
    "relevant_retrieved@4": 2.0,
    # no document belongs to two items, so novelty changes nothing
    "alpha_nDCG": (1 + 1 / log2(5) + 1 / log2(6)) / (1 + 1 / log2(3) + 1 / 2 + 1 / log2(5)),
    "relative_P": 3 / 4,  # six could hold four
    "relative_P@2": 1 / 2,
    "relative_P@5": 3 / 4,
    "set_map": 3 / 6 * 3 / 4,
    "Rprec_mult@0.01": 0.0,  # ⌊.04 + .9⌋ = 0: down to nowhere
    "Rprec_mult@0.1": 1 / 1,  # ⌊.4 + .9⌋ = 1
    "Rprec_mult@0.5": 1 / 2,
    "Rprec_mult@1": 2 / 4,
    "Rprec_mult@2": 3 / 8,
    # two units of noise stand above b and c: log2(2 + 2)
    "binG": (1 + 1 / 2 + 1 / 2) / 4,
    "G": (1 + 1 / 2 + 1 / 2) / 4,  # the same where all grades are
    "gm_bpref": 3 / 4,
    # at the ranks of a, b, c and, for d which was missed, at the end
    "ndcg_rel": (
        1
        + (1 + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / 2 + 1 / log2(5))
        + 2 * (1 + 1 / log2(5) + 1 / log2(6)) / (1 + 1 / log2(3) + 1 / 2 + 1 / log2(5))
    )
    / 4,
    # after the four items of the ideal list, and at the end, which is two ranks further
    "Rndcg": (2 + 2 / log2(5) + 1 / log2(6)) / (1 + 1 / log2(3) + 1 / 2 + 1 / log2(5)) / 2,
    "utility": 3 - 3.0,
    "utility(hit=2,miss=-1)": 6 - 3 - 1.0,
    "utility(rest=1,docs=100)": 3 - 3 + 100 - 6 - 1.0,
    "rejected_retrieved": 0.0,
    "redundancy": 0.0,
    "position": 0.0,
    "position(of=last)": 4 / 5,
    "in_third": 1 / 3,  # b, of the three that were found
    "in_third(third=first)@4": 1 / 2,
    "cost_to(recall=0.5)": 4.0,
}
# those that need texts, dates or marks: test_context.py, test_hops.py
BESIDE = {"age", "context_cost", "forbidden", "items_per", "near_duplicates"}


@pytest.mark.parametrize(("name", "expected"), FLAT.items())
def test_a_flat_list(name: str, expected: float) -> None:
    assert value(name, FLAT_RUN, FLAT_GOLD) == pytest.approx(expected, rel=1e-14)


def test_every_measure_has_a_worked_example() -> None:
    shown = {findwell.plugins.parse_measure(name).name for name in (*FLAT, *GRADED, *GROUPED)} | {
        "infAP"
    }
    assert shown | BESIDE == set(findwell.plugins.known_measures())


def test_the_course_notes() -> None:
    # hits at 1, 4, 5 of 6, over what was retrieved: (1/1 + 2/4 + 3/5) / 3 = 7/10
    assert value("AP(over=retrieved)", FLAT_RUN, ["a", "b", "c"]) == pytest.approx(0.7)
    # first ranks 1, 3, 6, 2: (1 + 1/3 + 1/6 + 1/2) / 4 = 1/2
    run = {f"q{rank}": [*(f"n{n}" for n in range(rank - 1)), "a"] for rank in (1, 3, 6, 2)}
    gold = {query: ["a"] for query in run}
    assert findwell.evaluate(run, gold, ["MRR"])["RR"] == pytest.approx(0.5)


GRADED_RUN = ["b", "n", "a", "u", "c"]
GRADED_GOLD = {"a": 3, "b": 1, "c": 2, "d": 0.5, "n": 0, "m": 0, "p": -1}
IDEAL = 3 + 2 / log2(3) + 1 / 2 + 0.5 / log2(5)
GRADED = {
    "P": 3 / 5,
    "P(rel=2)": 2 / 5,
    "P(rel=0.5)": 3 / 5,
    "recall": 3 / 3,
    "recall(rel=2)@3": 1 / 2,
    "recall(rel=0.5)": 3 / 4,
    "recall(rel=3)": 1.0,
    "all_found": 1.0,
    "all_found@4": 0.0,
    "all_found(rel=3)@3": 1.0,
    "RR(rel=2)": 1 / 3,
    "RR(rel=2)@2": 0.0,
    "success(rel=2)@2": 0.0,
    "AP": (1 + 2 / 3 + 3 / 5) / 3,  # 34/45
    "AP(rel=2)": (1 / 3 + 2 / 5) / 2,  # 11/30
    "AP(rel=0.5)": (1 + 2 / 3 + 3 / 5) / 4,  # 17/30
    "Rprec": 2 / 3,
    "Rprec(rel=2)": 0 / 2,
    "DCG": 1 + 3 / 2 + 2 / log2(6),
    "DCG@3": 1 + 3 / 2,
    "DCG(gain=exp)@3": 1 + 7 / 2,
    # the ideal list gains 3, 2, 1, ½, where ½ counts 1: each hit is 2 behind, log2(2 + 2)
    "G": (1 / 2 + 3 / 2 + 2 / 2) / 6.5,  # 6/13
    # above a stand b and n, which are not relevant at 2; above c also u
    "binG(rel=2)": (1 / 2 + 1 / log2(5)) / 2,
    "ndcg_rel": (
        1 / 3
        + (1 + 3 / 2) / (3 + 2 / log2(3) + 1 / 2)
        + 2 * (1 + 3 / 2 + 2 / log2(6)) / IDEAL  # c, and d which was missed
    )
    / 4,
    # four gains of one item each; the end is only one rank further down and not counted
    "Rndcg": (
        1 / 3
        + 1 / (3 + 2 / log2(3))
        + (1 + 3 / 2) / (3 + 2 / log2(3) + 1 / 2)
        + (1 + 3 / 2) / IDEAL
    )
    / 4,
    "rejected_retrieved": 1.0,
    "rejected_retrieved(rel=2)": 2.0,
    "rejected_retrieved(rel=2)@1": 1.0,
    "nDCG": (1 + 3 / 2 + 2 / log2(6)) / IDEAL,
    "nDCG@1": 1 / 3,
    "nDCG@3": (1 + 3 / 2) / (3 + 2 / log2(3) + 1 / 2),
    "nDCG(gain=exp)": (1 + 7 / 2 + 3 / log2(6))
    / (7 + 3 / log2(3) + 1 / 2 + (math.sqrt(2) - 1) / log2(5)),
    # R = 3, N = 3 judged below 1 (n, m, d); b has none above, a and c have one: 1 − 1/3
    "bpref": (1 + 2 / 3 + 2 / 3) / 3,  # 7/9
    # R = 2; b, d, n and m are judged below 2: N = 4; a and c have two above: 1 − 2/2
    "bpref(rel=2)": 0.0,
    # highest grade 3: R = 1/8, 7/8, 3/8 at ranks 1, 3, 5
    "ERR(max=3)": 1 / 8 + 7 / 8 * 7 / 8 / 3 + 7 / 8 * 1 / 8 * 3 / 8 / 5,
    "ERR@3": 1 / 16 + 15 / 16 * 7 / 16 / 3,
    "judged": 4 / 5,  # u is unknown
    "unjudged": 1 / 5,
    "relevant": 3.0,
    "relevant(rel=0.5)": 4.0,
    "relevant_retrieved(rel=2)@3": 1.0,
    "RBP(p=0.5)": 0.5 * (1 + 1 / 4 + 1 / 16),  # 21/32
    "RBP(p=0.5,rel=2)": 0.5 * (1 / 4 + 1 / 16),  # 5/32
    "RBP_residual(p=0.5)": 1 - 0.5 * (1 + 1 / 2 + 1 / 4 + 1 / 16),  # 3/32
}


@pytest.mark.parametrize(("name", "expected"), GRADED.items())
def test_a_graded_list(name: str, expected: float) -> None:
    canonical = str(findwell.plugins.parse_measure(name))
    found = value(canonical, GRADED_RUN, GRADED_GOLD)
    assert found == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_a_gain_table() -> None:
    run, gold = ["b", "a"], {"a": 2, "b": 1}
    expected = (1 + 10 / log2(3)) / (10 + 1 / log2(3))
    assert value("nDCG(gain=0:1:10)", run, gold) == pytest.approx(expected)
    assert value("DCG(gain=0:1:10)", run, gold) == pytest.approx(1 + 10 / log2(3))


def test_inferred_ap() -> None:
    # u is pooled but unjudged, x judged not relevant, o outside the pool
    run, gold = ["u", "x", "a", "o", "b"], {"a": 1, "b": 1, "x": 0, "u": -1}
    epsilon = 0.00001
    at_a = 1 / 3 + (0 + 1 + 1) / 3 * (0 + epsilon) / (0 + 1 + 2 * epsilon)
    at_b = 1 / 5 + (1 + 1 + 1) / 5 * (1 + epsilon) / (1 + 1 + 2 * epsilon)
    assert value("infAP", run, gold) == pytest.approx((at_a + at_b) / 2, rel=1e-14)
    assert value("infAP", ["a"], ["a"]) == 1


def test_a_unit_that_is_relevant_is_not_pooled_as_well() -> None:
    # a satisfies a relevant item, and another whose relevance nobody judged: it is relevant
    run = {"q": ["a", "b"]}
    plain = [{"docs": ["a"], "grade": 1}, {"docs": ["b"], "grade": 1}]
    pooled = [*plain, {"docs": ["a", "c"], "grade": -1}]
    expected = findwell.evaluate(run, [{"query": "q", "gold": plain}], ["infAP"])["infAP"]
    found = findwell.evaluate(run, [{"query": "q", "gold": pooled}], ["infAP"])["infAP"]
    assert found == expected
    assert found == pytest.approx((1 + 1 / 2 + 1 / 2 * 1.00001 / 1.00002) / 2, rel=1e-14)


# (a or b) and (c or d) and a again in (a or e): three items; a is rich, it covers two of them
GROUPED_RUN = ["x", "b", "a", "c", "d"]
GROUPED_GOLD = [["a", "b"], ["c", "d"], ["a", "e"]]
GROUPED_IDEAL = 1 + 1 / log2(3) + 1 / 2
GROUPED = {
    # b, a, c, d are relevant units, d too although its item was found already
    "P": 4 / 5,
    "P@4": 3 / 4,
    # items: b finds the first at rank 2, a the third at rank 3, c the second at rank 4
    "recall": 3 / 3,
    "recall@2": 1 / 3,
    "recall@3": 2 / 3,
    "all_found@3": 0.0,
    "all_found@4": 1.0,
    "RR": 1 / 2,
    "success@1": 0.0,
    "success@2": 1.0,
    "F@4": 2 * (3 / 4) * 1 / (3 / 4 + 1),  # 6/7
    "AP": (1 / 2 + 2 / 3 + 3 / 4) / 3,  # 23/36
    "AP@3": (1 / 2 + 2 / 3) / 3,  # 7/18
    "AP(over=retrieved)@3": (1 / 2 + 2 / 3) / 2,  # 7/12
    "AP(over=min)@2": (1 / 2) / 2,  # 1/4
    "Rprec": 2 / 3,  # b and a among the first three
    "DCG": 1 / log2(3) + 1 / 2 + 1 / log2(5),
    "nDCG": (1 / log2(3) + 1 / 2 + 1 / log2(5)) / GROUPED_IDEAL,
    "relative_P": 1.0,  # four relevant units for three items: capped
    "relative_P@2": 1 / 2,
    "set_map": 4 / 5 * 3 / 3,
    "binG": 1 / log2(3),  # x stands above all of them
    "IPrec@1": 4 / 5,
    "IPrec@0.5": 4 / 5,  # ⌊1.5 + .9⌋ = 2 items, from rank 3 on: max(2/3, 3/4, 4/5)
    "RBP(p=0.5)": 0.5 * (1 / 2 + 1 / 4 + 1 / 8 + 1 / 16),  # 15/32
    "relevant": 3.0,
    "relevant_retrieved": 3.0,
    "relevant_retrieved@3": 2.0,
    "judged": 4 / 5,
    # gains: b 1, a ½ for the first item (seen) and 1 for the third, c 1, d ½; the ideal list is
    # a 2, then c 1 (or d), then the best of b ½, d ½, e ½: ½, ½, ½
    "alpha_nDCG": (1 / log2(3) + 1.5 / 2 + 1 / log2(5) + 0.5 / log2(6))
    / (2 + 1 / log2(3) + 0.5 / 2 + 0.5 / log2(5) + 0.5 / log2(6)),
}


@pytest.mark.parametrize(("name", "expected"), GROUPED.items())
def test_groups(name: str, expected: float) -> None:
    assert value(name, GROUPED_RUN, GROUPED_GOLD) == pytest.approx(expected, rel=1e-14)


def test_all_of_and_any_of() -> None:
    gold = [["a", "b"], ["c"]]  # (a or b) and c
    assert value("recall", ["a"], gold) == 1 / 2
    assert value("recall", ["b"], gold) == 1 / 2
    assert value("recall", ["a", "b"], gold) == 1 / 2  # an item covered twice counts once
    assert value("recall", ["c", "b"], gold) == 1
    assert value("recall", ["x"], gold) == 0
    assert value("all_found", ["a", "b"], gold) == 0
    assert value("all_found", ["b", "c"], gold) == 1


RICH_RUN, RICH_GOLD = ["r", "x"], [["r", "a"], ["r", "b"]]  # r alone covers both items
RICH = {
    "P": 1 / 2,
    "P@1": 1.0,
    "recall@1": 1.0,
    "RR": 1.0,
    "AP": (1 + 1) / 2,
    "AP(over=retrieved)": (1 + 1) / 2,
    "Rprec": 1 / 2,  # R = 2: one relevant unit among the first two
    "DCG": 1 + 1,
    "nDCG": 1.0,  # 2 ÷ (1 + 1/log2 3) is capped
    "IPrec@1": 1.0,
    "11pt": 1.0,
    "success@1": 1.0,
    "relevant_retrieved@1": 2.0,
    "alpha_nDCG@1": 1.0,
    "RBP(p=0.5)": 0.5,
    "G": 1.0,
    "ndcg_rel": 1.0,
    "Rndcg": 1.0,
}


@pytest.mark.parametrize(("name", "expected"), RICH.items())
def test_a_rich_unit(name: str, expected: float) -> None:
    assert value(name, RICH_RUN, RICH_GOLD) == pytest.approx(expected, rel=1e-14)


def test_a_rich_unit_further_down() -> None:
    # r at rank 2 covers two of three items, each with precision 1/2
    run, gold = ["x", "r", "c"], [["r", "a"], ["r", "b"], "c"]
    assert value("AP", run, gold) == pytest.approx((1 / 2 + 1 / 2 + 2 / 3) / 3)  # 5/9
    assert value("recall@2", run, gold) == pytest.approx(2 / 3)
    assert value("DCG", run, gold) == pytest.approx(2 / log2(3) + 1 / 2)
    assert value("IPrec@0.3", run, gold) == pytest.approx(2 / 3)


REPEATED_RUN, REPEATED_GOLD = ["a", "a", "x", "b", "a"], ["a", "b", "c"]
REPEATED = {
    "P": 2 / 5,  # a repetition of a unit is noise
    "P@2": 1 / 2,
    "recall": 2 / 3,
    "AP": (1 + 2 / 4) / 3,  # 1/2
    "RR": 1.0,
    "Rprec": 1 / 3,
    "DCG": 1 + 1 / log2(5),
    "nDCG": (1 + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / 2),
    "RBP(p=0.5)": 0.5 * (1 + 1 / 8),  # 9/16
    "binG": (1 + 1 / 2) / 3,  # a again and x stand above b
    "utility": 2 - 3.0,
    "rejected_retrieved": 0.0,
    "alpha_nDCG": (1 + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / 2),
    "retrieved": 5.0,
    "relevant_retrieved": 2.0,
    "ERR(max=1)": 1 / 2 + 1 / 2 * 1 / 2 / 4,  # 9/16
    "judged": 4 / 5,  # somebody did look at a
}


@pytest.mark.parametrize(("name", "expected"), REPEATED.items())
def test_a_repetition_is_noise(name: str, expected: float) -> None:
    assert value(name, REPEATED_RUN, REPEATED_GOLD) == pytest.approx(expected, rel=1e-14)


def test_all_of_a_list_repeated_cannot_pass_one() -> None:
    for name in ("P", "recall", "AP", "nDCG", "Rprec", "RBP", "alpha_nDCG", "ERR"):
        found = value(name, ["a"] * 10, ["a"])
        assert found is not None
        assert found <= 1, name


def test_graded_groups() -> None:
    # the better item first; b finds it at rank 1, c the other at rank 2
    gold = [{"docs": ["a", "b"], "grade": 3}, {"docs": ["c"], "grade": 0.5}]
    run = {"q": ["c", "b", "a"]}
    result = findwell.evaluate(run, [{"query": "q", "gold": gold}], ["nDCG", "recall", "P", "DCG"])
    assert result["DCG"] == pytest.approx(0.5 + 3 / log2(3))
    assert result["nDCG"] == pytest.approx((0.5 + 3 / log2(3)) / (3 + 0.5 / log2(3)))
    assert result["recall"] == 1  # ½ is below the level
    assert result["P"] == pytest.approx(2 / 3)


def test_a_rich_unit_satisfies_with_its_best_grade() -> None:
    # ERR: r covers grades 3 and 1 and satisfies once, with 7/8; then b adds nothing new but c 1/8
    gold = [
        {"docs": ["r"], "grade": 3},
        {"docs": ["r", "b"], "grade": 1},
        {"docs": ["c"], "grade": 1},
    ]
    name = "ERR(max=3)"
    found = findwell.evaluate({"q": ["r", "c"]}, [{"query": "q", "gold": gold}], [name])[name]
    assert found == pytest.approx(7 / 8 + 1 / 8 * 1 / 8 / 2)


def test_a_rejected_unit_that_also_covers_something_relevant_is_relevant() -> None:
    # for bpref: a is judged not relevant for one item and relevant for another
    gold = [
        {"docs": ["a"], "grade": 1},
        {"docs": ["a", "c"], "grade": 0},
        {"docs": ["b"], "grade": 1},
    ]
    found = findwell.evaluate({"q": ["a", "b"]}, [{"query": "q", "gold": gold}], ["bpref"])["bpref"]
    assert found == 1


def test_err_with_grades_that_leave_no_doubt() -> None:
    # (2^60 − 1) ÷ 2^60 is 1 in floating point: the reader surely stops, and only that reader
    run = {"p": ["a", "b"], "q": ["x", "a"], "r": ["b"]}
    gold = {"p": {"a": 60, "b": 60}, "q": {"a": 60}, "r": {"b": 60}}
    result = findwell.evaluate(run, gold, ["ERR(max=60)"])
    values = dict(zip(result.per_query["query"], result.per_query["value"], strict=True))
    assert values == pytest.approx({"p": 1.0, "q": 0.5, "r": 1.0})


def test_means_leave_out_the_undefined_and_count_the_missing_as_zero() -> None:
    run = {"q1": ["a"], "q3": ["a"]}
    gold = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 0}}
    result = findwell.evaluate(run, gold, ["recall", "GMAP", "queries"])
    assert result["recall"] == 1 / 2
    assert result["GMAP"] == pytest.approx(math.sqrt(1 * 0.00001))
    assert result["queries"] == 3


def test_bounds_of_a_list_with_an_unjudged_unit() -> None:
    # if u is relevant: P 2/2, recall 2/3, RR 1; if not: P 1/2, recall 1/2, RR 1/2
    run, gold = {"q": ["u", "a"]}, {"q": {"a": 1, "b": 1}}
    table = findwell.evaluate(run, gold, ["P", "recall", "RR", "judged"], bounds=True).per_query
    bounds = {row["measure"]: (row["lower"], row["upper"]) for row in table.to_dicts()}
    assert bounds == {
        "P": (1 / 2, 1.0),
        "recall": (1 / 2, 2 / 3),
        "RR": (1 / 2, 1.0),
        "judged": (1 / 2, 1.0),
    }


def test_bounds_of_pooled_but_unjudged_units_stay_in_range() -> None:
    run, gold = {"q": ["u", "a"]}, {"q": {"a": 1, "u": -1}}
    row = findwell.evaluate(run, gold, ["infAP"], bounds=True).per_query.row(0, named=True)
    assert 0 <= row["lower"] <= row["value"] <= row["upper"] <= 1

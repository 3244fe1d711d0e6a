"""trec_eval's dialects: what version 10 changed, its measures by name, and its lists of them.

The formulas of version 9 are compared with its C code in tests/measures/test_against_pytrec_eval.
Nothing runs version 10 here. What it changed is written down again below, plainly and document by
document, and checked against what its own suite expects for its topic 302.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest
import pytrec_eval

import findwell
from findwell.core.errors import MeasureError
from findwell.measures.dialects import expand_measures, resolve_measures
from tests.strategies import by_measure, random_scored, without_facts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Findwell
    from tests.strategies import Graded, Scored

# Where the relevant documents of topic 302 stand in the list of 500 that trec_eval's own suite
# evaluates; 27 more are not in it.
RANKS_302 = [1, 2, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 22, 24, 27, 28, 30, 31]
RANKS_302 += [34, 36, 37, 39, 42, 43, 44, 47, 48, 49, 50, 51, 53, 56, 58, 72, 79, 82, 84, 116, 154]
RANKS_302 += [289, 301, 331, 353, 394, 458]
# What the suite expects, to four decimals.
EXPECTED_302 = {
    "num_ret": 500,
    "num_rel": 77,
    "num_rel_ret": 50,
    "map": 0.4175,
    "Rprec": 0.5065,
    "recip_rank": 1.0,
    "iprec_at_recall_0.00": 1.0,
    "iprec_at_recall_0.10": 0.8421,
    "iprec_at_recall_0.20": 0.8421,
    "iprec_at_recall_0.30": 0.7419,
    "iprec_at_recall_0.40": 0.6863,
    "iprec_at_recall_0.50": 0.5417,
    "iprec_at_recall_0.70": 0.0,
    "P_30": 0.7333,
    "recall_200": 0.5714,
    "Rprec_mult_0.20": 0.8125,
    "Rprec_mult_0.60": 0.6596,
    "Rprec_mult_1.40": 0.3889,
    "Rprec_mult_2.00": 0.2857,
    "utility": -400.0,
    "binG": 0.2160,
    "G": 0.2160,
    "ndcg": 0.6617,
    "ndcg_rel": 0.7130,
    "Rndcg": 0.6196,
    "ndcg_cut_15": 0.8085,
    "map_cut_30": 0.2298,
    "relative_P_30": 0.7333,
    "relative_P_100": 0.5455,
    "success_1": 1.0,
    "set_P": 0.1,
    "set_relative_P": 0.6494,
    "set_recall": 0.6494,
    "set_map": 0.0649,
    "set_F": 0.1733,
}
# With .0450 and .1065 of the other two topics, 11pt_avg is .1962 and .1958 over all.
CHANGED_302 = {
    "trec_eval": {"iprec_at_recall_0.60": 0.1528, "11pt_avg": 0.4370},
    "trec_eval-9": {"iprec_at_recall_0.60": 0.1420, "11pt_avg": 0.4360},
}


@pytest.mark.parametrize("dialect", CHANGED_302)
def test_topic_302_of_its_own_suite(dialect: str) -> None:
    run = {"302": [f"d{rank}" for rank in range(1, 501)]}
    gold = {"302": {f"d{rank}": 1 for rank in RANKS_302} | {f"m{n}": 1 for n in range(27)}}
    expected = EXPECTED_302 | CHANGED_302[dialect]
    result = findwell.evaluate(run, gold, list(expected), dialect=dialect)
    found = {name: round(result[name] or 0.0, 4) for name in expected}
    assert found == expected


# ---- version 10, written down plainly


def ranked(scores: dict[str, float], grades: dict[str, int]) -> list[int | None]:
    """Return the grades of a list in order, None for what nobody judged."""
    docs = sorted(scores, key=lambda doc: (scores[doc], doc.encode()), reverse=True)
    return [grades[doc] if grades.get(doc, -1) >= 0 else None for doc in docs]


def round_half_up(number: float) -> int:
    whole = int(number)
    return whole + (number - whole >= 0.5)


def interpolated(found: list[int | None], relevant: int, needed: int, level: int = 1) -> float:
    best, hits = 0.0, 0
    for rank, grade in enumerate(found, 1):
        if grade is not None and grade >= level:
            hits += 1
            if hits >= needed:
                best = max(best, hits / rank)
    return best if relevant else 0.0


def iprec(recall: float, rounding: Callable[[float], int]) -> Callable[..., float]:
    def value(found: list[int | None], grades: list[int], level: int) -> float:
        relevant = sum(grade >= level for grade in grades)
        return interpolated(found, relevant, rounding(recall * relevant), level)

    return value


def eleven(found: list[int | None], grades: list[int], level: int) -> float:
    levels = [iprec(tenth / 10, round_half_up)(found, grades, level) for tenth in range(11)]
    return sum(levels) / 11


def rbp(p: float) -> Callable[..., float]:
    def value(found: list[int | None], grades: list[int], _: int) -> float:
        top = max(1, *grades)
        return sum((1 - p) * p**at * (grade or 0) / top for at, grade in enumerate(found))

    return value


def residual(p: float) -> Callable[..., float]:
    def value(found: list[int | None], *_: object) -> float:
        unknown = [p**at for at, grade in enumerate(found) if grade is None]
        return p ** len(found) + (1 - p) * sum(unknown) if unknown else 0.0

    return value


def unj(k: int) -> Callable[..., float]:
    return lambda found, *_: found[:k].count(None) / k


VERSION_10 = {
    **{f"iprec_at_recall_{at:.2f}": iprec(at, round_half_up) for at in (0, 0.05, 0.1, 0.25, 0.5)},
    **{f"iprec_at_recall_{at:.2f}": iprec(at, round_half_up) for at in (0.6, 0.66, 0.9, 1)},
    "11pt_avg": eleven,
    "rbp": rbp(0.9),
    "rbp.p=0.8": rbp(0.8),
    "rbp_p=0.5": rbp(0.5),
    "rbp_resid": residual(0.9),
    "rbp_resid.p=0.8": residual(0.8),
    "unj_5": unj(5),
    "unj_10": unj(10),
    "unj.20": unj(20),
}


def random_case(seed: int, *, complete: bool = False) -> tuple[Scored, Graded]:
    """Return a run and judgements, with queries of few and many relevant documents."""
    grades = (-1, 0, 0, 1, 1, 1, 1, 2, 3)
    run, gold = random_scored(seed, judged=35, levels=None if seed % 2 else 4, grades=grades)
    if complete:  # nothing unjudged for half of the queries
        for query in list(run)[::2]:
            gold[query] |= {doc: 0 for doc in run[query] if gold[query].get(doc, -1) < 0}
    return run, gold


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_version_10(seed: int, level: int) -> None:
    run, gold = random_case(seed, complete=seed == 1)
    result = findwell.evaluate(run, gold, list(VERSION_10), dialect="trec_eval", rel=level)
    values = by_measure(result)
    wrong = [
        (name, query)
        for name, formula in VERSION_10.items()
        for query, scores in run.items()
        if values[str(resolve_measures(name, "trec_eval", level)[0])][query]
        != pytest.approx(
            formula(ranked(scores, gold[query]), list(gold[query].values()), level),
            rel=1e-12,
            abs=1e-15,
        )
    ]
    assert not wrong


def test_the_plain_formula_of_version_10_is_that_of_9_but_for_the_rounding() -> None:
    run, gold = random_case(7)
    for docs in gold.values():
        docs |= {"one": 1, "none": 0}  # pytrec_eval reads foreign memory without judgements
    levels = [0, 0.05, 0.1, 0.25, 0.5, 0.6, 0.66, 0.9, 1]
    names = ",".join(f"{level:.2f}" for level in levels)
    theirs = pytrec_eval.RelevanceEvaluator(gold, {f"iprec_at_recall.{names}"}).evaluate(run)
    differ = 0
    for query, values in theirs.items():
        case = ranked(run[query], gold[query]), list(gold[query].values()), 1
        for level in levels:
            expected = values[f"iprec_at_recall_{level:.2f}"]
            assert iprec(level, lambda x: math.floor(x + 0.9))(*case) == pytest.approx(expected)
            differ += iprec(level, round_half_up)(*case) != pytest.approx(expected)
    assert differ  # so the test of version 10 can tell the two apart


def test_a_missing_query_has_no_residual_and_nothing_unjudged() -> None:
    run, gold = {"q1": ["a", "x"]}, {"q1": {"a": 1}, "q2": {"a": 1}}
    names = ["rbp_resid", "unj_5", "utility", "rbp"]
    values = findwell.evaluate(
        run, gold, names, dialect="trec_eval", reading=findwell.Reading(missing="zero")
    ).values
    expected = [(0.9**2 + 0.1 * 0.9) / 2, 1 / 5 / 2, 0.0, 0.1 / 2]
    assert list(values.values()) == pytest.approx(expected)


# ---- names


def test_what_was_asked_for_is_not_taken_for_a_default() -> None:
    run, gold = {"q": ["x", "a"]}, {"q": ["a", "b"]}
    asked = ["RBP", "RBP(p=0.8)", "RBP(p=0.9)"]
    values = findwell.evaluate(run, gold, asked, dialect="trec_eval").values
    assert values == pytest.approx({"RBP": 0.1 * 0.9, "RBP(p=0.8)": 0.2 * 0.8})
    values = findwell.evaluate(run, gold, asked).values
    assert values == pytest.approx({"RBP": 0.2 * 0.8, "RBP(p=0.9)": 0.1 * 0.9})
    # the same slip in another dialect: its default is over=retrieved
    values = findwell.evaluate(run, gold, ["AP", "AP(over=relevant)"], dialect="course").values
    assert values == pytest.approx({"AP": 1 / 2, "AP(over=relevant)": 1 / 4})


def test_names_find_the_same_measure_again(tmp_path: Path) -> None:
    asked = ["RBP(p=0.8)", "rbp", "iprec_at_recall_0.60", "set_P", "11pt_avg", "success.3", "unj_5"]
    result = findwell.evaluate({"q": ["x", "a"]}, {"q": ["a"]}, asked, dialect="trec_eval")
    again = findwell.load(result.save(tmp_path / "result"))
    assert again.measures == result.measures
    assert again.values == result.values
    assert [again[name] for name in asked] == [result[name] for name in asked]
    assert findwell.compare(result, again).measures == result.measures


LISTS = {
    "P": [f"P@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)],
    "success": ["success@1", "success@5", "success@10"],
    "Rprec_mult": [f"Rprec_mult@{fifth / 5:g}" for fifth in range(1, 11)],
    "iprec_at_recall": [f"IPrec@{tenth / 10:g}" for tenth in range(11)],
    "unj": ["unjudged@5", "unjudged@10", "unjudged@20"],
    "ndcg_cut.10,23": ["nDCG@10", "nDCG@23"],
    "P_5,7,3": ["P@5", "P@7", "P@3"],
    "iprec_at_recall..10,.25": ["IPrec@0.1", "IPrec@0.25"],
    "Rprec_mult.5.0,0.2": ["Rprec_mult@5", "Rprec_mult@0.2"],
    "utility.2,-1,0,0": ["utility(hit=2)"],
    "utility.1,1,0,0": ["utility(noise=1)"],
    "set_P": ["P"],
    "hit_rate": ["success"],  # no name of trec_eval's
}


@pytest.mark.parametrize(("name", "measures"), LISTS.items())
def test_a_name_stands_for_what_trec_eval_prints(name: str, measures: list[str]) -> None:
    assert [str(measure) for measure in expand_measures(name, "trec_eval")] == measures


def test_lists_are_trec_evals_own() -> None:
    assert [str(measure) for measure in expand_measures(["P", "success"], "findwell")] == [
        "P",
        "success",
    ]
    with pytest.raises(MeasureError, match="unknown measure 'official'"):
        expand_measures("official", "findwell")
    with pytest.raises(MeasureError, match="unknown measure 'all_prefs'"):
        expand_measures("all_prefs", "trec_eval")  # preferences are not measured


@pytest.mark.parametrize("nickname", ["official", "set", "all_trec"])
def test_the_lists_of_version_9(nickname: str) -> None:
    run, gold = random_scored(3, queries=5)
    for docs in gold.values():
        docs |= {"one": 1, "none": 0}
    theirs = pytrec_eval.RelevanceEvaluator(gold, {nickname}).evaluate(run)
    result = findwell.evaluate(run, gold, nickname, dialect="trec_eval-9")
    names = set(theirs["1"]) - {"runid", "relstring"}  # which are no numbers
    assert {findwell.plugins.parse_measure(name) for name in names} == set(result.measures)
    for name in names:
        values = [values[name] for values in theirs.values()]
        expected = pytrec_eval.compute_aggregated_measure(name, values)
        assert result[name] == pytest.approx(expected, abs=1e-12), name


def test_the_list_of_version_10_is_longer() -> None:
    nine, ten = (set(expand_measures("all_trec", name)) for name in ("trec_eval-9", "trec_eval"))
    names = {str(measure) for measure in ten} - {str(measure) for measure in nine}
    assert names == {"RBP", "RBP_residual", "unjudged@5", "unjudged@10", "unjudged@20"}


# ---- surfaces


def rows(text: str) -> dict[str, float]:
    return {row["measure"]: row["value"] for row in json.loads(text)["result"]["summary"]}


def test_the_command_line(cli: Findwell, tmp_path: Path) -> None:
    run, gold = tmp_path / "run.trec", tmp_path / "qrels"
    run.write_text("q Q0 x 1 2 t\nq Q0 a 2 1 t\n")
    gold.write_text("q 0 a 1\nq 0 b 1\nq 0 x 0\n")
    done = cli("score", run, "-g", gold, "--dialect=trec_eval", "--format=json", "-m", "rbp")
    assert rows(done.out) == pytest.approx({"RBP": 0.09})
    call = "score", run, "-g", gold, "--dialect=trec_eval", "--format=json"
    # a requirement names one measure, so P is that of the whole list
    done = cli(*call, "-m", "success", "--require", "P>=0.4", "--decide=value")
    assert done.code == 0
    assert rows(done.out) == {"success@1": 0, "success@5": 1, "success@10": 1, "P": 0.5}
    done = cli("curve", run, "-g", gold, "--dialect=trec_eval", "--at=1,2", "--format=json")
    found = [(row["measure"], row["k"]) for row in done.answer["curve"]]
    assert found == [("recall", 1), ("recall", 2), ("P", 1), ("P", 2)]


def test_every_measure_is_explained() -> None:
    run = {"q": ["a", "n", "b", "u"]}
    gold = {"q": {"a": 2, "b": 1, "c": 1, "n": 0}}
    for name, cls in without_facts().items():
        (told,) = findwell.explain(run, gold, [cls()], dialects="trec_eval")
        (calculation,) = [each for each in told.calculations if each.measure == str(cls())]
        assert calculation.value is not None
        if calculation.divisor is not None and name not in ("all_found", "success"):
            assert calculation.total / calculation.divisor == pytest.approx(calculation.value), name


def test_why_two_versions_differ() -> None:
    run, gold = {"q": ["a", "x"]}, {"q": ["a", "b", "c", "d"]}
    (told,) = findwell.explain(run, gold, ["IPrec@0.3"], dialects=["trec_eval-9", "trec_eval"])
    assert [calculation.value for calculation in told.calculations] == [0.0, 1.0]
    assert told.differences[0] == (
        "IPrec@0.3: trec_eval takes the best precision from the rank on that has found "
        "recall · R items, rounded; trec_eval-9 takes the best precision from the rank on that has "
        "found recall · R + 0.9 items, cut off"
    )

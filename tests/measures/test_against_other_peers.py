"""findwell against ir_measures (with gdeval, ndeval and MS MARCO behind it) and ranx.

Only what is defined alike is compared. Differences that were looked at and are not tested:

- ir_measures `SetF(beta=b)` hands b to trec_eval as x, which is beta²: it equals `F(beta=√b)`;
- a document with a negative grade is judged for ir_measures, not for findwell;
- ir_measures `RBP` needs cwl_eval, which is not a dependency of the tests;
- gdeval prints five decimals, takes whole numbers as topics, and fixes ERR's highest grade at 4;
- ndeval (alpha_nDCG) knows cutoffs up to 20 only; its greedy ideal list takes the document with
  the greater id where two gain alike (which changes what can be gained further down);
- ndeval grades a document for each subtopic; in findwell the highest grade of a group is the grade
  of all its documents (it says so in the finding `mixed-grades`), so `rel=2` agrees only where a
  group has one grade;
- ir_measures hands ndeval an iterator, which is empty for the second alpha or relevance level:
  they are asked one by one;
- ranx `rbp` weighs each document with its grade (so it can pass 1): it agrees on binary grades;
- ranx `bpref` divides by 0 where a query has no relevant or no judged non-relevant document, and
  counts negative grades as judged non-relevant;
- ranx `ndcg` takes a relevance level (`-l2`) and drops what is below it; trec_eval and findwell
  gain from every positive grade;
- ranx leaves the order of equal scores to its sort, so no tie is compared;
- ranx cannot hold an empty result without its `make_comparable`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import pytest
from ir_measures import (
    AP,
    ERR,
    RR,
    Bpref,
    IPrec,
    Judged,
    NumQ,
    NumRel,
    NumRet,
    P,
    R,
    Rprec,
    SetF,
    SetP,
    SetR,
    StRecall,
    Success,
    alpha_nDCG,
    infAP,
    nDCG,
)

import findwell
from findwell.evaluation.plan import grouped
from tests.strategies import by_measure, random_scored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.strategies import Graded, Scored

EXACT = 1e-9
FIVE_DECIMALS = 0.5e-5 + EXACT


def complete(seed: int, grades: tuple[int, ...] = (0, 0, 1, 1, 2, 3)) -> tuple[Scored, Graded]:
    """Return a random run and gold in which every query has judgements of both kinds."""
    run, gold = random_scored(seed, grades=grades)
    for query, docs in gold.items():
        docs |= {f"yes-{query}": 1, f"no-{query}": 0}
    return run, gold


def compare(
    theirs: dict[tuple[str, str], float],
    run: Scored,
    gold: Any,
    *,
    tolerance: float = EXACT,
    **options: Any,
) -> None:
    """Assert that values by (findwell's name, query) are what findwell finds."""
    # parsed, as the names P and recall stand for lists in trec_eval's dialects
    names = {name: findwell.plugins.parse_measure(name) for name, _ in theirs}
    found = by_measure(findwell.evaluate(run, gold, list(names.values()), **grouped(options)))
    for (name, query), expected in theirs.items():
        value = found[str(names[name])][query]
        assert value == pytest.approx(expected, rel=0, abs=tolerance), (name, query)


def ir_values(
    provider: Any, names: dict[Any, str], qrels: object, run: object
) -> dict[tuple[str, str], float]:
    """Return the values of an ir_measures provider by findwell's name and query."""
    return {
        (names[metric.measure], metric.query_id): metric.value
        for metric in provider.iter_calc(list(names), qrels, run)
    }


IR_MEASURES: dict[Any, str] = {
    P @ 1: "P@1",
    P @ 5: "P@5",
    P(rel=2) @ 10: "P(rel=2)@10",
    R @ 5: "recall@5",
    R(rel=2) @ 100: "recall(rel=2)@100",
    RR: "RR",
    RR(rel=2): "RR(rel=2)",
    AP: "AP",
    AP @ 7: "AP@7",
    AP(rel=2) @ 3: "AP(rel=2)@3",
    nDCG: "nDCG",
    nDCG @ 10: "nDCG@10",
    nDCG(gains={0: 0, 1: 1, 2: 3, 3: 7}) @ 10: "nDCG(gain=0:1:3:7)@10",
    nDCG(gains={0: 0, 1: 1, 2: 10, 3: 100}): "nDCG(gain=0:1:10:100)",
    Rprec: "Rprec",
    Rprec(rel=2): "Rprec(rel=2)",
    Success @ 1: "success@1",
    Success(rel=2) @ 5: "success(rel=2)@5",
    Bpref: "bpref",
    Bpref(rel=2): "bpref(rel=2)",
    infAP: "infAP",
    infAP(rel=2): "infAP(rel=2)",
    IPrec @ 0.0: "IPrec@0",
    IPrec @ 0.1: "IPrec@0.1",
    IPrec @ 0.5: "IPrec@0.5",
    IPrec @ 1.0: "IPrec@1",
    SetP: "P",
    SetP(rel=2): "P(rel=2)",
    SetR: "recall",
    SetR(rel=2): "recall(rel=2)",
    SetF: "F",
    SetF(beta=2.0): f"F(beta={math.sqrt(2)!r})",
    SetF(beta=0.5): f"F(beta={math.sqrt(0.5)!r})",
    NumQ: "queries",
    NumRel: "relevant",
    NumRet: "retrieved",
    NumRet(rel=1): "relevant_retrieved",
    NumRet(rel=2): "relevant_retrieved(rel=2)",
}


@pytest.mark.parametrize("seed", range(5))
def test_ir_measures_by_pytrec_eval(seed: int) -> None:
    run, gold = complete(seed)
    theirs = ir_values(ir_measures.pytrec_eval, IR_MEASURES, gold, run)
    assert len(theirs) == len(IR_MEASURES) * len(gold)
    compare(theirs, run, gold, dialect="trec_eval-9")


@pytest.mark.parametrize("seed", range(3))
def test_ir_measures_is_what_its_own_spelling_parses_to(seed: int) -> None:
    # no SetF: its beta is trec_eval's x; no gains: findwell's table has another form
    names = {
        measure: str(measure)
        for measure in IR_MEASURES
        if not (measure.NAME == "SetF" and measure.params)
        and "gains" not in measure.params
        and not (measure.NAME == "NumRet" and measure.params)
    }
    run, gold = complete(40 + seed)
    compare(ir_values(ir_measures.pytrec_eval, names, gold, run), run, gold, dialect="trec_eval-9")


@pytest.mark.parametrize("seed", range(3))
def test_gdeval(seed: int) -> None:
    run, gold = complete(seed, grades=(-1, 0, 0, 1, 2, 3, 4))
    names: dict[Any, str] = {}
    for k in (1, 5, 10, 20):
        names |= {nDCG(dcg="exp-log2") @ k: f"nDCG(gain=exp)@{k}", ERR @ k: f"ERR@{k}"}
    theirs = ir_values(ir_measures.gdeval, names, gold, run)
    assert len(theirs) == len(names) * len(gold)
    compare(theirs, run, gold, tolerance=FIVE_DECIMALS)


def test_gdeval_with_ties() -> None:
    run, gold = random_scored(9, levels=3, grades=(0, 1, 2, 4))
    names: dict[Any, str] = {nDCG(dcg="exp-log2") @ 10: "nDCG(gain=exp)@10", ERR @ 10: "ERR@10"}
    theirs = ir_values(ir_measures.gdeval, names, gold, run)
    compare(theirs, run, gold, tolerance=FIVE_DECIMALS, dialect="trec_eval")


@pytest.mark.parametrize("seed", range(3))
def test_reciprocal_rank_of_ms_marco(seed: int) -> None:
    run, gold = complete(seed)
    names: dict[Any, str] = {
        RR @ 1: "RR@1",
        RR @ 10: "RR@10",
        RR(rel=2) @ 5: "RR(rel=2)@5",
    }
    compare(ir_values(ir_measures.msmarco, names, gold, run), run, gold, dialect="trec_eval")


@pytest.mark.parametrize("seed", range(3))
def test_judged(seed: int) -> None:
    run, gold = complete(seed)
    run = {query: docs for query, docs in run.items() if len(docs) >= 5}
    names: dict[Any, str] = {
        Judged @ 1: "judged@1",
        Judged @ 5: "judged@5",
        Judged @ 1000: "judged@1000",
        Judged: "judged",
    }
    compare(ir_values(ir_measures.judged, names, gold, run), run, gold)


def subtopics(seed: int) -> tuple[Scored, list[tuple[str, str, str, int]]]:
    """Return a run and judgements of (query, subtopic, doc, grade)."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in map(str, range(1, 16)):
        for subtopic in range(1, int(rng.integers(1, 6)) + 1):
            rows += [
                (query, str(subtopic), f"d{doc}", int(rng.integers(0, 3)))
                for doc in rng.permutation(30)[: rng.integers(1, 8)]
            ]
        rows.append((query, "1", "d-first", 1))
    run, _ = random_scored(seed, queries=15, pool=30, depth=25)
    return run, rows


SUBTOPIC_MEASURES: dict[Any, str] = {
    StRecall @ 1: "recall@1",
    StRecall @ 5: "recall@5",
    StRecall @ 20: "recall@20",
    alpha_nDCG @ 1: "alpha_nDCG@1",
    alpha_nDCG @ 5: "alpha_nDCG@5",
    alpha_nDCG @ 20: "alpha_nDCG@20",
    alpha_nDCG(alpha=0.1) @ 10: "alpha_nDCG(alpha=0.1)@10",
    alpha_nDCG(alpha=0.0) @ 10: "alpha_nDCG(alpha=0)@10",
    alpha_nDCG(alpha=0.9) @ 10: "alpha_nDCG(alpha=0.9)@10",
}


def ndeval_values(
    names: dict[Any, str], qrels: object, run: object
) -> dict[tuple[str, str], float]:
    """Return ndeval's values by findwell's name and query, one measure at a time."""
    values: dict[tuple[str, str], float] = {}
    for measure, name in names.items():
        values |= ir_values(ir_measures.pyndeval, {measure: name}, qrels, run)
    return values


def compare_with_ndeval(
    names: dict[Any, str], run: Scored, rows: list[tuple[str, str, str, int]], folder: Path
) -> None:
    """Assert that findwell, reading a file, agrees with ndeval."""
    path = folder / "subtopics.qrels"
    path.write_text("".join(f"{' '.join(map(str, row))}\n" for row in rows), "utf-8")
    qrels = [
        ir_measures.Qrel(query_id=query, doc_id=doc, relevance=grade, iteration=subtopic)
        for query, subtopic, doc, grade in rows
    ]
    scored = [
        ir_measures.ScoredDoc(query, doc, score)
        for query, docs in run.items()
        for doc, score in docs.items()
    ]
    theirs = ndeval_values(names, qrels, scored)
    compare(theirs, run, path, gold_format="subtopic-qrels", dialect="trec_eval")


@pytest.mark.parametrize("seed", range(8))
def test_ndeval_on_subtopics(seed: int, tmp_path: Path) -> None:
    run, rows = subtopics(seed)
    compare_with_ndeval(SUBTOPIC_MEASURES, run, rows, tmp_path)


def test_ndeval_at_a_higher_level(tmp_path: Path) -> None:
    run, rows = subtopics(50)
    one_grade = [(query, topic, doc, 1 + int(topic) % 2) for query, topic, doc, _ in rows]
    names: dict[Any, str] = {StRecall(rel=2) @ k: f"recall(rel=2)@{k}" for k in (1, 5, 20)}
    compare_with_ndeval(names, run, one_grade, tmp_path)


def test_ndeval_on_nested_lists() -> None:
    gold = {"q": [["a", "b"], ["b", "c", "d"], ["e"]]}
    run: Scored = {"q": {"a": 5.0, "x": 4.0, "d": 3.0, "b": 2.0, "c": 1.0}}
    qrels = [
        ir_measures.Qrel(query_id="q", doc_id=doc, relevance=1, iteration=str(number))
        for number, docs in enumerate(gold["q"])
        for doc in docs
    ]
    scored = [ir_measures.ScoredDoc("q", doc, score) for doc, score in run["q"].items()]
    names: dict[Any, str] = {
        alpha_nDCG @ 5: "alpha_nDCG@5",
        alpha_nDCG(alpha=0.2) @ 3: "alpha_nDCG(alpha=0.2)@3",
        StRecall @ 2: "recall@2",
        StRecall @ 5: "recall@5",
    }
    compare(ndeval_values(names, qrels, scored), run, gold)


RANX = {
    "precision": "P",
    "precision@1": "P@1",
    "precision@5": "P@5",
    "precision@50": "P@50",
    "precision@5-l2": "P(rel=2)@5",
    "recall": "recall",
    "recall@5": "recall@5",
    "recall@5-l2": "recall(rel=2)@5",
    "f1": "F",
    "f1@5": "F@5",
    "mrr": "RR",
    "mrr@3": "RR@3",
    "mrr-l2": "RR(rel=2)",
    "map": "AP",
    "map@5": "AP@5",
    "map@5-l2": "AP(rel=2)@5",
    "ndcg": "nDCG",
    "ndcg@5": "nDCG@5",
    "ndcg_burges": "nDCG(gain=exp)",
    "ndcg_burges@5": "nDCG(gain=exp)@5",
    "dcg": "DCG",
    "dcg@5": "DCG@5",
    "dcg_burges@5": "DCG(gain=exp)@5",
    "hit_rate": "success",
    "hit_rate@1": "success@1",
    "hit_rate@5-l2": "success(rel=2)@5",
    "r-precision": "Rprec",
    "r-precision-l2": "Rprec(rel=2)",
    "bpref": "bpref",
    "hits": "relevant_retrieved",
    "hits@5": "relevant_retrieved@5",
}


def ranx_values(names: dict[str, str], run: Scored, gold: Graded) -> dict[tuple[str, str], float]:
    """Return ranx's values by findwell's name and query, its formulas run as plain Python."""
    import numba

    config: Any = numba.config
    config.DISABLE_JIT = True  # compiling takes minutes, and changes no number
    import ranx

    theirs = ranx.Run(run)
    ranx.evaluate(ranx.Qrels(gold), theirs, list(names))
    return {
        (ours, query): float(value)
        for name, ours in names.items()
        for query, value in theirs.scores[name].items()
    }


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@pytest.mark.parametrize("seed", range(3))
def test_ranx(seed: int) -> None:
    run, gold = complete(seed)
    for query, docs in gold.items():
        docs[f"top-{query}"] = 2
    theirs = ranx_values(RANX, run, gold)
    assert len(theirs) == len(RANX) * len(gold)
    compare(theirs, run, gold)


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_ranx_on_binary_grades() -> None:
    run, gold = complete(17, grades=(0, 1))
    names = {**RANX, "rbp.95": "RBP(p=0.95)", "rbp.5": "RBP(p=0.5)", "rbp.8": "RBP"}
    names = {name: ours for name, ours in names.items() if not name.endswith("-l2")}
    compare(ranx_values(names, run, gold), run, gold)


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_ranx_is_what_its_own_spelling_parses_to() -> None:
    run, gold = complete(18, grades=(0, 1))
    own = {name: name for name in (*RANX, "rbp.95") if not name.endswith("-l2")}
    compare(ranx_values(own, run, gold), run, gold)

"""The numbers of a LiveRAG pipeline's ContextRecall evaluator."""

from typing import Any

import polars as pl
import pytest

import findwell
from findwell.relations.match.ids import BoundIds
from findwell.relations.match.matcher import MatchContext
from findwell.show.result import liverag_tables
from tests.dialects.golden import cases, same

ROW = {
    "context_recall": "recall",
    "context_precision": "P",
    "context_f1": "F",
    "retrieved_docs_count": "retrieved",
    "gold_docs_count": "relevant",
    "correct_docs_count": "relevant_retrieved",
    "ndcg_10": "nDCG@10",
}
MEAN = {"avg_context_recall": "recall", "avg_context_precision": "P", "avg_context_f1": "F"}
PERCENT = {
    "pct_records_with_at_least_one_ref": "success",
    "pct_records_with_all_refs": "all_found",
}
# two rows of one id, and nothing in common: findwell refuses both and says why
REFUSED = {"liverag-context-recall-0490": "more than one", "liverag-context-recall-0488": "share"}
# the number 0 is an id like any other for findwell, so there is one row more
KEPT = {"liverag-context-recall-0486"}
GOLDEN = cases("liverag-context-recall", "ContextRecall.evaluate")


def evaluate(case: Any) -> findwell.Result:
    run = [{"query": row["qid"], "retrieved": row["doc_ids"]} for row in case["inputs"]["results"]]
    gold = [
        {"query": row["qid"], "gold": row["document_ids"]} for row in case["inputs"]["references"]
    ]
    return findwell.evaluate(
        run, gold, [*ROW.values(), *PERCENT.values()], dialect="liverag", by="ids"
    )


def check(case: Any, result: findwell.Result) -> None:
    rows: dict[str, dict[str, float | None]] = {}
    for _, query, measure, value, _ in result.per_query.rows():
        rows.setdefault(query, {})[measure] = value
    for expected in case["expected"]["rows"]:
        found = rows[str(expected["qid"]).removesuffix(".0")]
        for key, measure in ROW.items():
            assert same(found[measure], expected.get(key)), (key, expected)
    for key, expected in case["expected"]["metrics"].items():
        if key in MEAN:
            assert same(result[MEAN[key]], expected), key
        elif key in PERCENT:
            assert same(100 * (result[PERCENT[key]] or 0), expected), key


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_golden(case: Any) -> None:
    if case["id"] in REFUSED:
        with pytest.raises(findwell.FindwellError, match=REFUSED[case["id"]]):
            evaluate(case)
        return
    result = evaluate(case)
    check(case, result)
    assert result.queries.height == len(case["expected"]["rows"]) + (case["id"] in KEPT)


@pytest.mark.parametrize(
    "case",
    [case for case in GOLDEN if case["id"] not in REFUSED.keys() | KEPT],
    ids=lambda case: case["id"],
)
def test_tables_of_the_evaluator(case: Any) -> None:
    found = liverag_tables(evaluate(case))
    aggregated = found["aggregated"].to_dicts()[0]
    for key, expected in case["expected"]["metrics"].items():
        assert same(aggregated[key], expected), key
    assert aggregated["sample_count"] == case["expected"]["sample_count"]
    assert aggregated["evaluator_name"] == case["expected"]["evaluator_name"]
    rows = found["rows"].to_dicts()
    for row, expected in zip(rows, case["expected"]["rows"], strict=True):
        assert row["qid"] == str(expected["qid"])
        assert all(same(row[key], expected.get(key)) for key in ROW)


def test_the_script_on_files() -> None:
    (case,) = cases("liverag-context-recall", "scripts/evaluate.py (TSV in, TSV out)")
    found = liverag_tables(evaluate(case))
    aggregated = found["aggregated"].to_dicts()[0]
    for key, expected in case["expected"]["aggregated"].items():
        if key != "system_name":
            assert same(aggregated[key], expected), key
    for row, expected in zip(found["rows"].to_dicts(), case["expected"]["rows"], strict=True):
        assert row["qid"] == str(int(expected["qid"]))
        assert all(same(row[key], expected[key] if expected[key] != "" else None) for key in ROW)


@pytest.mark.parametrize(
    "case", cases("liverag-context-recall", "extract_document_id"), ids=lambda case: case["id"]
)
def test_ids(case: Any) -> None:
    rows = pl.DataFrame({"query": ["q"], "doc": [case["inputs"]["chunk_id"]]})
    run, _ = BoundIds(findwell.io.load_gold({"q": ["d"]}), MatchContext(run_ids="uuid")).rows(rows)
    assert run["doc"].to_list() == [case["expected"]]

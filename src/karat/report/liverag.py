"""Results as a LiveRAG pipeline's evaluator writes them: aggregated, and a row a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from karat.results.result import Result

EVALUATOR = "ContextRecall"
ROWS = {
    "context_recall": "recall",
    "context_precision": "P",
    "context_f1": "F",
    "retrieved_docs_count": "retrieved",
    "gold_docs_count": "relevant",
    "correct_docs_count": "relevant_retrieved",
    "ndcg_10": "nDCG@10",
}
COUNTS = ("retrieved_docs_count", "gold_docs_count", "correct_docs_count")


def tables(result: Result) -> dict[str, pl.DataFrame]:
    """Return the two tables of the evaluator for the first run of a result."""
    scored = result.score([*ROWS.values(), "success", "all_found"])
    run = scored.runs[0]
    arrays = {
        str(measure): values for (name, measure), values in scored.arrays.items() if name == run
    }
    rows = pl.DataFrame(
        {
            "qid": scored.relation(run).queries,
            **{column: arrays[measure] for column, measure in ROWS.items()},
        }
    ).with_columns(pl.col(COUNTS).cast(pl.Int64), pl.col("ndcg_10").fill_nan(None))
    # one repeated chunk anywhere makes the original's mean nDCG 0, as does a run of empty lists
    repeated = bool((scored.relation(run).repeats(exact=True) > 0).any())
    ndcg = scored[run, "nDCG@10"]
    aggregated = pl.DataFrame(
        {
            "avg_context_recall": [scored[run, "recall"]],
            "avg_context_precision": [scored[run, "P"]],
            "avg_context_f1": [scored[run, "F"]],
            "pct_records_with_at_least_one_ref": [100 * (scored[run, "success"] or 0.0)],
            "pct_records_with_all_refs": [100 * (scored[run, "all_found"] or 0.0)],
            "ndcg_10": [0.0 if repeated or ndcg is None else ndcg],
            "sample_count": [rows.height],
            "evaluator_name": [EVALUATOR],
            "system_name": [run],
        }
    )
    return {"aggregated": aggregated, "rows": rows}

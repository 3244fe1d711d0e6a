"""The documents of several runs, once each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import findwell
from findwell.core.data import Run
from findwell.core.errors import InputError, OptionError
from findwell.loop.tuning import Pool, reciprocal_rank_fusion
from tests.strategies import TRICKY_IDS

SCORED = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from(TRICKY_IDS), st.integers(0, 3).map(float), max_size=8),
    min_size=1,
)


def docs(run: Run) -> dict[str, list[str | None]]:
    rows = run.rows.group_by("query", maintain_order=True).agg("doc")
    return dict(zip(rows["query"], rows["doc"].to_list(), strict=True))


def test_what_each_run_says() -> None:
    pool = Pool.of([{"q": {"a": 2.0, "b": 1.0}, "r": {"a": 5.0}}, {"q": {"b": 9.0, "c": 7.0}}])
    assert pool.queries.to_list() == ["q", "r"]
    assert pool.query.tolist() == [0, 0, 0, 1]
    assert pool.doc.to_list() == ["a", "b", "c", "a"]
    assert pool.rank.tolist() == [[1, 2, 0, 1], [0, 1, 2, 0]]
    np.testing.assert_array_equal(pool.score, [[2, 1, np.nan, 5], [np.nan, 9, 7, np.nan]])


def test_a_list_is_in_rank_order_whatever_its_scores() -> None:
    records = [{"query": "q", "retrieved": [{"doc": "a", "score": 1}, {"doc": "b", "score": 3}]}]
    pool = Pool.of([records])
    assert pool.rank.tolist() == [[1, 2]]
    assert pool.score_ranks().tolist() == [[2, 1]]


@given(SCORED, st.permutations(["q1", "q2", "q3"]))
@settings(deadline=None)
def test_one_run_is_ranked_as_findwell_ranks_it(
    run: dict[str, dict[str, float]], queries: list[str]
) -> None:
    gold = {query: {doc: place for place, doc in enumerate(TRICKY_IDS)} for query in queries}
    measures = ["DCG", "RR(rel=9)", "AP(rel=5)", "P@3"]
    alone = findwell.evaluate(run, gold, measures)
    fused = findwell.evaluate(reciprocal_rank_fusion([run]), gold, measures)
    assert fused.per_query["value"].equals(alone.per_query["value"], null_equal=True)


def test_rows_of_a_query_need_not_stand_together() -> None:
    rows = pl.DataFrame({"query": ["q", "r", "q"], "doc": ["a", "b", "c"], "score": [1.0, 2, 3]})
    scored = reciprocal_rank_fusion([Run("run", rows, "scored")])
    assert docs(scored) == {"q": ["c", "a"], "r": ["b"]}
    listed = reciprocal_rank_fusion([Run("run", rows, "listed")])
    assert docs(listed) == {"q": ["a", "c"], "r": ["b"]}


def test_a_document_listed_again_counts_where_it_stands_first() -> None:
    pool = Pool.of([{"q": ["a", "b", "a", "c"]}, {"q": ["c"]}])
    assert pool.doc.to_list() == ["a", "b", "c"]
    assert pool.rank.tolist() == [[1, 2, 3], [0, 0, 1]]
    (finding,) = pool.findings
    assert (finding.kind, finding.count, finding.examples) == ("duplicate-document", 1, ("q / a",))
    result = findwell.evaluate(reciprocal_rank_fusion(pool), {"q": ["c"]}, "RR")
    assert "duplicate-document" in {found.kind for found in result.findings}


def test_a_score_that_is_not_a_number_is_none() -> None:
    pool = Pool.of([{"q": {"a": float("nan"), "b": 1.0, "c": 2.0}}])
    assert pool.rank.tolist() == [[1, 2, 3]]
    assert pool.doc.to_list() == ["c", "b", "a"]
    assert pool.score_ranks().tolist() == [[1, 2, 0]]
    assert [found.kind for found in pool.findings] == ["nan-score"]


def test_a_query_without_documents_stays() -> None:
    fused = reciprocal_rank_fusion([{"q": [], "r": ["a"]}, {"q": []}], k=1)
    assert docs(fused) == {"r": ["a"], "q": [None]}
    result = findwell.evaluate(fused, {"q": ["a"], "r": ["a"]}, "RR")
    assert result["RR"] == 0.5
    assert "missing-query" not in {found.kind for found in result.findings}


def test_runs_without_any_document() -> None:
    fused = reciprocal_rank_fusion([{"q": []}, {"q": []}])
    assert docs(fused) == {"q": [None]}
    assert Pool.of([{"q": []}]).score_ranks().shape == (1, 0)


def test_equal_scores_share_a_rank_within_a_query_only() -> None:
    run = {"q": {"a": 1.0, "b": 1.0, "c": 0.5}, "r": {"d": 0.5, "e": 0.5, "f": 0.1}}
    pool = Pool.of([run])
    ranks = dict(zip(pool.doc.to_list(), pool.score_ranks()[0].tolist(), strict=True))
    assert ranks == {"a": 1, "b": 1, "c": 3, "d": 1, "e": 1, "f": 3}


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.trec").write_text("q Q0 x 1 2.0 a\nq Q0 y 2 1.0 a\n")
    (tmp_path / "b.jsonl").write_text('{"query": "q", "retrieved": ["y", "文档"]}\n')
    fused = reciprocal_rank_fusion([tmp_path / "a.trec", tmp_path / "b.jsonl"])
    assert docs(fused) == {"q": ["y", "x", "文档"]}


@pytest.mark.parametrize("runs", [[], {"q": ["a"]}, "run.trec", Run("r", pl.DataFrame()), None])
def test_what_is_no_list_of_runs(runs: object) -> None:
    with pytest.raises(OptionError, match="there are no runs to fuse"):
        Pool.of(runs)  # type: ignore[arg-type]


def test_a_run_without_scores_is_named() -> None:
    pool = Pool.of([{"q": {"a": 1.0}}, {"q": ["a"]}])
    with pytest.raises(InputError, match=r"run 2 \(run\): it carries no scores"):
        pool.scores()

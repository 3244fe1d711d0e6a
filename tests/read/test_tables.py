"""Tables: CSV, TSV, Parquet and every data frame give the numbers of the dict."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import findwell
from findwell.core.errors import InputError
from tests import sample
from tests.lazy import lazy
from tests.sample import delimited, gold_table, kinds, run_table, score

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Save

pd = lazy("pandas")

Columns = dict[str, list[Any]]


class OnlyArrow:
    """What any library that speaks the Arrow PyCapsule interface looks like."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _categorical(columns: Columns) -> pl.DataFrame:
    return pl.DataFrame(columns).with_columns(pl.col("query", "doc").cast(pl.Categorical))


FRAMES: dict[str, Callable[[Columns], Any]] = {
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "polars, categorical": _categorical,
    "pandas": lambda columns: pd.DataFrame(data=columns),
    "pandas, objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas, pyarrow strings": lambda c: pd.DataFrame(c).astype(
        {"query": "string[pyarrow]", "doc": "string[pyarrow]"}
    ),
    "pandas, python strings": lambda c: pd.DataFrame(c).astype(
        {"query": "string[python]", "doc": "string[python]"}
    ),
    "pandas, all arrow": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, categories": lambda c: pd.DataFrame(c).astype({"doc": "category"}),
    "pandas, odd index": lambda c: pd.DataFrame(c, index=range(100, 100 - len(c["doc"]), -1)),
    "pyarrow": pa.table,
    "pyarrow, chunked": lambda c: pa.concat_tables([pa.table(c).slice(0, 3), pa.table(c).slice(3)]),
    "pyarrow, large strings": lambda c: pl.DataFrame(c).to_arrow(),
    "anything that exports Arrow": lambda c: OnlyArrow(pa.table(c)),
    "float32 scores": lambda c: _as_float32(pl.DataFrame(c)),
}


def _as_float32(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.selectors.float().cast(pl.Float32))


@pytest.mark.parametrize("frame", FRAMES)
def test_every_frame_gives_the_numbers_of_the_dict(frame: str) -> None:
    run, gold = FRAMES[frame](run_table()), FRAMES[frame](gold_table())
    assert score(run, gold) == score(sample.RUN)
    assert [found.kind for found in findwell.io.check(run, gold)] == ["tied-scores"]


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_stay_as_they_were(frame: str) -> None:
    data, same = FRAMES[frame](run_table()), FRAMES[frame](run_table())
    score(data)
    if isinstance(data, pl.DataFrame):
        assert isinstance(same, pl.DataFrame)
        assert data.equals(same)
    elif isinstance(data, pd.DataFrame):
        pd.testing.assert_frame_equal(data, same)


SPELLINGS = [
    ("query", "doc", "score", "grade"),
    ("query_id", "doc_id", "score", "rel"),
    ("query-id", "corpus-id", "score", "score"),
    ("qid", "docno", "similarity", "label"),
    ("topic", "passage_id", "sim", "relevance"),
    (" Query ", "DOC", "Score", "Grade"),
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids="-".join)
@pytest.mark.parametrize(("name", "separator"), [("t.csv", ","), ("t.tsv", "\t")])
def test_text_tables_by_the_names_people_give(
    spelling: tuple[str, ...], name: str, separator: str, save: Save
) -> None:
    query, doc, number, grade = spelling
    run = dict(zip((query, doc, number), run_table().values(), strict=True))
    gold = dict(zip((query, doc, grade), gold_table().values(), strict=True))
    paths = [
        save(f"{role}-{name}", delimited(table, separator))
        for role, table in (("run", run), ("gold", gold))
    ]
    assert score(*paths) == score(sample.RUN)
    assert [found.kind for found in findwell.io.check(*paths)] == ["tied-scores"]


TEXTS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "carriage returns": lambda text: text.replace("\n", "\r\n").encode(),
    "no final newline": lambda text: text.rstrip("\n").encode(),
    "byte-order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "blank lines at the end": lambda text: text.encode() + b"\n\n",
    "lines of blanks": lambda text: text.replace("\n", "\n  \n").encode(),
    "blank lines between": lambda text: text.replace("\n", "\n\n").encode(),
    "gzip": sample.gzipped,
    "gzip of several members": lambda text: sample.gzipped(text, members=5),
    "quoted": lambda text: re.sub(r"([^,\n]+)", r'"\1"', text).encode(),
}


@pytest.mark.parametrize("how", TEXTS)
def test_csv_in_every_layout(how: str, save: Save) -> None:
    run = save("run.csv", TEXTS[how](delimited(run_table())))
    gold = save("gold.csv", TEXTS[how](delimited(gold_table())))
    assert score(run, gold) == score(sample.RUN)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "uncompressed"])
def test_parquet(compression: Any, tmp_path: Path) -> None:
    run, gold = tmp_path / "run", tmp_path / "gold.bin"  # the content tells, not the name
    pl.DataFrame(run_table()).write_parquet(run, compression=compression)
    pd.DataFrame(gold_table()).to_parquet(gold)
    assert score(run, gold) == score(sample.RUN)


def test_parquet_inside_gzip(save: Save, tmp_path: Path) -> None:
    pl.DataFrame(run_table()).write_parquet(tmp_path / "plain.parquet")
    zipped = gzip.compress((tmp_path / "plain.parquet").read_bytes())
    assert score(save("run.parquet.gz", zipped)) == score(sample.RUN)


def test_further_columns_do_not_matter(save: Save) -> None:
    table = {"text": ["a b"] * 9, **run_table(), "when": list(range(9))}
    assert score(save("run.csv", delimited(table))) == score(sample.RUN)


def test_numbers_as_ids_keep_their_zeros_in_text_tables(save: Save) -> None:
    run = save("run.csv", "query,doc,score\n01,007,2\n01,7,1\n")
    result = findwell.evaluate(run, {"01": ["7"]}, ["RR"])
    assert result["RR"] == 0.5


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.int32])
def test_whole_numbers_are_ids(kind: Callable[[int], Any]) -> None:
    ids = [kind(value) for value in (1, 2, 3)]
    frame = pd.DataFrame({"query": ids, "doc": ids, "score": [1.0, 1.0, 1.0]})
    assert findwell.evaluate(frame, {"1": ["1"], "2": ["2"], "3": [4]}, ["P@1"])["P@1"] == 2 / 3


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_ranks_without_scores_decide_the_order(suffix: str, save: Save) -> None:
    separator = "," if suffix == "csv" else "\t"
    rows = [
        (query, doc, rank)
        for query, docs in sample.ranked().items()
        for rank, doc in enumerate(docs, start=1)
    ]
    columns = zip(*reversed(rows), strict=True)
    table = dict(zip(("query", "doc", "rank"), map(list, columns), strict=True))
    assert score(save(f"run.{suffix}", delimited(table, separator))) == score(sample.RUN)
    assert score(pl.DataFrame(table)) == score(sample.RUN)


def test_the_order_of_rows_counts_without_rank_and_score() -> None:
    rows = [(query, doc) for query, docs in sample.ranked().items() for doc in docs]
    frame = pl.DataFrame(rows, schema=["query", "doc"], orient="row")
    assert score(frame) == score(sample.RUN)


def test_a_gold_without_grades_is_relevant_throughout() -> None:
    gold = pl.DataFrame({"query": ["q1", "q1", "q2"], "doc": ["d1", "é", "7"]})
    assert score(sample.RUN, gold) == score(sample.RUN, {"q1": ["d1", "é"], "q2": ["7"]})


def test_a_group_column_makes_documents_interchangeable() -> None:
    gold = pl.DataFrame(
        {
            "query": ["q1"] * 4,
            "doc": ["d1", "d2", "d3", "x"],
            "group": ["a", "a", None, None],
            "grade": [1, 1, 2, 0],
        }
    )
    same = {"q1": [["d1", "d2"], {"docs": ["d3"], "grade": 2}, {"docs": ["x"], "grade": 0}]}
    assert score(sample.RUN, gold) == score(sample.RUN, same)


NOTHING: list[Any] = [None, float("nan"), "<NA>", "", "  "]


@pytest.mark.parametrize("value", NOTHING, ids=repr)
@pytest.mark.parametrize("column", ["query", "doc"])
def test_a_missing_id_names_its_row_and_column(column: str, value: Any) -> None:
    columns: Columns = {"query": ["q1", "q1"], "doc": ["d1", "d2"], "score": [1.0, 0.5]}
    columns[column] = [columns[column][0], pd.NA if value == "<NA>" else value]
    with pytest.raises(InputError, match=rf"row 2: the {column} is missing"):
        score(pd.DataFrame(columns, dtype=object))


@pytest.mark.parametrize(
    "column",
    [[1.5, 2.5], [True, False], [["d1"], ["d2"]], [{"a": 1}, {"a": 2}]],
    ids=["float", "bool", "list", "object"],
)
@pytest.mark.parametrize(
    "frame",
    [pl.DataFrame, pa.table, lambda columns: pd.DataFrame(data=columns)],
    ids=["polars", "arrow", "pandas"],
)
def test_what_is_no_id(frame: Callable[[Columns], Any], column: list[Any]) -> None:
    with pytest.raises(InputError, match=r"column 'doc' holds .*, which is not a valid doc"):
        score(frame({"query": ["q1", "q1"], "doc": column, "score": [1.0, 0.5]}))


@pytest.mark.parametrize("score_", [["a", "b"], [None, 1.0], [[1.0], [2.0]]], ids=repr)
def test_what_is_no_score(score_: list[Any]) -> None:
    with pytest.raises(InputError, match="score"):
        score(pl.DataFrame({"query": ["q1", "q1"], "doc": ["a", "b"], "score": score_}))


def test_nan_scores_of_pandas_are_a_finding() -> None:
    frame = pd.DataFrame({"query": ["q1", "q1"], "doc": ["d2", "d1"], "score": [1.0, None]})
    result = findwell.evaluate(frame, {"q1": ["d1"]}, ["RR"])
    assert result["RR"] == 0.5
    assert kinds(result) == {"nan-score": 1}


@pytest.mark.parametrize("frame", [pl.DataFrame, pa.table])
def test_a_table_without_rows_found_nothing(frame: Callable[[Columns], Any]) -> None:
    result = findwell.evaluate(frame({"query": [], "doc": []}), {"q1": ["d1"]}, ["recall"])
    assert result["recall"] == 0


def test_a_missing_column_lists_those_found() -> None:
    with pytest.raises(InputError, match="no column for the doc; found 'query', 'documnt'") as stop:
        score(pl.DataFrame({"query": ["q1"], "documnt": ["d1"]}))
    assert "did you mean document" in str(stop.value)


@pytest.mark.parametrize(
    ("name", "best_first"),
    [
        ("distance", [0.1, 0.9]),
        ("relevance_score", [0.9, 0.1]),
        ("scores", [0.9, 0.1]),
        ("BM25", [9, 1]),
        ("relevance", [0.9, 0.1]),
        ("ranking", [1, 2]),
        ("order", [1, 2]),
    ],
)
def test_rows_in_another_order_than_their_only_score_are_refused(
    name: str, best_first: list[float]
) -> None:
    def rr(values: list[float], **more: list[int]) -> float | None:
        table = pl.DataFrame({"query": ["q"] * 2, "doc": ["a", "x"], name: values, **more})
        return findwell.evaluate(table, {"q": ["a"]}, "RR")["RR"]

    assert rr(best_first) == 1
    assert rr(best_first[::-1], rank=[2, 1]) == 0.5
    with pytest.raises(InputError, match=f"row 2: .* not in the order of '{name}'"):
        rr(best_first[::-1])


def test_ranks_and_scores_that_contradict_each_other_are_refused(save: Save) -> None:
    """As where distances stand in a column score; equal scores or ranks contradict nothing."""

    def table(ranks: list[int], scores: list[float]) -> pl.DataFrame:
        named = {"query": ["p", "q", "q"], "doc": ["a", "a", "x"]}
        return pl.DataFrame(named | {"rank": [1, *ranks], "score": [5.0, *scores]})

    gold = {"q": ["a"], "p": ["a"]}
    for ranks, scores, rr in (
        ([1, 2], [0.9, 0.1], 1.0),
        ([2, 1], [0.1, 0.9], 0.75),
        ([1, 1], [0.1, 0.9], 0.75),
        ([1, 2], [0.1, 0.1], 0.75),  # a tie, which is by id
    ):
        assert findwell.evaluate(table(ranks, scores), gold, "RR")["RR"] == rr
    for data in (table([1, 2], [0.1, 0.9]), table([2, 1], [0.9, 0.1])):
        for run in (data, save("run.csv", data.write_csv())):
            with pytest.raises(InputError, match="'rank' and 'score' order the documents of a qu"):
                findwell.evaluate(run, gold, "RR")


@pytest.mark.parametrize("said", [[False, True], [0, 1], ["no", "yes"], ["0.0", "1.0"]])
def test_a_column_that_may_be_the_grade_is_a_finding(said: list[Any], save: Save) -> None:
    table = pl.DataFrame({"query": ["q", "q"], "doc": ["x", "a"], "target": said})
    for gold in (table, save("gold.csv", table.write_csv())):
        result = findwell.evaluate({"q": ["x", "a"]}, gold, "RR")
        assert kinds(result) == {"unread-grade": 1}
        assert result["RR"] == 1.0
    others = table.with_columns(target=pl.Series([1, 2]), page=pl.Series([0, 1]), all=pl.lit(1))
    assert not findwell.evaluate({"q": ["x", "a"]}, others, "RR").findings
    graded = table.with_columns(grade=pl.Series([1, 0]))
    assert not findwell.evaluate({"q": ["x", "a"]}, graded, "RR").findings


@pytest.mark.parametrize("grade", [np.int64(2), np.float32(2), np.array(2)])
def test_grades_of_numpy_are_grades_in_records_as_in_dicts(grade: object) -> None:
    gold = [{"query": "q", "gold": [{"doc": "a", "grade": grade}, "b"]}]
    by_dict = findwell.evaluate({"q": ["b"]}, {"q": {"a": grade, "b": 1}}, "nDCG@5")["nDCG@5"]
    assert findwell.evaluate({"q": ["b"]}, gold, "nDCG@5")["nDCG@5"] == by_dict

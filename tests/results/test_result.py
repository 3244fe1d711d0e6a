"""What an evaluation returns: values, frames, slices, several runs, and the folder on disk."""

import json
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest

import findwell
from findwell.evaluation.results.store import LAYOUT

RECORDS = [
    {"query": "q1", "retrieved": ["a", "x"], "gold": ["a", ["b", "c"]], "topic": "one", "n": 1},
    {"query": "q2", "retrieved": ["x", "d"], "gold": [{"docs": "d", "grade": 2}], "topic": "two"},
    {"query": "q3", "retrieved": ["y"], "gold": [], "topic": "two"},
]


@pytest.fixture
def result() -> findwell.Result:
    return findwell.evaluate(RECORDS, measures=["recall@2", "RR", "judged@2"])


def test_aggregates_leave_out_what_is_undefined(result: findwell.Result) -> None:
    assert result["recall@2"] == 0.75
    assert result["mrr"] == 0.75
    row = result.summary.row(0, named=True)
    assert (row["n"], row["undefined"], row["failed"]) == (2, 1, 0)
    assert result["judged@2"] == pytest.approx(1 / 3)  # defined also without a relevant item


def test_per_query_has_reasons(result: findwell.Result) -> None:
    assert result.per_query.columns == ["run", "query", "measure", "value", "reason"]
    rows = {row[1:3]: row[3:] for row in result.per_query.rows()}
    assert rows["q1", "recall@2"] == (0.5, None)
    assert rows["q3", "recall@2"] == (None, "no relevant item")
    assert rows["q3", "judged@2"] == (0.0, None)


def test_slices(result: findwell.Result) -> None:
    rows = {(row["slice"], row["measure"]): row for row in result.by("topic").to_dicts()}
    assert rows["one", "RR"]["value"] == 1.0
    assert rows["two", "RR"] == {
        "run": "run",
        "slice": "two",
        "measure": "RR",
        "value": 0.5,
        "low": None,
        "high": None,
        "n": 1,
        "undefined": 1,
        "failed": 0,
    }
    assert result.by("n").filter(pl.col("slice").is_null())["n"].max() == 2
    with pytest.raises(findwell.FindwellError, match="unknown column of the queries 'tpic'"):
        result.by("tpic")


def test_a_table_about_the_queries_adds_slices() -> None:
    run, gold = {"1": ["a"], "2": ["b"]}, {"1": ["a"], "2": ["c"]}
    about = pl.DataFrame({"query": [1, 2], "lang": ["en", "de"]})
    result = findwell.evaluate(run, gold, "success@1", queries=about)
    assert result.by("lang")["value"].to_list() == [1.0, 0.0]
    with pytest.raises(findwell.FindwellError, match="no query of this table"):
        findwell.evaluate(run, gold, "success@1", queries={"7": {"lang": "en"}})


def test_several_runs_by_name() -> None:
    runs = {"good": {"q": ["a"]}, "bad": {"q": ["x"]}}
    result = findwell.evaluate(runs, {"q": ["a"]}, measures=["RR"])
    assert result.runs == ["good", "bad"]
    assert result["good", "RR"] == 1.0
    assert result["bad", "MRR"] == 0.0
    with pytest.raises(findwell.FindwellError, match="several runs"):
        result["RR"]
    with pytest.raises(findwell.FindwellError, match="unknown run 'goood'"):
        result["goood", "RR"]


def test_runs_of_the_same_name_are_numbered(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.json").write_text('{"q": ["a"]}')
    files = [tmp_path / "a" / "run.json", tmp_path / "b" / "run.json"]
    assert findwell.evaluate(files, {"q": ["a"]}).runs == ["run", "run-2"]


def test_a_measure_that_was_not_taken(result: findwell.Result) -> None:
    with pytest.raises(findwell.FindwellError, match=r"P@3 was not measured(.|\n)*recall@2"):
        result["P@3"]


def test_bounds_surround_the_value() -> None:
    run, gold = {"q": ["u", "a", "v"]}, {"q": {"a": 1, "b": 1, "n": 0}}
    result = findwell.evaluate(run, gold, ["P@3", "RR", "bpref"], bounds=True)
    assert result.per_query.select("value", "lower", "upper").rows() == [
        (1 / 3, 1 / 3, 1.0),
        (0.5, 0.5, 1.0),
        (0.5, 0.25, 0.75),  # R = 2, N = 3: (1 − 1/2) ÷ 2; or R = 4 with three of them found
    ]
    assert {"lower", "upper"} <= set(result.summary.columns)


def test_bounds_in_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    run = {f"q{i}": [f"d{j}" for j in range(i % 5)] for i in range(40)}
    gold = {f"q{i}": [f"d{i % 3}", "z"] for i in range(40)}
    whole = findwell.evaluate(run, gold, ["nDCG@3", "recall@2"], bounds=True).per_query
    monkeypatch.setattr("findwell.evaluation.results.summaries.UNITS", 7)
    assert findwell.evaluate(run, gold, ["nDCG@3", "recall@2"], bounds=True).per_query.equals(whole)


def test_saved_and_loaded_it_is_the_same(result: findwell.Result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "out" / "result")
    again = findwell.load(folder)
    assert again.summary.equals(result.summary)
    assert again.per_query.equals(result.per_query)
    assert again.findings == result.findings
    assert again.provenance.policy == result.provenance.policy
    assert again.by("topic").equals(result.by("topic"))
    saved = pl.read_parquet(folder / "per_query.parquet")
    assert saved.equals(result.per_query)
    assert json.loads((folder / "summary.json").read_text()) == result.summary.to_dicts()


def test_scored_again_without_the_inputs(result: findwell.Result, tmp_path: Path) -> None:
    measures = ["nDCG@2", "AP", "alpha_nDCG@2", "bpref", "infAP", "RBP_residual", "P(rel=2)@1"]
    fresh = findwell.evaluate(RECORDS, measures=measures)
    again = findwell.load(result.save(tmp_path / "r")).score(measures)
    assert again.per_query.equals(fresh.per_query)


def test_the_manifest_says_what_made_it(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    run.write_text('{"q": ["a"]}')
    folder = findwell.evaluate(run, {"q": ["a"]}, "RR", dialect="trec_eval").save(tmp_path / "r")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["dialect"] == "trec_eval"
    assert manifest["policies"]["missing"] == "error"
    assert manifest["measures"] == ["RR"]
    assert manifest["versions"]["findwell"] == findwell.__version__
    first, second = manifest["inputs"]
    assert (first["role"], first["path"], len(first["sha256"])) == ("run", str(run), 64)
    assert (second["role"], second["kind"], second["sha256"]) == ("gold", "dict", None)


def test_saving_again_replaces_the_result(result: findwell.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "r")
    result.score("P@1").save(tmp_path / "r")
    assert [str(measure) for measure in findwell.load(tmp_path / "r").measures] == ["P@1"]
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_what_is_not_a_result_is_left_alone(result: findwell.Result, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(findwell.FindwellError, match="not a findwell result"):
        result.save(tmp_path)
    with pytest.raises(findwell.FindwellError, match="not a complete findwell result"):
        findwell.load(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_result_of_another_layout_is_refused(result: findwell.Result, tmp_path: Path) -> None:
    manifest = result.save(tmp_path / "r") / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"layout": {LAYOUT}', '"layout": 99'))
    with pytest.raises(findwell.FindwellError, match="layout 99"):
        findwell.load(tmp_path / "r")


def test_documents_that_never_meet_are_noticed() -> None:
    def fix(run: list[str], gold: list[str]) -> str:
        findings = findwell.io.check({"q": run}, {"q": gold}, by="ids")
        return next(f.fix for f in findings if f.kind == "no-shared-document")

    assert "--read ids=chunk-to-doc:#" in fix(["guide#1"], ["guide"])
    assert "--read ids=uuid" in fix(["doc-<urn:uuid:1>::chunk-0"], ["<urn:uuid:1>"])
    assert "upper and lower case" in fix(["Guide"], ["guide"])
    assert "same way" in fix(["guide"], ["manual"])


def test_a_run_that_retrieved_nothing_scores_zero() -> None:
    result = findwell.evaluate({"q": []}, {"q": ["a"]}, measures=["recall@5", "P", "nDCG"])
    assert set(result.values.values()) == {0.0}
    assert [finding.kind for finding in result.findings] == ["retrieved-nothing"]


class TestIntervals:
    RUN: ClassVar = {f"q{n}": ["a", "x"] if n % 3 else ["x", "a"] for n in range(40)}
    GOLD: ClassVar = {query: ["a"] for query in RUN}

    def test_every_number_has_one(self) -> None:
        result = findwell.evaluate(self.RUN, self.GOLD, ["RR", "success@1", "AP"])
        methods = dict.fromkeys(("RR", "success@1", "AP"), "further-unit")
        expected = {"level": 0.95, "cluster": None, "methods": {"run": methods}, "reasons": {}}
        assert result.interval == result.as_dict()["interval"] == expected
        lone = findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, ["RR", "retrieved"]).interval
        assert lone["methods"] == {"run": {"RR": None, "retrieved": None}}
        assert lone["reasons"] == {"run": {"RR": "one query says nothing about the spread"}}
        summary = result.summary
        for row in summary.iter_rows(named=True):
            assert row["low"] <= row["value"] <= row["high"]
        assert summary["low"][0] > 0.5

    def test_the_level_widens_them_and_none_leaves_them_out(self) -> None:
        wide, narrow = (
            findwell.evaluate(self.RUN, self.GOLD, "RR", level=level).summary.row(0, named=True)
            for level in (0.99, 0.5)
        )
        assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
        none = findwell.evaluate(self.RUN, self.GOLD, "RR", level=None).summary
        assert none.select("low", "high").row(0) == (None, None)
        with pytest.raises(findwell.FindwellError, match="the level is 95"):
            findwell.evaluate(self.RUN, self.GOLD, "RR", level=95)

    def test_queries_of_one_source_are_not_independent(self, tmp_path: Path) -> None:
        about = pl.DataFrame({"query": list(self.RUN)}).with_columns(
            source=pl.Series([f"s{n % 3}" for n in range(40)])  # it decides the rank of a
        )
        apart = findwell.evaluate(self.RUN, self.GOLD, "RR")
        together = findwell.evaluate(self.RUN, self.GOLD, "RR", queries=about)
        assert (apart.options.cluster, together.options.cluster) == (None, "source")
        width = [
            result.summary["high"][0] - result.summary["low"][0] for result in (apart, together)
        ]
        assert width[1] > 2 * width[0]
        assert findwell.load(together.save(tmp_path / "r")).summary.equals(together.summary)
        named = findwell.evaluate(self.RUN, self.GOLD, "RR", queries=about, cluster="source")
        assert named.summary.equals(together.summary)
        with pytest.raises(findwell.FindwellError, match="unknown column"):
            findwell.evaluate(self.RUN, self.GOLD, "RR", queries=about, cluster="sauce")

    def test_slices_have_them_too(self) -> None:
        about = pl.DataFrame({"query": list(self.RUN), "half": ["one", "two"] * 20})
        by = findwell.evaluate(self.RUN, self.GOLD, "RR", queries=about).by("half")
        assert by.filter(pl.col("low") < pl.col("high")).height == 2


def test_lists_are_remembered_where_asked_for(tmp_path: Path) -> None:
    records = [
        {
            "query": "q",
            "question": "why?",
            "retrieved": [
                {"doc": d, "text": f"text {d}", "score": s} for d, s in (("a", 2), ("b", 1))
            ],
            "gold": [{"doc": "a", "text": "text a"}],
        }
    ]
    plain = findwell.evaluate(records, measures="RR")
    assert dict(plain.kept.listed) == {}
    kept = findwell.evaluate(
        records, measures=["RR", "recall/exact"], reading=findwell.Reading(keep=1)
    )
    assert kept.kept.listed["run"].to_dicts() == [
        {"query": "q", "rank": 1, "doc": "a", "score": 2.0, "text": "text a"}
    ]
    again = findwell.load(kept.save(tmp_path / "r"))
    assert again.kept.listed["run"].equals(kept.kept.listed["run"])
    found = findwell.evaluate(
        {"q": ["a"]}, {"q": ["a"]}, "RR", reading=findwell.Reading(keep=5), corpus={"a": "A!"}
    )
    assert found.kept.listed["run"]["text"].to_list() == ["A!"]


TWO = {"a": {"q1": ["x", "y"], "q2": ["y"]}, "b": {"q1": ["y"], "q2": ["x"]}}
ASKED = [{"query": "q1", "gold": ["x"], "topic": "tea"}, {"query": "q2", "gold": ["x"]}]


def test_one_run_of_several() -> None:
    result = findwell.evaluate(TWO, ASKED, ["RR"], reading=findwell.Reading(keep=2))
    alone = findwell.evaluate(TWO["b"], ASKED, ["RR"], reading=findwell.Reading(keep=2))
    only = result.only("b")
    assert only.runs == list(only.kept.listed) == ["b"]
    assert only.values == alone.values == {"RR": 0.5}
    with pytest.raises(findwell.FindwellError, match="unknown run 'c'"):
        result.only("c")


def test_the_queries_of_a_slice() -> None:
    result = findwell.evaluate(TWO, ASKED, ["RR"], reading=findwell.Reading(keep=2))
    tea, rest = result.where("topic", "tea"), result.where("topic", "(none)")
    assert tea.values == {"a: RR": 1.0, "b: RR": 0.0}
    assert rest.values == {"a: RR": 0.0, "b: RR": 1.0}
    assert tea.kept.listed["a"]["query"].unique().to_list() == ["q1"]
    for each, label in ((tea, "tea"), (rest, None)):
        assert each.summary["value"].to_list() == (
            result.by("topic").filter(pl.col("slice").eq_missing(label))["value"].to_list()
        )
    with pytest.raises(findwell.FindwellError, match="unknown value of topic 'ink'"):
        result.where("topic", "ink")
    with pytest.raises(findwell.FindwellError, match="unknown column of the queries 'tpic'"):
        result.where("tpic", "tea")

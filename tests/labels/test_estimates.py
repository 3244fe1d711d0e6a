"""`findwell.labels.ppi`: which estimator is right, known numbers, and what must never change."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError, InputError, MeasureError, OptionError
from findwell.core.estimate import Estimate
from findwell.evaluation.results.estimates import EstimateRow, Estimates
from findwell.loop.labels.estimates import evaluate_with_labels
from findwell.statistics.prediction_powered import ppi_mean

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

QUERIES, DEEP = 60, 10
MEASURES = ["P@5", "P@10", "RBP", "DCG@10", "recall@5", "nDCG@10", "RR", "success@5", "AP"]


class World:
    """Queries with known truth, two runs, and a judge that is right more often than not."""

    def __init__(self, seed: int = 0, *, right: float = 0.6, queries: int = QUERIES) -> None:
        rng = np.random.default_rng(seed)
        names = [f"q{number}" for number in range(queries)]
        docs = {name: [f"{name}-d{place}" for place in range(14)] for name in names}
        self.a = {name: docs[name][:DEEP] for name in names}
        self.b = {
            name: [docs[name][place] for place in rng.permutation(14)[:DEEP]] for name in names
        }
        self.truth = {
            name: {
                doc: int(rng.random() < 0.6 * 0.85**place) for place, doc in enumerate(docs[name])
            }
            for name in names
        }
        self.judged = {
            name: {
                doc: grade if rng.random() < right else int(rng.random() < 0.5)
                for doc, grade in graded.items()
            }
            for name, graded in self.truth.items()
        }

    @property
    def runs(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b}

    def pool(self, folder: Path, **options: Any) -> Path:
        """Pool both runs and label what is to be labelled, by the truth."""
        given: dict[str, Any] = {"purpose": "values", "budget": 250, "judged": self.judged}
        findwell.labels.pool(self.runs, folder / "pool", depth=DEEP, **given | options)
        with findwell.labels.Labels.open(folder / "pool", annotator="ann") as labels:
            while (pair := labels.next()) is not None:
                labels.set(pair.query, pair.doc, self.truth[pair.query][pair.doc])
        return folder / "pool"


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def pool(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.pool(tmp_path_factory.mktemp("labels"))


@pytest.fixture(scope="module")
def unjudged(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a pool without a judge; a test that labels more does so in a copy."""
    return world.pool(tmp_path_factory.mktemp("unjudged"), judged=None)


def close(found: EstimateRow, other: EstimateRow, sign: int = 1) -> None:
    """Assert that two estimates are the same numbers; with −1 the one is the negative."""
    numbers = [(each.value, each.low, each.high, each.labels) for each in (found, other)]
    if sign < 0:
        value, low, high, labels = numbers[1]
        assert value is not None
        assert low is not None
        assert high is not None
        numbers[1] = (-value, -high, -low, labels)
    assert numbers[0] == pytest.approx(numbers[1], nan_ok=True)


def test_everything_labelled_is_what_evaluate_measures(world: World) -> None:
    whole = findwell.evaluate(world.runs, world.truth, MEASURES)
    found = findwell.labels.ppi(world.runs, world.truth, MEASURES)
    for row in whole.summary.iter_rows(named=True):
        mine = found[row["run"], row["measure"], "labels"]
        assert mine.estimator == "all"
        assert (mine.value, mine.low, mine.high) == (row["value"], row["low"], row["high"])
    compared = findwell.compare(
        findwell.evaluate(world.a, world.truth, MEASURES),
        findwell.evaluate(world.b, world.truth, MEASURES),
    ).comparisons
    expected = {row["measure"]: row for row in compared.iter_rows(named=True)}
    for each in found.differences:
        row = expected[each.measure]
        assert (each.value, each.low) == pytest.approx((row["difference"], row["low"]))


def test_labels_that_are_all_no_count(tmp_path: Path) -> None:
    """Of 50 queries 18 have a relevant passage: P@5 is .084 over 50, and not .2333 over 18."""
    hits = [1] * 15 + [2] * 3  # 21 of 250 labels
    gold = {
        f"q{number:02}": {
            f"d{place}": int(place < (hits[number] if number < 18 else 0)) for place in range(5)
        }
        for number in range(50)
    }
    run = {query: list(docs) for query, docs in gold.items()}
    assert findwell.evaluate(run, gold, ["P@5"])["P@5"] == pytest.approx(0.084)
    qrels = tmp_path / "qrels"
    rows = [
        f"{query} 0 {doc} {grade}\n" for query, docs in gold.items() for doc, grade in docs.items()
    ]
    qrels.write_text("".join(rows))
    findwell.labels.pool([run], tmp_path / "pool", depth=5, purpose="ordering", method="depth")
    with findwell.labels.Labels.open(tmp_path / "pool", annotator="ann") as labels:
        for query, docs in gold.items():
            for doc, grade in docs.items():
                labels.set(query, doc, grade)
    for given in (gold, str(qrels), tmp_path / "pool", tmp_path / "pool" / "labels.db"):
        scored = findwell.evaluate(run, given, ["P@5", "recall@5"])
        assert scored["P@5"] == pytest.approx(0.084)
        assert scored.summary["n"].to_list() == [50, 18]
        found = findwell.labels.ppi(run, given, ["P@5", "recall@5"])
        assert found["P@5", "labels"].value == pytest.approx(0.084)
        assert found["P@5", "labels"].low == scored.summary["low"][0]
        assert found["recall@5", "labels"].value == pytest.approx(1.0)


def test_nothing_relevant_at_all() -> None:
    found = findwell.labels.ppi(
        {"q": ["a", "b"], "r": ["c"]}, {"q": {"a": 0, "b": 0}, "r": {"c": 0}}, "P@2"
    )
    assert found["P@2", "labels"].value == 0
    assert found["P@2", "labels"].high is not None


def test_a_sample_of_pairs(world: World, pool: Path) -> None:
    """Estimates of a third of the pairs are near the truth; ratios and sums each their own way."""
    truth = findwell.evaluate(world.runs, world.truth, MEASURES)
    found = findwell.labels.ppi(world.runs, pool, MEASURES)
    how = {name: each["estimator"] for name, each in found.design["measures"].items()}
    assert how == {
        **dict.fromkeys(("P@5", "P@10", "RBP", "DCG@10"), "pairs"),
        "recall@5": "ratio",
        **dict.fromkeys(("nDCG@10", "RR", "success@5", "AP"), "bounds"),
    }
    for measure in ("P@5", "P@10", "RBP", "DCG@10"):
        for run in "ab":
            alone, both = found[run, measure, "labels"], found[run, measure, "ppi"]
            assert alone.low is not None
            assert alone.high is not None
            assert both.low is not None
            assert both.high is not None
            assert alone.low < truth[run, measure] < alone.high  # type: ignore[operator]
            assert both.low < truth[run, measure] < both.high  # type: ignore[operator]
            assert both.high - both.low < alone.high - alone.low
            assert both.effective is not None
            assert both.effective > both.labels
    assert found.design["labels"] == 250
    assert found.design["sampling"] == {"sample": 250}
    assert [each["stratum"] for each in found.design["strata"]] == ["judge 0", "judge 1"]
    recall = found["a", "recall@5", "ppi"]
    pooled = {
        name: [doc for docs in (world.a, world.b) for doc in docs[name]] for name in world.truth
    }
    relevant = sum(world.truth[name][doc] for name in pooled for doc in set(pooled[name]))
    hits = sum(world.truth[name][doc] for name in world.a for doc in world.a[name][:5])
    assert recall.low is not None
    assert recall.high is not None
    assert recall.low < hits / relevant < recall.high


def test_labels_out_of_the_sample_change_no_estimate(
    world: World, unjudged: Path, tmp_path: Path
) -> None:
    """Labels of pairs that were not drawn are known, but do not count as drawn for certain."""
    pool = shutil.copytree(unjudged, tmp_path / "pool")
    before = findwell.labels.ppi(world.runs, pool, ["P@10", "recall@5"])
    with findwell.labels.Labels.open(pool, annotator="ann") as labels:
        others = labels.candidates().filter(~pl.col("sampled"))
        for query, doc in others.select("query", "doc").rows():
            if world.truth[query][doc]:
                labels.set(query, doc, 1)
    after = findwell.labels.ppi(world.runs, pool, ["P@10", "recall@5"])
    for one, other in zip(before.rows, after.rows, strict=True):
        close(one, other)
    assert after.design["sampling"]["chosen"] > 50
    assert (
        "labels are not used: their pairs were not drawn" in after.design["measures"]["P@10"]["why"]
    )


def test_an_imported_gold_is_no_sample(world: World, tmp_path: Path) -> None:
    """Known relevant documents that are imported first do not raise the estimate."""
    findwell.labels.pool(world.runs, tmp_path / "pool", purpose="values", budget=250)
    known = {
        query: {doc: 1 for doc in docs if graded[doc]}
        for query, graded in world.truth.items()
        for docs in [sorted(set(world.a[query]) | set(world.b[query]))]
    }
    with findwell.labels.Labels.open(tmp_path / "pool", annotator="ann") as labels:
        labels.import_labels(known)
        for _ in range(120):
            pair = labels.next()
            assert pair is not None
            labels.set(pair.query, pair.doc, world.truth[pair.query][pair.doc])
    found = findwell.labels.ppi(world.a, tmp_path / "pool", "P@10")["P@10", "labels"]
    truth = findwell.evaluate(world.a, world.truth, "P@10").summary["value"][0]
    assert found.low is not None
    assert found.high is not None
    assert found.low <= truth <= found.high


def test_chosen_labels_leave_estimates_unbiased() -> None:
    """Over many samples the mean is the truth, though all other relevant pairs are labelled too."""
    world = World(3, queries=30)
    rows = [
        {"query": query, "doc": doc, "truth": float(world.truth[query][doc])}
        for query, docs in world.a.items()
        for doc in docs
    ]
    table = pl.DataFrame(rows)
    truth = float(table["truth"].to_numpy().mean())
    rng = np.random.default_rng(11)
    found: list[float] = []
    for _ in range(60):
        drawn = rng.permutation(table.height) < 100
        told = drawn | (table["truth"].to_numpy() > 0)
        labels = table.select(
            "query",
            "doc",
            grade=pl.when(pl.Series(told)).then("truth"),
            probability=pl.when(pl.Series(drawn)).then(100 / table.height),
            design=pl.when(pl.Series(drawn)).then(pl.lit("sample")).otherwise(pl.lit("chosen")),
        )
        found.append(findwell.labels.ppi(world.a, labels, "P@10")["P@10", "labels"].value or 0.0)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - truth) < 3 * error, (np.mean(found), truth, error)


def test_queries_that_somebody_completed_are_taken_for_random(
    world: World, unjudged: Path, tmp_path: Path
) -> None:
    """The advice of `bounds` is to label ten queries: these count alike, drawn pairs or not."""
    pool = shutil.copytree(unjudged, tmp_path / "pool")
    picked = list(world.truth)[::4]
    with findwell.labels.Labels.open(pool, annotator="ann") as labels:
        for query, doc in labels.candidates().select("query", "doc").rows():
            if query in picked:
                labels.set(query, doc, world.truth[query][doc])
    found = findwell.labels.ppi(world.a, pool, "nDCG@10")
    assert found["nDCG@10", "labels"].estimator == "queries"
    assert "taken for a random sample" in found.design["measures"]["nDCG@10"]["why"]
    part = {query: world.a[query] for query in picked}
    known = {query: world.truth[query] for query in picked}
    expected = findwell.evaluate(part, known, "nDCG@10").summary["value"][0]
    assert found["nDCG@10", "labels"].value == pytest.approx(expected, abs=0.02)


def test_a_frame_says_which_labels_were_drawn(world: World) -> None:
    rows = [
        {"query": "q0", "doc": doc, "grade": 1, "probability": 0.5 if at < 5 else None}
        for at, doc in enumerate(world.a["q0"])
    ]
    with pytest.raises(InputError, match="5 labels have no probability, and others have one"):
        findwell.labels.ppi(world.a, pl.DataFrame(rows), "P@10")


def test_the_same_labels_in_every_form(world: World, pool: Path) -> None:
    wanted = findwell.labels.ppi(world.runs, pool, MEASURES)
    with findwell.labels.Labels.open(pool) as labels:
        opened = findwell.labels.ppi(world.runs, labels, MEASURES)
        said = labels.frame().select("query", "doc", "grade", "probability")
        frame = labels.candidates().drop("probability").join(said, on=["query", "doc"], how="left")
    table = findwell.labels.ppi(
        world.runs, frame.sample(fraction=1, shuffle=True, seed=1), MEASURES
    )
    for one, other, third in zip(wanted.rows, opened.rows, table.rows, strict=True):
        assert one == other
        assert one.estimator == third.estimator
        close(one, third)


def test_names_and_order_do_not_matter(world: World, pool: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        said = labels.frame().select("query", "doc", "grade", "probability")
        frame = labels.candidates().drop("probability").join(said, on=["query", "doc"], how="left")

    def other(name: str) -> str:
        return f"z{hash(name) % 1_000_003}-{name[::-1]}"

    renamed = frame.with_columns(
        pl.col("doc").map_elements(other, return_dtype=pl.String),
        pl.col("query").map_elements(other, return_dtype=pl.String),
    )
    runs = {
        name: {other(query): [other(doc) for doc in docs] for query, docs in reversed(run.items())}
        for name, run in world.runs.items()
    }
    wanted = findwell.labels.ppi(world.runs, frame, ["P@5", "recall@5"])
    for one, another in zip(
        wanted.rows, findwell.labels.ppi(runs, renamed, ["P@5", "recall@5"]).rows, strict=True
    ):
        close(one, another)


def test_a_difference_turns_round_with_its_runs(world: World, pool: Path) -> None:
    measures = ["P@10", "DCG@10", "recall@5"]
    forth = findwell.labels.ppi({"a": world.a, "b": world.b}, pool, measures).differences
    back = findwell.labels.ppi({"b": world.b, "a": world.a}, pool, measures).differences
    assert len(forth) == len(back) == 9
    for one, other in zip(forth, back, strict=True):
        assert (one.run, one.baseline) == (other.baseline, other.run) == ("b", "a")
        close(one, other, -1)
    same = findwell.labels.ppi({"a": world.a, "b": dict(world.a)}, pool, "P@10").differences
    assert [each.value for each in same] == [0.0] * 3


def test_a_judge_that_is_asked(world: World, pool: Path) -> None:
    """Its verdicts about the run count, and its row is what `evaluate` measures of it."""
    texts = {doc: f"text of {doc}" for docs in world.truth.values() for doc in docs}
    questions = {query: f"question {query}" for query in world.truth}

    def judge(sample: Any) -> dict[str, list[int]]:
        names = [chunk.removeprefix("text of ") for chunk in sample.chunks]
        return {"relevance": [world.judged[sample.query][name] for name in names]}

    measures = ["P@5", "P@5/relevance", "context_precision@5"]
    options: dict[str, Any] = {"judge": judge, "corpus": texts}
    found = findwell.labels.ppi(world.a, pool, measures, **options)
    plain = findwell.evaluate(
        world.a,
        world.truth,
        measures[1:],
        queries=[{"query": q, "question": t} for q, t in questions.items()],
        **options,
    )
    for measure in measures[1:]:
        assert found[measure, "judge"].value == pytest.approx(plain[measure])
    own = findwell.labels.ppi(world.a, pool, "P@5")  # the pool's judge said the same
    for method in ("judge", "labels", "ppi"):
        close(found["P@5", method], own["P@5", method])
        close(found["P@5/relevance", method], own["P@5", method])
    assert found["context_precision@5", "labels"].estimator == "bounds"
    judged_only = findwell.labels.ppi(
        world.a, pool, measures[1:], **options
    )  # no measure reads ids
    assert judged_only.rows == found.rows[3:]


@pytest.mark.parametrize("useless", ["constant", "contrary"])
def test_a_useless_judge_leaves_the_labels(world: World, pool: Path, useless: str) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        said = labels.frame().select("query", "doc", "grade", "probability")
        frame = labels.candidates().drop("probability").join(said, on=["query", "doc"], how="left")
    truth = [world.truth[query][doc] for query, doc in frame.select("query", "doc").rows()]
    verdicts = 1.0 - np.array(truth) if useless == "contrary" else np.ones(len(truth))
    given = frame.with_columns(judge=pl.Series(verdicts), stratum=pl.lit("all"))
    for measure in ("P@10", "recall@5"):
        found = findwell.labels.ppi(world.a, given, measure)
        one, other = found[measure, "ppi"], found[measure, "labels"]
        close(one, other)
        assert one.effective == pytest.approx(one.labels)


def test_some_queries_as_a_whole(world: World) -> None:
    """It is PPI++ over queries; a query that nobody labelled counts by the judge alone."""
    some = {name: world.truth[name] for name in list(world.truth)[:25]}
    run = {name: docs[:DEEP] for name, docs in world.a.items()}
    found = findwell.labels.ppi(run, some, ["RR", "success@5", "P@5"])
    assert {each.estimator for each in found.rows} == {"queries"}
    assert "random sample" in found.design["measures"]["RR"]["why"]
    known = findwell.evaluate({name: run[name] for name in some}, some, ["RR"])
    assert found["RR", "labels"].value == pytest.approx(known["RR"])
    rows = [
        (query, doc, some.get(query, {}).get(doc), None, float(world.judged[query][doc]))
        for query, docs in run.items()
        for doc in docs
    ]
    columns = ("query", "doc", "grade", "probability", "judge")
    table = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    found = findwell.labels.ppi(
        run, table.with_columns(pl.col("probability").cast(pl.Float64)), ["RR", "nDCG@10"]
    )
    true, judged = (
        findwell.evaluate(run, gold, ["RR"]).arrays["run", findwell.plugins.parse_measure("RR")]
        for gold in (world.truth, {q: {**d, "other": 1} for q, d in world.judged.items()})
    )
    both = found["RR", "ppi"]
    same = ppi_mean(true[:25], judged[:25], judged[25:])
    assert both.value == pytest.approx(same.value, abs=0.01)
    assert both.low == pytest.approx(same.low, abs=0.03)
    assert found["nDCG@10", "ppi"].estimator == "queries"
    # some have nothing relevant in the list, and nDCG is the mean of those that have
    assert found["nDCG@10", "labels"].value == pytest.approx(
        findwell.evaluate(run, {q: {d: some[q][d] for d in run[q]} for q in some}, ["nDCG@10"])[
            "nDCG@10"
        ]
    )


def test_an_order_that_looks_for_relevant_ones_gives_bounds(world: World, tmp_path: Path) -> None:
    pool = world.pool(tmp_path, purpose="ordering", method="mm-ns", judged=None)
    found = findwell.labels.ppi(world.a, pool, "P@5")["P@5", "labels"]
    assert (found.value, found.estimator) == (None, "bounds")
    assert "mm-ns" in found.reason
    assert found.low is not None
    assert found.high is not None
    truth = findwell.evaluate(world.a, world.truth, ["P@5"])["P@5"]
    assert truth is not None
    assert found.low <= truth <= found.high


def test_a_run_that_is_not_in_the_pool(world: World, pool: Path) -> None:
    stranger = {query: ["new", *docs[:9]] for query, docs in world.a.items()}
    found = findwell.labels.ppi(stranger, pool, "P@5")["P@5", "ppi"]
    assert found.estimator == "bounds"
    assert "60 retrieved documents that count are not in the pool" in found.reason


def test_bad_input(world: World, pool: Path) -> None:
    with pytest.raises(MeasureError, match="reads claims"):
        findwell.labels.ppi(world.a, pool, "context_recall")
    with pytest.raises(MeasureError, match="by cost"):
        findwell.labels.ppi(world.a, pool, "P@500tokens")
    with pytest.raises(MeasureError, match="not a mean"):
        findwell.labels.ppi(world.a, pool, "num_ret")
    with pytest.raises(OptionError, match="every query counts"):
        findwell.labels.ppi(world.a, pool, "P@5", reading=findwell.Reading(missing="skip"))
    table = pl.DataFrame({"query": ["q0"], "doc": ["q0-d0"], "grade": [1.0], "probability": [0.0]})
    with pytest.raises(InputError, match="probability"):
        findwell.labels.ppi(world.a, table, "P@5")
    with pytest.raises(InputError, match="two rows"):
        findwell.labels.ppi(world.a, pl.concat([table, table]).with_columns(probability=0.5), "P@5")
    with pytest.raises(InputError, match="no column doc"):
        findwell.labels.ppi(world.a, table.drop("doc"), "P@5")
    unlabelled = table.with_columns(grade=pl.lit(None, pl.Float64), probability=0.5)
    with pytest.raises(InputError, match="no label yet"):
        findwell.labels.ppi(world.a, unlabelled, "P@5")
    with pytest.raises(FindwellError, match="nDCG"):
        findwell.labels.ppi(world.a, pool, "P@5")["nDCG@5", "ppi"]


def test_a_saved_result_keeps_its_design(world: World, pool: Path, tmp_path: Path) -> None:
    result = evaluate_with_labels(world.runs, pool, ["P@5", "nDCG@10"])
    assert result.estimates is not None
    best = result.estimates["a", "P@5", "ppi"]
    assert result["a", "P@5"] == best.value
    row = result.summary.filter(run="a", measure="P@5").row(0, named=True)
    assert (row["value"], row["low"], row["n"]) == (best.value, best.low, QUERIES)
    assert result["a", "nDCG@10"] is None
    again = findwell.load(result.save(tmp_path / "saved"))
    assert again.estimates is not None
    assert again.estimates.rows == result.estimates.rows
    assert again.estimates.design == json.loads(json.dumps(result.estimates.design))
    manifest = json.loads((tmp_path / "saved" / "manifest.json").read_text())
    assert manifest["labels"]["sampling"] == {"sample": 250}
    # other measures are taken of what is labelled, and say so
    other = again.score(["P@3"])
    assert other.estimates is None
    assert "partly-labelled" in {found.kind for found in other.findings}
    assert again.score(["P@5", "nDCG@10"]).estimates is not None
    findwell.report(again, output=tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "design of the labels" in page
    assert "labels + judge" in page
    assert "drawn with known probabilities" in again.estimates._repr_html_()


def test_command_line(world: World, pool: Path, tmp_path: Path, cli: Findwell) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    a.write_text(json.dumps(world.a))
    b.write_text(json.dumps(world.b))
    done = cli("score", a, "-m", "P@5", "-m", "recall@5", "--labels", pool, "--format", "json")
    assert done.code == 0
    printed = done.answer
    found = findwell.labels.ppi({"a": world.a}, pool, ["P@5", "recall@5"])
    assert printed["estimates"] == [json.loads(json.dumps(each.as_dict())) for each in found.rows]
    assert {each["method"] for each in printed["estimates"]} == {"judge", "labels", "ppi"}
    assert printed["labels"]["labels"] == 250
    ppi = next(each for each in printed["estimates"] if each["method"] == "ppi")
    assert printed["summary"][0]["value"] == ppi["value"]
    table = cli("score", a, "-m", "P@5", "--labels", pool / "labels.db")
    assert f"{ppi['value']:.4f}" in table.out
    assert max(map(len, table.out.splitlines())) <= 80
    csv = cli("score", a, "-m", "P@5", "--labels", pool, "--format", "csv").out
    assert csv.splitlines()[0].startswith("run,baseline,measure,method,value")
    done = cli("compare", a, b, "-m", "P@10", "--labels", pool, "--format", "json")
    differences = [each for each in done.answer["estimates"] if each["baseline"] == "a"]
    expected = findwell.labels.ppi({"a": world.a, "b": world.b}, pool, "P@10").differences
    assert [each["value"] for each in differences] == [each.value for each in expected]
    assert "differences" in cli("compare", a, b, "-m", "P@10", "--labels", pool).out
    for refused in (["--no-regression", "P@10"], ["--all-pairs"], ["--gold", a]):
        done = cli("compare", a, b, "-m", "P@10", "--labels", pool, *refused)
        assert done.code == 2
        assert f"{refused[0]} and --labels exclude each other" in done.err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--gold", "x"], "--gold and --labels exclude each other"),
        (["--require", "P@5>=0.1"], "--require and --labels exclude each other"),
        (["--slice", "topic"], "--slice and --labels exclude each other"),
    ],
)
def test_what_excludes_labels(
    pool: Path, tmp_path: Path, cli: Findwell, more: list[str], says: str
) -> None:
    run = tmp_path / "a.json"
    run.write_text('{"q0": ["q0-d0"]}')
    done = cli("score", run, "-m", "P@5", "--labels", pool, *more)
    assert done.code == 2
    assert says in done.err


def test_no_card_corrects_a_score(world: World, cli: Findwell) -> None:
    """Sensitivity on a pool is not that on a list: no option offers such a correction."""
    done = cli("score", "run.jsonl", "-m", "P@5/relevance", "--card", "card.json")
    assert done.code == 2
    assert "--card" in done.err
    with pytest.raises((TypeError, OptionError)):
        findwell.labels.ppi(world.a, world.truth, "P@5", card="card.json")  # type: ignore[call-arg]


def test_a_verdict_counts_for_every_run_of_the_pool(tmp_path: Path) -> None:
    """The recall of a run counts what only another run found: by the judge as by people."""

    def entry(side: str, number: int) -> dict[str, Any]:
        found = [{"doc": f"{side}{number}", "text": f"{side} {number}"}]
        return {"query": f"q{number}", "question": f"{number}?", "retrieved": found}

    runs = {side: [entry(side, number) for number in range(12)] for side in "ab"}
    folder = tmp_path / "pool"
    findwell.labels.pool(runs, folder, depth=1, purpose="values", budget=16)
    with findwell.labels.Labels.open(folder) as labels:
        while (pair := labels.next("anna")) is not None:
            labels.set(pair.query, pair.doc, 1, annotator="anna")

    def judge(sample: Any) -> dict[str, list[int]]:
        return {"relevance": [1] * len(sample.chunks)}

    found = findwell.labels.ppi(runs, folder, measures=["recall@1", "P@1/relevance"], judge=judge)
    assert found["a", "recall@1", "judge"].value == 0.5
    assert found["b", "recall@1", "judge"].value == 0.5
    assert found["a", "recall@1", "ppi"].value == pytest.approx(0.5)
    (difference,) = (
        each.value
        for each in found.rows
        if each.baseline and (each.measure, each.method) == ("recall@1", "judge")
    )
    assert difference == 0


# --- an order of systems --------------------------------------------------------------------------


def drawn_estimates(judge: dict[str, float], ppi: dict[str, float], wide: float) -> Estimates:
    """Return estimates of P@5 with intervals that are this wide, and differences from the first."""
    rows, first = [], next(iter(judge))
    for method, values in (("judge", judge), ("labels", ppi), ("ppi", ppi)):
        for run, value in values.items():
            for baseline in (None, first) if run != first else (None,):
                shown = value - (0.0 if baseline is None else values[first])
                around = Estimate(shown, shown - wide, shown + wide, 0.95, "", 9)
                rows.append(EstimateRow(run, "P@5", method, around, 9, 9.0, "pairs", baseline))
    return Estimates(tuple(rows))


def test_many_systems_are_ranked_by_the_judge_alone() -> None:
    judge = {f"s{number}": 0.1 * number for number in range(6)}
    noisy = {run: 0.3 + 0.01 * (value > 0.2) for run, value in judge.items()}
    order = drawn_estimates(judge, noisy, 0.2).ranking("P@5")
    assert (order.method, order.runs) == ("judge", sorted(judge, reverse=True))
    assert order.why
    few, fewer = ({run: each[run] for run in list(judge)[:5]} for each in (judge, noisy))
    assert drawn_estimates(few, fewer, 0.2).ranking("P@5").method == "ppi"
    # labels that are sure of the opposite have the word
    reverse = {run: 1 - value for run, value in judge.items()}
    order = drawn_estimates(judge, reverse, 0.01).ranking("P@5")
    assert (order.method, order.runs) == ("ppi", sorted(judge))
    assert "wrong about s1" in order.why


def test_the_order_of_many_systems_is_shown(world: World, pool: Path) -> None:
    runs = {f"run{number}": world.a for number in range(6)}
    found = findwell.labels.ppi(runs, pool, "P@5")
    (order,) = found.as_dict()["rankings"]
    assert (order["measure"], order["method"], order["runs"]) == ("P@5", "judge", list(runs))
    shown = " ".join(repr(found).split())
    assert "P@5, best first by judge alone: run0, run1, run2" in shown
    assert "rankings" not in findwell.labels.ppi(world.a, pool, "P@5").as_dict()

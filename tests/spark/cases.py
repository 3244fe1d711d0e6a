"""What is tested on a real Spark, in an environment of its own: `python -m tests.spark.cases`.

One session serves all cases. The last line that is printed is JSON: the name of every case, with
what went wrong, or nothing. `tests/spark/test_on_spark.py` asks for it and counts every case.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings

import findwell
from findwell.core.errors import AlignError, FindwellError, InputError, OptionError, SparkError
from findwell.measures.dialects import resolve_measures
from tests.spark.frames import EVERY, assert_same, hard_case, records
from tests.strategies import grouped_cases

if TYPE_CHECKING:
    from collections.abc import Callable

CASES: dict[str, Callable[[Any, Path], None]] = {}
MEASURES = ["nDCG@10", "AP", "recall@3", "RR"]


def case(function: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
    """Make a case known by the name of its function."""
    CASES[function.__name__] = function
    return function


def per_query(result: Any) -> pl.DataFrame:
    """Return the values of a result; those that it would write are the same."""
    here: pl.DataFrame = result.per_query.drop("run")
    there = pl.DataFrame(result.table.toArrow()).select(here.columns)
    assert there.sort("query", "measure").equals(here.sort("query", "measure"))
    return here


def on_spark(spark: Any, frame: pl.DataFrame) -> Any:
    """Return a frame as one of Spark, its rows spread over partitions at random."""
    return spark.createDataFrame(frame.to_arrow()).repartition(3)


def refused(kind: type[FindwellError], text: str, work: Callable[[], Any]) -> None:
    """Assert that something raises an error of this kind that says so."""
    with pytest.raises(kind) as caught:
        work()
    assert text in str(caught.value), str(caught.value)


@case
def every_measure_of_every_dialect(spark: Any, _: Path) -> None:
    """All dialects share one frame each; the gold is sent to all tasks or shuffled, in turns."""
    for number, dialect in enumerate(findwell.plugins.known_dialects()):
        run, gold = hard_case(20 + number, dialect)
        measures = resolve_measures(EVERY, dialect)
        result = findwell.spark.evaluate(
            on_spark(spark, run),
            on_spark(spark, gold),
            measures,
            dialect=dialect,
            gold_join=("broadcast", "shuffle")[number % 2],
            batch_rows=60,
            partitions=3,
        )
        assert_same(per_query(result), findwell.evaluate(run, gold, measures, dialect=dialect))
        result.close()


@case
def few_queries_in_many_partitions(spark: Any, _: Path) -> None:
    """Most partitions are empty, and batches of Spark have two rows."""
    run, gold = hard_case(31, queries=6)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2")
    try:
        result = findwell.spark.evaluate(
            on_spark(spark, run), on_spark(spark, gold), MEASURES, partitions=13, batch_rows=4
        )
        local = findwell.evaluate(run, gold.sort("query", maintain_order=True), MEASURES)
        assert_same(per_query(result), local)
        assert result.summary.equals(local.summary)  # intervals, too
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@case
def a_query_with_very_many_documents(spark: Any, _: Path) -> None:
    """One of three queries has nearly all rows; many of its scores are equal."""
    many = 200_000
    run = pl.DataFrame(
        {
            "query": ["a"] * 3 + ["big"] * many + ["c"] * 2,
            "doc": [f"d{at}" for at in (*range(3), *range(many), *range(2))],
            "rank": [*range(3), *(at // 2 for at in range(many)), *range(2)],
        }
    )
    gold = pl.DataFrame(
        {
            "query": ["a", "big", "big", "c"],
            "doc": ["d1", "d199999", "d7", "d9"],
            "grade": [1, 2, 1, 1],
        }
    )
    result = findwell.spark.evaluate(
        on_spark(spark, run), on_spark(spark, gold), MEASURES, batch_rows=5_000
    )
    assert_same(per_query(result), findwell.evaluate(run, gold, MEASURES))


@case
def lists_texts_groups_slices_and_samples(spark: Any, folder: Path) -> None:
    """Records with lists, from a file: by ids, by texts, by the local judge."""
    given = records(5)
    path = folder / "records.jsonl"
    path.write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
    frame = spark.read.json(str(path))
    for by, measures in {
        "ids": ["recall@2", "nDCG@3", "recall@9tokens"],
        "rouge": ["recall@2", "P@3/exact"],
        "claims": ["recall@3", "P@2/relevance"],
    }.items():
        local = findwell.evaluate(given, measures=measures, by=by, judge="local:text")
        result = findwell.spark.evaluate(
            frame, None, measures, by=by, judge="local:text", slices="topic", sample=1.0
        )
        assert_same(per_query(result), local)
        assert result.summary.equals(local.summary)  # the names of the queries are in order
        assert result.by("topic").equals(local.by("topic"))
        sample = result.sample
        assert_same(sample.per_query, local)
        saved = result.save(folder / f"saved-{by}")
        assert findwell.load(saved).values == sample.values


@case
def samples_of_two_runs_hold_the_same_queries(spark: Any, folder: Path) -> None:
    """So `findwell compare` pairs them, and the report shows them."""
    results = []
    for seed in (1, 2):
        run, gold = hard_case(40)
        changed = run.with_columns(score=pl.col("score") * (1 if seed == 1 else -1))
        results.append(
            findwell.spark.evaluate(
                on_spark(spark, changed), on_spark(spark, gold), MEASURES, sample=0.5
            )
        )
    folders = [result.save(folder / f"side{at}") for at, result in enumerate(results)]
    first, second = map(findwell.load, folders)
    assert first.queries["query"].to_list() == second.queries["query"].to_list()
    assert 10 < first.queries.height < 50
    assert first.findings[0].kind == "sampled-queries"
    assert findwell.compare(*map(str, folders)).comparisons.height == len(MEASURES)
    assert "up this result; the Spark job measured" in findwell.report(str(folders[0]))


@case
def results_are_tables_that_compare_and_gate_read(spark: Any, folder: Path) -> None:
    """Values are written by run id, twice without a trace, and loaded as they were."""
    run, gold = hard_case(50)
    other = run.with_columns(score=-pl.col("score"))
    frames = [on_spark(spark, each) for each in (run, other)]
    before, after = (
        findwell.spark.evaluate(frame, on_spark(spark, gold), MEASURES, run_id=name, bounds=True)
        for frame, name in zip(frames, ("one", "two/b: 5%"), strict=True)
    )
    place = str(folder / "results")
    for _ in range(2):
        before.write(place)
        after.write(place)
    table = spark.read.parquet(place)
    ids = sorted(row[0] for row in table.select("run_id").distinct().collect())
    assert ids == ["one", "two/b: 5%"]
    assert table.count() == before.table.count() + after.table.count()
    after.write("table:findwell_results")
    assert spark.table("findwell_results").count() == after.table.count()
    loaded = findwell.spark.load(f"{place}/run_id=one")
    again = findwell.spark.load(place, run_id="two/b: 5%")
    for found, wanted in ((loaded, before), (again, after)):
        assert found.summary.equals(wanted.summary)
        assert found.per_query.equals(wanted.per_query)
        assert found.provenance.policy == wanted.provenance.policy
    compared = findwell.compare({"old": loaded, "new": again}, permutations=2000)
    assert not [each for each in compared.findings if each.kind == "other-choice"]
    there = findwell.compare({"old": before, "new": after}, permutations=2000)
    assert there.comparisons.equals(compared.comparisons)
    refused(OptionError, "several evaluations", lambda: findwell.spark.load(table))
    refused(OptionError, "it has no row", lambda: findwell.spark.load(place, run_id="three"))
    refused(
        InputError, "no column provenance", lambda: findwell.spark.load(table.drop("provenance"))
    )
    report = findwell.gate(
        after, ["RR>=0.01", "RR>=baseline-1", "undefined<=100%", "AP>=0.99"], baseline=loaded
    )
    assert [each.outcome for each in report.verdicts] == ["pass", "pass", "pass", "fail"]
    assert report.exit_code == 1
    after.write("table:findwell_results")  # rows are appended
    refused(InputError, "is there 2 times", lambda: findwell.spark.load("table:findwell_results"))
    some = table.filter("run_id = 'one' and not (query = 'q0' and measure = 'AP')")
    refused(InputError, "some queries lack a row", lambda: findwell.spark.load(some))


@case
def comparisons_and_gates_are_those_of_one_machine(spark: Any, folder: Path) -> None:
    """Of means, sums, geometric means and clusters, to the last bit, also after loading."""
    measures = ["AP", "GMAP", "relevant_retrieved", "retrieved"]
    run, gold = hard_case(55, queries=200)
    gold = gold.sort("query", maintain_order=True)
    other = run.with_columns(score=-pl.col("score")).filter(pl.int_range(pl.len()) % 9 > 0)
    about = gold.select("query").unique(maintain_order=True)
    about = about.with_columns(
        source=pl.col("query").str.slice(1).cast(int) // 3, one=pl.lit("the only one")
    )
    frames = [on_spark(spark, each) for each in (run, other)]
    common = {"queries": on_spark(spark, about)}
    texts = ["relevant_retrieved>=baseline-30", "GMAP>=baseline*0.9-0.02", "AP>=baseline+0.5"]
    # a source that several queries share clusters them, on one machine as well
    for options in ({}, common, common | {"cluster": "one"}):
        both = [
            findwell.spark.evaluate(frame, on_spark(spark, gold), measures, run_id=name, **options)
            for frame, name in zip(frames, ("one", "two"), strict=True)
        ]
        here = options | {"queries": about} if options else {}
        results = [findwell.evaluate(each, gold, measures, **here) for each in (run, other)]
        local = findwell.compare(*results, permutations=2000)
        place = str(folder / str(len(options)))
        for result in both:
            result.write(place)
        loaded = [findwell.spark.load(place, run_id=name) for name in ("one", "two")]
        for one, two in (both, loaded):
            found = findwell.compare(one, two, permutations=2000)
            assert found.comparisons.equals(local.comparisons)
            assert found.cluster == local.cluster
            verdicts = findwell.gate(two, texts, baseline=one).verdicts
            assert verdicts == findwell.gate(results[1], texts, baseline=results[0]).verdicts
    (verdict,) = findwell.gate(both[0], "AP>=0.01").verdicts
    assert verdict.outcome == "undecided"
    assert "one cluster" in verdict.reason
    skipped = findwell.spark.evaluate(
        frames[0].limit(0), on_spark(spark, gold), "AP", reading=findwell.Reading(missing="skip")
    )
    assert skipped.summary["n"].to_list() == [0]
    (verdict,) = findwell.gate(skipped, "AP>=0.01").verdicts
    assert verdict.outcome == "undecided"


@case
def values_are_kept_where_nothing_else_stands(spark: Any, folder: Path) -> None:
    """A second job may replace the values of the first, but no other table."""
    run, gold = (on_spark(spark, each) for each in hard_case(3, "findwell"))
    work = partial(findwell.spark.evaluate, run, gold, ["AP"])
    expected = work().values
    for _ in range(2):
        assert work(keep_at=str(folder / "kept")).values == expected
    run.write.parquet(str(folder / "table"))
    (folder / "texts").mkdir()
    (folder / "texts" / "notes.txt").write_text("mine")
    for name in ("table", "texts"):
        at = str(folder / name)
        refused(OptionError, "this place already holds something", partial(work, keep_at=at))
    assert spark.read.parquet(str(folder / "table")).count() == run.count()
    assert (folder / "texts" / "notes.txt").read_text() == "mine"


@case
def property_many_small_frames_at_once(spark: Any, _: Path) -> None:
    """What a query scores does not depend on the queries next to it, nor on where they are."""
    import hypothesis.strategies as st

    @settings(
        max_examples=2,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(grouped_cases(), min_size=16, max_size=16))
    def holds(examples: list[Any]) -> None:
        wanted: dict[str, list[pl.DataFrame]] = {"listed": [], "scored": []}
        runs: dict[str, list[Any]] = {"listed": [], "scored": []}
        golds: dict[str, list[Any]] = {"listed": [], "scored": []}
        for at, (run, gold) in enumerate(examples):
            kind = "listed" if any(isinstance(each, list) for each in run.values()) else "scored"
            renamed = pl.format("{} {}", pl.lit(at), "query")
            local = findwell.evaluate(run, gold, MEASURES)
            wanted[kind].append(local.per_query.with_columns(query=renamed))
            golds[kind] += [{**each, "query": f"{at} {each['query']}"} for each in gold]
            for query, found in run.items():
                name = f"{at} {query}"
                if kind == "listed":
                    runs[kind].append({"query": name, "retrieved": list(found)})
                else:
                    runs[kind] += [(name, doc, score) for doc, score in found.items()]
        kinds: dict[str, Any] = {
            "listed": {"query": pl.String, "retrieved": pl.List(pl.String)},
            "scored": {"query": pl.String, "doc": pl.String, "score": pl.Float64},
        }
        for kind, rows in runs.items():
            if not rows:
                continue
            frames = [
                pl.DataFrame(rows, schema=kinds[kind], orient="row"),
                pl.DataFrame(golds[kind], strict=False),
            ]
            on = [on_spark(spark, each) for each in frames]
            result = findwell.spark.evaluate(on[0], on[1], MEASURES, partitions=2, batch_rows=7)
            found = per_query(result).sort("query", "measure")
            expected = pl.concat(wanted[kind]).sort("query", "measure")
            assert found["query"].equals(expected["query"])
            assert found["value"].equals(expected["value"])

    holds()


@case
def names_of_columns_and_queries_about_them(spark: Any, _: Path) -> None:
    run, gold = hard_case(60)
    about = (
        gold.select("query")
        .unique()
        .with_columns(
            lang=pl.when(pl.col("query").str.ends_with("1"))
            .then(pl.lit("de"))
            .otherwise(pl.lit("en"))
        )
    )
    local = findwell.evaluate(run, gold, MEASURES, queries=about)
    result = findwell.spark.evaluate(
        on_spark(spark, run.rename({"query": "who", "doc": "what", "score": "how good"})),
        on_spark(spark, gold.rename({"query": "who", "doc": "dot.ted"})),
        MEASURES,
        columns={
            "run.query": "who",
            "gold.query": "who",
            "run.doc": "what",
            "run.score": "how good",
            "gold.doc": "dot.ted",
        },
        queries=on_spark(spark, about),
        slices=["lang"],
    )
    assert_same(per_query(result), local)
    assert sorted(result.by("lang")["slice"].unique().to_list()) == ["de", "en"]
    for row in result.summary.iter_rows(named=True):
        assert row["low"] < row["value"] < row["high"]


@case
def text_tables_and_questions_are_read_as_on_one_machine(_: Any, folder: Path) -> None:
    """Quotes, line breaks and blanks in cells; blanks in questions that name their queries."""
    files = {
        "run.csv": 'query,doc,score,text\n q1,a,10,"he said ""x, y"""\nq1 , b,9,"a\nb"\nq2,c,1,z\n',
        "gold.csv": "\ufeffquery,doc,grade\nq1,b,1\nq2,c,1\nq2,d,2\n",
        "asked.tsv": "question\tdoc\tscore\nWhat  is it?\ta\t10\nWhat is it?\tb\t9\n",
        "answers.csv": "question,doc,grade\nWhat is it?,b,1\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for sides in (("run.csv", "gold.csv"), ("asked.tsv", "answers.csv")):
        places = [str(folder / name) for name in sides]
        local = findwell.evaluate(places[0], places[1], MEASURES)
        assert_same(per_query(findwell.spark.evaluate(places[0], places[1], MEASURES)), local)
        if "asked.tsv" in sides:
            columns = {"query": "question"}
            mapped = findwell.spark.evaluate(places[0], places[1], MEASURES, columns=columns)
            assert_same(per_query(mapped), local)


@case
def what_is_wrong_is_said_and_where(spark: Any, _: Path) -> None:
    run, gold = hard_case(70)
    frames = on_spark(spark, run), on_spark(spark, gold)
    evaluate = findwell.spark.evaluate
    broken = pl.concat([run, pl.DataFrame({"query": ["q9"], "doc": [None], "score": [1.0]})])
    bad = on_spark(spark, broken)
    refused(InputError, "query 'q9': the doc is missing", lambda: evaluate(bad, frames[1], "RR"))
    result = evaluate(bad, frames[1], "RR", reading=findwell.Reading(skip_bad=True))
    assert_same(per_query(result), findwell.evaluate(run, gold, "RR"))
    assert "skipped-record" in [each.kind for each in result.findings]
    refused(
        InputError,
        "neither a score nor a rank",
        lambda: evaluate(frames[0].drop("score"), frames[1], "RR"),
    )
    refused(
        InputError,
        "column for the doc",
        lambda: evaluate(frames[0].withColumnRenamed("doc", "thing"), frames[1], "RR"),
    )
    refused(
        InputError,
        "which cannot be the id of a query",
        lambda: evaluate(frames[0].selectExpr("score as query", "doc", "score"), frames[1], "RR"),
    )
    refused(
        InputError,
        "which is not a valid doc",
        lambda: evaluate(frames[0].selectExpr("query", "score as doc", "score"), frames[1], "RR"),
    )
    refused(
        AlignError,
        "share no query",
        lambda: evaluate(
            frames[0].selectExpr("concat('x', query) as query", "doc", "score"), frames[1], "RR"
        ),
    )
    refused(
        AlignError,
        "of the gold are missing",
        lambda: evaluate(*frames, "RR", reading=findwell.Reading(missing="error")),
    )
    for name in ("no", "grade", "group"):  # the last two are about documents
        refused(
            OptionError,
            "column about the queries",
            partial(evaluate, *frames, "RR", slices=name),
        )
    refused(InputError, "Spark cannot read it", lambda: evaluate("/nowhere", frames[1], "RR"))
    refused(InputError, "is not a frame of Spark", lambda: evaluate(run, gold, "RR"))


@case
def a_task_that_is_killed_is_done_again(spark: Any, folder: Path) -> None:
    run, gold = hard_case(80)
    marker = str(folder / "killed")

    def kill_once(doc: str) -> str:
        if not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return doc

    result = findwell.spark.evaluate(
        on_spark(spark, run),
        on_spark(spark, gold),
        MEASURES,
        reading=findwell.Reading(ids=kill_once),
        partitions=2,
    )
    assert Path(marker).exists()
    assert_same(per_query(result), findwell.evaluate(run, gold, MEASURES))

    def kill_always(doc: str) -> str:
        del doc
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    refused(
        SparkError,
        "the job failed",
        lambda: findwell.spark.evaluate(
            on_spark(spark, run),
            on_spark(spark, gold),
            "RR",
            reading=findwell.Reading(ids=kill_always),
            partitions=1,
        ),
    )


@case
def a_model_judges_through_the_driver(spark: Any, folder: Path) -> None:
    """The budget is one for all tasks; what was answered is not asked again."""
    from tests.client.server import serve
    from tests.judges.model import spoilt

    given = records(6, 12)
    path = folder / "judged.jsonl"
    path.write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
    frame = spark.read.json(str(path)).repartition(4)
    os.environ["FINDWELL_CACHE_DIR"] = str(folder / "cache")
    with serve(spoilt(lambda _, said: said)) as server:
        judge = findwell.Judge("openai:m", base_url=server.url, key="a-real-key-0123456789")
        local = findwell.judges.judge(given, ["P@3/relevance"], judge=judge)
        calls = len(server.calls)
        assert calls >= 10
        few = findwell.spark.evaluate(
            frame,
            None,
            ["P@3/relevance"],
            judge=findwell.Judge("openai:m", base_url=server.url, key="k" * 20, max_calls=4),
            partitions=4,
        )
        assert len(server.calls) == calls + 4  # of all tasks together
        assert few.summary["failed"].sum() > 0
        assert few.judge["calls"] == 4
        assert few.judge["endpoint"] == local.judge["endpoint"]
        result = findwell.spark.evaluate(
            frame, None, ["P@3/relevance"], judge=judge, partitions=4, calls_per_minute=6000
        )
        assert_same(per_query(result), local)
        assert len(server.calls) == 2 * calls  # the four were known
        taken = result.judge["calls"], result.judge["stored"]
        assert taken == (calls - 4, 4)
        assert "verdicts" not in result.judge
        again = findwell.spark.evaluate(frame, None, ["P@3/relevance"], judge=judge, partitions=2)
        assert_same(per_query(again), local)
        assert len(server.calls) == 2 * calls
        keys = {call.headers.get("authorization", "") for call in server.calls}
        assert keys <= {"Bearer a-real-key-0123456789", "Bearer " + "k" * 20}
    refused(
        OptionError,
        "several votes",
        lambda: findwell.spark.evaluate(
            frame, None, ["P@3/relevance"], judge=findwell.Judge("openai:m", votes=3, key="k")
        ),
    )


@case
def the_command_line(spark: Any, folder: Path) -> None:
    from findwell.cli import cli

    run, gold = hard_case(90)
    run.write_parquet(folder / "run.parquet")
    on_spark(spark, gold).write.mode("overwrite").saveAsTable("cli_gold")
    local = findwell.evaluate(run, gold, MEASURES)
    arguments = ["score", "--on", "spark", "-S", "master=local[2]", str(folder / "run.parquet")]
    arguments += ["--gold", "table:cli_gold", *(f"-m{name}" for name in MEASURES)]
    ran = CliRunner().invoke(cli, [*arguments, "--format", "json"], standalone_mode=False)
    assert ran.exit_code == 0, ran.output + str(ran.exception)
    said = json.loads(ran.stdout)["result"]
    for row in said["summary"]:
        assert abs(row["value"] - local[row["measure"]]) < 1e-14
    ran = CliRunner().invoke(
        cli, [*arguments, "-S", "run_id=x", "-S", f"write={folder / 'before'}"]
    )
    assert ran.exit_code == 0, ran.output
    gated = ["--require", "RR>=baseline", "--baseline", str(folder / "before")]
    ran = CliRunner().invoke(cli, [*arguments, *gated, "--per-query"], standalone_mode=False)
    assert ran.exit_code == 0, ran.output + "".join(traceback.format_exception(ran.exception))
    assert "pass" in ran.stdout
    assert "q59" in ran.stdout
    more = ["-S", f"write={folder / 'values'}", "-S", "sample=1", "--save", str(folder / "saved")]
    ran = CliRunner().invoke(
        cli, [*arguments, *more, "--require", "RR>=0.99"], standalone_mode=False
    )
    assert ran.return_value == 1 or ran.exit_code == 1, ran.output
    assert "nDCG@10" in ran.stdout
    assert spark.read.parquet(str(folder / "values")).count() == local.per_query.height
    assert_same(findwell.load(folder / "saved").per_query, local)


def main() -> None:
    """Run the cases that are named, or all of them."""
    import pyspark.sql

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    names = sys.argv[1:] or list(CASES)
    with tempfile.TemporaryDirectory() as place:
        spark = (
            pyspark.sql.SparkSession.builder.master("local[2,2]")  # a task is tried twice
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "3")
            .config("spark.default.parallelism", "2")
            .config("spark.sql.warehouse.dir", f"{place}/warehouse")
            .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={place}")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        found = {}
        for name in names:
            folder = Path(place, name)
            folder.mkdir()
            start = time.monotonic()
            said = StringIO()
            try:
                with redirect_stdout(said):
                    CASES[name](spark, folder)
                found[name] = ""
            except BaseException:  # noqa: BLE001 - the caller reads it
                found[name] = said.getvalue() + traceback.format_exc()
            sys.stderr.write(f"{name}: {time.monotonic() - start:.1f} s\n")
        spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()

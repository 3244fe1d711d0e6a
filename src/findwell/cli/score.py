"""`findwell score`: measure runs against gold labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from findwell.cli import envelope, gating, judging, options, spark
from findwell.cli.command import Command, Settings, option, option_set, typed_options
from findwell.show.tables import FORMATS

if TYPE_CHECKING:
    from findwell.core.progress import Report
    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure

EXPORTED_DIALECTS = ("liverag",)  # dialects whose tool writes files of its own
KEPT_DOCUMENTS = 50  # documents of each list that a saved result remembers, for reports
JUDGED_DOCUMENTS = 1000  # that it remembers where verdicts about them are shown


def _check_setting(name: str, value: object) -> object:
    """Refuse numbers that no cluster can work with."""
    low = {"sample": 0, "partitions": 1, "gateway_port": 0}.get(name)
    high = {"sample": 1, "gateway_port": 65535}.get(name)
    if isinstance(value, int | float) and low is not None:
        click.FloatRange(low, high).convert(value, None, None)
    return value


def _spark_settings(on: str, spark_settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of Spark, or None for a local run."""
    typed = typed_options(click.get_current_context())
    if on == "local":  # what a project has settled about Spark does not matter here
        for name in spark_settings:
            if name in typed:
                raise click.UsageError(f"{typed[name]} needs --on spark")
    return {"spark_settings": spark_settings if on == "spark" else None}


spark_options = option_set(
    option(
        "--on local|spark",
        "Where it runs: this machine, or Spark. On Spark, RUN, --gold and --queries are "
        "paths of Parquet, delta:PATH, or table:NAME.",
        default="local",
    ),
    option(
        "-S",
        "How Spark runs it: master, write, … May be repeated; --help-spark lists all.",
        name="spark_settings",
        cls=Settings,
        table="spark",
        topic="spark",
        sections=["spark"],
        check=_check_setting,
    ),
    group="Spark",
    make=_spark_settings,
)


@click.command("score", cls=Command, short_help="Measure runs against gold labels.")
@options.runs
@options.reading("missing", "cluster", "latency_unit", queries_too=True)
@options.labels
@options.measures()
@options.rel
@options.dialect
@options.slices
@option(
    "--level SHARE",
    "Confidence level of the intervals. 0 for no intervals.",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.95,
    group="Measures",
)
@option(
    "--bounds",
    "Also show the lowest and highest values that unjudged documents leave possible.",
    rare=True,
    group="Measures",
)
@judging.judged()
@option(
    "--explain-verdicts",
    "Also show what the judge said about every chunk: verdict, probability, reason, quote.",
    rare=True,
    group="Judge",
)
@gating.gate_options
@spark_options
@option("--per-query", "Also show the values of every query.", group="Output")
@option(
    "--misses",
    "Also say why relevant items were missed. By cause; JSON and CSV list every item.",
    group="Output",
)
@options.output(FORMATS, " (--dialect liverag: the prefix of several files)")
@option(
    "--save DIR",
    "Save the result to this folder. For findwell.load, compare, report and view.",
    group="Output",
)
def command(
    *,
    runs: tuple[str, ...],
    gold: str | None,
    measures: tuple[str, ...],
    slices: tuple[str, ...],
    how: str,
    output: str | None,
    save: str | None,
    per_query: bool,
    misses: bool,
    explain_verdicts: bool,
    level: float,
    labels: str | None,
    judge: judging.JudgeChoice,
    gates: gating.Requirements,
    spark_settings: dict[str, Any] | None,
    **plan: Any,  # noqa: ANN401
) -> int:
    """Measure one or several RUN files against gold labels, or score a saved result again.

    \b
    findwell score run.trec --gold qrels.txt -m nDCG@10 -m recall@100
    findwell score a.trec b.trec --gold gold.jsonl --slice topic
    findwell score samples.jsonl --per-query --format json
    findwell score samples.jsonl --by rouge -m recall@5 -m P@5/exact
    findwell score run.trec --gold qrels.txt --require "recall@5>=0.8"
    findwell score samples.jsonl -m context_recall@5 --judge openai:MODEL
    findwell score file.jsonl -m context_recall --judge local --explain-verdicts
    findwell score results/monday -m nDCG@20
    findwell score run.jsonl -m P@5/relevance --judge openai:MODEL --labels pool/
    findwell score --on spark -S master=local[2] runs/today --gold table:gold

    RUN is a file in the format TREC, JSON, JSONL, CSV, TSV or Parquet, detected from the content
    and perhaps gzipped, or - for standard input; or a file or folder of traces.
    Without --gold each record holds what was retrieved and what is gold; several files then share
    the gold of the queries they share. RUN may also be the folder of one saved result.
    With --labels the table has for each measure what the judge says, what labels of some pairs
    say, and both together, with intervals and the number of labels.
    If a measure has no value for any query, the exit code is 3 and standard error says why.
    """
    from findwell.evaluation.results.result import rescore  # noqa: PLC0415
    from findwell.evaluation.results.summaries import unmeasured  # noqa: PLC0415
    from findwell.io.storage.folders import refuse_foreign  # noqa: PLC0415
    from findwell.measures import DEFAULTS  # noqa: PLC0415
    from findwell.measures.dialects import resolve_measures  # noqa: PLC0415
    from findwell.show.document import document_of  # noqa: PLC0415

    if spark_settings is not None:
        return spark.score(
            runs,
            gold,
            measures,
            slices=slices,
            how=how,
            output=output,
            save=save,
            level=level,
            per_query=per_query,
            settings=spark_settings,
            judge=judge,
            gates=gates,
            plan=plan,
        )
    if save is not None:
        refuse_foreign(save)  # before a judge is paid
    gates.check()
    saved = options.saved_result(runs, "rel", "bounds", "cluster")
    _check_labels(labels, gold, gates, slices)
    named: list[str | Measure] = [*(measures or (saved.measures if saved else DEFAULTS))]
    if gates.measures:  # a requirement names one measure, never a list
        named += resolve_measures(gates.measures, saved.dialect if saved else plan["dialect"])
    with options.progress("measuring") as progress:
        if saved is not None:
            again: dict[str, Any] = {name: plan.get(name) for name in ("rel", "bounds", "cluster")}
            result = rescore(saved, named, **again, **options.explicit({"level": level}))
        else:
            kept = KEPT_DOCUMENTS if save is not None else 0  # of each list
            plan |= {"level": level or None, "keep": JUDGED_DOCUMENTS if explain_verdicts else kept}
            result = _measure(
                *options.paths(runs, gold),
                named,
                plan,
                judge=judge,
                labels=labels,
                progress=progress,
            )
        counted = not judge.dry_run and result.estimates is None
        without_value = unmeasured(result) if counted else ()
        if judge.write_forecast(how, output):
            return 0
        gate = gates.hold(result)
        decided = gating.shown_with(gate, how)
        shown = {"per_query": per_query, "by": slices, "misses": misses}
        document = document_of(result, verdicts=explain_verdicts, **shown)
        exported = output if result.dialect in EXPORTED_DIALECTS else None
        write = options.prepare(how, None if exported else output, document, *decided)
    if save is not None:
        result.save(save)
        envelope.wrote(save)
    if exported is not None:
        _export(result, how, exported)
    if exported is None or how == "json":
        write()
    if how != "json":
        options.print_findings(result.findings)
    _note(result, save)
    lacking = options.print_unmeasured(without_value)
    return gates.finish(gate, result, how, output, slices=slices, lacking=lacking)


def _note(result: Result, save: str | None) -> None:
    """Say what a user would miss in the table."""
    if not result.judge and result.estimates is None:
        typed = typed_options(click.get_current_context())
        idle = [typed[name] for name in ("judge", "explain_verdicts") if name in typed]
        if idle:
            options.note(f"note: without effect: {' and '.join(idle)}; no measure asks a judge")
    if save is not None:
        options.note(f"saved: {save}")


def _measure(
    files: list[str],
    gold: str | None,
    measures: list[str | Measure],
    plan: dict[str, Any],
    *,
    judge: judging.JudgeChoice,
    labels: str | None,
    progress: Report | None,
) -> Result:
    """Measure runs against gold labels, or estimate what labels of some pairs say."""
    if labels is None:
        from findwell.evaluation.evaluate import execute  # noqa: PLC0415
        from findwell.evaluation.plan import Plan  # noqa: PLC0415

        return execute(Plan.of(measures, **plan, **judge.options), files, gold, progress)
    from findwell.loop.labels.estimates import evaluate_with_labels  # noqa: PLC0415

    return evaluate_with_labels(files, labels, measures, progress=progress, **plan, **judge.options)


def _check_labels(
    labels: str | None, gold: str | None, gates: gating.Requirements, slices: tuple[str, ...]
) -> None:
    """Refuse what cannot go together with labels of some pairs."""
    if labels is None:
        return
    if gold is not None:
        raise click.UsageError("--gold and --labels exclude each other: labels are the gold")
    if gates.measures:
        raise click.UsageError("--require and --labels exclude each other: estimates have no gate")
    if slices:
        raise click.UsageError("--slice and --labels exclude each other: few labels are in a slice")


def _export(result: Result, how: str, output: str) -> None:
    """Write the files of the tool whose dialect was chosen."""
    from findwell.show.result import LIVERAG_EVALUATOR, liverag_tables  # noqa: PLC0415
    from findwell.show.tables import to_rows  # noqa: PLC0415

    lines = how in ("json", "jsonl")
    for name, table in liverag_tables(result).items():
        path = f"{output}.{LIVERAG_EVALUATOR}.eval.{name}.{'jsonl' if lines else 'tsv'}"
        text = table.write_ndjson() if lines else to_rows(table, "tsv")
        options.write(text, path)
        options.note(f"written: {path}")

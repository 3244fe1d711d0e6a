"""The main function: run and gold in, result out; and two that call it with other defaults."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from findwell.core.errors import OptionError
from findwell.core.findings import first_findings
from findwell.core.frames import changed, pl
from findwell.core.progress import Stages
from findwell.core.timing import error_column, failures, in_units
from findwell.evaluation.assessment import assess
from findwell.evaluation.inputs import asks_retrievers, read_inputs
from findwell.evaluation.plan import EvaluationOptions, Plan, flat_options, takes_plan
from findwell.measures import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from findwell.core.data import RunStream
    from findwell.core.findings import Finding
    from findwell.core.progress import Report
    from findwell.evaluation.plan import Reading
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect
    from findwell.relations.match import Matcher
    from findwell.retrievers.retriever import RetrieverLike

JUDGED = ("context_precision", "context_recall", "context_entities_recall", "context_relevancy")


@takes_plan(EvaluationOptions)
def evaluate(
    run: RunLike | RetrieverLike | Mapping[str, RunLike | RetrieverLike],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    by: str | Matcher | None = None,
    dialect: str | Dialect = "findwell",
    rel: float | None = None,
    judge: object = None,
    corpus: object = None,
    queries: object = None,
    embedder: object = None,
    level: float | None = 0.95,
    cluster: str | None = None,
    bounds: bool = False,
    reading: Reading | None = None,
    progress: Report | None = None,
) -> Result:
    """Measure how well one or several runs found the gold.

    `run` is a path, `{query: {doc: score}}`, `{query: [doc, …]}` in rank order, a data frame, a
    list of records, a `Run`, or several of these as a dict by name or a list of paths. A doc may be
    an object of LangChain, LlamaIndex, Haystack, Qdrant, … (docs/inputs.md lists them), and instead
    of a list a whole response will do. A path may also be traces of production (docs/traces.md).
    Without `gold` the records hold both, and several runs must agree about the queries that they
    share. It may also be a retriever, a function or an object of a framework, which is asked the
    questions of the gold or of `queries`; `findwell.retrievers.Retriever(…)` says how, see
    docs/retrievers.md. `reading` says how inputs are read and brought together where that is not
    plain: formats, bad records, ids, missing queries (`findwell.Reading`).

    `rel` is the grade from which an item counts as relevant, `queries` a table that adds columns to
    slice by, `bounds` asks for the values if all unjudged documents were relevant, or all were not.
    `dialect` decides what tools decide differently; see `findwell.types.Policy`.

    `by` says what makes a retrieved unit cover a gold item: equal `ids` (the default), `spans` (the
    default where the gold labels places, see docs/spans.md), or texts: `exact`,
    `rouge`, `rouge-sentence(threshold=0.9)`, … (`findwell measures --relations` lists them).
    Texts stand next to the ids, or `corpus` gives them; `embedder` is what `semantic` embeds them
    with: a name, a function, or `findwell.judges.find_embedder(…)`. A measure may name a relation
    of its own, such as `recall@5/rouge`. Some relations are drawn by a `judge`: `relevance`,
    `claims`, `entities`, `statements` and `sufficiency`, over which context_precision,
    context_recall, context_entities_recall, context_relevancy and context_sufficiency are measured.
    The judge has no default: it is `local`, `openai:MODEL` or another, a function, or
    `findwell.Judge("openai:MODEL", …)`, which says how it is asked, see docs/judging.md. `progress`
    is called with how far it is (`findwell.core.progress`).

    Every aggregated number has an interval of this `level` (None: none). Queries that share the
    value of the column `cluster` are not independent and count as one; without it a
    column `source` in which values repeat is taken for one.

    >>> result = evaluate({"q1": ["a", "b"]}, {"q1": ["b", "c"]}, measures=["P@2", "RR"])
    >>> result["P@2"], result["RR"]
    (0.5, 0.5)
    """
    plan = Plan.of(
        measures,
        by=by,
        dialect=dialect,
        rel=rel,
        judge=judge,
        corpus=corpus,
        queries=queries,
        embedder=embedder,
        level=level,
        cluster=cluster,
        bounds=bounds,
        reading=reading,
    )
    return execute(plan, run, gold, progress)


def execute(plan: Plan, run: object, gold: object, progress: Report | None = None) -> Result:
    """Read what a plan is about, draw its relations, and return what can be measured over them."""
    asks = asks_retrievers(run)
    stages = Stages(progress, 1 + asks)
    unit = plan.reading.latency_unit
    with ExitStack() as held:
        data = read_inputs(plan, run, gold, held, stages.begin("") if asks else None)
        gold_data = data.gold
        if len(gold_data.columns) > 1:  # than their ids
            queries = in_units(gold_data.queries, unit, "columns about the queries")
            gold_data = replace(gold_data, queries=queries)
        result = assess(
            data.plan,
            [_timed(each, unit) for each in data.runs],
            gold_data,
            corpus=data.corpus,
            progress=stages.begin("measuring" if asks else ""),
        )
    findings = (*result.findings, *data.findings, *_failed(result))
    return changed(
        result,
        findings=tuple(first_findings(findings)),
        provenance=replace(result.provenance, inputs=data.sources),
    )


def _timed(stream: RunStream, unit: str | None) -> RunStream:
    """Give the times of a run their unit."""

    def about() -> pl.DataFrame | None:
        columns = stream.about()
        return None if columns is None else in_units(columns, unit, f"run {stream.name}")

    return replace(stream, about=about)


def _failed(result: Result) -> Iterable[Finding]:
    """Find queries for which a retriever failed, by the errors in the records of its run."""
    for run, about in result.about.items():
        column = error_column(about)
        if column is None:
            continue
        relation = result.relation(run)
        empty = relation.queries.filter(relation.depth == 0)
        failed = about.filter(failures(about[column])).filter(
            pl.col("query").is_in(empty.implode())
        )
        reasons = failed[column].cast(pl.String).to_list()
        from findwell.retrievers.answers import failed_queries  # noqa: PLC0415

        yield from (replace(found, run=run) for found in failed_queries(failed["query"], reasons))


@takes_plan(EvaluationOptions)
def check(
    run: RunLike | RetrieverLike | Mapping[str, RunLike | RetrieverLike],
    gold: GoldLike | None = None,
    *,
    chunks: object = None,
    **options: Unpack[EvaluationOptions],
) -> tuple[Finding, ...]:
    """Return problems in a run and its gold, without measuring anything.

    The options are those of `evaluate`; a query that the run lacks is a finding in every dialect.
    With the documents as `corpus`, `chunks` are all that were cut from them, or a list of files
    with one way of chunking each: what they leave out of each document is a finding, and so are the
    labels that they cut. Without `chunks` it is those that were retrieved.

    >>> [finding.kind for finding in check({"q1": ["a", "a"], "q2": ["b"]}, {"q1": ["a"]})]
    ['extra-query', 'duplicate-document']
    """
    if chunks is not None and options.get("corpus") is None:
        raise OptionError(
            "chunks were given without the documents to compare them with",
            fix="give the documents that they were cut from: --corpus PATH (corpus=)",
        )
    from findwell.evaluation.chunking import check_chunks  # noqa: PLC0415

    plan = Plan.of(DEFAULTS, **({"missing": "zero"} | flat_options(options)))
    findings = execute(plan, run, gold, options.get("progress")).findings
    return (*findings, *check_chunks(run, gold, chunks, plan.reading))


@takes_plan(EvaluationOptions)
def judge(
    samples: RunLike | RetrieverLike | Mapping[str, RunLike | RetrieverLike],
    measures: Iterable[str | Measure] | str = JUDGED,
    *,
    gold: GoldLike | None = None,
    **options: Unpack[EvaluationOptions],
) -> Result:
    """Let a judge assess what was retrieved, and measure its verdicts.

    `samples` are records with a question, what was retrieved, and a reference answer, in any shape
    that findwell reads; `judge` is `local`, `openai:MODEL`, `replay:FILE`, a `findwell.Judge` that
    also says how a model is asked, a function of a sample, an object that judges, or several of
    these. All options are those of `evaluate`.

    >>> sample = {
    ...     "user_input": "What is the capital of Brazil?",
    ...     "retrieved_contexts": ["Brasília is the capital of Brazil.", "Rio lies by the sea."],
    ...     "reference": "The capital of Brazil is Brasília.",
    ... }
    >>> result = judge([sample], ["context_precision", "context_recall"], judge="local:text")
    >>> result.values
    {'context_precision': 1.0, 'context_recall': 1.0}
    """
    return evaluate(samples, gold, measures, **options)

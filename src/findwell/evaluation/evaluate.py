"""The main function: run and gold in, result out; and two that call it with other defaults."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from findwell.core.errors import OptionError, takes_options
from findwell.core.findings import first_findings
from findwell.core.frames import changed, pl
from findwell.core.progress import Stages
from findwell.core.timing import error_column, failures, in_units
from findwell.evaluation.assessment import assess
from findwell.evaluation.inputs import asks_retrievers, read_inputs
from findwell.evaluation.plan import EvaluationOptions, Plan
from findwell.measures import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from findwell.core.data import RunStream
    from findwell.core.findings import Finding
    from findwell.core.normalisers import Normaliser
    from findwell.core.progress import Report
    from findwell.evaluation.results.result import Result
    from findwell.io.read import GoldLike, RunLike
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect
    from findwell.relations.match import Matcher
    from findwell.retrievers.retriever import RetrieverLike

JUDGED = ("context_precision", "context_recall", "context_entities_recall", "context_relevancy")


@takes_options(EvaluationOptions)
def evaluate(
    run: RunLike | RetrieverLike | Mapping[str, RunLike | RetrieverLike],
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    by: str | Matcher | None = None,
    dialect: str | Dialect = "findwell",
    rel: float | None = None,
    ids: Normaliser = "identity",
    missing: str | None = None,
    queries: object = None,
    corpus: object = None,
    embedder: object = None,
    tokenizer: object = None,
    judge: object = "local",
    base_url: str | None = None,
    bounds: bool = False,
    level: float | None = 0.95,
    cluster: str | None = None,
    latency_unit: str | None = None,
    run_format: str | None = None,
    gold_format: str | None = None,
    skip_bad: bool = False,
    id_from: str | None = None,
    query_from: str | None = None,
    keep: int = 0,
    progress: Report | None = None,
) -> Result:
    """Measure how well one or several runs found the gold.

    `run` is a path, `{query: {doc: score}}`, `{query: [doc, …]}` in rank order, a data frame, a
    list of records, a `Run`, or several of these as a dict by name or a list of paths. A doc may be
    an object of LangChain, LlamaIndex, Haystack, Qdrant, … (docs/inputs.md lists them), and instead
    of a list a whole response will do; `id_from` is the field that holds their ids, such as
    `metadata.chunk`, if not the usual one. A path may also be traces of production
    (docs/traces.md): their questions are those of the gold, or `query_from` is the attribute that
    holds the ids of queries. Without `gold` the records hold both, and several runs must agree
    about the queries that they share. It may also be a retriever, a function or an object of a
    framework, which is asked the questions of the gold or of `queries`;
    `findwell.retrievers.Retriever(…)` says how, see docs/retrievers.md. `rel` is the grade from
    which an item counts as relevant, `ids` how document ids are normalised, `queries` a table that
    adds columns to slice by, `bounds` asks for the values if all unjudged documents were relevant,
    or all were not. `skip_bad` leaves out records that cannot be read and says so in the findings.
    `dialect` and `missing` decide what tools decide differently; see `findwell.core.policy.Policy`.

    `by` says what makes a retrieved unit cover a gold item: equal `ids` (the default), `spans` (the
    default where the gold labels places, see docs/spans.md), or texts: `exact`,
    `rouge`, `rouge-sentence(threshold=0.9)`, … (`findwell measures --relations` lists them).
    Texts stand next to the ids, or `corpus` gives them; `embedder` is what `semantic` embeds them
    with, and `tokenizer` what counts the tokens of a budget such as `recall@2000tokens`: a rule
    that needs no download (None), `tokenizers:PATH` for the file of a model, or a function; see
    docs/cost.md. A measure may name a relation of its own, such as `recall@5/rouge`. Some relations
    are drawn by a `judge`: `relevance`, `claims`, `entities`, `statements` and `sufficiency`, over
    which context_precision, context_recall, context_entities_recall, context_relevancy and
    context_sufficiency are measured. The judge is `local`, `openai:MODEL` or another, and
    `findwell.Judge("openai:MODEL", …)` says how it is asked, see docs/judging.md. `base_url` is
    where models named `openai:MODEL` are, the judge's and the embedder's. `progress` is called with
    how far it is (`findwell.core.progress`). `keep` is how many documents of each list the result
    remembers, with their texts, for reports.

    Every aggregated number has an interval of this `level` (None: none). Queries that share the
    value of the column `cluster` are not independent and count as one; without it a
    column `source` in which values repeat is taken for one. `latency_unit` (ms, s, us or ns) is
    that of times whose names do not say one, as `latency_ms` does.

    >>> result = evaluate({"q1": ["a", "b"]}, {"q1": ["b", "c"]}, measures=["P@2", "RR"])
    >>> result["P@2"], result["RR"]
    (0.5, 0.5)
    """
    plan = Plan.of(
        measures,
        by=by,
        dialect=dialect,
        rel=rel,
        ids=ids,
        missing=missing,
        queries=queries,
        corpus=corpus,
        embedder=embedder,
        tokenizer=tokenizer,
        judge=judge,
        base_url=base_url,
        bounds=bounds,
        level=level,
        cluster=cluster,
        latency_unit=latency_unit,
        run_format=run_format,
        gold_format=gold_format,
        skip_bad=skip_bad,
        id_from=id_from,
        query_from=query_from,
        keep=keep,
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


@takes_options(EvaluationOptions)
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

    options.setdefault("missing", "zero")
    plan = Plan.of(DEFAULTS, **options)
    findings = execute(plan, run, gold, options.get("progress")).findings
    return (*findings, *check_chunks(run, gold, chunks, plan.reading))


@takes_options(EvaluationOptions)
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

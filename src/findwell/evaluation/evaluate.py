"""The main function: run and gold in, result out; and two that call it with other defaults."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from findwell.core.errors import OptionError, choose_column
from findwell.core.findings import Finding, FindingKind, first_findings, merge_findings
from findwell.core.frames import as_given, changed, pl
from findwell.core.parts import is_part
from findwell.core.timing import error_column, failures, in_units
from findwell.engines.local import LocalEngine
from findwell.evaluation.inputs import Stages, read_inputs
from findwell.evaluation.plan import EvaluationOptions, Plan, facts_of, flat_options, takes_plan
from findwell.evaluation.results.result import Kept, Provenance, Result, SummaryOptions
from findwell.evaluation.results.summaries import short_lists, tied_scores
from findwell.measures import DEFAULTS
from findwell.relations.pipeline import TEXT_LETTERS, check_gold
from findwell.relations.preflight import (
    SYNTHETIC_COLUMN,
    explained_queries,
    has_hashes,
    refuse_hashes,
    synthetic_questions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from findwell.core.data import Gold, RunStream
    from findwell.core.progress import Report
    from findwell.core.relation import Relation
    from findwell.engines import BatchEngine
    from findwell.evaluation.inputs import Input
    from findwell.evaluation.plan import Reading
    from findwell.io.read import GoldLike, RunLike
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect
    from findwell.relations.judged.judging import Judging, Task
    from findwell.relations.match import Matcher
    from findwell.relations.match.matcher import BoundMatcher, MatchContext
    from findwell.retrievers.retriever import RetrieverLike


JUDGED_MEASURES = (
    "context_precision",
    "context_recall",
    "context_entities_recall",
    "context_relevancy",
)
# what matters only where ids are compared
ABOUT_IDS = frozenset({FindingKind.TEXT_AS_ID, FindingKind.SHARED_ID, "id-from-metadata"})


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
    """Measure how well one or several runs found what the gold labels say.

    `run` is what was retrieved: `{query: [doc, …]}` in rank order, `{query: {doc: score}}`, a data
    frame, a list of records, a `Run`, or the path of a file. A doc is an id, or what LangChain,
    LlamaIndex, Haystack, Qdrant and others return; a whole response may take the place of a list.
    The page "What findwell reads" lists all forms. To measure several runs, give a dict by name or
    a list of paths.

    `run` may also be a retriever: a function, an object of a framework, or
    `findwell.retrievers.Retriever(…)`, which says how it is asked. It gets the questions of `gold`
    or of `queries`.

    `gold` is what should be found. Without it, the records of `run` hold both; several runs must
    then agree about the queries that they share.

    `by` says when a retrieved unit matches a gold label. `ids` compares ids; it is the default.
    `spans` compares places in documents; it is the default if the gold labels are places. `exact`,
    `rouge`, `rouge-sentence(threshold=0.9)` and others compare texts; `findwell measures
    --relations` lists them. Texts stand next to the ids, or come from `corpus`. `embedder` is what
    `semantic` uses: a name, a function, or `findwell.judges.find_embedder(…)`. A measure can name
    a relation of its own: `recall@5/rouge`.

    `judge` says what is relevant for measures that need no gold labels: context_precision,
    context_recall, context_entities_recall, context_relevancy and context_sufficiency. It has no
    default. Give `local`, `openai:MODEL` or another name, a function, or
    `findwell.Judge("openai:MODEL", …)`, which says how it is asked.

    `rel` is the grade from which an item counts as relevant. `dialect` computes as another tool
    does; `findwell.types.Policy` lists what tools decide differently. `queries` is a table of
    columns to slice by. `bounds` adds the values if all unjudged documents were relevant, and if
    none were. `reading` says how unusual inputs are read: formats, bad records, ids, missing
    queries (`findwell.Reading`). `progress` is called with how far it is.

    Every mean has an interval of this `level` (None: no intervals). Queries with the same value in
    the column `cluster` depend on each other and count as one. Without `cluster`, a column `source`
    whose values repeat is used.

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
    unit = plan.reading.latency_unit
    with ExitStack() as held:
        data = read_inputs(plan, run, gold, held, progress)
        gold_data = data.gold
        if len(gold_data.columns) > 1:  # than their ids
            queries = in_units(gold_data.queries, unit, "columns about the queries")
            gold_data = replace(gold_data, queries=queries)
        runs = [_timed(each, unit) for each in data.runs]
        result = assess(
            data.plan,
            runs,
            gold_data,
            corpus=data.corpus,
            progress=data.progress,
            sources=data.sources,
            found=data.findings,
        )
    if not result.about:
        return result
    return changed(result, findings=tuple(first_findings((*result.findings, *_failed(result)))))


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


def assess(
    plan: Plan,
    runs: list[RunStream],
    gold: Gold,
    *,
    corpus: pl.DataFrame | None = None,
    engine: BatchEngine | None = None,
    progress: Report | None = None,
    sources: tuple[Input, ...] = (),
    found: tuple[Finding, ...] = (),
) -> Result:
    """Draw every relation of every run, and return what can be measured over them.

    `sources` are where the inputs came from, `found` what is known about them.
    """
    asked: dict[Matcher, Task] = {}
    for name, matcher in plan.matchers.items():
        if matcher.judged and (task := matcher.task(plan.readers(name))) is not None:
            asked[matcher] = task
    judging = _judging(plan, asked)
    context = plan.context(corpus, judging)
    drawing = _Drawing(plan, corpus, engine or LocalEngine())
    drawing.findings += (
        synthetic_questions(gold.queries) if SYNTHETIC_COLUMN in gold.columns else []
    )
    bound = {name: drawing.bind(name, gold, context) for name in plan.matchers}
    judged = [name for name, matcher in plan.matchers.items() if matcher in asked]
    by_rule = [name for name in bound if name not in judged]
    stages = Stages(progress, len(runs) * (len(by_rule) + (judging is not None)))
    for run in runs:
        for name in by_rule:
            phase = run.name if len(by_rule) == 1 else f"{run.name} by {name}"
            drawing.draw(name, bound[name], run, stages.begin(phase))
    if judging is not None:  # a judge costs: whatever else may fail came first
        for run in runs:
            judging.progress = stages.begin(f"judging {run.name}")
            for name in judged:
                drawing.draw(name, bound[name], run, None)
            verdicts, noted = judging.close(run.name)
            drawing.verdicts += [verdicts] if plan.keep else []
            drawing.findings += merge_findings(replace(each, run=run.name) for each in noted)
    about: dict[str, pl.DataFrame] = {}
    for run in runs:
        table = run.about()
        if table is not None and table.width > 1:
            about[run.name] = table
    made = drawing.weigh(replace(provenance_of(plan, asked), inputs=sources), gold, about)
    described = plan.cluster is not None or len(gold.columns) > 1
    cluster = cluster_column(gold.queries, plan.cluster) if described else None
    return Result(
        relations=drawing.relations,
        measures=plan.measures,
        queries=as_given(gold, "queries"),
        findings=tuple(first_findings((*drawing.findings, *found))),  # relations share their inputs
        about=about,
        provenance=made,
        options=SummaryOptions(plan.level, cluster, plan.bounds),
        kept=Kept(drawing.listed, pl.concat(drawing.verdicts) if drawing.verdicts else None),
    )


@dataclass(slots=True)
class _Drawing:
    """Draws relations, and gathers what is worth knowing about them."""

    plan: Plan
    corpus: pl.DataFrame | None
    engine: BatchEngine
    relations: dict[tuple[str, str], Relation] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    listed: dict[str, pl.DataFrame] = field(default_factory=dict)
    verdicts: list[pl.DataFrame] = field(default_factory=list)

    def bind(self, name: str, gold: Gold, context: MatchContext) -> BoundMatcher:
        """Bind a matcher to the gold, and check the gold as the relation counts it."""
        readers, policy = self.plan.readers(name), self.plan.policy
        matcher = self.plan.matchers[name]
        bound, own = matcher.bind(gold, context), matcher.findings()
        checked = [] if bound.finds_items else check_gold(bound.gold, policy, readers)
        if found := [*bound.gold.findings, *checked, *own]:
            self.findings += merge_findings(found)
        return bound

    def draw(self, name: str, bound: BoundMatcher, run: RunStream, progress: Report | None) -> None:
        """Draw a relation of a run."""
        plan, readers = self.plan, self.plan.readers(name)
        asked = facts_of(readers) if plan.facts else []  # about chunks
        facts = None
        if asked:
            from findwell.relations.facts import FactReader  # noqa: PLC0415

            facts = FactReader.of(asked, self.corpus, plan.tokenizer)
        drawn = self.engine.draw(
            run,
            bound,
            plan.policy,
            keep=0 if run.name in self.listed else plan.keep,
            progress=progress,
            facts=facts,
        )
        self.relations[run.name, name] = drawn.relation
        if drawn.listed is not None:
            self.listed[run.name] = _with_texts(drawn.listed, self.corpus)
        found = [*drawn.findings, *run.found()]
        found = explained_queries(found, bound.gold) if found else []
        if drawn.unmet is not None:
            unmet = replace(drawn.unmet, findings=tuple(found), others=run.others())
            found += bound.nothing_met(unmet)
        else:
            found += bound.met_in_part(
                run, drawn, lambda other: self.engine.draw(run, other, plan.policy)
            )
        meant = plan.chosen or name != "ids"
        if found and not (meant or is_part() or has_hashes(bound.gold)):
            refuse_hashes(found, run.name)
        if bound.blank_is_unit:  # nothing is compared by id
            found = [each for each in found if each.kind not in ABOUT_IDS]
        news = [replace(each, run=run.name) for each in found]
        if drawn.ties is not None:
            news += tied_scores(drawn.relation, drawn.ties, readers, run.name)
        if plan.facts:
            news += short_lists(drawn.relation, readers, run.name)
        if news:
            self.findings += merge_findings(news)

    def weigh(self, made: Provenance, gold: Gold, about: Mapping[str, pl.DataFrame]) -> Provenance:
        """Let the provenance cite the judge's card, and find what makes its verdicts doubtful."""
        judge = made.judge
        if not judge:
            return made
        from findwell.judges.cards.card import find_card  # noqa: PLC0415 - few have a judge
        from findwell.judges.judge_findings import card_findings, circular_findings, label_findings  # noqa: PLC0415
        from findwell.judges.limits import is_judged, is_measured  # noqa: PLC0415

        aspects = {name.partition("(")[0] for name in self.plan.matchers if is_judged(name)}
        card, applies = find_card(judge["name"], aspects, judge, gold.queries)
        found = circular_findings(judge, gold.queries)
        found += card_findings(card) if card is not None and applies else []
        for run, table in about.items():
            of_run = circular_findings(judge, table, run)  # a record may be gold and run
            found += [each for each in of_run if replace(each, run="") not in found]
        for (run, name), drawn in self.relations.items():
            labelled = self.relations.get((run, "ids"))
            if name == "relevance" and labelled is not None and not applies:
                rel = min(each.level() for each in self.plan.readers("ids"))
                level = self.plan.level or 0.95
                compared = label_findings(drawn, labelled, rel, level=level)
                found += (replace(each, run=run) for each in compared)
        self.findings += found
        if card is None or (is_measured(judge["name"]) and not applies):
            return made
        return replace(made, judge={**judge, "card": card.cite(applies=applies)})


def _with_texts(listed: pl.DataFrame, corpus: pl.DataFrame | None) -> pl.DataFrame:
    """Add the texts of a corpus to lists that have none."""
    if corpus is None or ("text" in listed.columns and not listed["text"].null_count()):
        return listed
    texts = corpus.select("doc", pl.col("text").str.head(TEXT_LETTERS).alias("__text"))
    joined = listed.join(texts, on="doc", how="left", maintain_order="left")
    own = [pl.col("text")] if "text" in listed.columns else []
    return joined.with_columns(text=pl.coalesce(*own, "__text")).drop("__text")


def _judging(plan: Plan, tasks: dict[Matcher, Task]) -> Judging | None:
    """Return what asks the judge for all relations that need one."""
    if plan.judge is None or not tasks:
        return None
    from findwell.relations.judged.judging import Judging  # noqa: PLC0415 - few are judged

    return Judging(plan.judge, tasks)


def provenance_of(plan: Plan, tasks: Mapping[Matcher, Task] | None = None) -> Provenance:
    """Say what made the numbers; a judge is asked about what it did, so after it did it."""
    ids = plan.dialect.run_ids if plan.ids == "identity" else plan.ids
    tokenizer = ""
    if "tokens" in plan.facts:
        from findwell.core.texts.tokens import find_tokenizer  # noqa: PLC0415

        tokenizer = find_tokenizer(plan.tokenizer).name
    judge: dict[str, Any] = {}
    if plan.judge is not None:
        from findwell.judges.aspects import describe_own  # noqa: PLC0415 - few have a judge

        # aspects that a user has registered are described, so that a saved result needs none
        own = describe_own(matcher.name for matcher in tasks or ())
        judge = {"name": plan.judge.name, **plan.judge.about(), **({"aspects": own} if own else {})}
    return Provenance(
        dialect=plan.dialect.name,
        policy=plan.policy,
        drawn_by=plan.drawn_by,
        settings={name: matcher.settings() for name, matcher in plan.matchers.items()},
        ids=ids if isinstance(ids, str) else getattr(ids, "__qualname__", repr(ids)),
        tokenizer=tokenizer,
        judge=judge,
    )


def cluster_column(queries: pl.DataFrame, named: str | None) -> str | None:
    """Return the column that shows which queries are not independent of each other."""
    if named is not None:
        return choose_column(queries, named)
    shared = "source" in queries.columns and queries["source"].drop_nulls().is_duplicated().any()
    return "source" if shared else None


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
    measures: Iterable[str | Measure] | str = JUDGED_MEASURES,
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

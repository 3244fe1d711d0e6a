"""From what was read to a result: every relation of every run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from findwell.core.errors import choose_column
from findwell.core.findings import Finding, FindingKind, first_findings, merge_findings
from findwell.core.frames import later, pl
from findwell.core.progress import Stages
from findwell.core.texts.tokens import find_tokenizer
from findwell.engines.local import LocalEngine
from findwell.evaluation.plan import facts_of
from findwell.evaluation.results.bounds import short_lists, tied_scores
from findwell.evaluation.results.provenance import Provenance
from findwell.evaluation.results.result import Kept, Result, SummaryOptions
from findwell.relations.facts import FactReader
from findwell.relations.pipeline import TEXT
from findwell.relations.preflight import SYNTHETIC, check_gold, synthetic_questions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from findwell.core.data import Gold, RunStream
    from findwell.core.progress import Report
    from findwell.core.relation import Relation
    from findwell.engines import Engine
    from findwell.evaluation.plan import Plan
    from findwell.judges.verdicts import JudgeProtocol
    from findwell.relations.judged.judging import Judging, Task
    from findwell.relations.match import Matcher
    from findwell.relations.match.matcher import BoundMatcher

# what matters only where ids are compared
ABOUT_IDS = frozenset({FindingKind.TEXT_AS_ID, FindingKind.SHARED_ID, "id-from-metadata"})


def assess(
    plan: Plan,
    runs: list[RunStream],
    gold: Gold,
    *,
    corpus: pl.DataFrame | None = None,
    engine: Engine | None = None,
    progress: Report | None = None,
) -> Result:
    """Draw every relation of every run, and return what can be measured over them."""
    tasks = {each: each.task(plan.readers(name)) for name, each in plan.matchers.items()}
    asked = {matcher: task for matcher, task in tasks.items() if task is not None}
    judging = _judging(plan, asked)
    context = plan.context(corpus, judging)
    facts = {
        name: FactReader.of(facts_of(plan.readers(name)), corpus, plan.tokenizer)
        for name in plan.matchers
    }
    drawing = _Drawing(plan, corpus, engine or LocalEngine(), facts)
    drawing.findings += synthetic_questions(gold.queries) if SYNTHETIC in gold.columns else []
    bound = {name: matcher.bind(gold, context) for name, matcher in plan.matchers.items()}
    for name, each in bound.items():
        drawing.look_at_gold(name, each)
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
            drawing.keep_verdicts(judging, run.name)
    abouts = {run.name: run.about() for run in runs}
    return Result(
        relations=drawing.relations,
        measures=plan.measures,
        queries=later(lambda: gold.queries, gold.names, tuple(gold.columns)),
        findings=tuple(first_findings(drawing.findings)),  # relations share their inputs
        about={
            name: about for name, about in abouts.items() if about is not None and about.width > 1
        },
        provenance=provenance_of(plan, asked, None if judging is None else gold.queries),
        options=SummaryOptions(plan.level, _cluster_of(gold, plan.cluster), plan.bounds),
        kept=Kept(drawing.listed, pl.concat(drawing.verdicts) if drawing.verdicts else None),
    )


@dataclass(slots=True)
class _Drawing:
    """Draws relations, and gathers what is worth knowing about them."""

    plan: Plan
    corpus: pl.DataFrame | None
    engine: Engine
    facts: dict[str, FactReader | None]  # what the measures over each relation ask about chunks
    relations: dict[tuple[str, str], Relation] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    listed: dict[str, pl.DataFrame] = field(default_factory=dict)
    verdicts: list[pl.DataFrame] = field(default_factory=list)

    def look_at_gold(self, name: str, bound: BoundMatcher) -> None:
        """Check the gold as a relation counts it."""
        readers = self.plan.readers(name)
        levels = {str(measure): measure.level() for measure in readers if measure.needs_relevant}
        checked = [] if bound.finds_items else check_gold(bound.gold, self.plan.policy, levels)
        found = self.plan.matchers[name].findings()
        self.findings += merge_findings([*bound.gold.findings, *checked, *found])

    def draw(self, name: str, bound: BoundMatcher, run: RunStream, progress: Report | None) -> None:
        """Draw a relation of a run."""
        plan, readers = self.plan, self.plan.readers(name)
        drawn = self.engine.draw(
            run,
            bound,
            plan.policy,
            keep=0 if run.name in self.listed else plan.keep,
            progress=progress,
            facts=self.facts[name],
        )
        self.relations[run.name, name] = drawn.relation
        if drawn.listed is not None:
            self.listed[run.name] = _with_texts(drawn.listed, self.corpus)
        found = [*drawn.findings, *run.found()]
        if drawn.unmet is not None:
            found += bound.nothing_met(replace(drawn.unmet, findings=tuple(found)))
        if bound.blank_is_unit:  # nothing is compared by id
            found = [each for each in found if each.kind not in ABOUT_IDS]
        news = [replace(each, run=run.name) for each in found]
        if drawn.ties is not None:
            news += tied_scores(drawn.relation, drawn.ties, readers, run.name)
        news += short_lists(drawn.relation, readers, run.name)
        self.findings += merge_findings(news)

    def keep_verdicts(self, judging: Judging, run: str) -> None:
        """Keep the verdicts about a run."""
        verdicts, findings = judging.close(run)
        if self.plan.keep:
            self.verdicts.append(verdicts)
        self.findings += merge_findings(replace(found, run=run) for found in findings)


def _with_texts(listed: pl.DataFrame, corpus: pl.DataFrame | None) -> pl.DataFrame:
    """Add the texts of a corpus to lists that have none."""
    if corpus is None or ("text" in listed.columns and not listed["text"].null_count()):
        return listed
    texts = corpus.select("doc", pl.col("text").str.head(TEXT).alias("__text"))
    joined = listed.join(texts, on="doc", how="left", maintain_order="left")
    own = [pl.col("text")] if "text" in listed.columns else []
    return joined.with_columns(text=pl.coalesce(*own, "__text")).drop("__text")


def _judging(plan: Plan, tasks: dict[Matcher, Task]) -> Judging | None:
    """Return what asks the judge for all relations that need one."""
    if plan.judge is None or not tasks:
        return None
    from findwell.relations.judged.judging import Judging  # noqa: PLC0415 - few are judged

    return Judging(plan.judge, tasks)


def provenance_of(
    plan: Plan,
    tasks: Mapping[Matcher, Task] | None = None,
    queries: pl.DataFrame | None = None,
) -> Provenance:
    """Say what made the numbers; a judge is asked about what it did, so after it did it."""
    ids = plan.dialect.run_ids if plan.ids == "identity" else plan.ids
    counted = "tokens" in facts_of(plan.measures)
    return Provenance(
        dialect=plan.dialect.name,
        policy=plan.policy,
        drawn_by=plan.drawn_by,
        settings={name: matcher.settings() for name, matcher in plan.matchers.items()},
        ids=ids if isinstance(ids, str) else getattr(ids, "__qualname__", repr(ids)),
        tokenizer=find_tokenizer(plan.tokenizer).name if counted else "",
        judge={} if plan.judge is None else _judge_provenance(plan.judge, tasks or {}, queries),
    )


def _judge_provenance(
    judge: JudgeProtocol, tasks: Mapping[Matcher, Task], queries: pl.DataFrame | None
) -> dict[str, Any]:
    """Say who judged, how far it agrees with people where that was measured, and what was asked.

    The aspects that a user has registered are described, so that a saved result needs none.
    """
    from findwell.judges.aspects import describe_own  # noqa: PLC0415 - few evaluations have a judge
    from findwell.judges.cards.card import cite_card  # noqa: PLC0415

    about = judge.about()
    aspects = {task.aspect for task in tasks.values()}
    card = "" if queries is None else cite_card(judge.name, aspects, about, queries)
    own = describe_own(matcher.name for matcher in tasks)
    return {
        "name": judge.name,
        **about,
        **({"card": card} if card else {}),
        **({"aspects": own} if own else {}),
    }


def _cluster_of(gold: Gold, named: str | None) -> str | None:
    about = named is not None or len(gold.columns) > 1
    return cluster_column(gold.queries, named) if about else None


def cluster_column(queries: pl.DataFrame, named: str | None) -> str | None:
    """Return the column that shows which queries are not independent of each other."""
    if named is not None:
        return choose_column(queries, named)
    shared = "source" in queries.columns and queries["source"].drop_nulls().is_duplicated().any()
    return "source" if shared else None

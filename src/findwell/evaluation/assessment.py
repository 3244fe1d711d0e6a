"""From what was read to a result: every relation of every run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast, get_args

import polars as pl

from findwell.core.cutoff import COUNTED
from findwell.core.errors import OptionError, choose
from findwell.core.findings import Finding, FindingKind, first_findings, merge_findings
from findwell.core.policy import Missing
from findwell.core.progress import Stages
from findwell.core.texts.tokens import find_tokenizer
from findwell.engines.local import LocalEngine
from findwell.evaluation.results.bounds import short_lists, tied_scores
from findwell.evaluation.results.result import Kept, Provenance, Result
from findwell.relations.facts import FactReader
from findwell.relations.match import Matcher, find_matcher
from findwell.relations.pipeline import TEXT
from findwell.relations.preflight import check_gold, synthetic_questions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.core.data import Gold, RunStream
    from findwell.core.policy import Policy
    from findwell.core.progress import Report
    from findwell.core.relation import Relation
    from findwell.engines import Engine
    from findwell.judges.verdicts import JudgeProtocol
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect
    from findwell.relations.judged.judging import Judging, Task
    from findwell.relations.match.matcher import BoundMatcher, MatchContext


# what matters only where ids are compared
ABOUT_IDS = frozenset({FindingKind.TEXT_AS_ID, FindingKind.SHARED_ID, "id-from-metadata"})


def assess(  # noqa: PLR0917
    runs: list[RunStream],
    gold: Gold,
    measures: tuple[Measure, ...],
    dialect: Dialect,
    by: str | Matcher,
    context: MatchContext,
    *,
    judge: JudgeProtocol | None = None,
    engine: Engine | None = None,
    progress: Report | None = None,
    keep: int = 0,
) -> Result:
    """Draw every relation of every run, and return what can be measured over them."""
    matchers = find_matchers(by, measures, dialect)
    default = str(find_matcher(by, dialect.relations))
    reads = {
        name: [each for each in measures if (each.relation or default) == name] for name in matchers
    }
    tasks = {matcher: matcher.task(reads[name]) for name, matcher in matchers.items()}
    asked = {matcher: task for matcher, task in tasks.items() if task is not None}
    judging = None if judge is None or not asked else _judging(judge, asked)
    context = replace(context, run_ids=dialect.run_ids, judging=judging)
    facts = {
        name: FactReader.of(facts_of(reads[name]), context.corpus, context.tokenizer)
        for name in matchers
    }
    drawn = _Drawn(reads, dialect.policy, engine or LocalEngine(), keep, facts)
    drawn.findings += synthetic_questions(gold.queries)
    bound = {
        name: matcher.bind(gold, context)
        for name, matcher in matchers.items()
        if judging is not None or not matcher.judged
    }
    for name, each in bound.items():
        drawn.look_at_gold(name, each, matchers[name])
    by_rule = [name for name in bound if not matchers[name].judged]
    stages = Stages(progress, len(runs) * (len(by_rule) + (judging is not None)))
    for run in runs:
        for name in by_rule:
            phase = run.name if len(by_rule) == 1 else f"{run.name} by {name}"
            drawn.draw(name, bound[name], run, stages.begin(phase), context.corpus)
    if judging is not None:  # a judge costs: whatever else may fail came first
        for run in runs:
            judging.progress = stages.begin(f"judging {run.name}")
            for name, each in bound.items():
                if matchers[name].judged:
                    drawn.draw(name, each, run, None, context.corpus)
            drawn.keep_verdicts(judging, run.name)
    abouts = {run.name: run.about() for run in runs}
    ids = dialect.run_ids if context.ids == "identity" else context.ids
    return Result(
        relations=drawn.relations,
        measures=measures,
        queries=gold.queries,
        findings=tuple(first_findings(drawn.findings)),  # relations share their inputs
        about={
            name: about for name, about in abouts.items() if about is not None and about.width > 1
        },
        provenance=Provenance(
            dialect=dialect.name,
            policy=dialect.policy,
            drawn_by=default,
            settings={name: matcher.settings() for name, matcher in matchers.items()},
            ids=ids if isinstance(ids, str) else getattr(ids, "__qualname__", repr(ids)),
            tokenizer=find_tokenizer(context.tokenizer).name
            if "tokens" in facts_of(measures)
            else "",
            judge={}
            if judge is None
            else {"name": judge.name, **judge.about(), **_card(judge, asked), **_own(matchers)},
        ),
        kept=Kept(drawn.listed, pl.concat(drawn.verdicts) if drawn.verdicts else None),
    )


@dataclass(slots=True)
class _Drawn:
    """The relations that have been drawn so far."""

    reads: dict[str, list[Measure]]  # the measures that read each relation
    policy: Policy
    engine: Engine
    keep: int  # documents of each list that are kept
    facts: dict[str, FactReader | None]  # what the measures ask about chunks
    relations: dict[tuple[str, str], Relation] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    listed: dict[str, pl.DataFrame] = field(default_factory=dict)
    verdicts: list[pl.DataFrame] = field(default_factory=list)

    def look_at_gold(self, name: str, bound: BoundMatcher, matcher: Matcher) -> None:
        """Check the gold as a relation counts it."""
        levels = {
            str(measure): measure.level() for measure in self.reads[name] if measure.needs_relevant
        }
        checked = [] if bound.finds_items else check_gold(bound.gold, self.policy, levels)
        self.findings += merge_findings([*bound.gold.findings, *checked, *matcher.findings()])

    def draw(
        self,
        name: str,
        bound: BoundMatcher,
        run: RunStream,
        progress: Report | None,
        corpus: pl.DataFrame | None,
    ) -> None:
        """Draw a relation of a run."""
        keep = 0 if run.name in self.listed else self.keep
        drawn = self.engine.draw(
            run, bound, self.policy, keep=keep, progress=progress, facts=self.facts[name]
        )
        self.relations[run.name, name] = drawn.relation
        if drawn.listed is not None:
            self.listed[run.name] = _with_texts(drawn.listed, corpus)
        found = [*drawn.findings, *run.found()]
        if drawn.unmet is not None:
            found += bound.nothing_met(replace(drawn.unmet, findings=tuple(found)))
        if bound.blank_is_unit:  # nothing is compared by id
            found = [each for each in found if each.kind not in ABOUT_IDS]
        news = [replace(each, run=run.name) for each in found]
        if drawn.ties is not None:
            news += tied_scores(drawn.relation, drawn.ties, self.reads[name], run.name)
        news += short_lists(drawn.relation, self.reads[name], run.name)
        self.findings += merge_findings(news)

    def keep_verdicts(self, judging: Judging, run: str) -> None:
        """Keep the verdicts about a run."""
        verdicts, findings = judging.close(run)
        if self.keep:
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


def _card(judge: JudgeProtocol, tasks: dict[Matcher, Task]) -> dict[str, str]:
    """Return how far a judge agrees with people, where somebody has measured it."""
    from findwell.judges.cards.card import find_card  # noqa: PLC0415 - few evaluations have a judge

    aspects = {task.aspect for task in tasks.values()}
    card = find_card(judge.name, aspects=aspects, about=judge.about())
    return {} if card is None else {"card": card.cite()}


def _judging(judge: JudgeProtocol, tasks: dict[Matcher, Task]) -> Judging:
    from findwell.relations.judged.judging import Judging  # noqa: PLC0415

    return Judging(judge, tasks)


def _own(matchers: dict[str, Matcher]) -> dict[str, Any]:
    """Return the aspects of a user's own that were judged: a saved result is read without them."""
    from findwell.judges.aspects import describe_own  # noqa: PLC0415

    own = describe_own(matcher.name for matcher in matchers.values() if matcher.judged)
    return {"aspects": own} if own else {}


def reads_texts(matchers: Iterable[Matcher], measures: Iterable[Measure]) -> bool:
    """Tell whether the texts of what was retrieved are needed, to compare them or to count."""
    counted = not set(COUNTED).isdisjoint(facts_of(measures))
    return counted or any(matcher.reads_texts for matcher in matchers)


def facts_of(measures: Iterable[Measure]) -> list[str]:
    """Return what measures ask about chunks, each name once."""
    return sorted(frozenset().union(*(measure.facts() for measure in measures)))


def with_missing(dialect: Dialect, missing: str | None) -> Dialect:
    """Return a dialect with another policy about missing queries; None: with its own."""
    if missing is None:
        return dialect
    chosen = cast("Missing", choose("choice for missing queries", missing, get_args(Missing)))
    return replace(dialect, policy=replace(dialect.policy, missing=chosen))


def chosen_relation(by: str | Matcher | None, measures: Iterable[Measure]) -> str | Matcher | None:
    """Return what the user chose to compare; None where it is left to the inputs."""
    needed = any(measure.relation is None for measure in measures)
    return by if by is not None or needed else "ids"


def find_matchers(
    by: str | Matcher, measures: tuple[Measure, ...], dialect: Dialect
) -> dict[str, Matcher]:
    """Return what draws the relations that measures read, first the one of those naming none."""
    first = find_matcher(by, dialect.relations)
    if first.about_list:  # a measure that is cut later would read the wrong verdict
        raise OptionError(
            f"{first.name} is about the list as a whole, which is another one for every cutoff",
            fix=f"name it in the measures, for example recall@5/{first.name}",
        )
    named = dict.fromkeys(each.relation for each in measures if each.relation is not None)
    every = {str(first): first} | {name: find_matcher(name) for name in named}
    used = {str(first) if each.relation is None else each.relation for each in measures}
    return {name: matcher for name, matcher in every.items() if name in used}

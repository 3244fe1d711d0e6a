"""From what was read to a result: every relation of every run, drawn by rule or by a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from karat.align.preflight import check_gold
from karat.engines.local import TEXT, relate, top_of
from karat.evaluation.ties import tied_scores
from karat.findings import Finding, merge_findings
from karat.relate.judged.assess import depth_read, judge_run, verdict_rows
from karat.relate.match import Matcher, find_matcher
from karat.relate.match.judged import Judged
from karat.results.result import Result

if TYPE_CHECKING:
    from karat.core.data import Gold, RunStream
    from karat.core.policy import Policy
    from karat.core.relation import Relation
    from karat.dialects import Dialect
    from karat.engines.prefetch import Prefetch
    from karat.judges.verdicts import JudgeProtocol
    from karat.measures import Measure
    from karat.progress import Report
    from karat.relate.match.matcher import MatchContext


def assess(  # noqa: PLR0917
    streams: list[RunStream],
    gold: Gold,
    measures: tuple[Measure, ...],
    speaks: Dialect,
    by: str | Matcher,
    context: MatchContext,
    *,
    judge: JudgeProtocol | None = None,
    reading: Prefetch | None = None,
    progress: Report | None = None,
    keep: int = 0,
) -> Result:
    """Draw every relation of every run, and return what can be measured over them."""
    context = replace(context, run_ids=speaks.run_ids)
    default = str(find_matcher(by, speaks.relations))
    matchers = find_matchers(by, measures, speaks)
    drawn = _Drawn(gold, measures, speaks.policy, default, keep=keep)
    for name, matcher in matchers.items():
        if not isinstance(matcher, Judged):
            drawn.by_rule(name, matcher, streams, context, reading, progress)
            reading = None
    if reading is not None:
        reading.close()
    judged = {name: each for name, each in matchers.items() if isinstance(each, Judged)}
    if judge is not None and judged:
        for stream in streams:
            drawn.by_judge(judge, judged, stream, context, progress)
    abouts = {stream.name: stream.about() for stream in streams}
    ids = speaks.run_ids if context.ids == "identity" else context.ids
    return Result(
        relations=drawn.relations,
        measures=measures,
        queries=gold.queries,
        findings=tuple(drawn.findings),
        dialect=speaks.name,
        policy=speaks.policy,
        drawn_by=default,
        settings={name: matcher.settings() for name, matcher in matchers.items()},
        lenient=drawn.lenient,
        listed=drawn.listed,
        verdicts=pl.concat(drawn.verdicts) if drawn.verdicts else None,
        judge={} if judge is None else {"name": judge.name, **judge.about(), **_card(judge.name)},
        ids=ids if isinstance(ids, str) else getattr(ids, "__qualname__", repr(ids)),
        about={
            name: about for name, about in abouts.items() if about is not None and about.width > 1
        },
    )


@dataclass(slots=True)
class _Drawn:
    """The relations that have been drawn so far."""

    gold: Gold
    measures: tuple[Measure, ...]
    policy: Policy
    default: str  # the relation of measures that name none
    relations: dict[tuple[str, str], Relation] = field(default_factory=dict)
    lenient: dict[tuple[str, str], Relation] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    keep: int = 0  # documents of each list that are remembered
    listed: dict[str, pl.DataFrame] = field(default_factory=dict)
    verdicts: list[pl.DataFrame] = field(default_factory=list)

    def by_rule(  # noqa: PLR0917
        self,
        name: str,
        matcher: Matcher,
        streams: list[RunStream],
        context: MatchContext,
        reading: Prefetch | None,
        progress: Report | None,
    ) -> None:
        """Draw a relation of every run by comparing units and items."""
        bound = matcher.bind(self.gold, context)
        levels = {
            str(measure): measure.level() for measure in self._over(name) if measure.needs_relevant
        }
        news = [*bound.gold.findings, *check_gold(bound.gold, self.policy, levels)]
        news += matcher.findings()
        for stream in streams:
            keep = 0 if stream.name in self.listed else self.keep
            related = relate(
                stream, bound, self.policy, reading=reading, progress=progress, keep=keep
            )
            reading = None
            self.relations[stream.name, name] = related.relation
            if related.listed is not None:
                self.listed[stream.name] = _with_texts(related.listed, context.corpus)
            if related.ties is not None:
                mine = [each for each in self.measures if (each.relation or self.default) == name]
                news += tied_scores(related.relation, related.ties, mine, stream.name)
            found = (*related.findings, *stream.found())
            news += (replace(finding, run=stream.name) for finding in found)
        self._tell(news)

    def by_judge(
        self,
        judge: JudgeProtocol,
        matchers: Mapping[str, Matcher],
        stream: RunStream,
        context: MatchContext,
        progress: Report | None,
    ) -> None:
        """Draw relations of a run from the verdicts of a judge, who is asked once."""
        run = stream.collect()
        depths = {name: depth_read(self._over(name), each) for name, each in matchers.items()}
        how = (self.policy, context.corpus, progress, depths)
        seen = judge_run(run, self.gold, judge, matchers, *how)
        for name, pair in seen.relations.items():
            self.relations[stream.name, name] = pair.strict
            if pair.lenient is not None:
                self.lenient[stream.name, name] = pair.lenient
        if self.keep:
            self.listed.setdefault(stream.name, top_of(seen.aligned, self.keep))
            self.verdicts.append(verdict_rows(seen).with_columns(run=pl.lit(stream.name)))
        self._tell([replace(finding, run=stream.name) for finding in seen.findings])

    def _over(self, name: str) -> list[Measure]:
        """Return the measures that read a relation."""
        return [each for each in self.measures if (each.relation or self.default) == name]

    def _tell(self, news: list[Finding]) -> None:
        """Add findings, but not what another relation of the same input has said already."""
        said = {(found.run, found.kind, found.message) for found in self.findings}
        self.findings += (
            found
            for found in merge_findings(news)
            if (found.run, found.kind, found.message) not in said
        )


def _with_texts(listed: pl.DataFrame, corpus: pl.DataFrame | None) -> pl.DataFrame:
    """Add the texts of a corpus to lists that have none."""
    if corpus is None or ("text" in listed.columns and not listed["text"].null_count()):
        return listed
    texts = corpus.select("doc", pl.col("text").str.head(TEXT).alias("__text"))
    joined = listed.join(texts, on="doc", how="left", maintain_order="left")
    own = [pl.col("text")] if "text" in listed.columns else []
    return joined.with_columns(text=pl.coalesce(*own, "__text")).drop("__text")


def _card(judge: str) -> dict[str, str]:
    """Return how far a judge agrees with people, where somebody has measured it."""
    from karat.judges.cards.shelf import find_card  # noqa: PLC0415 - few evaluations have a judge

    card = find_card(judge)
    return {} if card is None else {"card": card.cite()}


def find_matchers(
    by: str | Matcher, measures: tuple[Measure, ...], speaks: Dialect
) -> dict[str, Matcher]:
    """Return what draws the relations that measures read, first the one of those naming none."""
    first = find_matcher(by, speaks.relations)
    named = [measure.relation for measure in measures if measure.relation is not None]
    every = {str(first): first} | {name: find_matcher(name) for name in named}
    used = {str(first) if each.relation is None else each.relation for each in measures}
    return {name: matcher for name, matcher in every.items() if name in used}

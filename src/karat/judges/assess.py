"""Runs before a judge: samples are made, verdicts given, and relations drawn from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl

from karat.findings import EXAMPLES, Finding
from karat.judges.relations import Drawn, all_verdicts, draw_relation
from karat.judges.samples import sample_run
from karat.preflight import missing_queries, nothing_retrieved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from karat.align import Aligned, Policy
    from karat.data import Gold, Run
    from karat.judges.verdicts import Aspect, Judge, Judged, Matrix, Sample, Verdict
    from karat.match.matcher import Matcher
    from karat.progress import Report


VERDICTS = {
    "query": pl.String,
    "aspect": pl.String,
    "item": pl.String,
    "chunk": pl.String,
    "value": pl.Int64,
    "reason": pl.String,
    "quote": pl.String,
    "unproven": pl.Boolean,
}


@dataclass(frozen=True, slots=True)
class Assessed:
    """What a judge made of one run: a relation for each aspect, and what is worth knowing."""

    relations: Mapping[str, Drawn]  # by the spelling of the relation
    aligned: Aligned
    samples: list[Sample]
    verdicts: list[Judged]
    findings: list[Finding]


def judge_run(  # noqa: PLR0917
    run: Run,
    gold: Gold,
    judge: Judge,
    matchers: Mapping[str, Matcher],
    policy: Policy,
    corpus: pl.DataFrame | None = None,
    progress: Report | None = None,
) -> Assessed:
    """Let a judge give its verdicts about a run, once for all relations that are asked for."""
    aspects = frozenset(cast("Aspect", matcher.name) for matcher in matchers.values())
    splitters = {
        matcher.name: matcher.settings()["splitter"]
        for matcher in matchers.values()
        if "splitter" in matcher.parameters()
    }
    if policy.blank == "error":
        policy = replace(policy, blank="kept")
    sampled = sample_run(run, gold, policy, corpus, aspects, splitters)
    asked = np.bincount(sampled.aligned.asked, minlength=gold.queries.height) > 0
    seen = asked | (np.bincount(sampled.aligned.query, minlength=len(asked)) > 0)
    findings = [*sampled.findings, *missing_queries(seen, gold, run.name, policy)]
    findings += nothing_retrieved(asked, gold, policy)
    verdicts = judge.judge(sampled.samples, aspects, progress)
    findings += _findings(sampled.samples, verdicts, aspects)
    findings += getattr(judge, "findings", list)()  # what only the judge can know
    keep = seen if policy.missing == "skip" else np.ones(len(seen), dtype=bool)
    relations = {
        name: draw_relation(sampled, verdicts, gold, cast("Aspect", matcher.name)).select(keep)
        for name, matcher in matchers.items()
    }
    return Assessed(relations, sampled.aligned, sampled.samples, verdicts, findings)


def verdict_rows(assessed: Assessed) -> pl.DataFrame:
    """Return every verdict as a row: query, aspect, item, chunk, value, reason, quote, unproven."""
    rows: list[tuple[object, ...]] = []
    for sample, judged in zip(assessed.samples, assessed.verdicts, strict=True):
        matrices: list[tuple[str, Sequence[str], Matrix]] = [
            ("relevance", [sample.question], (judged.relevance,) if judged.relevance else ()),
            ("claims", judged.claim_texts, judged.claims),
            ("entities", judged.entity_texts, judged.entities),
        ]
        rows += (
            (sample.query, aspect, item, sample.chunks[chunk], *_cells(verdict))
            for aspect, items, matrix in matrices
            for item, row in zip(items, matrix, strict=False)
            for chunk, verdict in enumerate(row)
        )
        rows += (
            (sample.query, "statements", text, chunk, *_cells(verdict))
            for chunk, texts, row in zip(
                sample.chunks, judged.statement_texts, judged.statements, strict=False
            )
            for text, verdict in zip(texts, row, strict=False)
        )
    return pl.DataFrame(rows, schema=VERDICTS, orient="row")


def _cells(verdict: Verdict) -> tuple[object, ...]:
    return verdict.value, verdict.reason, verdict.quote, verdict.unproven


def _findings(
    samples: list[Sample], verdicts: list[Judged], aspects: frozenset[Aspect]
) -> list[Finding]:
    """Say which verdicts failed, and which rest on a quote that is not there."""
    failed: list[tuple[str, str]] = []
    unproven: list[str] = []
    for sample, judged in zip(samples, verdicts, strict=True):
        failed += ((sample.query, f"{name}: {why}") for name, why in judged.failures.items())
        for aspect in aspects:
            for verdict in all_verdicts(judged, aspect):
                if verdict.value is None:
                    failed.append((sample.query, verdict.reason))
                elif verdict.unproven:
                    unproven.append(sample.query)
    found = []
    if failed:
        common = Counter(reason for _, reason in failed).most_common(1)[0][0]
        found.append(
            Finding(
                "judge-failed",
                len(failed),
                tuple(dict.fromkeys(query for query, _ in failed))[:EXAMPLES],
                f"verdict that the judge failed to give, most often: {common}; its query has no "
                "value, and the bounds say what it could have been",
                "run it again: what was judged is kept, only the rest is asked for",
            )
        )
    if unproven:
        found.append(
            Finding(
                "unproven-verdict",
                len(unproven),
                tuple(dict.fromkeys(unproven))[:EXAMPLES],
                "verdict in favour of a chunk whose quote does not stand in it",
                "look at these queries: the judge may have made it up, or the chunk gave orders",
            )
        )
    return found

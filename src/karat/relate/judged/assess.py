"""Runs before a judge: samples are made, verdicts given, and relations drawn from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.align.preflight import missing_queries, nothing_retrieved
from karat.findings import EXAMPLES, Finding
from karat.judges.aspects import VERDICTS, all_verdicts, find_aspect, known_aspects, rows_of
from karat.progress import Progress
from karat.relate.judged.relations import Drawn, draw_relation
from karat.relate.judged.samples import sample_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karat.align.align import Aligned
    from karat.core.data import Gold, Run
    from karat.core.policy import Policy
    from karat.judges.verdicts import Judged, JudgeProtocol, Sample
    from karat.measures import Measure
    from karat.progress import Report
    from karat.relate.judged.samples import Sampled
    from karat.relate.match.matcher import Matcher


@dataclass(frozen=True, slots=True)
class Assessed:
    """What a judge made of one run: a relation for each aspect, and what is worth knowing."""

    relations: Mapping[str, Drawn]  # by the spelling of the relation
    aligned: Aligned
    said: Mapping[str, list[tuple[Sample, Judged]]]  # one a query, in the order of the gold
    findings: list[Finding]


def judge_run(  # noqa: PLR0917
    run: Run,
    gold: Gold,
    judge: JudgeProtocol,
    matchers: Mapping[str, Matcher],
    policy: Policy,
    corpus: pl.DataFrame | None = None,
    progress: Report | None = None,
    depths: Mapping[str, int | None] | None = None,
) -> Assessed:
    """Let a judge give its verdicts about a run, once for all relations that are asked for.

    `depths` says how many ranks of the lists are judged for each relation; None: all.
    """
    splitters = {
        matcher.name: matcher.settings()["splitter"]
        for matcher in matchers.values()
        if "splitter" in matcher.parameters()
    }
    if policy.blank == "error":
        policy = replace(policy, blank="kept")
    sampling = sample_run(run, gold, policy, corpus, _by_aspect(matchers, depths or {}), splitters)
    asked = np.bincount(sampling.aligned.asked, minlength=gold.queries.height) > 0
    seen = asked | (np.bincount(sampling.aligned.query, minlength=len(asked)) > 0)
    findings = [*sampling.findings, *missing_queries(seen, gold, run.name, policy)]
    findings += nothing_retrieved(asked, gold, policy)
    said, noted = _ask(judge, sampling.by_aspect, progress)
    findings += [*_findings(said), *noted]
    keep = seen if policy.missing == "skip" else np.ones(len(seen), dtype=bool)
    relations = {}
    for name, matcher in matchers.items():
        aspect = matcher.name
        verdicts = [judged for _, judged in said[aspect]]
        drawn = draw_relation(sampling.by_aspect[aspect], verdicts, gold, aspect)
        relations[name] = drawn.select(keep)
    return Assessed(relations, sampling.aligned, said, findings)


def depth_read(measures: Iterable[Measure], matcher: Matcher) -> int | None:
    """Return how many ranks of the lists measures read of a judged relation; None: all."""
    depths = [measure.depth(listed=find_aspect(matcher.name).listed) for measure in measures]
    known = [depth for depth in depths if depth is not None]
    return max(known) if known and len(known) == len(depths) else None


def _by_aspect(
    matchers: Mapping[str, Matcher], depths: Mapping[str, int | None]
) -> dict[str, int | None]:
    """Return the depth of each aspect: the largest of its relations."""
    found: dict[str, int | None] = {}
    for name, matcher in matchers.items():
        aspect, depth = matcher.name, depths.get(name)
        known = found.get(aspect, 0)
        found[aspect] = None if depth is None or known is None else max(depth, known)
    return found


def _ask(
    judge: JudgeProtocol, by_aspect: Mapping[str, Sampled], progress: Report | None
) -> tuple[dict[str, list[tuple[Sample, Judged]]], list[Finding]]:
    """Ask about every aspect of every sample: at once where the chunks are the same."""
    together: dict[frozenset[str], list[int]] = {}
    count = len(next(iter(by_aspect.values())).samples)
    for number in range(count):
        alike: dict[int, list[str]] = {}
        for aspect, sampled in by_aspect.items():
            alike.setdefault(len(sampled.samples[number].chunks), []).append(aspect)
        for shared in alike.values():
            together.setdefault(frozenset(shared), []).append(number)
    said: dict[str, dict[int, tuple[Sample, Judged]]] = {aspect: {} for aspect in by_aspect}
    findings: list[Finding] = []
    total, done = sum(map(len, together.values())), 0
    for aspects, numbers in together.items():
        samples = [
            _united([by_aspect[aspect].samples[number] for aspect in aspects]) for number in numbers
        ]
        tell = progress
        if progress is not None and len(together) > 1:
            tell = partial(_tell, progress, done, len(samples), total)
        judged = judge.judge(samples, aspects, tell)
        findings += getattr(judge, "findings", list)()  # what only the judge can know
        done += len(samples)
        for aspect in aspects:
            said[aspect] |= zip(numbers, zip(samples, judged, strict=True), strict=True)
    ordered = {aspect: [found[n] for n in range(count)] for aspect, found in said.items()}
    return ordered, findings


def _united(samples: list[Sample]) -> Sample:
    """Return one sample of several that differ only in the parts that they know."""
    parts = {name: rows for sample in samples for name, rows in sample.parts.items()}
    return replace(samples[0], parts=parts)


def _tell(progress: Report, before: int, count: int, total: int, step: Progress) -> None:
    """Tell the progress with some samples as part of the whole."""
    done = count * step.done // max(step.total, 1)
    progress(Progress(before + done, total, step.note))


def verdict_rows(assessed: Assessed) -> pl.DataFrame:
    """Return every verdict as a row: query, aspect, item, chunk, value, reason, quote, unproven."""
    rows: list[tuple[object, ...]] = []
    for pairs in zip(*assessed.said.values(), strict=True):
        of = dict(zip(assessed.said, pairs, strict=True))
        for aspect in (aspect for aspect in known_aspects() if aspect in of):
            rows += rows_of(aspect, *of[aspect])
    return pl.DataFrame(rows, schema=VERDICTS, orient="row")


def _findings(said: Mapping[str, list[tuple[Sample, Judged]]]) -> list[Finding]:
    """Say which verdicts failed, and which rest on a quote that is not there."""
    failed: list[tuple[str, str]] = []
    unproven: list[str] = []
    for pairs in zip(*said.values(), strict=True):
        for aspect, (sample, judged) in zip(said, pairs, strict=True):
            if aspect in judged.failures:
                failed.append((sample.query, f"{aspect}: {judged.failures[aspect]}"))
            for verdict in all_verdicts(judged, aspect):
                if verdict.failure is not None:
                    failed.append((sample.query, str(verdict.failure)))
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

"""Several judges at once: the verdict of most of them, or the mean, and how far they agree.

A judge that failed has no vote; where all failed, so did the panel. Of equally many votes the
lower value wins, and a mean halfway between two values is the lower one: a tie is not a yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import multimode
from typing import Any, Literal, TypeAlias

from findwell.core.errors import OptionError, choose
from findwell.core.progress import Progress, Report
from findwell.judges.aspects import Aspect, find_aspect
from findwell.judges.quotes import folded
from findwell.judges.verdicts import (
    AspectVerdicts,
    Judged,
    JudgeFailure,
    Judgement,
    JudgeProtocol,
    JudgeReason,
    Sample,
)
from findwell.statistics.agreement import kappa

How: TypeAlias = Literal["majority", "mean"]
Votes: TypeAlias = Sequence[Judgement | None]  # of each judge; None if it was not asked that

FEWEST = 2  # judges of a panel


class PanelJudge:
    """Asks several judges and gives the verdict of the majority, or the mean.

    >>> from findwell.judges.replay import FunctionJudge
    >>> strict = FunctionJudge(lambda sample: {"relevance": [0, 0]}, name="strict")
    >>> kind = FunctionJudge(lambda sample: {"relevance": [3, 1]}, name="kind")
    >>> fair = FunctionJudge(lambda sample: {"relevance": [2, 0]}, name="fair")
    >>> panel = PanelJudge([strict, kind, fair], how="mean")
    >>> judged = panel.judge([Sample("q", "Why?", ("a", "b"))], frozenset({"relevance"}))
    >>> [(verdict.value, verdict.reason) for verdict in judged[0]["relevance"].row]
    [(2, 'strict 0, kind 3, fair 2'), (0, 'strict 0, kind 1, fair 0')]
    """

    def __init__(self, judges: Sequence[JudgeProtocol], *, how: How = "majority") -> None:
        if len(judges) < FEWEST:
            raise OptionError("a panel needs at least two judges")
        choose("way to decide", how, ("majority", "mean"))
        self.judges = list(judges)
        self._names = [judge.name for judge in judges]
        self.name = f"panel({'+'.join(self._names)},{how})"
        self._decide = partial(_decided, self._names, how)
        self._votes: dict[str, list[Votes]] = {}

    def about(self) -> dict[str, Any]:
        """Return what the manifest says: each judge, and how far they agree, by aspect."""
        names = self._names
        return {
            "judge": self.name,
            "judges": [judge.about() for judge in self.judges],
            "agreement": {
                aspect: [
                    {"judges": [names[one], names[other]], **agreement(votes, one, other)}
                    for one, other in combinations(range(len(names)), 2)
                ]
                for aspect, votes in self._votes.items()
            },
        }

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""
        opinions = []
        for number, judge in enumerate(self.judges):
            report = progress and partial(_report, progress, number, len(self.judges), judge.name)
            opinions.append(judge.judge(samples, aspects, report))
        return [self._one(list(given), aspects) for given in zip(*opinions, strict=True)]

    def _one(self, given: list[Judged], aspects: frozenset[str]) -> Judged:
        found: dict[str, AspectVerdicts] = {}
        failures: dict[str, JudgeFailure] = {}
        for aspect in sorted(aspects):
            able = [None if aspect in one.failures else one[aspect] for one in given]
            if not any(each is not None for each in able):
                failures[aspect] = _all_failed([one.failures[aspect] for one in given])
                continue
            result = self._aspect(find_aspect(aspect), able)
            if isinstance(result, JudgeFailure):
                failures[aspect] = result
            else:
                found[aspect] = result
        return Judged(found, failures)

    def _aspect(
        self, aspect: Aspect, given: list[AspectVerdicts | None]
    ) -> AspectVerdicts | JudgeFailure:
        """Return the verdicts about an aspect, or why the judges cannot be brought together."""
        if aspect.judge_lists:
            return self._listed(aspect, given)
        first, *others = [one for one in given if one is not None]
        if any((one.items, one.parts) != (first.items, first.parts) for one in others):
            return JudgeFailure(JudgeReason.OTHER_ITEMS, f"the judges have different {aspect.name}")
        rows = tuple(
            self._row(aspect, [one.rows[number] if one and one.rows else None for one in given])
            for number in range(max(len(one.rows) for one in (first, *others)))
        )
        return replace(first, rows=rows)

    def _listed(self, aspect: Aspect, given: list[AspectVerdicts | None]) -> AspectVerdicts:
        """Let the judges vote that listed an item; it counts if more than half listed it."""
        same = aspect.listing.same if aspect.listing and aspect.listing.same else folded
        listed: dict[str, list[tuple[Judgement, ...] | None]] = {}
        texts: dict[str, str] = {}
        for number, one in enumerate(given):
            for text, row in zip(one.items, one.rows, strict=True) if one else ():
                texts.setdefault(same(text), text)
                listed.setdefault(same(text), [None] * len(given))[number] = row
        able = sum(one is not None for one in given)
        kept = [
            form for form, rows in listed.items() if 2 * sum(row is not None for row in rows) > able
        ]
        rows = tuple(self._row(aspect, listed[form]) for form in kept)
        return AspectVerdicts(rows, items=tuple(texts[form] for form in kept))

    def _row(
        self, aspect: Aspect, rows: Sequence[tuple[Judgement, ...] | None]
    ) -> tuple[Judgement, ...]:
        length = max((len(row) for row in rows if row is not None), default=0)
        votes: list[Votes] = [
            [row[place] if row and place < len(row) else None for row in rows]
            for place in range(length)
        ]
        self._votes.setdefault(aspect.name, []).extend(votes)
        return tuple(map(self._decide, votes))


def _decided(names: Sequence[str], how: How, votes: Votes) -> Judgement:
    """Return the verdict of a panel, with the quote of the first judge that agrees."""
    cast = [(name, vote) for name, vote in zip(names, votes, strict=True) if vote is not None]
    values = [vote.value for _, vote in cast if vote.value is not None]
    if not values:
        return Judgement(None, failure=_all_failed([vote.failure for _, vote in cast]))
    value = min(multimode(values)) if how == "majority" else _mean(values)
    listed = (f"{name} {'failed' if vote.value is None else vote.value}" for name, vote in cast)
    agreeing = [vote for _, vote in cast if vote.value == value]
    proof = next((vote for vote in agreeing if vote.quote), None)
    unproven = bool(value) and bool(agreeing) and all(vote.unproven for vote in agreeing)
    return Judgement(value, ", ".join(listed), proof.quote if proof else "", unproven)


def _all_failed(failures: Sequence[JudgeFailure | None]) -> JudgeFailure:
    """Return why a panel has no verdict: what its judges say, once."""
    distinct = list(dict.fromkeys(each for each in failures if each is not None))
    if len(distinct) == 1:
        return distinct[0]
    return JudgeFailure(JudgeReason.NO_VERDICT, "; ".join(map(str, distinct)))


def _mean(values: Sequence[int]) -> int:
    """Return the rounded mean; halves are rounded down.

    >>> _mean([0, 1]), _mean([0, 1, 1]), _mean([3, 0])
    (0, 1, 1)
    """
    return -(-(2 * sum(values) - len(values)) // (2 * len(values)))


def _report(progress: Report, number: int, judges: int, name: str, step: Progress) -> None:
    """Report the progress of one judge as part of the whole."""
    done = number * step.total + step.done
    progress(Progress(done, judges * step.total, f"{name} {step.note}".strip()))


def agreement(votes: Sequence[Sequence[Judgement | None]], one: int, other: int) -> dict[str, Any]:
    """Return how often two judges gave the same verdict, and κ; `votes` has one row per question.

    >>> yes, no = Judgement(1), Judgement(0)
    >>> votes = [[yes, yes], [no, yes], [no, no]]
    >>> agreement(votes, 0, 1)
    {'verdicts': 3, 'same': 0.6667, 'kappa': 0.4}
    """
    cast = ((row[one], row[other]) for row in votes)
    pairs = [(first.value, second.value) for first, second in cast if first and second]
    both = [pair for pair in pairs if None not in pair]
    same = sum(first == second for first, second in both) / len(both) if both else None
    counted = {"verdicts": len(both), "same": same if same is None else round(same, 4)}
    found = kappa(*([pair[side] for pair in both] for side in (0, 1)))
    value = found.value if found.value is None else round(found.value, 4)
    return {**counted, "kappa": value} | ({"reason": found.reason} if value is None else {})

"""A judge's rate, corrected by a judge card: labels from elsewhere, and one flag."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from karat.errors import InputError, OptionError
from karat.judges.cards.card import JudgeCard
from karat.measures.precision import Precision
from karat.results.estimates import Estimate, Estimates
from karat.statistics.intervals import as_units, cluster_codes, estimate
from karat.statistics.prediction_powered import rogan_gladen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.measures import Measure
    from karat.results.result import Result

NAME = "rogan-gladen"
WHY = "the judge's rate, corrected by how often it was right on the labels of its card"
NOT_A_RATE = "a card corrects how often the judge says yes: P@K, and no other measure"


def load_card(card: object, judge: str) -> JudgeCard:
    """Return the card, read where it is a path; it must be about this judge and relevance."""
    if isinstance(card, str | os.PathLike):
        card = JudgeCard.load(card)
    if not isinstance(card, JudgeCard):
        raise InputError(f"this is no judge card, but {type(card).__name__}", where="card")
    if card.aspect != "relevance" or card.judge != judge:
        raise OptionError(
            f"the card is about {card.judge} and {card.aspect}, not about {judge} and relevance",
            fix="take the card of this judge: karat judge-card LABELS --judge …",
        )
    return card


def correct_by_card(result: Result, card: object) -> Result:
    """Return a judged result with its values corrected by a judge card, as estimates in it."""
    rows = [
        Estimate(
            row["run"], row["measure"], "judge", row["value"], row["low"], row["high"], 0, None
        )
        for row in result.summary.iter_rows(named=True)
    ]
    rows += corrected_by_card(result, result.measures, card)
    given = load_card(card, result.judge["name"])
    design = {
        "labels": given.pairs,
        "labelled_queries": given.questions,
        "sampling": {"of a card": given.pairs},
        "strata": [],
        "queries": result.queries.height,
        "measures": {
            str(measure): {"estimator": NAME, "why": WHY}
            for measure in result.measures
            if type(measure) is Precision
        },
        "judge": result.judge["name"],
        "card": given.cite(),
    }
    return replace(result, estimates=Estimates(tuple(rows), design, result.level or 0.95))


def corrected_by_card(result: Result, measures: Sequence[Measure], card: object) -> list[Estimate]:
    """Return each judged rate of each run, corrected by how often the judge was right elsewhere.

    The interval is that of as many independent verdicts as the verdicts about some queries are
    worth, since those about one query are alike.
    """
    if not result.judge:
        raise OptionError(
            "a card corrects a judge, and nobody judges here",
            fix="name the judge of the card: --judge, and a measure such as P@5/relevance",
        )
    given = load_card(card, result.judge["name"])
    return [
        _corrected(result, run, measure, given)
        for run in result.runs
        for measure in measures
        if measure.relation is not None
    ]


def _corrected(result: Result, run: str, measure: Measure, card: JudgeCard) -> Estimate:
    empty = Estimate(run, str(measure), NAME, None, None, None, card.pairs, None, NAME, NOT_A_RATE)
    if type(measure) is not Precision:
        return empty
    relation = result.relation(run, measure)
    shown = relation.shown(measure.k).astype(np.float64)
    yes = relation.count(relation.units(measure.rel, measure.k).query).astype(np.float64)
    n = float(shown.sum())
    level = result.level or 0.95
    alike = _independent(result, yes, shown)
    labels = np.array(card.confusion.labels, dtype=np.float64)
    counts = np.array(card.confusion.counts, dtype=np.int64)
    least = card.rel if measure.rel == 1 else measure.rel
    people, judge = labels >= least, labels >= measure.rel
    positives, negatives = int(counts[:, people].sum()), int(counts[:, ~people].sum())
    found = rogan_gladen(
        round(alike * yes.sum() / n) if n else 0,
        alike,
        int(counts[np.ix_(judge, people)].sum()),
        positives,
        int(counts[np.ix_(~judge, ~people)].sum()),
        negatives,
        level=level,
    )
    # P@K divides by K where fewer were retrieved
    ranks = relation.ranks(measure.k)
    filled = n / (ranks * relation.n) if ranks is not None and relation.n else 1.0
    value, low, high = (
        None if each is None else each * filled for each in (found.value, found.low, found.high)
    )
    return Estimate(run, str(measure), NAME, value, low, high, card.pairs, None, NAME, found.reason)


def _independent(result: Result, yes: np.ndarray, shown: np.ndarray) -> int:
    """Return how many independent verdicts would be as precise as these, at most all of them."""
    n = float(shown.sum())
    if not n:
        return 0
    rate = float(yes.sum()) / n
    column = result.options.cluster
    names = None if column is None else result.queries[column].to_list()
    codes = None if names is None else cluster_codes(names, len(yes))
    units = as_units((yes - rate * shown)[:, np.newaxis], codes)
    spread = estimate(units).influence.ravel() * len(yes)
    variance = float((spread**2).sum()) / max(len(units) - 1, 1) / len(units) / n**2
    plain = rate * (1 - rate)
    return (
        round(n) if variance <= 0 or plain <= 0 else max(1, min(round(n), round(plain / variance)))
    )

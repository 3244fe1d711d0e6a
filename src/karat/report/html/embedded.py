"""Which queries a file holds in full: the failures first, as many as fit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.progress import Progress, Report
from karat.report.cases import Cases, gold_texts, tell_all

if TYPE_CHECKING:
    from karat.core.data import Ints
    from karat.report.panel import Panel

BUDGET = 9_000_000  # letters of JSON for single queries
SYSTEMS = 6  # of which single queries are told


@dataclass(frozen=True, slots=True)
class Embedded:
    """Queries in full, by their place in the table, and the texts that they share."""

    cases: dict[int, dict[str, Any]]
    texts: list[str]
    size: int


class _Texts:
    """Keeps each text once."""

    def __init__(self) -> None:
        self.place: dict[str, int] = {}
        self.size = 0

    def keep(self, text: str) -> int:
        if text not in self.place:
            self.place[text] = len(self.place)
            self.size += len(text)
        return self.place[text]


def order_of_interest(panel: Panel) -> Ints:
    """Return the queries in the order in which somebody should look at them.

    First those with nothing found, then those that lost most against the baseline, then those
    without a value, then the rest, the lowest values first.
    """
    values = panel.pairing.values[:, :, panel.lead]
    sign = 1 if panel.measures[panel.lead].higher_is_better else -1
    lowest = np.where(np.isnan(values), np.inf, sign * values).min(axis=1)
    lost = np.nan_to_num(sign * (values - values[:, :1])).min(axis=1)
    group = np.full(len(values), 3)
    group[np.isnan(values).any(axis=1)] = 2
    group[lost < 0] = 1
    group[(values == 0).any(axis=1)] = 0
    order: Ints = np.lexsort((lowest, lost, group))
    return order


def embed(
    panel: Panel,
    order: Ints,
    kept: Ints,
    progress: Report | None = None,
) -> Embedded:
    """Tell queries in this order until the budget is spent; `kept` are those of the table."""
    place = {int(query): at for at, query in enumerate(kept)}
    known = gold_texts(panel)
    tellers = [Cases(system, known) for system in panel.systems[:SYSTEMS]]
    texts, size = _Texts(), 0
    cases: dict[int, dict[str, Any]] = {}
    for query in order.tolist():
        if query not in place:
            continue
        told = tell_all(panel, tellers, query, texts.keep)
        size += len(json.dumps(told, ensure_ascii=False))
        if size + texts.size > BUDGET and cases:
            break
        cases[place[query]] = told
        if progress is not None:
            progress(Progress(len(cases), len(kept)))
    return Embedded(cases, list(texts.place), size + texts.size)

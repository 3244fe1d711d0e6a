"""What a report holds: charts, sentences, and the queries as data for the page's table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.report.cases.shown import shown
from karat.report.charts.cutoff import curve_figure, curves, tradeoff
from karat.report.charts.distribution import distribution
from karat.report.charts.forest import forest
from karat.report.charts.heat import heat
from karat.report.charts.palette import SYSTEMS
from karat.report.html.embedded import Embedded, embed, order_of_interest

if TYPE_CHECKING:
    from karat.core.data import Floats, Ints
    from karat.progress import Report
    from karat.report.charts import Figure
    from karat.report.panel import Panel

MEASURES = 12  # whose distribution is drawn
SLICINGS = 6  # columns with a heat map
QUESTION = 300  # letters of a question in the table
ROWS = 50_000  # queries of the table


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that a page shows."""

    panel: Panel
    distributions: list[Figure]
    cutoffs: list[Figure]
    forest: Figure | None
    slices: list[Figure]
    kept: Ints  # the queries of the table
    data: dict[str, Any]  # for the page's script
    notes: list[str]  # what was left out, and where it is

    @property
    def figures(self) -> dict[str, Figure]:
        """Every chart by name."""
        first = [] if self.forest is None else [self.forest]
        every = [*first, *self.distributions, *self.cutoffs, *self.slices]
        return {figure.name: figure for figure in every}


def prepare(panel: Panel, *, cases: bool = True, progress: Report | None = None) -> Prepared:
    """Prepare a report; `cases` says whether single queries are part of it."""
    drawn = curves(panel, SYSTEMS)
    figures = [curve_figure(each) for each in drawn]
    by_name = {each.measure.partition("/")[0]: each for each in drawn}
    if "recall" in by_name and "P" in by_name:
        figures.append(tradeoff(by_name["recall"], by_name["P"]))
    order = order_of_interest(panel)
    kept = np.sort(order[:ROWS])
    embedded = embed(panel, order, kept, progress) if cases else Embedded({}, [], 0)
    return Prepared(
        panel=panel,
        distributions=[
            distribution(panel, at, SYSTEMS) for at in range(min(len(panel.measures), MEASURES))
        ],
        cutoffs=figures,
        forest=None if panel.comparison is None else forest(panel.comparison, SYSTEMS),
        slices=[heat(panel, column, SYSTEMS) for column in list(panel.facets)[:SLICINGS]],
        kept=kept,
        data=_data(panel, kept, embedded),
        notes=_notes(panel, kept, embedded if cases else None),
    )


def _data(panel: Panel, kept: Ints, embedded: Embedded) -> Any:  # noqa: ANN401
    queries = panel.queries[kept]
    questions = queries.get_column("question", default=None)
    values = panel.pairing.values[kept]
    return {
        "systems": [shown(name) for name in panel.names],
        "measures": [
            {"name": str(each), "higher": each.higher_is_better, "unit": each.unit_interval}
            for each in panel.measures
        ],
        "lead": panel.lead,
        "all": panel.queries.height,
        "query": [shown(query) for query in queries["query"]],
        "question": None
        if questions is None
        else [_question(each) for each in questions.cast(pl.String)],
        "facets": [_facet(queries, name, labels) for name, labels in panel.facets.items()],
        "values": [
            [_column(values[:, system, measure]) for measure in range(len(panel.measures))]
            for system in range(len(panel.systems))
        ],
        "texts": embedded.texts,
        "cases": embedded.cases,
    }


def _question(text: str | None) -> str:
    clean = shown((text or "")[: QUESTION + 1])
    return clean if len(clean) <= QUESTION else clean[: QUESTION - 1] + "…"


def _facet(queries: pl.DataFrame, name: str, labels: list[str]) -> dict[str, Any]:
    place = {label: at for at, label in enumerate(labels)}
    column = queries[name].cast(pl.String).fill_null("(none)")
    return {
        "name": shown(name),
        "labels": [shown(label) for label in labels],
        "codes": [place[label] for label in column],
    }


def _column(values: Floats) -> list[float | None]:
    rounded = np.round(values, 4)
    return [None if np.isnan(value) else value for value in rounded.tolist()]


def _notes(panel: Panel, kept: Ints, embedded: Embedded | None) -> list[str]:
    notes = []
    every = panel.queries.height
    if len(kept) < every:
        notes.append(
            f"The table below holds {len(kept):,} of {every:,} queries, failures first; the "
            "numbers and charts above are about all of them."
        )
    if embedded is not None and len(embedded.cases) < len(kept):
        notes.append(
            f"{len(embedded.cases):,} of {every:,} queries can be opened here, failures first, so "
            "that this file stays small; `karat view` on the folder of the result opens every one."
        )
    if len(panel.names) > SYSTEMS:
        notes.append(f"Charts show the first {SYSTEMS} of {len(panel.names)} systems.")
    if not any(system.result.kept.listed for system in panel.systems):
        notes.append(
            "The results do not remember the retrieved documents; `karat score --save DIR` "
            "keeps them, and the lists then appear here."
        )
    return notes

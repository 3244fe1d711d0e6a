"""What a report holds: charts, notes, and the queries as data for the page's table.

Queries in full are held as far as they fit: the first of each kind that a reader may look for.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.frames import pl
from findwell.core.progress import Progress, Report
from findwell.evaluation.results.misses import CAUSES
from findwell.show.charts import MORE, draw_charts
from findwell.show.charts.svg import SYSTEMS
from findwell.show.comparison import best_systems
from findwell.show.details import QueryDetails, disagrees, gold_texts, query_details
from findwell.show.escape import multiline
from findwell.show.excerpts import shorten
from findwell.show.packing import QueryPack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from findwell.core.data import Floats, Ints
    from findwell.show.charts import Chart
    from findwell.show.panel import Panel

CHART_SECTIONS = ("comparison", "where", "causes", "cutoffs", "distributions", MORE)
QUESTION = 300  # letters of a question in the table
TABLE_QUERIES = 50_000  # queries of the table
BUDGET = 8_000_000  # letters of a file for single queries, packed
LETTERS = 24_000_000  # the same unpacked: what a browser reads when the first is opened
IN_FULL = 6  # systems whose single queries are held
SHOWN_AS_ZERO = 5e-5  # a difference that the page shows as 0


@dataclass(frozen=True, slots=True)
class ReportContent:
    """All that a page shows."""

    panel: Panel
    drawn: dict[str, list[Chart]]  # by section
    kept: Ints  # the queries of the table
    data: dict[str, Any]  # for the page's script
    notes: dict[str, list[str]]  # by section: what was left out, and where it is

    @property
    def charts(self) -> dict[str, Chart]:
        """Every chart by name."""
        return {chart.name: chart for charts in self.drawn.values() for chart in charts}


def prepare(panel: Panel, *, cases: bool = True, progress: Report | None = None) -> ReportContent:
    """Prepare a report; `cases` says whether single queries are part of it."""
    order = order_of_interest(panel)
    kept = np.sort(order[:TABLE_QUERIES])
    packed, contradicted = QueryPack(), list[int]()
    if cases:
        packed, contradicted = embed(panel, order, kept, progress)
    opened = len(packed.places) if cases else len(kept)  # a server opens every one
    content = ReportContent(
        panel=panel,
        drawn={},
        kept=kept,
        data=_data(panel, kept)
        | {
            "packed": packed.finish() if packed.places else None,
            "openable": sorted(packed.places) if opened < len(kept) else None,  # None: all
            "disagree": sorted(contradicted) or None,
        },
        notes={"queries": _query_notes(panel, len(kept), opened)},
    )
    shown = len(panel.names)
    best = f"This shows the baseline and the best {SYSTEMS - 1} others by {panel.measures[0]}"
    for section, each in draw_charts(panel, CHART_SECTIONS).items():
        content.drawn[section] = [chart for chart in each if not isinstance(chart, str)]
        many = shown > SYSTEMS and section in ("cutoffs", "distributions")
        content.notes[section] = [f"{best}, of {shown} systems in all."] if many else []
        content.notes[section] += [note for note in each if isinstance(note, str)]
    return content


def order_of_interest(panel: Panel) -> Ints:
    """Return the queries in the order in which they deserve a look.

    First those with nothing found, then those that lost most against the baseline, then those
    without a value, then the rest, the lowest values first.
    """
    values = panel.pairing.table[:, panel.lead].T
    sign = 1 if panel.measures[panel.lead].higher_is_better else -1
    lowest = np.where(np.isnan(values), np.inf, sign * values).min(axis=1)
    lost = np.nan_to_num(sign * (values - values[:, :1])).min(axis=1)
    group = np.full(len(values), 3)
    group[np.isnan(values).any(axis=1)] = 2
    group[lost < 0] = 1
    group[(values == 0).any(axis=1)] = 0
    order: Ints = np.lexsort((lowest, lost, group))
    return order


def balanced(panel: Panel, order: Ints) -> Iterator[int]:
    """Return the queries so that any number of the first has some of every kind.

    By turns comes the next query with nothing found, the next that lost most, the next that gained
    most, the next without a value, the next of the lowest values, and the next of a slice, each
    slice in its turn: what the filters of the page show at their top.
    """
    values = panel.pairing.table[:, panel.lead].T
    sign = 1 if panel.measures[panel.lead].higher_is_better else -1
    moved = np.nan_to_num(sign * (values - values[:, :1]))
    kinds = [
        order[(values[order] == 0).any(axis=1)],
        *(_falling(-moved[:, at], order) for at in range(1, len(panel.names))),
        *(_falling(moved[:, at], order) for at in range(1, len(panel.names))),
        order[np.isnan(values[order]).any(axis=1)],
        order,
    ]
    slices = [
        order[(panel.labels(column) == label).to_numpy()[order]]
        for column, labels in panel.facets.items()
        for label in labels
    ]
    by_turns = [*kinds, _by_turns(slices)]
    return iter(dict.fromkeys(_by_turns(by_turns)))


def _falling(by: Floats, order: Ints) -> Ints:
    """Return the queries above 0, the highest first; where they are equal, in this order."""
    above = order[by[order] > SHOWN_AS_ZERO]
    found: Ints = above[np.argsort(-by[above], kind="stable")]
    return found


def _by_turns(lists: Sequence[Iterable[int]]) -> Iterator[int]:
    """Return the first of each list, then the second of each, and so on.

    >>> list(_by_turns([[1, 2, 3], [], [7]]))
    [1, 7, 2, 3]
    """
    turns = [iter(each) for each in lists]
    while turns:
        left = []
        for turn in turns:
            for each in turn:
                yield int(each)
                left.append(turn)
                break
        turns = left


def embed(
    panel: Panel, order: Ints, kept: Ints, progress: Report | None = None
) -> tuple[QueryPack, list[int]]:
    """Detail queries of every kind until the budget is spent; `kept` are those of the table.

    Second come the places of those where a judge and the gold contradict each other.
    """
    place = {int(query): at for at, query in enumerate(kept)}
    known = gold_texts(panel)
    details = [QueryDetails(system, known) for system in panel.systems[:IN_FULL]]
    pack, contradicted = QueryPack(), []
    for query in balanced(panel, order):
        if query not in place:
            continue
        if pack.places and (pack.size > BUDGET or pack.letters > LETTERS):
            break
        case = query_details(panel, details, query, pack.keep)
        pack.add(place[query], case)
        if disagrees(case):
            contradicted.append(place[query])
        if progress is not None:
            progress(Progress(len(pack.places), len(kept)))
    return pack, contradicted


def _data(panel: Panel, kept: Ints) -> dict[str, Any]:
    queries = panel.queries[kept]
    questions = queries.get_column("question", default=None)
    values = np.round(panel.pairing.by_query()[kept], 4).astype(object)
    values[values != values] = None  # noqa: PLR0124 - not a number
    return {
        "systems": [multiline(name) for name in panel.names],
        "measures": [
            {"name": str(each), "higher": each.higher_is_better, "unit": each.unit_interval}
            for each in panel.measures
        ],
        "lead": panel.lead,
        "other": _compared_with(panel),
        "causes": list(CAUSES),
        "label": _label_command(panel),
        "missed": _missed(panel, queries["query"].to_list()),
        "all": panel.queries.height,
        "query": [multiline(query) for query in queries["query"]],
        "question": None
        if questions is None
        else [shorten(each or "", QUESTION) for each in questions.cast(pl.String)],
        "facets": [
            {
                "name": multiline(name),
                "labels": [multiline(label) for label in labels],
                "codes": [labels.index(label) for label in panel.labels(name)[kept]],
            }
            for name, labels in panel.facets.items()
        ],
        "values": values.transpose(1, 2, 0).tolist(),  # by system, measure and query
    }


def _compared_with(panel: Panel) -> int:
    """Return the number of the system whose queries are shown first: the best; −1 for none."""
    if panel.comparison is None:
        return -1
    return panel.names.index(best_systems(panel.comparison)[0])


def _label_command(panel: Panel) -> str:
    """Return the command that makes a pool to label what the systems retrieved."""
    paths: dict[str, list[str]] = {}
    for system in panel.systems:
        for each in system.result.provenance.inputs:
            if each.path:
                paths.setdefault(each.role, []).append(shlex.quote(each.path))
    runs = dict.fromkeys(paths.get("run") or paths.get("samples") or ["RUN"])
    parts = ["findwell labels pool", *runs]
    for option, roles in (("--queries", ("gold", "samples")), ("--corpus", ("corpus",))):
        parts += (f"{option} {paths[role][0]}" for role in roles if role in paths)
    return multiline(" ".join([*parts, "-o pool"]))


def _missed(panel: Panel, queries: list[str]) -> list[list[int] | None]:
    """Return for each system and query why items were missed: a bit for each cause."""
    found: list[list[int] | None] = []
    for name in panel.names:
        by_cause = panel.misses.get(name)
        if not by_cause:
            found.append(None)
            continue
        bits = dict.fromkeys(queries, 0)
        for bit, cause in enumerate(CAUSES):
            for query in by_cause.get(cause, {}).keys() & bits.keys():
                bits[query] |= 1 << bit
        found.append([bits[query] for query in queries])
    return found


def _query_notes(panel: Panel, kept: int, opened: int) -> list[str]:
    every = panel.queries.height
    notes = []
    if kept < every:
        notes.append(
            f"The table below holds {kept:,} of {every:,} queries, failures first; the "
            "numbers and charts above are about all of them."
        )
    if opened < kept:
        notes.append(
            f"{opened:,} of {every:,} queries can be opened here, the first of every filter, so "
            "that this file stays small; `findwell view` on the result's folder opens every one."
        )
    if not any(system.result.kept.listed for system in panel.systems):
        notes.append(
            "The results do not remember the retrieved documents; `findwell score --save DIR` "
            "keeps them, and the lists then appear here."
        )
    return notes

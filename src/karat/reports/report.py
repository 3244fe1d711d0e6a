"""`karat.report`: systems side by side as one HTML page that needs nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from karat.forks import refuse_after_fork
from karat.reports.page import page
from karat.reports.panel import lay_side_by_side
from karat.reports.prepare import ReportContent, prepare
from karat.results.result import Result
from karat.storage.files import write_text
from karat.storage.folders import is_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karat.measures import Measure
    from karat.progress import Report
    from karat.read import GoldLike

KEPT = 50  # documents of each list that are shown of a run which is evaluated for the report


def report(
    *systems: object,
    output: str | os.PathLike[str] | None = None,
    baseline: str | None = None,
    only: tuple[str, str] | None = None,
    unpaired: bool = False,
    gold: GoldLike | None = None,
    measures: Iterable[str | Measure] | str | None = None,
    rel: float | None = None,
    progress: Report | None = None,
    **options: Any,  # noqa: ANN401
) -> str:
    """Return a page about one or several systems; with `output` it is also written there.

    A system is a `Result`, the folder of one, or anything that `karat.evaluate` takes, with its
    options. The first is the baseline that others are compared with, or the one of this name.
    `only` is a column of the queries and a value: the report is about these queries alone. With
    `unpaired` the systems were asked different queries; see `karat.compare`.

    >>> from karat import evaluate
    >>> html = report(evaluate({"q": ["a", "b"]}, {"q": ["b"]}, ["recall@2", "RR"]))
    >>> html.splitlines()[0]
    '<!doctype html>'
    """
    refuse_after_fork()
    prepared = prepare_report(
        systems,
        baseline=baseline,
        only=only,
        unpaired=unpaired,
        gold=gold,
        measures=measures,
        rel=rel,
        options=options,
        progress=progress,
    )
    html = page(prepared)
    if output is not None:
        write_text(output, html)
    return html


def prepare_report(
    systems: Sequence[object],
    *,
    options: dict[str, Any],
    cases: bool = True,
    progress: Report | None = None,
    **choices: Any,  # noqa: ANN401
) -> ReportContent:
    """Return what `report` shows; without `cases` that is the numbers and charts only."""
    if not all(map(_is_result, systems)):
        options = {"keep": KEPT} | options
    panel = lay_side_by_side(systems, options=options, **choices)
    return prepare(panel, cases=cases, progress=progress)


def _is_result(system: object) -> bool:
    if isinstance(system, str | os.PathLike):
        return is_folder(system)
    return isinstance(system, Result)

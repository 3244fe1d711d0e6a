"""`findwell.report`: systems side by side as one HTML page that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import OptionError
from findwell.core.forks import refuse_after_fork
from findwell.evaluation.plan import EvaluationOptions, flat_options, takes_plan
from findwell.io.read import Kind, kind_of
from findwell.io.storage.files import write_text
from findwell.io.storage.folders import is_folder
from findwell.loop.monitoring.monitor import Monitor
from findwell.loop.monitoring.store import is_trace_store
from findwell.show.monitor_page import monitor_report
from findwell.show.page import page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import ReportContent, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from findwell.core.progress import Report
    from findwell.io.read import GoldLike
    from findwell.measures import Measure

KEPT = 50  # documents of each list that are shown of a run which is evaluated for the report


@takes_plan(EvaluationOptions)
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
    **options: Any,  # noqa: ANN401 - those of EvaluationOptions
) -> str:
    """Return a page of HTML about one or several systems; `output` also writes it to a file.

    A system is a `Result`, the folder of one, or anything that `findwell.evaluate` takes, with its
    options. The others are compared with `baseline`, by default the first. `only` is a column of
    the queries and a value: the report is then about these queries alone. With `unpaired`, the
    systems were asked different queries; see `findwell.compare`. The folder of a trace store, alone
    and without options, gives the page that `findwell view` serves.

    >>> from findwell import evaluate
    >>> html = report(evaluate({"q": ["a", "b"]}, {"q": ["b"]}, ["recall@2", "RR"]))
    >>> html.splitlines()[0]
    '<!doctype html>'
    """
    refuse_after_fork()
    chosen = flat_options(options)
    if any(map(is_trace_store, systems)):
        given = {"baseline": baseline, "only": only, "gold": gold, "measures": measures, "rel": rel}
        given |= {"unpaired": unpaired or None, **chosen}
        html = store_report(systems, [name for name in given if given[name] is not None])
        if output is not None:
            write_text(output, html)
        return html
    prepared = prepare_report(
        systems,
        baseline=baseline,
        only=only,
        unpaired=unpaired,
        gold=gold,
        measures=measures,
        rel=rel,
        options=chosen,
        progress=progress,
    )
    html = page(prepared)
    if output is not None:
        write_text(output, html)
    return html


def store_report(systems: Sequence[Any], options: Sequence[str] = ()) -> str:
    """Return the page about a trace store, which takes none of the options of other reports."""
    if len(systems) > 1 or kind_of(systems[0]) is not Kind.PATH:
        raise OptionError("a trace store is reported alone", fix="name one folder")
    if options:
        raise OptionError(f"a report of a trace store takes no {options[0]!r}", fix="leave it out")
    with Monitor.open(systems[0]) as monitor:
        return monitor_report(monitor, Path(systems[0]).resolve().name)


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


def _is_result(system: Any) -> bool:  # noqa: ANN401
    kind = kind_of(system)
    return is_folder(system) if kind is Kind.PATH else kind is Kind.RESULT

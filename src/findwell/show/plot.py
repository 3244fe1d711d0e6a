"""`result.plot` and `comparison.plot`: one chart, by the name that `findwell report` gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.errors import choose
from findwell.core.forks import refuse_after_fork
from findwell.evaluation.comparison.compare import Comparison
from findwell.evaluation.results.result import Result
from findwell.show.charts.forest import forest
from findwell.show.charts.where import where_better
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import caption, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.show.charts import Chart


def plot(shown: object, name: str | None = None, **choices: Any) -> Chart:  # noqa: ANN401
    """Return a chart of a result or a comparison: the one of this name, or the first."""
    refuse_after_fork()
    if isinstance(shown, Result):
        charts = prepare(lay_side_by_side([shown], **choices), cases=False).charts
    elif isinstance(shown, Comparison):
        charts = {chart.name: chart for chart in _of_comparison(shown)}
    else:
        raise TypeError(f"{type(shown).__name__} has no charts")
    return charts[next(iter(charts)) if name is None else choose("chart", name, charts)]


def _of_comparison(found: Comparison) -> Iterator[Chart]:
    """Yield the differences, and where they come from, for each system and measure."""
    counts = found.comparisons["n"].to_list()
    about = caption(counts, found.queries, found.level, found.data_sets)
    yield forest(found).with_about(about)
    rows = [row for row in found.slices.to_dicts() if row["baseline"] == found.baseline]
    by_chart: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_chart.setdefault((row["system"], row["measure"]), []).append(row)
    names = [str(measure) for measure in found.measures]
    lead = names[0]
    whole = caption([found.queries], found.queries, found.level, found.data_sets)
    for system in found.systems[1:]:
        for measure in [lead, *(name for name in names if name != lead)]:
            mine = by_chart.get((system, measure), [])
            if mine:
                chart = where_better(found, mine)
                suffix = "" if measure == lead else f" {measure}"
                yield chart.with_about(whole, name=chart.name + suffix)

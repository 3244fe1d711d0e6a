"""`result.plot` and `comparison.plot`: one chart, by the name that `findwell report` gives it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from findwell.core.errors import choose
from findwell.core.forks import refuse_after_fork
from findwell.evaluation.comparison.compare import Comparison
from findwell.evaluation.results.result import Result
from findwell.show.charts import draw_charts
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare

if TYPE_CHECKING:
    from findwell.show.charts import Chart


def plot(shown: object, name: str | None = None, **choices: Any) -> Chart:  # noqa: ANN401
    """Return a chart of a result or a comparison: the one of this name, or the first."""
    refuse_after_fork()
    if isinstance(shown, Result):
        charts = prepare(lay_side_by_side([shown], **choices), cases=False).charts
    elif isinstance(shown, Comparison):
        drawn = chain.from_iterable(draw_charts(shown, ("comparison", "where")).values())
        charts = {chart.name: chart for chart in drawn if not isinstance(chart, str)}
    else:
        raise TypeError(f"{type(shown).__name__} has no charts")
    return charts[next(iter(charts)) if name is None else choose("chart", name, charts)]

"""Results, comparisons and explanations as people read them: text, pages, charts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from findwell.core.forks import refuse_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from findwell.core.display import Format


def render(shown: object, how: Format) -> str:
    """Return a result or what else can be shown in a format, for `findwell.core.display`."""
    from findwell.evaluation.comparison.compare import Comparison  # noqa: PLC0415
    from findwell.evaluation.explanation.explain import Explanation  # noqa: PLC0415
    from findwell.evaluation.results.estimates import Estimates  # noqa: PLC0415
    from findwell.evaluation.results.result import Result  # noqa: PLC0415
    from findwell.loop.tuning.tuning import Tuning  # noqa: PLC0415
    from findwell.show import comparison, estimates, explanation, html, result, tuning  # noqa: PLC0415

    refuse_after_fork()
    kinds: dict[type, tuple[Callable[[Any], str], Callable[..., str]]] = {
        Result: (html.result_html, result.render),
        Estimates: (html.estimates_html, estimates.render),
        Comparison: (
            html.comparison_html,
            partial(comparison.render, moved=0 if how == "text" else 5),
        ),
    }
    if how != "latex":
        kinds |= {
            Explanation: (html.explanation_html, explanation.render),
            Tuning: (tuning.tuning_html, tuning.render),
        }
    for kind, (as_html, as_text) in kinds.items():
        if isinstance(shown, kind):
            return as_html(shown) if how == "html" else as_text(shown, how.replace("text", "table"))
    raise TypeError(f"{type(shown).__name__} cannot be shown as {how}")

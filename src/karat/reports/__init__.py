"""Results, comparisons and explanations as people read them: text, pages, charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.forks import refuse_after_fork

if TYPE_CHECKING:
    from karat.display import Format


def render(shown: object, how: Format) -> str:
    """Return a result, a comparison or an explanation in a format, for `karat.display`."""
    from karat.comparison.compare import Comparison  # noqa: PLC0415
    from karat.explanation.explain import Explanation  # noqa: PLC0415
    from karat.reports import comparison, estimates, explanation, html, result  # noqa: PLC0415
    from karat.results.estimates import Estimates  # noqa: PLC0415
    from karat.results.result import Result  # noqa: PLC0415

    refuse_after_fork()
    name = "table" if how == "text" else how
    if isinstance(shown, Result):
        return html.result_html(shown) if how == "html" else result.render(shown, name)
    if isinstance(shown, Estimates):
        return html.estimates_html(shown) if how == "html" else estimates.render(shown, name)
    if isinstance(shown, Comparison):
        moved = 0 if how == "text" else 5
        if how == "html":
            return html.comparison_html(shown)
        return comparison.render(shown, name, moved=moved)
    if isinstance(shown, Explanation) and how != "latex":
        return html.explanation_html(shown) if how == "html" else explanation.render(shown, name)
    raise TypeError(f"{type(shown).__name__} cannot be shown as {how}")

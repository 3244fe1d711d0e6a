"""Results, comparisons and explanations as people read them: text, pages, charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.display import Format


def render(shown: object, how: Format) -> str:
    """Return what `karat.display` was given in a format: notebooks, papers and terminals ask."""
    from karat.comparison.compare import Comparison  # noqa: PLC0415
    from karat.explanation.explain import Explanation  # noqa: PLC0415
    from karat.report import comparison, explanation, latex, notebook, text  # noqa: PLC0415
    from karat.results.result import Result  # noqa: PLC0415

    if isinstance(shown, Result):
        return notebook.result_html(shown) if how == "html" else text.render(shown, TEXT[how])
    if isinstance(shown, Explanation) and how in ("html", "text", "markdown"):
        return (
            notebook.explanation_html(shown)
            if how == "html"
            else explanation.render(shown, TEXT[how])
        )
    if isinstance(shown, Comparison):
        if how == "html":
            return notebook.comparison_html(shown)
        if how == "latex":
            return latex.comparison_table(shown)
        return comparison.render(shown, TEXT[how], moved=5 if how == "markdown" else 0)
    raise TypeError(f"{type(shown).__name__} cannot be shown as {how}")


TEXT = {"text": "table", "markdown": "markdown", "latex": "latex"}

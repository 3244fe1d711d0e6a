"""Results, comparisons and explanations as people read them: text, pages, charts."""

from __future__ import annotations

import importlib
import shutil
from typing import TYPE_CHECKING, Any

from findwell.core.forks import refuse_after_fork

if TYPE_CHECKING:
    from findwell.show.document import Document

# the class of what is shown, and the function that makes a document of it
DOCUMENTS = {
    "Result": ("result", "document"),
    "Estimates": ("result", "estimates_document"),
    "Comparison": ("comparison", "document"),
    "GateReport": ("gate", "document"),
    "PowerAnalysis": ("power", "document"),
    "Explanation": ("explanation", "document"),
    "Tuning": ("tuning", "document"),
    "Agreement": ("agreement", "document"),
    "JudgeCard": ("judge_card", "document"),
    "JudgeComparison": ("judge_card", "comparison_document"),
    "JudgeCheck": ("judge_check", "document"),
}


def document_of(shown: object, **choices: Any) -> Document:  # noqa: ANN401
    """Return what is to be shown of a result, a comparison or the like; `choices` are its own."""
    refuse_after_fork()
    for kind in type(shown).__mro__:
        if kind.__name__ in DOCUMENTS:
            module, name = DOCUMENTS[kind.__name__]
            make = getattr(importlib.import_module(f"findwell.show.{module}"), name)
            made: Document = make(shown, **choices)
            return made
    raise TypeError(f"{type(shown).__name__} cannot be shown")


def render(
    shown: object,
    how: str,
    *,
    color: bool = False,
    width: int | None = None,
    **choices: Any,  # noqa: ANN401
) -> str:
    """Return a result or what else can be shown in a format of `findwell.show.writers`.

    `text` is for Python: it fits a screen.
    """
    from findwell.show.writers import write  # noqa: PLC0415

    if how == "text":
        width = width or shutil.get_terminal_size().columns
    return write(document_of(shown, **choices), how, color=color, width=width)

"""The writers: each shows any `Document` in one format, and decides nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from findwell.show import escape
from findwell.show.document import Code, Document, LetterChart, Line, Notes
from findwell.show.escape import printable
from findwell.show.grid import Grid
from findwell.show.tables import (
    ROW_FORMATS,
    bullets,
    describe_finding,
    latex,
    latex_notes,
    markdown,
    reading_width,
    to_json,
    to_rows,
)
from findwell.show.terminal import BAD, GOOD, PLAIN, terminal, wrap

if TYPE_CHECKING:
    from findwell.show.document import Headline, Part

NOTEBOOK_ROWS = 100  # of a table in a notebook
SCREEN_ROWS = 10  # of a table that is printed in Python
COLORS = {"better": GOOD, "worse": BAD}


def write(document: Document, how: str, *, color: bool = False, width: int | None = None) -> str:
    """Return a document in a format, with a line break at the end.

    The formats are `table` for a terminal, `text` for Python, `markdown`, `html` for notebooks,
    `latex`, `json`, and those with one row per line. `width` is that of the terminal.
    """
    if how == "table":
        return to_terminal(document, color=color, width=width)
    if how == "text":
        return to_text(document, width)
    if how in WRITERS:
        return WRITERS[how](document)
    if how in ROW_FORMATS and document.rows is not None:
        return to_rows(document.rows(), how)
    if how == "json" and document.data is not None:
        return to_json(document.data())
    raise TypeError(f"this cannot be shown as {how}")


def to_terminal(document: Document, *, color: bool = False, width: int | None = None) -> str:
    """Return a document for a terminal: one blank line after each part."""
    sentences = reading_width(width)

    def shown(part: Part) -> str:
        if isinstance(part, Grid):
            return terminal(part, color=color, width=width)
        if isinstance(part, Line):
            return wrap(printable(part.text), width if part.in_papers else sentences)
        if isinstance(part, Notes):
            return bullets(part.lines, "table", width if part.whole else sentences)
        if isinstance(part, LetterChart):
            return part.draw(sentences)
        return f"{part.title[:1].lower()}{part.title[1:]}:\n\n{part.text}"

    heads = [_headline(each, sentences, color=color) for each in document.headlines]
    texts = [*heads, *map(shown, document.parts)]
    return "".join(f"{text.rstrip()}\n\n" for text in texts if text.strip())


def _headline(headline: Headline, width: int, *, color: bool) -> str:
    sentence = wrap(printable(headline.sentence), width)
    if color and (paint := COLORS.get(headline.word or "")):
        sentence = f"{paint}{sentence}{PLAIN}"
    return f"{sentence}\n{bullets(headline.facts, 'table', width)}"


def to_text(document: Document, width: int | None) -> str:
    """Return what Python prints: what the terminal shows, cut to fit a screen, and findings."""
    kept = [
        replace(
            part,
            rows=part.rows[:SCREEN_ROWS],
            note=part.note or _more_rows(part, SCREEN_ROWS),
        )
        if isinstance(part, Grid)
        else part
        for part in document.parts
        if not isinstance(part, Code | LetterChart)
    ]
    found = tuple(f"note: {describe_finding(each)}" for each in document.findings)
    short = Document([*kept, Notes(found)], headlines=document.headlines)
    return to_terminal(short, width=width).rstrip()


def _more_rows(grid: Grid, most: int) -> str:
    return f"and {len(grid.rows) - most:,} more rows" if len(grid.rows) > most else ""


def to_markdown(document: Document) -> str:
    """Return a document as GitHub Markdown."""

    def shown(part: Part) -> str:
        if isinstance(part, Grid):
            return markdown(part)
        if isinstance(part, Line):
            return escape.markdown(part.text)
        if isinstance(part, Notes):
            return bullets(part.lines, "markdown")
        return f"{part.title}:\n\n```\n{part.text.rstrip()}\n```" if isinstance(part, Code) else ""

    heads = [
        f"**{escape.markdown(each.sentence)}**"
        + (f": {escape.markdown(' · '.join(each.facts))}" if each.facts else "")
        for each in document.headlines
    ]
    texts = [*heads, *map(shown, document.parts)]
    return "\n\n".join(text.rstrip() for text in texts if text.strip()) + "\n"


def to_latex(document: Document) -> str:
    """Return the tables of a document for a paper; what is said in papers is a comment."""
    said = (part.text for part in document.parts if isinstance(part, Line) and part.in_papers)
    tables = document.tables if document.paper is None else [document.paper()]
    text = latex_notes(said) + "\n".join(map(latex, tables))
    return re.sub(r"\bp \\textless\{\} (\d[\d.]*\d)", r"$p < \1$", text)


def to_html(document: Document) -> str:
    """Return a document as HTML for notebooks, which style it; the best of a column is bold."""
    from findwell.show.html import render  # noqa: PLC0415 - templates are for pages alone

    return render(
        "notebook.html.j2",
        document=document,
        findings=[describe_finding(each) for each in document.findings],
        most=NOTEBOOK_ROWS,
    )


WRITERS = {"html": to_html, "latex": to_latex, "markdown": to_markdown}

"""What is to be shown of a result, without markup.

Each result is made into a `Document` once, by the module of its kind, and the writers below show
any of them: in a terminal, as Markdown, as HTML in a notebook, for a paper, as rows. So all of them
say the same words and the same digits. What it holds for JSON, the command line puts into its
envelope.
"""

from __future__ import annotations

import importlib
import re
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from findwell.core.forks import refuse_after_fork
from findwell.show import escape
from findwell.show.escape import printable
from findwell.show.grid import Grid
from findwell.show.tables import (
    BAD_COLOR,
    GOOD_COLOR,
    NO_COLOR,
    ROW_FORMATS,
    bullets,
    describe_finding,
    latex,
    latex_notes,
    markdown,
    reading_width,
    terminal,
    to_rows,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import polars as pl

    from findwell.core.findings import Finding
    from findwell.core.verdict import Word


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer, before any table: a sentence, and the facts that it rests on."""

    sentence: str  # minilm is better than bm25
    facts: tuple[str, ...] = ()  # recall@5 0.618 → 0.814 (+0.089 to +0.300)
    word: Word | None = None  # of the verdict, where there is one
    system: str = ""  # that the verdict is about


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence or a heading of its own."""

    kind: ClassVar[str] = "line"

    text: str
    in_papers: bool = False  # as a comment above the tables; about a judge


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of sentences."""

    kind: ClassVar[str] = "notes"

    lines: tuple[str, ...]
    whole: bool = False  # one line each, where they are not written to a terminal
    commands: tuple[str, ...] = ()  # what to type about each line; empty where there is nothing


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to copy as they are, and what they are for."""

    kind: ClassVar[str] = "code"

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class LetterChart:
    """A chart made of letters, which only a terminal shows; it is drawn as wide as is asked for."""

    kind: ClassVar[str] = "chart"

    draw: Callable[[int], str]


Part: TypeAlias = Grid | Line | Notes | Code | LetterChart


class Document:
    """What is to be shown: headlines first, then parts in their order, then findings.

    Nothing is made before a writer asks for it: `parts` may be a generator, `data` and `verdicts`
    (for JSON) and `rows` (for formats with one row per line) are functions. `paper` has the tables
    for LaTeX, if they are not those of the parts. `judges` says who judged and what that is worth:
    a column of the rows that a judge decided.
    """

    def __init__(
        self,
        parts: Iterable[Part],
        *,
        headlines: Sequence[Headline] = (),
        findings: Sequence[Finding] = (),
        data: Callable[[], Mapping[str, Any]] = dict,
        verdicts: Callable[[], Iterable[dict[str, Any]]] = tuple,
        rows: Callable[[], pl.DataFrame] | None = None,
        paper: Callable[[], Grid] | None = None,
        judges: Sequence[str] = (),
    ) -> None:
        self._parts = parts
        self.headlines = tuple(headlines)
        self.findings = tuple(findings)
        self.data, self.verdicts, self.rows, self.paper = data, verdicts, rows, paper
        self.judges = tuple(judges)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The tables, sentences and charts, in their order."""
        return tuple(self._parts)

    @property
    def tables(self) -> tuple[Grid, ...]:
        """The tables."""
        return tuple(part for part in self.parts if isinstance(part, Grid))


NOTEBOOK_ROWS = 100  # of a table in a notebook
SCREEN_ROWS = 10  # of a table that is printed in Python
COLORS = {"better": GOOD_COLOR, "worse": BAD_COLOR}


def write(document: Document, how: str, *, color: bool = False, width: int | None = None) -> str:
    """Return a document in a format, with a line break at the end.

    The formats are `table` for a terminal, `text` for Python, `markdown`, `html` for notebooks,
    `latex`, and those with one row per line. `width` is that of the terminal.
    """
    if how == "table":
        return to_terminal(document, color=color, width=width)
    if how == "text":
        return to_text(document, width)
    if how in WRITERS:
        return WRITERS[how](document)
    if how in ROW_FORMATS and document.rows is not None:
        return to_rows(_with_judges(document.rows(), document.judges), how)
    raise TypeError(f"this cannot be shown as {how}")


def _with_judges(rows: pl.DataFrame, judges: Sequence[str]) -> pl.DataFrame:
    """Say in a column who judged, in those rows that a judge decided."""
    if not judges or "judge" in rows.columns:
        return rows
    import polars as pl  # noqa: PLC0415

    from findwell.judges.limits import is_judged  # noqa: PLC0415 - few results have a judge

    said = pl.lit("; ".join(judges))
    if "relation" in rows.columns:
        drawn = [each for each in rows["relation"].unique() if each and is_judged(each)]
        said = pl.when(pl.col("relation").is_in(drawn)).then(said)
    elif "method" in rows.columns:  # of estimates
        said = pl.when(pl.col("method") != "labels").then(said)
    return rows.with_columns(judge=said)


def to_terminal(document: Document, *, color: bool = False, width: int | None = None) -> str:
    """Return a document for a terminal: one blank line after each part."""
    sentences = reading_width(width)

    def shown(part: Part) -> str:
        if isinstance(part, Grid):
            return terminal(part, color=color, width=width)
        if isinstance(part, Line):
            return wrap(printable(part.text), width if part.in_papers else sentences)
        if isinstance(part, Notes):
            return _terminal_notes(part, width if part.whole else sentences)
        if isinstance(part, LetterChart):
            return part.draw(sentences)
        return f"{part.title[:1].lower()}{part.title[1:]}:\n\n{part.text}"

    heads = [_headline(each, sentences, color=color) for each in document.headlines]
    texts = [*heads, *map(shown, document.parts)]
    return "".join(f"{text.rstrip()}\n\n" for text in texts if text.strip())


def _terminal_notes(notes: Notes, width: int | None) -> str:
    """Return sentences for a terminal; a command is never broken, so that it can be copied."""
    return "".join(
        bullets([line], "table", width) + (f"    {printable(typed)}\n" if typed else "")
        for line, typed in zip_longest(notes.lines, notes.commands, fillvalue="")
    )


def _headline(headline: Headline, width: int, *, color: bool) -> str:
    sentence = wrap(printable(headline.sentence), width)
    if color and (paint := COLORS.get(headline.word or "")):
        sentence = f"{paint}{sentence}{NO_COLOR}"
    return f"{sentence}\n{bullets(headline.facts, 'table', width)}"


def to_text(document: Document, width: int | None) -> str:
    """Return what Python prints: what the terminal shows, cut to fit a screen, and findings."""

    def short(grid: Grid) -> Grid:
        more = len(grid.rows) - SCREEN_ROWS
        note = grid.note or (f"and {more:,} more rows" if more > 0 else "")
        return replace(grid, rows=grid.rows[:SCREEN_ROWS], note=note)

    kept = [
        short(part) if isinstance(part, Grid) else part
        for part in document.parts
        if not isinstance(part, Code | LetterChart)
    ]
    found = tuple(f"note: {describe_finding(each)}" for each in document.findings)
    shown = Document([*kept, Notes(found)], headlines=document.headlines)
    return to_terminal(shown, width=width).rstrip()


def to_markdown(document: Document) -> str:
    """Return a document as GitHub Markdown."""

    def shown(part: Part) -> str:
        if isinstance(part, Grid):
            return markdown(part)
        if isinstance(part, Line):
            return escape.markdown(part.text)
        if isinstance(part, Notes):
            typed = (f"\n  `{each}`" if each else "" for each in part.commands)
            shown = map(escape.markdown, part.lines)
            return "".join(f"- {a}{b}\n" for a, b in zip_longest(shown, typed, fillvalue=""))
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

# the class of what is shown, and the function that makes a document of it
DOCUMENTS = {
    "Result": ("result", "document"),
    "Estimates": ("result", "estimates_document"),
    "Comparison": ("comparison", "document"),
    "GateReport": ("gate", "document"),
    "PowerAnalysis": ("power", "document"),
    "Diagnosis": ("doctor", "document"),
    "Explanation": ("explanation", "document"),
    "Tuning": ("tuning", "document"),
    "Agreement": ("agreement", "document"),
    "JudgeCard": ("judge_card", "document"),
    "JudgeComparison": ("judge_card", "comparison_document"),
    "Teaching": ("judge_card", "teaching_document"),
    "JudgeCheck": ("judge_check", "document"),
    "CheckReport": ("alarms", "document"),
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
    """Return a result or what else can be shown in a format.

    `text` is for Python: it fits a screen.
    """
    if how == "text":
        width = width or shutil.get_terminal_size().columns
    return write(document_of(shown, **choices), how, color=color, width=width)

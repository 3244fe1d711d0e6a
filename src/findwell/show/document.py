"""What is to be shown of a result, without markup.

Each result is made into a `Document` once, by the module of its kind, and `findwell.show.writers`
show any of them: in a terminal, as Markdown, as HTML in a notebook, for a paper, as JSON or rows.
So all of them say the same words and the same digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from findwell.show.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from findwell.core.findings import Finding
    from findwell.core.verdict import Word


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer, before any table: a sentence, and the facts that it rests on."""

    sentence: str  # minilm is better than bm25
    facts: tuple[str, ...] = ()  # recall@5 0.618 → 0.814 (+0.089 to +0.300)
    word: Word | None = None  # of the verdict, where there is one


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

    Nothing is made before a writer asks for it: `parts` may be a generator, `data` (for JSON) and
    `rows` (for formats with one row per line) are functions. `paper` has the tables for LaTeX, if
    they are not those of the parts.
    """

    def __init__(
        self,
        parts: Iterable[Part],
        *,
        headlines: Sequence[Headline] = (),
        findings: Sequence[Finding] = (),
        data: Callable[[], object] | None = None,
        rows: Callable[[], pl.DataFrame] | None = None,
        paper: Callable[[], Grid] | None = None,
    ) -> None:
        self._parts = parts
        self.headlines = tuple(headlines)
        self.findings = tuple(findings)
        self.data, self.rows, self.paper = data, rows, paper

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The tables, sentences and charts, in their order."""
        return tuple(self._parts)

    @property
    def tables(self) -> tuple[Grid, ...]:
        """The tables."""
        return tuple(part for part in self.parts if isinstance(part, Grid))

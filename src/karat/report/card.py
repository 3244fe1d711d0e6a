"""A judge card as text: the figures, the confusion matrix, the slices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from karat.report.layout import Grid, number
from karat.report.text import markdown, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from karat.judges.cards.card import CardFigure, JudgeCard
    from karat.judges.cards.recalibrate import Recalibration

FORMATS = ("table", "json", "markdown")
IN_SLICES = ("kappa", "precision", "recall", "bias")


def render(card: JudgeCard, how: str) -> str:
    """Return a card in one of FORMATS."""
    if how == "json":
        return json.dumps(card.as_dict(), indent=1, ensure_ascii=False) + "\n"
    grids = list(_grids(card))
    return "\n".join(map(markdown, grids)) if how == "markdown" else "".join(map(terminal, grids))


def _grids(card: JudgeCard) -> Iterator[Grid]:
    failed = f", {card.failed} failed" if card.failed else ""
    title = (
        f"{card.judge} · {card.aspect} · {card.pairs} labels of {card.labels}, "
        f"{card.questions} questions{failed}"
    )
    header = ["statistic", "value", "low", "high", "n"]
    rows = [
        [figure.statistic + _because(figure), *_limits(figure), str(figure.n)]
        for figure in card.figures
    ]
    yield Grid(title, header, rows)
    labels = [str(label) for label in card.confusion.labels]
    counts = [
        [f"judge {label}", *map(str, row)]
        for label, row in zip(labels, card.confusion.counts, strict=True)
    ]
    yield Grid("how often", ["", *(f"people {label}" for label in labels)], counts)
    for column in dict.fromkeys(part.column for part in card.slices):
        parts = [part for part in card.slices if part.column == column]
        lines = [[part.value, *_selected(part.figures), str(part.pairs)] for part in parts]
        yield Grid(f"by {column}", [column, "kappa", "low", "high", *IN_SLICES[1:], "n"], lines)
    if card.recalibration is not None:
        yield _recalibration(card.recalibration)


def _because(figure: CardFigure) -> str:
    return f" ({figure.reason})" if figure.reason else ""


def _limits(figure: CardFigure) -> list[str]:
    return [number(figure.value), number(figure.low), number(figure.high)]


def _selected(figures: Sequence[CardFigure]) -> list[str]:
    found = {figure.statistic: figure for figure in figures}
    rest = [number(found[name].value) for name in IN_SLICES[1:]]
    return [*_limits(found["kappa"]), *rest]


def _recalibration(found: Recalibration) -> Grid:
    rows = [
        ["as it is", number(found.before), number(found.kappa_before)],
        ["chosen on these labels", number(found.threshold), number(found.kappa)],
    ]
    title = f"threshold · use it with --judge '{found.judge}' · the second κ is cross-validated"
    return Grid(title, ["threshold", "from", "kappa"], rows)

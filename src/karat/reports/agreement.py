"""Agreement as text: of rankings, systems and labels, and of a judge with people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.reports.grid import Grid
from karat.reports.tables import number, render_grids, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from karat.comparison.agree import Agreement
    from karat.judges.cards.card import CardFigure, JudgeCard
    from karat.judges.cards.recalibrate import Recalibration

FORMATS = ("table", "json", "csv", "markdown")
CARD_FORMATS = ("table", "json", "markdown")
CARD_SLICES = ("kappa", "precision", "recall", "bias")
AGREEMENT = (
    (0.8, "almost perfect"),
    (0.6, "substantial"),
    (0.4, "moderate"),
    (0.2, "fair"),
    (0.0, "slight"),
    (-1.0, "no"),
)
TITLES = {
    "rankings": "rankings: the mean over queries",
    "systems": "orders of systems",
    "labels": "labels",
    "annotators": "annotators: n pairs have two labels or more, undefined ones have one",
}


def render(found: Agreement, how: str, *, details: bool = False, width: int | None = None) -> str:
    """Return the agreement in one of FORMATS; `csv` holds the details if these are asked for."""
    if how == "json":
        return to_json(found.as_dict())
    if how == "csv":
        return (found.details if details else found.summary).write_csv()
    shown = _grids(found, details=details or found.kind == "labels")
    return render_grids(shown, how, width=width)


def _grids(found: Agreement, *, details: bool) -> Iterator[Grid]:
    limits = bool(found.summary["low"].is_not_null().any())
    yield Grid(
        TITLES[found.kind],
        ["statistic", "value", *(["low", "high"] if limits else []), "n", "undefined"],
        [
            [row["statistic"] + (f" ({row['reason']})" if row["reason"] else "")]
            + [number(row["value"])]
            + ([number(row["low"]), number(row["high"])] if limits else [])
            + [str(row["n"]), str(row["undefined"])]
            for row in found.summary.to_dicts()
        ],
    )
    if details:
        yield _confusion(found.details) if found.kind == "labels" else _details(found.details)


def _confusion(details: pl.DataFrame) -> Grid:
    """One row per label of the first side, one column per label of the second."""
    labels = details["first"].unique(maintain_order=True).to_list()
    counts = {(one, other): count for one, other, count in details.rows()}
    rows = [[label, *(str(counts[label, other]) for other in labels)] for label in labels]
    return Grid("how often: the first in rows, the second in columns", ["label", *labels], rows)


def _details(details: pl.DataFrame) -> Grid:
    texts = [
        name for name in details.columns if name in ("query", "measure", "system", "of", "name")
    ]
    rows = [
        [row[name] or "" if name in texts else _figure(row[name]) for name in details.columns]
        for row in details.to_dicts()
    ]
    return Grid("one by one", details.columns, rows, left=len(texts))


def _figure(value: float | None) -> str:
    """Return a count as it is, any other number with four digits."""
    return str(value) if isinstance(value, int) else number(value)


def render_card(card: JudgeCard, how: str, *, width: int | None = None) -> str:
    """Return a card in one of CARD_FORMATS."""
    if how == "json":
        return to_json(card.as_dict())
    return render_grids(_card_grids(card), how, width=width)


def _card_grids(card: JudgeCard) -> Iterator[Grid]:
    failed = f", {card.failed} failed" if card.failed else ""
    title = (
        f"{card.judge} · {card.aspect} · {card.pairs} labels of {card.labels}, "
        f"{card.questions} questions{failed}"
    )
    header = ["statistic", "value", "low", "high", "n"]
    rows = [
        [each.statistic + (f" ({each.reason})" if each.reason else ""), *_limits(each), str(each.n)]
        for each in card.figures
    ]
    yield Grid(title, header, rows, note=in_words(card.figures))
    labels = [str(label) for label in card.confusion.labels]
    counts = [
        [f"judge {label}", *map(str, row)]
        for label, row in zip(labels, card.confusion.counts, strict=True)
    ]
    yield Grid("how often", ["", *(f"people {label}" for label in labels)], counts)
    for column in dict.fromkeys(part.column for part in card.slices):
        parts = [part for part in card.slices if part.column == column]
        lines = [[part.value, *_selected(part.figures), str(part.pairs)] for part in parts]
        yield Grid(f"by {column}", [column, "kappa", "low", "high", *CARD_SLICES[1:], "n"], lines)
    if card.recalibration is not None:
        yield _recalibration(card.recalibration)


def in_words(figures: Sequence[CardFigure]) -> str:
    """Say what κ and bias mean, in the words that Landis and Koch gave to κ (1977)."""
    value = {figure.statistic: figure.value for figure in figures}
    sentences = []
    if (kappa := value.get("kappa")) is not None:
        word = next(word for least, word in AGREEMENT if kappa >= least)
        sentences.append(
            f"κ {kappa:.2f} is {word} agreement beyond chance (0 is chance, 1 is perfect)"
        )
    if (bias := value.get("bias")) is not None:
        more = "more" if bias > 0 else "less"
        often = f"{abs(bias) * 100:.0f} points {more} often than people"
        sentences.append(f"the judge says yes {'as often as people' if not bias else often}")
    return "; ".join(sentences)


def _limits(figure: CardFigure) -> list[str]:
    return [number(figure.value), number(figure.low), number(figure.high)]


def _selected(figures: Sequence[CardFigure]) -> list[str]:
    found = {figure.statistic: figure for figure in figures}
    rest = [number(found[name].value) for name in CARD_SLICES[1:]]
    return [*_limits(found["kappa"]), *rest]


def _recalibration(found: Recalibration) -> Grid:
    rows = [
        ["as it is", number(found.before), number(found.kappa_before)],
        ["chosen on these labels", number(found.threshold), number(found.kappa)],
    ]
    title = f"threshold · use it with --judge '{found.judge}' · the second κ is cross-validated"
    return Grid(title, ["threshold", "from", "kappa"], rows)

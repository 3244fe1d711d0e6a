"""How far judges agree with people: one card, or several judges side by side."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from findwell.core.spelling import counted
from findwell.show.document import Document
from findwell.show.grid import Grid
from findwell.show.tables import chance, interval, limits, number, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from findwell.core.estimate import Estimate
    from findwell.judges.cards.card import BiasProbe, CardFigure, JudgeCard, JudgeComparison
    from findwell.judges.taught import Teaching
    from findwell.statistics.calibration import Calibration

OTHER_LABELS = "these cards were measured on different labels: their κ cannot be compared"
NO_GAIN = "no gain was shown on questions that did not teach"
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


def document(card: JudgeCard) -> Document:
    """Return how far one judge agrees with people."""
    return Document(_card_grids(card), data=card.as_dict)


def _card_grids(card: JudgeCard) -> Iterator[Grid]:
    failed = f", {card.failed} failed" if card.failed else ""
    title = (
        f"{card.judge} · {card.aspect} · {counted(card.pairs, 'label', 'labels')} of "
        f"{card.labels}, {counted(card.questions, 'question', 'questions')}{failed}"
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
    yield from _further(card)


def _further(card: JudgeCard) -> Iterator[Grid]:
    if card.calibration is not None:
        yield _reliability(card.calibration, card.level)
    if card.bias is not None:
        yield _probe(card.bias, card.level)


def in_words(figures: Sequence[CardFigure]) -> str:
    """Say what κ and bias mean, in the words that Landis and Koch gave to κ (1977)."""
    value = {figure.statistic: figure.value for figure in figures}
    sentences = []
    if (kappa := value.get("kappa")) is not None:
        word = next(word for least, word in AGREEMENT if kappa >= least)
        said = f"κ {kappa:.2f} is {word} agreement beyond chance (0 is chance, 1 is perfect)"
        if any(each.is_chance for each in figures if each.statistic == "kappa"):
            said = f"κ {kappa:.2f} may be chance: these labels do not show that the judge is better"
        sentences.append(said)
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


def _reliability(found: Calibration, level: float) -> Grid:
    """Lay out the reliability curve."""
    rows = [
        [
            f"{each.start:.1f} … {each.end:.1f}",
            number(each.predicted),
            number(each.observed),
            interval(each.low, each.high),
            str(each.n),
        ]
        for each in found.bins
    ]
    around = interval(found.brier_low, found.brier_high)
    score = "" if found.brier_low is None else f", {100 * level:g}% interval {around}"
    note = (
        f"expected calibration error {found.expected_calibration_error:.4f} (0 is perfect); Brier "
        f"score {found.brier:.4f}{score} (0 is perfect, {found.uninformed:.4f} is that of always "
        "saying how often people say yes)"
    )
    title = f"calibration: {found.n} verdicts with a probability"
    header = ["probability of yes", "mean", "people say yes", f"{100 * level:g}% interval", "n"]
    return Grid(title, header, rows, note=note)


def _probe(found: BiasProbe, level: float) -> Grid:
    """Lay out what probing for bias found."""
    rows = [
        [
            each.statistic + (f" ({each.reason})" if each.reason else ""),
            "" if each.flips is None else str(each.flips),
            number(each.value),
            interval(each.low, each.high),
            str(each.n),
        ]
        for each in found.figures
    ]
    failed = f", {found.failed} verdicts failed" if found.failed else ""
    title = f"probed for bias with {found.calls} calls{failed}"
    return Grid(title, ["statistic", "flips", "value", f"{100 * level:g}% interval", "n"], rows)


def teaching_document(taught: Teaching) -> Document:
    """Return what labels have taught a judge, before and after, on questions that did not teach."""
    title = (
        f"{taught.name} · {taught.aspect} · taught with {counted(taught.pairs, 'label', 'labels')} "
        f"of {taught.labels}, {counted(taught.questions, 'question', 'questions')}"
    )
    found: tuple[tuple[str, Estimate], ...] = (
        ("kappa before", taught.before),
        ("kappa after, held out", taught.after),
        ("gain, held out", taught.gain),
    )
    if taught.example_gain is not None:
        found += (("gain of examples, held out", taught.example_gain),)
    rows = [[name, number(each.value), interval(each.low, each.high)] for name, each in found]
    rows += [
        ["Brier score before", number(taught.brier_before), ""],
        ["Brier score after, held out", number(taught.brier_after), ""],
    ]
    note = "a gain on questions that were left out of the fit"
    if taught.examples:
        note += f" by {len(taught.examples)} examples, which the model is shown"
    if not taught.helps:
        note = f"{NO_GAIN}: verdicts stay as they were, only the probabilities follow the labels"
    header = ["statistic", "value", f"{100 * taught.gain.level:g}% interval"]
    return Document([Grid(title, header, rows, note=note)], data=taught.as_dict)


def comparison_document(found: JudgeComparison) -> Document:
    """Return several judges: side by side, then how well calibrated and biased each one is."""
    if not found.differences:
        return Document([_kept_side_by_side(found)], data=found.as_dict)
    further = (
        replace(grid, title=f"{card.judge} · {grid.title}")
        for card in found.cards
        for grid in _further(card)
    )
    return Document(chain([_side_by_side(found)], further), data=found.as_dict)


def _kept_side_by_side(found: JudgeComparison) -> Grid:
    """Show one row for each card that was kept: agreement, calibration, cost and time."""
    columns = list(dict.fromkeys(part.column for card in found.cards for part in card.slices))
    ranked = [each for each in columns if any(card.tau(each) is not None for card in found.cards)]
    shown: dict[str, Callable[[JudgeCard], str]] = {
        "judge": lambda card: card.judge,
        "labels": lambda card: card.labels,
        "kappa": lambda card: number(card["kappa"].value),
        f"{found.cards[0].level:.0%} interval": lambda card: interval(
            card["kappa"].low, card["kappa"].high
        ),
        **{f"tau by {each}": _tau_by(each) for each in ranked},
        "ECE": lambda card: number(getattr(card.calibration, "expected_calibration_error", None)),
        "Brier": lambda card: number(getattr(card.calibration, "brier", None)),
        "n": lambda card: str(card.pairs),
        "failed": lambda card: str(card.failed),
        "calls": lambda card: str(card.about.get("calls", "")),
        "cost": lambda card: number(card.about.get("cost")),
        "seconds": lambda card: "" if card.seconds is None else f"{card.seconds:.1f}",
    }
    aspects = ", ".join(dict.fromkeys(card.aspect for card in found.cards))
    note = "" if found.is_comparable else OTHER_LABELS
    return Grid.of(f"{len(found.cards)} cards · {aspects}", shown, found.cards, left=2, note=note)


def _tau_by(column: str) -> Callable[[JudgeCard], str]:
    return lambda card: number(card.tau(column))


def _side_by_side(found: JudgeComparison) -> Grid:
    """One row per judge."""
    first = found.cards[0]
    rows = []
    for card, apart in zip(found.cards, (None, *found.differences), strict=True):
        kappa, calibration = card["kappa"], card.calibration
        rows.append(
            [
                card.judge,
                number(kappa.value),
                interval(kappa.low, kappa.high),
                "" if apart is None else signed(apart.value),
                "" if apart is None else limits(apart.low, apart.high),
                "" if apart is None else chance(apart.p_value),
                *(number(card[name].value) for name in CARD_SLICES[1:]),
                "" if calibration is None else number(calibration.expected_calibration_error),
                "" if calibration is None else number(calibration.brier),
                str(card.pairs),
                str(card.failed),
            ]
        )
    header = ["judge", "kappa", f"{first.level:.0%} interval", "difference", "limits", "p"]
    header += [*CARD_SLICES[1:], "ECE", "Brier", "n", "failed"]
    values = [each["kappa"].value for each in found.cards]
    able = [each["kappa"].value for each in found.cards if not each["kappa"].is_chance]
    best = max((value for value in able if value is not None), default=None)
    leading = {(at, 1) for at, value in enumerate(values) if value is not None and value == best}
    title = (
        f"{len(found.cards)} judges · {first.aspect} · labels of {first.labels} · difference of "
        f"κ from {first.judge}, on the pairs that both judged"
    )
    return Grid(title, header, rows, best=leading)

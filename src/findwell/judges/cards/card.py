"""Judge cards: how far a judge agrees with people, measured on their labels, kept and cited."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import InputError, OptionError, SaveError, choose
from findwell.core.forks import refuse_after_fork
from findwell.io.storage.database import cache_folder
from findwell.io.storage.files import write_text
from findwell.io.storage.private import make_folder
from findwell.judges.aspects import ASPECTS
from findwell.judges.cards.bias import BiasProbe, ProbeFigure, find_bias, probing_judges
from findwell.judges.cards.labels import LabelledPairs, load_labels
from findwell.judges.cards.samples import LabelledSamples
from findwell.judges.find import find_judge
from findwell.statistics.agreement import (
    ONE_SIDED,
    Confusion,
    confusion,
    disagreement,
    is_one_sided,
    kappa_limits,
    kappa_of,
)
from findwell.statistics.calibration import Calibration, calibration
from findwell.statistics.intervals import as_units, cluster_codes, estimate, interval
from findwell.statistics.values import UNIT, check_share

if TYPE_CHECKING:
    from findwell.core.data import Ints
    from findwell.core.progress import Report
    from findwell.judges.verdicts import JudgeProtocol, Verdict


LAYOUT = 1
FOLDER = "judge-cards"
SAME = ("version", "ask", "language", "votes", "separate_calls", "options")  # of two ways to ask


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """How far a judge agrees with people, measured on some labels."""

    judge: str
    about: Mapping[str, Any]
    aspect: str
    labels: str  # their name
    sha256: str  # of their texts and grades
    pairs: int
    questions: int
    failed: int  # pairs without a verdict of the judge
    blank: int  # pairs without a label
    rel: int  # the label from which people say yes
    level: float
    figures: tuple[CardFigure, ...]
    confusion: Confusion  # the judge's grades in rows, people's in columns
    slices: tuple[Slice, ...] = ()
    created: str = ""
    calibration: Calibration | None = None  # where the judge tells probabilities
    bias: BiasProbe | None = None  # where it was probed for

    def __iter__(self) -> Iterator[CardFigure]:
        """Go through the figures."""
        return iter(self.figures)

    def __getitem__(self, statistic: str) -> CardFigure:
        """Return a figure by name, such as kappa."""
        found = {figure.statistic: figure for figure in self.figures}
        return found[choose("statistic", statistic, found)]

    def as_dict(self) -> dict[str, Any]:
        """Return the card as plain data, as the JSON output prints it."""
        shown = {"findwell": "judge-card", "layout": LAYOUT, **asdict(self)}
        if self.calibration is not None:
            shown["calibration"] = self.calibration.as_dict()
        return {name: value for name, value in shown.items() if value is not None}

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the card to a file, by default to the folder where results look for one to cite.

        There a judge has one card for each set of labels; a new one replaces the old.
        """
        target = _place(self.judge, self.sha256) if path is None else Path(path)
        try:
            make_folder(target.parent)
        except OSError as error:
            raise SaveError(
                f"the card could not be written: {error.strerror}", where=str(target)
            ) from None
        text = json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n"
        write_text(target, text, private=path is None)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> JudgeCard:
        """Read a card that was saved."""
        try:
            given = json.loads(Path(path).read_text(encoding="utf-8"))
            kind: tuple[object, object] = (given.pop("findwell"), given.pop("layout"))
            card = _card(given)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            kind, card = (reason, ""), None
        if card is None or kind != ("judge-card", LAYOUT):
            raise InputError(
                f"this is no judge card of layout {LAYOUT}: {' '.join(map(str, kind)).strip()}",
                where=str(path),
                fix="write it again with findwell judge-card",
            )
        return card

    def cite(self) -> str:
        """Return the card in one line, for results."""
        kappa = self["kappa"]
        value = "undefined" if kappa.value is None else f"{kappa.value:.2f}"
        limits = "" if kappa.low is None else f" ({kappa.low:.2f}…{kappa.high:.2f})"
        about = f"{self.pairs} labels of {self.labels}, {self.aspect}"
        chance = ", which may be chance" if kappa.is_chance else ""
        return f"{self.judge}: κ {value}{limits} on {about}{chance}"


@dataclass(frozen=True, slots=True)
class Slice:
    """The figures of the pairs with one value of a column."""

    column: str
    value: str
    pairs: int
    figures: tuple[CardFigure, ...]


def judge_card(
    labels: object,
    *,
    judge: object = "local",
    aspect: str = "relevance",
    corpus: object = None,
    questions: object = None,
    slices: Iterable[str] | str = (),
    rel: int = 1,
    level: float = 0.95,
    probe_bias: bool = False,
    progress: Report | None = None,
) -> JudgeCard:
    """Let a judge label what people have labelled, and measure how far they agree.

    `labels` are records with question, chunk and label (0 to 3, or yes and no), as a path, a data
    frame or a list of dicts; or, with `corpus` and `questions`, the texts by id, a gold. `judge` is
    that of `findwell.evaluate`. With the `aspect` claims the question is a claim and the label says
    whether the chunk supports it; with statements the chunk is a statement, and with sufficiency it
    is all that was retrieved, in one text. `slices` are columns of the labels to slice by, `rel` is
    the label from which people say yes, and intervals have this `level`. `probe_bias` asks
    twice more, with the chunks in another order and the same again without a cache, and says how
    many verdicts flip (`findwell.judges.cards.bias`). `card.save()` keeps the card where results
    look for one to cite. Labels that set the judge's own threshold (`local(labels=FILE)`) are
    refused.

    A judge that tells probabilities also has a `calibration`: how far they can be believed. People
    say yes from `rel` on, and the probability is that of a yes.

    >>> labels = [
    ...     {"question": "Where is Rome?", "chunk": "Rome is in Italy.", "label": 1},
    ...     {"question": "Where is Rome?", "chunk": "Paris is in France.", "label": 0},
    ...     {"question": "Who was Bach?", "chunk": "Bach was a composer.", "label": 1},
    ... ]
    >>> card = judge_card(labels, judge="local:text")
    >>> card["accuracy"].value, card["kappa"].value
    (1.0, 1.0)
    """
    refuse_after_fork()
    card, _ = measure_judge(
        load_labels(labels, corpus=corpus, questions=questions),
        find_judge(judge),
        aspect=aspect,
        slices=slices,
        rel=rel,
        level=level,
        probe_bias=probe_bias,
        progress=progress,
    )
    return card


def measure_judge(
    given: LabelledPairs,
    asked: JudgeProtocol,
    *,
    aspect: str = "relevance",
    slices: Iterable[str] | str = (),
    rel: int = 1,
    level: float = 0.95,
    probe_bias: bool = False,
    progress: Report | None = None,
) -> tuple[JudgeCard, list[int | None]]:
    """Return the card of a judge, see `judge_card`, and its verdicts about the labelled pairs."""
    choose(
        "aspect with labels", aspect, [name for name, it in ASPECTS.items() if not it.judge_lists]
    )
    check_share("level", level)
    columns = list(dict.fromkeys([slices] if isinstance(slices, str) else slices))
    for column in columns:
        choose("column of the labels", column, given.columns)
    _refuse_own_labels(asked, given)
    if probe_bias:
        probing_judges(asked)  # before it is paid
    samples = LabelledSamples.of(given, aspect)
    said = samples.ask(asked, progress)
    values = [None if each is None else each.value for each in said]
    known = np.array([value is not None for value in values])
    if not known.any():
        raise InputError("the judge gave no verdict at all", where=asked.name)
    graded = np.array([value or 0 for value in values], dtype=np.int64)
    true = np.array(given.labels, dtype=np.int64)

    def measured(which: Ints) -> tuple[CardFigure, ...]:
        names = [given.queries[at] for at in which.tolist()]
        return tuple(figures(graded[which], true[which], names, rel=rel, level=level))

    card = JudgeCard(
        judge=asked.name,
        about=asked.about(),
        aspect=aspect,
        labels=given.name,
        sha256=_fingerprint(given),
        pairs=int(known.sum()),
        questions=len({query for query, ok in zip(given.queries, known, strict=True) if ok}),
        failed=int((~known).sum()),
        blank=given.blank,
        rel=rel,
        level=level,
        figures=measured(np.flatnonzero(known)),
        confusion=confusion(graded[known].tolist(), true[known].tolist()),
        slices=tuple(
            Slice(column, value, len(which), measured(which))
            for column in columns
            for value, which in _parts(given.columns[column], known)
        ),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        calibration=calibration(
            [_chance(each) for each in said], true >= rel, level=level, clusters=given.queries
        ),
        bias=find_bias(asked, samples, said, given.queries, level=level, progress=progress)
        if probe_bias
        else None,
    )
    return card, values


def _refuse_own_labels(asked: JudgeProtocol, given: LabelledPairs) -> None:
    """Refuse labels that set the threshold of the judge: on these it looks better than it is."""
    for judge in getattr(asked, "judges", (asked,)):
        questions = set(given.questions)
        own = len(questions & getattr(judge, "fitted_on", frozenset()))
        if not own:
            continue
        kappa = judge.about()["recalibrated"]["kappa_held_out"]
        told = "unknown" if kappa is None else f"{kappa:.2f}"
        raise OptionError(
            f"{own} of the {len(questions)} questions set the threshold of {judge.name}, so that "
            f"a card of these labels would flatter it; its held-out κ is {told}",
            fix="make the card from labels of other questions",
        )


def _chance(verdict: Verdict | None) -> float:
    """Return the probability of a verdict; NaN without one."""
    told = None if verdict is None or verdict.value is None else verdict.probability
    return float("nan") if told is None else told


def _parts(values: Sequence[str], known: Any) -> Iterator[tuple[str, Ints]]:  # noqa: ANN401
    """Go through the values of a column, and the pairs that have them and a verdict."""
    column = np.array(values, dtype=object)
    for value in sorted(set(values)):
        which = np.flatnonzero((column == value) & known)
        if len(which):
            yield value, which


def verdicts(
    judge: JudgeProtocol, labels: LabelledPairs, aspect: str, progress: Report | None = None
) -> list[int | None]:
    """Return the value of the verdict about each pair; None where there is none."""
    said = LabelledSamples.of(labels, aspect).ask(judge, progress)
    return [None if each is None else each.value for each in said]


def _fingerprint(labels: LabelledPairs) -> str:
    content = [labels.questions, labels.chunks, labels.labels]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class CardFigure:
    """A statistic with its interval; None where it is undefined, and why."""

    statistic: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""

    @property
    def is_chance(self) -> bool:
        """Whether a κ is one that chance may give: its interval holds 0, or there is none."""
        return self.value is not None and (self.low is None or self.low <= 0)


def figures(
    graded: Ints, true: Ints, questions: Sequence[str], *, rel: int, level: float
) -> list[CardFigure]:
    """Return the figures of a judge's grades against people's labels, pair by pair.

    A judge says yes from grade 1 on, people from `rel` on. The weighted κ compares grades, weighing
    a disagreement by the square of its size; it is left out where people gave only two of them.

    >>> found = figures(np.array([3, 0, 2, 0]), np.array([1, 0, 0, 0]), "abcd", rel=1, level=0.9)
    >>> {figure.statistic: figure.value for figure in found}
    {'kappa': 0.5, 'accuracy': 0.75, 'precision': 0.5, 'recall': 1.0, 'bias': 0.25}
    """
    yes, right = (graded > 0).astype(np.int64), (true >= rel).astype(np.int64)
    codes = cluster_codes(questions, len(questions))
    found = [_kappa("kappa", yes, right, codes, level, "none")]
    if len(np.unique(true)) > 2:
        found.append(_kappa("weighted kappa", graded, true, codes, level, "quadratic"))
    all_pairs = np.ones(len(yes), dtype=bool)
    rates = {
        "accuracy": (yes == right, all_pairs, "no pair"),
        "precision": (right, yes > 0, "the judge never says yes"),
        "recall": (yes, right > 0, "people never say yes"),
        "bias": (yes - right, all_pairs, "no pair"),
    }
    for name, (values, which, missing) in rates.items():
        each = interval(
            values[which].astype(np.float64),
            level=level,
            bounds=(-1.0, 1.0) if name == "bias" else UNIT,
            clusters=codes[which],
        )
        reason = each.reason if which.any() else missing
        found.append(CardFigure(name, each.value, each.low, each.high, each.n, reason))
    return found


def _kappa(  # noqa: PLR0917
    name: str, graded: Ints, true: Ints, codes: Ints, level: float, weights: str
) -> CardFigure:
    """Return κ, with questions as the units of its interval."""
    n, grades = len(graded), int(max(graded.max(), true.max())) + 1
    units = as_units(np.eye(grades * grades)[graded * grades + true], codes)
    counts = units.sums.sum(axis=0).reshape(grades, grades)
    value, influence = kappa_of(counts, disagreement(range(grades), weights))
    if np.isnan(value):
        return CardFigure(name, None, None, None, n, "all verdicts and labels are the same one")
    if len(units) < 2:
        return CardFigure(name, value, None, None, n, "one question says nothing about the spread")
    if is_one_sided(counts):
        return CardFigure(name, value, None, None, n, ONE_SIDED)
    # a sum by row: the last digit of a product of matrices depends on the number of threads
    by_question = (units.sums * influence.ravel()).sum(axis=1) * (len(units) / n)
    low, high = kappa_limits(value, by_question, level, estimate(units).size)
    return CardFigure(name, value, low, high, n)


def find_card(
    judge: str, *, aspects: Collection[str] | None = None, about: Mapping[str, Any] | None = None
) -> JudgeCard | None:
    """Return the newest card of a judge, None if it has none; damaged files are passed over.

    With `aspects` it is about one of these, and with `about`, what the judge says of itself, it was
    asked in the same way then.
    """
    found = []
    for path in (cache_folder() / FOLDER).glob(f"*-{_short(judge)}-*.json"):
        try:
            card = JudgeCard.load(path)
        except InputError:
            continue
        fits = aspects is None or card.aspect in aspects
        if card.judge == judge and fits and (about is None or _alike(card.about, about)):
            found.append(card)
    return max(found, key=lambda card: card.created, default=None)


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether a judge was asked in the same way, by what it says of itself."""
    first, second = (each.get("prompts") or {} for each in (one, other))
    return all(one.get(name) == other.get(name) for name in SAME) and all(
        first[name] == second[name] for name in first.keys() & second.keys()
    )


def _place(judge: str, labels: str) -> Path:
    readable = re.sub(r"[^a-z0-9.]+", "-", judge.casefold()).strip("-")[:60]
    return cache_folder() / FOLDER / f"{readable}-{_short(judge)}-{labels[:8]}.json"


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def _card(given: dict[str, Any]) -> JudgeCard:
    table = given["confusion"]
    counts = tuple(tuple(row) for row in table["counts"])
    return JudgeCard(
        **{
            **given,
            "figures": tuple(CardFigure(**each) for each in given["figures"]),
            "confusion": Confusion(tuple(table["labels"]), counts, table["n"], table["left_out"]),
            "slices": tuple(
                Slice(**{**each, "figures": tuple(CardFigure(**it) for it in each["figures"])})
                for each in given["slices"]
            ),
            "calibration": Calibration.of(given.get("calibration"), given["level"]),
            "bias": _bias(given.get("bias")),
        }
    )


def _bias(given: dict[str, Any] | None) -> BiasProbe | None:
    if given is None:
        return None
    return BiasProbe(**{**given, "figures": tuple(ProbeFigure(**it) for it in given["figures"])})

"""Judge cards: how far a judge agrees with people, measured on their labels, kept and cited."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import (
    InputError,
    OptionError,
    SaveError,
    check_share,
    choose,
    takes_options,
)
from findwell.core.estimate import Estimate
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.texts.sentences import split
from findwell.io.storage.database import cache_folder
from findwell.io.storage.files import make_folder, write_text
from findwell.judges.aspects import ASPECTS
from findwell.judges.cards.labels import LabelledPairs, LabelledSamples, load_labels, short_hash
from findwell.judges.client.protocol import parse_json
from findwell.judges.find import find_judge
from findwell.statistics.agreement import (
    ONE_SIDED,
    Confusion,
    KappaDifference,
    confusion,
    disagreement,
    is_one_sided,
    kappa_difference,
    kappa_limits,
    kappa_of,
    kendall_tau,
)
from findwell.statistics.calibration import Calibration, calibration
from findwell.statistics.intervals import UNIT, as_units, cluster_codes, estimate, interval

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.progress import Report
    from findwell.judges.client.budget import Forecast
    from findwell.judges.verdicts import Judgement, JudgeProtocol

LAYOUT = 1
FOLDER = "judge-cards"
LEAST_RANKED = 3  # values of a column: two are in the same order or not
APPLYING_SHARE = 0.5  # of the queries, or of the questions of a card, that the other one must have
# of two ways to ask that are the same
SAME_SETTINGS = (
    "version", "ask", "cutoffs", "examples", "taught", "language", "votes", "separate_calls",
    "options",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFigure(Estimate):
    """A statistic with its interval; without a value where it is undefined, and why."""

    statistic: str
    flips: int | None = None  # verdicts that were yes once and no once, where they are counted

    @property
    def is_chance(self) -> bool:
        """Whether a κ is one that chance may give: its interval holds 0, or there is none."""
        return self.value is not None and (self.low is None or self.low <= 0)


def _figure(
    statistic: str,
    level: float,
    value: float | None = None,
    low: float | None = None,
    high: float | None = None,
    *,
    n: int,
    flips: int | None = None,
    reason: str = "",
) -> CardFigure:
    return CardFigure(
        value, low, high, level, "", n, reason=reason, statistic=statistic, flips=flips
    )


def _plain(figures: Sequence[CardFigure], *more: str) -> list[dict[str, Any]]:
    """Return figures as a file has them."""
    shown = ("statistic", "value", "low", "high", "n", *more, "reason")
    return [{name: getattr(each, name) for name in shown} for each in figures]


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
    calibration: Calibration | None = None  # where the judge reports probabilities
    bias: BiasProbe | None = None  # where it was probed for
    asked: tuple[str, ...] = ()  # short hashes of the questions or claims of the labels
    seconds: float | None = None  # that judging took; answers in the cache take none

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
        shown["figures"] = _plain(self.figures)
        shown["slices"] = [asdict(it) | {"figures": _plain(it.figures)} for it in self.slices]
        if self.bias is not None:
            shown["bias"]["figures"] = _plain(self.bias.figures, "flips")
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
            given = parse_json(Path(path).read_bytes())
            kind: tuple[object, object] = (given.pop("findwell"), given.pop("layout"))
            card = _card(given)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            kind, card = (reason, ""), None
        if card is None or kind != ("judge-card", LAYOUT):
            raise InputError(
                f"this is not a judge card of layout {LAYOUT}: {' '.join(map(str, kind)).strip()}",
                where=str(path),
                fix="write it again with findwell judge card",
            )
        return card

    def cite(self, *, applies: bool = True) -> str:
        """Return the card in one line, for results; `applies`: it was measured on their data."""
        kappa = self["kappa"]
        value = "undefined" if kappa.value is None else f"{kappa.value:.2f}"
        limits = "" if kappa.low is None else f" ({kappa.low:.2f}…{kappa.high:.2f})"
        about = f"{self.pairs} labels of {self.labels}, {self.aspect}"
        chance = ", which may be chance" if kappa.is_chance else ""
        elsewhere = "" if applies else "not checked on these questions; on others "
        return f"{self.judge}: {elsewhere}κ {value}{limits} on {about}{chance}"

    def tau(self, column: str) -> float | None:
        """Return Kendall's τ of the order of a column's values by the judge and by people.

        Values, such as systems, are ordered by their share of yes. None for fewer than three.
        """
        parts = [each for each in self.slices if each.column == column]
        shares = [(each.judge_yes, each.people_yes) for each in parts]
        known = [pair for pair in shares if None not in pair]
        if len(known) < LEAST_RANKED:
            return None
        return kendall_tau(*zip(*known, strict=True)).value

    def applies_to(self, asked: Sequence[Collection[str]]) -> bool:
        """Tell whether the card was measured on this data, by the hashes of each query's texts.

        It was if it holds at least half of these queries, or they hold half of what it is about.
        """
        own = set(self.asked)
        covered = sum(not own.isdisjoint(each) for each in asked)
        shared = own.intersection(set[str]().union(*asked))
        return bool(shared) and max(covered / len(asked), len(shared) / len(own)) >= APPLYING_SHARE


@dataclass(frozen=True, slots=True)
class Slice:
    """The figures of the pairs with one value of a column."""

    column: str
    value: str
    pairs: int
    figures: tuple[CardFigure, ...]
    judge_yes: float | None = None  # share of yes of the judge, and of people
    people_yes: float | None = None


@takes_options()
def judge_card(
    labels: object,
    *,
    judge: object = None,
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
    frame or a list of dicts; or gold labels, with `corpus` and `questions`, the texts by id.
    `judge` is that of `findwell.evaluate`. With the `aspect` claims the question is a claim and the
    label says whether the chunk supports it; with statements the chunk is a statement, and with
    sufficiency it is all that was retrieved, in one text. `slices` are columns of the labels to
    slice by, `rel` is the label from which people say yes (1), and intervals have this `level`
    (0.95). `probe_bias` asks twice more, with the chunks in another order and the same again
    without a cache, and says how many verdicts flip (`BiasProbe`). `card.save()` keeps the card
    where results look for one to cite. Labels that taught the judge are refused.

    A judge that reports probabilities has a `calibration` as well: how far to believe them. People
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
    given = load_labels(labels, corpus=corpus, questions=questions)
    plan = CardPlan(aspect, _columns(slices, given), rel, level, probe_bias)
    return plan.measure(given, find_judge(judge), progress)[0]


def _columns(slices: Iterable[str] | str, given: LabelledPairs) -> list[str]:
    columns = list(dict.fromkeys([slices] if isinstance(slices, str) else slices))
    return [choose("column of the labels", column, given.columns) for column in columns]


@dataclass(frozen=True, slots=True)
class CardPlan:
    """What is measured about each judge; see `judge_card`."""

    aspect: str
    columns: Sequence[str]
    rel: int
    level: float
    probe_bias: bool

    def __post_init__(self) -> None:
        able = [name for name, aspect in ASPECTS.items() if not aspect.judge_lists]
        choose("aspect with labels", self.aspect, able)
        check_share("level", self.level)

    def measure(
        self, given: LabelledPairs, asked: JudgeProtocol, progress: Report | None
    ) -> tuple[JudgeCard, list[int | None]]:
        """Return the card of a judge, and its verdicts about the labelled pairs."""
        rel, level = self.rel, self.level
        _refuse_own_labels(asked, given)
        if self.probe_bias:
            probing_judges(asked)  # before it is paid
        samples = LabelledSamples.of(given, self.aspect)
        start = time.monotonic()
        said = samples.ask(asked, progress)
        seconds = round(time.monotonic() - start, 2)
        values = [None if each is None else each.value for each in said]
        known = np.array([value is not None for value in values])
        if not known.any():
            raise InputError("the judge gave no verdict at all", where=asked.name)
        graded = np.array([value or 0 for value in values], dtype=np.int64)
        true = np.array(given.labels, dtype=np.int64)
        sure = [None if each is None or each.value is None else each.probability for each in said]
        chances = np.array(sure, dtype=np.float64)

        def measured(which: Ints) -> tuple[CardFigure, ...]:
            names = [given.queries[at] for at in which.tolist()]
            return tuple(figures(graded[which], true[which], names, rel=rel, level=level))

        slices = []
        for name in self.columns:
            column = np.array(given.columns[name], dtype=object)
            for value in sorted(set(given.columns[name])):
                which = np.flatnonzero((column == value) & known)
                if len(which):
                    shares = (graded[which] > 0).mean(), (true[which] >= rel).mean()
                    part = Slice(name, value, len(which), measured(which), *map(float, shares))
                    slices.append(part)
        content = [given.questions, given.chunks, given.labels]
        bias = None
        if self.probe_bias:
            bias = find_bias(asked, samples, said, given.queries, level=level, progress=progress)
        card = JudgeCard(
            judge=asked.name,
            about=asked.about(),
            aspect=self.aspect,
            labels=given.name,
            sha256=hashlib.sha256(json.dumps(content).encode()).hexdigest(),
            pairs=int(known.sum()),
            questions=len({query for query, ok in zip(given.queries, known, strict=True) if ok}),
            failed=int((~known).sum()),
            blank=given.blank,
            rel=rel,
            level=level,
            figures=measured(np.flatnonzero(known)),
            confusion=confusion(graded[known].tolist(), true[known].tolist()),
            slices=tuple(slices),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            calibration=calibration(chances, true >= rel, level=level, clusters=given.queries),
            bias=bias,
            asked=tuple(sorted({short_hash(question) for question in given.questions})),
            seconds=seconds,
        )
        return card, values


def _refuse_own_labels(asked: JudgeProtocol, given: LabelledPairs) -> None:
    """Refuse labels that taught the judge: on these it looks better than it is."""
    for judge in getattr(asked, "judges", (asked,)):
        questions = set(given.questions)
        taught: frozenset[str] = getattr(judge, "fitted_on", frozenset())  # their hashes
        own = sum(short_hash(each) in taught for each in questions)
        if not own:
            continue
        kappa = judge.about()["recalibrated"]["kappa_held_out"]
        held_out = "unknown" if kappa is None else f"{kappa:.2f}"
        raise OptionError(
            f"{own} of the {len(questions)} questions taught {judge.name}, so that "
            f"a card of these labels would flatter it; its held-out κ is {held_out}",
            fix="make the card from labels of other questions",
        )


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
        found.append(_figure(name, level, each.value, each.low, each.high, n=each.n, reason=reason))
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
        return _figure(name, level, n=n, reason="all verdicts and labels are the same one")
    if len(units) < 2 or is_one_sided(counts):
        alone = "one question says nothing about the spread"
        return _figure(name, level, value, n=n, reason=alone if len(units) < 2 else ONE_SIDED)
    # a sum by row: the last digit of a product of matrices depends on the number of threads
    by_question = (units.sums * influence.ravel()).sum(axis=1) * (len(units) / n)
    low, high = kappa_limits(value, by_question, level, estimate(units).size)
    return _figure(name, level, value, low, high, n=n)


def find_cards(
    judge: str, aspects: Collection[str] | None = None, about: Mapping[str, Any] | None = None
) -> list[JudgeCard]:
    """Return the cards of a judge, the newest first; damaged files are passed over.

    With `aspects` they are about one of these, and with `about`, what the judge says of itself, it
    was asked in the same way then.
    """
    found = []
    for path in (cache_folder() / FOLDER).glob(f"*-{short_hash(judge)}-*.json"):
        try:
            card = JudgeCard.load(path)
        except InputError:
            continue
        fits = aspects is None or card.aspect in aspects
        if card.judge == judge and fits and (about is None or _alike(card.about, about)):
            found.append(card)
    return sorted(found, key=lambda card: card.created, reverse=True)


def find_card(
    judge: str, aspects: Collection[str], about: Mapping[str, Any], queries: pl.DataFrame
) -> tuple[JudgeCard | None, bool]:
    """Return the newest card of a judge, and whether it was measured on these queries.

    One that was comes first: how far a judge agrees with people depends on the data.
    """
    cards = find_cards(judge, aspects, about)
    if not cards:
        return None, False
    columns = (queries.get_column(name, default=None) for name in ("question", "reference"))
    given = [each.cast(pl.String).fill_null("").to_list() for each in columns if each is not None]
    sentences = [split(column) for column in given]
    hashes = [
        {short_hash(text) for parts in texts for text in parts if text}
        for texts in zip(
            *([[each] for each in column] for column in given), *sentences, strict=True
        )
    ]
    applying = [card for card in cards if card.applies_to(hashes)]
    return (applying or cards)[0], bool(applying)


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether a judge was asked in the same way, by what it says of itself."""
    first, second = (each.get("prompts") or {} for each in (one, other))
    return all(one.get(name) == other.get(name) for name in SAME_SETTINGS) and all(
        first[name] == second[name] for name in first.keys() & second.keys()
    )


def _place(judge: str, labels: str) -> Path:
    readable = re.sub(r"[^a-z0-9.]+", "-", judge.casefold()).strip("-")[:60]
    return cache_folder() / FOLDER / f"{readable}-{short_hash(judge)}-{labels[:8]}.json"


def _card(given: dict[str, Any]) -> JudgeCard:
    def read(listed: list[dict[str, Any]]) -> tuple[CardFigure, ...]:
        return tuple(_figure(level=given["level"], **each) for each in listed)

    table, curve, bias = given["confusion"], given.get("calibration"), given.get("bias")
    counts = tuple(tuple(row) for row in table["counts"])
    return JudgeCard(
        **{
            **given,
            "figures": read(given["figures"]),
            "confusion": Confusion(tuple(table["labels"]), counts, table["n"], table["left_out"]),
            "slices": tuple(
                Slice(**{**each, "figures": read(each["figures"])}) for each in given["slices"]
            ),
            "calibration": Calibration.of(curve, given["level"]),
            "bias": BiasProbe(**{**bias, "figures": read(bias["figures"])}) if bias else None,
            "asked": tuple(given.get("asked", ())),
        }
    )


# --- several judges -------------------------------------------------------------------------------

DIFFERENCE_IN_JSON = ("value", "low", "high", "p_value", "n", "units", "reason")


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """The cards of several judges, and how far κ of each is from that of the first.

    The differences are measured on the pairs about which both gave a verdict. Cards that were kept
    have none: they do not hold the verdicts.
    """

    cards: tuple[JudgeCard, ...]
    differences: tuple[KappaDifference, ...] = ()  # of all judges but the first

    @property
    def is_comparable(self) -> bool:
        """Whether all cards are about the same labels, read in the same way."""
        return len({(each.sha256, each.aspect, each.rel) for each in self.cards}) == 1

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, as the JSON output prints it."""
        first, *others = (card.judge for card in self.cards)
        return {
            "judges": [card.as_dict() for card in self.cards],
            "differences": [
                {"judge": judge, "from": first, "statistic": "kappa"}
                | {name: getattr(found, name) for name in DIFFERENCE_IN_JSON}
                for judge, found in zip(others, self.differences, strict=False)
            ],
        }


@takes_options()
def compare_judges(
    labels: object,
    judges: Iterable[object],
    *,
    aspect: str = "relevance",
    corpus: object = None,
    questions: object = None,
    slices: Iterable[str] | str = (),
    rel: int = 1,
    level: float = 0.95,
    probe_bias: bool = False,
    progress: Report | None = None,
) -> JudgeComparison:
    """Let several judges label what people have labelled, and say which agrees best.

    The arguments are those of `findwell.judges.card`, but that `judges` are several, the first of
    which the others are compared with. Pairs about the same question are not independent: whole
    questions are exchanged between two judges to tell a difference from chance.

    >>> labels = [
    ...     {"question": "Where is Rome?", "chunk": "Rome is in Italy.", "label": 1},
    ...     {"question": "Where is Rome?", "chunk": "Paris is in France.", "label": 0},
    ...     {"question": "Who was Bach?", "chunk": "Bach was a composer.", "label": 1},
    ... ]
    >>> def generous(sample):
    ...     return {"relevance": [1] * len(sample.chunks)}
    >>> found = compare_judges(labels, ["local:text", generous])
    >>> [card["kappa"].value for card in found.cards], found.differences[0].value
    ([1.0, 0.0], -1.0)
    """
    refuse_after_fork()
    given = load_labels(labels, corpus=corpus, questions=questions)
    asked = [find_judge(each) for each in judges]
    names = [each.name for each in asked]
    if len(asked) < 2 or len(set(names)) < len(names):
        raise OptionError(
            f"two different judges or more are compared, not {', '.join(names) or 'none'}",
            fix="name each judge once",
        )
    plan = CardPlan(aspect, _columns(slices, given), rel, level, probe_bias)
    measured = [plan.measure(given, judge, progress) for judge in asked]
    (_, first), *others = measured
    right = np.array(given.labels) >= rel
    differences = []
    for _, said in others:
        pairs = zip(said, first, strict=True)
        both = [at for at, pair in enumerate(pairs) if None not in pair]
        found = kappa_difference(
            [(said[at] or 0) > 0 for at in both],
            [(first[at] or 0) > 0 for at in both],
            right[both],
            clusters=[given.queries[at] for at in both],
            level=level,
        )
        differences.append(found)
    return JudgeComparison(tuple(card for card, _ in measured), tuple(differences))


# --- bias -----------------------------------------------------------------------------------------
#
# The chunks of each question are shown in another order, in which every chunk has another place: a
# verdict that flips depends on the order. Each chunk is compared with itself, so that it does not
# matter which chunks stood first. The same questions are also asked again in the old order, without
# the cache: what flips then, flips by chance.

ALONE = "each chunk is judged alone, so its place in the list has no influence"
NO_ORDER = "no question has two chunks or more"
NONE_BOTH = "no verdict was given both times"
SHUFFLED = "flips when shuffled"
FIRST, EARLIER = "yes more often when first", "yes more often when earlier"


@dataclass(frozen=True, slots=True)
class BiasProbe:
    """What was found: figures, verdicts that failed, and the calls it took.

    `flips when shuffled` and `flips when asked again` are shares of verdicts. `yes more often when
    first` is the share of yes about chunks that stand first, less that about the same chunks when
    they stand elsewhere; `when earlier` compares the earlier with the later place.
    """

    figures: tuple[CardFigure, ...]
    failed: int
    calls: int

    def __getitem__(self, statistic: str) -> CardFigure:
        """Return a figure by name."""
        return {each.statistic: each for each in self.figures}[statistic]


def find_bias(
    judge: JudgeProtocol,
    asked: LabelledSamples,
    said: Sequence[Judgement | None],
    questions: Sequence[str],
    *,
    level: float = 0.95,
    progress: Report | None = None,
) -> BiasProbe:
    """Ask about the same pairs in another order and once more; `said` are the first verdicts."""
    ordered, again = probing_judges(judge)
    before = calls_of(judge)
    first, figures, failed = _said_yes(said), [], 0

    def add(name: str, values: Floats, which: Bools, *, share: bool = True) -> None:
        """Add the mean over the pairs that count: a share, or how much more often yes is said."""
        used = np.flatnonzero(which & ~np.isnan(values))
        if not len(used):
            figures.append(_figure(name, level, n=0, reason=NONE_BOTH))
            return
        bounds, names = UNIT if share else (-1.0, 1.0), [questions[at] for at in used.tolist()]
        found = interval(values[used], level=level, bounds=bounds, clusters=names)
        flips = int(values[used].sum()) if share else None
        limits = (found.value, found.low, found.high)
        figures.append(_figure(name, level, *limits, n=found.n, flips=flips, reason=found.reason))

    if why := _no_order(judge, asked):
        figures += [_figure(name, level, n=0, reason=why) for name in (SHUFFLED, FIRST, EARLIER)]
    else:
        moved = asked.shuffled()
        other = _said_yes(moved.ask(ordered, progress))
        failed += int(np.isnan(other).sum())
        several, earlier = asked.sizes > 1, asked.place < moved.place
        add(SHUFFLED, np.abs(first - other), several)
        for name, then, now in (
            (FIRST, asked.place == 0, moved.place == 0),
            (EARLIER, earlier, several & ~earlier),
        ):  # pairs that were in the place at first, and those that are later
            gain = np.where(then, first - other, other - first)
            add(name, gain, then ^ now, share=False)
    repeated = _said_yes(asked.ask(again, progress))
    failed += int(np.isnan(repeated).sum())
    add("flips when asked again", np.abs(first - repeated), np.ones(len(first), dtype=bool))
    return BiasProbe(tuple(figures), failed, calls_of(judge) - before)


def probing_judges(judge: JudgeProtocol) -> tuple[JudgeProtocol, JudgeProtocol]:
    """Return who is asked in another order, and who is asked again, without a cache.

    Both spend from the budget of the judge, and do not stop at failures: they come after a card.
    """
    from findwell.judges.panel import PanelJudge  # noqa: PLC0415
    from findwell.judges.replay import ReplayJudge  # noqa: PLC0415

    if isinstance(judge, PanelJudge | ReplayJudge):
        raise OptionError(
            f"the judge {judge.name} cannot be probed for bias",
            fix="probe each judge of a panel alone"
            if isinstance(judge, PanelJudge)
            else "probe the judge that was recorded",
        )
    again = getattr(judge, "again", None)  # of judges that ask a model
    return (judge, judge) if again is None else (again(cached=True), again(cached=False))


def forecast_probe(judge: JudgeProtocol, asked: LabelledSamples) -> list[Forecast]:
    """Estimate what probing takes, without asking; nothing for judges that ask no model."""
    ordered, again = probing_judges(judge)
    aspects = frozenset({asked.aspect})
    plans = [] if _no_order(judge, asked) else [(ordered, asked.shuffled())]
    plans.append((again, asked))
    return [
        each.dry_run(list(about.samples), aspects)
        for each, about in plans
        if hasattr(each, "dry_run")
    ]


def calls_of(judge: JudgeProtocol) -> int:
    """Return how many calls a judge has sent so far."""
    budget = getattr(judge, "budget", None)
    return 0 if budget is None else int(budget.calls)


def _no_order(judge: JudgeProtocol, asked: LabelledSamples) -> str:
    """Say why the order of chunks cannot matter; empty if it may."""
    if getattr(judge, "way", "") == "single":
        return ALONE
    return "" if (asked.sizes > 1).any() else NO_ORDER


def _said_yes(said: Sequence[Judgement | None]) -> Floats:
    """Return 1 for each yes, 0 for each no, NaN where there is no verdict."""
    values = [None if each is None else each.value for each in said]
    return np.array([np.nan if value is None else float(value > 0) for value in values])

"""Judge cards: how far a judge agrees with people, measured on their labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.errors import InputError, choose
from karat.judges.cards.figures import Figure, figures
from karat.judges.cards.labels import Labels, load_labels
from karat.judges.find import find_judge
from karat.judges.verdicts import Judged, JudgeProtocol, Sample, Verdict
from karat.statistics.agreement import Confusion, confusion
from karat.statistics.quantity import check_share

if TYPE_CHECKING:
    from karat.core.data import Ints
    from karat.progress import Report

LAYOUT = 1
LABELLED: tuple[str, ...] = ("relevance", "claims", "statements")


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """What a judge's verdicts are worth, as far as some labels tell."""

    judge: str
    about: Mapping[str, Any]
    aspect: str
    labels: str  # their name
    sha256: str  # of their texts and grades
    pairs: int
    questions: int
    failed: int  # pairs of which the judge gave no verdict
    blank: int  # pairs without a label
    rel: int  # the label from which people say yes
    level: float
    figures: tuple[Figure, ...]
    confusion: Confusion  # the judge's grades in rows, people's in columns
    slices: tuple[Slice, ...] = ()
    created: str = ""

    def __getitem__(self, statistic: str) -> Figure:
        """Return a figure by name, such as kappa."""
        found = {figure.statistic: figure for figure in self.figures}
        return found[choose("statistic", statistic, found)]

    def as_dict(self) -> dict[str, Any]:
        """Return the card as plain data."""
        return {"karat": "judge-card", "layout": LAYOUT, **asdict(self)}

    def cite(self) -> str:
        """Return the card in one line, for results."""
        kappa = self["kappa"]
        value = "undefined" if kappa.value is None else f"{kappa.value:.2f}"
        limits = "" if kappa.low is None else f" ({kappa.low:.2f}…{kappa.high:.2f})"
        return f"{self.judge}: κ {value}{limits} on {self.pairs} labels of {self.labels}"


@dataclass(frozen=True, slots=True)
class Slice:
    """The figures of the pairs with one value of a column."""

    column: str
    value: str
    pairs: int
    figures: tuple[Figure, ...]


def judge_card(
    judge: object,
    labels: object,
    *,
    aspect: str = "relevance",
    corpus: object = None,
    questions: object = None,
    by: Iterable[str] = (),
    rel: int = 1,
    level: float = 0.95,
    progress: Report | None = None,
) -> JudgeCard:
    """Let a judge say what people have said already, and compare.

    `labels` are records with question, chunk and label, or, with `corpus` and `questions`, a gold
    (see `karat.judges.cards.labels`). With the aspect `claims` the question is a claim and the
    label says whether the chunk supports it; with `statements` the chunk is a statement. `by` names
    columns of the labels to slice by, `rel` the label from which people say yes.

    >>> labels = [
    ...     {"question": "Where is Rome?", "chunk": "Rome is in Italy.", "label": 1},
    ...     {"question": "Where is Rome?", "chunk": "Paris is in France.", "label": 0},
    ...     {"question": "Who was Bach?", "chunk": "Bach was a composer.", "label": 1},
    ... ]
    >>> card = judge_card("local:text", labels)
    >>> card["accuracy"].value, card["kappa"].value
    (1.0, 1.0)
    """
    choose("aspect with labels", aspect, LABELLED)
    check_share("level", level)
    given, asked = load_labels(labels, corpus=corpus, questions=questions), find_judge(judge)
    columns = list(dict.fromkeys(by))
    for column in columns:
        choose("column of the labels", column, given.columns)
    values = verdicts(asked, given, aspect, progress)
    known = np.array([value is not None for value in values])
    if not known.any():
        raise InputError("the judge gave no verdict at all", where=asked.name)
    said = np.array([value or 0 for value in values], dtype=np.int64)
    true = np.array(given.labels, dtype=np.int64)

    def measured(which: Ints) -> tuple[Figure, ...]:
        names = [given.queries[at] for at in which.tolist()]
        found = figures(said[which], true[which], names, rel=rel, level=level)
        return tuple(found)

    return JudgeCard(
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
        confusion=confusion(said[known].tolist(), true[known].tolist()),
        slices=tuple(
            Slice(column, value, len(which), measured(which))
            for column in columns
            for value, which in _parts(given.columns[column], known)
        ),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _parts(values: Sequence[str], known: Any) -> Iterator[tuple[str, Ints]]:  # noqa: ANN401
    """Go through the values of a column, and the pairs that have them and a verdict."""
    column = np.array(values, dtype=object)
    for value in sorted(set(values)):
        which = np.flatnonzero((column == value) & known)
        if len(which):
            yield value, which


def verdicts(
    judge: JudgeProtocol,
    labels: Labels,
    aspect: str,
    progress: Report | None = None,
) -> list[int | None]:
    """Return what a judge says of each pair; all chunks of a question are judged together."""
    places: dict[tuple[str, str], dict[str, int]] = {}
    for query, question, chunk in zip(labels.queries, labels.questions, labels.chunks, strict=True):
        mine = places.setdefault((query, question), {})
        mine.setdefault(chunk, len(mine))
    samples = [
        _sample(query, question, tuple(chunks), aspect)
        for (query, question), chunks in places.items()
    ]
    judged = dict(zip(places, judge.judge(samples, frozenset({aspect}), progress), strict=True))
    pairs = zip(labels.queries, labels.questions, labels.chunks, strict=True)
    return [
        _value(judged[query, question], aspect, places[query, question][chunk])
        for query, question, chunk in pairs
    ]


def _sample(query: str, question: str, chunks: tuple[str, ...], aspect: str) -> Sample:
    if aspect == "claims":
        return Sample(query, "", chunks, reference=question, items={aspect: (question,)})
    parts = {aspect: tuple((chunk,) for chunk in chunks)} if aspect == "statements" else {}
    return Sample(query, question, chunks, parts=parts)


def _value(judged: Judged, aspect: str, place: int) -> int | None:
    """Return the verdict about a chunk; None if it failed, or if the judge asked something else."""
    if aspect in judged.failures:
        return None
    rows = judged[aspect].rows
    row: Sequence[Verdict] = rows[0] if len(rows) == 1 else ()
    if aspect == "statements":
        row = [each[0] for each in rows if len(each) == 1]
    return row[place].value if place < len(row) else None


def _fingerprint(labels: Labels) -> str:
    content = [labels.questions, labels.chunks, labels.labels]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()

"""How the local judge comes to its verdicts, one function an aspect, many samples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from karat.judges.local.calibration import Model, logistic
from karat.judges.local.entities import EntityFinder, Holdings
from karat.judges.local.objections import objections
from karat.judges.local.pieces import cut
from karat.judges.local.signals import Signals, compare
from karat.judges.verdicts import Aspect, Matrix, Sample, Verdict

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.embeddings import Embedder

Pairs: TypeAlias = list[tuple[str, str]]
Held: TypeAlias = Callable[[str], Holdings]  # remembers the texts it was asked about


def relevance(
    samples: Sequence[Sample], model: Model, embedder: Embedder | None
) -> list[tuple[Verdict, ...]]:
    """Grade the chunks of each sample by its question."""
    pairs = [(sample.question, chunk) for sample in samples for chunk in sample.chunks]
    found = iter(_verdicts(pairs, model, embedder))
    return [tuple(islice(found, len(sample.chunks))) for sample in samples]


def claims(
    samples: Sequence[Sample], model: Model, embedder: Embedder | None, holdings: Held
) -> list[Matrix]:
    """Say which chunks support which claims: they share words, and nothing is against it."""
    pairs = [
        (claim, chunk) for sample in samples for claim in sample.claims for chunk in sample.chunks
    ]
    if not pairs:
        return [tuple(() for _ in sample.claims) for sample in samples]
    signals = compare(pairs, embedder, closest=True)
    judged = _judged(signals, model, "the claim")
    against = objections(pairs, signals, [bool(verdict.value) for verdict in judged], holdings)
    found = (
        Verdict(0, f"{reason}; {verdict.reason}", verdict.quote) if reason else verdict
        for verdict, reason in zip(judged, against, strict=True)
    )
    return [
        tuple(tuple(islice(found, len(sample.chunks))) for _ in sample.claims) for sample in samples
    ]


def statements(samples: Sequence[Sample], model: Model, embedder: Embedder | None) -> list[Matrix]:
    """Say which statements of the chunks are relevant to the question."""
    pairs = [
        (sample.question, statement)
        for sample in samples
        for chunk in sample.statements
        for statement in chunk
    ]
    found = iter(_verdicts(pairs, model, embedder))
    return [
        tuple(tuple(islice(found, len(chunk))) for chunk in sample.statements) for sample in samples
    ]


def entities(
    samples: Sequence[Sample], find: EntityFinder, holdings: Held
) -> list[tuple[tuple[str, ...], Matrix]]:
    """Find the entities of each reference, and say which chunks hold them."""
    known = cache(find)
    chunks = {
        text: n for n, text in enumerate(dict.fromkeys(it for s in samples for it in s.chunks))
    }
    pieces = cut(list(chunks))
    return [
        (
            tuple(known(sample.reference)),
            tuple(
                tuple(
                    _held(entity, chunk, partial(pieces.of, chunks[chunk]), holdings)
                    for chunk in sample.chunks
                )
                for entity in known(sample.reference)
            ),
        )
        for sample in samples
    ]


def scores(pairs: Pairs, model: Model, embedder: Embedder | None, aspect: Aspect) -> Floats:
    """Return the score, 0 to 1, of pairs of a text and a chunk; 0 where something is against it."""
    if not pairs:
        return np.zeros(0)
    signals = compare(pairs, embedder, closest=aspect == "claims")
    found = np.array([logistic(total) for total in model.sums(signals.columns()).tolist()])
    if aspect == "claims":
        found[
            [
                bool(reason)
                for reason in objections(pairs, signals, [True] * len(pairs), cache(Holdings))
            ]
        ] = 0.0
    return found


def _verdicts(pairs: Pairs, model: Model, embedder: Embedder | None) -> list[Verdict]:
    return _judged(compare(pairs, embedder), model, "the question") if pairs else []


def _judged(signals: Signals, model: Model, what: str) -> list[Verdict]:
    """Judge pairs of a text and a chunk by the weights of a model."""
    columns = signals.columns()
    sums = model.sums(columns)
    likeness = columns.get("closest", columns.get("similarity"))
    lowest = model.thresholds[0]
    return [
        Verdict(grade, _reason(logistic(total), lowest, cover, like), quote)
        if words
        else Verdict(None, f"{what} has no words to judge by")
        for grade, total, cover, like, words, quote in zip(
            model.grades(sums).tolist(),
            sums.tolist(),
            columns["cover"].tolist(),
            [None] * len(sums) if likeness is None else likeness.tolist(),
            signals.overlap.words.tolist(),
            signals.quotes(),
            strict=True,
        )
    ]


def _reason(score: float, threshold: float, cover: float, likeness: float | None) -> str:
    like = "" if likeness is None else f", likeness {likeness:.2f}"
    return f"score {score:.2f} (yes from {threshold:.2f}): {cover:.0%} of the words{like}"


def _held(entity: str, chunk: str, pieces: Callable[[], list[str]], holdings: Held) -> Verdict:
    if not holdings(chunk).holds(entity):
        return Verdict(0, "not in the chunk")
    sentence = next((piece for piece in pieces() if holdings(piece).holds(entity)), "")
    return Verdict(1, "in the chunk", sentence)

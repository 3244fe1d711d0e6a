"""How the local judge comes to its verdicts, one function per aspect, many samples at once.

A claim whose words are in a chunk is still not supported where something contradicts it: other
facts, or a negation. Similarity sees neither: a claim with another year, another name or a `not`
is as similar as before. Facts are found by rules, negations by the words of the claim's language.
German writes every noun like a name, so there only numbers, dates and names of several words are
facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.core.texts.languages import ENGLISH, known
from findwell.judges.local.calibration import Model, logistic
from findwell.judges.local.clauses import entries_of
from findwell.judges.local.entities import EntityFinder, Holdings, entities_by_rules
from findwell.judges.local.signals import Signals, compare
from findwell.judges.verdicts import AspectVerdicts, Judgement, JudgeReason, Sample

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.judges.embeddings import Embedder
    from findwell.judges.local.reading import Reader

Pairs: TypeAlias = list[tuple[str, str]]
Held: TypeAlias = Callable[[str], Holdings]  # remembers the texts it was asked about

MISSING = Judgement(0, "not in the chunk")
NOT = re.compile(r"\b(?:not|never|cannot|neither)\b|n['’]t\b", re.IGNORECASE)
COMPOUND = re.compile(r"\d|\w \w|\w[A-ZÄÖÜ]")  # numbers, several words, acronyms
NEGATIVE = re.compile(
    r"\b(?:not|never|cannot|neither|no|none|nor|nothing|nobody|without|unable|fail(?:s|ed)?|"
    r"lack(?:s|ed)?|refus\w+|prevent\w*|except|unlike|hardly|barely|rarely)\b|n['’]t\b",
    re.IGNORECASE,
)


def relevance(
    samples: Sequence[Sample], model: Model, embedder: Embedder | None, reader: Reader
) -> list[AspectVerdicts]:
    """Grade the chunks of each sample by its question."""
    pairs = [(sample.question, chunk) for sample in samples for chunk in sample.chunks]
    found = iter(_verdicts(pairs, model, embedder, reader))
    return [AspectVerdicts((tuple(islice(found, len(sample.chunks))),)) for sample in samples]


def claims(
    samples: Sequence[Sample],
    model: Model,
    embedder: Embedder | None,
    reader: Reader,
    holdings: Held,
) -> list[AspectVerdicts]:
    """Say which chunks support which claims: they share words, and nothing is against it."""
    listed = [sample.items["claims"] for sample in samples]
    pairs = [
        (claim, chunk)
        for sample, texts in zip(samples, listed, strict=True)
        for claim in texts
        for chunk in sample.chunks
    ]
    if not pairs:
        return [AspectVerdicts(((),) * len(texts), items=texts) for texts in listed]
    entries = [
        entry
        for sample, texts in zip(samples, listed, strict=True)
        for entry in entries_of(texts)
        for _ in sample.chunks
    ]
    signals = compare(pairs, embedder, closest=True, counted=False, reader=reader, entries=entries)
    judged = _judged(signals, model, "the claim")
    asked = [bool(verdict.value) for verdict in judged]
    against = objections(pairs, signals, asked, holdings, entries)
    found = (
        Judgement(0, f"{reason}; {verdict.reason}", verdict.quote, probability=0.0)
        if reason
        else verdict
        for verdict, reason in zip(judged, against, strict=True)
    )
    return [
        AspectVerdicts(tuple(tuple(islice(found, len(sample.chunks))) for _ in texts), items=texts)
        for sample, texts in zip(samples, listed, strict=True)
    ]


def statements(
    samples: Sequence[Sample], model: Model, embedder: Embedder | None, reader: Reader
) -> list[AspectVerdicts]:
    """Say which statements of the chunks are relevant to the question."""
    parts = [sample.parts["statements"] for sample in samples]
    pairs = [
        (sample.question, statement)
        for sample, chunks in zip(samples, parts, strict=True)
        for chunk in chunks
        for statement in chunk
    ]
    found = iter(_verdicts(pairs, model, embedder, reader, related=False))
    return [
        AspectVerdicts(tuple(tuple(islice(found, len(chunk))) for chunk in chunks), parts=chunks)
        for chunks in parts
    ]


def entities(
    samples: Sequence[Sample], find: EntityFinder, reader: Reader, holdings: Held
) -> list[AspectVerdicts]:
    """Find the entities of each reference, and which chunks hold them."""
    listed = cache(find)
    found = []
    for sample in samples:
        items = tuple(listed(sample.reference))
        quoted = cache(Holdings)  # of the pieces of one sample: nobody else asks for them
        rows = tuple(
            tuple(_held(item, chunk, reader, holdings, quoted) for chunk in sample.chunks)
            for item in items
        )
        found.append(AspectVerdicts(rows, items=items))
    return found


def scores(pairs: Pairs, model: Model, embedder: Embedder | None, aspect: str) -> Floats:
    """Return the score, 0 to 1, of pairs of a text and a chunk; 0 where something is against it."""
    if not pairs:
        return np.zeros(0)
    related = aspect != "statements"
    signals = compare(pairs, embedder, closest=aspect == "claims", related=related)
    found = np.array([logistic(total) for total in model.sums(signals.columns()).tolist()])
    if aspect == "claims":
        none = [""] * len(pairs)
        against = objections(pairs, signals, [True] * len(pairs), cache(Holdings), none)
        found[[bool(reason) for reason in against]] = 0.0
    return found


def _verdicts(
    pairs: Pairs,
    model: Model,
    embedder: Embedder | None,
    reader: Reader,
    *,
    related: bool = True,
) -> list[Judgement]:
    if not pairs:
        return []
    counted = "often" in model.weights
    signals = compare(pairs, embedder, related=related, counted=counted, reader=reader)
    return _judged(signals, model, "the question")


def _judged(signals: Signals, model: Model, what: str) -> list[Judgement]:
    """Judge pairs of a text and a chunk by the weights of a model."""
    columns = signals.columns()
    sums = model.sums(columns)
    likeness = columns.get("closest", columns.get("similarity"))
    reason = cache(partial(_reason, model.thresholds[0]))  # many pairs share no word, or all
    return [
        Judgement(grade, reason(score, cover, like), quote, probability=score)
        if words
        else Judgement.failed(JudgeReason.NO_WORDS, what)
        for grade, score, cover, like, words, quote in zip(
            model.grades(sums).tolist(),
            map(logistic, sums.tolist()),
            columns["cover"].tolist(),
            [None] * len(sums) if likeness is None else likeness.tolist(),
            signals.overlap.words.tolist(),
            signals.quotes(),
            strict=True,
        )
    ]


def _reason(threshold: float, score: float, cover: float, likeness: float | None) -> str:
    like = "" if likeness is None else f", likeness {likeness:.2f}"
    return f"score {score:.2f} (yes from {threshold:.2f}): {cover:.0%} of the words{like}"


def _held(entity: str, chunk: str, reader: Reader, holdings: Held, quoted: Held) -> Judgement:
    if not holdings(chunk).holds(entity):
        return MISSING
    for piece in reader.pieces_of(chunk):
        if quoted(piece).holds(entity):
            return Judgement(1, "in the chunk", piece)
    return Judgement(1, "in the chunk")


def objections(
    pairs: Pairs,
    signals: Signals,
    asked: Sequence[bool],
    holdings: Held,
    entries: Sequence[str],
) -> list[str]:
    """Return what contradicts the claim of each pair in its chunk, for the pairs in `asked`."""
    facts = cache(_facts)
    found = []
    lacking = signals.overlap.lacking.tolist()
    for pair, (claim, chunk) in enumerate(pairs):
        reason = ""
        if asked[pair]:
            language = signals.overlap.language[pair]
            missing = holdings(chunk).lacks(facts(claim, language), language)
            missing = missing or [entries[pair].rstrip(".")] * lacking[pair]
            reason = f"the chunk lacks {', '.join(missing)}" if missing else ""
            reason = reason or negation(claim, signals.around(pair), language)
        found.append(reason)
    return found


def _facts(claim: str, language: str) -> list[str]:
    """Return the names, numbers and dates of a claim."""
    found = entities_by_rules(claim)
    if language != "de":
        return found
    empty = known(language).words
    return [
        fact
        for fact in found
        if COMPOUND.search(fact) and empty.isdisjoint(fact.casefold().split())
    ]


def _denies(text: str, own: re.Pattern[str] | None) -> bool:
    """Tell whether a text denies something by the words of its language, or else of English."""
    if own is not None:
        return own.search(text) is not None
    if text.isascii():  # most texts need no search
        small = text.lower()
        if not any(word in small for word in ("not", "n't", "never", "neither")):
            return False
    return NOT.search(text) is not None


def negation(claim: str, pieces: tuple[str, str, str], language: str = ENGLISH) -> str:
    """Say whether only one side denies something; the pieces are the best and its neighbours.

    >>> negation("Tea is not taxed.", ("", "Tea is taxed.", "So is coffee."))
    'the claim denies what the chunk does not'
    >>> negation("Tea is taxed.", ("", "Tea isn’t taxed.", ""))
    'the chunk denies what the claim does not'
    >>> negation("Tea is never taxed.", ("", "There is no tax on tea.", ""))
    ''
    >>> negation("Tee wird nicht besteuert.", ("", "Tee wird besteuert.", ""), "de")
    'the claim denies what the chunk does not'
    """
    own = known(language).negations
    negative = NEGATIVE if own is None else own
    if _denies(claim, own) and not any(map(negative.search, pieces)):
        return "the claim denies what the chunk does not"
    if _denies(pieces[1], own) and not negative.search(claim):
        return "the chunk denies what the claim does not"
    return ""

"""The judge that needs no key, no server and no download: shared words and, if wanted, MiniLM.

It does not understand what it reads. It measures how much of a question or a claim is in a chunk,
and how similar they are to an embedding model, and says yes from a threshold on. The weights
were fitted on labels that people gave; see `findwell.judges.local.calibration` and, for how far it
can be trusted, docs/local-judge-measured.md. Verdicts do not depend on other samples.

A claim whose words are in a chunk is still not supported where something contradicts it: other
facts, or a negation. Similarity sees neither: a claim with another year, another name or a `not`
is as similar as before. Facts are found by rules, negations by the words of the claim's language.
German writes every noun like a name, so there only numbers, dates and names of several words are
facts.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.core.errors import takes_options
from findwell.core.findings import Finding, finding_about
from findwell.core.progress import Progress, Report
from findwell.core.spelling import spell
from findwell.core.texts.languages import ENGLISH, known, languages_of
from findwell.judges.aspects import VerdictShape, find_aspect
from findwell.judges.embeddings import cached, find_embedder
from findwell.judges.local.calibration import VERSION, Model, logistic, models
from findwell.judges.local.clauses import entries_of, find_decomposition
from findwell.judges.local.entities import EntityFinder, Holdings, entities_by_rules, entity_finder
from findwell.judges.local.reading import Reader
from findwell.judges.local.signals import Signals, compare
from findwell.judges.local.terms import with_units
from findwell.judges.verdicts import (
    AspectVerdicts,
    Judged,
    JudgeFailure,
    Judgement,
    JudgeReason,
    Sample,
)

if TYPE_CHECKING:
    from findwell.judges.embeddings import Embedder


# --- verdicts, one function per aspect ------------------------------------------------------------

Pairs: TypeAlias = list[tuple[str, str]]
Held: TypeAlias = Callable[[str], Holdings]  # remembers the texts it was asked about

MISSING = Judgement(0, "not in the chunk")
NOT = re.compile(r"\b(?:not|never|cannot|neither)\b|n['’]t\b", re.IGNORECASE)
COMPOUND = re.compile(r"\d|\w \w|\w[A-ZÄÖÜ]")  # numbers, several words, acronyms
NEGATIVE = re.compile(
    r"\b(?:not|never|cannot|neither|no|none|nor|nothing|nobody|without)\b|n['’]t\b", re.IGNORECASE
)


def relevance(
    samples: Sequence[Sample], model: Model, embedder: Embedder | None, reader: Reader
) -> list[AspectVerdicts]:
    """Grade the chunks of each sample by its question."""
    rows = [[[(sample.question, chunk) for chunk in sample.chunks]] for sample in samples]
    found = _verdicts(_pairs(rows), model, embedder, reader)
    return list(map(AspectVerdicts, _filled(rows, found)))


def claims(
    samples: Sequence[Sample],
    model: Model,
    embedder: Embedder | None,
    reader: Reader,
    holdings: Held,
) -> list[AspectVerdicts]:
    """Say which chunks support which claims: they share words, and nothing is against it."""
    rows = [
        [[(claim, chunk) for chunk in sample.chunks] for claim in sample.items["claims"]]
        for sample in samples
    ]
    found: Iterable[Judgement] = ()
    if pairs := _pairs(rows):
        entries = [
            entry
            for sample in samples
            for entry in entries_of(sample.items["claims"])
            for _ in sample.chunks
        ]
        signals = compare(
            pairs, embedder, closest=True, counted=False, reader=reader, entries=entries
        )
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
        AspectVerdicts(filled, items=sample.items["claims"])
        for sample, filled in zip(samples, _filled(rows, found), strict=True)
    ]


def statements(
    samples: Sequence[Sample], model: Model, embedder: Embedder | None, reader: Reader
) -> list[AspectVerdicts]:
    """Say which statements of the chunks are relevant to the question."""
    rows = [
        [[(sample.question, part) for part in parts] for parts in sample.parts["statements"]]
        for sample in samples
    ]
    found = _verdicts(_pairs(rows), model, embedder, reader, related=False)
    return [
        AspectVerdicts(filled, parts=sample.parts["statements"])
        for sample, filled in zip(samples, _filled(rows, found), strict=True)
    ]


def _pairs(rows: Sequence[Sequence[Pairs]]) -> Pairs:
    """Return the pairs of all samples, row by row."""
    return [pair for sample in rows for row in sample for pair in row]


def _filled(
    rows: Sequence[Sequence[Pairs]], found: Iterable[Judgement]
) -> Iterator[tuple[tuple[Judgement, ...], ...]]:
    """Go through the samples: rows of verdicts, one for each pair."""
    verdicts = iter(found)
    return (tuple(tuple(islice(verdicts, len(row))) for row in sample) for sample in rows)


def entities(
    samples: Sequence[Sample], find: EntityFinder, reader: Reader, holdings: Held
) -> list[AspectVerdicts]:
    """Find the entities of each reference, and which chunks hold them."""
    listed = cache(find)
    found = []
    for sample in samples:
        items = tuple(listed(sample.reference))
        quoted = cache(Holdings)  # of the pieces of one sample: nothing else asks for them
        rows = tuple(
            tuple(_held(item, chunk, reader, holdings, quoted) for chunk in sample.chunks)
            for item in items
        )
        found.append(AspectVerdicts(rows, items=items))
    return found


def _verdicts(
    pairs: Pairs, model: Model, embedder: Embedder | None, reader: Reader, *, related: bool = True
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
    pairs: Pairs, signals: Signals, asked: Sequence[bool], holdings: Held, entries: Sequence[str]
) -> list[str]:
    """Return what contradicts the claim of each pair in its chunk, for the pairs in `asked`."""
    facts = cache(_facts)
    found = []
    lacking, quotes = signals.overlap.lacking.tolist(), signals.quotes()
    for pair, (claim, chunk) in enumerate(pairs):
        reason = ""
        if asked[pair]:
            language = signals.overlap.language[pair]
            missing = holdings(chunk).lacks(facts(claim, language), language)
            missing = missing or [entries[pair].rstrip(".")] * lacking[pair]
            reason = f"the chunk lacks {', '.join(missing)}" if missing else ""
            reason = reason or negation(claim, quotes[pair], language)
        found.append(reason)
    return found


def _facts(claim: str, language: str) -> list[str]:
    """Return the names, numbers and dates of a claim."""
    found = entities_by_rules(with_units(claim))
    if language != "de":
        return found
    empty = known(language).words
    return [
        fact
        for fact in found
        if COMPOUND.search(fact) and empty.isdisjoint(fact.casefold().split())
    ]


def negation(claim: str, piece: str, language: str = ENGLISH) -> str:
    """Say whether only the claim or only the best piece of the chunk denies something.

    >>> negation("Tea is not taxed.", "Tea is taxed.")
    'the claim denies what the chunk does not'
    >>> negation("Tea is taxed.", "Tea isn’t taxed.")
    'the chunk denies what the claim does not'
    >>> negation("Tea is never taxed.", "There is no tax on tea.")
    ''
    >>> negation("Tee wird nicht besteuert.", "Tee wird besteuert.", "de")
    'the claim denies what the chunk does not'
    """
    own = known(language).negations
    denying, negative = own or NOT, own or NEGATIVE
    if denying.search(claim) and not negative.search(piece):
        return "the claim denies what the chunk does not"
    if denying.search(piece) and not negative.search(claim):
        return "the chunk denies what the claim does not"
    return ""


# --- the judge ------------------------------------------------------------------------------------

TOGETHER = {True: 32, False: 500}  # samples at once, with and without a model
LOOKED_AT = 120  # characters of a chunk that tell its language


@takes_options()
class LocalJudge:
    """Verdicts by rules and a small model.

    `embedder` is `minilm` (needs findwell[semantic]), an embedder of your own, or None: only words
    count then. `thresholds` replaces the score, 0 to 1, from which a verdict is in favour, by
    aspect. `entities` is how entities are found: `rules` (the default where only words count),
    `spacy`, `spacy:MODEL`, or `auto`: spaCy's where it is installed. `decompose` is how the
    sentences of a reference become claims: `rules`, `spacy`, `auto`, or `no`, claims are sentences.
    `remember` keeps vectors on disk.

    >>> judge = LocalJudge(None)
    >>> sample = Sample("q1", "Where is the Eiffel Tower?", ("It is cold.", "A tower of Eiffel."))
    >>> (judged,) = judge.judge([sample], frozenset({"relevance"}))
    >>> [verdict.value for verdict in judged["relevance"].row]
    [0, 3]
    """

    def __init__(
        self,
        embedder: str | Embedder | None = "minilm",
        *,
        thresholds: Mapping[str, float] | None = None,
        entities: str | None = None,
        decompose: str | None = None,
        remember: bool = True,
    ) -> None:
        self._embedder: Embedder | None = None
        self._kind = "local:text"
        if embedder is not None:
            found = find_embedder(embedder)
            self._embedder = cached(found) if remember else found
            self._kind = "local" if embedder == "minilm" else f"local:{found.name}"
        self._foreign: Counter[str] = Counter()  # questions and claims of the last samples
        usual = "rules" if embedder is None else "auto"
        self._find = entity_finder(entities or usual)
        self._decomposition = find_decomposition(decompose or usual)
        chosen = {"entities": entities, "decompose": decompose}
        unusual = {name: way for name, way in chosen.items() if way not in (None, usual)}
        self._models = models("text" if self._embedder is None else "minilm", thresholds or {})
        changed = {**(thresholds or {}), **unusual}
        given = ",".join(f"{name}={spell(value)}" for name, value in changed.items())
        self.name = f"{self._kind}({given})" if given else self._kind

    def __repr__(self) -> str:
        return f"<LocalJudge {self.name}>"

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {
            "judge": self.name,
            "version": VERSION,
            "embedder": self._embedder.name if self._embedder else None,
            "entities": self._find.name,
            "claims": self._decomposition.name,
            "weights": {
                aspect: {"intercept": model.intercept, **model.weights}
                for aspect, model in self._models.items()
            },
            "thresholds": {
                aspect: [round(each, 6) for each in model.thresholds]
                for aspect, model in self._models.items()
            },
            "calls": 0,
        }

    def claims_of(self, references: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return the claims of references, given as their sentences: one for each entry of a list.

        >>> LocalJudge(None).claims_of([["The causes are logging, farming, and fires."]])
        [('The causes are logging.', 'The causes are farming.', 'The causes are fires.')]
        """
        return self._decomposition(references)

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""
        step = TOGETHER[self._embedder is not None]
        judged: list[Judged] = []
        self._foreign.clear()
        for start in range(0, len(samples), step):
            with _without_collection():
                judged += self._some(samples[start : start + step], aspects)
            self._foreign.update(foreign_samples(samples[start : start + step]))
            if progress is not None:
                progress(Progress(len(judged), len(samples)))
        return judged

    def findings(self) -> tuple[Finding, ...]:
        """Report how many of the last samples are not in English."""
        return foreign_findings(self._foreign, self.name, self._embedder)

    def _some(self, samples: Sequence[Sample], aspects: frozenset[str]) -> list[Judged]:
        # of these samples, so that memory does not grow with others
        reader, holdings = Reader(), cache(Holdings)
        model = self._models
        able: dict[str, Callable[[], list[AspectVerdicts]]] = {
            "relevance": lambda: relevance(samples, model["relevance"], self._embedder, reader),
            "claims": lambda: claims(samples, model["claims"], self._embedder, reader, holdings),
            "entities": lambda: entities(samples, self._find, reader, holdings),
            "statements": lambda: statements(samples, model["statements"], self._embedder, reader),
        }
        found = {aspect: given() for aspect, given in able.items() if aspect in aspects}
        # a rule that was never compared with what people say gives no verdict
        unable = JudgeFailure(JudgeReason.NEEDS_MODEL, f"{self.name} judges {', '.join(able)}")
        others = [find_aspect(name) for name in sorted(aspects - able.keys())]
        return [
            Judged(
                {aspect: each[number] for aspect, each in found.items()},
                {  # of no chunks there is nothing to say
                    aspect.name: unable
                    for aspect in others
                    if sample.chunks or aspect.shape is VerdictShape.ITEMS
                },
            )
            for number, sample in enumerate(samples)
        ]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep Python from looking for cycles again and again among thousands of new verdicts."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def foreign_samples(samples: Sequence[Sample]) -> Iterator[str]:
    """Go through the languages of the samples that are not in English.

    The question and the first chunk tell the language of a sample. A question in English about
    texts in another language is not in English either, as they have no word of it.
    """
    questions = [sample.question or sample.reference for sample in samples]
    chunks = [sample.chunks[0][:LOOKED_AT] if sample.chunks else "" for sample in samples]
    codes = languages_of([*questions, *chunks])
    for pair in zip(codes[: len(samples)], codes[len(samples) :], strict=True):
        other = [code for code in pair if code not in ("", ENGLISH)]
        yield from other[:1]


def foreign_findings(
    found: Mapping[str, int], judge: str, embedder: Embedder | None
) -> tuple[Finding, ...]:
    """Report the languages that were met, and what the verdicts about them are worth."""
    english_only = embedder is not None and getattr(embedder, "reads", "") == ENGLISH
    unread: list[str] = []  # a name for each sample, the most frequent first
    unmeasured: list[str] = []
    for code in sorted(found, key=lambda code: (-found[code], code)):
        by_words_alone = embedder is None and known(code).asking is None
        named = unread if english_only or by_words_alone else unmeasured
        named += [known(code).name] * found[code]
    by_words = ", or use local:text, which goes by words alone" if english_only else ""
    return (
        *finding_about(
            "unread-language",
            unread,
            f"# question|questions or chunk|chunks is|are in a language that {judge} cannot "
            "read. Its verdicts about it|them mean little.",
            f"ask a language model (--judge openai:MODEL){by_words}",
        ),
        *finding_about(
            "unmeasured-language",
            unmeasured,
            f"# text|texts is|are not in English, the only language {judge} was measured in.",
            "measure it on labels of your own (findwell judge card), or ask a language model",
        ),
    )

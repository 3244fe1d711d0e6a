"""A reranker as the judge: any cross-encoder that scores a question and a text.

`reranker:PATH` is a folder with an ONNX model, `reranker:NAME` a model of sentence-transformers,
and `reranker:SERVICE:MODEL` a server (`client/rerankers.toml`). A score is brought between 0 and 1;
from 0.5 on it is a yes. That threshold is not calibrated: how far a reranker agrees with people
depends on the model and the data. `findwell judge teach` fits it to labels.
"""

from __future__ import annotations

import functools
import importlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.errors import (
    EndpointError,
    FindwellError,
    JudgeError,
    OptionError,
    choose,
    needs_package,
)
from findwell.core.findings import Finding, finding_about, shorten
from findwell.core.progress import Progress
from findwell.judges.aspects import ASPECTS, Aspect, VerdictShape
from findwell.judges.client.providers import Provider
from findwell.judges.verdicts import AspectVerdicts, Judged, JudgeFailure, Judgement, JudgeReason

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.progress import Report
    from findwell.judges.client.protocol import Failure
    from findwell.judges.settings import Judge
    from findwell.judges.verdicts import Sample

Pairs: TypeAlias = Sequence[tuple[str, str]]  # a question or claim, and a text

PREFIX = "reranker:"
JUDGED_ASPECTS = ("relevance", "claims", "statements")
THRESHOLD = 0.5
SAMPLES_AT_ONCE = 32  # after which progress is reported
REQUEST_TEXTS, REQUEST_CHARACTERS = 32, 100_000  # the most in one request
# a text that answers and one that does not: where their scores leave 0 to 1, a server gives raw
# scores; those of a few other texts may lie between, and would be taken for probabilities
PROBE = [
    ("What is the capital of France?", text)
    for text in ("Paris is the capital of France.", "Bananas are rich in potassium.")
]
SERVER_SETTINGS = ("base_url", "key", "concurrency", "timeout", "headers", "retry")
UNCALIBRATED = "# verdict|verdicts of the reranker uses|use a threshold that is a guess: 0.5."
CUT = "# text|texts is|are too long for the reranker and judged by the beginning."
TEACH = "fit it to labels of people: findwell judge teach --labels POOL --judge JUDGE -o judge.json"


@dataclass(frozen=True, slots=True)
class RerankService:
    """A kind of server that scores texts for a question, and how it is asked."""

    provider: Provider
    path: str
    query: str  # the field of the question
    texts: str
    answer: str  # the field of the scores; '': the answer itself is the list
    score: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    probabilities: bool = False  # it never gives raw scores


def _services() -> dict[str, RerankService]:
    content = (files("findwell.judges.client") / "rerankers.toml").read_text(encoding="utf-8")
    found = {}
    for name, entry in tomllib.loads(content).items():
        names = {each.name for each in fields(RerankService)} & entry.keys()
        own = {each: entry.pop(each) for each in names}
        found[name] = RerankService(Provider.read(name, entry), **own)
    return found


SERVICES = _services()


def split_reranker(spec: str) -> tuple[RerankService, str] | None:
    """Return service and model of a judge; None if it asks no server for scores.

    >>> split_reranker("reranker:cohere:rerank-v3.5")[1], split_reranker("reranker:models/bge")
    ('rerank-v3.5', None)
    """
    if not spec.startswith(PREFIX):
        return None
    name, _, model = (part.strip() for part in spec.removeprefix(PREFIX).partition(":"))
    return (SERVICES[name], model or name) if name in SERVICES else None


@dataclass(frozen=True, slots=True)
class PairScorer:
    """Gives each pair of a question and a text a score between 0 and 1."""

    name: str
    score: Callable[[Pairs], Floats]
    model: str
    where: str = ""  # the server; '' if the model is on this machine
    cut: list[str] = field(default_factory=list)  # texts too long for the model, where it is known


def find_scorer(settings: Judge) -> PairScorer:
    """Return what scores pairs: a server, a folder, or a model of sentence-transformers."""
    spec = settings.model.strip().removeprefix(PREFIX).strip()
    service = split_reranker(settings.model.strip())
    changed = settings.changed()
    refused = [name for name in changed if service is None or name not in SERVER_SETTINGS]
    if refused:
        raise OptionError(
            f"the judge {settings.model} takes no {', '.join(refused)}", fix="leave it out"
        )
    if service is not None:
        return _server_scorer(*service, settings)
    if not spec:
        raise OptionError(
            "reranker needs a model",
            fix="name a folder (reranker:PATH), a model of sentence-transformers "
            f"(reranker:NAME) or a server (reranker:SERVICE:MODEL; {', '.join(SERVICES)})",
        )
    place = Path(spec).expanduser()
    if place.exists():
        from findwell.judges.embeddings import local_models  # noqa: PLC0415

        if (place / "config.json").is_file() and not any(place.rglob("*.onnx")):
            return _transformers_scorer(str(place), local_models.name_of_folder(place))
        name, encoder = local_models.onnx_cross_encoder(spec)
        model = name.partition(":")[0]
        return PairScorer(
            name, lambda pairs: _from_logits(encoder.score(pairs)), model, cut=encoder.cut
        )
    head = spec.partition(":")[0]
    if head != spec and "/" not in head:
        choose("server of rerankers", head, SERVICES)
    return _transformers_scorer(spec)


def _from_logits(rows: Sequence[Any]) -> Floats:
    """Return the probability of a yes: of one logit, or of the last of two."""
    found = []
    for row in rows:
        logits = np.atleast_1d(np.asarray(row, dtype=np.float64)).ravel()
        if len(logits) not in (1, 2):
            raise JudgeError(
                f"the model gives {len(logits)} scores to a pair: it is not a reranker",
                fix="name a cross-encoder with one score, or two (no and yes)",
            )
        gap = logits[0] if len(logits) == 1 else logits[1] - logits[0]
        found.append(1.0 / (1.0 + np.exp(-np.clip(gap, -500, 500))))
    return np.array(found, dtype=np.float64)


def _transformers_scorer(model: str, name: str = "") -> PairScorer:
    with needs_package(f"the reranker {model!r}", install="pip install sentence-transformers"):
        library: Any = importlib.import_module("sentence_transformers")
    try:
        encoder: Any = library.CrossEncoder(model)
    except Exception as error:
        raise JudgeError(
            f"sentence-transformers could not load the model: {error}", where=model
        ) from error
    usual = getattr(encoder, "default_activation_function", None)  # of earlier versions
    activation = getattr(encoder, "activation_fn", usual)
    raw = type(activation).__name__ == "Identity"

    def score(pairs: Pairs) -> Floats:
        scores = encoder.predict([list(pair) for pair in pairs], show_progress_bar=False)
        rows = np.asarray(scores, dtype=np.float64)
        return _from_logits(list(rows)) if raw or rows.ndim > 1 else rows

    return PairScorer(name or model, score, name.partition(":")[0] or model)


def _server_scorer(service: RerankService, model: str, settings: Judge) -> PairScorer:
    with needs_package("a server of rerankers", "judge"):
        import httpx  # noqa: F401, PLC0415 - missed now, not after everything else was read
    from findwell.judges.client.client import RetryPolicy  # noqa: PLC0415
    from findwell.judges.client.endpoint import Endpoint  # noqa: PLC0415
    from findwell.judges.client.jobs import Session, split_texts  # noqa: PLC0415
    from findwell.judges.client.protocol import RerankRequest  # noqa: PLC0415

    endpoint = Endpoint.find(
        model,
        base_url=settings.base_url,
        key=settings.key,
        provider=service.provider,
        headers=settings.headers,
    )
    endpoint.require_access()
    given = {name: getattr(settings, name) for name in ("concurrency", "timeout")}
    known = {name: value for name, value in given.items() if value is not None}
    retry = settings.retry or RetryPolicy(**{"concurrency": 4, **known})
    session = Session(endpoint, retry)

    def refuse(failure: Failure) -> FindwellError:
        return EndpointError(
            f"the server gave no scores: {failure}",
            where=endpoint.identity,
            status=failure.status,
            fix="check the base URL, the model, and that the server reranks",
        )

    def ask(pairs: Pairs) -> Floats:
        asked: dict[str, list[int]] = {}
        for at, (question, _) in enumerate(pairs):
            asked.setdefault(question, []).append(at)
        found = np.zeros(len(pairs))
        batches = [
            (question, rows[part])
            for question, rows in asked.items()
            for part in split_texts(
                [pairs[at][1] for at in rows], REQUEST_TEXTS, REQUEST_CHARACTERS
            )
        ]
        requests = [
            RerankRequest(question, tuple(pairs[at][1] for at in part), service)
            for question, part in batches
        ]
        answers = session.ask_all(requests, refuse)
        for (_, part), answer in zip(batches, answers, strict=True):
            found[part] = np.array(answer.vectors, dtype=np.float64)[:, 0]
        return found

    @functools.cache
    def are_raw() -> bool:
        return not service.probabilities and _leaves_range(ask(PROBE)) is not None

    def score(pairs: Pairs) -> Floats:
        raw, found = are_raw(), ask(pairs)
        if raw:
            return _from_logits(list(found))
        if (odd := _leaves_range(found)) is not None:
            raise JudgeError(
                f"the server gave the score {odd:.4g}, though others are between 0 and 1",
                where=endpoint.identity,
                fix="let the server give probabilities (a sigmoid of the model's scores)",
            )
        return found

    return PairScorer(f"{service.provider.name}:{model}", score, model, endpoint.identity)


def _leaves_range(scores: Floats) -> float | None:
    """Return the first score that is not a probability."""
    odd = scores[(scores < 0) | (scores > 1)]
    return float(odd[0]) if len(odd) else None


class RerankerJudge:
    """Says yes to what a reranker scores high enough: relevance, claims and statements."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self.name = f"{PREFIX}{scorer.name}"
        self._pairs = self._judged = 0

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order; equal pairs are scored once."""
        self._judged = len(samples)
        self._scorer.cut.clear()
        found: list[Judged] = []
        for start in range(0, len(samples), SAMPLES_AT_ONCE):
            part = samples[start : start + SAMPLES_AT_ONCE]
            wanted = dict.fromkeys(
                pair
                for sample in part
                for name in aspects
                for row in _pairs_of(sample, name) or ()
                for pair in row
            )
            scores = self._scorer.score(list(wanted)) if wanted else np.zeros(0)
            self._pairs += len(wanted)
            verdicts = {
                pair: _verdict(score) for pair, score in zip(wanted, scores.tolist(), strict=True)
            }
            found += [self._judge_one(sample, aspects, verdicts) for sample in part]
            if progress is not None:
                progress(Progress(len(found), len(samples), f"{self._pairs:,} pairs"))
        return found

    def _judge_one(
        self, sample: Sample, aspects: frozenset[str], verdicts: Mapping[tuple[str, str], Judgement]
    ) -> Judged:
        given: dict[str, AspectVerdicts] = {}
        failures: dict[str, JudgeFailure] = {}
        for name in sorted(aspects):
            pairs = _pairs_of(sample, name)
            if pairs is None:
                failures[name] = JudgeFailure(JudgeReason.NEEDS_MODEL, "a reranker scores pairs")
            elif name != "claims" and not sample.question.strip():
                failures[name] = JudgeFailure(JudgeReason.NO_QUESTION)
            else:
                rows = tuple(tuple(verdicts[pair] for pair in row) for row in pairs)
                items = sample.items[name] if name == "claims" else ()
                parts = sample.parts[name] if name == "statements" else ()
                given[name] = AspectVerdicts(rows, items=items, parts=parts)
        return Judged(given, failures)

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        server = {"endpoint": self._scorer.where} if self._scorer.where else {}
        return {
            "judge": self.name,
            "model": self._scorer.model,
            **server,
            "threshold": THRESHOLD,
            "calibrated": False,
            "pairs": self._pairs,
        }

    def findings(self) -> tuple[Finding, ...]:
        """Say that the threshold is a guess, and which texts were not read to the end."""
        guess = Finding("uncalibrated-judge", self._judged, (self.name,), UNCALIBRATED, TEACH)
        cut = map(shorten, self._scorer.cut)
        return (guess, *finding_about("cut-text", list(cut), CUT, "split long texts into chunks"))


def _pairs_of(sample: Sample, name: str) -> list[list[tuple[str, str]]] | None:
    """Return the rows of pairs that an aspect is about; None where pairs do not decide it."""
    if name not in JUDGED_ASPECTS:
        return None
    aspect: Aspect = ASPECTS.known()[name]
    match aspect.shape:
        case VerdictShape.CHUNKS:
            return [[(sample.question, chunk) for chunk in sample.chunks]]
        case VerdictShape.ITEMS:
            return [[(item, chunk) for chunk in sample.chunks] for item in sample.items[name]]
        case _:
            return [[(sample.question, part) for part in parts] for parts in sample.parts[name]]


def _verdict(score: float) -> Judgement:
    return Judgement(int(score >= THRESHOLD), f"score {score:.2f}", probability=score)

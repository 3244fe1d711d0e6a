"""The judge that needs no key, no server and no download: shared words and, if wanted, MiniLM.

It does not understand what it reads. It measures how much of a question or a claim stands in a
chunk, and how alike they are to an embedding model, and says yes from a threshold on. The weights
were fitted on labels that people gave; see `karat.judges.local.calibration` and, for how far it can
be trusted, docs/local-judge.md. A sample gets the same verdicts in any company and any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from karat.embeddings import cached, find_embedder
from karat.errors import choose
from karat.judges.local import opinions
from karat.judges.local.calibration import VERSION, models
from karat.judges.local.entities import Holdings, entity_finder
from karat.judges.local.foreign import foreign_findings, foreign_samples
from karat.judges.verdicts import Aspect, Judged, Sample
from karat.progress import Progress, Report
from karat.spelling import spell

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.embeddings import Embedder
    from karat.findings import Finding

TOGETHER = {True: 32, False: 500}  # samples at once, with and without a model


class LocalJudge:
    """Verdicts by rules and a small model.

    `embedder` is `minilm` (needs karat[semantic]), an embedder of your own, or None: only words
    count then. `thresholds` replaces the score, 0 to 1, from which a verdict is in favour, by
    aspect. `entities` is how entities are found: `rules` (the default where only words count),
    `spacy`, `spacy:MODEL`, or `auto`: spaCy's where it is installed. `remember` keeps vectors on
    disk.

    >>> judge = LocalJudge(None)
    >>> sample = Sample("q1", "Where is the Eiffel Tower?", ("It is cold.", "A tower of Eiffel."))
    >>> [verdict.value for verdict in judge.judge([sample], frozenset({"relevance"}))[0].relevance]
    [0, 3]
    """

    def __init__(
        self,
        embedder: str | Embedder | None = "minilm",
        *,
        thresholds: Mapping[str, float] | None = None,
        entities: str | None = None,
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
        self._unusual = {"entities": entities} if entities not in (None, usual) else {}
        self._set(thresholds or {})

    def _set(self, thresholds: Mapping[str, float]) -> None:
        self._thresholds = dict(thresholds)
        self._models = models("text" if self._embedder is None else "minilm", thresholds)
        changed = {**thresholds, **self._unusual}
        given = ",".join(f"{name}={spell(value)}" for name, value in changed.items())
        self._name = f"{self._kind}({given})" if given else self._kind

    def __repr__(self) -> str:
        return f"<LocalJudge {self._name}>"

    @property
    def name(self) -> str:
        """`local`, or `local:text` without a model, and what was changed about it."""
        return self._name

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {
            "judge": self._name,
            "version": VERSION,
            "embedder": self._embedder.name if self._embedder else None,
            "entities": self._find.name,
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

    def threshold(self, aspect: Aspect) -> float:
        """Return the score from which a verdict is in favour."""
        return self._models[choose("aspect with a threshold", aspect, self._models)].thresholds[0]

    def at(self, aspect: Aspect, threshold: float) -> LocalJudge:
        """Return the judge with another threshold."""
        changed = copy(self)
        changed._set({**self._thresholds, aspect: threshold})  # noqa: SLF001
        return changed

    def scores(self, pairs: Sequence[tuple[str, str]], aspect: Aspect) -> Floats:
        """Return the score, 0 to 1, of pairs of a question or claim and a chunk or statement."""
        choose("aspect with a score", aspect, self._models)
        return opinions.scores(list(pairs), self._models[aspect], self._embedder, aspect)

    def judge(
        self,
        samples: Sequence[Sample],
        aspects: frozenset[Aspect],
        progress: Report | None = None,
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""
        step = TOGETHER[self._embedder is not None]
        judged: list[Judged] = []
        self._foreign.clear()
        for start in range(0, len(samples), step):
            judged += self._some(samples[start : start + step], aspects)
            self._foreign.update(foreign_samples(samples[start : start + step]))
            if progress is not None:
                progress(Progress(len(judged), len(samples)))
        return judged

    def findings(self) -> tuple[Finding, ...]:
        """Say what of what it judged last is not in English."""
        return foreign_findings(self._foreign, self._name, self._embedder)

    def _some(self, samples: Sequence[Sample], aspects: frozenset[Aspect]) -> list[Judged]:
        model, embedder = self._models, self._embedder
        holdings = cache(Holdings)  # of these samples, so that memory does not grow with others
        found = [Judged() for _ in samples]
        if "relevance" in aspects:
            graded = opinions.relevance(samples, model["relevance"], embedder)
            found = [replace(it, relevance=row) for it, row in zip(found, graded, strict=True)]
        if "claims" in aspects:
            rows = opinions.claims(samples, model["claims"], embedder, holdings)
            found = [
                replace(it, claim_texts=sample.claims, claims=row)
                for it, sample, row in zip(found, samples, rows, strict=True)
            ]
        if "entities" in aspects:
            listed = opinions.entities(samples, self._find, holdings)
            found = [
                replace(it, entity_texts=texts, entities=row)
                for it, (texts, row) in zip(found, listed, strict=True)
            ]
        if "statements" in aspects:
            rows = opinions.statements(samples, model["statements"], embedder)
            found = [
                replace(it, statement_texts=sample.statements, statements=row)
                for it, sample, row in zip(found, samples, rows, strict=True)
            ]
        return found

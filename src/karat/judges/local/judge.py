"""The judge that needs no key, no server and no download: shared words and, if wanted, MiniLM.

It does not understand what it reads. It measures how much of a question or a claim stands in a
chunk, and how alike they are to an embedding model, and says yes from a threshold on. The weights
were fitted on labels that people gave; see `karat.judges.local.calibration` and, for how far it can
be trusted, docs/local-judge.md. A sample gets the same verdicts in any company and any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from karat.embeddings import cached, find_embedder
from karat.errors import choose
from karat.judges.local.calibration import VERSION, models
from karat.judges.local.entities import Holdings, entity_finder
from karat.judges.local.foreign import foreign_findings, foreign_samples
from karat.judges.local.opinions import claims, entities, relevance, scores, statements
from karat.judges.verdicts import AspectVerdicts, Judged, JudgeFailure, JudgeReason, Sample
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

    def threshold(self, aspect: str) -> float:
        """Return the score from which a verdict is in favour."""
        return self._models[choose("aspect with a threshold", aspect, self._models)].thresholds[0]

    def at(self, aspect: str, threshold: float) -> LocalJudge:
        """Return the judge with another threshold."""
        changed = copy(self)
        changed._set({**self._thresholds, aspect: threshold})  # noqa: SLF001
        return changed

    def scores(self, pairs: Sequence[tuple[str, str]], aspect: str) -> Floats:
        """Return the score, 0 to 1, of pairs of a question or claim and a chunk or statement."""
        choose("aspect with a score", aspect, self._models)
        return scores(list(pairs), self._models[aspect], self._embedder, aspect)

    def judge(
        self,
        samples: Sequence[Sample],
        aspects: frozenset[str],
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

    def _some(self, samples: Sequence[Sample], aspects: frozenset[str]) -> list[Judged]:
        holdings = cache(Holdings)  # of these samples, so that memory does not grow with others
        model = self._models
        known: dict[str, Callable[[], list[AspectVerdicts]]] = {
            "relevance": lambda: relevance(samples, model["relevance"], self._embedder),
            "claims": lambda: claims(samples, model["claims"], self._embedder, holdings),
            "entities": lambda: entities(samples, self._find, holdings),
            "statements": lambda: statements(samples, model["statements"], self._embedder),
        }
        found = {aspect: given() for aspect, given in known.items() if aspect in aspects}
        # a rule that was never held against what people say is no verdict
        unable = JudgeFailure(JudgeReason.NEEDS_MODEL, f"{self._name} judges {', '.join(known)}")
        failures = dict.fromkeys(sorted(aspects - known.keys()), unable)
        return [
            Judged({aspect: each[number] for aspect, each in found.items()}, failures)
            for number in range(len(samples))
        ]

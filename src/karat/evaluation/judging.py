"""The four metrics that need a judge, in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from karat.evaluation.evaluate import evaluate

if TYPE_CHECKING:
    from karat.measures import Measure
    from karat.progress import Report
    from karat.results.result import Result

JUDGED = ("context_precision", "context_recall", "context_entities_recall", "context_relevancy")


def judge(
    samples: object,
    measures: Iterable[str | Measure] | str = JUDGED,
    *,
    judge: object = "local",
    gold: object = None,
    queries: object = None,
    corpus: object = None,
    level: float | None = 0.95,
    skip_bad: bool = False,
    keep: int = 0,
    progress: Report | None = None,
) -> Result:
    """Let a judge assess what was retrieved, and measure its verdicts.

    `samples` are records with a question, what was retrieved, and a reference answer, in any shape
    that karat reads; `judge` is `local`, `openai:MODEL`, `replay:FILE`, a `karat.Judge` that also
    says how a model is asked, a function of a sample, an object that judges, or several of these.
    The other options are those of `evaluate`.

    >>> sample = {
    ...     "user_input": "What is the capital of Brazil?",
    ...     "retrieved_contexts": ["Brasília is the capital of Brazil.", "Rio lies by the sea."],
    ...     "reference": "The capital of Brazil is Brasília.",
    ... }
    >>> result = judge([sample], ["context_precision", "context_recall"], judge="local:text")
    >>> result.values
    {'context_precision': 1.0, 'context_recall': 1.0}
    """
    return evaluate(
        samples,
        gold,
        measures,
        judge=judge,
        queries=queries,
        corpus=corpus,
        level=level,
        skip_bad=skip_bad,
        keep=keep,
        progress=progress,
    )

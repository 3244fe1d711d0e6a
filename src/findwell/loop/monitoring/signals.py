"""Signals: what can be seen of retrieval in production, without a label.

`SIGNALS` is the registry: each signal with its definition, unit, bounds and the direction that is
bad. How a value is made of a call stands in `call_values`, how values become one of an hour in
`time_buckets`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from findwell.core.errors import OptionError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable


Worse = Literal["higher", "lower", "either"]

UNIT = (0.0, 1.0)
POSITIVE = (0.0, np.inf)
ANY = (-np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Signal:
    """What a signal is, and how it is to be read."""

    name: str
    what: str  # its definition, for one call; or for all of an hour where it is of none
    unit: str
    worse: Worse  # which direction is bad
    bounds: tuple[float, float] = UNIT
    summary: str = "mean"  # of the calls of an hour: mean, p50, p95, p99, count, gini, never
    reads: tuple[str, ...] = ()  # columns of the traces
    kind: str = ""  # calls that it is defined for; all that are asked for if empty
    history: bool = False  # whether earlier calls of the same slice decide, too
    ids: bool = True  # whether equal ids are told from different ones, and so renaming may matter
    needs: str = ""  # what has to be given: corpus, questions, judge
    cheap: bool = True  # whether it is shown where nothing else is asked for
    aliases: tuple[str, ...] = ()

    @property
    def per_call(self) -> bool:
        """Whether a single call has a value."""
        return self.summary not in OF_MANY_CALLS


OF_MANY_CALLS = ("count", "gini", "never")  # summaries of what a single call has no value of

_LISTED = (
    Signal(
        "queries",
        "how many calls there are in an hour",
        "an hour",
        "lower",
        bounds=POSITIVE,
        summary="count",
        ids=False,
        aliases=("queries_per_hour", "traffic"),
    ),
    Signal(
        "error",
        "1 where the call failed, else 0",
        "share",
        "higher",
        reads=("error",),
        ids=False,
        aliases=("errors", "error_rate"),
    ),
    Signal(
        "empty",
        "1 where nothing was retrieved, else 0; undefined where the call failed",
        "share",
        "higher",
        reads=("error", "docs"),
        ids=False,
        aliases=("empty_rate", "empty_result_rate", "no_results"),
    ),
    Signal(
        "latency",
        "how long the call took; the median",
        "ms",
        "higher",
        bounds=POSITIVE,
        summary="p50",
        reads=("latency_ms",),
        ids=False,
        aliases=("latency_p50", "p50", "latency_ms"),
    ),
    Signal(
        "latency_p95",
        "how long the call took; the 95th percentile",
        "ms",
        "higher",
        bounds=POSITIVE,
        summary="p95",
        reads=("latency_ms",),
        ids=False,
        aliases=("p95",),
    ),
    Signal(
        "latency_p99",
        "how long the call took; the 99th percentile",
        "ms",
        "higher",
        bounds=POSITIVE,
        summary="p99",
        reads=("latency_ms",),
        ids=False,
        aliases=("p99",),
    ),
    Signal(
        "documents",
        "how many documents were retrieved; undefined where the call failed",
        "documents",
        "lower",
        bounds=POSITIVE,
        reads=("error", "docs"),
        ids=False,
        aliases=("docs", "documents_per_query"),
    ),
    Signal(
        "top_score",
        "the score of the first document",
        "score",
        "lower",
        bounds=ANY,
        reads=("scores",),
        ids=False,
        aliases=("first_score", "score", "score_top1"),
    ),
    Signal(
        "score_gap",
        "how far the scores of the first and the second document are apart",
        "score",
        "either",
        bounds=POSITIVE,
        reads=("scores",),
        ids=False,
        aliases=("gap",),
    ),
    Signal(
        "score_spread",
        "the standard deviation of the scores of a call, if there are two or more",
        "score",
        "either",
        bounds=POSITIVE,
        reads=("scores",),
        ids=False,
        aliases=("spread",),
    ),
    Signal(
        "score_entropy",
        "how even the scores are: the entropy of what each is above the lowest, as shares of the "
        "sum, ÷ its largest value; 1 where all are equal; of three or more scores",
        "share",
        "either",
        reads=("scores",),
        ids=False,
        aliases=("entropy",),
    ),
    Signal(
        "duplicates",
        "the share of the documents that stand above already, by id",
        "share",
        "higher",
        reads=("docs",),
        aliases=("duplicate_share",),
    ),
    Signal(
        "query_length",
        "how long the question is",
        "characters",
        "either",
        bounds=POSITIVE,
        reads=("question",),
        ids=False,
        aliases=("question_length",),
    ),
    Signal(
        "other_language",
        "1 where the question is in another language than the one that is expected (English, or "
        "`--expected-language`), else 0; by words and script, undefined where nothing tells",
        "share",
        "either",
        reads=("question",),
        ids=False,
        cheap=False,
        aliases=("language",),
    ),
    Signal(
        "query_distance",
        "how far the question is from the nearest one of the evaluation set: 1 − cosine of their "
        "embeddings, at most 1",
        "distance",
        "higher",
        reads=("question",),
        ids=False,
        needs="questions",
        cheap=False,
        aliases=("distance", "distance_from_evaluation"),
    ),
    Signal(
        "near_duplicates",
        "the share of the documents with a text that nearly repeats that of one above: 80 % of "
        "all sequences of three words in common (the measure near_duplicates)",
        "share",
        "higher",
        reads=("texts", "docs"),
        ids=False,
        cheap=False,
    ),
    Signal(
        "age",
        "how old the documents are on the day of the call, on average; by the dates of their "
        "metadata or of the corpus, undefined where none has one",
        "days",
        "higher",
        bounds=POSITIVE,
        reads=("time", "docs", "doc_metadata"),
        cheap=False,
        aliases=("document_age",),
    ),
    Signal(
        "unseen",
        "the share of the documents that no earlier call of the same service and slice retrieved",
        "share",
        "either",
        reads=("docs", "service"),
        history=True,
        cheap=False,
        aliases=("unseen_documents", "new_documents"),
    ),
    Signal(
        "unknown_documents",
        "the share of the documents that the corpus does not have",
        "share",
        "higher",
        reads=("docs",),
        needs="corpus",
        cheap=False,
        aliases=("not_in_corpus",),
    ),
    Signal(
        "churn",
        "1 − RBO (p = 0.9) of the list and that of the last call that asked the same service the "
        "same question at the same hop; undefined where nobody asked it before",
        "share",
        "higher",
        reads=("question", "docs", "error", "service", "hop"),
        history=True,
        cheap=False,
        aliases=("rank_churn",),
    ),
    Signal(
        "rerank_churn",
        "1 − RBO (p = 0.9) of the list after reranking and as much of the list before; of calls of "
        "rerankers only",
        "share",
        "either",
        reads=("docs", "inputs", "error"),
        kind="reranker",
        cheap=False,
    ),
    Signal(
        "context_relevancy",
        "the share of the statements retrieved that help with the question, as a judge sees it",
        "share",
        "lower",
        reads=("question", "docs", "texts", "error"),
        ids=False,
        needs="judge",
        cheap=False,
    ),
    Signal(
        "context_precision",
        "average precision over the documents retrieved, relevant ones as a judge sees them",
        "share",
        "lower",
        reads=("question", "docs", "texts", "error"),
        ids=False,
        needs="judge",
        cheap=False,
    ),
    Signal(
        "sufficiency",
        "whether all that was retrieved is enough to answer the question, as a judge sees it",
        "share",
        "lower",
        reads=("question", "docs", "texts", "error"),
        ids=False,
        needs="judge",
        cheap=False,
        aliases=("context_sufficiency",),
    ),
    Signal(
        "concentration",
        "the Gini coefficient of how often each document was retrieved, of those that were: 0 "
        "where all were retrieved equally often, near 1 where a few take all places",
        "share",
        "higher",
        summary="gini",
        reads=("docs",),
        aliases=("gini",),
    ),
    Signal(
        "never_retrieved",
        "the share of the documents of the corpus that no call retrieved",
        "share",
        "higher",
        summary="never",
        reads=("docs",),
        needs="corpus",
        cheap=False,
    ),
)

SIGNALS: dict[str, Signal] = {each.name: each for each in _LISTED}
_NAMES = {alias: each.name for each in _LISTED for alias in (each.name, *each.aliases)}


def find_signal(name: str) -> Signal:
    """Return the signal of a name or an alias; case and hyphens do not count.

    >>> find_signal("p95").name, find_signal("Empty-Rate").name
    ('latency_p95', 'empty')
    """
    found = _NAMES.get(name.strip().casefold().replace("-", "_"))
    if found is None:
        raise OptionError(
            f"unknown signal {name!r}",
            fix=nearest(name, _NAMES) or f"choose one of {', '.join(SIGNALS)}",
        )
    return SIGNALS[found]


def find_signals(names: Iterable[str] | str | None = None) -> list[Signal]:
    """Return the signals of some names, each once; the cheap ones if none is named."""
    if names is None:
        return [each for each in SIGNALS.values() if each.cheap and not each.needs]
    listed = [names] if isinstance(names, str) else list(names)
    return list({(found := find_signal(name)).name: found for name in listed}.values())

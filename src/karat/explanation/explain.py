"""Explanations: one query step by step, under one dialect or side by side under several."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from karat.dialects import Dialect, dialect
from karat.errors import OptionError, choose
from karat.evaluation.inputs import load_inputs
from karat.explanation.explainer import Explainer, Explanation, Spoken
from karat.judges.find import find_judge, on_server
from karat.measures import DEFAULTS
from karat.read.corpus import load_corpus
from karat.relate.match.matcher import MatchContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from karat.core.normalisers import Normaliser
    from karat.core.policy import Missing
    from karat.measures import Measure
    from karat.relate.match import Matcher

MISSING = ("zero", "skip", "error")


def explain(
    run: object,
    gold: object = None,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    *,
    query: str | None = None,
    worst: int = 1,
    by: str | Matcher | None = None,
    dialects: str | Dialect | Sequence[str | Dialect] = "karat",
    ids: Normaliser = "identity",
    rel: float | None = None,
    missing: str | None = None,
    corpus: object = None,
    embedder: object = None,
    judge: object = "local",
    base_url: str | None = None,
    run_format: str | None = None,
    gold_format: str | None = None,
    skip_bad: bool = False,
) -> list[Explanation]:
    """Explain one query of a run, or the `worst` ones by the first measure.

    The options are those of `karat.evaluate`, and the values are those that it gives. Where a
    judge draws the relation, its verdicts are told too, with reasons and quotes.

    >>> gold = {"q": [["a", "b"], ["c"]]}
    >>> (told,) = explain({"q": ["a", "x", "b"]}, gold, "AP", dialects=["karat", "autorag"])
    >>> [account.value for account in told.accounts]
    [0.5, 0.41666666666666663]
    >>> print(told.differences[1])
    AP: autorag divides by groups, karat by relevant items
    """
    by = "ids" if by is None else by
    named = [dialects] if isinstance(dialects, str | Dialect) else list(dialects)
    listed: list[str | Measure] = [measures] if isinstance(measures, str) else list(measures)
    spoken = [Spoken.of(_with_missing(dialect(name), missing), listed, rel, by) for name in named]
    matchers = [matcher for each in spoken for matcher in each.matchers.values()]
    judged = [matcher.judged for matcher in matchers]
    with ExitStack() as reading:
        streams, known, _ = load_inputs(
            run,
            gold,
            run_format,
            gold_format,
            reading,
            skip_bad=skip_bad,
            texts=any(matcher.reads_texts for matcher in matchers),
            unlabelled=all(judged),
        )
    if len(streams) > 1:
        raise OptionError(
            f"{len(streams)} runs cannot be explained at once", fix="explain one run at a time"
        )
    table = None if corpus is None else load_corpus(corpus)
    judge, server = on_server(judge, base_url)
    explainer = Explainer(
        streams[0],
        known,
        MatchContext(corpus=table, embedder=embedder, ids=ids, base_url=server),
        find_judge(judge) if any(judged) else None,
        spoken,
    )
    return explainer.explain(explainer.worst(worst) if query is None else [query])


def _with_missing(speaks: Dialect, missing: str | None) -> Dialect:
    if missing is None:
        return speaks
    chosen = cast("Missing", choose("choice for missing queries", missing, MISSING))
    return replace(speaks, policy=replace(speaks.policy, missing=chosen))


__all__ = ["Explanation", "explain"]

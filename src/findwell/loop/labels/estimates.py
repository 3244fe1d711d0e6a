"""`findwell.ppi`: what some labels say about all, alone and together with a judge.

Which estimator is right depends on the measure and on how pairs came to be labelled:

- all that a measure needs is labelled: its values are known, and the interval is the usual one;
- a sample of pairs, and a measure that adds up labels (P, RBP, DCG): labels weighed by the
  probability with which they were drawn (`pairs`); recall is a ratio of two such sums (`ratio`);
- some queries labelled as a whole: the values of these queries, and the judge's of all (`queries`);
- otherwise the labels only say between what the value lies (`bounds`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from findwell.core.errors import InputError, MeasureError, OptionError, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.evaluation.evaluate import evaluate
from findwell.evaluation.inputs import collect_runs
from findwell.evaluation.plan import EvaluationOptions, Plan
from findwell.evaluation.results.estimates import Estimates
from findwell.loop.labels.estimator import Estimator
from findwell.loop.labels.known_pairs import UNJUDGED, load_pairs
from findwell.measures import DEFAULTS, parse_measure
from findwell.measures.dialects import dialect as find_dialect
from findwell.measures.dialects import expand_measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from findwell.evaluation.results.result import Result
    from findwell.io.read import RunLike
    from findwell.measures import Measure

JUDGED = "relevance"


@takes_options(EvaluationOptions)
def ppi(
    run: RunLike | Mapping[str, RunLike],
    labels: object,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    **options: Unpack[EvaluationOptions],
) -> Estimates:
    """Estimate measures from labels of some pairs, alone and together with a judge.

    `labels` is the folder of a pool or its labels.db, a `findwell.Labels`, any gold, or a frame of
    query, doc, grade, probability and stratum, in which a pair without a label has no grade.
    `judge` is that of `findwell.evaluate`; without it the grades count that the pool's judge gave,
    if there was one. For each measure there is what the judge says alone, what labels say alone,
    and both together (`ppi`): the judge's mean, corrected by how far it errs on what people
    labelled. For several runs there are also the differences from the first one. The
    other options are those of `findwell.evaluate`; see docs/estimates.md.

    >>> run = {"q1": ["a", "b"], "q2": ["c", "d"], "q3": ["e", "f"]}
    >>> labels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 0, "d": 0}, "q3": {"e": 1, "f": 1}}
    >>> found = ppi(run, labels, "P@2")
    >>> found["P@2", "labels"].value, found["P@2", "labels"].estimator
    (0.5, 'all')
    """
    result = evaluate_with_labels(run, labels, measures, **options)
    return result.estimates or Estimates(())


def evaluate_with_labels(
    run: RunLike | Mapping[str, RunLike],
    labels: object,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    **options: Unpack[EvaluationOptions],
) -> Result:
    """Return the result of `findwell.evaluate` against the labels, with the estimates of `ppi`."""
    refuse_after_fork()
    if options.get("by") is not None or options.get("missing") == "skip":
        raise OptionError(
            "labels are of documents, compared by their ids, and every query counts",
            fix="leave out --by and --missing",
        )
    dialect = find_dialect(options.get("dialect", "findwell"))
    wanted = expand_measures(measures, dialect, options.get("rel"))
    _check(wanted)
    judging = options.get("judge") is not None or any(each.relation for each in wanted)
    known = load_pairs(labels, texts=judging and options.get("corpus") is None)
    if not known.labels:
        raise InputError("there is no label yet", where="labels", fix="label some pairs first")
    least = min(each.level() for each in wanted)
    relevant = bool((known.column("grade", UNJUDGED) >= least).any())
    # where people found nothing relevant at all, the values are 0, and the gold is not to blame;
    # which candidate stands where in the list is always asked for
    asked: list[str | Measure] = [*(wanted if relevant else ()), parse_measure("judged")]
    if judging:
        asked.append(_asked_of_judge(wanted))
        options["judge"] = options.get("judge") or "local"
        if options.get("corpus") is None:
            options["corpus"] = known.texts
    runs: Any = run
    queries = known.queries
    if queries is None:
        runs, answered = collect_runs(run, Plan.of(wanted, **options).reading)
        more = known.pairs.select("query").unique(maintain_order=True)
        queries = pl.concat([answered, more.join(answered, on="query", how="anti")], how="diagonal")
    level = options.setdefault("level", 0.95) or 0.95
    gold, item_pairs = known.gold(queries)
    result = evaluate(runs, gold, list(dict.fromkeys(asked)), **(options | {"missing": "zero"}))
    result = replace(
        result,
        measures=wanted,
        # what few labels say about a query is no problem of the gold here
        findings=tuple(each for each in result.findings if each.kind != "no-relevant-item"),
    ).with_options(bounds=True)
    found = Estimator(result, known, item_pairs, level, judging=judging)
    rows = [row for name in result.runs for each in wanted for row in found.rows(each, name)]
    first, *others = result.runs
    rows += [row for name in others for each in wanted for row in found.rows(each, name, first)]
    design = {**known.described(), "queries": result.queries.height, "measures": found.designs}
    if judging:
        design["judge"] = result.judge["name"]
    elif known.judged:
        design["judge"] = known.about.get("pool_judge") or "of the pool"
    return replace(result, estimates=Estimates(tuple(rows), design, level))


def _check(measures: Sequence[Measure]) -> None:
    """Refuse measures that labels of pairs say nothing about."""
    for measure in measures:
        if measure.relation not in (None, JUDGED):
            raise MeasureError(
                f"labels say which document helps with which query, and {measure} reads "
                f"{measure.relation}",
                fix="estimate P@5, recall@10, nDCG@10, context_precision or the like, and score "
                "this one without labels",
            )
        if not isinstance(measure.k, int | None):
            raise MeasureError(
                f"{measure} cuts lists by cost, and labels are of ranks",
                fix="estimate it at a rank, such as P@5",
            )
        if measure.aggregation != "mean" or measure.facts():
            raise MeasureError(
                f"{measure} is no mean of what documents are labelled",
                fix="estimate P@5, recall@10, nDCG@10, context_precision or the like",
            )


def _asked_of_judge(measures: Sequence[Measure]) -> Measure:
    """Return a measure for which a judge is asked about all that the others need."""
    depths = [each.depth(listed=each.relation is not None) for each in measures]
    deepest = "" if None in depths else f"@{max(depth or 1 for depth in depths)}"
    return parse_measure(f"P{deepest}/{JUDGED}")

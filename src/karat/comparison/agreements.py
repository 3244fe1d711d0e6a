"""Agreement: of two rankings of documents, two orders of systems, two sets of labels."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from karat.align.align import align
from karat.core.data import Gold
from karat.core.policy import Policy
from karat.errors import AlignError, OptionError, choose
from karat.findings import EXAMPLES, Finding
from karat.read import GoldLike, RunLike, load_gold, load_run
from karat.read.queries import load_queries
from karat.results.loaded import load
from karat.results.result import Result
from karat.statistics.agreement import WEIGHTS, kappa
from karat.statistics.rankings import in_common, kendall_tau, rbo, tau_ap_symmetric

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

    from karat.core.data import Run
    from karat.measures import Measure

Row: TypeAlias = dict[str, Any]
Labels: TypeAlias = dict[tuple[str, ...], Any]

SUMMARY: dict[str, PolarsDataType] = {
    "statistic": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "undefined": pl.Int64,
    "reason": pl.String,
}
RANKINGS = ("rbo", "tau", "tau_ap")
KAPPAS = {"none": "kappa", "linear": "kappa (linear)", "quadratic": "kappa (quadratic)"}


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far two sides agree; `details` has a row a query, a system or a pair of labels."""

    kind: str  # rankings, systems, labels
    summary: pl.DataFrame
    details: pl.DataFrame
    findings: tuple[Finding, ...] = ()

    def __getitem__(self, statistic: str) -> float | None:
        """Return the value of a statistic."""
        rows = dict(self.summary.select("statistic", "value").rows())
        value: float | None = rows[choose("statistic", statistic, rows)]
        return value

    def as_dict(self) -> dict[str, Any]:
        """Return the agreement as the JSON output prints it."""
        return {
            "kind": self.kind,
            "agreement": self.summary.to_dicts(),
            "details": self.details.to_dicts(),
            "findings": [finding.as_dict() for finding in self.findings],
        }


def agree_on_rankings(
    first: RunLike, second: RunLike, *, p: float = 0.9, k: int | None = None
) -> Agreement:
    """Compare two runs query by query: RBO of the lists, τ and τ-AP of the documents in both.

    `p` is how persistent the reader of RBO is, `k` cuts the lists. The mean is over the queries
    that both runs have and for which a statistic is defined.

    >>> found = agree_on_rankings({"q": ["a", "b", "c"]}, {"q": ["a", "c", "b"]})
    >>> round(found["tau"], 3), round(found["rbo"], 3)
    (0.333, 0.955)
    """
    lists = [_ranked(load_run(data).collect(), k) for data in (first, second)]
    queries = [query for query in lists[0] if query in lists[1]]
    if not queries:
        raise AlignError("the two runs share no query", fix="rank the same queries")
    rows = []
    for query in queries:
        one, other = lists[0][query], lists[1][query]
        shared = in_common(one, other)
        found = (rbo(one, other, p), kendall_tau(*shared), tau_ap_symmetric(*shared))
        values = {name: each.value for name, each in zip(RANKINGS, found, strict=True)}
        rows.append({"query": query, **values, "in_both": len(shared[0])})
    schema = {"query": pl.String, **dict.fromkeys(RANKINGS, pl.Float64), "in_both": pl.Int64}
    details = pl.DataFrame(rows, schema=schema)
    lone = [query for query in (*lists[0], *lists[1]) if query not in queries]
    return _agreement("rankings", [_mean(details[name]) for name in RANKINGS], details, lone)


def agree_on_systems(
    first: Result | str | os.PathLike[str],
    second: Result | str | os.PathLike[str],
    *,
    measures: Iterable[str | Measure] | str | None = None,
) -> Agreement:
    """Compare the order of the same runs in two results: τ and τ-AP for each measure.

    As when the same systems are judged by two golds, two sets of queries or two judges.
    """
    one, other = (each if isinstance(each, Result) else load(each) for each in (first, second))
    one = one if measures is None else one.score(measures)
    other = other.score([str(measure) for measure in one.measures])
    runs = [run for run in one.runs if run in other.runs]
    if not runs:
        raise AlignError("the two results share no run", fix="give the same systems the same names")
    summary: list[Row] = []
    rows: list[Row] = []
    for measure in one.measures:
        sides = [[each[run, str(measure)] for run in runs] for each in (one, other)]
        better = 1.0 if measure.higher_is_better else -1.0
        scores = [[np.nan if value is None else better * value for value in side] for side in sides]
        for name, found in (("tau", kendall_tau(*scores)), ("tau_ap", tau_ap_symmetric(*scores))):
            told = {"statistic": f"{name} {measure}", "value": found.value, "reason": found.reason}
            defined = int((~np.isnan(scores).any(axis=0)).sum())
            summary.append({**told, "n": defined, "undefined": len(runs) - defined})
        rows += (
            {"measure": str(measure), "system": run, "first": before, "second": after}
            for run, before, after in zip(runs, *sides, strict=True)
        )
    lone = [run for run in dict.fromkeys((*one.runs, *other.runs)) if run not in runs]
    schema = {"measure": pl.String, "system": pl.String, "first": pl.Float64, "second": pl.Float64}
    return _agreement("systems", summary, pl.DataFrame(rows, schema=schema), lone)


def agree_on_labels(
    first: GoldLike, second: GoldLike, *, column: str | None = None, level: float = 0.95
) -> Agreement:
    """Compare two sets of labels: Cohen's κ, plain and weighted, with intervals.

    Two golds are compared by the grades of the documents that both label. With `column` they are
    tables with a column `query`, perhaps one `doc`, and this column of labels: numbers or words.

    >>> labels = {"q": {"a": 1, "b": 0, "c": 1, "d": 0}}, {"q": {"a": 1, "b": 0, "c": 0, "d": 0}}
    >>> agree_on_labels(*labels)["kappa"]
    0.5
    """
    one, other = (
        _grades(load_gold(data)) if column is None else _labels(data, column)
        for data in (first, second)
    )
    if not one.keys() & other.keys():
        raise AlignError("nothing has a label in both", fix="use the same ids on both sides")
    keys = list(dict.fromkeys([*one, *other]))
    sides = [one.get(key) for key in keys], [other.get(key) for key in keys]
    found = [kappa(*sides, weights=weights, level=level) for weights in WEIGHTS]
    table = found[0].confusion
    counted = {"n": table.n, "undefined": table.left_out}
    summary: list[Row] = [
        {"statistic": "agreement", "value": found[0].agreement, "reason": "", **counted}
    ]
    summary += (
        {
            "statistic": KAPPAS[each.weights],
            "value": each.value,
            "low": each.low,
            "high": each.high,
            "reason": each.reason,
            **counted,
        }
        for each in found
    )
    counts = [
        {"first": _shown(label), "second": _shown(against), "count": table.counts[row][at]}
        for row, label in enumerate(table.labels)
        for at, against in enumerate(table.labels)
    ]
    lone = [" ".join(key) for key, *pair in zip(keys, *sides, strict=True) if None in pair]
    schema = {"first": pl.String, "second": pl.String, "count": pl.Int64}
    return _agreement("labels", summary, pl.DataFrame(counts, schema=schema), lone)


def _agreement(kind: str, rows: list[Row], details: pl.DataFrame, lone: list[str]) -> Agreement:
    """Put it together; `lone` is what only one side has."""
    findings = []
    if lone:
        what = {"rankings": "query", "systems": "system", "labels": "label"}[kind]
        message = f"{what} that only one side has: left out"
        examples = tuple(lone[:EXAMPLES])
        findings.append(Finding(f"unpaired-{what}", len(lone), examples, message))
    return Agreement(kind, pl.DataFrame(rows, schema=SUMMARY), details, tuple(findings))


def _ranked(run: Run, k: int | None) -> dict[str, list[str]]:
    """Return the documents of each query in rank order, each once."""
    names = run.rows["query"].unique(maintain_order=True)
    nothing = pl.DataFrame(schema={"query": pl.String, "doc": pl.String, "grade": pl.Float64})
    gold = Gold.build(nothing, queries=pl.DataFrame({"query": names}))
    aligned = align(run, gold, Policy())
    keep = np.ones(len(aligned.rank), dtype=bool) if aligned.repeat is None else aligned.repeat == 0
    keep &= aligned.rank <= (np.inf if k is None else k)
    lists: dict[str, list[str]] = {name: [] for name in names}
    queries = names.gather(aligned.query[keep])
    for query, doc in zip(queries, aligned.doc.filter(pl.Series(keep)), strict=True):
        lists[query].append(doc)
    return lists


def _grades(gold: Gold) -> Labels:
    rows = gold.rows().group_by("query", "doc", maintain_order=True).agg(pl.col("grade").max())
    return {(query, doc): grade for query, doc, grade in rows.rows()}


def _labels(data: object, column: str) -> Labels:
    table = load_queries(data)
    choose("column", column, [name for name in table.columns if name not in ("query", "doc")])
    keys = [name for name in ("query", "doc") if name in table.columns]
    repeated = table.filter(table.select(keys).is_duplicated())
    if repeated.height:
        raise OptionError(
            f"{' '.join(map(str, repeated.select(keys).row(0)))!r} is labelled twice",
            fix="keep one label for each, or add a column doc that tells them apart",
        )
    labels = _as_numbers(table[column])
    names = (tuple(map(str, key)) for key in table.select(keys).rows())
    return dict(zip(names, labels, strict=True))


def _as_numbers(labels: pl.Series) -> list[Any]:
    """Return labels of a text table as numbers, if they all are some."""
    if labels.dtype != pl.String:
        return labels.to_list()
    texts = [None if text is None or not text.strip() else text.strip() for text in labels]
    try:
        return [None if text is None else float(text) for text in texts]
    except ValueError:
        return texts


def _shown(label: object) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


def _mean(values: pl.Series) -> Row:
    defined = values.drop_nulls()
    return {
        "statistic": values.name,
        "value": defined.mean(),
        "n": len(defined),
        "undefined": len(values) - len(defined),
        "reason": "" if len(defined) else "undefined for every query",
    }

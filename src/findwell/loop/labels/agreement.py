"""Agreement of the annotators of a pool: all together, each with the others, and query by query.

Raw agreement alone cannot be quoted: where nearly everything is irrelevant, two people who guess
agree nearly always. So every figure stands beside the prevalence and beside what corrects for
chance, and queries on which people do not agree are listed first: there the guidelines are unclear.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from findwell.core.errors import choose
from findwell.core.findings import Finding, finding_about
from findwell.statistics.agreement import FORMULAS, agreement_of, kappa, prevalence_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats

SUMMARY: dict[str, type[pl.DataType]] = {
    "statistic": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "reason": pl.String,
}
DETAILS: dict[str, type[pl.DataType]] = {
    "of": pl.String,  # annotator, pair of annotators, query
    "name": pl.String,
    "agreement": pl.Float64,
    "kappa": pl.Float64,
    "prevalence": pl.Float64,
    "labels": pl.Int64,
    "shared": pl.Int64,  # pairs that somebody else labelled, too
}


@dataclass(frozen=True, eq=False)
class AnnotatorAgreement:
    """How far annotators agree.

    `summary` has one row per statistic: agreement (the share of pairs of annotators that gave the
    same grade), Cohen's kappa (the mean over pairs of annotators), Fleiss' kappa, Krippendorff's
    alpha on three scales, Gwet's AC1, and the prevalence of relevant pairs. `n` is how many pairs
    have two labels; intervals are of a bootstrap over these. `details` has one row per annotator
    (against all others), per two annotators, and per query, those that agree least first.
    """

    summary: pl.DataFrame
    details: pl.DataFrame
    findings: tuple[Finding, ...] = ()

    def __getitem__(self, statistic: str) -> float | None:
        """Return the value of a statistic."""
        rows = dict(self.summary.select("statistic", "value").rows())
        value: float | None = rows[choose("statistic", statistic, rows)]
        return value

    def __repr__(self) -> str:
        shown = self.summary.drop_nulls("value").select("statistic", "value").rows()
        return f"AnnotatorAgreement({', '.join(f'{name}={value:.3f}' for name, value in shown)})"


def annotator_agreement(
    said: pl.DataFrame,
    *,
    highest: int,
    rel: float = 1.0,
    level: float = 0.95,
    samples: int = 2000,
    seed: int = 0,
) -> AnnotatorAgreement:
    """Return the agreement of labels: query, doc, subtopic, annotator, grade and state.

    Adjudicated grades are left out: who decides has seen what the others said.
    """
    labels = said.filter((pl.col("state") == "labelled") & pl.col("grade").is_not_null())
    names = labels["annotator"].unique(maintain_order=True).to_list()
    keys = ["query", "doc", "subtopic"]
    if not names:
        wide = pl.DataFrame(schema=dict.fromkeys(keys, pl.String))
    else:
        wide = labels.pivot("annotator", index=keys, values="grade", aggregate_function="last")
    ratings = wide.select(names).to_numpy().astype(np.float64) if names else np.zeros((0, 0))
    scale = [float(grade) for grade in range(highest + 1)]
    figures = [
        {"statistic": each, **asdict(agreement_of(ratings, each, scale, level, samples, seed))}
        for each in FORMULAS
    ]
    share = prevalence_of(ratings, rel)
    figures.append({"statistic": "prevalence", "value": share, "n": len(ratings)})
    details = [
        *_by_annotator(names, ratings, rel),
        *_by_two(names, ratings, rel),
        *_by_query(wide["query"], ratings, rel),
    ]
    shared = int(((~np.isnan(ratings)).sum(axis=1) >= 2).sum())
    alone = finding_about(
        "single-label",
        [] if shared else names,
        "annotator whose labels nobody else gave, too: there is no agreement to measure",
        "let annotators overlap: findwell pool --overlap 20%",
    )
    return AnnotatorAgreement(
        pl.DataFrame(figures, schema=SUMMARY), pl.DataFrame(details, schema=DETAILS), tuple(alone)
    )


def _cohen(first: Floats, second: Floats) -> Any:  # noqa: ANN401
    return kappa(first.tolist(), second.tolist())


def _row(of: str, name: str, ratings: Floats, rel: float, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    given = ~np.isnan(ratings)
    raw = agreement_of(ratings, "agreement", samples=0)
    return {
        "of": of,
        "name": name,
        "agreement": raw.value,
        "kappa": None,
        "prevalence": prevalence_of(ratings, rel),
        "labels": int(given.sum()),
        "shared": int((given.sum(axis=1) >= 2).sum()),
        **more,
    }


def _by_annotator(names: Sequence[str], ratings: Floats, rel: float) -> list[dict[str, Any]]:
    """Compare each annotator with every label that others gave to the same pairs."""
    rows = []
    for at, name in enumerate(names):
        own = ratings[:, at]
        others = np.delete(ratings, at, axis=1)
        mine = np.repeat(own[:, np.newaxis], others.shape[1], axis=1).ravel()
        theirs = others.ravel()
        both = ~np.isnan(mine) & ~np.isnan(theirs)
        met = float((mine[both] == theirs[both]).mean()) if both.any() else None
        shared = int((~np.isnan(own) & (~np.isnan(others)).any(axis=1)).sum())
        rows.append(
            _row("annotator", name, own[:, np.newaxis], rel)
            | {"agreement": met, "kappa": _cohen(mine, theirs).value, "shared": shared}
        )
    return rows


def _by_two(names: Sequence[str], ratings: Floats, rel: float) -> list[dict[str, Any]]:
    return [
        _row("two annotators", f"{names[one]} – {names[other]}", ratings[:, [one, other]], rel)
        | {"kappa": _cohen(ratings[:, one], ratings[:, other]).value}
        for one, other in combinations(range(len(names)), 2)
    ]


def _by_query(queries: pl.Series, ratings: Floats, rel: float) -> list[dict[str, Any]]:
    """Return the queries that two annotators share, those with the least agreement first."""
    names = queries.to_numpy()
    rows = [
        _row("query", name, ratings[names == name], rel)
        for name in queries.unique(maintain_order=True)
    ]
    shared = [row for row in rows if row["shared"]]
    return sorted(shared, key=lambda row: (row["agreement"], -row["shared"]))

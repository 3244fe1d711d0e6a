"""Agreement: of two rankings, two orders of systems, two sets of labels, or annotators of a pool.

Raw agreement alone cannot be quoted: where nearly everything is irrelevant, two people who guess
agree nearly always. So every figure stands next to the prevalence and next to what corrects for
chance, and queries on which people do not agree are listed first: there the guidelines are unclear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.columns import normaliser
from findwell.core.data import Gold
from findwell.core.errors import (
    AlignError,
    FindwellError,
    OptionError,
    choose,
    naming_files,
    takes_options,
)
from findwell.core.findings import Finding, finding_about
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.policy import Policy
from findwell.evaluation.results.result import Result, require_result
from findwell.io.read import Kind, kind_of, load_gold, load_run, path_of, readable_again
from findwell.io.read.labels_database import database_at, table
from findwell.io.read.queries import load_queries
from findwell.io.storage.folders import is_folder
from findwell.loop.labels.labels import Labels
from findwell.relations.align import align
from findwell.statistics.agreement import (
    FORMULAS,
    WEIGHTS,
    agreement_of,
    in_common,
    kappa,
    kendall_tau,
    prevalence_of,
    rbo,
    tau_ap,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from polars._typing import PolarsDataType

    from findwell.core.columns import Normaliser
    from findwell.core.data import Floats, Run, RunStream
    from findwell.io.read import GoldLike, RunLike
    from findwell.measures import Measure

Row: TypeAlias = dict[str, Any]
LabelsByKey: TypeAlias = dict[tuple[str, ...], Any]
Change: TypeAlias = "Callable[[pl.Series], pl.Series] | None"  # of ids

SUMMARY_COLUMNS: dict[str, PolarsDataType] = {
    "statistic": pl.String,
    **dict.fromkeys(("value", "low", "high"), pl.Float64),
    **dict.fromkeys(("n", "undefined"), pl.Int64),
    "reason": pl.String,
}
ANNOTATOR_COLUMNS: dict[str, PolarsDataType] = {
    **dict.fromkeys(("of", "name"), pl.String),  # annotator, two annotators, query
    **dict.fromkeys(("agreement", "kappa", "prevalence"), pl.Float64),
    **dict.fromkeys(("labels", "shared"), pl.Int64),  # shared: others labelled it, too
}
KINDS = ("rankings", "labels", "systems")
ANNOTATORS = "annotators"  # of one pool
RANK_STATISTICS = ("rbo", "tau", "tau_ap")
KAPPAS = {"none": "kappa", "linear": "kappa (linear)", "quadratic": "kappa (quadratic)"}


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far two sides, or the annotators of a pool, agree.

    `summary` has one row per statistic, `details` one per query, system or pair of labels. Of
    annotators the statistics are the agreement (the share of pairs of annotators that gave the same
    grade), Cohen's kappa (the mean over pairs of annotators), Fleiss' kappa, Krippendorff's alpha
    on three scales, Gwet's AC1, and the prevalence of relevant pairs; `n` is how many pairs have
    two labels, and intervals are of a bootstrap over these. Their details have one row per
    annotator (compared with all others), per two annotators, and per query, those that agree least
    first.
    """

    kind: str  # rankings, systems, labels, annotators
    summary: pl.DataFrame
    details: pl.DataFrame
    findings: tuple[Finding, ...] = ()

    __iter__ = None  # it is read by name: Python would try the numbers 0, 1, 2 as names

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


@takes_options()
def agree(
    first: RunLike | GoldLike | Result | Labels,
    second: RunLike | GoldLike | Result | None = None,
    *,
    kind: str | None = None,
    measures: Iterable[str | Measure] | str | None = None,
    persistence: float = 0.9,
    depth: int | None = None,
    column: str | None = None,
    level: float = 0.95,
    ids: Normaliser = "identity",
    run_format: str | None = None,
    gold_format: str | None = None,
    skip_bad: bool = False,
    id_from: str | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Agreement:
    """Say how far two sides agree: two rankings, two sets of labels, or two orders of systems.

    With one side alone, the labels of a pool (`findwell.labels.Labels`, its folder or its
    labels.db), say how far its annotators agree.

    - `rankings`, two runs: RBO of the lists of each query, τ and τ-AP of the documents in both, and
      the means over the queries for which they are defined. `persistence` is the p of RBO, and
      lists are cut at `depth`.
    - `labels`, two golds: Cohen's κ of the grades of what both label, plain and weighted, with
      intervals of this `level`. With `column` they are tables with a column `query`, perhaps one
      `doc`, and this column of labels, which are numbers or words.
    - `systems`, two results (or folders of saved ones) with the same runs, as when they are judged
      by two golds or two judges: τ and τ-AP between the orders, for each of the `measures`.
    - `annotators`, one pool: raw agreement, Cohen's and Fleiss' κ, Krippendorff's α, Gwet's AC1 and
      the prevalence, and these for each annotator, each two of them, and each query.

    Without `kind` it is found out from what the first side can be read as. `ids` normalises the ids
    of documents; it, the formats, `skip_bad`, `id_from` and `fields` are those of a `Reading`.

    >>> found = agree({"q": ["a", "b", "c"]}, {"q": ["a", "c", "b"]}, kind="rankings")
    >>> round(found["tau"], 3), round(found["rbo"], 3)
    (0.333, 0.955)
    >>> people = {"q": {"a": 1, "b": 0, "c": 1, "d": 0}}, {"q": {"a": 1, "b": 0, "c": 0, "d": 0}}
    >>> agree(*people, kind="labels")["kappa"]
    0.5
    """
    refuse_after_fork()
    if second is None:
        return _on_annotators(first, kind, level)
    if kind is not None:
        choose("kind of agreement", kind, KINDS)
    sides: list[Any] = [readable_again(data) for data in (first, second)]
    reading: dict[str, Any] = {"skip_bad": skip_bad, "id_from": id_from, "fields": fields}
    read_run: Callable[..., RunStream] = partial(load_run, format=run_format, **reading)
    read_gold: Callable[..., Gold] = partial(load_gold, format=gold_format, **reading)
    chosen = kind or ("labels" if column else _kind(sides, read_run, read_gold))
    paths = [path for path in map(path_of, sides) if path]
    with naming_files({"": " and ".join(paths)}):
        if chosen == "systems":
            return _on_systems(*map(require_result, sides), measures=measures)
        change = normaliser(ids)
        if chosen == "rankings":
            runs = [read_run(each).collect() for each in sides]
            ranked = []
            for run, side in zip(runs, sides, strict=True):
                where = path_of(side, run.name)
                with naming_files({run.name: where}):
                    ranked.append(_ranked(run, depth, change))
            found = _on_rankings(*ranked, persistence=persistence)
            return _with_findings(found, *(each.findings for each in runs))
        if column is not None:
            return _on_labels(*(_labels_of_table(each, column) for each in sides), level=level)
        golds = [read_gold(each) for each in sides]
        found = _on_labels(*(_grades(each, change) for each in golds), level=level)
        return _with_findings(found, *(each.findings for each in golds))


def _on_annotators(first: Any, kind: str | None, level: float) -> Agreement:  # noqa: ANN401
    """Say how far the annotators of a pool agree."""
    if kind not in (None, ANNOTATORS):
        raise OptionError(f"agreement of {kind} needs two sides", fix="name the second one, too")
    if isinstance(first, Labels):
        return first.agreement(level=level)
    if database_at(first) is None:
        raise OptionError(
            "agreement needs two sides; you gave one, and it is not a pool with labels",
            fix="name the second one, too, or the folder that findwell labels pool made",
        )
    with Labels.open(first) as labels:
        return labels.agreement(level=level)


def agree_on_labels(
    said: pl.DataFrame, *, highest: int, rel: float, level: float, samples: int
) -> Agreement:
    """Return the agreement of labels: query, doc, subtopic, annotator, grade and state.

    Adjudicated grades are left out: who decides has seen what the others said.
    """
    labels = said.filter((pl.col("state") == "labelled") & pl.col("grade").is_not_null())
    names = labels["annotator"].unique(maintain_order=True).to_list()
    keys = ["query", "doc", "subtopic"]
    wide = table([], *keys)
    if names:
        wide = labels.pivot("annotator", index=keys, values="grade", aggregate_function="last")
    ratings = wide.select(names).to_numpy().astype(np.float64) if names else np.zeros((0, 0))
    given = (~np.isnan(ratings)).sum(axis=1)
    scale = [float(grade) for grade in range(highest + 1)]
    figures = [
        {"statistic": each, **asdict(agreement_of(ratings, each, scale, level, samples, 0))}
        for each in FORMULAS
    ]
    share = prevalence_of(ratings, rel)
    figures.append({"statistic": "prevalence", "value": share, "n": len(ratings), "reason": ""})
    summary = [{**each, "undefined": int((given < 2).sum())} for each in figures]
    alone = finding_about(
        "single-label",
        [] if (given >= 2).any() else names,
        "# annotator|annotators shares|share no pair with others: there is nothing to compare.",
        "let annotators overlap: findwell labels pool --overlap 20%",
    )
    details = _annotator_details(names, wide["query"], ratings, rel)
    return Agreement(
        ANNOTATORS,
        pl.DataFrame(summary, schema=SUMMARY_COLUMNS),
        pl.DataFrame(details, schema=ANNOTATOR_COLUMNS),
        tuple(alone),
    )


def _annotator_details(
    names: Sequence[str], queries: pl.Series, ratings: Floats, rel: float
) -> list[Row]:
    """Compare each annotator with the others, each two, and the labels of each query."""

    def row(of: str, name: str, some: Floats, **known: object) -> Row:
        given = ~np.isnan(some)
        found = {
            "agreement": agreement_of(some, "agreement", samples=0).value,
            "prevalence": prevalence_of(some, rel),
            "labels": int(given.sum()),
            "shared": int((given.sum(axis=1) >= 2).sum()),
        }
        return {"of": of, "name": name, "kappa": None, **found, **known}

    rows = []
    for at, name in enumerate(names):
        own, others = ratings[:, [at]], np.delete(ratings, at, axis=1)
        mine, theirs = np.broadcast_to(own, others.shape).ravel(), others.ravel()
        both = ~np.isnan(mine) & ~np.isnan(theirs)
        met = float((mine[both] == theirs[both]).mean()) if both.any() else None
        shared = int((~np.isnan(own[:, 0]) & (~np.isnan(others)).any(axis=1)).sum())
        cohen = kappa(mine.tolist(), theirs.tolist()).value
        rows.append(row("annotator", name, own, agreement=met, kappa=cohen, shared=shared))
    for one, other in combinations(range(len(names)), 2):
        both_names = f"{names[one]} – {names[other]}"
        cohen = kappa(ratings[:, one].tolist(), ratings[:, other].tolist()).value
        rows.append(row("two annotators", both_names, ratings[:, [one, other]], kappa=cohen))
    of_query = queries.to_numpy()
    every = [
        row("query", name, ratings[of_query == name])
        for name in queries.unique(maintain_order=True)
    ]
    shared_queries = [each for each in every if each["shared"]]
    return rows + sorted(shared_queries, key=lambda each: (each["agreement"], -each["shared"]))


def _with_findings(found: Agreement, *sides: Iterable[Finding]) -> Agreement:
    """Add what was found while the two sides were read, with the name of the side."""
    read = (
        replace(each, run=each.run or name)
        for name, findings in zip(("first", "second"), sides, strict=True)
        for each in findings
    )
    return replace(found, findings=(*read, *found.findings))


def _kind(
    sides: Sequence[Any], read_run: Callable[..., RunStream], read_gold: Callable[..., Gold]
) -> str:
    """Tell what the two sides are, from what the first one can be read as."""
    if all(
        kind_of(each) is Kind.RESULT or (kind_of(each) is Kind.PATH and is_folder(each))
        for each in sides
    ):
        return "systems"
    errors: list[FindwellError] = []
    kinds = []
    for kind, read in (
        ("rankings", lambda: next(read_run(sides[0]).batches(), None)),
        ("labels", lambda: read_gold(sides[0])),
    ):
        try:
            read()
            kinds.append(kind)
        except FindwellError as error:
            errors.append(error)
    if len(kinds) == 1:
        return kinds[0]
    if errors:
        raise errors[0]
    name = path_of(sides[0], "the first side")
    raise OptionError(
        f"{name} may hold rankings or labels", fix="say --kind rankings or --kind labels (kind=)"
    )


def _on_rankings(
    first: dict[str, list[str]], second: dict[str, list[str]], *, persistence: float
) -> Agreement:
    queries = [query for query in first if query in second]
    if not queries:
        raise AlignError("the two runs share no query", fix="rank the same queries")
    rows = []
    for query in queries:
        one, other = first[query], second[query]
        shared = in_common(one, other)
        found = (rbo(one, other, persistence), kendall_tau(*shared), tau_ap(*shared))
        values = {name: each.value for name, each in zip(RANK_STATISTICS, found, strict=True)}
        rows.append({"query": query, **values, "in_both": len(shared[0])})
    schema = {"query": pl.String, **dict.fromkeys(RANK_STATISTICS, pl.Float64), "in_both": pl.Int64}
    details = pl.DataFrame(rows, schema=schema)
    lone = [query for query in (*first, *second) if query not in queries]
    return _agreement("rankings", [_mean(details[name]) for name in RANK_STATISTICS], details, lone)


def _on_systems(
    one: Result, other: Result, *, measures: Iterable[str | Measure] | str | None
) -> Agreement:
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
        for name, found in (("tau", kendall_tau(*scores)), ("tau_ap", tau_ap(*scores))):
            defined = int((~np.isnan(scores).any(axis=0)).sum())
            counted = {"n": defined, "undefined": len(runs) - defined}
            summary.append({"statistic": f"{name} {measure}", **asdict(found), **counted})
        rows += (
            {"measure": str(measure), "system": run, "first": before, "second": after}
            for run, before, after in zip(runs, *sides, strict=True)
        )
    lone = [run for run in dict.fromkeys((*one.runs, *other.runs)) if run not in runs]
    schema = {"measure": pl.String, "system": pl.String, "first": pl.Float64, "second": pl.Float64}
    return _agreement("systems", summary, pl.DataFrame(rows, schema=schema), lone)


def _on_labels(one: LabelsByKey, other: LabelsByKey, *, level: float) -> Agreement:
    if not one.keys() & other.keys():
        raise AlignError("nothing has a label in both", fix="use the same ids on both sides")
    keys = list(dict.fromkeys([*one, *other]))
    sides = [one.get(key) for key in keys], [other.get(key) for key in keys]
    found = [kappa(*sides, weights=weights, level=level) for weights in WEIGHTS]
    confusion = found[0].confusion
    counted = {"n": confusion.n, "undefined": confusion.left_out}
    summary: list[Row] = [
        {"statistic": "agreement", "value": found[0].agreement, "reason": "", **counted}
    ]
    for each in found:
        known = {name: getattr(each, name) for name in ("value", "low", "high", "reason")}
        summary.append({"statistic": KAPPAS[each.weights], **known, **counted})

    def shown(label: object) -> str:
        return f"{label:g}" if isinstance(label, float) else str(label)

    counts = [
        {"first": shown(label), "second": shown(against), "count": confusion.counts[row][at]}
        for row, label in enumerate(confusion.labels)
        for at, against in enumerate(confusion.labels)
    ]
    lone = [" ".join(key) for key, *pair in zip(keys, *sides, strict=True) if None in pair]
    schema = {"first": pl.String, "second": pl.String, "count": pl.Int64}
    return _agreement("labels", summary, pl.DataFrame(counts, schema=schema), lone)


def _agreement(kind: str, rows: list[Row], details: pl.DataFrame, lone: list[str]) -> Agreement:
    """Put it together; `lone` is what only one side has."""
    one, several = ("query", "queries") if kind == "rankings" else (kind[:-1], kind)
    message = f"# {one}|{several} is|are only on one side and left out."
    findings = finding_about(f"unpaired-{one}", lone, message)
    return Agreement(kind, pl.DataFrame(rows, schema=SUMMARY_COLUMNS), details, tuple(findings))


def _ranked(run: Run, depth: int | None, change: Change) -> dict[str, list[str]]:
    """Return the documents of each query in rank order, each once."""
    names = run.rows["query"].unique(maintain_order=True)
    gold = Gold.build(table([], "query", "doc", "grade"), queries=pl.DataFrame({"query": names}))
    rows = run.rows if change is None else run.rows.with_columns(change(run.rows["doc"]))
    aligned = align(replace(run, rows=rows), gold, Policy())
    keep = np.ones(len(aligned.rank), dtype=bool) if aligned.repeat is None else aligned.repeat == 0
    keep &= aligned.rank <= (np.inf if depth is None else depth)
    lists: dict[str, list[str]] = {name: [] for name in names}
    queries = names.gather(aligned.query[keep])
    for query, doc in zip(queries, aligned.doc.filter(pl.Series(keep)), strict=True):
        lists[query].append(doc)
    return lists


def _grades(gold: Gold, change: Change) -> LabelsByKey:
    rows = gold.rows()
    rows = rows if change is None else rows.with_columns(change(rows["doc"]))
    rows = rows.group_by("query", "doc", maintain_order=True).agg(pl.col("grade").max())
    return {(query, doc): grade for query, doc, grade in rows.rows()}


def _labels_of_table(data: Any, column: str) -> LabelsByKey:  # noqa: ANN401
    rows = load_queries(data)
    with naming_files({"": path_of(data)}):
        choose("column", column, [name for name in rows.columns if name not in ("query", "doc")])
        keys = [name for name in ("query", "doc") if name in rows.columns]
        repeated = rows.filter(rows.select(keys).is_duplicated())
        if repeated.height:
            raise OptionError(
                f"{' '.join(map(str, repeated.select(keys).row(0)))!r} is labelled twice",
                fix="keep one label for each, or add a column doc that distinguishes them",
            )
    names = (tuple(map(str, key)) for key in rows.select(keys).rows())
    return dict(zip(names, _as_numbers(rows[column]), strict=True))


def _as_numbers(labels: pl.Series) -> list[Any]:
    """Return labels of a text table as numbers, if they all are some."""
    if labels.dtype != pl.String:
        return labels.to_list()
    texts = [None if text is None or not text.strip() else text.strip() for text in labels]
    try:
        return [None if text is None else float(text) for text in texts]
    except ValueError:
        return texts


def _mean(values: pl.Series) -> Row:
    defined = values.drop_nulls()
    return {
        "statistic": values.name,
        "value": defined.mean(),
        "n": len(defined),
        "undefined": len(values) - len(defined),
        "reason": "" if len(defined) else "undefined for every query",
    }

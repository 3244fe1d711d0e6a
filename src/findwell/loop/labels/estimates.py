"""`findwell.labels.ppi`: what some labels say about all, alone and together with a judge.

Which estimator is right depends on the measure and on how pairs came to be labelled:

- all that a measure needs is labelled: its values are known, and the interval is the usual one;
- a sample of pairs, and a measure that adds up labels (P, RBP, DCG): labels weighed by the
  probability with which they were drawn (`pairs`); recall is a ratio of two such sums (`ratio`);
- some queries labelled as a whole: the values of these queries, and the judge's of all (`queries`);
- otherwise the labels only say between what the value lies (`bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from findwell.core.data import Gold, best_first
from findwell.core.errors import InputError, MeasureError, OptionError
from findwell.core.estimate import Estimate
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.values import Values
from findwell.evaluation.evaluate import execute
from findwell.evaluation.inputs import collect_runs
from findwell.evaluation.plan import EvaluationOptions, Plan, PlanOptions, flat_options, takes_plan
from findwell.evaluation.results.estimates import EstimateRow, Estimates
from findwell.evaluation.results.summaries import bounds
from findwell.io.read import load_gold
from findwell.io.read.labels_database import PAIR, database_at, final_grades, typed
from findwell.io.read.tables import frame
from findwell.judges.limits import judge_limits
from findwell.loop.labels.exchange import IMPORTED_DESIGN
from findwell.loop.labels.label_pool import SAMPLE
from findwell.loop.labels.labels import Labels
from findwell.measures import DEFAULTS, parse_measure
from findwell.measures.dcg import DCG
from findwell.measures.dialects import dialect as find_dialect
from findwell.measures.dialects import expand_measures
from findwell.measures.precision import Precision
from findwell.measures.rbp import RankBiasedPrecision
from findwell.measures.recall import Recall
from findwell.statistics.intervals import interval
from findwell.statistics.paired import paired
from findwell.statistics.prediction_powered import LabelEstimate, SampledLabels, mean_of_sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.relation import Relation
    from findwell.evaluation.results.result import Result
    from findwell.io.read import RunLike
    from findwell.measures import Measure

JUDGED_RELATION = "relevance"
PEOPLE, JUDGE = "labels", "judge"  # who says what a run is worth
UNJUDGED_GRADE = -1.0  # the grade of a candidate without a label: in the pool, but not judged
CHOSEN_DESIGN = "chosen"  # the design of a pair that was labelled though it was not its turn
KNOWN_COLUMNS = (*PAIR, "grade", "probability", "stratum", "design", "judge")
ADDING_MEASURES = (Precision, RankBiasedPrecision, DCG)  # a label adds to the value by itself
ENOUGH_QUERIES = 10  # labelled as a whole, from which the others are estimated
BY_OUTCOME = frozenset({"mm-ns", "mtf"})  # earlier labels decide what is labelled next
# few labels of a query are expected here, and they correct a judge that says yes too often
ANSWERED_FINDINGS = ("no-relevant-item", "judge-yes-rate", "unchecked-judge")
MOST_RANKS = 1 << 32  # more than any list has
ESTIMATOR_REASONS = {
    "all": "everything that the measure needs is labelled",
    "pairs": "the measure adds up labels, and pairs were drawn with known probabilities",
    "ratio": "relevant found ÷ relevant over all queries at once, since a sample of pairs does not "
    "give the recall of each query",
    "queries": "the measure is not a sum of labels, so only queries whose pairs are all labelled "
    "count",
}
UNUSED_LABELS = "; {} labels are not used: their pairs were not drawn, or their turn has not come"
AS_RANDOM = "; these are taken for a random sample of the queries"


@takes_plan(EvaluationOptions)
def ppi(
    run: RunLike | Mapping[str, RunLike],
    labels: object,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    **options: Unpack[EvaluationOptions],
) -> Estimates:
    """Estimate measures from labels of some pairs, alone and together with a judge.

    `labels` is the folder of a pool or its labels.db, a `findwell.labels.Labels`, any gold, or a
    frame of query, doc, grade, probability and stratum, in which a pair without a label has no
    grade. `judge` is that of `findwell.evaluate`; without it the grades count that the pool's judge
    gave, if there was one. For each measure there is what the judge says alone, what labels say
    alone, and both together (`ppi`): the judge's mean, corrected by how far it errs on what people
    labelled. For several runs there are also the differences from the first one. The other options
    are those of `findwell.evaluate`.

    >>> run = {"q1": ["a", "b"], "q2": ["c", "d"], "q3": ["e", "f"]}
    >>> labels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 0, "d": 0}, "q3": {"e": 1, "f": 1}}
    >>> found = ppi(run, labels, "P@2")
    >>> found["P@2", "labels"].value, found["P@2", "labels"].estimator
    (0.5, 'all')
    """
    result = evaluate_with_labels(run, labels, measures, **flat_options(options))
    return result.estimates or Estimates(())


def evaluate_with_labels(
    run: RunLike | Mapping[str, RunLike],
    labels: object,
    measures: Iterable[str | Measure] | str = DEFAULTS,
    **options: Unpack[PlanOptions],
) -> Result:
    """Return the result of `findwell.evaluate` against the labels, with the estimates of `ppi`."""
    refuse_after_fork()
    if options.get("by") is not None or options.get("missing") == "skip":
        raise OptionError(
            "labels are of documents, compared by their ids, and every query counts",
            fix="leave out --by and --read missing",
        )
    dialect = find_dialect(options.get("dialect", "findwell"))
    wanted = expand_measures(measures, dialect, options.get("rel"))
    _refuse_unlabelled(wanted)
    judging = options.get("judge") is not None or any(each.relation for each in wanted)
    known = load_pairs(labels, texts=judging and options.get("corpus") is None)
    if not known.labels:
        raise InputError("there is no label yet", where="labels", fix="label some pairs first")
    least = min(each.level() for each in wanted)
    relevant = bool((known.column("grade", UNJUDGED_GRADE) >= least).any())
    # where people found nothing relevant at all, the values are 0, and the gold is not to blame;
    # which candidate stands where in the list is always asked for
    asked: list[str | Measure] = [*(wanted if relevant else ()), parse_measure("judged")]
    if judging:
        asked.append(_asked_of_judge(wanted))
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
    options["missing"] = "zero"
    plan = Plan.of(list(dict.fromkeys(asked)), **options)
    result = execute(plan, runs, gold, options.get("progress"))
    result = replace(
        result,
        measures=wanted,
        findings=tuple(each for each in result.findings if each.kind not in ANSWERED_FINDINGS),
    ).with_options(bounds=True)
    found = Estimator(result, known, item_pairs, level, judging=judging)
    rows = [row for name in result.runs for each in wanted for row in found.rows(each, name)]
    first, *others = result.runs
    rows += [row for name in others for each in wanted for row in found.rows(each, name, first)]
    design = {**known.described(), "queries": result.queries.height, "measures": found.designs}
    of_pool = {"name": known.about.get("pool_judge") or "of the pool"} if known.judged else {}
    if judge := result.judge if judging else of_pool:
        design |= {"judge": judge["name"], "judge_limits": judge_limits(judge)}
    return replace(result, estimates=Estimates(tuple(rows), design, level))


def _refuse_unlabelled(measures: Sequence[Measure]) -> None:
    """Refuse measures that labels of pairs say nothing about."""
    for measure in measures:
        if measure.relation not in (None, JUDGED_RELATION):
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
                f"{measure} is not a mean over labels of documents",
                fix="estimate P@5, recall@10, nDCG@10, context_precision or the like",
            )


def _asked_of_judge(measures: Sequence[Measure]) -> Measure:
    """Return a measure for which a judge is asked about all that the others need."""
    depths = [each.depth(listed=each.relation is not None) for each in measures]
    deepest = "" if None in depths else f"@{max(depth or 1 for depth in depths)}"
    return parse_measure(f"P{deepest}/{JUDGED_RELATION}")


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """The pairs of a pool, one row each, and what is known of them.

    Columns: query, doc, grade (null: no label), probability (of being labelled; null: no label, or
    a label that is not part of a sample), stratum, design, judge (the grade of the pool's judge).
    A pair that could be drawn has the design `sample`, or `chosen` if it was labelled although it
    was not its turn. A pair outside of a sample that is labelled for certain has the probability 1.
    """

    pairs: pl.DataFrame
    queries: pl.DataFrame | None  # query and question; None: those of the run
    closed: bool  # whether these are all the pairs that could have been labelled
    about: dict[str, Any] = field(default_factory=dict)
    texts: pl.DataFrame | None = None  # doc and text

    @property
    def labels(self) -> int:
        """How many pairs have a label."""
        return self.pairs.height - self.pairs["grade"].null_count()

    @property
    def judged(self) -> bool:
        """Whether a judge graded any pair of the pool."""
        return bool(self.pairs["judge"].count())

    def gold(self, queries: pl.DataFrame) -> tuple[Gold, Ints]:
        """Return the pairs as gold labels, and the row of the pairs that each of its items is.

        A pair without a label is in it, too: as a document that is in the pool but unjudged.
        """
        rows = self.pairs.select("query", "doc", pl.col("grade").fill_null(UNJUDGED_GRADE))
        gold = Gold.build(rows, queries=queries)
        return gold, best_first(gold.find(rows["query"]), rows["grade"].to_numpy())

    def column(self, name: str, missing: float = np.nan) -> Floats:
        """Return a column as numbers."""
        return self.pairs[name].fill_null(missing).to_numpy()

    def described(self) -> dict[str, Any]:
        """Say how many labels there are, and how they were drawn."""
        labelled = self.pairs.filter(pl.col("grade").is_not_null())
        designs = labelled["design"].value_counts(sort=True).rows()
        strata = (
            self.pairs.filter(pl.col("stratum").is_not_null())
            .group_by("stratum")
            .agg(pairs=pl.len(), labels=pl.col("grade").count())
            .sort("stratum")
        )
        return {
            "labels": labelled.height,
            "pairs": self.pairs.height,
            "labelled_queries": labelled["query"].n_unique(),
            "sampling": {str(name): count for name, count in designs},
            "strata": strata.to_dicts(),
            **self.about,
        }


def load_pairs(labels: object, *, texts: bool = False) -> KnownPairs:
    """Read labels: a pool, its folder or database, a table of drawn pairs, or any gold labels.

    A frame has the columns query, doc and grade, and where pairs were drawn probability and
    stratum; a row without a grade is a pair that could have been labelled and was not. The design
    `chosen` marks a pair that was labelled although it was not drawn. `texts` asks for those of the
    pool.
    """
    if isinstance(labels, Labels):
        return _of_database(labels, texts=texts)
    if (database := database_at(labels)) is not None:
        with Labels.open(database) as opened:
            return _of_database(opened, texts=texts)
    table = frame(labels)
    if table is not None and "probability" in table.columns:
        return _of_frame(table)
    gold = load_gold(labels)  # type: ignore[arg-type]
    rows = gold.rows().group_by(PAIR, maintain_order=True).agg(pl.col("grade").max())
    rows = rows.with_columns(design=pl.lit(IMPORTED_DESIGN))
    return KnownPairs(rows.select(typed(rows, KNOWN_COLUMNS)), None, closed=False)


def _of_database(labels: Labels, *, texts: bool) -> KnownPairs:
    said = labels.frame().filter(pl.col("grade").is_not_null())
    grades = final_grades(said, [*PAIR, "subtopic"]).group_by(PAIR).agg(pl.col("grade").max())
    chance = said.group_by(PAIR).agg(pl.col("probability").last())
    pairs = labels.candidates().drop("probability")
    for known in (grades, chance):
        pairs = pairs.join(known, on=PAIR, how="left", maintain_order="left")
    pairs = _out_of_turn(pairs)
    if (pairs["design"] == SAMPLE).any():  # what was added to the pool later was never drawn from
        added = ~pl.col("design").is_in([SAMPLE, CHOSEN_DESIGN]) & pl.col("grade").is_not_null()
        pairs = pairs.with_columns(
            probability=pl.when(added).then(pl.lit(1.0)).otherwise("probability")
        )
    settings = labels.settings
    about: dict[str, Any] = {
        "annotators": said["annotator"].n_unique(),
        **{name: settings[name] for name in ("purpose", "depth", "seed") if name in settings},
        "pool_judge": settings.get("judge", ""),
    }
    passages = None
    if texts:  # so that a judge can read what a run only names
        filled = labels.texts().filter(pl.col("text") != "").select("doc", "text")
        passages = filled.unique("doc", keep="first", maintain_order=True)
    return KnownPairs(
        pairs.select(typed(pairs, KNOWN_COLUMNS)),
        labels.queries().select("query", "question"),
        closed=True,
        about=about,
        texts=passages if passages is not None and passages.height else None,
    )


def _out_of_turn(pairs: pl.DataFrame) -> pl.DataFrame:
    """Mark the pairs of a sample that were labelled though they were not drawn."""
    label = pl.col("grade").is_not_null() & pl.col("probability").is_null()
    chosen = (pl.col("design") == SAMPLE) & label
    return pairs.with_columns(
        design=pl.when(chosen).then(pl.lit(CHOSEN_DESIGN)).otherwise("design")
    )


def _of_frame(table: pl.DataFrame) -> KnownPairs:
    missing = [name for name in ("query", "doc", "grade") if name not in table.columns]
    if missing:
        raise InputError(
            f"the labels have no column {' and no column '.join(missing)}",
            fix="give query, doc, grade and probability; stratum where pairs were drawn by strata",
        )
    rows = table.select(typed(table, KNOWN_COLUMNS))
    drawn = pl.when(pl.col("probability").is_not_null()).then(pl.lit(SAMPLE))
    rows = _out_of_turn(
        rows.with_columns(design=pl.coalesce("design", drawn, pl.lit(IMPORTED_DESIGN)))
    )
    unknown = pl.col("probability").is_null() & pl.col("grade").is_not_null()
    several = rows.filter(unknown & (pl.col("design") != CHOSEN_DESIGN))
    if several.height and rows["probability"].count():
        query, doc = several.select(PAIR).row(0)
        raise InputError(
            f"{several.height} labels have no probability, and others have one; the first is of "
            f"query {query!r}, document {doc!r}",
            where="labels",
            fix="give 1 where the pair was labelled for certain; give the design 'chosen' where it "
            "was labelled although it was not drawn",
        )
    chances = rows["probability"].drop_nulls()
    if len(chances) and not ((chances > 0) & (chances <= 1)).all():
        raise InputError(
            "a probability of the labels is not above 0 and up to 1",
            where="labels",
            fix="give the chance with which each pair was drawn",
        )
    again = rows.filter(rows.select(PAIR).is_duplicated())
    if again.height:
        query, doc = again.select(PAIR).row(0)
        raise InputError(
            f"the labels have two rows for document {doc!r} of query {query!r}",
            where="labels",
            fix="give one row per pair; findwell.labels.Labels settles what annotators disagree "
            "about",
        )
    return KnownPairs(rows, None, closed=bool(rows["grade"].null_count()))


@dataclass(frozen=True, slots=True, eq=False)
class RunView:
    """A run as one measure sees it: by the labels, by the judge, and if all were relevant."""

    drawn: Relation  # items as in the gold
    people: Relation
    judge: Relation
    every: Relation
    verdicts: Floats  # the judge's grade of each item
    values: Values  # by PEOPLE, with bounds where labels are missing, and by JUDGE
    found: Bools  # by item: it stands in the list, as far as the measure looks
    needed: Bools  # by item: the value depends on its label
    complete: Bools  # by query: all that the value depends on is labelled
    outside: int  # units that the value depends on and that could not have been labelled


class Sought:
    """What is estimated: a measure of a run, or how much more a run has than another one."""

    def __init__(self, measure: Measure, views: Sequence[RunView]) -> None:
        self.measure, self.views = measure, views
        self.drawn = views[0].drawn
        self.complete: Bools = np.logical_and.reduce([view.complete for view in views])
        self.needed: Bools = np.logical_or.reduce([view.needed for view in views])
        # items needed by the queries that are labelled as a whole
        self.needed_by_whole: Bools = self.needed & self.complete[self.drawn.item_query]
        self.outside = sum(view.outside for view in views)

    def values(self, by: str) -> list[Floats]:
        """Return the values of the runs, by PEOPLE or by JUDGE."""
        return [each.values.of(by, self.measure) for each in self.views]

    @property
    def limits(self) -> tuple[float, float]:
        """Between which a value must lie."""
        least, most = self.measure.bounds
        return (least, most) if len(self.views) == 1 else (least - most, most - least)


class Estimator:
    """Estimates of the runs of a result."""

    def __init__(
        self, result: Result, known: KnownPairs, item_pairs: Ints, level: float, *, judging: bool
    ) -> None:
        self.result, self.level, self.closed = result, level, known.closed
        self.grade = known.column("grade")[item_pairs]
        self.chance = known.column("probability")[item_pairs]  # NaN: not part of a sample
        labelled = ~np.isnan(self.grade)
        self.sampled = bool((np.isfinite(self.chance) & labelled).any())
        # a label that an annotator chose to give is known, but says nothing about other pairs
        self.chosen = labelled & np.isnan(self.chance)
        strata = known.pairs["stratum"].fill_null("").rank("dense").to_numpy()
        self.stratum = strata.astype(np.int64)[item_pairs]
        frame = known.pairs["design"].is_in([SAMPLE, CHOSEN_DESIGN]).to_numpy()[item_pairs]
        self.drawable = frame | np.isfinite(self.chance)
        designs = known.pairs.filter(pl.col("grade").is_not_null())["design"]
        self.by_outcome = BY_OUTCOME & set(designs)
        self.pool_judge = known.column("judge", 0.0)[item_pairs]
        self.judging = judging or known.judged
        self.designs: dict[str, dict[str, str]] = {}
        self._views: dict[tuple[Measure, str], RunView] = {}
        column = result.options.cluster  # what queries share, where some are not independent
        self.clusters = None if column is None else result.queries[column].to_list()

    def rows(self, measure: Measure, run: str, baseline: str | None = None) -> list[EstimateRow]:
        """Return what the judge, labels, and both say of a run, or of its difference."""
        names = [run] if baseline is None else [run, baseline]
        sought = Sought(measure, [self.view(measure, name) for name in names])
        how, why = self.find_estimator(sought)
        if baseline is None:
            self.designs.setdefault(str(measure), {"estimator": how, "why": why})
        methods = ("labels", "ppi") if self.judging else ("labels",)
        found: dict[str, LabelEstimate] = {}
        if self.judging:
            found["judge"] = self._by_judge(sought, how)
        if how in {"bounds", "all"}:
            made = self._bounds(sought, why) if how == "bounds" else self._plain(sought)
            found |= dict.fromkeys(methods, made)
        else:
            sample = self._whole(sought) if how == "queries" else self._pairs(sought)
            samples = {"labels": sample.without_judge(), "ppi": sample}
            found |= {name: self._mean(samples[name]) for name in methods}
        used = self._used(sought, how)
        rows = []
        for method, made in found.items():
            labels, estimator = (0, "") if method == "judge" else (used, how)
            low, high = (
                None if each is None else float(np.clip(each, *sought.limits))
                for each in (made.low, made.high)
            )
            within = Estimate(made.value, low, high, made.level, "", labels, reason=made.reason)
            effective = made.effective
            if effective is not None and made.labels:
                effective *= labels / made.labels  # of pairs, where queries were counted
            rows.append(
                EstimateRow(
                    run, str(measure), method, within, labels, effective, estimator, baseline
                )
            )
        return rows

    def find_estimator(self, sought: Sought) -> tuple[str, str]:
        """Return the estimator that is right for a measure and these labels, and why."""
        if sought.complete.all():
            return "all", ESTIMATOR_REASONS["all"]
        if sought.outside and self.closed:
            return "bounds", (
                f"{sought.outside} retrieved documents that count are not in the pool, so that "
                "they could not be labelled: pool this run as well"
            )
        measure = sought.measure
        if self.sampled and self.drawable[sought.needed].all() and not sought.outside:
            beyond = int((sought.needed & self.chosen).sum())
            unused = UNUSED_LABELS.format(beyond) if beyond else ""
            adds = type(measure) in ADDING_MEASURES
            if adds or (type(measure) is Recall and not measure.support):
                how = "pairs" if adds else "ratio"
                return how, ESTIMATOR_REASONS[how] + unused
        count, of_all = int(sought.complete.sum()), len(sought.complete)
        if count >= ENOUGH_QUERIES and (self.sampled or not self.by_outcome):
            why = f"{ESTIMATOR_REASONS['queries']}, {count} of {of_all}"
            return "queries", why if self._all_drawn(sought) else why + AS_RANDOM
        if self.by_outcome and not self.sampled:
            return "bounds", (
                f"pairs were labelled in the order {', '.join(sorted(self.by_outcome))}, which "
                "looks for relevant ones, so that averages of such labels are biased: a sample "
                "(findwell labels pool --for values) gives the value"
            )
        return "bounds", (
            f"the measure does not add up labels, and {count} of {of_all} queries have all that it "
            f"needs: label at least {ENOUGH_QUERIES} queries as a whole"
        )

    def _all_drawn(self, sought: Sought) -> bool:
        """Tell whether chance alone decided which queries are labelled as a whole."""
        return self.sampled and not (sought.needed_by_whole & self.chosen).any()

    def view(self, measure: Measure, run: str) -> RunView:
        """Return how a measure sees a run."""
        if (measure, run) not in self._views:
            self._views[measure, run] = self._look(measure, run)
        return self._views[measure, run]

    def _look(self, measure: Measure, run: str) -> RunView:
        drawn = self.result.relations[run, self.result.provenance.drawn_by]
        if len(drawn.item_grade) != len(self.grade):
            raise OptionError(
                "several candidates of the pool have the same id after --read ids",
                fix="leave --read ids out: labels name documents as the pool does",
            )
        listed = measure.relation is not None
        depth = measure.depth(listed=listed)
        within = drawn.within(drawn.edge_query, drawn.edge_rank, depth)
        found, retrieved = (np.zeros(len(self.grade), dtype=bool) for _ in range(2))
        found[drawn.edge_item[within]] = True
        retrieved[drawn.edge_item] = True
        pooled = not listed and measure.counts_items and self.closed
        needed = np.ones(len(self.grade), dtype=bool) if pooled else found
        by_query = drawn.item_query
        lacking = np.bincount(by_query[needed & np.isnan(self.grade)], minlength=drawn.n)
        outside = drawn.shown(depth) - drawn.repeats(depth)
        outside = np.maximum(outside - np.bincount(by_query[found], minlength=drawn.n), 0)
        verdicts = self._verdicts(run)
        labels = np.where(np.isnan(self.grade), UNJUDGED_GRADE, self.grade)
        level = np.full(len(labels), max(1.0, measure.level()))
        people, judge, every = (
            replace(
                regraded(drawn, grade, retrieved if listed else None),
                # a list without anything relevant is bad, whether or not anything is to be found
                needed=listed or not measure.counts_items,
            )
            for grade in (labels, verdicts, level)
        )
        complete = (lacking == 0) & (outside == 0)
        by_judge = self.result.arrays[run, measure] if listed else measure.values(judge)
        table = np.array([[measure.values(people)], [by_judge]])
        values = Values(self.result.queries, (PEOPLE, JUDGE), (measure,), table)
        if not complete.all():
            ((low, high),) = bounds(people, [measure])
            values = replace(values, bounds=(np.array([[low]]), np.array([[high]])))
        known = (verdicts, values, found, needed, complete, int(outside.sum()))
        return RunView(drawn, people, judge, every, *known)

    def _verdicts(self, run: str) -> Floats:
        """Return what the judge said of each pair, whichever run brought it up; last this run."""
        base = self.result.provenance.drawn_by
        verdicts = self.pool_judge
        relations = self.result.relations.items()
        for (name, by), judged in sorted(relations, key=lambda each: each[0][0] == run):
            if by != base:
                verdicts = grades_of_units(judged, self.result.relations[name, base], verdicts)
        return verdicts

    def _used(self, sought: Sought, how: str) -> int:
        """Count the labels that an estimate rests on."""
        if how == "queries":
            return int(sought.needed_by_whole.sum())
        needed = sought.needed & ~np.isnan(self.grade)
        return int((needed & ~self.chosen if how in {"pairs", "ratio"} else needed).sum())

    def _mean(self, sample: SampledLabels) -> LabelEstimate:
        return mean_of_sample(sample, level=self.level, clusters=self.clusters)

    def _by_judge(self, sought: Sought, how: str) -> LabelEstimate:
        """Return what the judge says of the same quantity that labels are used to estimate."""
        if how != "ratio":
            return self._plain(sought, people=False)
        sample = self._pairs(sought)
        whole = replace(sample, label=sample.judged, probability=np.ones(len(sample.query)))
        return replace(self._mean(whole.without_judge()), labels=0, effective=None)

    def _plain(self, sought: Sought, *, people: bool = True) -> LabelEstimate:
        """Return the mean of known values, or of the judge's, with the usual interval."""
        bounds, columns = sought.measure.bounds, sought.values(PEOPLE if people else JUDGE)
        if len(columns) == 1:
            made = interval(columns[0], level=self.level, bounds=bounds, clusters=self.clusters)
        else:
            made = paired(*columns[::-1], level=self.level, bounds=bounds, clusters=self.clusters)[
                0
            ].difference
        used = self._used(sought, "all") if people else 0
        effective, trust = (float(used), 0.0) if people else (None, 1.0)
        return LabelEstimate(made, used, effective, trust)

    def _bounds(self, sought: Sought, why: str) -> LabelEstimate:
        """Return what the labels that are missing leave possible; there is no value in between."""
        ends: list[tuple[float, float] | None] = []
        for view in sought.views:
            low, high = view.values.bounds_of(PEOPLE, sought.measure)
            known = ~np.isnan(low)
            ends.append(
                (float(low[known].mean()), float(high[known].mean())) if known.any() else None
            )
        lower, upper = ends[0] or (None, None)
        for other in ends[1:]:  # at worst all is against this run, and for the other
            if lower is None or upper is None or other is None:
                lower = upper = None
            else:
                lower, upper = lower - other[1], upper - other[0]
        return LabelEstimate(Estimate(None, lower, upper, self.level, "", 0, reason=why), 0)

    def _pairs(self, sought: Sought) -> SampledLabels:
        """Return the pairs as things that add to the value, or to the two sums of a ratio."""
        measure, drawn = sought.measure, sought.drawn
        divisor = sought.needed.astype(np.float64) if isinstance(measure, Recall) else None
        (weight, label, judged), *others = (self._added(measure, view) for view in sought.views)
        for their_weight, their_label, their_verdict in others:
            mine = weight != 0
            label = np.where(mine, label, their_label)
            judged = np.where(mine, judged, their_verdict)
            weight = weight - their_weight
        counts = weight != 0
        if divisor is not None:
            counts |= divisor != 0
        if not counts.any():  # two lists of the same: the difference is 0, and known
            counts = ~np.isnan(self.grade) & ~self.chosen
        known = np.where(np.isnan(self.grade) | self.chosen, np.nan, label)
        return SampledLabels(
            query=drawn.item_query[counts],
            weight=weight[counts],
            label=known[counts],
            judged=judged[counts] if self.judging else np.zeros(int(counts.sum())),
            probability=self.chance[counts],
            stratum=self.stratum[counts],
            queries=drawn.n,
            divisor=None if divisor is None else divisor[counts],
        )

    def _added(self, measure: Measure, view: RunView) -> tuple[Floats, Floats, Floats]:
        """Return what a label of 1 adds for each item, and label and verdict in these terms."""
        if isinstance(measure, Recall):
            columns = (view.found, self.grade >= measure.rel, view.verdicts >= measure.rel)
            weight, label, judged = (column.astype(np.float64) for column in columns)
            return weight, label, judged
        relations = (view.every, view.people, view.judge)
        weight, label, judged = (added_by_items(measure, each, view.drawn) for each in relations)
        worth = np.where(weight == 0, 1.0, weight)
        return weight, label / worth, judged / worth

    def _whole(self, sought: Sought) -> SampledLabels:
        """Return queries as things: the value of those labelled as a whole, the judge's of all.

        Where a measure is undefined for a query, the mean is a ratio: the sum of the values ÷ the
        number of queries that have one, and both are estimated.
        """
        drawn, complete = sought.drawn, sought.complete
        chance = np.full(drawn.n, complete.mean())
        if self._all_drawn(sought):
            whole = sought.needed_by_whole
            logs = np.log(self.chance[whole])
            chance = np.exp(np.bincount(drawn.item_query[whole], logs, minlength=drawn.n))
        columns = []
        for by in (PEOPLE, JUDGE):
            column, *others = sought.values(by)
            for other in others:
                column = column - other
            has = ~np.isnan(column)
            columns.append((np.where(has, column, 0.0), has.astype(np.float64)))
        (value, has), (verdict, judge_has) = columns
        value, has = (np.where(complete, each, np.nan) for each in (value, has))
        number, zero, one = np.arange(drawn.n), np.zeros(drawn.n), np.ones(drawn.n)
        if not self.judging:
            verdict, judge_has = zero, zero
        stratum = zero.astype(np.int64)
        sample = SampledLabels(
            number, one, value, verdict, chance, stratum, drawn.n,
            paired=len(sought.views) > 1, bounds=sought.limits,
        )  # fmt: skip
        if (has[complete] == 1).all():
            return sample
        return replace(
            sample,
            query=np.concatenate((number, number)),
            weight=np.concatenate((one, zero)),
            label=np.concatenate((value, has)),
            judged=np.concatenate((verdict, judge_has)),
            probability=np.concatenate((chance, chance)),
            stratum=np.concatenate((stratum, stratum)),
            divisor=np.concatenate((zero, one)),
            kind=np.concatenate((stratum, stratum + 1)),
        )


def regraded(relation: Relation, grade: Floats, keep: Bools | None = None) -> Relation:
    """Return a relation whose items have these grades; those not kept are left out.

    Only documents with a grade of 0 or more count as judged.
    """
    keep = np.ones(len(grade), dtype=bool) if keep is None else keep
    query = relation.item_query
    order = np.lexsort((-grade, query))  # stable: items of one grade stay as they are
    order = order[keep[order]]
    place = np.full(len(grade), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    edges = keep[relation.edge_item]
    judged = np.isin(
        _keys(relation.unit_query, relation.unit_rank),
        _keys(relation.edge_query, relation.edge_rank)[edges & (grade[relation.edge_item] >= 0)],
    )
    members = np.flatnonzero(keep[relation.member_item])
    members = members[np.argsort(place[relation.member_item[members]], kind="stable")]
    return replace(
        relation,
        item_offset=np.concatenate(([0], np.cumsum(relation.count(query[keep])))),
        item_grade=grade[order],
        edge_query=relation.edge_query[edges],
        edge_rank=relation.edge_rank[edges],
        edge_item=place[relation.edge_item[edges]],
        edge_weight=None if relation.edge_weight is None else relation.edge_weight[edges],
        unit_judged=judged,
        member_item=place[relation.member_item[members]],
        member_doc=relation.member_doc.gather(members),
        item_times=None,
    )


def added_by_items(measure: Measure, relation: Relation, drawn: Relation) -> Floats:
    """Return what each item of `drawn` adds to a measure that adds up, by these grades."""
    terms = measure.terms(relation)
    gained = np.ones(len(terms.query)) if terms.value is None else terms.value
    divisor = np.broadcast_to(measure.divisor(relation).value, relation.n)
    keys = _keys(drawn.edge_query, drawn.edge_rank)  # sorted, as the edges are; each unit has one
    item = drawn.edge_item[np.searchsorted(keys, _keys(terms.query, terms.rank))].astype(np.int64)
    total: Floats = np.bincount(  # type: ignore[assignment]
        item, gained / divisor[terms.query], len(drawn.item_grade)
    )
    return total


def grades_of_units(judged: Relation, relation: Relation, otherwise: Floats) -> Floats:
    """Return for each item of a relation the grade that another one gives to its unit.

    Both are of the same run. An item of no unit, or of one that was not judged, keeps its own.
    """
    found = otherwise.copy()
    theirs = _keys(judged.edge_query, judged.edge_rank)
    ours = _keys(relation.edge_query, relation.edge_rank)
    place = np.searchsorted(theirs, ours)
    same = place < len(theirs)
    same[same] = theirs[place[same]] == ours[same]
    at = np.flatnonzero(same)[::-1]  # the last assignment wins: that of the best rank
    found[relation.edge_item[at]] = judged.item_grade[judged.edge_item[place[at]]]
    return found


def _keys(query: Ints, rank: Ints) -> Ints:
    return query.astype(np.int64) * MOST_RANKS + rank

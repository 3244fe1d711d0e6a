"""Comparisons: is the difference between systems real, how large is it, where does it come from?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from findwell.core import display
from findwell.core.errors import (
    MeasureError,
    OptionError,
    check_draws,
    check_share,
    choose,
    nearest,
)
from findwell.core.findings import FindingKind
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.verdict import UNCLEAR, UNKNOWN
from findwell.evaluation.comparison.pairing import Pairing, pair, stack
from findwell.evaluation.comparison.systems import System, gather, take_gold
from findwell.evaluation.plan import RunOptions, flat_options, takes_plan
from findwell.judges.limits import judge_lines, verdict_limit
from findwell.measures.dialects import select_measures
from findwell.statistics.intervals import aggregate
from findwell.statistics.sample_size import PlannedComparison
from findwell.statistics.unpaired import Unpaired
from findwell.statistics.verdicts import DifferenceTest, correct, correct_all_pairs
from findwell.statistics.verdicts import contrasts as contrasts_of

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

    from findwell.core.findings import Finding
    from findwell.core.verdict import Verdict
    from findwell.evaluation.comparison.systems import SystemLike
    from findwell.evaluation.results.result import Provenance
    from findwell.evaluation.results.timing import Timing
    from findwell.io.read import GoldLike
    from findwell.measures import Measure
    from findwell.statistics.verdicts import Contrast, Pair

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(display.Shown):
    """Systems against a baseline, or all pairs of them; frames are polars and export Arrow."""

    baseline: str
    systems: tuple[str, ...]  # all of them, the baseline first
    measures: tuple[Measure, ...]
    # what the frames of the same names hold, which are made when they are read
    rows: Sequence[Row]
    slice_rows: Sequence[Row]
    value_rows: Sequence[Row]
    moved_rows: Sequence[Row]
    findings: tuple[Finding, ...]
    dialect: str
    level: float
    permutations: int
    seed: int
    queries: int  # of all systems together
    cluster: str | None = None
    matched_by: Mapping[str, str] = field(default_factory=dict)  # the relation of each measure
    timing: Mapping[str, Timing] = field(default_factory=dict)  # what retrieval took, by system
    provenances: tuple[Provenance, ...] = ()  # where the results of the systems came from
    unpaired: bool = False  # whether the systems were asked different queries
    # what is said of each baseline, system and measure: what the rows are made of
    verdicts: Mapping[tuple[str, str, str], Verdict] = field(default_factory=dict)

    __iter__ = None  # it is read by name: Python would try the numbers 0, 1, 2 as names

    @cached_property
    def comparisons(self) -> pl.DataFrame:
        """One row per pair of systems and measure."""
        return pl.DataFrame(self.rows, schema=self._schema)

    @cached_property
    def slices(self) -> pl.DataFrame:
        """The same by column and slice of the queries."""
        schema = dict.fromkeys(("column", "slice"), pl.String()) | self._schema
        return pl.DataFrame(self.slice_rows, schema=schema)

    @cached_property
    def values(self) -> pl.DataFrame:
        """One row per system and measure: the aggregated value."""
        schema = {
            **dict.fromkeys(("system", "measure"), pl.String()),
            "value": pl.Float64(),
            **dict.fromkeys(("n", "undefined"), pl.Int64()),
        }
        return pl.DataFrame(self.value_rows, schema=schema)

    @cached_property
    def moved(self) -> pl.DataFrame:
        """The queries that moved most: those lost, then those won."""
        schema = {
            **dict.fromkeys(("baseline", "system", "measure", "query", "question"), pl.String()),
            **dict.fromkeys(("before", "after", "difference"), pl.Float64()),
        }
        return pl.DataFrame(self.moved_rows, schema=schema)

    @property
    def _schema(self) -> dict[str, PolarsDataType]:
        return {
            **dict.fromkeys(("baseline", "system", "measure"), pl.String()),
            "verdict": pl.String(),  # better, worse, same, unclear: by the corrected p; or unknown
            "difference": pl.Float64(),  # system − baseline
            **dict.fromkeys(("low", "high", "p", "p_adjusted", "effect"), pl.Float64()),
            **dict.fromkeys(("wins", "ties", "losses", "n", "left_out"), pl.Int64()),
            **dict.fromkeys(("baseline_value", "system_value"), pl.Float64()),
            **dict.fromkeys(("test", "correction", "method"), pl.String()),
            # corrected as p_adjusted is: 0 is outside where the verdict is better or worse
            **dict.fromkeys(("low_adjusted", "high_adjusted"), pl.Float64()),
            "smallest_p": pl.Float64(),  # that the test can give, before correction; null: any
            "reason": pl.String(),
            # queries of the baseline, which are others
            **({"baseline_n": pl.Int64()} if self.unpaired else {}),
        }

    def __getitem__(self, key: str | tuple[str, str]) -> Row:
        """Return the row of a measure: `found["recall@5"]`, `found["minilm", "recall@5"]`."""
        system, name = key if isinstance(key, tuple) else (None, key)
        if system is None:
            if len(self.systems) != 2:
                raise OptionError(
                    f"there are several systems: {', '.join(self.systems[1:])}",
                    fix=f"name one: comparison[{self.systems[-1]!r}, {name!r}]",
                )
            system = self.systems[1]
        choose("system", system, self.systems[1:])
        wanted = (self.baseline, system, str(self.measure(name)))
        keys = itemgetter("baseline", "system", "measure")
        return dict(next(row for row in self.rows if keys(row) == wanted))

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges of the systems, each in a line with what its numbers are worth."""
        return tuple(judge_lines(each.judge for each in self.provenances))

    @property
    def data_sets(self) -> tuple[str, ...]:
        """What the systems were measured on: one, unless they differ."""
        return tuple(dict.fromkeys(str(each.data_set) for each in self.provenances))

    def measure(self, name: str) -> Measure:
        """Return the measure of this name that was compared."""
        same = select_measures(name, self.measures, self.dialect)
        if len(same) == 1:
            return same[0]
        known = [str(each) for each in self.measures]
        raise MeasureError(
            f"{name} was not compared",
            fix=f"{nearest(name, known)} (compared: {', '.join(known)})".strip(),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as the JSON output prints it."""
        timings = [{"system": name, **found.as_dict()} for name, found in self.timing.items()]
        return {
            "comparisons": [{**row} for row in self.rows],
            **({"slices": [{**row} for row in self.slice_rows]} if self.slice_rows else {}),
            "values": [{**row} for row in self.value_rows],
            "moved": [{**row} for row in self.moved_rows],
            "findings": [finding.as_dict() for finding in self.findings],
            **({"timing": timings} if timings else {}),
            "baseline": self.baseline,
            **({"unpaired": True} if self.unpaired else {}),
            "dialect": self.dialect,
            "matched_by": dict(self.matched_by),
            **({"judges": list(self.judges)} if self.judges else {}),
            "level": self.level,
            "cluster": self.cluster,
            "permutations": self.permutations,
            "seed": self.seed,
        }

    def plot(self, chart: str | None = None) -> display.Picture:
        """Return a chart of this name, or the first one; notebooks show it, `save` writes it.

        `forest` has every difference with its interval. With `slices` there are `where SYSTEM`, by
        the first measure, and `where SYSTEM MEASURE`.

        >>> gold = {"q": ["a"], "r": ["a"]}
        >>> compare({"old": {"q": ["b"], "r": ["a"]}, "new": gold}, gold=gold, measures="RR").plot()
        <chart forest: Differences to old: new RR +0.500, unclear>
        """
        return display.plot(self, chart)

    def needed(self, system: str, measure: str) -> int | None:
        """Return about how many queries would show an unclear difference to the baseline.

        None where the verdict is clear, or where it cannot be said: queries in clusters, queries
        that are not paired, differences that do not vary, or SciPy is not installed.
        """
        row = self[system, measure]
        if row["verdict"] != UNCLEAR or not row["effect"] or self.unpaired or self.cluster:
            return None
        spread, difference, changed = 1.0, abs(row["effect"]), None
        if row["test"] == "mcnemar":
            difference = abs(row["difference"])
            spread = difference / abs(row["effect"])
            changed = (row["wins"] + row["losses"]) / row["n"]
        planned = PlannedComparison(spread, changed, alpha=1 - self.level)
        try:
            found = planned.queries_needed(difference, more_than=row["n"] - 1).value
        except OptionError:  # it needs SciPy, which is an extra
            return None
        return None if found is None or found <= row["n"] else int(found)

    def to_latex(self) -> str:
        """Return a table for a paper: values, with marks where the difference is significant."""
        return display.render(self, "latex")

    def __repr__(self) -> str:
        return display.render(self, "text", moved=0)


@takes_plan(RunOptions)
def compare(
    *systems: SystemLike,
    gold: GoldLike | None = None,
    baseline: str | None = None,
    measures: Iterable[str | Measure] | str | None = None,
    queries: object = None,
    rel: float | None = None,
    slices: Iterable[str] | str = (),
    all_pairs: bool = False,
    unpaired: bool = False,
    moved: int = 5,
    test: str = "auto",
    level: float = 0.95,
    permutations: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    **options: Unpack[RunOptions],
) -> Comparison:
    """Compare systems with a baseline, the first unless named, on the same queries.

    A system is a `Result`, the folder of one, or with `gold` anything that `findwell.evaluate`
    takes: a run, or a retriever, which is asked the questions of `gold`. Without `gold`, the
    records hold both. A dict names several systems, and a result with several runs is several
    systems. `gold` may also stand last: `compare({"bm25": search, "dense": retriever}, gold)`.
    Further options (`by`, `dialect`, `reading`, …) are those of `findwell.evaluate`.

    Each row has the difference (system − baseline) with its interval, the p of a paired test, the
    corrected p, the effect size (Cohen's d_z), and the numbers of queries won, tied and lost.

    `test` is `auto`, `permutation`, `t` or `mcnemar`. `auto` is McNemar's test if every value is 0
    or 1, and otherwise a sign-flip permutation test. p is corrected for the number of systems
    (Holm). `all_pairs` compares every pair, corrected by a randomised Tukey HSD. `slices` are
    columns of the queries, corrected after Benjamini and Hochberg. Queries with the same value in
    the column `cluster` are drawn and flipped together. `moved` is how many queries are kept that
    gained most, and that lost most.

    With `unpaired`, the systems were asked different queries, such as those of two periods. The
    difference is then that of two groups, tested by random divisions of all queries or by Welch's
    t-test. Rows have `baseline_n` and no wins. A query of the gold labels that a run lacks is left
    out, because it belongs to the other group (`Reading(missing="skip")`).

    >>> gold = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    >>> old, new = {q: ["x", *docs] for q, docs in gold.items()}, {"q1": ["a"], "q2": ["b", "c"]}
    >>> found = compare({"old": old, "new": new}, gold=gold, measures="RR")
    >>> row = found["new", "RR"]
    >>> row["difference"], row["p"], (row["wins"], row["losses"])
    (0.16666666666666666, 1.0, (2, 1))
    """
    refuse_after_fork()
    check_share("level", level)
    check_draws("permutations", permutations)
    if seed < 0:
        raise OptionError(f"the seed is {seed}", fix="give a whole number from 0 up")
    about = {"queries": queries, "cluster": cluster}
    chosen = {
        **flat_options(options),
        **{name: each for name, each in about.items() if each is not None},
    }
    if unpaired and gold is not None:
        chosen = {"missing": "skip", **chosen}
    systems, gold = take_gold(systems, gold)  # type: ignore[assignment]
    gathered = gather(systems, gold, measures, rel=rel, options=chosen)
    if len(gathered) < 2:
        raise OptionError(
            f"compare needs two systems or more; you gave {len(gathered)}",
            fix="name another one, such as the system before a change",
        )
    order = _baseline_first(gathered, baseline)
    result = order[0].result
    table = stack(order) if unpaired else pair(order)
    column = cluster or result.options.cluster
    clusters = None if column is None else tuple(table.column(column))
    how = DifferenceTest(level, permutations, seed, test, clusters, unpaired)
    every = combinations(range(len(order)), 2)
    pairs = [pair for pair in every if all_pairs or pair[0] == 0]
    limits = {  # measures about which a judge of the systems gives no verdict, and why
        measure: limit
        for system in order
        for measure, relation in system.result.matched_by.items()
        if (limit := verdict_limit(system.result.judge, relation))
    }
    found = contrasts(table, pairs, how, limits)
    if all_pairs and not unpaired:
        found = correct_all_pairs(found, table.by_query(), table.measures)
    else:
        found = correct(found, "holm")
    columns = [slices] if isinstance(slices, str) else list(slices)
    return Comparison(
        baseline=table.runs[0],
        systems=table.runs,
        measures=table.measures,
        rows=[row_of(table, each) for each in found],
        slice_rows=slice_rows(table, pairs, columns, how, limits),
        value_rows=[
            {
                "system": system,
                "measure": str(measure),
                **asdict(aggregate(measure, table.of(system, measure))),
            }
            for system in table.runs
            for measure in table.measures
        ],
        moved_rows=[] if unpaired else _moved(table, moved),
        findings=table.findings,
        dialect=result.dialect,
        level=level,
        permutations=permutations,
        seed=seed,
        queries=table.n,
        cluster=column,
        matched_by=result.matched_by,
        timing={
            name: each.result.timing[each.run]
            for name, each in zip(table.runs, order, strict=True)
            if each.run in each.result.timing
        },
        provenances=tuple(dict.fromkeys(each.result.provenance for each in order)),
        unpaired=unpaired,
        verdicts={
            (table.runs[each.pair[0]], table.runs[each.pair[1]], str(each.measure)): (each.verdict)
            for each in found
        },
    )


def _baseline_first(systems: list[System], named: str | None) -> list[System]:
    if named is None:
        return systems
    by_name = {system.given: system for system in systems if system.given}
    by_name |= {system.name: system for system in systems}
    if named not in by_name:
        choose("baseline", named, [system.name for system in systems])
    first = by_name[named]
    return [first, *(system for system in systems if system is not first)]


def _moved(table: Pairing, count: int) -> list[Row]:
    """Return the queries that differ most from the baseline: what was lost first, then won."""
    rows: list[Row] = []
    texts = table.queries["question"] if "question" in table.query_columns else None
    for place, system in enumerate(table.runs[1:], start=1):
        for number, measure in enumerate(table.measures):
            before, after = table.table[0, number], table.table[place, number]
            gain = np.nan_to_num(after - before) * (1 if measure.higher_is_better else -1)
            order = [np.argsort(sign * gain, kind="stable")[: max(count, 0)] for sign in (1, -1)]
            lost, won = order[0][gain[order[0]] < 0], order[1][gain[order[1]] > 0]
            rows += (
                {
                    "baseline": table.runs[0],
                    "system": system,
                    "measure": str(measure),
                    "query": table.names[int(query)],
                    "question": None if texts is None else str(texts[int(query)] or ""),
                    "before": float(before[query]),
                    "after": float(after[query]),
                    "difference": float(after[query] - before[query]),
                }
                for query in [*lost, *won]
            )
    return rows


def contrasts(
    pairing: Pairing,
    pairs: Sequence[Pair],
    how: DifferenceTest,
    limits: Mapping[str, str] | None = None,
) -> list[Contrast]:
    """Return what differs between each pair of systems by each measure, not corrected yet.

    `limits` are the measures whose judge gives no verdict about systems, and why.
    """
    strangers = {each.run for each in pairing.findings if each.kind == FindingKind.NOTHING_SHARED}
    numbers = [at for at, name in enumerate(pairing.runs) if name in strangers]
    found = contrasts_of(pairing.by_query(), pairing.measures, pairs, how, strangers=numbers)
    if not limits:
        return found
    return [replace(each, limit=limits.get(str(each.measure), "")) for each in found]


def row_of(pairing: Pairing, each: Contrast) -> Row:
    """Return a contrast as a row of the tables."""
    found, verdict = each.found, each.verdict
    left_out = found.difference.undefined
    if isinstance(found, Unpaired):
        asked = zip(each.values, each.pair, strict=True)
        left_out = sum(
            int(np.isnan(side[pairing.was_asked(pairing.runs[at])]).sum()) for side, at in asked
        )
    return {
        "baseline": pairing.runs[each.pair[0]],
        "system": pairing.runs[each.pair[1]],
        "measure": str(each.measure),
        "verdict": verdict.word,
        "difference": verdict.difference.value,
        "low": found.difference.low,
        "high": found.difference.high,
        "p": None if verdict.word == UNKNOWN else found.test.p,
        "p_adjusted": verdict.p,
        "effect": found.effect.value,
        "wins": verdict.won,
        "ties": verdict.tied,
        "losses": verdict.lost,
        "n": found.n,
        "left_out": left_out,
        "baseline_value": each.sides[0],
        "system_value": each.sides[1],
        "test": verdict.test,
        "correction": verdict.correction,
        "method": found.difference.method or None,
        "low_adjusted": verdict.difference.low,
        "high_adjusted": verdict.difference.high,
        "smallest_p": found.test.smallest,
        "reason": verdict.reason,
        **({"baseline_n": found.baseline_n} if isinstance(found, Unpaired) else {}),
    }


def slice_rows(
    pairing: Pairing,
    pairs: Sequence[Pair],
    columns: Iterable[str],
    how: DifferenceTest,
    limits: Mapping[str, str] | None = None,
) -> list[Row]:
    """Return the rows of every slice, corrected for all slices and systems of a measure."""
    found: list[Contrast] = []
    about: list[tuple[Row, Pairing]] = []
    for column in dict.fromkeys(columns):
        labels = pairing.column(column).cast(pl.String)
        for value in labels.unique(maintain_order=True).sort(nulls_last=True):
            inside = labels.eq_missing(value).to_numpy()
            part = pairing.only(inside)
            new = contrasts(part, pairs, how.only(inside), limits)
            found += new
            about += [({"column": column, "slice": value}, part)] * len(new)
    return [
        name | row_of(part, each)
        for (name, part), each in zip(about, correct(found, "bh"), strict=True)
    ]

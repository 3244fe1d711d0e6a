"""How the engines of the field fuse lists, each by its own formula, and what follows from it.

The entries are in `engines.toml`; an installed package adds its own (`register_engine`).
"""

from __future__ import annotations

import functools
import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from findwell.core.errors import InputError, OptionError, choose, nearest, takes_options
from findwell.core.findings import Finding, finding_about, finding_about_rows
from findwell.core.plugins import Registry
from findwell.loop.tuning.formulas import (
    JOINS,
    NORMALISER_RULES,
    POSITIVE_MAXIMUM,
    SCORE_NORMALISERS,
    TIE_RULES,
    Join,
    Normaliser,
    ScoreLists,
    TieKeys,
    milvus_l2,
)
from findwell.relations.align import positions

if TYPE_CHECKING:
    from jinja2 import Environment

    from findwell.core.data import Bools, Floats, Ints
    from findwell.loop.tuning.pool import Pool

READ_HITS = 100  # how many hits a snippet reads where the setting does not say


@takes_options()
@dataclass(frozen=True, slots=True)
class Setting:
    """The values of an engine's knobs; those that it does not have stay unset.

    >>> print(Setting(weights=(0.7, 0.3), k=60, window=100))
    w=0.7,0.3 k=60 window=100
    """

    engine: str = ""  # where settings of several engines are compared
    weights: tuple[float, ...] = ()
    k: float | None = None
    window: int | None = None  # None: the lists as they are
    normaliser: tuple[str, ...] = ()  # one for each run
    fill: float | None = None  # what stands for a document that a list lacks

    def as_dict(self) -> dict[str, Any]:
        """Return the knobs that are set, as JSON has them.

        >>> Setting(weights=(1.0, 1.0), k=60).as_dict()
        {'weights': [1.0, 1.0], 'k': 60}
        """
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value not in (None, (), "")
        }

    def __str__(self) -> str:
        same = len(set(self.normaliser)) == 1
        parts = {
            "w": ",".join(map(_short, self.weights)),
            "k": _short(self.k),
            "window": _short(self.window),
            "normaliser": ",".join(self.normaliser[:1] if same else self.normaliser),
            "fill": _short(self.fill),
        }
        knobs = (f"{name}={value}" for name, value in parts.items() if value)
        return " ".join(filter(None, (self.engine, *knobs)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightRule:
    """Which weights an engine takes, and those it has by itself."""

    own: tuple[float, ...] = ()  # of its runs, where it has these by itself
    shares: bool = False  # by itself each run has the same share of 1, and not 1
    highest: float = math.inf
    total: float | None = None  # what they add up to
    tolerance: float = 1e-9
    positive: bool = False  # 0 is refused
    about: str = "numbers from 0"

    def default(self, runs: int) -> tuple[float, ...]:
        """Return the weights that the engine has by itself."""
        return self.own or (1 / runs if self.shares else 1.0,) * runs

    def check(self, weights: Sequence[float], engine: str) -> tuple[float, ...]:
        """Return the weights, or raise the error that says what is wrong with them."""
        given = tuple(float(weight) for weight in weights)
        valid = all(
            math.isfinite(weight)
            and (weight > 0 if self.positive else weight >= 0)
            and weight <= self.highest
            for weight in given
        )
        if not valid or (
            self.total is not None and abs(math.fsum(given) - self.total) > self.tolerance
        ):
            shown = ", ".join(f"{weight:g}" for weight in given)
            raise OptionError(
                f"{engine} does not take the weights {shown}", fix=f"give {self.about}"
            )
        if not any(given):
            raise OptionError(f"{engine}: all weights are 0", fix="give one run a weight")
        return given


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """All of a fusion that does not depend on the weights."""

    values: Floats  # runs × rows, in the precision of the engine; NaN where a list lacks the row
    kept: Bools  # the rows that the engine returns
    query: Ints  # of each row


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How one engine fuses: an entry of the table, and the way from a pool to its scores.

    Weights, windows and names of runs are in the order of the runs. All that is None has no knob.
    """

    name: str
    formula: str  # w weight, r rank from 1, s score, n normalised score
    source: str  # where the formula was read
    join: Join
    template: str  # of what is to be pasted
    gives: Literal["reciprocal", "divisor", "rank"] = "reciprocal"  # what a rank is worth
    constant: float = 60  # of a rank fusion, where it cannot be set
    first: int = 1  # the rank of the first document
    digits: int | None = None  # decimal digits of 1 ÷ (k + rank) that are kept, half up
    shared_ranks: bool = False  # documents with the same score share the better rank
    # how scores are made comparable, for all runs or for each, the usual way first
    normalisers: Mapping[str, tuple[Normaliser, ...]] = field(default_factory=dict)
    features: bool = False  # every document has a score in every list, 0 where the list lacks it
    unscored: float | None = None  # what counts where there is no score; None: an error
    single_scores: bool = False  # scores are normalised in 32 bits
    every_list: bool = False  # a document that a list lacks is dropped, unless it is filled
    weights: WeightRule | None = None
    k: float | None = None
    k_range: tuple[float, float] = (0, math.inf)
    whole_k: bool = False
    window: int | None = None  # how much of each list it reads by itself; None: all of it
    cut: bool = False  # the fused list is no longer than the window
    fills: bool = False  # what stands for a document that a list lacks can be set
    fill: float | None = None
    together: Callable[[tuple[str, ...]], bool] = lambda _: True  # which normalisers go together
    roles: tuple[str, ...] = ()  # of the runs, where the engine fuses exactly these
    ties: TieKeys = lambda _: ()
    exact: str = ""  # what cannot be reproduced
    notes: tuple[str, ...] = ()  # missing documents, equal scores, traps
    precision: Literal["double", "single", "stored single"] = "double"

    @property
    def knobs(self) -> tuple[str, ...]:
        """The names of what can be set."""
        has = {
            "weights": self.weights is not None,
            "k": self.k is not None,
            "window": True,
            "normaliser": len(self.normalisers) > 1,
            "fill": self.fills,
        }
        return tuple(name for name, there in has.items() if there)

    @property
    def needs_scores(self) -> bool:
        """Whether ranks alone are not enough."""
        return bool(self.normalisers) or self.features or self.shared_ranks

    def setting(
        self,
        runs: int,
        *,
        weights: Sequence[float] | None = None,
        k: float | None = None,
        window: int | None = None,
        normaliser: str | Sequence[str] | None = None,
        fill: float | None = None,
    ) -> Setting:
        """Return the values of the knobs, checked; what is None is as the engine has it."""
        self._check_runs(runs)
        given = {"weights": weights, "k": k, "normaliser": normaliser, "fill": fill}
        for knob, value in given.items():
            if value is not None and knob not in self.knobs:
                raise OptionError(
                    f"{self.name} has no {knob} to set", fix=f"it has {', '.join(self.knobs)}"
                )
        if window is not None and (type(window) is not int or window < 1):
            raise OptionError(
                f"window={window!r} is not a whole number from 1",
                fix="how many documents of each run the engine reads, for example 100",
            )
        if fill is not None and not (math.isfinite(fill) and fill >= 0):
            raise OptionError(
                f"fill={fill:g} is not a number from 0", fix="see `findwell fuse --list`"
            )
        return Setting(
            weights=self._weights(runs, weights),
            k=self._constant(k),
            window=self.window if window is None else window,
            normaliser=self._normalisers(runs, normaliser),
            fill=self.fill if fill is None else float(fill),
        )

    def _check_runs(self, runs: int) -> None:
        if self.roles and runs != len(self.roles):
            raise OptionError(
                f"{self.name} fuses {len(self.roles)} runs, not {runs}",
                fix=f"give them in this order: {', '.join(self.roles)}",
            )

    def _weights(self, runs: int, weights: Sequence[float] | None) -> tuple[float, ...]:
        if self.weights is None:
            return ()
        if weights is None:
            return self.weights.default(runs)
        if len(weights) != runs:
            raise OptionError(
                f"{len(weights)} weights for {runs} runs", fix="give one for each run"
            )
        return self.weights.check(weights, self.name)

    def _constant(self, k: float | None) -> float | None:
        if self.k is None or k is None:
            return self.k
        lowest, highest = self.k_range
        whole = not self.whole_k or float(k).is_integer()
        if not (math.isfinite(k) and lowest <= k <= highest and whole):
            kind = "whole number" if self.whole_k else "number"
            upto = f" to {highest:g}" if math.isfinite(highest) else ""
            raise OptionError(
                f"k={k:g} is not a {kind} from {lowest:g}{upto}",
                fix=f"{self.name} has {self.k:g} by itself",
            )
        return k

    def _normalisers(self, runs: int, given: str | Sequence[str] | None) -> tuple[str, ...]:
        if len(self.normalisers) <= 1:
            return ()
        names = next(iter(self.normalisers)) if given is None else given
        each = (names,) * runs if isinstance(names, str) else tuple(names)
        if len(each) != runs:
            raise OptionError(
                f"{len(each)} normalisers for {runs} runs", fix="give one for all, or one for each"
            )
        for name in each:
            choose(f"normaliser of {self.name}", name, self.normalisers)
        if not self.together(each):
            raise OptionError(
                f"{self.name} does not take the normalisers {', '.join(each)} together",
                fix=f"`findwell fuse --list --engine {self.name}` says what they are",
            )
        return each

    def arranged(self, pool: Pool) -> Pool:
        """Return the pool with the rows of each query in the order that breaks the engine's ties.

        From there on, equal scores keep the order of the rows.
        """
        keys = self.ties(pool)
        return pool.take(np.lexsort((*reversed(keys), pool.query))) if keys else pool

    def inside(self, pool: Pool, setting: Setting) -> Bools:
        """Return runs × rows: whether the engine reads the document in the list."""
        read = pool.rank > 0
        return read if setting.window is None else read & (pool.rank <= setting.window)

    def drops(self, setting: Setting) -> bool:
        """Tell whether a document that a list lacks is dropped."""
        return self.every_list and setting.fill is None

    def prepare(self, pool: Pool, setting: Setting) -> Prepared:
        """Compute what does not depend on the weights."""
        self._check_runs(len(pool.runs))
        inside = self.inside(pool, setting)
        if self.features:
            values = self._feature_values(pool, inside, setting)
        elif self.normalisers:
            values = self._score_values(pool, inside, setting)
        else:
            values = self._rank_values(pool, inside, setting)
        lacking = (~inside).sum(axis=0)
        kept = lacking == 0 if self.drops(setting) else lacking < len(inside)
        return Prepared(values.astype(self._arithmetic, copy=False), kept, pool.query)

    def _rank_values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return what the rank of each document is worth, runs × rows; NaN outside of a list."""
        rank = pool.score_ranks() if self.shared_ranks else pool.rank
        k = float(self.constant if setting.k is None else setting.k) + self.first - 1
        if self.gives == "rank":
            return np.where(inside, rank, np.nan)
        if self.gives == "divisor":
            # what is set for a missing document stands for its rank
            filled = np.nan if setting.fill is None else k - self.first + 1 + setting.fill
            return np.where(inside, k + rank, filled)
        if self.digits is None:
            return np.where(inside, reciprocal_ranks(rank, k), np.nan)
        unit = Decimal(1).scaleb(-self.digits)
        exact = [
            float((1 / (Decimal(k) + each)).quantize(unit, ROUND_HALF_UP)) if each else 0.0
            for each in range(int(rank.max(initial=0)) + 1)
        ]
        return np.where(inside, np.array(exact)[rank], np.nan)

    def _score_values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return the score of each document, made comparable with those of other lists."""
        score = np.where(inside, pool.scores(), np.nan)
        if self.unscored is None:
            _refuse_infinite(pool, inside, score)
        names = setting.normaliser or (next(iter(self.normalisers)),) * len(score)
        ways = [self.normalisers[name] for name in names]
        single = self.single_scores or self.precision == "single"
        scaled = []
        for number, (way, each) in enumerate(zip(ways, score, strict=True)):
            if way[0] is milvus_l2:
                _refuse_falling_distances(pool, inside, number)
            lists = ScoreLists(each.astype(np.float32) if single else each, pool.query)
            with np.errstate(all="ignore"):
                scaled.append(way[number if len(way) > 1 else 0](lists))
        values = np.where(inside, np.array(scaled, dtype=np.float64), np.nan)
        return (
            values if self.unscored is None else np.where(np.isnan(values), self.unscored, values)
        )

    def _feature_values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return 1 ÷ (k + rank), or scores from 0 to 1, where every list has every document."""
        _refuse_infinite(pool, inside, np.where(inside, pool.scores(), np.nan))
        kept = inside.any(axis=0)
        score = np.where(kept, np.where(inside, pool.score, 0.0), np.nan)
        values = []
        for each in score:
            if setting.k is None:
                with np.errstate(all="ignore"):
                    lists = ScoreLists(each, pool.query)
                    values.append(SCORE_NORMALISERS["span_or_half"](lists))
                continue
            order = np.lexsort((-each, pool.query))  # NaN goes last
            place = np.empty(len(each), dtype=np.int64)
            place[order] = positions(pool.query[order])
            values.append(reciprocal_ranks(place, float(setting.k)))
        return np.where(kept, np.array(values), np.nan)

    def combine(self, prepared: Prepared, setting: Setting) -> Floats:
        """Return the fused score of each row; NaN for one that the engine drops."""
        weights = np.array(setting.weights or [1] * len(prepared.values), dtype=self._arithmetic)
        with np.errstate(all="ignore"):
            fused = self.join(prepared, weights, setting)
        if self.precision == "stored single":
            fused = fused.astype(np.float32)
        return np.where(prepared.kept, fused, np.nan).astype(np.float64)

    def scores(self, pool: Pool, setting: Setting) -> Floats:
        """Return the fused score of each row; NaN for one that the engine drops."""
        return self.combine(self.prepare(pool, setting), setting)

    @property
    def _arithmetic(self) -> type[np.floating[Any]]:
        return np.float32 if self.precision == "single" else np.float64

    def snippet(self, setting: Setting, run_names: Sequence[str]) -> str:
        """Return the configuration that makes the engine do this, ready to paste."""
        weights = setting.weights or [None] * len(run_names)
        named = ", ".join(
            run if weight is None else f"{run} = {_short(weight)}"
            for run, weight in zip(run_names, weights, strict=True)
        )
        return (
            _templates()
            .from_string(self.template)
            .render(
                asdict(setting),
                engine=self.name,
                about=f"{'weights' if setting.weights else 'lists'}: {named}",
                limit=setting.window or READ_HITS,
                lists=[
                    {"run": run, "name": name, "weight": weight, "normaliser": normaliser}
                    for run, name, weight, normaliser in zip(
                        run_names,
                        identifiers(run_names),
                        weights,
                        setting.normaliser or [None] * len(run_names),
                        strict=True,
                    )
                ],
            )
        )

    def findings(self, pool: Pool, setting: Setting) -> list[Finding]:
        """Return what the engine makes of these runs that a user may not expect."""
        inside = self.inside(pool, setting)
        found = finding_about_rows(
            "below-window",
            pool.named(((pool.rank > 0) & ~inside).sum(axis=0) > 0),
            f"# document|documents is|are below the window of {setting.window} and not read.",
            "choose how much of each run it reads: -E window (window=)",
        )
        if self.drops(setting):
            lists = inside.sum(axis=0)
            found += finding_about_rows(
                "dropped-document",
                pool.named((lists > 0) & (lists < len(inside))),
                f"# document|documents is|are not in every list and dropped by {self.name}.",
                "give the rank that stands for a missing one: -E fill (fill=)",
            )
        if not self.normalisers:
            return found
        names = setting.normaliser or (next(iter(self.normalisers)),) * len(pool.runs)
        queries = pool.queries.gather(np.unique(pool.query))
        scores = np.where(inside, pool.score, np.nan)
        for run, name, score in zip(pool.runs, names, scores, strict=True):
            lists_of_run = ScoreLists(score, pool.query)
            if name != "none":
                found += finding_about(
                    "equal-scores",
                    queries.filter(lists_of_run.equal),
                    "# list|lists has|have equal scores. `findwell fuse --list --engine "
                    f"{self.name}` says how it|they is|are scored.",
                    "fuse by rank, or give scores that differ",
                    run,
                )
            if self.normalisers[name][0] in POSITIVE_MAXIMUM:
                high = lists_of_run.high
                found += finding_about(
                    "negative-scores",
                    queries.filter((high < 0) & np.isfinite(high)),
                    f"# list|lists has|have negative scores; {self.name} takes the best as 0.",
                    "give scores from 0, as the engine itself does",
                    run,
                )
        return found


def reciprocal_ranks(ranks: Ints, k: float) -> Floats:
    """Return 1 ÷ (k + rank) of ranks from 1; rank 0 means not retrieved, and gives 0.

    >>> reciprocal_ranks(np.array([1, 2, 0]), 1).round(4).tolist()
    [0.5, 0.3333, 0.0]
    """
    found = ranks > 0
    return np.where(found, 1 / (k + np.where(found, ranks, 1)), 0.0)


def _refuse_infinite(pool: Pool, inside: Bools, score: Floats) -> None:
    """Raise where a score inside a list is missing or infinite."""
    bad = inside & ~np.isfinite(score)
    if bad.any():
        number, row = (int(found[0]) for found in np.nonzero(bad))
        name = f"{pool.queries[int(pool.query[row])]} / {pool.doc[row]}"
        raise InputError(
            f"{int(bad[number].sum())} documents have no finite score, the first is {name}",
            where=f"run {number + 1} ({pool.runs[number]})",
            fix="give every document a score, or fuse by rank",
        )


def _refuse_falling_distances(pool: Pool, inside: Bools, number: int) -> None:
    """Refuse distances that fall with the rank: the run was sorted the wrong way round."""
    rows = np.flatnonzero(inside[number])
    rows = rows[np.lexsort((pool.rank[number][rows], pool.query[rows]))]
    distance = np.abs(pool.score[number][rows])
    if ((np.diff(distance) < 0) & (np.diff(pool.query[rows]) == 0)).any():
        raise InputError(
            "its distances fall with the rank: the farthest document is first",
            where=f"run {number + 1} ({pool.runs[number]})",
            fix="write minus the distance as the score, so that the nearest has the highest",
        )


def identifiers(runs: Sequence[str]) -> list[str]:
    """Return names that can stand in code, all different.

    >>> identifiers(["bm25", "my dense", "2nd", "bm25"])
    ['bm25', 'my_dense', 'run_2nd', 'bm25_4']
    """
    names: list[str] = []
    for number, run in enumerate(runs, start=1):
        name = re.sub(r"\W", "_", run, flags=re.ASCII)
        name = name if name[:1].isalpha() else f"run_{name}"
        names.append(f"{name}_{number}" if name in names else name)
    return names


def _short(number: float | None) -> str:
    """Return a number without what 64 bits add to it: 0.3, not 0.30000000000000004."""
    return "" if number is None else f"{number:.10g}"


@functools.cache
def _templates() -> Environment:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - few settings are pasted

    made = Environment(  # noqa: S701 - code and configuration, not HTML
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    as_json = functools.partial(json.dumps, ensure_ascii=False)
    made.filters.update(
        short=_short, json=as_json, pretty=lambda text: as_json(json.loads(text), indent=2) + "\n"
    )
    return made


# the table

ENGINES: Registry[Engine] = Registry(
    "fusion engine",
    group="findwell.fusion_engines",
    accept=lambda found: register_engine(found) if isinstance(found, Engine) else None,
)
REFUSED_ENGINES: dict[str, str] = {}  # what an engine itself refuses, and why


def register_engine(engine: Engine) -> Engine:
    """Add an engine; a package does so by an entry point of the group `findwell.fusion_engines`."""
    return ENGINES.register(engine.name, engine)


def find_engine(name: str) -> Engine:
    """Return the engine of a name; an unknown one raises the error that suggests the nearest.

    >>> find_engine("qdrant-rrf").formula
    'Σ 1/(r/w+k−1)'
    """
    if name in REFUSED_ENGINES:
        raise OptionError(
            f"there is no {name}: {REFUSED_ENGINES[name]}", fix="opensearch-z_score-arithmetic"
        )
    if name not in ENGINES and name not in (known := ENGINES.known()):
        fix = f"{nearest(name, known)} `findwell fuse --list` shows all".strip()
        raise OptionError(f"unknown engine {name[:60]!r}", fix=fix)
    return ENGINES[name]


def _engine(name: str, entry: Mapping[str, Any]) -> Engine:
    """Make an engine of an entry of the table, whose functions are named."""
    given = {key: value for key, value in entry.items() if value != "none" and key != "like"}
    ways = given.pop("normalisers", {})
    named: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
    }
    named |= {
        "template": named.pop("snippet"),
        "join": JOINS[named["join"]],
        "normalisers": {
            way: tuple(SCORE_NORMALISERS[each] for each in ([one] if isinstance(one, str) else one))
            for way, one in ways.items()
        },
    }
    for key, known in (("ties", TIE_RULES), ("together", NORMALISER_RULES)):
        if key in named:
            named[key] = known[named[key]]
    if "weights" in named:
        rule = named["weights"]
        named["weights"] = WeightRule(**{**rule, "own": tuple(rule.get("own", ()))})
    return Engine(name=name, **named)


def _load_table() -> None:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    for name, entry in table.items():
        if "refused" in entry:
            REFUSED_ENGINES[name] = entry["refused"]
            continue
        entry |= {**table.get(entry.get("like", ""), {}), **entry}
        register_engine(_engine(name, entry))


_load_table()

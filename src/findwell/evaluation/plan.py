"""Every choice of an evaluation, made once from its options: what is measured, over what, by whom.

`evaluate`, `explain`, `compare`, the tuners and the tasks of Spark execute a `Plan`; none of them
looks at an option again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, get_args

from findwell.core.errors import OptionError, choose
from findwell.core.forks import refuse_after_fork
from findwell.core.measure import COUNTED
from findwell.core.policy import Missing
from findwell.judges.find import find_judge, on_server
from findwell.measures.dialects import dialect as find_dialect
from findwell.measures.dialects import expand_measures
from findwell.relations.match import Matcher, find_matcher
from findwell.relations.match.matcher import MatchContext
from findwell.statistics.values import check_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from findwell.core.columns import Normaliser
    from findwell.core.policy import Policy
    from findwell.core.progress import Report
    from findwell.judges.verdicts import JudgeProtocol
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect
    from findwell.relations.judged.judging import Judging


class InputOptions(TypedDict, total=False):
    """How run and gold are read and brought together: options of `evaluate` and `explain`."""

    by: str | Matcher | None
    ids: Normaliser
    missing: str | None
    corpus: object
    embedder: object
    tokenizer: object
    judge: object
    base_url: str | None
    run_format: str | None
    gold_format: str | None
    skip_bad: bool
    id_from: str | None
    query_from: str | None


class RunOptions(InputOptions, total=False):
    """The options of `evaluate` that `compare` and `power` hand on."""

    dialect: str | Dialect
    bounds: bool
    latency_unit: str | None
    keep: int
    progress: Report | None


class EvaluationOptions(RunOptions, total=False):
    """All options of `evaluate`."""

    queries: object
    rel: float | None
    level: float | None
    cluster: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How inputs are read."""

    run_format: str | None = None
    gold_format: str | None = None
    skip_bad: bool = False
    id_from: str | None = None  # the field of an object that holds its id
    query_from: str | None = None  # the attribute of a trace that holds the id of its query
    latency_unit: str | None = None  # of times whose names do not say one
    queries: object = None  # a table with more columns about the queries
    corpus: object = None
    texts: bool = False  # whether the texts next to the ids are needed

    @property
    def gold(self) -> dict[str, Any]:
        """The options of `load_gold`."""
        shared = {"skip_bad": self.skip_bad, "texts": self.texts, "id_from": self.id_from}
        return {"format": self.gold_format, **shared}

    @property
    def samples(self) -> dict[str, Any]:
        """The options of `load_samples`."""
        return self.gold | {"format": self.run_format}

    @property
    def run(self) -> dict[str, Any]:
        """The options of `load_run`."""
        return self.samples | {"query_from": self.query_from}

    def with_texts(self) -> Reading:
        """Return the same, with the texts."""
        return replace(self, texts=True)


READING_OPTIONS = frozenset(each.name for each in fields(Reading)) - {"texts"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """What is measured, over which relations, in which dialect, by which judge, from what."""

    measures: tuple[Measure, ...]
    dialect: Dialect
    by: str | Matcher | None = None  # read by measures that name no relation; None: still open
    chosen: bool = False  # whether the user said what is compared
    reading: Reading = Reading()
    judge: JudgeProtocol | None = None  # where a relation needs one
    base_url: str | None = None  # the server of an embedder `openai:MODEL`
    embedder: object = None
    tokenizer: object = None
    ids: Normaliser = "identity"
    keep: int = 0  # documents of each list that a result remembers
    level: float | None = 0.95
    cluster: str | None = None
    bounds: bool = False

    @classmethod
    def of(
        cls, measures: Iterable[str | Measure] | str, **options: Unpack[EvaluationOptions]
    ) -> Plan:
        """Make every choice, and refuse what cannot be done before anything is read.

        >>> plan = Plan.of(["recall@5", "P@5/rouge"], dialect="trec_eval", missing="zero")
        >>> [*plan.matchers], plan.policy.missing, plan.judge
        (['ids', 'rouge'], 'zero', None)
        """
        refuse_after_fork()
        given: dict[str, Any] = dict(options)
        given.pop("progress", None)
        if given.get("level") is not None:
            check_share("level", given["level"])
        dialect = find_dialect(given.pop("dialect", "findwell"))
        measured = expand_measures(measures, dialect, given.pop("rel", None))
        missing, judge = given.pop("missing", None), given.pop("judge", "local")
        server = given.pop("base_url", None)
        reading = {name: given.pop(name) for name in READING_OPTIONS & given.keys()}
        plan = cls(
            measures=measured,
            dialect=dialect,
            chosen=given.get("by") is not None,
            reading=Reading(**reading),
            **given,
        )
        judged = any(matcher.judged for matcher in plan.matchers.values())
        if judge != "local" or server is not None:
            judge, server = on_server(judge, server)
        return plan.with_choices(
            dialect=_with_missing(dialect, missing),
            judge=find_judge(judge) if judged else None,
            base_url=server,
            reading=replace(plan.reading, texts=plan.keep > 0 or plan.reads_texts),
        )

    @property
    def policy(self) -> Policy:
        """What is decided about order, ties, duplicates and missing queries."""
        return self.dialect.policy

    @property
    def is_open(self) -> bool:
        """Whether the inputs decide what is compared: nothing was chosen, but is needed."""
        return self.by is None and any(measure.relation is None for measure in self.measures)

    @cached_property
    def relation(self) -> Matcher:
        """What draws the relation of measures that name none."""
        return find_matcher("ids" if self.by is None else self.by, self.dialect.relations)

    @cached_property
    def drawn_by(self) -> str:
        """The name of that relation, with its parameters."""
        return str(self.relation)

    @cached_property
    def matchers(self) -> dict[str, Matcher]:
        """What draws the relations that measures read, first the one of those naming none."""
        first = self.relation
        if first.about_list:  # a measure that is cut later would read the wrong verdict
            raise OptionError(
                f"{first.name} is about the list as a whole, which is another one for every cutoff",
                fix=f"name it in the measures, for example recall@5/{first.name}",
            )
        named = dict.fromkeys(each.relation for each in self.measures if each.relation is not None)
        every = {self.drawn_by: first} | {name: find_matcher(name) for name in named}
        return {name: matcher for name, matcher in every.items() if self.readers(name)}

    def readers(self, relation: str) -> list[Measure]:
        """Return the measures that read a relation."""
        return [each for each in self.measures if (each.relation or self.drawn_by) == relation]

    @property
    def unlabelled(self) -> bool:
        """Whether no gold is needed, since a judge draws every relation."""
        return all(matcher.judged for matcher in self.matchers.values())

    @cached_property
    def facts(self) -> list[str]:
        """What measures ask about chunks."""
        return facts_of(self.measures)

    @cached_property
    def reads_texts(self) -> bool:
        """Whether the texts of what was retrieved are needed, to compare them or to count."""
        counted = not set(COUNTED).isdisjoint(self.facts)
        return counted or any(matcher.reads_texts for matcher in self.matchers.values())

    def over(self, by: str | Matcher) -> Plan:
        """Return the plan with what is compared, where that was open."""
        if self.by is not None:
            return self
        return self.with_choices(by=by) if by == "ids" else replace(self, by=by)

    def with_choices(self, **changes: Any) -> Plan:  # noqa: ANN401
        """Return the plan with other choices that leave its measures and relations what they are.

        What was found out about those is not found out again.
        """
        new = replace(self, **changes)
        known = ("relation", "drawn_by", "matchers", "facts", "reads_texts")
        vars(new).update({name: vars(self)[name] for name in known if name in vars(self)})
        return new

    def context(self, corpus: pl.DataFrame | None, judging: Judging | None = None) -> MatchContext:
        """Return what matchers need in addition to run and gold."""
        return MatchContext(
            corpus=corpus,
            embedder=self.embedder,
            ids=self.ids,
            run_ids=self.dialect.run_ids,
            base_url=self.base_url,
            judging=judging,
            tokenizer=self.tokenizer,
            chosen=self.chosen,
        )


def facts_of(measures: Iterable[Measure]) -> list[str]:
    """Return what measures ask about chunks, each name once."""
    return sorted(frozenset().union(*(measure.facts() for measure in measures)))


def _with_missing(dialect: Dialect, missing: str | None) -> Dialect:
    """Return a dialect with another policy about missing queries; None: with its own."""
    if missing is None:
        return dialect
    chosen = cast("Missing", choose("choice for missing queries", missing, get_args(Missing)))
    return replace(dialect, policy=replace(dialect.policy, missing=chosen))

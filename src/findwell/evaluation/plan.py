"""Every choice of an evaluation, made once from its options: what is measured, over what, by whom.

`evaluate`, `explain`, `compare`, the tuners and the tasks of Spark execute a `Plan`; none of them
looks at an option again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, Unpack, cast, get_args

from findwell.core.errors import OptionError, check_share, choose, takes_options
from findwell.core.forks import refuse_after_fork
from findwell.core.measure import COUNTED_UNITS
from findwell.core.policy import Missing
from findwell.measures.dialects import dialect as find_dialect
from findwell.measures.dialects import expand_measures
from findwell.relations.match import Matcher, find_matcher
from findwell.relations.match.matcher import MatchContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import polars as pl

    from findwell.core.columns import Normaliser
    from findwell.core.policy import Policy
    from findwell.core.progress import Report
    from findwell.judges.verdicts import JudgeProtocol
    from findwell.measures import Measure
    from findwell.measures.dialects import Dialect
    from findwell.relations.judged.judging import Judging

    P = ParamSpec("P")
    R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReading:
    """How files, frames and objects are read."""

    run_format: str | None = None
    gold_format: str | None = None
    skip_bad: bool = False
    id_from: str | None = None
    query_from: str | None = None
    search_span: str | None = None
    latency_unit: str | None = None
    fields: Mapping[str, Any] | None = None


@takes_options()
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(SourceReading):
    """How unusual inputs are read and joined: `reading=Reading(…)`.

    `run_format` and `gold_format` name formats that are not to be detected. `skip_bad` leaves out
    records that cannot be read; the findings count them. `fields` says what fields of other names
    mean, as `--map` does: `{"gold.correct_chunks": "gold"}`. `id_from` is the field of retrieved
    objects that holds their ids, such as `metadata.chunk`. `query_from` is the attribute of traces
    that holds the ids of queries. `search_span` is the name of the spans that are searches, if
    their type does not say so. `latency_unit` (ms, s, us or ns) is that of times whose names do not
    say one, as `latency_ms` does.

    `ids` normalises document ids: a name such as `lower` or `chunk-to-doc`, or a function.
    `missing` says how a query counts that the run lacks: `zero`, `skip` or `error`. `keep` is how
    many documents of each list a result keeps for reports, with their texts. `tokenizer` counts the
    tokens of a budget such as `recall@2000tokens`: None is a rule that needs no download,
    `tokenizers:PATH` the file of a model, or give a function. `base_url` is the server of models
    named `openai:MODEL`: of the embedder, and of the judge unless a `Judge` names another.

    The page "What findwell reads" has examples.

    >>> Reading(skip_bad=True, ids="lower").options()
    {'skip_bad': True, 'ids': 'lower'}
    """

    ids: Normaliser | None = None
    missing: str | None = None
    keep: int | None = None
    tokenizer: object = None
    base_url: str | None = field(default=None, repr=False)  # may hold a password

    def options(self) -> dict[str, Any]:
        """Return what was said, by name: options of `Plan.of`."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: each for name, each in given.items() if each is not None and each is not False
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReading(SourceReading):
    """How all inputs of a plan are read."""

    queries: object = None  # a table with more columns about the queries
    corpus: object = None
    texts: bool = False  # whether the texts next to the ids are needed

    @property
    def gold(self) -> dict[str, Any]:
        """The options of `load_gold`."""
        shared = {"skip_bad": self.skip_bad, "texts": self.texts, "id_from": self.id_from}
        return {"format": self.gold_format, **shared, "fields": self.fields}

    @property
    def samples(self) -> dict[str, Any]:
        """The options of `load_samples`."""
        return self.gold | {"format": self.run_format}

    @property
    def run(self) -> dict[str, Any]:
        """The options of `load_run`."""
        return self.samples | {"query_from": self.query_from, "search_span": self.search_span}

    def with_texts(self) -> InputReading:
        """Return the same, with the texts."""
        return replace(self, texts=True)


class InputOptions(TypedDict, total=False):
    """How run and gold are brought together: options of `evaluate`, `explain` and `tune`."""

    by: str | Matcher | None
    corpus: object
    embedder: object
    judge: object
    reading: Reading | None


class RunOptions(InputOptions, total=False):
    """The options of `evaluate` that `compare` and `power` hand on."""

    dialect: str | Dialect
    bounds: bool
    progress: Report | None


class EvaluationOptions(RunOptions, total=False):
    """All options of `evaluate`."""

    queries: object
    rel: float | None
    level: float | None
    cluster: str | None


class PlanOptions(EvaluationOptions, total=False):
    """All options of `evaluate`, and those of a `Reading` by themselves."""

    run_format: str | None
    gold_format: str | None
    skip_bad: bool
    id_from: str | None
    query_from: str | None
    search_span: str | None
    latency_unit: str | None
    fields: Mapping[str, Any] | None
    ids: Normaliser | None
    missing: str | None
    keep: int
    tokenizer: object
    base_url: str | None


READING_FIELDS = tuple(each.name for each in fields(Reading))


def options_elsewhere() -> dict[str, str]:
    """Return where options are that a function which evaluates does not take itself."""
    from findwell.judges.settings import Judge  # noqa: PLC0415 - few have a judge

    found = {each.name: f"Judge({each.name}=…)" for each in fields(Judge) if each.name != "model"}
    found |= {name: f"Reading({name}=…)" for name in READING_FIELDS}
    return found | {"base_url": "Judge(base_url=…) or Reading(base_url=…)"}


def takes_plan(options: type[InputOptions]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: `takes_options`, and suggests what a `Reading` or a `Judge` takes."""
    return takes_options(options, options_elsewhere)


def flat_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a public function as `Plan.of` takes them: with those of its `Reading`."""
    given = dict(options)
    reading = given.pop("reading", None)
    if reading is None:
        return given
    if not isinstance(reading, Reading):
        what = f"reading is of type {type(reading).__name__}"
        raise OptionError(what, fix="give a findwell.Reading(…)")
    return given | reading.options()


def grouped(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `Plan.of` as public functions take them: some of them in a `Reading`.

    >>> grouped({"by": "rouge", "ids": "lower"})["reading"].ids
    'lower'
    """
    given = dict(options)
    reading = {name: given.pop(name) for name in READING_FIELDS if name in given}
    return given | ({"reading": Reading(**reading)} if reading else {})


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """What is measured, over which relations, in which dialect, by which judge, from what."""

    measures: tuple[Measure, ...]
    dialect: Dialect
    by: str | Matcher | None = None  # read by measures that name no relation; None: still open
    chosen: bool = False  # whether the user said what is compared
    reading: InputReading = InputReading()
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
    def of(cls, measures: Iterable[str | Measure] | str, **options: Unpack[PlanOptions]) -> Plan:
        """Make every choice, and refuse what cannot be done before anything is read.

        >>> plan = Plan.of(["recall@5", "P@5/rouge"], dialect="trec_eval", missing="zero")
        >>> [*plan.matchers], plan.policy.missing, plan.judge
        (['ids', 'rouge'], 'zero', None)
        """
        given = flat_options(options)
        given.pop("progress", None)
        refuse_after_fork()
        if given.get("level") is not None:
            check_share("level", given["level"])
        dialect = find_dialect(given.pop("dialect", "findwell"))
        measured = expand_measures(measures, dialect, given.pop("rel", None))
        missing, judge = given.pop("missing", None), given.pop("judge", None)
        server = given.pop("base_url", None)
        ids = given.pop("ids", None)
        inputs = {each.name for each in fields(InputReading)} & given.keys()
        plan = cls(
            measures=measured,
            dialect=dialect,
            chosen=given.get("by") is not None,
            ids="identity" if ids is None else ids,
            reading=InputReading(**{name: given.pop(name) for name in inputs}),
            **given,
        )
        judged = [name for name, matcher in plan.matchers.items() if matcher.judged]
        if judged and judge is None:
            raise OptionError(
                f"{plan.readers(judged[0])[0]} needs a judge, and none was named",
                fix='name one: judge="local" (--judge local), "openai:MODEL" or another provider, '
                "a function, or findwell.Judge(…) with its settings",
            )
        if judge is not None or server is not None:
            from findwell.judges.find import find_judge, on_server  # noqa: PLC0415

            judge, server = on_server(judge, server)
            judge = find_judge(judge) if judged else None
        return plan.with_choices(
            dialect=_with_missing(dialect, missing),
            judge=judge,
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
                f"{first.name} judges the list as a whole, and every cutoff is another list",
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
        counted = not set(COUNTED_UNITS).isdisjoint(self.facts)
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

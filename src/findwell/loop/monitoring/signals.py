"""Signals: measures over the calls of production, without a label.

`SIGNALS` is the registry: each signal has a definition, a unit, bounds, the direction that is bad,
and what makes its value: an expression over the columns of the traces, or a function of all calls
at once. A package adds signals by entry points of the group `findwell.signals`. `call_values` makes
`Values` of them, `time_buckets` summarises these over time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from findwell.core.errors import OptionError, nearest
from findwell.core.frames import pl
from findwell.core.plugins import Registry
from findwell.core.texts.languages import ENGLISH, find_code, languages_of
from findwell.io.read.corpus import load_corpus
from findwell.io.read.queries import load_queries
from findwell.io.read.vocabulary import CORPUS_COLUMNS
from findwell.judges.embeddings import cached, find_embedder
from findwell.judges.embeddings.embedder import TextEmbedder
from findwell.measures.age import EPOCH
from findwell.relations.copies import copies
from findwell.relations.marks import DAY
from findwell.statistics.agreement import rbo_of_lists

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.core.data import Floats, Ints

Worse = Literal["higher", "lower", "either"]

UNIT = (0.0, 1.0)
POSITIVE_RANGE = (0.0, np.inf)
ANY_RANGE = (-np.inf, np.inf)
MANY_CALL_SUMMARIES = ("count", "gini", "never")  # of many calls: a single one has no value
KEY = ("time", "trace", "span")
RAW_PREFIX = "\0"  # before the names of columns of the traces, which slices may have as well
DATES = CORPUS_COLUMNS["date"]  # keys of metadata, the preferred one first
MILLISECONDS = 1e11  # from here on a number counts milliseconds: as seconds it is far in the future
QUESTIONS_AT_ONCE = 4096  # that are embedded, and compared, together
REFERENCE_FIXES = {
    "corpus": ("a corpus", "name the documents that can be found: --with corpus=FILE (corpus=)"),
    "questions": (
        "questions of an evaluation",
        "name the questions of the evaluation: --with questions=FILE (questions=)",
    ),
    "judge": ("a judge", "judged signals are asked for with --judge NAME (judge=)"),
}


@dataclass(frozen=True, slots=True)
class References:
    """What signals are compared with: what is known in addition to the traces.

    `corpus` has the columns of `findwell.io.load_corpus`, `questions` are those of the evaluation
    set, `embedder` compares questions with these, `expected_language` is the one that questions are
    expected in, and `date_key` the key of the documents' metadata that holds their date, if not a
    usual one.
    """

    corpus: pl.DataFrame | None = None
    questions: Sequence[str] = field(default=())
    embedder: object = "minilm"
    expected_language: str = ENGLISH
    date_key: str | None = None

    @classmethod
    def of(
        cls,
        *,
        corpus: object = None,
        questions: object = None,
        embedder: object = None,
        expected_language: str = ENGLISH,
        date_key: str | None = None,
    ) -> References:
        """Read what is given: paths, frames, records or plain lists."""
        asked: Sequence[str] = ()
        if isinstance(questions, list | tuple | set) and all(
            isinstance(each, str) for each in questions
        ):
            asked = sorted(set(questions))
        elif questions is not None:
            table = load_queries(questions)
            if "question" not in table.columns:
                raise OptionError("the table has no questions", fix="add a column question")
            asked = table["question"].drop_nulls().unique().sort().to_list()
        return cls(
            None if corpus is None else load_corpus(corpus),
            asked,
            "minilm" if embedder is None else embedder,
            find_code(expected_language),
            date_key,
        )

    def require(self, signal: Signal) -> None:
        """Raise if what a signal is compared with is not given."""
        lacks = {"corpus": self.corpus is None, "questions": not self.questions, "judge": True}
        if lacks.get(signal.needs):
            what, fix = REFERENCE_FIXES[signal.needs]
            raise OptionError(f"{signal.name} needs {what}", fix=fix)


NOTHING_GIVEN = References()


class CallTable:
    """Columns of calls, as signals read them."""

    def __init__(self, table: pl.DataFrame, slices: Sequence[str], given: References) -> None:
        """Take a table whose columns of the traces have a mark before their names."""
        self._table = table
        self._slices = table.select(slices)
        self.given = given

    def __getitem__(self, name: str) -> pl.Series:
        return self._table[name if name in KEY else RAW_PREFIX + name]

    def __len__(self) -> int:
        return self._table.height

    @property
    def history(self) -> pl.DataFrame:
        """What earlier calls have to share to be compared with: service and slices."""
        service = self["service"].alias(RAW_PREFIX + "service")
        return pl.DataFrame([*self._slices.get_columns(), service])

    @cached_property
    def scores(self) -> tuple[Ints, Floats, Floats]:
        """The finite scores: the call of each, the score, and how many each call has."""
        rows = pl.DataFrame({"call": np.arange(len(self)), "score": self["scores"]}).explode(
            "score", empty_as_null=False, keep_nulls=False
        )
        rows = rows.filter(pl.col("score").cast(pl.Float64).is_finite())
        call = rows["call"].to_numpy()
        return call, rows["score"].cast(pl.Float64).to_numpy(), self.sums(call, np.ones(len(call)))

    def sums(self, call: Ints, values: Floats) -> Floats:
        """Add up values by call."""
        return np.bincount(call, values, minlength=len(self)).astype(np.float64)

    def means(self, call: Ints, values: Floats) -> Floats:
        """Return the mean of values by call; NaN where a call has none."""
        count = np.bincount(call, minlength=len(self))
        return np.where(count > 0, self.sums(call, values) / np.maximum(count, 1), np.nan)

    def documents(self, *names: str) -> pl.DataFrame:
        """Return one row per document: its call, its id as `doc`, and other columns of lists.

        A list that is shorter than that of the ids, as where texts were not kept, says nothing.
        """
        return listed(self["docs"], {name: self[name] for name in names})

    def by_question(self, values_of: Callable[[pl.Series], Iterable[float | None]]) -> Floats:
        """Return a value for each question; each distinct one is looked at once."""
        distinct = self["question"].drop_nulls().unique(maintain_order=True)
        values = pl.Series(list(values_of(distinct)), dtype=pl.Float64)
        found = self["question"].replace_strict(
            distinct, values, default=None, return_dtype=pl.Float64
        )
        return found.cast(pl.Float64).to_numpy()


def listed(docs: pl.Series, others: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return one row per document: its call, its id, and what other columns of lists say."""
    table = pl.DataFrame({"call": np.arange(len(docs)), "doc": docs})
    size = docs.list.len()
    for name, each in others.items():
        fitting = pl.select(pl.when(each.list.len() == size).then(each)).to_series()
        nothing = docs.list.eval(pl.lit(None, each.dtype.inner))  # type: ignore[attr-defined]
        table = table.with_columns(fitting.fill_null(nothing).alias(name))
    return table.explode("doc", *others, empty_as_null=False, keep_nulls=False)


def with_corpus(table: pl.DataFrame, name: str, corpus: pl.DataFrame | None) -> pl.DataFrame:
    """Fill a column about documents with what the corpus says, where the traces say nothing."""
    if corpus is None or name not in corpus.columns:
        return table
    known = corpus.select("doc", known=name)
    table = table.join(known, on="doc", how="left", maintain_order="left")
    return table.with_columns(pl.coalesce(name, "known").alias(name)).drop("known")


def texts_of(docs: pl.Series, texts: pl.Series, corpus: pl.DataFrame | None) -> pl.DataFrame:
    """Return call, doc and text of each document; what a trace lacks the corpus may have."""
    return with_corpus(listed(docs, {"text": texts}), "text", corpus)


Value: TypeAlias = "pl.Expr | Callable[[CallTable], Floats]"


@dataclass(frozen=True, slots=True)
class Signal:
    """What a signal is, how it is to be read, and how it is made of a call."""

    name: str
    what: str  # its definition
    unit: str
    worse: Worse  # which direction is bad
    value: Value | None = field(default=None, compare=False, repr=False)  # None: a judge gives it
    bounds: tuple[float, float] = UNIT
    summary: str = "mean"  # of the calls of an hour: mean, p50, p95, p99, count, gini, never
    columns: str = ""  # of the traces, which the function reads
    kind: str = ""  # calls that it is defined for; all that are asked for if empty
    history: bool = False  # whether earlier calls of the same slice decide, too
    needs: str = ""  # what has to be given: corpus, questions, judge
    cheap: bool = True  # whether it is shown by default
    aliases: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def higher_is_better(self) -> bool | None:
        """Whether a higher value is better; None if no direction is good."""
        return {"higher": False, "lower": True, "either": None}[self.worse]

    @property
    def per_call(self) -> bool:
        """Whether a single call has a value."""
        return self.summary not in MANY_CALL_SUMMARIES

    @property
    def needs_lists(self) -> bool:
        """Whether it is made of the lists of many calls, rather than of a value of each."""
        return self.summary in ("gini", "never")

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the traces that it is made of."""
        if isinstance(self.value, pl.Expr):
            return tuple(dict.fromkeys(self.value.meta.root_names()))
        return tuple(self.columns.split())

    def refuse_outside(self, number: float, said: str) -> None:
        """Raise unless it can have a value."""
        low, high = self.bounds
        if not low <= number <= high:
            raise OptionError(
                f"{self.name} lies between {low:g} and {high:g}, and {said}",
                fix="write a share, such as 2%" if high == 1 else "choose another number",
            )


def register_signal(signal: Signal) -> Signal:
    """Add a signal; a name that another one has is refused."""
    return SIGNALS.register(signal.name, signal)


SIGNALS: Registry[Signal] = Registry("signal", group="findwell.signals", accept=register_signal)


def find_signal(name: str) -> Signal:
    """Return the signal of a name or an alias; case and hyphens do not count.

    >>> find_signal("p95").name, find_signal("Empty-Rate").name
    ('latency_p95', 'empty')
    """
    names = {alias: each for each in SIGNALS.values() for alias in (each.name, *each.aliases)}
    found = names.get(name.strip().casefold().replace("-", "_"))
    if found is None:
        raise OptionError(
            f"unknown signal {name!r}",
            fix=nearest(name, names) or f"choose one of {', '.join(SIGNALS)}",
        )
    return found


def find_signals(names: Iterable[str] | str | None = None) -> list[Signal]:
    """Return the signals of some names, each once; the cheap ones if none is named."""
    if names is None:
        return [each for each in SIGNALS.values() if each.cheap and not each.needs]
    found = map(find_signal, [names] if isinstance(names, str) else names)
    return list({each.name: each for each in found}.values())


# how values are made


def _score_spreads(calls: CallTable) -> Floats:
    of, value, n = calls.scores
    mean = calls.sums(of, value) / np.maximum(n, 1)
    squares = calls.sums(of, (value - mean[of]) ** 2)
    return np.where(n > 1, np.sqrt(squares / np.maximum(n, 1)), np.nan)


def _score_entropies(calls: CallTable) -> Floats:
    of, value, n = calls.scores
    lowest = np.full(len(n), np.inf)
    np.minimum.at(lowest, of, value)
    above = value - lowest[of]
    total = calls.sums(of, above)
    # of three scores two can lie above the lowest; of two only one, whose share is always 1
    enough, flat = n >= 3, total == 0
    share = above / np.where(flat, 1.0, total)[of]
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    largest = np.log(np.where(enough, n - 1, 3.0))
    found = np.clip(calls.sums(of, -share * logs) / largest, 0.0, 1.0)
    return np.where(enough, np.where(flat, 1.0, found), np.nan)


def _in_another_language(calls: CallTable) -> Floats:
    expected = calls.given.expected_language

    def other(questions: pl.Series) -> list[float | None]:
        codes = languages_of(questions.to_list())
        return [float(code != expected) if code else None for code in codes]

    return calls.by_question(other)


def _question_distances(calls: CallTable) -> Floats:
    """Return 1 − the cosine to the nearest question of the evaluation."""
    found = find_embedder(calls.given.embedder)  # type: ignore[arg-type]
    embedder = cached(found)
    known = TextEmbedder(found.name, embedder.embed).embed(list(calls.given.questions))

    def distances(questions: pl.Series) -> Floats:
        near = np.full(len(questions), np.nan)
        for start in range(0, len(questions), QUESTIONS_AT_ONCE):
            texts = questions.slice(start, QUESTIONS_AT_ONCE).to_list()
            vectors = TextEmbedder(found.name, embedder.embed).embed(texts)
            if vectors.shape[1] == known.shape[1]:
                # einsum adds in a fixed order, whatever the number of threads
                cosines = np.einsum("ij,kj->ik", vectors, known)
                near[start : start + len(texts)] = cosines.max(axis=1)
        near[~questions.str.contains(r"\w").to_numpy()] = np.nan  # blank
        return np.asarray(np.clip(1 - near, 0.0, 1.0))

    return calls.by_question(distances)


def _near_duplicate_shares(calls: CallTable) -> Floats:
    table = texts_of(calls["docs"], calls["texts"], calls.given.corpus).drop_nulls("text")
    call = table["call"].to_numpy()
    return calls.means(call, copies(call, table["text"]))


def _ages(calls: CallTable) -> Floats:
    """Return the mean age of the documents, in days, at the time of each call."""
    table = calls.documents("doc_metadata")
    written = table["doc_metadata"].drop_nulls().unique()
    days = pl.Series([date_in(text, calls.given.date_key) for text in written], dtype=pl.Float64)
    table = table.with_columns(
        date=pl.col("doc_metadata").replace_strict(
            written, days, default=None, return_dtype=pl.Float64
        )
    )
    corpus = calls.given.corpus
    if corpus is not None and "date" in corpus.columns:
        given = pl.col("date").str.strip_chars().str.head(10).str.to_date(DAY, strict=False)
        corpus = corpus.select("doc", given.to_physical().cast(pl.Float64))
    table = with_corpus(table, "date", corpus).drop_nulls("date")
    asked = calls["time"].dt.date().to_physical().cast(pl.Float64).to_numpy()
    call = table["call"].to_numpy()
    return calls.means(call, np.maximum(asked[call] - table["date"].to_numpy(), 0.0))


def date_in(text: str, key: str | None) -> float | None:
    """Return the date in the metadata of a document, in days since 1970.

    >>> date_in('{"updated_at": "2026-05-31T10:00:00Z"}', None)
    20604.0
    >>> date_in('{"date": 1780185600}', None)
    20604.0
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    for name in (key,) if key else DATES:
        value = found.get(name)
        if isinstance(value, str):
            try:
                return float((date.fromisoformat(value.strip()[:10]) - EPOCH).days)
            except ValueError:
                continue
        if isinstance(value, int | float) and 1 < value < math.inf:
            seconds = value / 1000 if value >= MILLISECONDS else value
            return float(seconds // 86400)
    return None


def _unseen_shares(calls: CallTable) -> Floats:
    history = calls.history
    keys = [f"\1{name}" for name in history.columns]
    table = history.rename(dict(zip(history.columns, keys, strict=True)))
    table = table.with_columns(calls["time"].alias("time"), calls["docs"].alias("doc"))
    rows = table.with_row_index("call").explode("doc", empty_as_null=False, keep_nulls=False)
    first = rows.group_by(*keys, "doc").agg(pl.col("time").min().alias("first"))
    joined = rows.join(
        first, on=[*keys, "doc"], how="left", nulls_equal=True, maintain_order="left"
    )
    new = (joined["time"] == joined["first"]).cast(pl.Float64).to_numpy()
    return calls.means(joined["call"].to_numpy(), new)


def _unknown_shares(calls: CallTable) -> Floats:
    table, corpus = calls.documents(), calls.given.corpus
    known = pl.Series([], dtype=pl.String) if corpus is None else corpus["doc"]
    lacking = ~table["doc"].is_in(known.implode())
    return calls.means(table["call"].to_numpy(), lacking.cast(pl.Float64).to_numpy())


def _churns(calls: CallTable) -> Floats:
    """Compare each list with that of the last call with the same question."""
    question = calls["question"].str.strip_chars().str.to_lowercase().str.replace_all(r"\s+", " ")
    table = calls.history.with_columns(
        calls["hop"].alias(RAW_PREFIX + "hop"), question.alias(RAW_PREFIX + "question")
    )
    keys = table.columns
    asked = table.with_row_index(RAW_PREFIX + "row").filter(
        calls["error"].is_null()
        & calls["docs"].is_not_null()
        & question.is_not_null()
        & (question != "")
    )
    before = asked.with_columns(pl.col(RAW_PREFIX + "row").shift(1).over(keys).alias("before"))
    pairs = before.drop_nulls("before").select(RAW_PREFIX + "row", "before")
    found = np.full(len(calls), np.nan)
    rows, earlier = (pairs[name].to_numpy() for name in (RAW_PREFIX + "row", "before"))
    found[rows] = 1 - rbo_of_lists(calls["docs"].gather(rows), calls["docs"].gather(earlier))
    return found


def _rerank_churns(calls: CallTable) -> Floats:
    after, before = calls["docs"], calls["inputs"]
    cut = pl.DataFrame({"before": before, "n": after.list.len()}).select(
        pl.col("before").list.head("n")
    )
    known = (before.list.len() > 0).fill_null(value=False) & calls["error"].is_null()
    return np.where(known.to_numpy(), 1 - rbo_of_lists(after, cut["before"]), np.nan)


_COUNT = pl.col("docs").list.len()
_SUCCEEDED = pl.col("error").is_null()
# custom writers may store any latency, and any score
_LATENCY = pl.when(pl.col("latency_ms").is_finite() & (pl.col("latency_ms") >= 0)).then(
    pl.col("latency_ms")
)
_SCORES = [pl.col("scores").list.get(rank, null_on_oob=True).cast(pl.Float64) for rank in (0, 1)]
_FIRST, _SECOND = (pl.when(each.is_finite()).then(each) for each in _SCORES)


def _register(names: str, what: str, value: Value | None = None, **more: Any) -> None:  # noqa: ANN401
    """Register a signal by its name and its aliases: a share, of which more is worse, or `more`."""
    name, *aliases = names.split()
    about = {"unit": "share", "worse": "higher", **more}
    register_signal(Signal(name, what, value=value, aliases=tuple(aliases), **about))


_register(
    "queries queries_per_hour traffic",
    "calls per hour",
    pl.lit(1.0),
    unit="an hour",
    worse="lower",
    bounds=POSITIVE_RANGE,
    summary="count",
)
_register("error errors error_rate", "share of calls that failed", (~_SUCCEEDED).cast(pl.Float64))
_register(
    "empty empty_rate empty_result_rate no_results",
    "share of calls that returned nothing; failed calls are left out",
    pl.when(_SUCCEEDED).then((_COUNT == 0).cast(pl.Float64)),
)
for _names, _which, _summary in (
    ("latency latency_p50 p50 latency_ms", "median", "p50"),
    ("latency_p95 p95", "95th percentile", "p95"),
    ("latency_p99 p99", "99th percentile", "p99"),
):
    _what = f"duration of a call: the {_which}"
    _register(_names, _what, _LATENCY, unit="ms", bounds=POSITIVE_RANGE, summary=_summary)
_register(
    "documents docs documents_per_query",
    "number of documents retrieved; failed calls are left out",
    pl.when(_SUCCEEDED).then(_COUNT.cast(pl.Float64)),
    unit="documents",
    worse="lower",
    bounds=POSITIVE_RANGE,
)
_scored = partial(_register, unit="score", worse="either", bounds=POSITIVE_RANGE)
_first = "score of the first document"
_scored("top_score first_score score score_top1", _first, _FIRST, worse="lower", bounds=ANY_RANGE)
_gap = "distance between the scores of the first and the second document"
_scored("score_gap gap", _gap, (_FIRST - _SECOND).abs())
_spread = "standard deviation of the scores of a call (two or more)"
_scored("score_spread spread", _spread, _score_spreads, columns="scores")
_register(
    "score_entropy entropy",
    "how even the scores of a call are (three or more): the entropy of each score's share of what "
    "is above the lowest, ÷ its maximum; 1 if all are equal",
    _score_entropies,
    worse="either",
    columns="scores",
)
_register(
    "duplicates duplicate_share",
    "share of the documents that the same list already has above, by id",
    pl.when(_COUNT > 0).then(1 - pl.col("docs").list.n_unique() / _COUNT),
)
_register(
    "query_length question_length",
    "length of the question",
    pl.col("question").str.len_chars().cast(pl.Float64),
    unit="characters",
    worse="either",
    bounds=POSITIVE_RANGE,
)
_costly = partial(_register, cheap=False)
_costly(
    "other_language language",
    "share of questions in another language than expected (English, or `--with expected_language`)"
    ", by words and script; undefined if these say nothing",
    _in_another_language,
    worse="either",
    columns="question",
)
_costly(
    "query_distance distance distance_from_evaluation",
    "distance of the question from the nearest one of the evaluation set: 1 − cosine of their "
    "embeddings, at most 1",
    _question_distances,
    unit="distance",
    columns="question",
    needs="questions",
)
_costly(
    "near_duplicates",
    "share of the documents whose text nearly repeats that of one above: 80 % of all sequences of "
    "three words in common (the measure near_duplicates)",
    _near_duplicate_shares,
    columns="docs texts",
)
_costly(
    "age document_age",
    "mean age of the documents on the day of the call, by the dates of their metadata or of the "
    "corpus; undefined if none has a date",
    _ages,
    unit="days",
    bounds=POSITIVE_RANGE,
    columns="time docs doc_metadata",
)
_costly(
    "unseen unseen_documents new_documents",
    "share of the documents that no earlier call of the same service and slice retrieved",
    _unseen_shares,
    worse="either",
    columns="docs service",
    history=True,
)
_costly(
    "unknown_documents not_in_corpus",
    "share of the documents that are not in the corpus",
    _unknown_shares,
    columns="docs",
    needs="corpus",
)
_costly(
    "churn rank_churn",
    "how far the list differs from the last one for the same question: 1 − RBO (p = 0.9), of the "
    "same service and hop; undefined for a new question",
    _churns,
    columns="question docs error service hop",
    history=True,
)
_costly(
    "rerank_churn",
    "how far reranking changes the list: 1 − RBO (p = 0.9) of the list and the one before, cut to "
    "the same length; of calls of rerankers only",
    _rerank_churns,
    worse="either",
    columns="docs inputs error",
    kind="reranker",
)
for _names, _what in {
    "context_relevancy": "share of the retrieved statements that help with the question, according "
    "to a judge",
    "context_precision": "average precision of the retrieved documents, with relevance according "
    "to a judge",
    "sufficiency context_sufficiency": "whether everything retrieved is enough to answer the "
    "question, according to a judge",
}.items():
    _costly(_names, _what, worse="lower", needs="judge")
_register(
    "concentration gini",
    "Gini coefficient of how often each document was retrieved, of those that were: 0 if all were "
    "retrieved equally often, near 1 if a few take all places",
    columns="docs",
    summary="gini",
)
_costly(
    "never_retrieved",
    "share of the documents of the corpus that no call retrieved",
    columns="docs",
    summary="never",
    needs="corpus",
)

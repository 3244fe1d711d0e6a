"""Signals: what can be seen of retrieval in production, without a label.

A signal is a measure over calls. `SIGNALS` is the registry: each signal with its definition, unit,
bounds, the direction that is bad, and how its value is made of a call: an expression over the
columns of the traces, or a function of all calls at once. A package adds signals by entry points of
the group `findwell.signals`. How values become one of an hour stands in `time_buckets`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
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
POSITIVE = (0.0, np.inf)
ANY = (-np.inf, np.inf)
MANY_CALL_SUMMARIES = ("count", "gini", "never")  # of what a single call has no value of
KEY = ("time", "trace", "span")
RAW = "\0"  # before the names of columns of the traces, which slices may have as well
DATES = CORPUS_COLUMNS["date"]  # keys of metadata, the preferred one first
MILLISECONDS = 1e11  # from here on a number is no second of this century but a millisecond
QUESTIONS_AT_ONCE = 4096  # that are embedded, and compared, together
REFERENCE_FIXES = {
    "corpus": ("a corpus", "name the documents that can be retrieved: --corpus FILE (corpus=)"),
    "questions": (
        "questions of an evaluation",
        "name the questions of the evaluation: --questions FILE (questions=)",
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


class ScoreLists:
    """The scores of calls in one array; those that are no number are NaN."""

    def __init__(self, lists: pl.Series) -> None:
        """Lay lists of scores end to end."""
        self.count = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
        flat = lists.explode(empty_as_null=False, keep_nulls=False).cast(pl.Float64).to_numpy()
        self.flat: Floats = np.where(np.isfinite(flat), flat, np.nan)
        self.start = np.cumsum(self.count) - self.count

    def at(self, rank: int) -> Floats:
        """Return the score at a rank, from 0."""
        found = np.full(len(self.count), np.nan)
        there = self.count > rank
        found[there] = self.flat[self.start[there] + rank]
        return found

    @cached_property
    def known(self) -> tuple[Ints, Floats, Floats]:
        """The calls of the scores that are known, these, and how many each call has."""
        there = ~np.isnan(self.flat)
        calls = np.repeat(np.arange(len(self.count)), self.count)[there]
        return calls, self.flat[there], self.sums(calls, np.ones(len(calls)))

    def sums(self, calls: Ints, values: Floats) -> Floats:
        """Add up values by call."""
        return np.bincount(calls, values, minlength=len(self.count)).astype(np.float64)


class CallTable:
    """Columns of calls, as signals read them."""

    def __init__(self, table: pl.DataFrame, slices: Sequence[str], given: References) -> None:
        """Take a table whose columns of the traces have a mark before their names."""
        self._table = table
        self._slices = table.select(slices)
        self.given = given

    def __getitem__(self, name: str) -> pl.Series:
        return self._table[name if name in KEY else RAW + name]

    def __len__(self) -> int:
        return self._table.height

    @property
    def history(self) -> pl.DataFrame:
        """What earlier calls have to share to be compared with: service and slices."""
        service = self["service"].alias(RAW + "service")
        return pl.DataFrame([*self._slices.get_columns(), service])

    @cached_property
    def scores(self) -> ScoreLists:
        """The scores of all calls."""
        return ScoreLists(self["scores"])

    def documents(self, *names: str) -> pl.DataFrame:
        """Return one row per document: its call, its id as `doc`, and other columns of lists.

        A list that is shorter than that of the ids, as where texts were not kept, says nothing.
        """
        return listed(self["docs"], {name: self[name] for name in names})

    def means(self, call: Ints, values: Floats) -> Floats:
        """Return the mean of values by call; NaN where a call has none."""
        count = np.bincount(call, minlength=len(self))
        total = np.bincount(call, values, minlength=len(self))
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

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
    what: str  # its definition, for one call; or for all of an hour where it is of none
    unit: str
    worse: Worse  # which direction is bad
    value: Value | None = field(default=None, compare=False, repr=False)  # None: a judge gives it
    bounds: tuple[float, float] = UNIT
    summary: str = "mean"  # of the calls of an hour: mean, p50, p95, p99, count, gini, never
    columns: str = ""  # of the traces, which the function reads
    kind: str = ""  # calls that it is defined for; all that are asked for if empty
    history: bool = False  # whether earlier calls of the same slice decide, too
    needs: str = ""  # what has to be given: corpus, questions, judge
    cheap: bool = True  # whether it is shown where nothing else is asked for
    aliases: tuple[str, ...] = ()

    @property
    def per_call(self) -> bool:
        """Whether a single call has a value."""
        return self.summary not in MANY_CALL_SUMMARIES

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the traces that it is made of."""
        if isinstance(self.value, pl.Expr):
            return tuple(dict.fromkeys(self.value.meta.root_names()))
        return tuple(self.columns.split())


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
    listed_names = [names] if isinstance(names, str) else list(names)
    return list({(found := find_signal(name)).name: found for name in listed_names}.values())


# how values are made


def _score_spreads(calls: CallTable) -> Floats:
    scores = calls.scores
    of, value, n = scores.known
    mean = scores.sums(of, value) / np.maximum(n, 1)
    squares = scores.sums(of, (value - mean[of]) ** 2)
    return np.where(n > 1, np.sqrt(squares / np.maximum(n, 1)), np.nan)


def _score_entropies(calls: CallTable) -> Floats:
    scores = calls.scores
    of, value, n = scores.known
    lowest = np.full(len(n), np.inf)
    np.minimum.at(lowest, of, value)
    above = value - lowest[of]
    total = scores.sums(of, above)
    # of three scores two can lie above the lowest; of two only one, whose share is always 1
    enough, flat = n >= 3, total == 0
    share = above / np.where(flat, 1.0, total)[of]
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    largest = np.log(np.where(enough, n - 1, 3.0))
    found = np.clip(scores.sums(of, -share * logs) / largest, 0.0, 1.0)
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
        calls["hop"].alias(RAW + "hop"), question.alias(RAW + "question")
    )
    keys = table.columns
    asked = table.with_row_index(RAW + "row").filter(
        calls["error"].is_null()
        & calls["docs"].is_not_null()
        & question.is_not_null()
        & (question != "")
    )
    before = asked.with_columns(pl.col(RAW + "row").shift(1).over(keys).alias("before"))
    pairs = before.drop_nulls("before").select(RAW + "row", "before")
    found = np.full(len(calls), np.nan)
    rows, earlier = (pairs[name].to_numpy() for name in (RAW + "row", "before"))
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
# custom writers may store any latency
_LATENCY = pl.when(pl.col("latency_ms").is_finite() & (pl.col("latency_ms") >= 0)).then(
    pl.col("latency_ms")
)


def _register(  # noqa: PLR0917
    names: str,
    what: str,
    unit: str,
    worse: Worse,
    value: Value | None,
    bounds: tuple[float, float] = UNIT,
    summary: str = "mean",
    **more: Any,  # noqa: ANN401
) -> None:
    """Register a signal; `names` are its name and its aliases."""
    name, *aliases = names.split()
    about = Signal(name, what, unit, worse, value, bounds, summary, aliases=tuple(aliases), **more)
    register_signal(about)


_register(
    "queries queries_per_hour traffic",
    "how many calls there are in an hour",
    "an hour",
    "lower",
    pl.lit(1.0),
    POSITIVE,
    "count",
)
_register(
    "error errors error_rate",
    "1 where the call failed, else 0",
    "share",
    "higher",
    (~_SUCCEEDED).cast(pl.Float64),
)
_register(
    "empty empty_rate empty_result_rate no_results",
    "1 where nothing was retrieved, else 0; undefined where the call failed",
    "share",
    "higher",
    pl.when(_SUCCEEDED).then((_COUNT == 0).cast(pl.Float64)),
)
for _names, _which in {
    "latency latency_p50 p50 latency_ms": "median",
    "latency_p95 p95": "95th percentile",
    "latency_p99 p99": "99th percentile",
}.items():
    _summary = _names.split()[-1] if _which != "median" else "p50"
    _what = f"how long the call took; the {_which}"
    _register(_names, _what, "ms", "higher", _LATENCY, POSITIVE, _summary)
_register(
    "documents docs documents_per_query",
    "how many documents were retrieved; undefined where the call failed",
    "documents",
    "lower",
    pl.when(_SUCCEEDED).then(_COUNT.cast(pl.Float64)),
    POSITIVE,
)
_register(
    "top_score first_score score score_top1",
    "the score of the first document",
    "score",
    "lower",
    lambda calls: calls.scores.at(0),
    ANY,
    columns="scores",
)
_register(
    "score_gap gap",
    "how far the scores of the first and the second document are apart",
    "score",
    "either",
    lambda calls: np.abs(calls.scores.at(0) - calls.scores.at(1)),
    POSITIVE,
    columns="scores",
)
_register(
    "score_spread spread",
    "the standard deviation of the scores of a call, if there are two or more",
    "score",
    "either",
    _score_spreads,
    POSITIVE,
    columns="scores",
)
_register(
    "score_entropy entropy",
    "how even the scores are: the entropy of what each is above the lowest, as shares of the sum, "
    "÷ its largest value; 1 where all are equal; of three or more scores",
    "share",
    "either",
    _score_entropies,
    columns="scores",
)
_register(
    "duplicates duplicate_share",
    "the share of the documents that stand above already, by id",
    "share",
    "higher",
    pl.when(_COUNT > 0).then(1 - pl.col("docs").list.n_unique() / _COUNT),
)
_register(
    "query_length question_length",
    "how long the question is",
    "characters",
    "either",
    pl.col("question").str.len_chars().cast(pl.Float64),
    POSITIVE,
)
_register(
    "other_language language",
    "1 where the question is in another language than the one that is expected (English, or "
    "`--expected-language`), else 0; by words and script, undefined where nothing tells",
    "share",
    "either",
    _in_another_language,
    columns="question",
    cheap=False,
)
_register(
    "query_distance distance distance_from_evaluation",
    "how far the question is from the nearest one of the evaluation set: 1 − cosine of their "
    "embeddings, at most 1",
    "distance",
    "higher",
    _question_distances,
    columns="question",
    needs="questions",
    cheap=False,
)
_register(
    "near_duplicates",
    "the share of the documents with a text that nearly repeats that of one above: 80 % of all "
    "sequences of three words in common (the measure near_duplicates)",
    "share",
    "higher",
    _near_duplicate_shares,
    columns="docs texts",
    cheap=False,
)
_register(
    "age document_age",
    "how old the documents are on the day of the call, on average; by the dates of their metadata "
    "or of the corpus, undefined where none has one",
    "days",
    "higher",
    _ages,
    POSITIVE,
    columns="time docs doc_metadata",
    cheap=False,
)
_register(
    "unseen unseen_documents new_documents",
    "the share of the documents that no earlier call of the same service and slice retrieved",
    "share",
    "either",
    _unseen_shares,
    columns="docs service",
    history=True,
    cheap=False,
)
_register(
    "unknown_documents not_in_corpus",
    "the share of the documents that the corpus does not have",
    "share",
    "higher",
    _unknown_shares,
    columns="docs",
    needs="corpus",
    cheap=False,
)
_register(
    "churn rank_churn",
    "1 − RBO (p = 0.9) of the list and that of the last call that asked the same service the same "
    "question at the same hop; undefined where nobody asked it before",
    "share",
    "higher",
    _churns,
    columns="question docs error service hop",
    history=True,
    cheap=False,
)
_register(
    "rerank_churn",
    "1 − RBO (p = 0.9) of the list after reranking and as much of the list before; of calls of "
    "rerankers only",
    "share",
    "either",
    _rerank_churns,
    columns="docs inputs error",
    kind="reranker",
    cheap=False,
)
for _names, _what in {
    "context_relevancy": "the share of the statements retrieved that help with the question, as a "
    "judge sees it",
    "context_precision": "average precision over the documents retrieved, relevant ones as a judge "
    "sees them",
    "sufficiency context_sufficiency": "whether all that was retrieved is enough to answer the "
    "question, as a judge sees it",
}.items():
    _register(_names, _what, "share", "lower", None, needs="judge", cheap=False)
_register(
    "concentration gini",
    "the Gini coefficient of how often each document was retrieved, of those that were: 0 where "
    "all were retrieved equally often, near 1 where a few take all places",
    "share",
    "higher",
    pl.col("docs"),
    summary="gini",
)
_register(
    "never_retrieved",
    "the share of the documents of the corpus that no call retrieved",
    "share",
    "higher",
    pl.col("docs"),
    summary="never",
    needs="corpus",
    cheap=False,
)

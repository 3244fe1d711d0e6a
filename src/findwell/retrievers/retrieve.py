"""`findwell.retrieve`: a retriever and questions with the ids of their queries in, a run out."""

from __future__ import annotations

import hashlib
import time
import weakref
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from findwell.core.data import Gold
from findwell.core.errors import InputError, takes_options
from findwell.core.findings import Finding, finding_about
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.progress import Progress
from findwell.io.read import path_of
from findwell.io.read.format import EntryNotes
from findwell.io.read.objects import entries_of
from findwell.io.read.queries import load_queries
from findwell.io.read.records import one_line
from findwell.io.read.values import identifier
from findwell.io.read.vocabulary import ASKED_IDS, ASKED_QUESTIONS
from findwell.retrievers.answers import AnswerLog, RetrieverAnswer, to_run
from findwell.retrievers.dispatch import Dispatcher, too_many
from findwell.retrievers.retriever import RetrievalOptions, Retriever, name_of

if TYPE_CHECKING:
    from findwell.core.data import Run
    from findwell.core.progress import Report
    from findwell.retrievers.retriever import RetrieverLike

REPORT_SECONDS = 0.1  # seconds between reports of progress
QUERIES_PLACE = "queries"
QUESTIONS_FIX = (
    "give every query its question: queries={id: question}, a table with the columns query and "
    "question (--queries FILE), or gold labels whose records have a question"
)


@takes_options(RetrievalOptions)
def retrieve(
    retriever: RetrieverLike,
    queries: object,
    *,
    progress: Report | None = None,
    **options: Unpack[RetrievalOptions],
) -> Run:
    """Ask a retriever every question, and return what it found as a run, in its order.

    `retriever` is a function of a question, sync or async, an object with `invoke`, `retrieve` or
    `run` (or their async forms), or a `findwell.retrievers.Retriever`, which also says how it is
    asked. `queries` is {id: question}, a list of questions, or a table, file or records with the
    columns query and question. The options are those of `findwell.retrievers.Retriever`: `k`,
    `concurrency`, `timeout`, `retries`, `warmup`, `max_errors`, `resume`, `id_from`, `name`.
    `progress` is called with how far it is.

    A retriever returns ids, (id, score) pairs, or documents of a framework. A question that raises
    an error or times out is recorded with the reason. It counts as nothing retrieved, and in the
    error rate. `run.about` has the latency, processor time and memory of each query.

    >>> run = retrieve(lambda question: [("d1", 0.9), ("d2", 0.4)], {"q1": "What is it?"}, k=1)
    >>> run.rows.select("query", "doc").rows()
    [('q1', 'd1')]
    """
    refuse_after_fork()
    if isinstance(retriever, Retriever):
        settings = replace(retriever, **options)
    else:
        settings = Retriever(retriever, **options)
    return ask_all(settings, load_questions(queries), progress)


def ask_all(settings: Retriever, queries: pl.DataFrame, progress: Report | None = None) -> Run:
    """Ask a retriever the questions of a table that was checked."""
    pairs: list[tuple[str, str]] = queries.select("query", "question").rows()
    answers: dict[int, RetrieverAnswer] = {}
    findings: list[Finding] = []
    notes = EntryNotes()
    reported = 0.0
    with ExitStack() as opened:
        log = None
        if settings.resume is not None:
            log = opened.enter_context(AnswerLog(settings.resume, settings.identity, pairs))
            answers |= log.answers
            findings = _resumed(log)
        left = [(at, question) for at, (_, question) in enumerate(pairs) if at not in answers]
        since = max((answer.ended for answer in answers.values()), default=0.0)

        def take(answer: RetrieverAnswer) -> None:
            nonlocal reported
            answers[answer.number] = answer
            if log is not None:
                log.add(answer)
            now, done = time.monotonic(), len(answers)
            if progress is not None and (now - reported >= REPORT_SECONDS or done == len(pairs)):
                reported = now
                failed = sum(each.error is not None for each in answers.values())
                progress(Progress(done, len(pairs), f"{failed} failed" if failed else ""))

        read = partial(entries_of, id_from=settings.id_from, notes=notes)
        before = time.process_time()
        if left:
            warmup = [question for _, question in left[: settings.warmup]]
            Dispatcher(settings, read, take, since).ask(left, warmup)
    # the processor's work is shared out evenly where several questions were asked at a time
    mean = (time.process_time() - before) / (len(left) or 1)
    for answer in (answers[at] for at, _ in left):
        if answer.cpu is None and answer.error is None:
            answer.cpu = mean
    listed = [answers[at] for at in range(len(pairs))]
    if all(answer.error for answer in listed):
        raise too_many(0, len(listed), str(listed[-1].error))
    run = to_run(settings.name or name_of(settings.target), queries, listed)
    found = (*run.findings, *findings, *notes.findings())
    return replace(run, findings=found, others=notes.others)


# by the id of a retriever that is still there: hashes of what it was asked for an evaluation
_ASKED_HASHES: dict[int, set[str]] = {}


def asked_again(settings: Retriever, queries: pl.DataFrame) -> list[Finding]:
    """Report that an evaluation asks a retriever what another one of this process asked it.

    Nothing is remembered of the answers: an index or a setting may have changed since.
    """
    method = getattr(settings.target, "__func__", None)  # a bound method is made when it is named
    target = settings.target if method is None else settings.target.__self__
    if id(target) not in _ASKED_HASHES:
        try:
            forget = weakref.finalize(target, _ASKED_HASHES.pop, id(target), None)
        except TypeError:  # of some kinds of objects nothing says when they are gone
            return []
        forget.atexit = False
    what = (settings.k, settings.id_from, id(method), queries.select("query", "question").rows())
    key = hashlib.sha256(repr(what).encode("utf-8", "replace")).hexdigest()
    known = _ASKED_HASHES.setdefault(id(target), set())
    if key not in known:
        known.add(key)
        return []
    return finding_about(
        "retriever-asked-again",
        queries["query"],
        "# query|queries was|were asked before, for another evaluation of this process.",
        "ask it once with findwell.retrieve(retriever, questions), and pass the run that this "
        "returns to evaluate, compare and the others",
    )


def _resumed(log: AnswerLog) -> list[Finding]:
    """Say what was taken from a file, and what was not."""
    found = []
    if log.answers:
        message = "# answer|answers was|were kept from before and not asked for again."
        fix = f"remove {log.path.name} (--fresh) to ask again"
        found.append(Finding("resumed-answer", len(log.answers), (log.path.name,), message, fix))
    if log.others:
        message = "# answer|answers of another retriever or of other options is|are not used."
        found.append(
            Finding("other-configuration", log.others, (log.path.name,), message, "name a new file")
        )
    return found


def load_questions(data: object) -> pl.DataFrame:
    """Return the columns query and question, and whatever else a table has about the queries.

    `data` is {id: question}, a list of questions, a path, a table, records, or gold labels.

    >>> load_questions({"q1": "What is it?"}).row(0)
    ('q1', 'What is it?')
    >>> load_questions(["What is it?"]).row(0)
    ('What is it?', 'What is it?')
    """
    if isinstance(data, Gold):
        return _checked(data.queries, "gold")
    if isinstance(data, Mapping) and all(isinstance(each, str) for each in data.values()):
        ids = [identifier(name, QUERIES_PLACE) for name in data]
        return _checked(_table(ids, list(data.values())), QUERIES_PLACE)
    if isinstance(data, list | tuple) and all(isinstance(each, str) for each in data):
        seen: Counter[str] = Counter()
        ids = []
        for name in map(one_line, data):  # numbered as records without ids are
            seen[name] += 1
            ids.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
        return _checked(_table(ids, list(data)), QUERIES_PLACE)
    table = load_queries(data, ASKED_IDS)
    # without a column of questions, the ids are the questions
    named = next((name for name in ASKED_QUESTIONS if name in table.columns), "query")
    table = table.with_columns(question=pl.col(named).cast(pl.String))
    return _checked(table, path_of(data, QUERIES_PLACE))


def questions_for(gold: Gold, queries: object) -> pl.DataFrame:
    """Return the questions of the gold: its own, or those of a table about its queries."""
    if "question" in gold.queries.columns or queries is None:
        return _checked(gold.queries, "gold")
    asked = load_questions(queries)
    names = gold.queries.select("query")
    return _checked(names.join(asked, on="query", how="left", maintain_order="left"), QUERIES_PLACE)


def _table(ids: list[str], questions: list[Any]) -> pl.DataFrame:
    schema = {"query": pl.String, "question": pl.String}
    return pl.DataFrame({"query": ids, "question": questions}, schema=schema)


def _checked(table: pl.DataFrame, where: str) -> pl.DataFrame:
    if "question" not in table.columns:
        raise InputError(
            "there are no questions to ask a retriever", where=where, fix=QUESTIONS_FIX
        )
    if not table.height:
        raise InputError("there is no query to ask", where=where, fix=QUESTIONS_FIX)
    table = table.with_columns(pl.col("question").cast(pl.String))
    blank = table.filter(pl.col("question").fill_null("").str.strip_chars() == "")
    if blank.height:
        raise InputError(
            f"{blank.height} of {table.height} queries have no question, for example "
            f"{blank['query'][0]!r}",
            where=where,
            fix=QUESTIONS_FIX,
        )
    again = table.filter(pl.col("query").is_duplicated())["query"]
    if len(again):
        raise InputError(
            f"query {again[0]!r} is there more than once", where=where, fix="keep one row per query"
        )
    return table

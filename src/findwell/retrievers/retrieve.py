"""`findwell.retrieve`: a retriever and questions in, a run out."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from findwell.core.errors import takes_options
from findwell.core.findings import Finding
from findwell.core.forks import refuse_after_fork
from findwell.core.progress import Progress
from findwell.io.read.objects import EntryNotes, entries_of
from findwell.retrievers.answers import Answer, to_run
from findwell.retrievers.dispatch import Dispatcher, too_many
from findwell.retrievers.log import AnswerLog
from findwell.retrievers.questions import load_questions
from findwell.retrievers.retriever import RetrievalOptions, Retriever, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from findwell.core.data import Run
    from findwell.core.progress import Report
    from findwell.retrievers.retriever import RetrieverLike

OFTEN = 0.1  # seconds between reports of progress


@takes_options(RetrievalOptions)
def retrieve(
    retriever: RetrieverLike,
    queries: object,
    *,
    progress: Report | None = None,
    **options: Unpack[RetrievalOptions],
) -> Run:
    """Ask a retriever every question, and return what it found, in its order, as a run.

    `retriever` is a function of a question, sync or async, an object with `invoke`, `retrieve` or
    `run` (or their async forms), or a `findwell.Retriever` that also says how it is asked.
    `queries` is {id: question}, a list of questions, or a table, file or records with the columns
    query and question. The options are those of `findwell.Retriever`: `k`, `concurrency`,
    `timeout`, `retries`, `warmup`, `max_errors`, `resume`, `id_from`, `name`. `progress` is called
    with how far it is.

    What is found may be ids, (id, score) pairs, or documents of a framework; see docs/inputs.md. A
    question that raises, or has no answer in time, is recorded with the reason: it counts as
    nothing retrieved, and in the error rate. Latency, processor time and memory stand in
    `run.about`, one row per query.

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
    answers: dict[int, Answer] = {}
    findings: list[Finding] = []
    with ExitStack() as opened:
        log = None
        if settings.resume is not None:
            log = opened.enter_context(AnswerLog(settings.resume, settings.identity, pairs))
            answers |= log.answers
            findings = _resumed(log)
        left = [(at, question) for at, (_, question) in enumerate(pairs) if at not in answers]
        report = _Reporter(progress, len(pairs), len(answers))

        def take(answer: Answer) -> None:
            answers[answer.number] = answer
            if log is not None:
                log.add(answer)
            report.add(answer)

        if left:
            since = max((answer.ended for answer in answers.values()), default=0.0)
            findings += _ask(settings, left, take, since)
    listed = [answers[at] for at in range(len(pairs))]
    if all(answer.error for answer in listed):
        raise too_many(0, len(listed), str(listed[-1].error))
    run = to_run(settings.name or name_of(settings.target), queries, listed)
    return replace(run, findings=(*run.findings, *findings))


def _ask(
    settings: Retriever,
    left: list[tuple[int, str]],
    take: Callable[[Answer], None],
    since: float,
) -> list[Finding]:
    """Ask what is left, and return what is strange about the ids of documents.

    The processor's work is shared out evenly where several questions were asked at a time.
    """
    new: list[Answer] = []
    notes = EntryNotes()

    def keep(answer: Answer) -> None:
        new.append(answer)
        take(answer)

    read = partial(entries_of, id_from=settings.id_from, notes=notes)
    warmup = [question for _, question in left[: settings.warmup]]
    before = time.process_time()
    Dispatcher(settings, read, keep, since).ask(left, warmup)
    mean = (time.process_time() - before) / (len(new) or 1)
    for answer in new:
        if answer.cpu is None and answer.error is None:
            answer.cpu = mean
    return notes.findings()


def _resumed(log: AnswerLog) -> list[Finding]:
    """Say what was taken from a file, and what was not."""
    found = []
    if log.answers:
        message = "answer kept from before, and not asked for again"
        fix = f"remove {log.path.name} (--fresh) to ask again"
        found.append(Finding("resumed-answer", len(log.answers), (log.path.name,), message, fix))
    if log.others:
        message = "answer of another retriever or of other options: not used"
        found.append(
            Finding("other-configuration", log.others, (log.path.name,), message, "name a new file")
        )
    return found


class _Reporter:
    """Reports progress, though not for every answer."""

    def __init__(self, report: Report | None, total: int, done: int) -> None:
        self._report, self._total, self._done, self._errors = report, total, done, 0
        self._last = 0.0

    def add(self, answer: Answer) -> None:
        self._done += 1
        self._errors += answer.error is not None
        if self._report is None:
            return
        now = time.monotonic()
        if now - self._last >= OFTEN or self._done == self._total:
            self._last = now
            note = f"{self._errors} failed" if self._errors else ""
            self._report(Progress(self._done, self._total, note))

"""What a judge is asked about a run, and what it answers: once for all relations that need it.

A sample is one query: its question, its reference answer, and its chunks, distinct and in rank
order. A judge is asked no deeper than measures read, and about several aspects in one go where
they look at the same chunks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.core.errors import InputError
from findwell.core.findings import Finding, finding_about
from findwell.core.frames import pl
from findwell.core.parts import is_part
from findwell.core.progress import Progress
from findwell.core.texts.sentences import split
from findwell.judges.aspects import (
    VERDICTS,
    VerdictShape,
    all_verdicts,
    find_aspect,
    known_aspects,
    rows_of,
)
from findwell.judges.verdicts import Sample, fix_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from findwell.core.data import Gold, Ints
    from findwell.core.progress import Report
    from findwell.judges.verdicts import Judged, JudgeFailure, JudgeProtocol
    from findwell.relations.align import Aligned
    from findwell.relations.match.matcher import Matcher

SENTENCES = "sentencex"  # the splitter of findwell, in any language
Answers: TypeAlias = dict[int, tuple[Sample, "Judged"]]  # by the number of the query


@dataclass(frozen=True, slots=True)
class Task:
    """What one relation asks of a judge."""

    aspect: str
    depth: int | None = None  # ranks of the lists that are judged; None: all
    splitter: str = "sentencex"  # cuts what is judged into items or parts


@dataclass(slots=True)
class Judging:
    """A judge at work for the relations of an evaluation."""

    judge: JudgeProtocol
    tasks: Mapping[Matcher, Task]  # of the relations
    progress: Report | None = None
    _answers: dict[Task, Answers] = field(default_factory=dict)  # about the run that is being drawn
    _noted: list[Finding] = field(default_factory=list)

    def about(self, task: Task, aligned: Aligned, gold: Gold) -> Answers:
        """Return what the judge says for a task about the queries of a batch.

        The first relation of a batch has all tasks asked; the others find the answers here.
        """
        numbers = np.union1d(aligned.query, aligned.asked).tolist()
        samples = self._samples(numbers, aligned, gold)
        open_: dict[int, list[Task]] = {number: [] for number in numbers}
        for each, number in product(self._tasks, numbers):
            known = self._answers.get(each, {}).get(number)
            if known is None or known[0].chunks != samples[each][number].chunks:
                open_[number].append(each)
        self._ask(open_, samples)
        return {number: self._answers[task][number] for number in numbers}

    @property
    def _tasks(self) -> list[Task]:
        """Each task once: relations that differ in nothing else share it."""
        return list(dict.fromkeys(self.tasks.values()))

    def _samples(
        self, numbers: list[int], aligned: Aligned, gold: Gold
    ) -> dict[Task, dict[int, Sample]]:
        """Make the samples of each task: its lists are cut where its measures stop."""
        questions, references = (
            _texts_about(gold, name, sorted({task.aspect for task in self._tasks}))
            for name in ("question", "reference")
        )
        names = gold.queries["query"].gather(numbers).to_list()
        found: dict[Task, dict[int, Sample]] = {}
        for task in self._tasks:
            chunks = chunks_of(aligned.first(task.depth))
            samples = {
                number: Sample(
                    query=name,
                    question=questions[number],
                    chunks=chunks.get(number, ()),
                    reference=references[number],
                )
                for number, name in zip(numbers, names, strict=True)
            }
            found[task] = _with_units(samples, task, self.judge)
        return found

    def _ask(
        self, open_: Mapping[int, Sequence[Task]], samples: Mapping[Task, Mapping[int, Sample]]
    ) -> None:
        """Ask about every task of every query: at once where the chunks are the same."""
        together: dict[tuple[Task, ...], list[int]] = {}
        for number, tasks in open_.items():
            for group in _groups(tasks, {task: samples[task][number].chunks for task in tasks}):
                together.setdefault(group, []).append(number)
        total, done = sum(map(len, together.values())), 0
        for tasks, numbers in together.items():
            asked = [_joined([samples[task][number] for task in tasks]) for number in numbers]
            report = self.progress
            if report is not None and len(together) > 1:
                report = partial(_report_part, report, done, len(asked), total)
            judged = self.judge.judge(asked, frozenset(task.aspect for task in tasks), report)
            self._noted += getattr(self.judge, "findings", list)()  # what only the judge can know
            done += len(asked)
            answers = list(zip(asked, judged, strict=True))
            for task in tasks:
                self._answers.setdefault(task, {}).update(zip(numbers, answers, strict=True))

    def close(self, run: str) -> tuple[pl.DataFrame, list[Finding]]:
        """Return every verdict about a run as a row, and what is worth knowing; then forget it."""
        ordered = sorted(self._answers, key=lambda task: known_aspects().index(task.aspect))
        numbers = sorted({number for answers in self._answers.values() for number in answers})
        # relations of one aspect share an answer where their lists are the same
        answers = {
            (number, task.aspect, id(answer)): (task, answer)
            for number in numbers
            for task in ordered
            for answer in [self._answers[task][number]]
        }.values()
        rows = [row for task, pair in answers for row in rows_of(task.aspect, *pair)]
        findings = [*_findings(answers), *self._noted]
        self._answers, self._noted = {}, []
        table = pl.DataFrame(rows, schema=VERDICTS, orient="row")
        return table.with_columns(run=pl.lit(run)), findings


def chunks_of(aligned: Aligned) -> dict[int, tuple[str, ...]]:
    """Return the distinct chunks of each query, in the order of their numbers."""
    found: dict[int, dict[int, str]] = {}
    chunks = number_chunks(aligned).tolist()
    for query, at, text in zip(aligned.query.tolist(), chunks, aligned.rows["text"], strict=True):
        if at >= 0:
            found.setdefault(query, {}).setdefault(at, text)
    return {query: tuple(texts.values()) for query, texts in found.items()}


def number_chunks(aligned: Aligned) -> Ints:
    """Say which distinct chunk of its query each row is, as they first occur; -1 if it is blank."""
    filled = (aligned.rows["text"].str.strip_chars() != "").to_numpy()
    chunk = np.full(len(filled), -1, dtype=np.int64)
    rows = pl.DataFrame({"query": aligned.query, "key": aligned.doc}).filter(filled)
    distinct = rows.unique(["query", "key"], keep="first", maintain_order=True)
    distinct = distinct.with_columns(at=pl.int_range(pl.len()).over("query"))
    places = rows.join(distinct, on=["query", "key"], how="left", maintain_order="left")
    chunk[filled] = places["at"].to_numpy()
    return chunk


def _texts_about(gold: Gold, name: str, aspects: Sequence[str]) -> list[str]:
    """Return question or reference of each query; blank where there is none."""
    column = gold.queries.get_column(name, default=pl.Series([], dtype=pl.String))
    texts = column.cast(pl.String).fill_null("")
    wanted = [aspect for aspect in aspects if find_aspect(aspect).needs == name]
    if wanted and not (texts.str.strip_chars() != "").any() and not is_part():
        raise InputError(
            f"no query has a {name}, which judging {' and '.join(wanted)} needs",
            where="samples",
            fix=f"give each record a {name!r}; see docs/inputs.md for what other tools call it",
        )
    return texts.to_list() or [""] * gold.queries.height


def _with_units(samples: dict[int, Sample], task: Task, judge: JudgeProtocol) -> dict[int, Sample]:
    """Cut the references into items, or the chunks into parts, where an aspect is about them.

    A judge may know how sentences become claims (`claims_of`); a splitter that a user named decides
    by itself.
    """
    aspect = find_aspect(task.aspect)
    if not aspect.is_split:
        return samples
    if aspect.shape is VerdictShape.ITEMS:
        cut = split([sample.reference for sample in samples.values()], task.splitter)
        if task.splitter.startswith(SENTENCES) and hasattr(judge, f"{task.aspect}_of"):
            cut = getattr(judge, f"{task.aspect}_of")(cut)
        return {
            number: replace(sample, items={task.aspect: tuple(units)})
            for (number, sample), units in zip(samples.items(), cut, strict=True)
        }
    texts = [text for sample in samples.values() for text in sample.chunks]
    units = iter(split(texts, task.splitter))
    return {
        number: replace(
            sample, parts={task.aspect: tuple(tuple(next(units)) for _ in sample.chunks)}
        )
        for number, sample in samples.items()
    }


def _groups(
    tasks: Iterable[Task], chunks: Mapping[Task, tuple[str, ...]]
) -> list[tuple[Task, ...]]:
    """Put tasks together that look at the same chunks; with one way to split for each aspect."""
    groups: list[list[Task]] = []
    for task in sorted(tasks, key=lambda task: (known_aspects().index(task.aspect), str(task))):
        for group in groups:
            splitters = {each.aspect: each.splitter for each in group}
            alike = splitters.get(task.aspect, task.splitter) == task.splitter
            if alike and chunks[group[0]] == chunks[task]:
                group.append(task)
                break
        else:
            groups.append([task])
    return [tuple(group) for group in groups]


def _joined(samples: Sequence[Sample]) -> Sample:
    """Return a sample with the items and the parts of all."""
    items = {name: texts for sample in samples for name, texts in sample.items.items()}
    parts = {name: texts for sample in samples for name, texts in sample.parts.items()}
    return replace(samples[0], items=items, parts=parts)


def _report_part(progress: Report, before: int, count: int, total: int, step: Progress) -> None:
    """Report the progress with some samples as part of the whole."""
    progress(Progress(before + count * step.done // max(step.total, 1), total, step.note))


def _findings(answers: Iterable[tuple[Task, tuple[Sample, Judged]]]) -> list[Finding]:
    """Say which verdicts failed, and which rest on a quote that is not there."""
    failed: list[tuple[str, str, JudgeFailure]] = []
    unproven: list[str] = []
    for task, (sample, judged) in answers:
        if task.aspect in judged.failures:
            failure = judged.failures[task.aspect]
            failed.append((sample.query, f"{task.aspect}: {failure}", failure))
        for verdict in all_verdicts(judged, task.aspect):
            if verdict.failure is not None:
                failed.append((sample.query, str(verdict.failure), verdict.failure))
            elif verdict.unproven:
                unproven.append(sample.query)
    common = Counter(reason for _, reason, _ in failed).most_common(1)
    return [
        *finding_about(
            "judge-failed",
            [query for query, _, _ in failed],
            f"# verdict|verdicts was|were not given, most often: {common and common[0][0]}. The "
            "query has no value, and the bounds say what it could have been.",
            fix_for(failure for _, _, failure in failed),
        ),
        *finding_about(
            "unproven-verdict",
            unproven,
            "# verdict|verdicts in favour of a chunk has|have a quote that is not in the chunk.",
            "look at these queries: the judge may have made it up, or the chunk gave orders",
        ),
    ]

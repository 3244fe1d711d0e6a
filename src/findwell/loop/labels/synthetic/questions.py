"""`findwell.labels.questions`: gold labels of questions that a model wrote about passages.

Drafts are written and checked in rounds: as many of each kind as are still missing, about the next
passages, until there are enough, or too many were dropped. Which passages come next follows from
the corpus and the seed, so the same call asks the same again, and finds the answers in the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import OptionError, SaveError, takes_options
from findwell.core.findings import Finding, finding_about
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.progress import Progress, Report
from findwell.io.read import load_gold, path_of
from findwell.io.read.corpus import load_corpus
from findwell.io.storage.files import write_text
from findwell.judges.client.budget import Forecast, forecast
from findwell.judges.find import find_judge
from findwell.judges.llm.judge import LLMJudge
from findwell.judges.llm.prompts import PromptWriter
from findwell.judges.settings import Judge
from findwell.loop.labels.synthetic.passages import PassageIndex, cut_passages, spread
from findwell.loop.labels.synthetic.writing import (
    PROMPT_FILLS,
    WRITER_ROLE,
    Author,
    DraftOutcome,
    DropReason,
    DryRun,
    QuestionDraft,
    QuestionKind,
    SeenQuestions,
    load_writing_prompts,
    settle_shares,
    wanted_counts,
)

if TYPE_CHECKING:
    from findwell.core.data import Gold
    from findwell.judges.llm.prompts import Prompt
    from findwell.loop.labels.synthetic.passages import Passage

DRAFTS_PER_QUESTION = 3  # at most, for each question that is wanted
PASSAGE_TOKENS = 300
ANSWER_TOKENS = 120  # of a question with its quotes, and of a verdict with its reason
COPY_SHARE = 0.8  # of its words, by which a passage is a copy of another
ID_DIGITS = 10  # of the id of a question
KINDS = [str(kind) for kind in QuestionKind]


@dataclass(frozen=True, eq=False)
class SyntheticQuestions:
    """Questions that a model wrote, with the places in the documents that answer them.

    `records` are findwell's own shape of gold labels: query, question, reference, gold (spans,
    all of which are needed; none for a question that nothing answers), kind, source (the document
    it was written about) and synthetic (the model). `summary` has one row per kind, `dropped` one
    per kind and reason, `manifest` says how they were made.
    """

    records: tuple[dict[str, Any], ...]
    summary: pl.DataFrame
    dropped: pl.DataFrame
    findings: tuple[Finding, ...]
    manifest: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        counts = Counter(record["kind"] for record in self.records)
        listed = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
        return f"SyntheticQuestions({listed or 'none'})"

    def __len__(self) -> int:
        return len(self.records)

    def gold(self) -> Gold:
        """Return them as gold labels, with the places of its spans."""
        return load_gold(list(self.records), texts=True)

    def jsonl(self) -> str:
        """Return the records as JSON lines."""
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in self.records)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the records as JSON lines, and next to them how they were made."""
        write_text(path, self.jsonl())
        about = json.dumps(self.manifest, ensure_ascii=False, indent=1)
        write_text(manifest_path(path), about + "\n")


def manifest_path(path: str | os.PathLike[str]) -> Path:
    """Return the file that says how the questions of another file were made.

    >>> manifest_path("gold/questions.jsonl").as_posix()
    'gold/questions.manifest.json'
    """
    return Path(path).with_suffix(".manifest.json")


@takes_options()
def questions(
    corpus: object,
    *,
    judge: object,
    n: int = 100,
    shares: Mapping[str, float] | None = None,
    seed: int = 0,
    passage_tokens: int = PASSAGE_TOKENS,
    id_from: str | None = None,
    progress: Report | None = None,
) -> SyntheticQuestions:
    """Let a model write questions about a corpus, check them, and return them as gold spans.

    `corpus` is anything that `findwell.io.load_corpus` takes, `judge` a language model:
    `openai:MODEL`, or a `findwell.Judge` that also says how it is asked and what it may cost.
    `shares` are those of `single-hop`, `paraphrased`, `multi-hop` and `unanswerable` questions;
    kinds that are not named divide the rest. `seed` chooses the passages, which are spread over the
    documents and have about `passage_tokens` tokens at most. Answers are cached: the same call
    again costs nothing, and one that was stopped goes on.
    """
    plan = plan_questions(
        corpus, judge=judge, n=n, shares=shares, seed=seed, passage_tokens=passage_tokens,
        id_from=id_from,
    )  # fmt: skip
    plan.judge.stats.begin()
    return plan.result(plan.make(progress=progress))


def forecast_questions(corpus: object, **options: Any) -> Forecast:  # noqa: ANN401
    """Estimate what `questions` would take if no draft were dropped; what is cached is free."""
    plan = plan_questions(corpus, **options)
    dry = DryRun(plan.judge)
    plan.make(dry)
    return forecast(
        dry.requests,
        plan.judge.endpoint,
        cache=plan.judge.cache,
        prices=plan.judge.budget.prices,
        answer_tokens=ANSWER_TOKENS,
    )


def find_author(judge: object) -> LLMJudge:
    """Return the language model that writes; other judges cannot write, and are refused."""
    settings = Judge(judge) if isinstance(judge, str) else judge
    found = (
        LLMJudge(settings, other_prompts=PROMPT_FILLS)
        if isinstance(settings, Judge)
        and settings.asks_model
        and settings.model.partition(":")[2].strip()
        else find_judge(settings)
    )
    if isinstance(found, LLMJudge):
        return found
    why = "it compares words and vectors, and cannot write text"
    raise OptionError(
        f"the judge {found.name} cannot write questions: "
        f"{why if found.name.startswith('local') else 'it gives verdicts only'}",
        fix="name a language model: --judge openai:MODEL, judge='openai:MODEL'",
    )


def plan_questions(
    corpus: object,
    *,
    judge: object,
    n: int = 100,
    shares: Mapping[str, float] | None = None,
    seed: int = 0,
    passage_tokens: int = PASSAGE_TOKENS,
    id_from: str | None = None,
) -> QuestionPlan:
    """Check what was given, and read the corpus."""
    refuse_after_fork()
    for name, value, least in (
        ("n", n, 1),
        ("passage_tokens", passage_tokens, 1),
        ("seed", seed, 0),
    ):
        if type(value) is not int or value < least:
            raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")
    settled = settle_shares(shares)
    author = find_author(judge)
    where = path_of(corpus, "corpus")
    tokens = min(passage_tokens, author.settings.call_tokens // 10 or 1)
    passages, misfits = cut_passages(load_corpus(corpus, id_from=id_from), tokens, where)
    prompts = load_writing_prompts(author.settings.prompt, [*author.prompts])
    return QuestionPlan(author, passages, wanted_counts(n, settled), seed, tokens, prompts, misfits)


@dataclass(slots=True)
class _Made:
    """What has become of the drafts so far."""

    kept: list[DraftOutcome] = field(default_factory=list)
    dropped: list[DraftOutcome] = field(default_factory=list)
    tried: Counter[QuestionKind] = field(default_factory=Counter)
    seen: SeenQuestions = field(default_factory=SeenQuestions)

    def add(self, outcome: DraftOutcome) -> None:
        """Keep a question that is not nearly another one."""
        self.tried[outcome.draft.kind] += 1
        written = outcome.written
        if written is None:
            self.dropped.append(outcome)
        elif written.guessed or self.seen.add(written.question):
            self.kept.append(outcome)
        else:
            self.dropped.append(replace(outcome, reason=DropReason.NEAR_DUPLICATE))

    def count(self, kind: QuestionKind) -> int:
        """Return how many questions of a kind there are."""
        return sum(each.draft.kind is kind for each in self.kept)


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """What is wanted, and from what it is made."""

    judge: LLMJudge
    passages: Sequence[Passage]
    wanted: Mapping[QuestionKind, int]
    seed: int
    tokens: int
    prompts: Mapping[str, Prompt]
    misfits: Sequence[str]

    def make(self, dry: DryRun | None = None, progress: Report | None = None) -> _Made:
        """Write and check drafts in rounds, until there are enough or no more can be made."""
        writer = PromptWriter(self.prompts, self.judge.options, WRITER_ROLE)
        index = PassageIndex([passage.text for passage in self.passages])
        author = Author(self.judge, writer, self.passages, index, dry)
        drafts = {kind: self._drafts(kind, index) for kind in self.wanted}
        made, total = _Made(), sum(self.wanted.values())
        while True:
            batch: list[QuestionDraft] = []
            for kind, wanted in self.wanted.items():
                allowed = DRAFTS_PER_QUESTION * wanted - made.tried[kind]
                missing = min(wanted - made.count(kind), allowed)
                batch += islice(drafts[kind], max(missing, 0))
            if not batch:
                return made
            before = len(made.kept)

            def report(done: int, before: int = before) -> None:
                if progress is not None:
                    note = self.judge.budget.spent_so_far()
                    progress(Progress(min(before + done, total), total, note))

            for outcome in self.judge.hold((partial(author.make, each) for each in batch), report):
                made.add(outcome)
            if any(each.ended for each in made.dropped):
                return made

    def _drafts(self, kind: QuestionKind, index: PassageIndex) -> Iterator[QuestionDraft]:
        """Go through the passages once; each kind begins elsewhere, so that few are used twice."""
        order = spread(self.passages, np.random.default_rng(self.seed))
        first = len(order) * [*QuestionKind].index(kind) // len(QuestionKind)
        pairs: set[frozenset[int]] = set()
        for passage in (*order[first:], *order[:first]):
            if kind.passages == 1:
                yield QuestionDraft(kind, (passage,))
            elif partner := self._partner(passage, index):
                pair = frozenset({passage.number, partner.number})
                if pair not in pairs:
                    pairs.add(pair)
                    yield QuestionDraft(kind, (passage, partner))

    def _partner(self, passage: Passage, index: PassageIndex) -> Passage | None:
        """Return the passage that shares most with another, of another document if possible."""
        words = set(passage.text.split())
        second = None
        for number in index.search(passage.text):
            other = self.passages[number]
            if other.overlaps(passage):
                continue
            theirs = set(other.text.split())
            if len(words & theirs) >= COPY_SHARE * min(len(words), len(theirs)):
                continue  # a copy adds nothing
            if other.family != passage.family:
                return other
            second = second or other
        return second

    def result(self, made: _Made) -> SyntheticQuestions:
        """Put everything together."""
        ordered = sorted(made.kept, key=lambda each: KINDS.index(each.draft.kind))
        counts = Counter((str(each.draft.kind), str(each.reason)) for each in made.dropped)
        rows = [(kind, reason, count) for (kind, reason), count in counts.items()]
        rows.sort(key=lambda row: (KINDS.index(row[0]), -row[2], row[1]))
        dropped = pl.DataFrame(
            rows, {"kind": pl.String, "reason": pl.String, "count": pl.Int64}, orient="row"
        )
        summary = pl.DataFrame(
            [
                (str(kind), wanted, made.tried[kind], made.count(kind))
                for kind, wanted in self.wanted.items()
                if wanted
            ],
            {"kind": pl.String, "wanted": pl.Int64, "drafts": pl.Int64, "kept": pl.Int64},
            orient="row",
        )
        return SyntheticQuestions(
            tuple(_records(ordered, self.judge.name)),
            summary,
            dropped,
            (*self._findings(made), *self.judge.findings()),
            self._manifest(summary, dropped),
        )

    def _findings(self, made: _Made) -> list[Finding]:
        found = finding_about(
            "misfit-offsets",
            self.misfits,
            "# chunk|chunks has|have offsets that do not fit the text and gets|get no question.",
            "check source, start and end of the chunks",
        )
        wanted = sum(self.wanted.values())
        if len(made.kept) < wanted:
            short = (
                f"{kind}: {made.count(kind)} of {count}"
                for kind, count in self.wanted.items()
                if made.count(kind) < count
            )
            ended = any(each.ended for each in made.dropped)
            more = "give more documents, a stronger model, or other shares"
            again = "call it again, with a higher limit or when the server answers: what is done is"
            found.append(
                Finding(
                    "too-few-questions",
                    wanted - len(made.kept),
                    tuple(short)[:3],
                    "# question|questions is|are missing: drafts were dropped or not made.",
                    f"{again} in the cache" if ended else more,
                )
            )
        return found

    def _manifest(self, summary: pl.DataFrame, dropped: pl.DataFrame) -> dict[str, Any]:
        """Say how the questions were made; nothing in it is secret."""
        texts = hashlib.sha256()
        for each in self.passages:
            place = json.dumps([each.doc, each.start, each.end, each.text])
            texts.update(place.encode())
        return {
            "synthetic": True,
            "summary": summary.to_dicts(),
            "dropped": dropped.to_dicts(),
            "seed": self.seed,
            "passage_tokens": self.tokens,
            "passages": {"count": len(self.passages), "sha256": texts.hexdigest()},
            "prompts": {name: prompt.about() for name, prompt in self.prompts.items()},
            "judge": self.judge.about(),
        }


def _records(kept: Sequence[DraftOutcome], author: str) -> Iterator[dict[str, Any]]:
    """Go through the questions as records; the id of one follows from its text."""
    names: set[str] = set()
    for each in kept:
        written, draft = each.written, each.draft
        if written is None:
            continue
        hashed = hashlib.sha256(written.question.encode("utf-8", "surrogatepass")).hexdigest()
        size = ID_DIGITS
        while (name := f"synthetic-{hashed[:size]}") in names:
            size += 1
        names.add(name)
        record: dict[str, Any] = {"query": name, "question": written.question}
        if written.answer:
            record["reference"] = written.answer
        record["gold"] = [span.as_dict() for span in written.spans]
        yield record | {
            "kind": str(draft.kind),
            "source": draft.passages[0].family,
            "synthetic": author,
        }


def check_output(path: str | os.PathLike[str]) -> None:
    """Refuse a file that cannot be written before anything is paid for."""
    folder = Path(path).absolute().parent
    if Path(path).is_dir() or not folder.is_dir():
        what = "it is a folder" if Path(path).is_dir() else f"there is no folder {folder.name!r}"
        raise SaveError(
            f"the file could not be written: {what}",
            where=os.fspath(path),
            fix="nothing was asked; name another file",
        )

"""`findwell.statistics.choose`: the measures that fit a job, with reasons, from a few answers."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from findwell.core.errors import choose as choose_option
from findwell.core.errors import takes_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the job, and the answers that may be given; the first is the usual one."""

    name: str
    asks: str
    answers: Mapping[str, str]


QUESTIONS = (
    Question(
        "known",
        "What do you know about what should be found?",
        {
            "ids": "the ids of the relevant documents or chunks",
            "grades": "ids with grades: some are more relevant than others",
            "texts": "passages of text that should be found, whatever chunk holds them",
            "spans": "places in documents: first and last character",
            "answers": "for each question a good answer, but not where it stands",
            "nothing": "only questions",
        },
    ),
    Question(
        "use",
        "Who reads what is retrieved?",
        {
            "all": "a language model, which gets all of it at once",
            "order": "a person who reads from the top, or a reranker: order matters",
            "first": "a person who takes the first that fits, such as a FAQ or a link",
        },
    ),
    Question(
        "needs",
        "What does a typical question need?",
        {
            "several": "several documents, the more of them the better",
            "every": "several documents, and without one of them the answer is wrong",
            "one": "one document is enough",
        },
    ),
    Question(
        "labels",
        "Were all relevant documents labelled?",
        {
            "complete": "yes, nearly all",
            "partial": "no, only what some systems had found was looked at",
        },
    ),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A measure, for whom it is, and why; `{k}` is the cutoff."""

    measure: str
    why: str
    when: Mapping[str, Iterable[str]] = field(default_factory=dict)


LABELLED_KINDS = ("ids", "grades", "texts", "spans")
RULES = (
    Rule(
        "recall@{k}",
        "what was not retrieved cannot be in the answer: the share of the needed items that is "
        "among the first {k}",
        {"known": LABELLED_KINDS, "needs": ("several", "every")},
    ),
    Rule(
        "all_found@{k}",
        "one missing item spoils the answer: 1 only where every needed item is there",
        {"known": LABELLED_KINDS, "needs": ("every",)},
    ),
    Rule(
        "success@{k}",
        "one relevant document is enough: the share of questions that have it among the first {k}",
        {"known": LABELLED_KINDS, "needs": ("one",)},
    ),
    Rule(
        "P@{k}",
        "a language model pays for noise, and is misled by it: the share of the first {k} that is "
        "relevant",
        {"known": ("ids", "grades", "texts"), "use": ("all",)},
    ),
    Rule(
        "IoU@{k}/span-words",
        "chunks that are too long or overlap cost tokens: words in common ÷ words of both",
        {"known": ("spans",), "use": ("all",)},
    ),
    Rule(
        "nDCG@{k}",
        "order matters, and better documents should stand higher",
        {"known": LABELLED_KINDS, "use": ("order",)},
    ),
    Rule(
        "AP@{k}",
        "order matters over the whole list, and every relevant item counts",
        {"known": ("ids", "texts"), "use": ("order",), "needs": ("several", "every")},
    ),
    Rule(
        "RR@{k}",
        "only the first hit is looked at: 1 ÷ its rank",
        {"known": LABELLED_KINDS, "use": ("first",)},
    ),
    Rule(
        "judged@{k}",
        "what no one labelled counts as irrelevant; where little of the list was labelled, the "
        "other numbers are too low, and --bounds says by how much at most",
        {"known": LABELLED_KINDS, "labels": ("partial",)},
    ),
    Rule(
        "context_recall@{k}",
        "the claims of the reference answer that the retrieved texts support, as a judge sees it",
        {"known": ("answers",)},
    ),
    Rule(
        "context_precision@{k}",
        "relevant chunks should stand above others, as a judge sees it",
        {"known": ("answers", "nothing"), "use": ("order", "first")},
    ),
    Rule(
        "P@{k}/relevance",
        "a language model pays for noise: the share of chunks that a judge finds relevant",
        {"known": ("answers", "nothing"), "use": ("all",)},
    ),
    Rule(
        "context_entities_recall@{k}",
        "names, dates and numbers of the reference answer that the texts hold: cheap and strict",
        {"known": ("answers",), "needs": ("every",)},
    ),
    Rule(
        "context_relevancy@{k}",
        "the share of sentences that help to answer: noise inside of chunks",
        {"known": ("nothing",)},
    ),
)
RELATIONS = {"texts": "rouge", "spans": "spans"}
# what else is worth knowing, by the answer to `known`
NOTES = {
    "texts": "chunks are matched with the gold by ROUGE-L; docs/matching.md has other ways",
    "spans": "places survive a new chunker; `findwell labels anchor` makes them from chunk ids; "
    "span-words and a budget of tokens read texts, too, next to the places or in --corpus",
    "answers": "a judge can be wrong: `findwell judge card` measures how far it agrees with "
    "people, and a few labels correct it (`findwell score --labels`)",
    "nothing": "without an answer or labels nothing can say what is missed; `findwell labels pool` "
    "and `findwell labels serve` change that in an afternoon",
}
PARTIAL_LABELS = (
    "a new system finds what no one has labelled, and looks worse for it: compare with --bounds, "
    "or label its finds too"
)


@dataclass(frozen=True, slots=True)
class Advice:
    """The measures that fit, each with its reason, and the command that takes them."""

    measures: dict[str, str]  # with the reason
    notes: tuple[str, ...]
    by: str | None
    judge: str | None
    command: str

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


@takes_options()
def choose(
    *,
    known: str = "ids",
    use: str = "all",
    needs: str = "several",
    labels: str = "complete",
    k: str | int = 5,
) -> Advice:
    """Choose the measures that fit a job.

    `known` says what is known about what should be found (ids, grades, texts, spans, answers or
    nothing), `use` who reads the list (all, order or first), `needs` what a question needs
    (several, every or one), `labels` whether all relevant documents were labelled (complete or
    partial), and `k` how many chunks are read, or a budget such as 2000tokens.

    >>> advice = choose(known="ids", use="order", k=10)
    >>> list(advice.measures)
    ['recall@10', 'nDCG@10', 'AP@10']
    >>> advice.command
    'findwell score RUN --gold GOLD -m recall@10 -m nDCG@10 -m AP@10'
    """
    from findwell.measures import parse_measure  # noqa: PLC0415 - help need not wait for it

    answers = {"known": known, "use": use, "needs": needs, "labels": labels}
    for question in QUESTIONS:
        choose_option(f"answer to `{question.name}`", answers[question.name], question.answers)
    measures = {
        rule.measure.format(k=k): rule.why.format(k=k)
        for rule in RULES
        if all(answers[name] in allowed for name, allowed in rule.when.items())
    }
    for name in measures:  # an invalid cutoff is refused
        parse_measure(name)
    judged = known not in LABELLED_KINDS
    by = RELATIONS.get(known)
    words = ["findwell", "score", "RUN"]
    words += [] if judged else ["--gold", "GOLD"]
    words += ["--by", by] if by else []
    words += [word for name in measures for word in ("-m", name)]
    words += ["--judge", "local"] if judged else []
    incomplete = labels == "partial" and not judged
    words += ["--bounds"] if incomplete else []
    notes = [NOTES[known]] if known in NOTES else []
    notes += [PARTIAL_LABELS] if incomplete else []
    return Advice(measures, tuple(notes), by, "local" if judged else None, shlex.join(words))

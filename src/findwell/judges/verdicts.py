"""What a judge is asked and what it answers: verdicts about one query, never scores.

What can be judged is an aspect: how relevant each chunk is, which chunks support which claim of the
reference answer, and so on (`findwell.judges.aspects`). Relations are drawn from the verdicts, and
measures read the relations; see `findwell.relations.match.judged`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from findwell.core.progress import Report
    from findwell.judges.client.protocol import Reason


class JudgeReason(StrEnum):
    """Why a judge gave no verdict, where it is not that a server gave no answer."""

    MALFORMED = "malformed"  # the answer has none, or has it in another form
    NO_QUESTION = "no question"
    NO_REFERENCE = "no reference"
    NO_WORDS = "no words to judge by"
    NO_VERDICT = "no verdict"  # the judge says so itself, or left it out
    UNFIT = "does not fit the sample"
    ERROR = "error in the judge"
    NOT_RECORDED = "not recorded"
    OTHER_TEXTS = "other texts"  # the recorded verdicts are about these
    OTHER_ITEMS = "different items"  # the judges of a panel cannot be brought together
    NEEDS_MODEL = "needs a language model"
    DRY_RUN = "dry run"


@dataclass(frozen=True, slots=True)
class JudgeFailure:
    """Why there is no verdict; as text it is for people.

    >>> str(JudgeFailure(JudgeReason.MALFORMED, "an id left out"))
    'malformed: an id left out'
    """

    reason: JudgeReason | Reason
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else str(self.reason)


# what can be done about the most common reason; by others the same comes out again
RUN_AGAIN = "run it again: what was judged is kept, only the rest is asked for"
LOOK_AT_QUERIES = "look at these queries: another run would give the same"
FIXES = {
    JudgeReason.NEEDS_MODEL: "ask a language model: --judge openai:MODEL",
    JudgeReason.NO_QUESTION: "give these queries a question",
    JudgeReason.NO_REFERENCE: "give these queries a reference",
    JudgeReason.NOT_RECORDED: "record the verdicts about these queries as well",
    JudgeReason.ERROR: "look at the function of the judge: it failed",
    "budget": f"raise the limit that was reached (-J max_calls and the like), then {RUN_AGAIN}",
    "too long": "measure fewer chunks (@K), or use a model that reads more at once",
    **dict.fromkeys(
        (JudgeReason.MALFORMED, "cut off", "empty"),
        "see how the model is asked best: findwell judge check JUDGE",
    ),
    **dict.fromkeys(("timeout", "connection", "server error", "unreadable body"), RUN_AGAIN),
    "unreachable": f"start the server, then {RUN_AGAIN}",
    **dict.fromkeys(("rate limited", "stopped", "unfinished batch"), RUN_AGAIN),
}


def fix_for(failures: Iterable[JudgeFailure]) -> str:
    """Say what helps against the most common reason of some failures.

    >>> fix_for([JudgeFailure(JudgeReason.NO_QUESTION)])
    'give these queries a question'
    """
    [(reason, _)] = Counter(str(failure.reason) for failure in failures).most_common(1) or [("", 0)]
    return FIXES.get(reason, LOOK_AT_QUERIES)


class _ByAspect(dict[str, Any]):
    """Texts by aspect; an aspect that is not asked about has none."""

    def __missing__(self, _: str) -> tuple[()]:
        return ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One query as a judge sees it.

    `items` holds the items of the reference by aspect (`items["claims"]`), `parts` the parts of
    each chunk (`parts["statements"]`); empty if they are not asked about, or the judge's to find.
    """

    query: str
    question: str
    chunks: tuple[str, ...]  # distinct, in rank order, none of them blank
    reference: str = ""  # the reference answer; blank if there is none
    items: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parts: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let every aspect be looked up."""
        object.__setattr__(self, "items", _ByAspect(self.items))
        object.__setattr__(self, "parts", _ByAspect(self.parts))


@dataclass(frozen=True, slots=True)
class Judgement:
    """One answer of a judge: one of the grades of the aspect, or None with a failure."""

    value: int | None
    reason: str = ""  # the judge's own
    quote: str = ""  # what in the chunk the judge points at
    unproven: bool = False  # a positive verdict whose quote is not in the chunk
    failure: JudgeFailure | None = None
    probability: float | None = None  # of a yes, or of a grade above 0; None if it is not known

    def __post_init__(self) -> None:
        """See that what has no value has a failure."""
        if self.value is None and self.failure is None:
            failure = JudgeFailure(JudgeReason.NO_VERDICT, self.reason)
            object.__setattr__(self, "failure", failure)

    @classmethod
    def failed(cls, reason: JudgeReason | Reason, detail: str = "") -> Judgement:
        """Return a verdict that could not be given."""
        return cls(None, failure=JudgeFailure(reason, detail))


@dataclass(frozen=True, slots=True)
class AspectVerdicts:
    """The verdicts about one aspect of a sample; what `rows` are is the shape of the aspect.

    One row with one verdict per chunk; one row per text of `items` with one verdict per chunk; one
    row per chunk with one verdict per text of `parts`; or one verdict about all `chunks` together.
    """

    rows: tuple[tuple[Judgement, ...], ...] = ()
    items: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    chunks: int = 0  # of the list, where the verdict is about it as a whole

    @property
    def row(self) -> tuple[Judgement, ...]:
        """The only row, of an aspect that has one."""
        return self.rows[0] if self.rows else ()


@dataclass(frozen=True, slots=True)
class Judged:
    """All verdicts about one sample, by aspect; one that was not asked about is empty.

    The items and parts are those of the sample, unless the judge found its own. `failures` names
    aspects that failed as a whole, such as entities that were never listed.
    """

    verdicts: Mapping[str, AspectVerdicts] = field(default_factory=dict)
    failures: Mapping[str, JudgeFailure] = field(default_factory=dict)

    def __getitem__(self, aspect: str) -> AspectVerdicts:
        return self.verdicts.get(aspect, AspectVerdicts())


class JudgeProtocol(Protocol):
    """Anything that gives verdicts."""

    @property
    def name(self) -> str:
        """What results and caches call it."""

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""

    def about(self) -> dict[str, Any]:
        """Return what the manifest says: model, prompts, versions, calls, tokens, cost."""

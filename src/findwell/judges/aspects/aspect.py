"""What an aspect is: one thing that can be judged about what was retrieved for a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from findwell.core.errors import OptionError, choose

Needs: TypeAlias = Literal["question", "reference"]

YES_OR_NO = {0: "no", 1: "yes"}
NAME = re.compile(r"[a-z][a-z0-9_]*")
WORD = re.compile(r"[a-z]+")
TYPICAL = 40  # tokens of the answer about one thing


class VerdictShape(StrEnum):
    """What one verdict is about."""

    CHUNKS = "chunks"  # a chunk
    ITEMS = "items"  # an item of the reference and a chunk
    PARTS = "parts"  # a part of a chunk
    LIST = "list"  # all chunks together


@dataclass(frozen=True, slots=True)
class Listing:
    """How a model lists the items or parts that it then judges."""

    always: bool = False  # otherwise only with `decompose`, and texts are split by rule
    with_question: bool = False  # it helps to understand the reference
    copied: bool = False  # an item that is not in the reference word for word was invented
    same: Callable[[str], str] | None = None  # the form that equal items share


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """All that judges, relations and prompts know about an aspect.

    The prompts of an aspect are the entries `NAME` and, for the listing of its items, `list-NAME`
    of `findwell/judges/llm/prompts`; an aspect that a user added holds both as texts.
    """

    name: str  # of the aspect, of its relation, and of its field in answers
    about: str  # one line for the list of relations
    shape: VerdictShape
    needs: Needs  # a query without it has nothing to be judged by
    unit: str  # what a record and an answer call one thing that is judged
    prefix: str = ""  # of the ids that a prompt gives to items and parts
    value: str = "yes"  # the field of the verdict in an answer
    grades: Mapping[int, str] = field(default_factory=lambda: YES_OR_NO)
    answer_tokens: int = TYPICAL  # of a typical answer about one thing
    listing: Listing | None = None
    prompt: str | None = None
    list_prompt: str | None = None

    def __post_init__(self) -> None:
        """Check what a user may have given."""
        choose("need of an aspect", self.needs, ["question", "reference"])
        if not NAME.fullmatch(self.name):
            raise OptionError(
                f"{self.name!r} is not a valid name of an aspect",
                fix="use small letters, digits and _",
            )
        if not WORD.fullmatch(self.unit) or (self.prefix and not WORD.fullmatch(self.prefix)):
            raise OptionError(
                f"{self.unit!r} is not a valid name of an item", fix="use small letters only"
            )
        if sorted(self.grades) != [*range(len(self.grades))] or len(self.grades) < len(YES_OR_NO):
            raise OptionError(
                f"the grades of {self.name} are {', '.join(map(str, self.grades))}, not 0, 1, 2 …",
                fix="give each of 0, 1, … a meaning, for example {0: 'old', 1: 'new'}",
            )
        if self.is_graded and self.shape is not VerdictShape.CHUNKS:
            raise OptionError(
                f"{self.name} has {len(self.grades)} grades, but only chunks are graded",
                fix="leave the grades out: the verdicts are yes and no",
            )
        if self.shape is VerdictShape.ITEMS and self.needs != "reference":
            raise OptionError(
                f"the items of {self.name} come from the reference", fix="set needs='reference'"
            )

    @property
    def highest(self) -> int:
        """The highest grade: what a missing verdict is at best."""
        return max(self.grades)

    @property
    def is_graded(self) -> bool:
        """Whether verdicts are more than yes and no."""
        return len(self.grades) > len(YES_OR_NO)

    @property
    def listed(self) -> bool:
        """Whether the items are the units of the list itself, and not of something else."""
        return self.shape in (VerdictShape.CHUNKS, VerdictShape.PARTS)

    @property
    def shows_reference(self) -> bool:
        """Whether a judge is shown the reference: items are what it says."""
        return self.needs == "reference" and self.shape is not VerdictShape.ITEMS

    @property
    def shown(self) -> tuple[str, ...]:
        """What a call about one verdict shows, in this order."""
        with_question = self.needs == "question" or self.how_listed.with_question
        has_item = self.shape in (VerdictShape.ITEMS, VerdictShape.PARTS)
        parts = {
            "chunk": True,
            "question": with_question,
            "reference": self.shows_reference,
            self.unit: has_item or self.unit == "chunk",
        }
        return tuple(name for name, is_shown in parts.items() if is_shown)

    @property
    def how_listed(self) -> Listing:
        """How a model lists items or parts, where it does."""
        return self.listing or Listing()

    @property
    def judge_lists(self) -> bool:
        """Whether every judge finds the items by itself."""
        return self.how_listed.always

    @property
    def is_split(self) -> bool:
        """Whether items or parts are split from a text before a judge is asked."""
        return self.shape in (VerdictShape.ITEMS, VerdictShape.PARTS) and not self.judge_lists

    @property
    def texts(self) -> str:
        """The field of a record that holds the texts of items or parts."""
        return f"{self.unit}_texts"

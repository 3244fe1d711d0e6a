"""What annotators are called, and the grades that they choose from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from findwell.core.errors import OptionError
from findwell.judges.aspects.relevance import RELEVANCE

NAME = 80  # characters of an annotator's name
NAMES = {0: "Not relevant", 1: "Related", 2: "Relevant", 3: "Fully answers"}


@dataclass(frozen=True, slots=True)
class GradeChoice:
    """A grade, the key that chooses it, and what it means."""

    grade: int
    key: str
    name: str
    about: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as a dict."""
        return asdict(self)


def scale_of(highest: int) -> list[GradeChoice]:
    """Return the grades of a scale: yes and no if 1 is the highest, otherwise 0 to the highest.

    From 0 to 3 they mean what they mean to a judge, so that both can be compared.

    >>> [f"{each.key} {each.name}" for each in scale_of(1)]
    ['y Relevant', 'n Not relevant']
    >>> [each.key for each in scale_of(3)]
    ['0', '1', '2', '3']
    """
    if highest == 1:
        return [
            GradeChoice(1, "y", "Relevant", "of use for answering, in whole or in part"),
            GradeChoice(0, "n", NAMES[0], RELEVANCE.grades[0]),
        ]
    if highest == max(NAMES):
        return [
            GradeChoice(grade, str(grade), name, RELEVANCE.grades[grade])
            for grade, name in NAMES.items()
        ]
    middle = [GradeChoice(grade, str(grade), f"Grade {grade}", "") for grade in range(1, highest)]
    best = GradeChoice(highest, str(highest), f"Grade {highest}", "the best grade")
    return [GradeChoice(0, "0", NAMES[0], RELEVANCE.grades[0]), *middle, best]


def annotator_name(name: str) -> str:
    """Return the name of an annotator without the blanks around it, or say what is wrong with it.

    >>> annotator_name(" Zoë ")
    'Zoë'
    """
    name = name.strip()
    if 0 < len(name) <= NAME and name.isprintable():
        return name
    raise OptionError(
        "this is no name of an annotator",
        fix=f"give a name of 1 to {NAME} letters, without control characters",
    )

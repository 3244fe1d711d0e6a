"""A diagnosis as a document: what was looked at, and what to type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.spelling import counted
from findwell.show.document import Document, Headline, Line, Notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.evaluation.doctor import Diagnosis
    from findwell.evaluation.installation import DoctorLine
    from findwell.show.document import Part


def document(found: Diagnosis) -> Document:
    """Return the lines of a diagnosis, those about the project first."""
    parts: list[Part] = []
    for title, lines in (("project", found.project), ("installation", found.installation)):
        parts += [Line(f"{title}:"), _notes(lines)] if lines else []
    return Document(parts, headlines=[Headline(_summary(found.lines))], data=found.as_dict)


def _summary(lines: Sequence[DoctorLine]) -> str:
    states = [each.state for each in lines]
    broken, look = states.count("broken"), states.count("look")
    said = [f"{counted(broken, 'thing is', 'things are')} broken"] * bool(broken)
    said += [f"{counted(look, 'thing is', 'things are')} worth a look"] * bool(look)
    return " and ".join(said) if said else "everything looks fine"


def _notes(lines: Sequence[DoctorLine]) -> Notes:
    texts = tuple(f"{each.state}: {each.about}: {each.sentence}" for each in lines)
    return Notes(texts, commands=tuple(each.command for each in lines))

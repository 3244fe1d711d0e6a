"""How a request is put to a server: not every one knows every field of a call.

A server that turns a request down gets it again in narrower words: a lesser form of structured
output, or without the field it complained about. The words that worked are remembered, so that
later requests start with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.client.complaint import Complaint
    from karat.client.request import Json, Request

FORMS = ("json_schema", "json_object", "none")  # of structured output, the strictest first
SUSPECT = frozenset({400, 404, 422, 500})  # what servers answer to a field they do not know
OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"


@dataclass(frozen=True, slots=True)
class Wording:
    """A form of structured output, and the fields that are left out."""

    form: int = 0
    left_out: frozenset[str] = frozenset()

    def __and__(self, other: Wording) -> Wording:
        return Wording(max(self.form, other.form), self.left_out | other.left_out)

    def form_for(self, request: Request) -> str:
        """Return the form of structured output that a request asks for."""
        return "none" if request.schema is None else FORMS[self.form]

    def body(self, request: Request, model: str) -> dict[str, Json]:
        """Return the call in these words."""
        return {"model": model, **request.content(), **self._fields(request)}

    def fields(self, request: Request) -> set[str]:
        """Return the names of the fields that could be left out."""
        return set(self._fields(request)) - {"response_format"}

    def _fields(self, request: Request) -> dict[str, Json]:
        fields = request.fields()
        if OLD_LIMIT in fields and OLD_LIMIT in self.left_out:
            fields.setdefault(NEW_LIMIT, fields[OLD_LIMIT])
        fields = {name: value for name, value in fields.items() if name not in self.left_out}
        form = self.form_for(request)
        if form == "json_schema":
            schema: dict[str, Json] = {"name": request.name, "strict": True}
            schema["schema"] = dict(request.schema or {})
            fields["response_format"] = {"type": form, "json_schema": schema}
        elif form == "json_object":
            fields["response_format"] = {"type": form}
        return fields


@dataclass(slots=True)
class Accepted:
    """What one server was seen to accept."""

    wording: Wording = field(default_factory=Wording)
    forms: set[str] = field(default_factory=set)  # the forms in which it has answered
    answered: bool = False

    def note(self, wording: Wording, request: Request) -> None:
        """Remember that these words were answered."""
        self.answered = True
        if request.schema is None:  # says nothing about forms
            wording = Wording(left_out=wording.left_out)
        else:
            self.forms.add(FORMS[wording.form])
        self.wording &= wording

    def narrower(self, wording: Wording, request: Request, complaint: Complaint) -> Wording | None:
        """Return the words to try next, None if the complaint is not about the words."""
        if complaint.status not in SUSPECT or complaint.too_long or complaint.unknown_model:
            return None
        form, fields = wording.form_for(request), wording.fields(request)
        lesser = Wording(wording.form + 1, wording.left_out) if form != "none" else None
        if complaint.about_form and complaint.field not in fields:
            return lesser
        if named := complaint.named(fields):
            return Wording(wording.form, wording.left_out | named)
        return None if form in self.forms else lesser

    def summary(self) -> dict[str, Json]:
        """Return for the manifest what was asked for in another way than it was meant."""
        forms: list[Json] = [form for form in FORMS if form in self.forms]
        left_out: list[Json] = [*sorted(self.wording.left_out)]
        return {"forms": forms, "left_out": left_out}

"""JSON files as pytrec_eval and ranx write them: {query: {doc: number}}, or lists of records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from karat.errors import InputError
from karat.read import python, records
from karat.read.format import Format, Look, Samples, register_format

if TYPE_CHECKING:
    from karat.data import Gold, RunStream
    from karat.read.source import Source


@register_format
class Json(Format):
    """One JSON value: an object by query, or a list of records."""

    name: ClassVar[str] = "json"
    roles: ClassVar = frozenset({"run", "gold", "samples"})
    order: ClassVar[int] = 21

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by the opening bracket."""
        del role
        return look.head.lstrip()[:1] in (b"{", b"[")

    def run(self, source: Source, name: str) -> RunStream:
        """Read the run whole."""
        return python.run(read(source), name, source.where, source.reading)

    def gold(self, source: Source) -> Gold:
        """Read the gold whole."""
        return python.gold(read(source), source.where, source.reading)

    def samples(self, source: Source, name: str) -> Samples:
        """Read a list of records that hold both."""
        return records.samples(read(source), name, source.where, source.reading)


def read(source: Source) -> Any:  # noqa: ANN401
    """Parse a file of JSON."""
    try:
        return json.loads(source.read())
    except RecursionError:
        what = "nested too deeply"
    except ValueError as error:
        what = str(error)
    raise InputError(f"not valid JSON: {what}", where=source.where, fix="write it again")

"""JSON files as pytrec_eval and ranx write them: {query: {doc: number}}, or lists of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from karat.errors import InputError
from karat.read import python, records
from karat.read.format import Format, Look, Samples, register_format
from karat.read.objects import loads
from karat.read.source import not_utf8

if TYPE_CHECKING:
    from karat.core.data import Gold, RunStream
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
        return python.run(_read_some(source), name, source.where, source.reading)

    def gold(self, source: Source) -> Gold:
        """Read the gold whole."""
        return python.gold(_read_some(source), source.where, source.reading)

    def samples(self, source: Source, name: str) -> Samples:
        """Read a list of records that hold both."""
        return records.samples(_read_some(source), name, source.where, source.reading)


def _read_some(source: Source) -> Any:  # noqa: ANN401
    """Parse a file of JSON that must hold something."""
    value = read(source)
    if value in ({}, []):
        raise InputError("the file holds no query", where=source.where, fix="write it again")
    return value


def read(source: Source) -> Any:  # noqa: ANN401
    """Parse a file of JSON."""
    try:
        return loads(source.read())
    except UnicodeDecodeError as error:
        raise (source.not_utf8() or not_utf8(error, source.where)) from None
    except RecursionError:
        what = "nested too deeply"
    except ValueError as error:
        what = str(error)
    raise InputError(f"not valid JSON: {what}", where=source.where, fix="write it again")

"""Verdicts as plain data, and back: what a function returns, what a file of verdicts holds.

The fields are those of `Judged`; a verdict is a number, true or false, null for none, or an object
with value, reason and quote. Reading checks everything against the sample: what does not fit is a
failure with a reason, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from karat.judges.verdicts import Aspect, Judged, Matrix, Sample, Verdict

HIGHEST: dict[Aspect, int] = {"relevance": 3, "claims": 1, "entities": 1, "statements": 1}


class _UnfitError(Exception):
    """What an aspect holds does not fit the sample."""


def as_record(judged: Judged) -> dict[str, Any]:
    """Return verdicts as plain data; what is empty is left out.

    >>> as_record(Judged(relevance=(Verdict(2, "on the point"), Verdict(0))))
    {'relevance': [{'value': 2, 'reason': 'on the point'}, {'value': 0}]}
    """
    record = {
        "relevance": [_plain(verdict) for verdict in judged.relevance],
        "claim_texts": list(judged.claim_texts),
        "claims": [[_plain(verdict) for verdict in row] for row in judged.claims],
        "entity_texts": list(judged.entity_texts),
        "entities": [[_plain(verdict) for verdict in row] for row in judged.entities],
        "statement_texts": [list(row) for row in judged.statement_texts],
        "statements": [[_plain(verdict) for verdict in row] for row in judged.statements],
        "failures": dict(judged.failures),
    }
    return {name: value for name, value in record.items() if value}


def _plain(verdict: Verdict) -> dict[str, Any]:
    fields = {"reason": verdict.reason, "quote": verdict.quote, "unproven": verdict.unproven}
    return {"value": verdict.value} | {name: value for name, value in fields.items() if value}


def as_judged(record: Mapping[str, Any], sample: Sample, aspects: frozenset[Aspect]) -> Judged:
    """Return the verdicts that plain data holds about the aspects of a sample.

    >>> sample = Sample("q1", "Why?", ("one", "two"), claims=("It is.",))
    >>> judged = as_judged({"relevance": [3, 9], "claims": [[1]]}, sample, frozenset({"relevance"}))
    >>> judged.relevance
    (Verdict(value=3, reason='', quote='', unproven=False),
     Verdict(value=None, reason='9 is no grade from 0 to 3', quote='', unproven=False))
    >>> dict(as_judged({"claims": [[1]]}, sample, frozenset({"claims"})).failures)
    {'claims': '1 verdict about claim 1, but there are 2 chunks'}
    """
    found: dict[str, Any] = {}
    failures = _failures(record.get("failures"))
    for aspect in sorted(aspects - failures.keys()):
        try:
            found |= _READERS[aspect](record, sample)
        except _UnfitError as error:
            failures[aspect] = str(error)
    return Judged(
        **found, failures={name: why for name, why in failures.items() if name in aspects}
    )


def _relevance(record: Mapping[str, Any], sample: Sample) -> dict[str, Any]:
    given = record.get("relevance")
    if given is None and sample.chunks:
        raise _UnfitError("no verdicts about relevance")
    return {"relevance": _row(given or [], sample.chunks, "relevance", "relevance")}


def _claims(record: Mapping[str, Any], sample: Sample) -> dict[str, Any]:
    texts = _texts(record.get("claim_texts", sample.claims), "claim_texts")
    return {"claim_texts": texts, "claims": _matrix(record, texts, sample, "claims", "claim")}


def _entities(record: Mapping[str, Any], sample: Sample) -> dict[str, Any]:
    if sample.reference.strip() and "entity_texts" not in record and "entities" in record:
        raise _UnfitError("entities without entity_texts")
    texts = _texts(record.get("entity_texts", []), "entity_texts")
    return {"entity_texts": texts, "entities": _matrix(record, texts, sample, "entities", "entity")}


def _statements(record: Mapping[str, Any], sample: Sample) -> dict[str, Any]:
    listed = record.get("statement_texts", sample.statements)
    given = record.get("statements", [])
    if not _is_list(listed) or not _is_list(given) or len(listed) != len(sample.chunks):
        raise _UnfitError(
            f"statements of {_count(listed)} chunks, but there are {len(sample.chunks)}"
        )
    texts = tuple(_texts(row, "statement_texts") for row in listed)
    if len(given) != len(texts):
        raise _UnfitError(f"verdicts about the statements of {len(given)} of {len(texts)} chunks")
    rows = tuple(
        _row(row, each, "statements", f"the statements of chunk {number}")
        for number, (row, each) in enumerate(zip(given, texts, strict=True), start=1)
    )
    return {"statement_texts": texts, "statements": rows}


_READERS = {
    "relevance": _relevance,
    "claims": _claims,
    "entities": _entities,
    "statements": _statements,
}


def _matrix(
    record: Mapping[str, Any], texts: Sequence[str], sample: Sample, aspect: Aspect, what: str
) -> Matrix:
    """Return a row of verdicts for each text, a verdict for each chunk."""
    given = record.get(aspect, [])
    if not _is_list(given) or len(given) != len(texts):
        raise _UnfitError(f"verdicts about {_count(given)} of {len(texts)} {aspect}")
    return tuple(
        _row(row, sample.chunks, aspect, f"{what} {number}")
        for number, row in enumerate(given, start=1)
    )


def _row(given: object, units: Sequence[str], aspect: Aspect, what: str) -> tuple[Verdict, ...]:
    if not _is_list(given):
        raise _UnfitError(f"{str(given)[:40]!r} is no list of verdicts about {what}")
    if len(given) != len(units):
        unit = "statement" if aspect == "statements" else "chunk"
        some = f"{len(given)} verdict{'s' * (len(given) != 1)}"
        raise _UnfitError(f"{some} about {what}, but there are {len(units)} {unit}s")
    return tuple(
        _verdict(each, unit, HIGHEST[aspect]) for each, unit in zip(given, units, strict=True)
    )


def _verdict(given: object, unit: str, highest: int) -> Verdict:
    """Return one verdict; a quote that is not in the text does not prove a yes."""
    fields = given if isinstance(given, Mapping) else {"value": given}
    value, reason, quote = (fields.get(name) for name in ("value", "reason", "quote"))
    said, shown = (str(text) if text else "" for text in (reason, quote))
    if value is None:
        return Verdict(None, said or "the judge gave no verdict")
    if not isinstance(value, bool | int | float) or value not in range(highest + 1):
        what = f"grade from 0 to {highest}" if highest > 1 else "verdict, 0 or 1"
        return Verdict(None, f"{str(value)[:40]} is no {what}")
    there = " ".join(shown.split()) in " ".join(unit.split())
    return Verdict(int(value), said, shown, unproven=bool(value) and not there)


def _texts(given: object, name: str) -> tuple[str, ...]:
    if not _is_list(given) or not all(isinstance(text, str) for text in given):
        raise _UnfitError(f"{name} is no list of texts")
    return tuple(given)


def _failures(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        return {}
    return {str(aspect): str(reason) for aspect, reason in given.items()}


def _is_list(given: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _count(given: object) -> int:
    return len(given) if _is_list(given) else 0

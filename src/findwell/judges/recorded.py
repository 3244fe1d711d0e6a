"""Verdicts as plain data, and back: what a function returns, what a file of verdicts holds.

Each aspect has a field of its name: a verdict per chunk (relevance), a row per item with a verdict
per chunk (claims, with `claim_texts`), a row per chunk with a verdict per part (statements, with
`statement_texts`), or one verdict about the whole list. A verdict is a number, true or false, null
for none, or an object with value, reason and quote. Reading checks everything against the sample:
what does not fit is a failure with a reason, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from findwell.judges.aspects import ASPECTS, Aspect, VerdictShape, find_aspect
from findwell.judges.client.protocol import Reason
from findwell.judges.quotes import proves
from findwell.judges.verdicts import (
    AspectVerdicts,
    Judged,
    JudgeFailure,
    Judgement,
    JudgeReason,
    Sample,
)

REASONS: dict[str, JudgeReason | Reason] = {str(each): each for each in (*Reason, *JudgeReason)}


class _UnfitError(Exception):
    """What an aspect holds does not fit the sample."""


def as_record(judged: Judged) -> dict[str, Any]:
    """Return verdicts as plain data; what is empty is left out.

    >>> row = (Judgement(2, "on the point"), Judgement(0))
    >>> as_record(Judged({"relevance": AspectVerdicts((row,))}))
    {'relevance': [{'value': 2, 'reason': 'on the point'}, {'value': 0}]}
    """
    record: dict[str, Any] = {}
    for name, given in judged.verdicts.items():
        aspect = find_aspect(name)
        rows: Any = [[_plain(verdict) for verdict in row] for row in given.rows]
        if aspect.shape is VerdictShape.CHUNKS:
            rows = rows[0] if rows else []
        elif aspect.shape is VerdictShape.LIST:
            rows = rows[0][0] if rows else None
        else:
            texts = given.items or [list(row) for row in given.parts]
            record |= {aspect.texts: list(texts)}
        record[name] = rows
    record["failures"] = {name: _reason(failure) for name, failure in judged.failures.items()}
    return {name: value for name, value in record.items() if value}


def _plain(verdict: Judgement) -> dict[str, Any]:
    if verdict.failure is not None:
        return {"value": None, **_reason(verdict.failure)}
    fields = {"reason": verdict.reason, "quote": verdict.quote, "unproven": verdict.unproven}
    told = {} if verdict.probability is None else {"probability": verdict.probability}
    return (
        {"value": verdict.value} | {name: value for name, value in fields.items() if value} | told
    )


def _reason(failure: JudgeFailure) -> dict[str, str]:
    return {"failure": str(failure.reason), "reason": failure.detail}


def as_judged(record: Mapping[str, Any], sample: Sample, aspects: frozenset[str]) -> Judged:
    """Return the verdicts that plain data holds about the aspects of a sample.

    >>> sample = Sample("q1", "Why?", ("one", "two"), items={"claims": ("It is.",)})
    >>> judged = as_judged({"relevance": [3, 9], "claims": [[1]]}, sample, frozenset({"relevance"}))
    >>> [(verdict.value, str(verdict.failure or "")) for verdict in judged["relevance"].row]
    [(3, ''), (None, 'does not fit the sample: 9 is no grade from 0 to 3')]
    >>> str(as_judged({"claims": [[1]]}, sample, frozenset({"claims"})).failures["claims"])
    'does not fit the sample: 1 verdict about claim 1, but there are 2 chunks'
    """
    found: dict[str, AspectVerdicts] = {}
    failures = _failures(record.get("failures"))
    for name in sorted(aspects - failures.keys()):
        try:
            found[name] = _READERS[find_aspect(name).shape](find_aspect(name), record, sample)
        except _UnfitError as error:
            failures[name] = JudgeFailure(JudgeReason.UNFIT, str(error))
    return Judged(found, {name: why for name, why in failures.items() if name in aspects})


def about_first(record: Mapping[str, Any], chunks: int, known: int) -> dict[str, Any]:
    """Return what a record says about the first chunks of those that it knows.

    A verdict about the whole list says nothing about a part of it.
    """
    cut, failures = dict(record), dict(record.get("failures", {}))
    for aspect in ASPECTS.values() if chunks < known else ():
        if aspect.shape is VerdictShape.LIST and cut.pop(aspect.name, None) is not None:
            reason = JudgeFailure(JudgeReason.OTHER_TEXTS, f"it is about {known} chunks together")
            failures[aspect.name] = _reason(reason)
        elif aspect.shape is VerdictShape.ITEMS and isinstance(cut.get(aspect.name), list):
            rows = cut[aspect.name]
            cut[aspect.name] = [row[:chunks] if isinstance(row, list) else row for row in rows]
        elif aspect.listed:
            for name in {aspect.name, aspect.texts} & cut.keys():
                cut[name] = cut[name][:chunks] if isinstance(cut[name], list) else cut[name]
    return cut | {"failures": failures}


def _chunks(aspect: Aspect, record: Mapping[str, Any], sample: Sample) -> AspectVerdicts:
    given = record.get(aspect.name)
    if given is None and sample.chunks:
        raise _UnfitError(f"no verdicts about {aspect.name}")
    return AspectVerdicts((_row(given or [], sample.chunks, aspect, aspect.name),))


def _items(aspect: Aspect, record: Mapping[str, Any], sample: Sample) -> AspectVerdicts:
    """Return a row of verdicts for each text, a verdict for each chunk."""
    listed = record.get(aspect.texts)
    given = record.get(aspect.name, [])
    lacking = listed is None and aspect.name in record
    if lacking and aspect.judge_lists and sample.reference.strip():
        raise _UnfitError(f"{aspect.name} without {aspect.texts}")
    texts = _texts(sample.items[aspect.name] if listed is None else listed, aspect.texts)
    if not _is_list(given) or len(given) != len(texts):
        raise _UnfitError(f"verdicts about {_count(given)} of {len(texts)} {aspect.name}")
    rows = (
        _row(row, sample.chunks, aspect, f"{aspect.unit} {number}")
        for number, row in enumerate(given, start=1)
    )
    return AspectVerdicts(tuple(rows), items=texts)


def _parts(aspect: Aspect, record: Mapping[str, Any], sample: Sample) -> AspectVerdicts:
    listed = record.get(aspect.texts, sample.parts[aspect.name])
    given = record.get(aspect.name, [])
    if not _is_list(listed) or not _is_list(given) or len(listed) != len(sample.chunks):
        raise _UnfitError(
            f"{aspect.name} of {_count(listed)} chunks, but there are {len(sample.chunks)}"
        )
    texts = tuple(_texts(row, aspect.texts) for row in listed)
    if len(given) != len(texts):
        raise _UnfitError(
            f"verdicts about the {aspect.name} of {len(given)} of {len(texts)} chunks"
        )
    rows = (
        _row(row, each, aspect, f"the {aspect.name} of chunk {number}", chunk)
        for number, (row, each, chunk) in enumerate(
            zip(given, texts, sample.chunks, strict=True), start=1
        )
    )
    return AspectVerdicts(tuple(rows), parts=texts)


def _list(aspect: Aspect, record: Mapping[str, Any], sample: Sample) -> AspectVerdicts:
    if not sample.chunks:
        return AspectVerdicts()
    if aspect.name not in record or _is_list(record[aspect.name]):
        raise _UnfitError(f"no verdict about {aspect.name}: it is one for all chunks together")
    verdict = _verdict(record[aspect.name], "\n".join(sample.chunks), aspect.highest)
    return AspectVerdicts(((verdict,),), chunks=len(sample.chunks))


_READERS = {
    VerdictShape.CHUNKS: _chunks,
    VerdictShape.ITEMS: _items,
    VerdictShape.PARTS: _parts,
    VerdictShape.LIST: _list,
}


def _row(
    given: object, units: Sequence[str], aspect: Aspect, what: str, around: str = ""
) -> tuple[Judgement, ...]:
    """Return a verdict for each unit; `around` is the chunk that it is a part of."""
    if not _is_list(given):
        raise _UnfitError(f"{str(given)[:40]!r} is no list of verdicts about {what}")
    if len(given) != len(units):
        unit = aspect.unit if aspect.shape is VerdictShape.PARTS else "chunk"
        some = f"{len(given)} verdict{'s' * (len(given) != 1)}"
        raise _UnfitError(f"{some} about {what}, but there are {len(units)} {unit}s")
    return tuple(
        _verdict(each, f"{unit}\n{around}", aspect.highest)
        for each, unit in zip(given, units, strict=True)
    )


def _verdict(given: object, unit: str, highest: int) -> Judgement:
    """Return one verdict; a quote that is not in the text does not prove a yes."""
    fields = given if isinstance(given, Mapping) else {"value": given}
    value, reason, quote = (fields.get(name) for name in ("value", "reason", "quote"))
    why, shown = (str(text) if text else "" for text in (reason, quote))
    if value is None:
        return Judgement(None, failure=_failure(fields))
    if not isinstance(value, bool | int | float) or value not in range(highest + 1):
        what = f"grade from 0 to {highest}" if highest > 1 else "verdict, 0 or 1"
        return Judgement.failed(JudgeReason.UNFIT, f"{str(value)[:40]} is no {what}")
    there = not shown.strip() or proves(shown, unit)
    chance = fields.get("probability")
    return Judgement(
        int(value),
        why,
        shown,
        unproven=bool(value) and (not there or fields.get("unproven") is True),
        probability=float(chance) if isinstance(chance, int | float) and 0 <= chance <= 1 else None,
    )


def _failure(given: object) -> JudgeFailure:
    """Return the failure that plain data names: its reason, or only words of the judge's own."""
    fields = given if isinstance(given, Mapping) else {"reason": given}
    reason = REASONS.get(str(fields.get("failure")), JudgeReason.NO_VERDICT)
    return JudgeFailure(reason, str(fields.get("reason") or ""))


def _failures(given: object) -> dict[str, JudgeFailure]:
    if not isinstance(given, Mapping):
        return {}
    return {str(aspect): _failure(reason) for aspect, reason in given.items()}


def _texts(given: object, name: str) -> tuple[str, ...]:
    if not _is_list(given) or not all(isinstance(text, str) for text in given):
        raise _UnfitError(f"{name} is no list of texts")
    return tuple(given)


def _is_list(given: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _count(given: object) -> int:
    return len(given) if _is_list(given) else 0

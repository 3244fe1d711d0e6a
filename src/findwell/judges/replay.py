"""Verdicts as plain data, and back: what a function returns, what a file of verdicts holds.

Each aspect has a field of its name: a verdict per chunk (relevance), a row per item with a verdict
per chunk (claims, with `claim_texts`), a row per chunk with a verdict per part (statements, with
`statement_texts`), or one verdict about the whole list. A verdict is a number, true or false, null
for none, or an object with value, reason and quote. Reading checks everything against the sample:
what does not fit is a failure with a reason, never a guess.

A file of verdicts is written once and read many times, for tests and for audits. It is JSON lines.
The first names the judge, with its entry of the manifest; each other line is one query: its id, a
hash of question and reference, one of each chunk, and the verdicts. So verdicts are never replayed
for texts that the judge did not see, and those about the first chunks of a list can be replayed
without the others.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from findwell.core.errors import FindwellError, InputError, OptionError
from findwell.core.progress import Progress, Report
from findwell.io.storage.files import write_text
from findwell.io.storage.spool import refuse_device
from findwell.judges.aspects import ASPECTS, Aspect, VerdictShape, find_aspect
from findwell.judges.client.protocol import Reason, parse_json
from findwell.judges.quotes import proves
from findwell.judges.verdicts import (
    AspectVerdicts,
    Judged,
    JudgeFailure,
    Judgement,
    JudgeProtocol,
    JudgeReason,
    Sample,
)

# --- plain data -----------------------------------------------------------------------------------

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
    chance = {} if verdict.probability is None else {"probability": verdict.probability}
    return (
        {"value": verdict.value} | {name: value for name, value in fields.items() if value} | chance
    )


def _reason(failure: JudgeFailure) -> dict[str, str]:
    return {"failure": str(failure.reason), "reason": failure.detail}


def as_judged(record: Mapping[str, Any], sample: Sample, aspects: frozenset[str]) -> Judged:
    """Return the verdicts that plain data holds about the aspects of a sample.

    >>> sample = Sample("q1", "Why?", ("one", "two"), items={"claims": ("It is.",)})
    >>> judged = as_judged({"relevance": [3, 9], "claims": [[1]]}, sample, frozenset({"relevance"}))
    >>> [(verdict.value, str(verdict.failure or "")) for verdict in judged["relevance"].row]
    [(3, ''), (None, 'does not fit the sample: 9 is not a grade from 0 to 3')]
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
        raise _UnfitError(f"{str(given)[:40]!r} is not a list of verdicts about {what}")
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
        return Judgement.failed(JudgeReason.UNFIT, f"{str(value)[:40]} is not a {what}")
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
        raise _UnfitError(f"{name} is not a list of texts")
    return tuple(given)


def _is_list(given: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _count(given: object) -> int:
    return len(given) if _is_list(given) else 0


# --- in a file ------------------------------------------------------------------------------------

LAYOUT = 1
FIX = "record the verdicts again with findwell.judges.replay.record"


def record(
    samples: Sequence[Sample],
    judged: Sequence[Judged],
    path: str | os.PathLike[str],
    *,
    judge: JudgeProtocol | None = None,
) -> None:
    """Write verdicts to a file, whole or not at all."""
    aspects = sorted({aspect for each in judged for aspect in (*each.verdicts, *each.failures)})
    about = {} if judge is None else {"judge": judge.name, "about": judge.about()}
    lines = [{"findwell": "verdicts", "layout": LAYOUT, "aspects": aspects, **about}]
    lines += (
        {"query": sample.query, **fingerprint(sample), **as_record(each)}
        for sample, each in zip(samples, judged, strict=True)
    )
    write_text(path, "".join(f"{_line(line)}\n" for line in lines))


def _line(value: dict[str, Any]) -> str:
    """Write an object as people can read it, or with escapes where UTF-8 cannot write a letter."""
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if any("\ud800" <= letter <= "\udfff" for letter in text) else text


def fingerprint(sample: Sample) -> dict[str, Any]:
    """Return hashes of what a judge sees of a query."""
    return {
        "texts": _hash(sample.question, sample.reference),
        "chunks": [_hash(chunk) for chunk in sample.chunks],
    }


def _hash(*texts: str) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]


class ReplayJudge:
    """Gives the verdicts of a file; what is not in it, or was about other texts, is a failure."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._header, self._lines = _read(self._path)
        self.name = f"replay:{self._header.get('judge') or self._path.name}"  # who judged
        self._found = self._missing = 0

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        counted = {"replayed": self._found, "missing": self._missing, "calls": 0}
        recorded = {"recorded": self._header.get("about"), "file": self._path.name}
        return {"judge": self.name, **recorded, **counted}

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""
        judged = [self._one(sample, aspects) for sample in samples]
        if progress is not None:
            progress(Progress(len(judged), len(samples)))
        return judged

    def _one(self, sample: Sample, aspects: frozenset[str]) -> Judged:
        line = self._lines.get(sample.query, {})
        if (failure := self._unfit(line, sample)) is not None:
            self._missing += 1
            return Judged(failures=dict.fromkeys(sorted(aspects), failure))
        self._found += 1
        asked = aspects & set(self._header["aspects"])
        first = about_first(line, len(sample.chunks), len(line["chunks"]))
        judged = as_judged(first, sample, asked)
        lacking = JudgeFailure(JudgeReason.NOT_RECORDED, "this aspect")
        others = dict.fromkeys(sorted(aspects - asked), lacking)
        return Judged(judged.verdicts, {**judged.failures, **others})

    def _unfit(self, line: dict[str, Any], sample: Sample) -> JudgeFailure | None:
        """Return why a line is not about a sample; None if it is."""
        if not line:
            return JudgeFailure(JudgeReason.NOT_RECORDED, "no verdicts about this query")
        other = JudgeFailure(JudgeReason.OTHER_TEXTS, "the recorded verdicts are not about these")
        seen, known = fingerprint(sample), line.get("chunks")
        if not isinstance(known, list) or line.get("texts") != seen["texts"]:
            return other
        if len(known) < len(seen["chunks"]) and known == seen["chunks"][: len(known)]:
            detail = f"only the first {len(known)} chunks have verdicts"
            return JudgeFailure(JudgeReason.NOT_RECORDED, detail)
        return None if known[: len(seen["chunks"])] == seen["chunks"] else other


def _read(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the first line of a file of verdicts, and the others by query."""
    try:
        refuse_device(path)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        what = f"the verdicts cannot be read: {reason}"
        raise InputError(what, where=str(path), fix=FIX) from None
    lines = [
        (number, _object(line, f"{path}, line {number}"))
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    header = lines[0][1] if lines else {}
    if header.get("findwell") != "verdicts" or not isinstance(header.get("aspects"), list):
        raise InputError("this is not a file of verdicts", where=str(path), fix=FIX)
    if header.get("layout") != LAYOUT:
        what = f"the verdicts have layout {header.get('layout')}, this findwell reads {LAYOUT}"
        raise InputError(what, where=str(path), fix=FIX)
    found: dict[str, dict[str, Any]] = {}
    for number, line in lines[1:]:
        query = line.get("query")
        if not isinstance(query, str) or query in found:
            what = "no query" if not isinstance(query, str) else f"query {query!r} a second time"
            raise InputError(what, where=f"{path}, line {number}", fix=FIX)
        found[query] = line
    return header, found


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        found = parse_json(line)
    except ValueError:
        raise InputError("this is not JSON", where=where, fix=FIX) from None
    if not isinstance(found, dict):
        raise InputError(f"a {type(found).__name__}, not an object", where=where, fix=FIX)
    return found


# --- of a function --------------------------------------------------------------------------------


class FunctionJudge:
    """Asks a function from a `Sample` to a dict of verdicts by aspect, or to a `Judged`.

    `findwell.judges.replay` describes the dict. It is checked against the sample: what does not
    fit, and what the function raises, is a failure with a reason and does not affect other samples.

    >>> def first_is_best(sample):
    ...     return {"relevance": [3] + [0] * (len(sample.chunks) - 1)}
    >>> judge = FunctionJudge(first_is_best)
    >>> judged = judge.judge([Sample("q1", "Why?", ("a", "b"))], frozenset({"relevance"}))
    >>> [verdict.value for verdict in judged[0]["relevance"].row]
    [3, 0]
    """

    def __init__(self, function: Callable[[Sample], Any], *, name: str = "") -> None:
        if inspect.iscoroutinefunction(function):
            raise OptionError(
                "a judge's function cannot be async", fix="call asyncio.run(...) inside of it"
            )
        own = getattr(function, "__qualname__", type(function).__qualname__)
        self.name = name or f"function:{own}"
        self._function = function
        self._asked = self._failed = 0

    def about(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {"judge": self.name, "calls": self._asked, "failed": self._failed}

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Report | None = None
    ) -> list[Judged]:
        """Return the verdicts of each sample, in their order."""
        judged = []
        for sample in samples:
            judged.append(self._ask(sample, aspects))
            if progress is not None:
                progress(Progress(len(judged), len(samples)))
        return judged

    def _ask(self, sample: Sample, aspects: frozenset[str]) -> Judged:
        self._asked += 1
        try:
            found = self._function(sample)
        except FindwellError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the function does wrong
            return self._failure(aspects, f"{type(error).__name__}: {error}")
        if isinstance(found, Judged):
            found = as_record(found)
        if not isinstance(found, Mapping):
            what = f"the function returned a {type(found).__name__}, no dict"
            return self._failure(aspects, what)
        return as_judged(found, sample, aspects)

    def _failure(self, aspects: frozenset[str], detail: str) -> Judged:
        self._failed += 1
        failure = JudgeFailure(JudgeReason.ERROR, detail)
        return Judged(failures=dict.fromkeys(sorted(aspects), failure))

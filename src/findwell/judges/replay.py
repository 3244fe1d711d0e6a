"""Verdicts in a file: written once, read again and again, for tests and for audits.

The file is JSON lines. The first names the judge, with its entry of the manifest; each other
line is one query: its id, a hash of question and reference, one of each chunk, and the verdicts.
So verdicts are never replayed for texts that the judge did not see, and those about the first
chunks of a list can be replayed without the others.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from findwell.core.errors import InputError
from findwell.core.progress import Progress, Report
from findwell.io.storage.files import write_text
from findwell.io.storage.spool import refuse_device
from findwell.judges.recorded import about_first, as_judged, as_record
from findwell.judges.verdicts import Judged, JudgeFailure, JudgeProtocol, JudgeReason, Sample

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
        raise InputError("this is no file of verdicts", where=str(path), fix=FIX)
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
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("this is not JSON", where=where, fix=FIX) from None
    if not isinstance(found, dict):
        raise InputError(f"a {type(found).__name__}, not an object", where=where, fix=FIX)
    return found

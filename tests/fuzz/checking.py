"""What is wrong with the outcome of a case."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Outcome
    from tests.fuzz.cases import Case

BAD_INPUT = 2
LONGEST = 1500  # letters of a message
# what is about a file as a whole, or about two of them: it has no line
WHOLE = re.compile(
    r"the file is empty|only blank lines|contains no (lines|queries)|has no rows|was not recognised"
    r"|gzip data is broken|no column|no (id|text); found|share no query|is not UTF-8|mark of UTF"
    r"|no relevant item|document has a text|has a label in both|nested too deeply"
    r"|not a file of verdicts|labelled twice|there is no text|carry no id|the chunk .* has no text"
    r"|unknown column|is in the gold: it has|the column .* occurs more than once"
    r"|layout"
)
PLACE = re.compile(r", (line|row|record) [1-9]\d*|quer(y|ies) ['\"]|the id ['\"]")
# an option names something that the file no longer has, or a format what it cannot hold
OPTION = re.compile(
    r"findwell: unknown (column of the queries|system)|which TREC files cannot hold"
)
NO_PLACE = re.compile(r"\b(line|row|record) 0\b|: None$")


def flaws(case: Case, done: Outcome) -> list[str]:
    """Return what is wrong; nothing, if all is as it should be."""
    found = []
    if done.code not in case.codes:
        last = done.err.strip().split("\n")[-1]
        found.append(f"exit {done.code}: {last[:300]}")
    if "warning: " in done.err or "panicked" in done.err:
        found.append("warning: " + done.err[-300:])
    if found or done.code != BAD_INPUT:
        return found
    return _message(case, done.err)


def _message(case: Case, err: str) -> list[str]:
    found = []
    at = err.rfind("findwell: ")
    message = err[at:]
    first = message.split("\n")[0]
    folder = case.target.partition("/")[0] + "/" if "/" in case.target else None
    names = {case.target, *([folder.rstrip("/")] if folder else [])}
    if at < 0:
        return [f"no message of findwell: {err[-200:]}"]
    if not any(name in first for name in names) and not OPTION.search(first):
        found.append("no file")
    if not re.search(r"\n  fix: \S", message):
        found.append("no fix")
    if (
        case.kind in ("columns", "table", "lines")
        and not PLACE.search(first)
        and not WHOLE.search(first)
    ):
        found.append("no line")
    if NO_PLACE.search(first):
        found.append("line 0, or None")
    if len(message) > LONGEST:
        found.append("too long")
    shown = message.encode("utf-8", "backslashreplace").decode()  # as a terminal shows it
    if not shown.replace("\n", "").isprintable():
        found.append("unprintable")
    return found

"""Gates as JUnit XML, which every CI server shows: one test case per requirement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from karat.report.gate import sentence
from karat.report.layout import printable

if TYPE_CHECKING:
    from karat.comparison.gates import GateReport, RequirementVerdict

# what printable leaves and XML 1.0 has no way to write
_FORBIDDEN = re.compile("[\ud800-\udfff\ufffe\uffff]")


def junit(gate: GateReport) -> str:
    """Return the gate as a test suite; what is undecided counts as error, failure or pass."""
    outcomes = [_outcome(verdict, gate.undecided) for verdict in gate.verdicts]
    cases = "".join(
        _case(verdict, outcome) for verdict, outcome in zip(gate.verdicts, outcomes, strict=True)
    )
    counts = f'tests="{len(outcomes)}" failures="{outcomes.count("failure")}"'
    counts += f' errors="{outcomes.count("error")}" skipped="0"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="karat" {counts}>\n'
        f'<testsuite name="karat" {counts}>\n{cases}</testsuite>\n</testsuites>\n'
    )


def _outcome(verdict: RequirementVerdict, undecided: str) -> str:
    if verdict.outcome == "undecided":
        return {"error": "error", "fail": "failure"}.get(undecided, "pass")
    return "failure" if verdict.outcome == "fail" else "pass"


def _case(verdict: RequirementVerdict, outcome: str) -> str:
    said = _text(sentence(verdict))
    name = f"classname={quoteattr(_text(f'karat.{verdict.run}'))}"
    name += f" name={quoteattr(_text(verdict.requirement))}"
    if outcome == "pass":
        inside = f"<system-out>{escape(said)}</system-out>"
    else:
        kind = quoteattr(verdict.outcome)
        inside = f"<{outcome} message={quoteattr(said)} type={kind}>{escape(said)}</{outcome}>"
    return f'<testcase {name} time="0">{inside}</testcase>\n'


def _text(text: str) -> str:
    """Write what XML cannot hold as escapes."""
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", printable(text))

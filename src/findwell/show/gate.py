"""Gates as text: a sentence per verdict, a table, a summary for pull requests, JUnit XML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.spelling import counted, name_relations
from findwell.core.verdict import verdict_row
from findwell.judges.limits import NO_VERDICT
from findwell.show.document import Document, to_markdown
from findwell.show.escape import printable, xml
from findwell.show.grid import Grid
from findwell.show.tables import decimals, number, signed

if TYPE_CHECKING:
    from findwell.evaluation.comparison.gates import GateReport
    from findwell.evaluation.comparison.requirements import RequirementVerdict

SIGNS = {"pass": "✓ pass", "fail": "✗ fail", "undecided": "? undecided"}
ADVICE = (
    "add queries (`findwell power`) or move the threshold; `--undecided pass` lets it pass, "
    "`--decide value` goes by the value alone"
)
NO_VALUE = "leave this requirement out, or let it pass with `--undecided pass`"
OTHER_JUDGE = (
    "ask another judge (--judge local, or a language model) or use labels of people; "
    "`--undecided pass` lets it pass"
)


def advice(gate: GateReport) -> str:
    """Say what can be done about verdicts that are undecided."""
    found: dict[str, dict[str, None]] = {}  # the reasons, by what helps then
    for each in gate.verdicts:
        if each.outcome == "undecided" and each.reason == NO_VERDICT:
            found[OTHER_JUDGE] = {}
        elif each.outcome == "undecided":
            found.setdefault(NO_VALUE if each.value is None else ADVICE, {})[each.reason] = None
    return "; ".join(
        ", ".join(reasons) + ": " * bool(reasons) + how for how, reasons in found.items()
    )


def sentence(verdict: RequirementVerdict) -> str:
    """Say what was decided, and by what.

    >>> from findwell import evaluate, gate
    >>> result = evaluate({"q": ["a"], "r": ["x"]}, {"q": ["a"], "r": ["b"]}, measures="RR")
    >>> print(sentence(gate(result, "RR>=0.9", decide="value").verdicts[0]))
    ✗ fail: RR>=0.9 (run): RR is 0.500, 0.012 … 0.988 (95%), on 2 queries
    """
    head = f"{SIGNS[verdict.outcome]}: {verdict.requirement} ({verdict.run}): "
    by = name_relations([verdict.relation], " by ") if verdict.relation else ""
    found = f"{verdict.measure}{by} is {value(verdict)}"
    if verdict.baseline is not None:
        found += ", baseline {}: {}".format(*_compared(verdict))
    if verdict.low is not None and verdict.high is not None:
        found += f", {interval(verdict)} ({100 * verdict.level:g}%)"
    found += f", on {counted(verdict.n)}"
    found += f"; {verdict.judge}" if verdict.judge else ""
    return head + found + (f"; {verdict.reason}" if verdict.reason else "")


def value(verdict: RequirementVerdict) -> str:
    """Write what was measured: queries that were counted are whole, or a share of all."""
    if verdict.value is not None and figure_unit(verdict.measure):
        return f"{verdict.value:,.1f} {figure_unit(verdict.measure)}"
    if verdict.measure in ("failed", "undefined", "errors") and verdict.value is not None:
        return format(verdict.value, ".1%" if verdict.requirement.endswith("%") else ".0f")
    return number(verdict.value, _digits(verdict))


def _digits(verdict: RequirementVerdict) -> int:
    """Return as many decimals as the interval deserves, and as keep sides of the threshold."""
    line, ends = verdict.line, (verdict.low, verdict.high)
    known = [each for each in (verdict.estimate.value, *ends) if each is not None]
    digits = decimals(*ends)
    while digits < 9 and any(
        (x >= line, x > line) != (round(x, digits) >= line, round(x, digits) > line) for x in known
    ):
        digits += 1
    return digits


def _compared(verdict: RequirementVerdict) -> list[str]:
    """Write the value of the baseline, and the difference from it."""
    digits = _digits(verdict)
    return [number(verdict.baseline, digits), signed(verdict.difference, digits)]


def interval(verdict: RequirementVerdict) -> str:
    """Write the interval of what was compared with the threshold."""
    if verdict.low is None or verdict.high is None:
        return "–"
    if unit := figure_unit(verdict.measure):
        return f"{verdict.low:,.1f} … {verdict.high:,.1f} {unit}"
    write = number if verdict.difference is None else signed
    return " … ".join(write(each, _digits(verdict)) for each in (verdict.low, verdict.high))


def figure_unit(measure: str) -> str:
    """Return the unit of what retrieval cost; none for a measure."""
    # the help need not wait for it
    from findwell.evaluation.comparison.requirements import find_figure  # noqa: PLC0415

    figure = find_figure(measure)
    return "" if figure is None else figure.shown


def document(gate: GateReport) -> Document:
    """Return one row per requirement and run."""
    several = len({verdict.run for verdict in gate.verdicts}) > 1
    compared = any(verdict.baseline is not None for verdict in gate.verdicts)
    rows = [
        [SIGNS[verdict.outcome], verdict.requirement]
        + ([verdict.run] if several else [])
        + [value(verdict)]
        + _compared(verdict)[: 2 * compared]
        + [interval(verdict), str(verdict.n)]
        for verdict in gate.verdicts
    ]
    texts = ["verdict", "requirement", *(["run"] if several else [])]
    header = [*texts, "value", *(["baseline", "difference"] if compared else [])]
    level = 100 * (gate.verdicts[0].level if gate.verdicts else 0.95)
    header += [f"{level:g}% interval", "n"]
    by = name_relations(verdict.relation for verdict in gate.verdicts if verdict.relation)
    outcomes = [verdict.outcome for verdict in gate.verdicts]
    grid = Grid(
        f"requirements: {gate.outcome}{by}",
        header,
        rows,
        left=len(texts),
        good={(at, 0) for at, each in enumerate(outcomes) if each == "pass"},
        bad={(at, 0) for at, each in enumerate(outcomes) if each == "fail"},
        note="; ".join(dict.fromkeys(each.judge for each in gate.verdicts if each.judge)),
    )
    return Document(
        [grid], findings=gate.findings, data=gate.as_dict, verdicts=lambda: map(_row, gate.verdicts)
    )


def _row(found: RequirementVerdict) -> dict[str, Any]:
    known = found.verdict
    return verdict_row(
        known,
        found.estimate if known is None else known.difference,
        system=found.run,
        baseline=None if found.sides is None else "baseline",
        measure=found.measure,
        requirement=found.requirement,
        outcome=found.outcome,
        value=found.value,
        against=found.line if found.sides is None else found.baseline,
        reason=found.reason,
    )


def summary(gate: GateReport, tables: str) -> str:
    """Return Markdown for a pull request: the verdicts, then the tables behind them."""
    parts = ["### Retrieval\n"]
    if gate.verdicts:
        parts.append(to_markdown(document(gate)))
    if gate.outcome == "undecided":
        parts.append(f"Undecided: {advice(gate)}.\n")
    return "\n".join([*parts, tables]) + "\n"


def lines(gate: GateReport) -> list[str]:
    """Return a sentence per verdict, safe to print."""
    return [printable(sentence(verdict)) for verdict in gate.verdicts]


def as_junit(gate: GateReport) -> str:
    """Return the gate as a JUnit test suite, which every CI server shows: a case per requirement.

    What is undecided counts as error, failure or pass.
    """
    counts = {"pass": "pass", "fail": "failure"}
    counts["undecided"] = {"error": "error", "fail": "failure", "pass": "pass"}[gate.undecided]
    outcomes = [counts[verdict.outcome] for verdict in gate.verdicts]
    cases = "".join(map(_case, gate.verdicts, outcomes))
    totals = f'tests="{len(outcomes)}" failures="{outcomes.count("failure")}"'
    totals += f' errors="{outcomes.count("error")}" skipped="0"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="findwell" {totals}>\n'
        f'<testsuite name="findwell" {totals}>\n{cases}</testsuite>\n</testsuites>\n'
    )


def _case(verdict: RequirementVerdict, outcome: str) -> str:
    text = xml(sentence(verdict))
    name = f'classname="{xml(f"findwell.{verdict.run}")}" name="{xml(verdict.requirement)}"'
    if outcome == "pass":
        inside = f"<system-out>{text}</system-out>"
    else:
        inside = f'<{outcome} message="{text}" type="{verdict.outcome}">{text}</{outcome}>'
    return f'<testcase {name} time="0">{inside}</testcase>\n'

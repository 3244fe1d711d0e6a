"""What the numbers of a judge are worth, in one line, and who gives no verdict about systems.

The line is made from what a result remembers of its judge (`Result.judge`), so that tables, gates,
reports, JSON and saved results say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from findwell.core.findings import finding_about

if TYPE_CHECKING:
    from findwell.core.findings import Finding

LOCAL = re.compile(r"(local(?::text)?)(\(.*\))?", re.DOTALL)
# binary κ with the labels of TREC DL 2019, 2020 and 2021, and in how many of the pairs of real
# systems a significant difference pointed the wrong way
MEASURED = {"local": ((0.333, 0.227, 0.240), 0.05), "local:text": ((0.26, 0.12, 0.11), 0.26)}
PAIRS = 1_953
SMOKE_TEST = "local:text"
CHECK_WITH_LABELS = "check what it says with labels of people before you rely on it"
UNCHECKED = "not checked against people: see findwell judge card"
NOT_CALIBRATED = "its threshold is not calibrated: see findwell judge teach"
CHANCE = "no better than chance: do not use this judge"
NO_VERDICT = f"the judge {SMOKE_TEST} is for smoke tests and gives no verdict about systems"


def judge_limits(judge: Mapping[str, Any]) -> str:
    """Say how far a judge agrees with people, as far as anyone has measured it; '' without a judge.

    >>> judge_limits({"name": "local"})[:61]
    'κ with people 0.33, 0.23, 0.24 on TREC DL19/20/21 (relevance)'
    >>> judge_limits({"name": "openai:m"})
    'not checked against people: see findwell judge card'
    """
    if not judge:
        return ""
    name = judge_name(judge)
    facts = [str(judge["card"]).removeprefix(f"{name}: ")] if "card" in judge else []
    facts += [str(judge["taught_by"])] if "taught_by" in judge else []
    facts += _measured(name)
    if isinstance(recorded := judge.get("recorded"), Mapping):
        facts += [judge_limits(recorded)]
    facts += [f"{each}: {judge_limits(about)}" for each, about in _members(judge)]
    facts += [] if facts or judge.get("calibrated", True) else [UNCHECKED, NOT_CALIBRATED]
    facts = facts or [UNCHECKED]
    if isinstance(own := judge.get("prompt"), Mapping):
        facts += [f"asked with prompts of its user: {', '.join(own['replaces'])}"]
    return "; ".join(facts)


def verdict_limit(judge: Mapping[str, Any], relation: str) -> str:
    """Say why a judge gives no verdict about systems by a relation; '' if it does.

    `local:text` gives none. A panel or a recording with its verdicts gives none either. A relation
    that no judge draws is not concerned.

    >>> verdict_limit({"name": "local:text"}, "relevance")
    'the judge local:text is for smoke tests and gives no verdict about systems'
    >>> verdict_limit({"name": "local:text"}, "ids"), verdict_limit({"name": "local"}, "claims")
    ('', '')
    """
    smoke = bool(judge) and _only_smoke_tests(judge)
    return NO_VERDICT if smoke and is_judged(relation) else ""


def is_judged(relation: str) -> bool:
    """Tell whether a judge draws a relation.

    >>> is_judged("claims(splitter=lines)"), is_judged("ids")
    (True, False)
    """
    from findwell.judges.aspects import ASPECTS  # noqa: PLC0415 - few results have a judge

    return relation.partition("(")[0] in ASPECTS


def is_measured(name: str) -> bool:
    """Tell whether a judge is an embedded one, whose worth was measured on public labels."""
    return LOCAL.fullmatch(name) is not None


def judge_lines(judges: Iterable[Mapping[str, Any]]) -> list[str]:
    """Name each judge with what its numbers are worth, once.

    >>> judge_lines([{}, {"name": "openai:m"}, {"name": "openai:m"}])
    ['judge openai:m: not checked against people: see findwell judge card']
    """
    named = (f"judge {judge_name(judge)}: {judge_limits(judge)}" for judge in judges if judge)
    return list(dict.fromkeys(named))


def limit_findings(judge: Mapping[str, Any], measures: Mapping[str, str]) -> list[Finding]:
    """Report the measures that a judge decided, by name with their relations, and its worth."""
    judged = [name for name, relation in measures.items() if judge and is_judged(relation)]
    message = f"# measure|measures is|are decided by the {'; '.join(judge_lines([judge]))}."
    return list(finding_about("judge-limits", judged, message, CHECK_WITH_LABELS))


def judge_name(judge: Mapping[str, Any]) -> str:
    """Return what a judge is called."""
    return str(judge.get("name") or judge.get("judge") or "")


def _members(judge: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the judges of a panel by name."""
    return [(judge_name(each), each) for each in judge.get("judges", ())]


def _only_smoke_tests(judge: Mapping[str, Any]) -> bool:
    local = LOCAL.fullmatch(judge_name(judge))
    recorded = judge.get("recorded")
    inner = [about for _, about in _members(judge)]
    inner += [recorded] if isinstance(recorded, Mapping) else []
    return (local is not None and local[1] == SMOKE_TEST) or any(map(_only_smoke_tests, inner))


def _measured(name: str) -> list[str]:
    """Return what was measured about an embedded judge."""
    local = LOCAL.fullmatch(name)
    if local is None:
        return []
    kappas, wrong = MEASURED[local[1]]
    as_it_is = " with its usual settings" if local[2] else ""
    smoke = ["for smoke tests only"] if local[1] == SMOKE_TEST else []
    each = ", ".join(f"{kappa:.2f}" for kappa in kappas)
    return [
        f"κ with people {each} on TREC DL19/20/21 (relevance){as_it_is}",
        f"significantly wrong in {wrong:.0%} of {PAIRS:,} pairs of real systems",
        *smoke,
    ]

"""The table of docs/learn/choosing.md, from the rules of `findwell choose`."""

from __future__ import annotations

from findwell.evaluation.choose import QUESTIONS, RULES

WORDS = {
    "known": "what you know",
    "use": "who reads",
    "needs": "what a question needs",
    "labels": "labels",
}


def table() -> str:
    """Return the rules as a table; an empty cell means that any answer will do."""
    names = [question.name for question in QUESTIONS]
    lines = [
        "| " + " | ".join([*(WORDS[name] for name in names), "measure", "why"]) + " |",
        "|---" * (len(names) + 2) + "|",
    ]
    for rule in RULES:
        conditions = [", ".join(rule.when.get(name, ())) for name in names]
        measure, why = (text.replace("{k}", "K") for text in (rule.measure, rule.why))
        lines.append("| " + " | ".join([*conditions, f"`{measure}`", why]) + " |")
    return "\n".join(lines)

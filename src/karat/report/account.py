"""Explanations as text: the list, the items, and how each number comes about."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from karat.report.layout import Grid, number, printable
from karat.report.text import escape, markdown, terminal

if TYPE_CHECKING:
    from karat.explanation.explain import Account, Explanation
    from karat.explanation.ranking import Step

MARKS = {
    "hit": "✓ hit",
    "again": "✓ again",
    "repeated": "= repeated",
    "rejected": "✗",
    "unjudged": "?",
}


def render(told: Explanation, how: str, *, color: bool = False) -> str:
    """Return an explanation as `table` for the terminal or as `markdown`."""
    draw = markdown if how == "markdown" else partial(terminal, color=color)
    clean = escape if how == "markdown" else printable
    parts = [clean(_heading(told)) + "\n", draw(_ranking(told)), draw(_items(told))]
    if told.verdicts:
        parts.append(draw(_verdicts(told)))
    if len(told.dialects) > 1:
        parts.append(draw(_values(told)))
    bullet = "- " if how == "markdown" else "  "
    parts += [f"{bullet}{clean(sentence(account))}\n" for account in told.accounts]
    if told.differences:
        parts.append("\nWhy they differ\n\n")
        parts += [f"{bullet}{clean(line)}\n" for line in told.differences]
    return "\n".join(parts[:3]) + "\n" + "".join(parts[3:])


def sentence(account: Account) -> str:
    """Write how a number comes about: the terms, their sum, the divisor, the value."""
    name = f"{account.measure} ({account.dialect})"
    if account.value is None:
        return f"{name} has no value: {account.reason}"
    if account.divisor is None:
        return f"{name} = {number(account.value)}"
    shown = [number(value) for _, value in account.terms[:8]]
    more = f" + … ({len(account.terms)} terms)" if len(account.terms) > 8 else ""
    added = " + ".join(shown) + more if shown else "0"
    if account.divided_by == "nothing":
        return f"{name} = {added} = {number(account.value)}"
    below = f"{number(account.divisor)} {account.divided_by}"
    ideal = ", ".join(f"{grade:g}" for _, grade in account.ideal[:8])
    beside = f"; the ideal list has the grades {ideal}" if ideal else ""
    return f"{name} = ({added}) ÷ {below} = {number(account.value)}{beside}"


def _heading(told: Explanation) -> str:
    question = told.about.get("question")
    return f"query {told.query}" + (f": {question}" if question else "")


def _ranking(told: Explanation) -> Grid:
    sums = [account for account in told.accounts if account.terms]
    running = {id(account): 0.0 for account in sums}
    texts = any(step.text is not None for step in told.ranking)
    parts = any(step.chunk is not None for step in told.ranking)
    scored = any(step.scores for step in told.ranking)
    rows = []
    for step in told.ranking:
        cells = [str(step.rank), step.doc if not texts else _short(step.doc, 24)]
        cells += [str(step.chunk)] if parts else []
        cells += [_short(step.text or "")] if texts else []
        cells += [MARKS[step.mark], _numbers(step.covers)]
        cells += [_scores(step)] if scored else []
        cells.append(number(step.precision))
        for account in sums:
            added = [value for rank, value in account.terms if rank == step.rank]
            running[id(account)] += sum(added)
            cells.append(number(running[id(account)]) if added else "")
        rows.append(cells)
    several = len(told.dialects) > 1
    names = [f"Σ {a.measure}" + (f" {a.dialect}" if several else "") for a in sums]
    header = ["rank", "document", *(["chunk"] if parts else []), *(["text"] if texts else [])]
    header += ["", "covers", *(["scores"] if scored else [])]
    left = len(header)
    title = f"the list ({len(told.ranking)} units" + (f", by {told.relation})" if texts else ")")
    mark = header.index("")
    good = {(at, mark) for at, step in enumerate(told.ranking) if step.mark in ("hit", "again")}
    bad = {(at, mark) for at, step in enumerate(told.ranking) if step.mark == "rejected"}
    return Grid(title, [*header, "precision", *names], rows, left=left, good=good, bad=bad)


def _scores(step: Step) -> str:
    return ", ".join(f"{number(score)} item {item}" for item, score in step.scores)


def _short(text: str, width: int = 60) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _items(told: Explanation) -> Grid:
    rows = [
        [
            str(item.number),
            " or ".join(_short(doc, 80) for doc in item.docs),
            f"{item.grade:g}",
            "missed" if item.rank is None else f"at {item.rank}",
        ]
        for item in told.items
    ]
    relevant = [item for item in told.items if item.grade > 0]
    met = sum(item.rank is not None for item in relevant)
    title = f"the gold ({met} of {len(relevant)} relevant items met)"
    good = {(at, 3) for at, item in enumerate(told.items) if item.rank is not None}
    bad = {(at, 3) for at, item in enumerate(told.items) if item.rank is None and item.grade > 0}
    return Grid(title, ["item", "any of", "grade", "found"], rows, left=2, good=good, bad=bad)


def _verdicts(told: Explanation) -> Grid:
    """Lay out what the judge said about each chunk and item."""
    rows = [
        [
            said.aspect,
            _short(said.item, 40),
            "–" if said.rank is None else str(said.rank),
            "failed" if said.value is None else str(said.value) + (" ?" if said.unproven else ""),
            _short(said.reason, 48),
            _short(said.quote, 48),
        ]
        for said in told.verdicts
    ]
    title = f"what the judge {told.judge} said"
    title += ", ? marks a yes that no quote proves" * any(said.unproven for said in told.verdicts)
    header = ["about", "question, claim, entity or statement", "chunk", "verdict", "why", "quote"]
    good = {(at, 3) for at, said in enumerate(told.verdicts) if said.value}
    bad = {(at, 3) for at, said in enumerate(told.verdicts) if said.value is None}
    return Grid(title, header, rows, left=len(header), good=good, bad=bad)


def _values(told: Explanation) -> Grid:
    names = dict.fromkeys(account.measure for account in told.accounts)
    value = {(a.measure, a.dialect): a.value for a in told.accounts}
    rows = [
        [name, *(number(value.get((name, dialect))) for dialect in told.dialects)] for name in names
    ]
    return Grid("side by side", ["measure", *told.dialects], rows)


def _numbers(covers: tuple[int, ...]) -> str:
    return ", ".join(f"item {number}" for number in covers)

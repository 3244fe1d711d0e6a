"""Explanations as text: the list, the items, and how each number comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.reports import escape
from karat.reports.escape import printable
from karat.reports.tables import Grid, number, render_grids
from karat.spelling import name_relations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.explanation.calculation import Calculation
    from karat.explanation.explain import Explanation
    from karat.explanation.ranking import Ranking, Step

SHOWN = 8  # terms, and gains of an ideal list, that a sentence shows

MARKS = {
    "hit": "✓ hit",
    "again": "✓ again",
    "repeated": "= repeated",
    "rejected": "✗",
    "unjudged": "?",
    "miss": "·",
}
PLAIN = ("grade >= 1", "grade > 0")  # what counts where nothing else was asked for
SAME = 1e-12  # sums in another order


def render(explained: Explanation, how: str, *, color: bool = False) -> str:
    """Return an explanation as `table` for the terminal or as `markdown`."""
    clean = escape.markdown if how == "markdown" else printable
    parts = [clean(heading(explained)) + "\n"]
    parts += (render_grids([grid], how, color=color) for grid in grids(explained))
    bullet = "- " if how == "markdown" else "  "
    lines = [f"{bullet}{clean(sentence(calculation))}\n" for calculation in explained.calculations]
    if explained.differences:
        lines.append("\nWhy they differ\n\n")
        lines += [f"{bullet}{clean(line)}\n" for line in explained.differences]
    return "\n".join(parts) + "\n" + "".join(lines)


def grids(explained: Explanation) -> Iterator[Grid]:
    """Lay out the lists and the gold, what a judge said, and dialects side by side."""
    for ranking in explained.rankings:
        yield _steps(explained, ranking)
        yield _items(explained, ranking)
    if explained.verdicts:
        yield _verdicts(explained)
    if len(explained.dialects) > 1:
        yield _values(explained)


def sentence(calculation: Calculation) -> str:
    """Write how a number comes about: the terms, their sum, the divisor, the value."""
    name = f"{calculation.measure} ({calculation.dialect})"
    if calculation.value is None:
        return f"{name} has no value: {calculation.reason}"
    value = number(calculation.value)
    if calculation.divisor is None:
        return f"{name} = {value}: {calculation.adds[:1].lower()}{calculation.adds[1:]}"
    shown = [number(value) for _, value in calculation.terms[:SHOWN]]
    more = f" + … ({len(calculation.terms)} terms)" if len(calculation.terms) > SHOWN else ""
    added = " + ".join(shown) + more if shown else "0"
    if calculation.divided_by != "nothing":
        added = f"({added}) ÷ {number(calculation.divisor)} {calculation.divided_by}"
    gains = ", ".join(f"{gain:.4g}" for _, gain in calculation.ideal[:SHOWN])
    gains += ", …" if len(calculation.ideal) > SHOWN else ""
    beside = f"; the ideal list has the gains {gains}" if gains else ""
    return f"{name} = {added}{_outcome(calculation)}{beside}"


def _outcome(calculation: Calculation) -> str:
    """Write the value, and what the quotient was if the measure makes something else of it."""
    value, quotient = number(calculation.value), calculation.quotient
    if quotient is not None and abs(quotient - (calculation.value or 0.0)) <= SAME:
        return f" = {value}"
    shown = "" if quotient is None else f" = {number(quotient)}"
    return shown + (
        f", {calculation.limit}: {value}" if calculation.limit else f", counted as {value}"
    )


def heading(explained: Explanation) -> str:
    """Name the query, with its question if it has one."""
    question = str(explained.about.get("question") or "")
    named = explained.query == " ".join(question.split())  # by its question, having no id
    return f"query {explained.query}" + (f": {question}" if question and not named else "")


def _steps(explained: Explanation, ranking: Ranking) -> Grid:
    """One row per unit: what it is and covers, and how the sums of the measures grow with it."""
    mine = set(ranking.read_by)
    sums = [
        each
        for each in explained.calculations
        if each.terms and (each.measure, each.dialect) in mine
    ]
    running = {id(calculation): 0.0 for calculation in sums}
    steps = ranking.steps
    texts = any(step.text is not None for step in steps)
    parts = any(step.chunk is not None for step in steps)
    scored = any(step.scores for step in steps)
    graded = any(item.grade not in (0, 1) for item in ranking.items)
    rows = []
    for step in steps:
        cells = [str(step.rank), step.doc if not texts else _short(step.doc, 24)]
        cells += [str(step.chunk)] if parts else []
        cells += [_short(step.text or "")] if texts else []
        cells += [MARKS[step.mark], _numbers(step.covers)]
        cells += ["" if step.grade is None else f"{step.grade:g}"] if graded else []
        cells += [_scores(step)] if scored else []
        cells.append(number(step.precision))
        for calculation in sums:
            added = [value for rank, value in calculation.terms if rank == step.rank]
            running[id(calculation)] += sum(added)
            cells.append(number(running[id(calculation)]) if added else "")
        rows.append(cells)
    several = len(explained.dialects) > 1
    names = [f"Σ {a.measure}" + (f" {a.dialect}" if several else "") for a in sums]
    header = ["rank", "document", *(["chunk"] if parts else []), *(["text"] if texts else [])]
    header += ["", "covers", *(["grade"] if graded else []), *(["scores"] if scored else [])]
    left = len(header)
    mark = header.index("")
    good = {(at, mark) for at, step in enumerate(steps) if step.mark in ("hit", "again")}
    bad = {(at, mark) for at, step in enumerate(steps) if step.mark == "rejected"}
    title = ", ".join([f"{len(steps)} units", *_seen_by(explained, ranking)])
    columns = [*header, "precision", *names]
    return Grid(f"the list ({title})", columns, rows, left=left, good=good, bad=bad)


def _seen_by(explained: Explanation, ranking: Ranking) -> Iterator[str]:
    """Say what matched and which items count, where that does not go without saying."""
    if name_relations(each.relation for each in explained.rankings):
        yield f"by {ranking.relation}"
    if ranking.relevant not in PLAIN or len(explained.rankings) > 1:
        yield f"relevant: {ranking.relevant}"


def _scores(step: Step) -> str:
    return ", ".join(f"{number(score)} item {item}" for item, score in step.scores)


def _short(text: str, width: int = 60) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _items(explained: Explanation, ranking: Ranking) -> Grid:
    rows = [
        [
            str(item.number),
            " or ".join(_short(doc, 80) for doc in item.docs),
            f"{item.grade:g}",
            "missed" if item.rank is None else f"at {item.rank}",
        ]
        for item in ranking.items
    ]
    relevant = [item for item in ranking.items if item.relevant]
    met = sum(item.rank is not None for item in relevant)
    seen_by = "".join(f", {each}" for each in _seen_by(explained, ranking))
    title = f"the gold ({met} of {len(relevant)} relevant items met{seen_by})"
    good = {
        (at, 3) for at, item in enumerate(ranking.items) if item.relevant and item.rank is not None
    }
    bad = {(at, 3) for at, item in enumerate(ranking.items) if item.relevant and item.rank is None}
    return Grid(title, ["item", "any of", "grade", "found"], rows, left=2, good=good, bad=bad)


def _verdicts(explained: Explanation) -> Grid:
    """Lay out what the judge said about each chunk and item."""
    rows = [
        [
            verdict.aspect,
            _short(verdict.item, 40),
            "–" if verdict.rank is None else str(verdict.rank),
            "failed"
            if verdict.value is None
            else str(verdict.value) + (" ?" if verdict.unproven else ""),
            _short(verdict.reason, 48),
            _short(verdict.quote, 48),
        ]
        for verdict in explained.verdicts
    ]
    title = f"what the judge {explained.judge} said"
    title += ", ? marks a yes that no quote proves" * any(
        verdict.unproven for verdict in explained.verdicts
    )
    header = ["about", "question, claim, entity or statement", "chunk", "verdict", "why", "quote"]
    good = {(at, 3) for at, verdict in enumerate(explained.verdicts) if verdict.value}
    bad = {(at, 3) for at, verdict in enumerate(explained.verdicts) if verdict.value is None}
    return Grid(title, header, rows, left=len(header), good=good, bad=bad)


def _values(explained: Explanation) -> Grid:
    names = dict.fromkeys(calculation.measure for calculation in explained.calculations)
    value = {(a.measure, a.dialect): a.value for a in explained.calculations}
    rows = [
        [name, *(number(value.get((name, dialect))) for dialect in explained.dialects)]
        for name in names
    ]
    return Grid("side by side", ["measure", *explained.dialects], rows)


def _numbers(covers: tuple[int, ...]) -> str:
    return ", ".join(f"item {number}" for number in covers)

"""Explanations as text: the list, the items, and how each number comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.report import escape
from karat.report.escape import printable
from karat.report.tables import Grid, number, render_grids
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


def render(told: Explanation, how: str, *, color: bool = False) -> str:
    """Return an explanation as `table` for the terminal or as `markdown`."""
    clean = escape.markdown if how == "markdown" else printable
    parts = [clean(heading(told)) + "\n"]
    parts += (render_grids([grid], how, color=color) for grid in grids(told))
    bullet = "- " if how == "markdown" else "  "
    lines = [f"{bullet}{clean(sentence(calculation))}\n" for calculation in told.calculations]
    if told.differences:
        lines.append("\nWhy they differ\n\n")
        lines += [f"{bullet}{clean(line)}\n" for line in told.differences]
    return "\n".join(parts) + "\n" + "".join(lines)


def grids(told: Explanation) -> Iterator[Grid]:
    """Lay out the lists and the gold, what a judge said, and dialects side by side."""
    for ranking in told.rankings:
        yield _steps(told, ranking)
        yield _items(told, ranking)
    if told.verdicts:
        yield _verdicts(told)
    if len(told.dialects) > 1:
        yield _values(told)


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


def heading(told: Explanation) -> str:
    """Name the query, with its question if it has one."""
    question = str(told.about.get("question") or "")
    named = told.query == " ".join(question.split())  # by its question, having no id
    return f"query {told.query}" + (f": {question}" if question and not named else "")


def _steps(told: Explanation, ranking: Ranking) -> Grid:
    """One row per unit: what it is and covers, and how the sums of the measures grow with it."""
    mine = set(ranking.read_by)
    sums = [
        each for each in told.calculations if each.terms and (each.measure, each.dialect) in mine
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
    several = len(told.dialects) > 1
    names = [f"Σ {a.measure}" + (f" {a.dialect}" if several else "") for a in sums]
    header = ["rank", "document", *(["chunk"] if parts else []), *(["text"] if texts else [])]
    header += ["", "covers", *(["grade"] if graded else []), *(["scores"] if scored else [])]
    left = len(header)
    mark = header.index("")
    good = {(at, mark) for at, step in enumerate(steps) if step.mark in ("hit", "again")}
    bad = {(at, mark) for at, step in enumerate(steps) if step.mark == "rejected"}
    title = ", ".join([f"{len(steps)} units", *_seen_by(told, ranking)])
    columns = [*header, "precision", *names]
    return Grid(f"the list ({title})", columns, rows, left=left, good=good, bad=bad)


def _seen_by(told: Explanation, ranking: Ranking) -> Iterator[str]:
    """Say what matched and which items count, where that does not go without saying."""
    if name_relations(each.relation for each in told.rankings):
        yield f"by {ranking.relation}"
    if ranking.relevant not in PLAIN or len(told.rankings) > 1:
        yield f"relevant: {ranking.relevant}"


def _scores(step: Step) -> str:
    return ", ".join(f"{number(score)} item {item}" for item, score in step.scores)


def _short(text: str, width: int = 60) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _items(told: Explanation, ranking: Ranking) -> Grid:
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
    told_by = "".join(f", {each}" for each in _seen_by(told, ranking))
    title = f"the gold ({met} of {len(relevant)} relevant items met{told_by})"
    good = {
        (at, 3) for at, item in enumerate(ranking.items) if item.relevant and item.rank is not None
    }
    bad = {(at, 3) for at, item in enumerate(ranking.items) if item.relevant and item.rank is None}
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
    names = dict.fromkeys(calculation.measure for calculation in told.calculations)
    value = {(a.measure, a.dialect): a.value for a in told.calculations}
    rows = [
        [name, *(number(value.get((name, dialect))) for dialect in told.dialects)] for name in names
    ]
    return Grid("side by side", ["measure", *told.dialects], rows)


def _numbers(covers: tuple[int, ...]) -> str:
    return ", ".join(f"item {number}" for number in covers)

"""Explanations as documents: the list, the items, and how each number comes about."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from findwell.core.spelling import counted, name_relations
from findwell.measures import parse_measure
from findwell.show.document import Document, Line, Notes
from findwell.show.escape import printable
from findwell.show.grid import Grid, one_line
from findwell.show.tables import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from findwell.evaluation.explanation.calculation import Calculation
    from findwell.evaluation.explanation.explain import Explanation
    from findwell.evaluation.explanation.ranking import Item, Ranking, Step
    from findwell.evaluation.explanation.units import ExplainedVerdict
    from findwell.show.document import Part

SHOWN_TERMS = 8  # terms, and gains of an ideal list, that a sentence shows

MARKS = {
    "hit": "✓ hit",
    "again": "✓ again",
    "repeated": "= repeated",
    "rejected": "✗",
    "unjudged": "?",
    "miss": "·",
}
MEANINGS = {
    "hit": "relevant",
    "again": "covers only what was covered above",
    "repeated": "stands above already",
    "rejected": "judged, not relevant",
    "unjudged": "not judged",
    "miss": "matches nothing",
}
RANKS_BELOW = 10  # that are shown below the last that adds to a number, where no cutoff ends it
PLAIN_RULES = ("grade >= 1", "grade > 0")  # what counts where nothing else was asked for
SAME_SUM = 1e-12  # sums in another order
NO_DOCUMENT = "(no document supports it)"

VerdictColumns = dict[str, "Callable[[ExplainedVerdict], str]"]


def document(explained: Explanation) -> Document:
    """Return the lists and the gold, what a judge said, and how each number comes about."""
    parts: list[Part] = [Line(heading(explained)), *grids(explained)]
    parts.append(Notes(tuple(map(sentence, explained.calculations)), whole=True))
    if explained.differences:
        parts += [Line("Why they differ"), Notes(tuple(explained.differences), whole=True)]
    return Document(parts, findings=explained.findings, data=explained.as_dict)


def grids(explained: Explanation) -> Iterator[Grid]:
    """Lay out the lists and the gold, what a judge said, and dialects side by side."""
    for ranking in explained.rankings:
        yield _steps(explained, ranking)
        yield _items(explained, ranking)
    if explained.verdicts:
        grid = verdict_grid(f"what the judge {explained.judge} said", explained.verdicts)
        yield replace(grid, note=f"judge {explained.judge}: {explained.judge_limits}")
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
    terms, divisor = calculation.terms, calculation.divisor
    more = f" + … ({len(terms)} terms)" if len(terms) > SHOWN_TERMS else ""
    added = " + ".join(_term(value) for _, value in terms[:SHOWN_TERMS]) + more or "0"
    outcome = _outcome(calculation)
    if calculation.divided_by != "nothing":
        added = f"({added})" if len(terms) > 1 else added
        by = calculation.divided_by
        added += f" ÷ {_term(divisor)} {by.replace('items', 'item') if divisor == 1 else by}"
    elif len(terms) <= 1 and outcome == f" = {value}":
        return f"{name}{outcome}"
    gains = ", ".join(f"{gain:.4g}" for _, gain in calculation.ideal[:SHOWN_TERMS])
    gains += ", …" if len(calculation.ideal) > SHOWN_TERMS else ""
    ideal = f"; the ideal list has the gains {gains}" if gains else ""
    return f"{name} = {added}{outcome}{ideal}"


def _term(value: float) -> str:
    """Write a part of a sum; a count is a whole number."""
    return f"{value:.0f}" if value.is_integer() else number(value)


def _outcome(calculation: Calculation) -> str:
    """Write the value, and what the quotient was if the measure makes something else of it."""
    value, quotient = number(calculation.value), calculation.quotient
    if quotient is not None and abs(quotient - (calculation.value or 0.0)) <= SAME_SUM:
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
    readers = set(ranking.read_by)
    mine = [each for each in explained.calculations if (each.measure, each.dialect) in readers]
    steps, cutoff = _shown_steps(ranking, mine)
    texts = any(step.text is not None for step in steps)
    columns: dict[str, Callable[[Step], str]] = {
        "rank": lambda step: str(step.rank),
        "document": lambda step: one_line(step.doc, 24) if texts else step.doc,
    }
    if any(step.chunk is not None for step in steps):
        columns["chunk"] = lambda step: str(step.chunk)
    if texts:
        columns["text"] = lambda step: one_line(step.text or "")
    mark = len(columns)
    columns[""] = lambda step: MARKS[step.mark]
    columns["covers"] = lambda step: ", ".join(f"item {item}" for item in step.covers)
    if any(item.grade not in (0, 1) for item in ranking.items):
        columns["grade"] = lambda step: "" if step.grade is None else f"{step.grade:g}"
    if any(step.scores for step in steps):
        columns["scores"] = _scores
    texts_end = len(columns)
    columns["precision"] = lambda step: number(step.precision)
    for each in mine:
        if each.terms:
            several = len(explained.dialects) > 1
            columns[f"Σ {each.measure}" + f" {each.dialect}" * several] = partial(_sum_to, each)
    title = ", ".join([counted(len(ranking.steps), "unit", "units"), *_seen_by(explained, ranking)])
    rows = [[show(step) for show in columns.values()] for step in steps]
    above = _with_cut(rows, [step.rank for step in steps], cutoff)
    left = len(ranking.steps) - len(steps)
    kinds = dict.fromkeys(step.mark for step in steps)
    legend = [f"{MARKS[kind]}: {MEANINGS[kind]}" for kind in kinds]
    legend += [f"{left:,} more ranks cover nothing"] if left else []

    def marked(*kinds: str) -> set[tuple[int, int]]:
        rows = (at for at, step in enumerate(steps) if step.mark in kinds)
        return {(at + (at >= above), mark) for at in rows}

    return Grid(
        f"the list ({title})",
        list(columns),
        rows,
        left=texts_end,
        good=marked("hit", "again"),
        bad=marked("rejected"),
        note=" · ".join(legend),
    )


def _shown_steps(ranking: Ranking, read: Sequence[Calculation]) -> tuple[list[Step], int | None]:
    """Return the ranks worth showing, and the deepest cutoff if every number has one.

    Below the cutoff, or else some ranks below the last that adds to a number, only ranks that cover
    an item are worth it.
    """
    steps = ranking.steps
    cutoffs = [parse_measure(each.measure).k for each in read]
    known = [k for k in cutoffs if type(k) is int]
    in_chunks = any(step.chunk is not None for step in steps)  # of which cutoffs count chunks
    cutoff = max(known) if known and len(known) == len(cutoffs) and not in_chunks else None
    adding = [rank for each in read for rank, _ in each.terms]
    last = max(adding, default=0) + RANKS_BELOW if cutoff is None else cutoff
    return [step for step in steps if step.rank <= last or step.covers], cutoff


def _with_cut(rows: list[list[str]], ranks: Sequence[int], cutoff: int | None) -> int:
    """Put a line below the cutoff; return how many rows are above it."""
    above = sum(cutoff is None or rank <= cutoff for rank in ranks)
    if above < len(rows):
        rows.insert(
            above, ["┄" * len(str(cutoff)), f"below K = {cutoff}"] + [""] * (len(rows[0]) - 2)
        )
    return above


def _sum_to(calculation: Calculation, step: Step) -> str:
    """Write the sum down to a rank, if the rank adds to it."""
    if not any(rank == step.rank for rank, _ in calculation.terms):
        return ""
    return number(sum(value for rank, value in calculation.terms if rank <= step.rank))


def _cells(column: int, rows: Iterable[object]) -> set[tuple[int, int]]:
    """Return the cells of a column in the rows for which something is true."""
    return {(row, column) for row, true in enumerate(rows) if true}


def _seen_by(explained: Explanation, ranking: Ranking) -> Iterator[str]:
    """Say what matched and which items count, where that does not go without saying."""
    if name_relations(each.relation for each in explained.rankings):
        yield f"by {ranking.relation}"
    if ranking.relevant not in PLAIN_RULES or len(explained.rankings) > 1:
        yield f"relevant: {ranking.relevant}"


def _scores(step: Step) -> str:
    return ", ".join(f"{number(score)} item {item}" for item, score in step.scores)


def _items(explained: Explanation, ranking: Ranking) -> Grid:
    relevant = [item for item in ranking.items if item.relevant]
    met = sum(item.rank is not None for item in relevant)
    seen_by = "".join(f", {each}" for each in _seen_by(explained, ranking))
    columns: dict[str, Callable[[Item], str]] = {
        "item": lambda item: str(item.number),
        "any of": lambda item: " or ".join(one_line(doc, 80) for doc in item.docs) or NO_DOCUMENT,
        "grade": lambda item: f"{item.grade:g}",
        "found": lambda item: "missed" if item.rank is None else f"at {item.rank}",
    }
    return Grid.of(
        f"the gold ({met} of {len(relevant)} relevant items found{seen_by})",
        columns,
        ranking.items,
        left=2,
        good=_cells(3, (item.relevant and item.rank is not None for item in ranking.items)),
        bad=_cells(3, (item.relevant and item.rank is None for item in ranking.items)),
    )


def _values(explained: Explanation) -> Grid:
    names = dict.fromkeys(calculation.measure for calculation in explained.calculations)
    value = {(a.measure, a.dialect): a.value for a in explained.calculations}
    rows = [
        [name, *(number(value.get((name, dialect))) for dialect in explained.dialects)]
        for name in names
    ]
    return Grid("side by side", ["measure", *explained.dialects], rows)


def verdict_grid(title: str, verdicts: Sequence[ExplainedVerdict], *, named: bool = False) -> Grid:
    """Lay out verdicts; `named` also shows the query of each, and the run where there are several.

    The probability is that of a yes, where the judge gave one.
    """
    title += ", ? marks a yes that no quote proves" * any(each.unproven for each in verdicts)
    several = len({each.run for each in verdicts}) > 1
    columns: VerdictColumns = {"run": lambda verdict: verdict.run} if named and several else {}
    columns |= {"query": lambda verdict: verdict.query} if named else {}
    keys = len(columns)
    columns |= {
        "about": lambda verdict: verdict.aspect,
        "question, claim, entity or statement": lambda verdict: one_line(verdict.item, 40),
        "chunk": lambda verdict: "–" if verdict.rank is None else str(verdict.rank),
        "verdict": lambda verdict: (
            "failed" if verdict.value is None else f"{verdict.value}{' ?' * verdict.unproven}"
        ),
    }
    at = len(columns) - 1
    if any(each.probability is not None for each in verdicts):
        columns["probability"] = lambda verdict: (
            "" if verdict.probability is None else f"{verdict.probability:.2f}"
        )
    columns["why"] = lambda verdict: one_line(verdict.reason, 48)
    columns["quote"] = lambda verdict: one_line(verdict.quote, 48)
    return Grid.of(
        title,
        columns,
        verdicts,
        left=len(columns),
        named_by=keys + 3 if named else None,
        good={(row, at) for row, each in enumerate(verdicts) if each.value},
        bad={(row, at) for row, each in enumerate(verdicts) if each.value is None},
        listed=_listed(verdicts, several=several) if named else "",
    )


def _listed(verdicts: Sequence[ExplainedVerdict], *, several: bool) -> str:
    """Write verdicts as lines below their query, and below their run where there are several."""
    lines: list[str] = []
    for _, mine in groupby(verdicts, key=lambda each: (each.run, each.query)):
        first, *more = mine
        name = f"{first.run} · {first.query}" if several else first.query
        lines += ["\n"] if lines else []
        lines.append(f" {printable(name)}\n")
        lines += [f"{printable(line)}\n" for each in (first, *more) for line in _lines(each)]
    return "".join(lines)


def _lines(verdict: ExplainedVerdict) -> Iterator[str]:
    """Yield one verdict in lines: what it is, then why."""
    facts = [verdict.aspect]
    facts += [one_line(verdict.item, 120)] if verdict.item != verdict.query else []
    facts += [] if verdict.rank is None else [f"chunk {verdict.rank}"]
    facts.append("failed" if verdict.value is None else f"verdict {verdict.value}")
    facts += [] if verdict.probability is None else [f"probability {verdict.probability:.2f}"]
    yield f"   {' · '.join(facts)}"
    if verdict.reason:
        yield f"     why: {one_line(verdict.reason, 200)}"
    if verdict.quote:
        missing = " (not in the chunk)" if verdict.unproven else ""
        yield f"     quote: {one_line(verdict.quote, 200)}{missing}"

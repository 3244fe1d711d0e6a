"""Plans as documents: how many queries, what they show, and the curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.spelling import counted, name_relations
from findwell.show.document import Document, Line, Notes
from findwell.show.grid import Grid
from findwell.show.tables import number

if TYPE_CHECKING:
    from findwell.evaluation.comparison.power import PowerAnalysis, PowerPlan
    from findwell.show.document import Part
    from findwell.statistics.intervals import Quantity


def document(found: PowerAnalysis) -> Document:
    """Return what the first plan says, what more queries would bring, and the other plans."""
    first, *others = found.plans
    parts: list[Part] = [Line(_heading(first)), Notes(tuple(sentences(first)), whole=True)]
    parts += [_curve(first)] if first.curve else []
    bases = dict.fromkeys(plan.basis for plan in others)
    parts += [_short([plan for plan in others if plan.basis == each]) for each in bases]
    parts += [Line(each, in_papers=True) for each in found.judges]
    return Document(parts, findings=found.findings, data=found.as_dict)


def sentences(plan: PowerPlan) -> list[str]:
    """Say what this many queries can show."""
    if plan.reason:
        return [f"nothing can be said: {plan.reason}"]
    odds = f"with a power of {plan.power:.0%} at the level {plan.alpha:g}"
    lines = [f"differences between two systems vary by {number(plan.sd)} (standard deviation)"]
    if plan.changed is not None:
        lines[0] += f"; {plan.changed:.0%} of the queries change"
    if plan.needed is not None:
        wanted = f"to see a difference of {plan.difference:g} {odds}: "
        lines.append(wanted + _quantity(plan.needed, "{:,.0f} queries"))
    if plan.detectable is not None and plan.queries is not None:
        hand = f"{counted(plan.queries)} at hand"
        lines.append(f"the {hand} show a difference of {_quantity(plan.detectable)} {odds}")
        if plan.seen is not None:
            lines.append(f"they show a difference of {plan.difference:g} in {_share(plan.seen)}")
    if plan.width is not None:
        lines.append(f"their {1 - plan.alpha:.0%} interval will be {_quantity(plan.width)} wide")
    return lines


def _heading(plan: PowerPlan) -> str:
    if not plan.measure:
        return "from assumed numbers"
    return f"{plan.measure}{name_relations([plan.relation], ' by ')}: from {plan.basis}"


def _quantity(found: Quantity, form: str = "{:.4f}") -> str:
    if found.value is None:
        return f"unknown, {found.reason}"
    return form.format(found.value) + (f" ({found.reason})" if found.reason else "")


def _share(found: Quantity) -> str:
    return _quantity(found) if found.value is None else f"{found.value:.0%} of cases"


def _short(plans: list[PowerPlan]) -> Grid:
    """Return a row for each plan; all of them are planned from the same systems."""
    rows = []
    for plan in plans:
        found = (plan.needed, "{:,.0f}"), (plan.detectable, "{:.4f}"), (plan.width, "{:.4f}")
        cells = [_quantity(each, form) if each else plan.reason or "–" for each, form in found]
        rows.append([_heading(plan).partition(": ")[0], *cells])
    header = ["", "queries needed", "detectable difference", "interval width"]
    return Grid(f"other measures, from {plans[0].basis}", header, rows)


def _curve(plan: PowerPlan) -> Grid:
    wanted = plan.difference is not None
    header = ["queries", *([f"power for {plan.difference:g}"] if wanted else [])]
    header += ["detectable difference", "interval width"]
    rows = [
        [f"{point.queries:,}"]
        + (["–" if point.power is None else f"{point.power:.0%}"] if wanted else [])
        + [number(point.detectable), number(point.width)]
        for point in plan.curve
    ]
    return Grid("what more queries bring", header, rows, left=0)

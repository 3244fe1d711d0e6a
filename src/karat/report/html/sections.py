"""The sections of a report, from the headline to what made the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat import __version__
from karat.errors import KaratError
from karat.report.charts.svg import text
from karat.report.comparison import notes
from karat.report.html.insights import insights
from karat.report.html.markup import definitions, figure, scroll
from karat.report.layout import interval, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from karat.comparison.systems import System
    from karat.report.html.prepared import Prepared
    from karat.report.panel import Panel

JUDGED_AT = 10
JUDGED = f"Judged @{JUDGED_AT}"


def overview(prepared: Prepared) -> str:
    """Return what stands out, and the headline table."""
    listed = "".join(f"<li>{each}</li>" for each in insights(prepared.panel))
    first = f'<div class="card"><ul class="insights">{listed}</ul></div>' if listed else ""
    return first + f'<div class="card">{scroll(_headline(prepared.panel), "Headline")}</div>'


def _headline(panel: Panel) -> str:
    """One row a system and one column a measure, or one row a measure where there is one system."""
    if len(panel.names) == 1:
        return _alone(panel)
    heads = "".join(f'<th scope="col">{text(str(each))}</th>' for each in panel.measures)
    rows = []
    for system in panel.systems:
        cells = "".join(
            _value(
                panel.summary[system.name, str(measure)],
                best=_leads(panel, system.name, at),
            )
            for at, measure in enumerate(panel.measures)
        )
        covered = "".join(f"<td>{cell}</td>" for cell in _coverage(panel, system).values())
        name = f'<th scope="row" class="left">{text(system.name)}</th>'
        rows.append(f"<tr>{name}{cells}{covered}</tr>")
    more = "".join(f'<th scope="col">{head}</th>' for head in _coverage(panel, panel.systems[0]))
    return (
        f'<table class="sortable"><caption>{_interval(panel)} ▲ marks the best of a column.'
        f'</caption><thead><tr><th scope="col" class="left">System</th>{heads}{more}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _alone(panel: Panel) -> str:
    system = panel.systems[0]
    rows = []
    for measure in panel.measures:
        row = panel.summary[system.name, str(measure)]
        name = f'<th scope="row" class="left">{text(str(measure))}</th>'
        numbers = f'<td data-v="{_raw(row["value"])}">{number(row["value"])}</td>'
        numbers += f'<td data-v="{_raw(row["low"])}">{interval(row["low"], row["high"])}</td>'
        counts = "".join(f"<td>{row[key]:,}</td>" for key in ("n", "undefined", "failed"))
        rows.append(f"<tr>{name}{numbers}{counts}</tr>")
    level = system.result.level
    heads = ["Value", "Interval" if level is None else f"{level:.0%} interval"]
    heads += ["Queries", "No value", "Judge failed"]
    more = "".join(f'<th scope="col">{head}</th>' for head in heads)
    judged = _coverage(panel, system)[JUDGED]
    return (
        f'<table class="sortable"><caption>{_interval(panel)} Of the top {JUDGED_AT}, {judged} '
        'carry a judgement.</caption><thead><tr><th scope="col" class="left">Measure</th>'
        f"{more}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _coverage(panel: Panel, system: System) -> dict[str, str]:
    """Return how many queries count, and how much of what was retrieved was ever judged."""
    rows = [panel.summary[system.name, str(measure)] for measure in panel.measures]
    heads = {"Queries": "n", "No value": "undefined"}
    if any(row["failed"] for row in panel.summary.values()):
        heads["Failed"] = "failed"
    found = {head: f"{max(row[key] for row in rows):,}" for head, key in heads.items()}
    try:
        relation = panel.measures[0].relation
        name = f"judged@{JUDGED_AT}" + (f"/{relation}" if relation else "")
        judged = system.result.score([name])[system.run, name]
    except KaratError:
        judged = None
    return found | {JUDGED: "–" if judged is None else f"{judged:.0%}"}


def _value(row: Mapping[str, Any], *, best: bool) -> str:
    inner = f'<span class="best">{number(row["value"])}</span>' if best else number(row["value"])
    if row["low"] is not None:
        inner += f'<span class="interval">{interval(row["low"], row["high"])}</span>'
    return f'<td data-v="{_raw(row["value"])}">{inner}</td>'


def _raw(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


def _leads(panel: Panel, name: str, at: int) -> bool:
    measure = panel.measures[at]
    values = {
        system: panel.summary[system, str(measure)]["value"]
        for system in panel.names
        if panel.summary[system, str(measure)]["value"] is not None
    }
    if len(set(values.values())) < 2 or name not in values or not measure.unit_interval:
        return False
    top = (max if measure.higher_is_better else min)(values.values())
    return bool(values[name] == top)


def _interval(panel: Panel) -> str:
    result = panel.systems[0].result
    if result.level is None:
        return "Means over the queries."
    clustered = (
        f", queries with the same {text(result.options.cluster)} together"
        if result.options.cluster
        else ""
    )
    return f"Means over the queries with {result.level:.0%} intervals{clustered}."


def distributions(prepared: Prepared) -> str:
    """Return how queries are spread."""
    note = (
        '<p class="note">How many queries have which value. The line is the mean, the band its '
        "interval. A bar at 0 is made of failures, and a mean in the middle may be nobody's value."
        "</p>"
    )
    return note + f'<div class="charts">{"".join(map(figure, prepared.distributions))}</div>'


def cutoffs(prepared: Prepared) -> str:
    """Return measures at many cutoffs, and the trade-off."""
    note = (
        '<p class="note">What a longer list buys, and what noise comes along: how many documents '
        "to hand to the model.</p>"
    )
    return note + f'<div class="charts">{"".join(map(figure, prepared.cutoffs))}</div>'


def comparison(prepared: Prepared) -> str:
    """Return the differences to the baseline."""
    found = prepared.panel.comparison
    if found is None or prepared.forest is None:
        return ""
    corrected = " after Holm's correction" if len(found.systems) > 2 else ""
    note = (
        f'<p class="note">A point is the mean difference over the queries that both have, the line '
        f"its {found.level:.0%} interval. p is how often chance alone makes as much{corrected}. "
        "A filled square is a difference that the test shows; a hollow one is not shown.</p>"
    )
    told = "".join(f"<li>{text(each)}</li>" for each in notes(found))
    return note + figure(prepared.forest) + f'<ul class="note">{told}</ul>'


def slices(prepared: Prepared) -> str:
    """Return the heat maps."""
    if not prepared.slices:
        return (
            '<p class="empty">The queries have no columns to slice by. Records of the gold with '
            "fields such as topic, or <code>--queries FILE</code>, bring some.</p>"
        )
    return "".join(map(figure, prepared.slices))


def findings(panel: Panel) -> str:
    """Return what is odd about the inputs."""
    if not panel.findings:
        return '<p class="card empty">Nothing is odd about the inputs.</p>'
    rows = []
    for found in panel.findings:
        examples = ", ".join(f"<code>{text(each)}</code>" for each in found.examples[:5])
        run = f"{text(found.run)}: " if found.run else ""
        fix = f" · {text(found.fix)}" if found.fix else ""
        rows.append(
            f"<li><strong>{run}{found.count:,} × {text(found.message)}</strong>"
            f'<div class="fix">{examples}{fix}</div></li>'
        )
    return f'<div class="card"><ul class="findings">{"".join(rows)}</ul></div>'


def provenance(panel: Panel) -> str:
    """Return what made the numbers, a card a system."""
    cards = "".join(
        f'<div class="card"><h3>{text(system.name)}</h3>{definitions(_made(system))}</div>'
        for system in panel.systems
    )
    return f'<div class="made">{cards}</div>'


def _made(system: System) -> list[tuple[str, str]]:
    result = system.result
    versions = result.provenance.saved.get("versions", {"karat": __version__})
    pairs = [
        ("folder", system.given),
        ("made", str(result.provenance.saved.get("created", ""))),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("run", system.run),
        ("dialect", result.dialect),
        ("matched by", "; ".join(_relations(result.provenance.settings))),
        ("ids", result.provenance.ids),
        (
            "policies",
            ", ".join(
                f"{name} {each}" for name, each in result.provenance.policy.as_dict().items()
            ),
        ),
        ("intervals", _methods(result.interval)),
    ]
    pairs += [(f"judge {name}", each) for name, each in _flat(result.judge)]
    for each in result.provenance.inputs:
        sha256 = each.as_dict()["sha256"]
        known = f" · sha256 {sha256[:16]}…" if sha256 else ""
        pairs.append((each.role, f"{each.path or each.kind}{known}"))
    timing = result.timing.get(system.run)
    if timing is not None and timing.p50 is not None:
        told = f"p50 {timing.p50:.1f} ms, p90 {timing.p90:.1f} ms, p99 {timing.p99:.1f} ms"
        pairs.append(("latency", told))
    return [(name, each) for name, each in pairs if each]


def _relations(settings: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for name, each in settings.items():
        told = ", ".join(f"{key} {value}" for key, value in each.items())
        yield f"{name} ({told})" if told else name


def _methods(about: dict[str, Any]) -> str:
    if about["level"] is None:
        return "none"
    methods = dict.fromkeys(
        method for each in about["methods"].values() for method in each.values() if method
    )
    return f"{about['level']:.0%}, {', '.join(methods) or 'no method'}"


def _flat(about: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, str]]:
    """Return what is known about a judge as lines."""
    for name, value in about.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name} ")
        elif value not in (None, "", [], ()):
            yield f"{before}{name}", str(value)[:500]

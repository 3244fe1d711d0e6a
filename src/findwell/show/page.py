"""The report as one HTML file that needs nothing else: what it says, from headline to inputs."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell import __version__
from findwell.core.errors import FindwellError
from findwell.core.estimate import Estimate
from findwell.core.spelling import counted, name_relations
from findwell.core.verdict import WORSE
from findwell.judges.limits import judge_lines, verdict_limit
from findwell.show.comparison import headlines, notes_on_tests, numbers
from findwell.show.html import document
from findwell.show.result import estimate_facts
from findwell.show.tables import best, chance
from findwell.show.timing import rows as timing_rows
from findwell.statistics.significance import adjust, subset_p
from findwell.statistics.verdicts import verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from findwell.core.data import Bools
    from findwell.evaluation.comparison.systems import System
    from findwell.show.panel import Panel
    from findwell.show.prepare import ReportContent

SECTIONS = {
    "overview": "Overview",
    "comparison": "Comparison",
    "where": "Where is it better or worse?",
    "queries": "Queries",
    "distributions": "Distributions",
    "cutoffs": "Cutoffs",
    "slices": "Slices",
    "more": "More charts",
    "findings": "Findings",
    "provenance": "What made the numbers",
}
LONGEST = 70  # letters of a title
JUDGED_AT = 10
ENOUGH = 5  # queries of a slice that is worth a sentence
WEAKER_BY = 0.1  # by how much a slice is below the rest
MOST = 3  # systems that have a sentence
LEVEL = 0.95  # of tests, for a result that was to have no intervals


def page(
    content: ReportContent,
    *,
    live: Mapping[str, Any] | None = None,
    tools: Mapping[str, Any] | None = None,
) -> str:
    """Return a report as HTML.

    `live` is for its script: where a server answers. `tools` fill the form that picks a slice and a
    baseline.
    """
    panel = content.panel
    result = panel.systems[0].result
    return document(
        "report.html.j2",
        _title(panel),
        sections={
            id_: name
            for id_, name in SECTIONS.items()
            if (id_ != "comparison" or panel.comparison is not None)
            and (id_ not in ("where", "more") or content.drawn[id_])
        },
        data=content.data,
        live=live,
        tools=tools,
        lede=list(_lede(panel)),
        lead=str(panel.measures[panel.lead]),
        insights=list(insights(panel)),
        measures=[str(measure) for measure in panel.measures],
        interval_level="" if result.level is None else f"{result.level:.0%}",
        cluster=result.options.cluster,
        headline=[_headline(panel, system) for system in panel.systems],
        any_failed=any(row["failed"] for row in panel.summary.values()),
        judged_at=JUDGED_AT,
        comparison=panel.comparison,
        tests=[] if panel.comparison is None else [*notes_on_tests(panel.comparison)],
        drawn=content.drawn,
        notes=content.notes,
        slices={
            group: [*charts]
            for group, charts in groupby(content.drawn["slices"], key=attrgetter("group"))
        },
        findings=panel.findings,
        provenance=_provenance(panel.systems),
    )


def _title(panel: Panel) -> str:
    title = " · ".join(panel.names)
    several = len(panel.names) > 1
    return f"{len(panel.names)} systems" if several and len(title) > LONGEST else title


def _lede(panel: Panel) -> Iterator[str]:
    """Say in a line what was measured how."""
    result = panel.systems[0].result
    yield counted(panel.queries.height)
    yield f"dialect {result.dialect}{name_relations(result.matched_by.values())}"
    yield from judge_lines(each.result.judge for each in panel.systems)
    if panel.only is not None:
        yield f"only where {panel.only[0]} is {panel.only[1]}"
    if len(panel.names) > 1:
        yield f"baseline {panel.names[0]}"


def _headline(panel: Panel, system: System) -> dict[str, Any]:
    """Return the values of a system, how many queries count, and how much was ever judged."""
    rows = []
    for measure in panel.measures:
        values = {name: panel.summary[name, str(measure)]["value"] for name in panel.names}
        leading = best(values, higher_is_better=measure.higher_is_better)
        leads = measure.unit_interval and system.name in leading
        result = system.result
        leads = leads and not verdict_limit(result.judge, result.relation_name(measure))
        rows.append(panel.summary[system.name, str(measure)] | {"best": leads})
    counts = {key: max(row[key] for row in rows) for key in ("n", "undefined", "failed")}
    return {"name": system.name, "rows": rows, "judged": _judged(panel, system), **counts}


def _judged(panel: Panel, system: System) -> str:
    relation = panel.measures[0].relation
    name = f"judged@{JUDGED_AT}" + (f"/{relation}" if relation else "")
    try:
        judged = system.result.score([name])[system.run, name]
    except FindwellError:
        judged = None
    return "–" if judged is None else f"{judged:.0%}"


def insights(panel: Panel) -> Iterator[dict[str, Any]]:
    """Return what stands out, the first thing that a reader of a report reads; one per sentence."""
    yield from _compared(panel)
    yield from _losses(panel)
    yield from _nothing_found(panel)
    yield from _weakest(panel)
    values = panel.pairing.table[:, panel.lead]
    without = int((np.isnan(values) & _asked(panel)).any(axis=0).sum())
    if without:
        yield {"kind": "no value", "queries": without}
    if panel.findings:
        yield {"kind": "findings", "count": len(panel.findings)}


def _asked(panel: Panel) -> Bools:
    """Say where a value can be expected: where a system was asked, if it was asked others."""
    unpaired = panel.comparison is not None and panel.comparison.unpaired
    asked = panel.pairing.asked if unpaired else None
    return np.ones((len(panel.names), panel.pairing.n), dtype=bool) if asked is None else asked


def _compared(panel: Panel) -> Iterator[dict[str, Any]]:
    found, lead = panel.comparison, panel.measures[panel.lead]
    if found is None:
        row = panel.summary[panel.names[0], str(lead)]
        if row["value"] is not None:
            yield {"kind": "alone", "row": row}
        return
    for each in headlines(found):
        yield {"kind": "compared", "said": each}


def _losses(panel: Panel) -> Iterator[dict[str, Any]]:
    """Name the slices in which a system is worse than the baseline, the largest loss first."""
    lead = panel.measures[panel.lead]
    for system, rows in panel.slice_differences.items():
        worse = [row for row in rows if row["verdict"] == WORSE]
        worse.sort(key=lambda row: row["difference"] * (1 if lead.higher_is_better else -1))
        if worse:
            yield {
                "kind": "losses",
                "system": system,
                "slices": counted(len(worse), "slice", "slices"),
                "named": [
                    f"{row['column']} {row['slice']} ({numbers(row)[2]})" for row in worse[:MOST]
                ],
                "more": max(len(worse) - MOST, 0),
            }


def _nothing_found(panel: Panel) -> Iterator[dict[str, Any]]:
    parts: list[str] = []
    for at, name in enumerate(panel.names):
        values = panel.pairing.table[at, panel.lead]
        known = int((~np.isnan(values)).sum())
        if known and panel.zero(at):
            of = f"{known:,}" if parts else counted(known)
            parts.append(f"{panel.zero(at):,} of {of} with {name}")
    more = f" and {len(parts) - MOST} more systems" if len(parts) > MOST else ""
    if parts:
        yield {"kind": "nothing found", "systems": ", ".join(parts[:MOST]) + more}


def _weakest(panel: Panel) -> Iterator[dict[str, Any]]:
    """Name for the first systems the slice that is furthest below the rest, and whether it is so.

    p is corrected for all slices of the system that were looked at.
    """
    if not panel.measures[panel.lead].higher_is_better:
        return
    for at, name in enumerate(panel.names[:MOST]):
        values = panel.pairing.table[at, panel.lead]
        known = ~np.isnan(values)
        found: list[dict[str, Any]] = []
        parts: list[Bools] = []
        for column, labels in panel.facets.items():
            mine = panel.labels(column)
            for label in labels:
                inside = (mine == label).to_numpy() & known
                rest = ~inside & known
                if inside.sum() >= ENOUGH and rest.sum() >= ENOUGH:
                    means = (float(values[inside].mean()), float(values[rest].mean()))
                    about = {"column": column, "label": label, "queries": int(inside.sum())}
                    found.append(about | {"inside": means[0], "outside": means[1]})
                    parts.append(inside[known])
        if not found:
            continue
        chances = adjust(subset_p(values[known], parts), "bh")
        low, p = min(
            zip(found, chances, strict=True),
            key=lambda each: each[0]["inside"] - each[0]["outside"],
        )
        if low["inside"] - low["outside"] < -WEAKER_BY:
            sure = _how_sure(panel, low, p, len(found))
            yield {"kind": "weakest", "system": name, **low, **sure}


def _how_sure(panel: Panel, low: Mapping[str, Any], p: float | None, slices: int) -> dict[str, Any]:
    """Say whether a slice is weaker than the rest; of clustered queries nothing is tested here."""
    options = panel.systems[0].result.options
    level = options.level or LEVEL
    p = None if options.cluster else p
    difference = Estimate(low["inside"] - low["outside"], None, None, level, "", low["queries"])
    verdict = verdict_of(difference, p, level=level)
    tested = f"p {chance(p)} after correction for {counted(slices, 'slice', 'slices')}"
    return {
        "weaker": verdict.word == WORSE,
        "tested": "not tested, as queries are clustered" if options.cluster else tested,
    }


def _provenance(systems: Sequence[System]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what made the numbers: what all systems share once, then what each has of its own."""
    facts = [(system.name, provenance(system)) for system in systems]
    if len(facts) == 1:
        return facts
    shared = [fact for fact in facts[0][1] if all(fact in each for _, each in facts)]
    own = [(name, [fact for fact in each if fact not in shared]) for name, each in facts]
    return [("All systems", shared), *own]


def provenance(system: System) -> list[tuple[str, str]]:
    """Return what made the numbers of a system: names and values."""
    result = system.result
    policies = result.provenance.policy.as_dict()
    versions = result.provenance.saved.get("versions", {"findwell": __version__})
    pairs = [
        ("folder", system.given),
        ("made", str(result.provenance.saved.get("created", ""))),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("run", system.run),
        ("dialect", result.dialect),
        ("matched by", "; ".join(_relations(result.provenance.settings))),
        ("ids", result.provenance.ids),
        ("policies", ", ".join(f"{name} {each}" for name, each in policies.items())),
        ("intervals", _methods(result.interval)),
    ]
    pairs += [(f"judge {name}", each) for name, each in _flat(result.judge)]
    if result.estimates is not None:
        pairs += estimate_facts(result.estimates, system.run)
    for each in result.provenance.inputs:
        sha256 = each.as_dict()["sha256"]
        known = f" · sha256 {sha256[:16]}…" if sha256 else ""
        pairs.append((each.role, f"{each.path or each.kind}{known}"))
    timing = result.timing.get(system.run)
    if timing is not None and timing.p50 is not None:
        times = f"p50 {timing.p50:.1f} ms, p90 {timing.p90:.1f} ms, p99 {timing.p99:.1f} ms"
        pairs.append(("latency", times))
    if timing is not None:
        pairs += [each for each in timing_rows(timing) if not each[0].startswith("latency")]
    return [(name, each) for name, each in pairs if each]


def _relations(settings: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for name, each in settings.items():
        known = ", ".join(f"{key} {value}" for key, value in each.items())
        yield f"{name} ({known})" if known else name


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

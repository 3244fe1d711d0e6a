"""The report as one HTML file that needs nothing else: what it says, from headline to inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from findwell import __version__
from findwell.core.errors import FindwellError
from findwell.core.estimate import Estimate
from findwell.core.spelling import counted, name_method
from findwell.core.verdict import WORSE
from findwell.evaluation.results.misses import CAUSES
from findwell.judges.limits import judge_limits, judge_lines, judge_name
from findwell.show.charts.causes import paint
from findwell.show.charts.svg import element, linear, link_to, title
from findwell.show.comparison import best_systems, count_of_queries, headlines, notes_on_tests
from findwell.show.html import document
from findwell.show.result import estimate_facts
from findwell.show.tables import chance, decimals, interval, number
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
    "overview": "Verdict",
    "where": "Where",
    "queries": "Queries",
    "causes": "Why it fails",
    "comparison": "All measures",
    "cutoffs": "Cutoffs",
    "distributions": "Distribution",
    "more": "More charts",
    "findings": "Findings",
    "provenance": "What made the numbers",
}
CHARTED = ("where", "causes", "comparison", "cutoffs", "distributions", "more")
LONGEST = 70  # letters of a title
JUDGED_AT = 10
ENOUGH = 5  # queries of a slice that is worth a sentence
WEAKER_BY = 0.1  # by how much a slice is below the rest
MOST = 3  # systems that have a sentence
LEVEL = 0.95  # of tests, for a result that was to have no intervals
BAR, BAR_HEIGHT = 1000.0, 26.0
# the parts of a bar: the word, the class of its colour, and what the table shows of it
COUNTED = (("won", "good", "better"), ("tied", "tied", "tied"), ("lost", "bad", "worse"))
UNREADABLE = ("name", "judge", "weights", "thresholds")  # of what is known about a judge


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
    answers = _answers(panel)
    sections = {
        id_: name for id_, name in SECTIONS.items() if id_ not in CHARTED or content.drawn[id_]
    }
    if len(panel.names) > 2:  # which one to take is asked before where it is better
        named = {"overview": "Verdict", "comparison": "All systems"}
        sections = named | {id_: name for id_, name in sections.items() if id_ not in named}
    return document(
        "report.html.j2",
        answers[0]["sentence"] if answers else _title(panel),
        sections=sections,
        data=content.data,
        live=live,
        tools=tools,
        lede=list(_lede(panel)),
        lead=str(panel.measures[panel.lead]),
        answers=answers,
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
        causes=CAUSES,
        cause_paints={cause: paint(cause) for cause in CAUSES},
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
    yield _title(panel)
    yield counted(panel.queries.height)
    if how := name_method(result.dialect, result.matched_by.values()):
        yield how.removeprefix(" · ")
    yield from judge_lines(each.result.judge for each in panel.systems)
    if panel.only is not None:
        yield f"only where {panel.only[0]} is {panel.only[1]}"
    if len(panel.names) > 1:
        yield f"baseline {panel.names[0]}"


def _answers(panel: Panel) -> list[dict[str, Any]]:
    """Return the verdicts as the terminal says them, each with a bar of its queries."""
    if panel.comparison is None:
        return [_alone(panel)]
    found = panel.sliced
    lead = str(found.measures[0])
    answers = []
    for each in headlines(found):
        answer: dict[str, Any] = {
            "sentence": each.sentence,
            "word": each.word or "",
            "facts": each.facts,
            "bar": "",
            "parts": [],
        }
        if each.system:
            verdict = found.verdicts[found.baseline, each.system, lead]
            said = count_of_queries(verdict)
            counts = (verdict.won, verdict.tied, verdict.lost)
            if said in each.facts and any(counts):
                chosen = {} if len(panel.names) == 2 else {"b": each.system}
                parts = [
                    (word, count or 0, kind, link_to(show=show, **chosen))
                    for (word, kind, show), count in zip(COUNTED, counts, strict=True)
                ]
                answer["facts"] = [fact for fact in each.facts if fact != said]
                answer |= {"parts": parts, "bar": _bar(parts)}
        answers.append(answer)
    return answers


def _alone(panel: Panel) -> dict[str, Any]:
    """Return the value of the main measure of one system, and how many queries found nothing."""
    (name,), lead = panel.names, panel.measures[panel.lead]
    row = panel.summary[name, str(lead)]
    ends = row["low"], row["high"]
    value = "no value" if row["value"] is None else number(row["value"], decimals(*ends))
    reach = "" if row["low"] is None else f"{interval(*ends)}, "
    values = panel.pairing.table[0, panel.lead]
    parts = []
    if lead.unit_interval and lead.higher_is_better and row["n"]:
        zero, one = int((values == 0).sum()), int((values == 1).sum())
        parts = [
            (f"{lead} is 1:", one, "c0", link_to(show="one")),
            ("between:", row["n"] - zero - one, "tied", link_to(show="between")),
            (f"{lead} is 0:", zero, "none", link_to(show="zero")),
        ]
    return {
        "sentence": f"{name}: {lead} {value}",
        "word": "",
        "facts": [f"{reach}{counted(row['n'])} with a value"],
        "parts": parts,
        "bar": _bar(parts) if parts else "",
    }


def _bar(parts: Sequence[tuple[str, int, str, str]]) -> str:
    """Draw how many queries are of which kind; each part leads to its queries."""
    every = sum(count for _, count, _, _ in parts)
    across, start, drawn = linear((0, every or 1), (0, BAR)), 0, []
    for word, count, kind, link in parts:
        x, end = across(start), across(start + count)
        start += count
        if count:
            shape = {"x": x, "y": 0, "width": max(end - x - 2, 2.0), "height": BAR_HEIGHT}
            part = element("rect", title(f"{word} {count:,}"), class_=kind, **shape)
            drawn.append(element("a", part, href=link, tabindex="-1"))
    return (
        f'<svg class="chart counts" viewBox="0 0 {BAR:.0f} {BAR_HEIGHT:.0f}" '
        f'preserveAspectRatio="none" aria-hidden="true">{"".join(drawn)}</svg>'
    )


def _headline(panel: Panel, system: System) -> dict[str, Any]:
    """Return the values of a system, how many queries count, and how much was ever judged."""
    rows = [panel.summary[system.name, str(measure)] for measure in panel.measures]
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
    """Return what else stands out, one per sentence."""
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
    """Name the slice of a system that is furthest below the rest, if it is clearly below.

    p is corrected for all slices of the system that were looked at; clustered queries have no test.
    """
    options = panel.systems[0].result.options
    if options.cluster or not panel.measures[panel.lead].higher_is_better:
        return
    names = panel.names
    if panel.comparison is not None and len(names) > 2:  # of many systems the best is enough
        names = best_systems(panel.comparison)[:1]
    for name in names:
        values = panel.pairing.table[panel.names.index(name), panel.lead]
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
        clear = [
            {**low, "p": chance(p), "slices": counted(len(found), "slice", "slices")}
            for low, p in zip(found, chances, strict=True)
            if _weaker(low, p, options.level or LEVEL)
        ]
        if clear:
            low = min(clear, key=lambda each: each["inside"] - each["outside"])
            yield {"kind": "weakest", "system": name, **low}


def _weaker(low: Mapping[str, Any], p: float | None, level: float) -> bool:
    gap = low["inside"] - low["outside"]
    difference = Estimate(gap, None, None, level, "", low["queries"])
    return gap < -WEAKER_BY and verdict_of(difference, p, level=level).word == WORSE


def _provenance(systems: Sequence[System]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what made the numbers: what all systems share once, then what each has of its own."""
    facts = [(system.name, provenance(system)) for system in systems]
    if len(facts) == 1:
        return facts
    shared = [fact for fact in facts[0][1] if all(fact in each for _, each in facts)]
    own = [(name, [fact for fact in each if fact not in shared]) for name, each in facts]
    return [(name, each) for name, each in [("All systems", shared), *own] if each]


def provenance(system: System) -> list[tuple[str, str]]:
    """Return what made the numbers of a system: names and values."""
    result = system.result
    policies = result.provenance.policy.as_dict()
    versions = result.provenance.saved.get("versions", {"findwell": __version__})
    files = {str(each.path) for each in result.provenance.inputs}
    pairs = [
        ("folder", system.given if system.given not in files else ""),
        ("made", str(result.provenance.saved.get("created", ""))),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("run", "" if system.run == system.name else system.run),
        ("dialect", result.dialect),
        ("matched by", "; ".join(_relations(result.provenance.settings))),
        ("ids", result.provenance.ids),
        ("policies", ", ".join(f"{name} {each}" for name, each in policies.items())),
        ("intervals", _methods(result.interval)),
    ]
    if result.judge:
        facts = {name: each for name, each in result.judge.items() if name not in UNREADABLE}
        pairs += [("judge", judge_name(result.judge)), ("its worth", judge_limits(result.judge))]
        pairs += [(f"judge {name}", each) for name, each in _flat(facts)]
    if result.estimates is not None:
        pairs += estimate_facts(result.estimates, system.run)
    for each in result.provenance.inputs:
        sha256 = each.as_dict()["sha256"]
        known = f" · sha256 {sha256[:16]}…" if sha256 else ""
        pairs.append((each.role, f"{each.path or each.kind}{known}"))
    timing = result.timing.get(system.run)
    if timing is not None:
        if timing.p50 is not None:
            times = f"p50 {timing.p50:.1f} ms, p90 {timing.p90:.1f} ms, p99 {timing.p99:.1f} ms"
            pairs.append(("latency", times))
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
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{before}{name}", ", ".join(map(judge_name, value))
        elif value not in (None, "", [], ()):
            yield f"{before}{name}", str(value)[:500]

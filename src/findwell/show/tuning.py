"""A tuning as people read it: what was chosen, what it is worth, what it gains, what to paste."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from findwell.core.spelling import counted, name_relations
from findwell.core.verdict import BETTER, UNCLEAR, WORSE
from findwell.loop.tuning.choice import CURRENT, FEWEST_QUERIES
from findwell.loop.tuning.retriever_trials import AskedRetriever
from findwell.loop.tuning.tuning import SEVERAL_SLICES, curves_of
from findwell.show.charts.tuning import terminal_chart, tuning_chart
from findwell.show.document import Code, Document, Headline, LetterChart, Notes
from findwell.show.grid import Grid
from findwell.show.html import document as html_page
from findwell.show.tables import (
    chance,
    describe_finding,
    interval,
    limits,
    number,
    rounded,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from findwell.loop.tuning.choice import Gain
    from findwell.loop.tuning.retriever_trials import AskedSetting
    from findwell.loop.tuning.tuning import FusedRuns, SlicedChoice, Tuning
    from findwell.show.charts import Chart
    from findwell.show.document import Part

FORMATS = ("table", "json", "markdown", "html")
LISTED_SETTINGS = 8  # where there are too many runs for a curve, or none
SECTIONS = {
    "choice": "The choice",
    "curve": "The curve",
    "gains": "Gains",
    "paste": "Configuration",
    "findings": "Findings",
}


def document(tuning: Tuning) -> Document:
    """Return what was chosen and what it is worth, the curve, the gains, what to paste."""
    return Document(
        _parts(tuning),
        headlines=[Headline(advice(tuning))] if tuning.kept is not None else [],
        findings=tuning.findings,
        data=tuning.as_dict,
    )


def _parts(tuning: Tuning) -> Iterator[Part]:
    first, *more = grids(tuning)
    yield first
    yield Notes(tuple(notes(tuning)))
    if len(curves := curves_of(tuning)) == 1:
        yield LetterChart(partial(terminal_chart, curves[0], str(tuning.measure), tuning.level))
    yield from more
    if tuning.snippet is not None:
        yield Code(f"To paste into {tuning.engine}", tuning.snippet)


def charts(tuning: Tuning) -> list[Chart]:
    """Return the curves as drawings."""
    return [tuning_chart(each, str(tuning.measure), tuning.level) for each in curves_of(tuning)]


def page(tuning: Tuning) -> str:
    """Return a tuning as one HTML file that needs nothing else."""
    first, *more = grids(tuning)
    drawn, snippet = charts(tuning), tuning.snippet
    absent = {name for name, part in (("curve", drawn), ("paste", snippet)) if not part}
    return html_page(
        "tuning.html.j2",
        f"{tuning.engine} tuned by {tuning.measure}",
        sections={name: title for name, title in SECTIONS.items() if name not in absent},
        advice=advice(tuning),
        lede=[heading(tuning)],
        first=first,
        more=more,
        sentences=notes(tuning),
        charts=drawn,
        snippet=snippet or "",
        findings=[describe_finding(each) for each in tuning.findings],
    )


def advice(tuning: Tuning) -> str:
    """Say what to keep, where the choice is not better; otherwise nothing."""
    kept = tuning.kept
    if kept is None:
        return ""
    held_out, value = number(tuning.held_out.value), number(kept.value)
    if kept.over == CURRENT:
        return (
            f"Keep the current setting ({tuning.current}): the search found nothing better on "
            f"held-out queries ({tuning.measure} {held_out} against {value})"
        )
    return (
        f"Keep {kept.over}: fusing is not better on held-out queries ({tuning.measure} "
        f"{held_out} against {value} of {kept.over} alone)"
    )


def heading(tuning: Tuning) -> str:
    """Say in a line what was tuned how."""
    clusters = "" if tuning.cluster is None else f" · clusters by {tuning.cluster}"
    source, settings = tuning.source, f"{len(tuning.grid.settings)} settings"
    if isinstance(source, AskedRetriever):
        return (
            f"{tuning.engine}: {settings} · {counted(source.plan.searched)} chose, "
            f"{source.plan.final} others for the claim{clusters}"
        )
    fused = " + ".join(source.runs)
    if roles := source.lists.engine.roles:
        pairs = zip(roles, source.runs, strict=True)
        fused = " + ".join(f"{role} {run}" for role, run in pairs)
    matched = name_relations([source.matched_by])
    by = tuning.engine if tuning.grid.axis != "space" else "the best setting of a space"
    return (
        f"{fused} by {by} · {counted(tuning.choice.n)}, {settings} · dialect "
        f"{source.dialect}{matched}{clusters}"
    )


def grids(tuning: Tuning) -> Iterator[Grid]:
    """Lay out the choice, the gains, the settings, the other measures, the slices."""
    source, level = tuning.source, f"{tuning.level:.0%} interval"
    values = [
        ("held out", tuning.chosen, tuning.held_out),
        ("in sample", tuning.chosen, tuning.in_sample),
    ]
    if not isinstance(source, AskedRetriever) and source.current_value is not None:
        values.append(("current", tuning.current, source.current_value))
    yield Grid(
        heading(tuning),
        [str(tuning.measure), "setting", "value", level],
        [
            [name, str(setting), number(found.value), interval(found.low, found.high)]
            for name, setting, found in values
        ],
        left=2,
        best={(0, 2)},
    )
    if tuning.gains:
        yield _gains(tuning)
    if isinstance(source, AskedRetriever):
        yield _furthest(tuning, source)
    elif len(curves_of(tuning)) != 1:
        yield _best_in_sample(tuning)
    if tuning.others:
        yield Grid(
            "other measures, with the same choices",
            ["measure", "held out", level, "in sample"],
            [
                [
                    other.measure,
                    number(other.held_out.value),
                    interval(other.held_out.low, other.held_out.high),
                    number(other.in_sample),
                ]
                for other in tuning.others
            ],
        )
    if not isinstance(source, AskedRetriever):
        for each in source.sliced:
            yield _slices(tuning, each)


def _gains(tuning: Tuning) -> Grid:
    current = f"; current: {tuning.current}" if isinstance(tuning.source, AskedRetriever) else ""
    columns: dict[str, Callable[[Gain], str]] = {
        "against": lambda gain: gain.over,
        "verdict": lambda gain: gain.verdict.word,
        "value": lambda gain: number(gain.value),
        "gain": lambda gain: signed(gain.verdict.difference.value),
        f"{tuning.level:.0%} interval": lambda gain: limits(
            gain.verdict.difference.low, gain.verdict.difference.high
        ),
        "p (Holm)": lambda gain: chance(gain.verdict.p),
        "won/lost": lambda gain: f"{gain.verdict.won}/{gain.verdict.lost}",
    }
    words = [gain.verdict.word for gain in tuning.gains]
    return Grid(
        f"the chosen setting on held-out queries{current}",
        list(columns),
        [[cell(gain) for cell in columns.values()] for gain in tuning.gains],
        left=2,
        good={(row, 1) for row, word in enumerate(words) if word == BETTER},
        bad={(row, 1) for row, word in enumerate(words) if word == WORSE},
    )


def _best_in_sample(tuning: Tuning) -> Grid:
    """List the best settings, where a curve cannot show them."""
    sign, choice = 1 if tuning.measure.higher_is_better else -1, tuning.choice
    values = [sign * (each.value or 0.0) for each in choice.curve]
    order = sorted(range(len(values)), key=lambda at: -values[at])[:LISTED_SETTINGS]
    return Grid(
        f"the best {len(order)} settings in sample",
        ["setting", str(tuning.measure), f"{tuning.level:.0%} interval", "best of bootstraps"],
        [
            [
                str(tuning.grid.settings[at]),
                number(choice.curve[at].value),
                interval(choice.curve[at].low, choice.curve[at].high),
                f"{choice.votes[at]:.0%}",
            ]
            for at in order
        ],
    )


def _slices(tuning: Tuning, sliced: SlicedChoice) -> Grid:
    rows = [
        [
            each.label,
            tuning.grid.label(each.chosen),
            str(each.n),
            number(each.held_out),
            number(each.shared),
            number(each.in_sample),
        ]
        for each in sliced.slices
        if each.own
    ]
    few = [each for each in sliced.slices if not each.own]
    if few:
        queries = str(sum(each.n for each in few))
        rows.append([f"{len(few)} smaller", "as for all", queries, "", "", ""])
    return Grid(
        f"by {sliced.column}: a setting of its own for each slice",
        [sliced.column, "own setting", "queries", "held out", "one for all", "in sample"],
        rows,
        left=2,
    )


def _furthest(tuning: Tuning, source: AskedRetriever) -> Grid:
    """List the configurations of a retriever that came far."""
    sign = 1 if tuning.measure.higher_is_better else -1

    def place(each: AskedSetting) -> tuple[bool, int, float]:
        return bool(each.reason), -each.rung, -sign * (each.value.value or 0.0)

    def milliseconds(each: AskedSetting, name: str) -> str:
        found = None if each.timing is None else getattr(each.timing, name)
        return "–" if found is None else f"{found:,.3g} ms"

    shown = sorted(source.settings, key=place)[:LISTED_SETTINGS]
    columns: dict[str, Callable[[AskedSetting], str]] = {
        "setting": lambda each: str(each.setting),
        "rung": lambda each: str(each.rung),
        "queries": lambda each: str(each.queries),
        str(tuning.measure): lambda each: "given up" if each.reason else number(each.value.value),
        "p50": lambda each: milliseconds(each, "p50"),
        "p90": lambda each: milliseconds(each, "p90"),
    }
    if any(each.failed for each in source.settings):
        columns["failed"] = lambda each: str(each.failed)
    more = len(source.settings) - len(shown)
    title = "how far settings came; values are of the queries that chose"
    return Grid.of(f"{title} ({more} more)" if more else title, columns, shown)


def notes(tuning: Tuning) -> list[str]:
    """Say what the numbers mean."""
    source = tuning.source
    if isinstance(source, AskedRetriever):
        said, more = _notes_about_asking(tuning, source), []
    else:
        said, more = _notes_about_folds(tuning, source), [*map(_per_slice, source.sliced)]
        if any(part.own for each in source.sliced for part in each.slices):
            more.append(f"careful: {SEVERAL_SLICES}")
        if source.lists.engine.exact:
            more.append(f"not exact: {source.lists.engine.exact}")
    unclear = [gain for gain in tuning.gains if gain.verdict.word == UNCLEAR]
    return [*said, *(_undecided(gain, tuning) for gain in unclear), *more]


def _notes_about_folds(tuning: Tuning, source: FusedRuns) -> list[str]:
    choice, every, rule = tuning.choice, len(tuning.grid.settings), source.rule
    near = {"weights": "nearly the same weights", "k": "nearly the same k"}
    like = near.get(tuning.grid.axis, "this setting, or one like it")
    plateau = (
        f"plateau: with {counted(choice.n)}, {len(choice.plateau)} of {every} settings cannot be "
        "ruled out as the best"
    )
    curves = curves_of(tuning)
    if len(curves) == 1 and len(choice.plateau) > 1:
        begin, end = curves[0].plateau
        gaps = ", with gaps" if curves[0].gaps else ""
        plateau += f", {curves[0].axis} {begin:g} to {end:g}{gaps}"
    dealt = f"({rule.folds} folds, {rule.repeats} times)"
    return [
        f"held out: each query scored by settings that the other folds chose {dealt}",
        f"optimism {signed(choice.optimism)}: how much the tuning queries flatter this setting",
        f"stability {choice.stability:.0%}: share of folds that picked {like}",
        plateau,
    ]


def _notes_about_asking(tuning: Tuning, source: AskedRetriever) -> list[str]:
    calls, choice, plan = source.calls, tuning.choice, source.plan
    asked = f"{counted(calls.asked, 'question', 'questions')} asked"
    asked += f", {calls.kept:,} answers kept from before" if calls.kept else ""
    asked += f", {calls.failed:,} failed" if calls.failed else ""
    whole = len(source.settings) * (plan.searched + plan.final)
    said = [
        "held out: on queries that only the chosen and the current setting were asked",
        f"rungs, {plan}",
        f"{asked}; every setting on every query would take {whole:,}",
    ]
    if choice.optimism is not None:
        what = "in sample − held out, on different queries: luck and optimism together"
        said.append(f"optimism {signed(choice.optimism)}: {what}")
    if choice.stability is not None:
        said.append(
            f"stability {choice.stability:.0%}: share of bootstraps of the last rung that it wins; "
            f"{len(choice.plateau)} of {len(source.halving.rungs[-1])} settings there cannot be "
            "ruled out as the best"
        )
    if not tuning.gains:
        said.append("no current setting is known: below [current] in the space, or as defaults")
    return said


def _undecided(gain: Gain, tuning: Tuning) -> str:
    unit = "queries" if tuning.cluster is None else "clusters"
    asked = isinstance(tuning.source, AskedRetriever)
    said = f"against {'the current setting' if asked else gain.over}: unclear"
    if gain.needed is not None:
        size = number(abs(gain.verdict.difference.value or 0.0), 3)
        return (
            f"{said}; a difference this small ({size}) needs about {rounded(gain.needed):,} {unit}"
        )
    return said + (f"; {gain.verdict.reason}" if gain.verdict.reason else "")


def _per_slice(sliced: SlicedChoice) -> str:
    gain = sliced.gain
    if not any(each.own for each in sliced.slices):
        return f"by {sliced.column}: no slice has the {FEWEST_QUERIES} queries that a choice takes"
    verdict = {BETTER: "is better than", WORSE: "is worse than"}
    said = verdict.get(gain.verdict.word, "is not clearly better than")
    return (
        f"by {sliced.column}: one setting for each slice {said} one for all on held-out queries "
        f"({signed(gain.verdict.difference.value)}, p {chance(gain.p)})"
    )

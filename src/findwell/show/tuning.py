"""A tuning as people read it: what was chosen, what it is worth, what it gains, what to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.spelling import counted, name_relations
from findwell.loop.tuning.choice import FEWEST
from findwell.loop.tuning.conclusion import SEVERAL_SLICES
from findwell.loop.tuning.curves import curves_of
from findwell.loop.tuning.gains import BETTER, CURRENT, UNCLEAR, WORSE
from findwell.show import escape
from findwell.show.charts.tuning import terminal_chart, tuning_chart
from findwell.show.escape import printable
from findwell.show.grid import Grid
from findwell.show.html import document, notebook_html
from findwell.show.tables import (
    bullets,
    chance,
    describe_finding,
    interval,
    limits,
    number,
    reading_width,
    render_grids,
    signed,
    to_json,
)
from findwell.show.terminal import wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.core.estimate import Estimate
    from findwell.loop.tuning.conclusion import SlicedChoice, Tuning
    from findwell.loop.tuning.gains import Gain
    from findwell.show.charts import Chart

FORMATS = ("table", "json", "markdown", "html")
TOP = 8  # settings that are listed where there are too many runs for a curve
SECTIONS = {
    "choice": "The choice",
    "curve": "The curve",
    "gains": "Gains",
    "paste": "Configuration",
    "findings": "Findings",
}


def render(tuning: Tuning, how: str, *, color: bool = False, width: int | None = None) -> str:
    """Return a tuning in one of FORMATS, with a line break at the end."""
    if how == "json":
        return to_json(tuning.as_dict())
    if how == "html":
        return page(tuning)
    first, *more = grids(tuning)
    parts = [opening(advice(tuning), how, width)] if tuning.kept is not None else []
    parts += [render_grids([first], how, color=color, width=width)]
    said = bullets(notes(tuning), how, reading_width(width))
    parts += [*([""] if how == "markdown" else []), said, ""]
    if how == "table" and len(curves := curves_of(tuning)) == 1:
        drawn = terminal_chart(curves[0], str(tuning.measure), tuning.level, reading_width(width))
        parts += [drawn, ""]
    parts += [render_grids(more, how, color=color, width=width)]
    if tuning.snippet is not None:
        parts += ["", _snippet(tuning.engine.name, tuning.snippet, how)]
    return "\n".join(part.removesuffix("\n") for part in parts) + "\n"


def charts(tuning: Tuning) -> list[Chart]:
    """Return the curves as drawings."""
    return [tuning_chart(each, str(tuning.measure), tuning.level) for each in curves_of(tuning)]


def page(tuning: Tuning) -> str:
    """Return a tuning as one HTML file that needs nothing else."""
    first, *more = grids(tuning)
    drawn, snippet = charts(tuning), tuning.snippet
    absent = {name for name, part in (("curve", drawn), ("paste", snippet)) if not part}
    return document(
        "tuning.html.j2",
        f"{tuning.engine.name} tuned by {tuning.measure}",
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


def tuning_html(tuning: Tuning) -> str:
    """Return a tuning for notebooks."""
    said = [*notes(tuning), *map(describe_finding, tuning.findings)]
    return notebook_html(grids(tuning), said, heading=advice(tuning))


def advice(tuning: Tuning) -> str:
    """Say what to keep, where the choice is not better; otherwise nothing."""
    kept = tuning.kept
    if kept is None:
        return ""
    if kept.over == CURRENT:
        return keep_current(str(tuning.current), str(tuning.measure), tuning.choice.held_out, kept)
    return (
        f"Keep {kept.over}: fusing is not better on held-out queries ({tuning.measure} "
        f"{number(tuning.choice.held_out.value)} against {number(kept.value)} of {kept.over} alone)"
    )


def keep_current(setting: str, measure: str, held_out: Estimate, kept: Gain) -> str:
    """Say that a search found nothing better than the setting in use."""
    return (
        f"Keep the current setting ({setting}): the search found nothing better on held-out "
        f"queries ({measure} {number(held_out.value)} against {number(kept.value)})"
    )


def opening(line: str, how: str, width: int | None) -> str:
    """Return the first line of a text, with an empty one below it."""
    if how == "markdown":
        return f"**{escape.markdown(line)}**\n\n"
    return wrap(printable(line), reading_width(width)) + "\n\n"


def heading(tuning: Tuning) -> str:
    """Say in a line what was tuned how."""
    fused = " + ".join(tuning.runs)
    if tuning.engine.roles:
        pairs = zip(tuning.engine.roles, tuning.runs, strict=True)
        fused = " + ".join(f"{role} {run}" for role, run in pairs)
    clusters = "" if tuning.cluster is None else f" · clusters by {tuning.cluster}"
    matched = name_relations([tuning.matched_by])
    by = tuning.engine.name if tuning.grid.axis != "space" else "the best setting of a space"
    return (
        f"{fused} by {by} · {counted(tuning.choice.n)}, "
        f"{len(tuning.grid.settings)} settings · dialect {tuning.dialect}{matched}{clusters}"
    )


def grids(tuning: Tuning) -> Iterator[Grid]:
    """Lay out the choice, the gains, the other measures, the slices."""
    choice, level = tuning.choice, f"{tuning.level:.0%} interval"
    values = [
        ("held out", number(choice.held_out.value), choice.held_out),
        ("in sample", number(choice.in_sample.value), choice.in_sample),
        *(
            [("current", number(tuning.current_value.value), tuning.current_value)]
            if tuning.current_value is not None
            else []
        ),
    ]
    yield Grid(
        heading(tuning),
        [str(tuning.measure), "setting", "value", level],
        [
            [
                name,
                str(tuning.current if name == "current" else tuning.setting),
                value,
                interval(span.low, span.high),
            ]
            for name, value, span in values
        ],
        left=2,
        best={(0, 2)},
    )
    yield _gains(tuning)
    if len(curves_of(tuning)) != 1:
        yield _top(tuning)
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
    for each in tuning.sliced:
        yield _slices(tuning, each)


def _gains(tuning: Tuning) -> Grid:
    rows = [
        [
            gain.over,
            gain.verdict,
            number(gain.value),
            signed(gain.difference),
            limits(gain.low, gain.high),
            chance(gain.p_adjusted),
            f"{gain.wins}/{gain.losses}",
        ]
        for gain in tuning.gains
    ]
    verdicts = [gain.verdict for gain in tuning.gains]
    return Grid(
        "the chosen setting on held-out queries",
        [
            "against",
            "verdict",
            "value",
            "gain",
            f"{tuning.level:.0%} interval",
            "p (Holm)",
            "won/lost",
        ],
        rows,
        left=2,
        good={(row, 1) for row, verdict in enumerate(verdicts) if verdict == BETTER},
        bad={(row, 1) for row, verdict in enumerate(verdicts) if verdict == WORSE},
    )


def _top(tuning: Tuning) -> Grid:
    """List the best settings, where a curve cannot show them."""
    sign = 1 if tuning.measure.higher_is_better else -1
    values = [sign * (each.value or 0.0) for each in tuning.choice.curve]
    order = sorted(range(len(values)), key=lambda at: -values[at])[:TOP]
    return Grid(
        f"the best {len(order)} settings in sample",
        ["setting", str(tuning.measure), f"{tuning.level:.0%} interval", "best of bootstraps"],
        [
            [
                str(tuning.grid.settings[at]),
                number(tuning.choice.curve[at].value),
                interval(tuning.choice.curve[at].low, tuning.choice.curve[at].high),
                f"{tuning.choice.votes[at]:.0%}",
            ]
            for at in order
        ],
    )


def _slices(tuning: Tuning, sliced: SlicedChoice) -> Grid:
    own = [each for each in sliced.slices if each.own]
    few = [each for each in sliced.slices if not each.own]
    rows = [
        [
            each.label,
            tuning.grid.label(each.chosen),
            str(each.n),
            number(each.held_out),
            number(each.shared),
            number(each.in_sample),
        ]
        for each in own
    ]
    if few:
        queries = str(sum(each.n for each in few))
        rows.append([f"{len(few)} smaller", "as for all", queries, "", "", ""])
    return Grid(
        f"by {sliced.column}: a setting of its own for each slice",
        [sliced.column, "own setting", "queries", "held out", "one for all", "in sample"],
        rows,
        left=2,
    )


def notes(tuning: Tuning) -> list[str]:
    """Say what the numbers mean."""
    choice = tuning.choice
    looks = "so much better the setting looks on the queries that chose it"
    dealt = f"({tuning.folds} folds, {tuning.repeats} times)"
    said = [
        f"held out: each query scored by settings that the other folds chose {dealt}",
        f"optimism {signed(choice.optimism)}: {looks}",
        f"stability {choice.stability:.0%}: so many folds chose {_near(tuning)}",
        _plateau(tuning),
    ]
    said += [_undecided(gain, tuning) for gain in tuning.gains if gain.verdict == UNCLEAR]
    for each in tuning.sliced:
        said.append(_per_slice(each))
    if any(part.own for each in tuning.sliced for part in each.slices):
        said.append(f"careful: {SEVERAL_SLICES}")
    if tuning.engine.exact:
        said.append(f"not exact: {tuning.engine.exact}")
    return said


def _near(tuning: Tuning) -> str:
    near = {"weights": "shares within 0.05 of these", "k": "nearly this k"}
    return near.get(tuning.grid.axis, "this setting, or one like it")


def _plateau(tuning: Tuning) -> str:
    inside, every = len(tuning.choice.plateau), len(tuning.grid.settings)
    known = counted(tuning.choice.n)
    said = f"plateau: with {known}, {inside} of {every} settings cannot be ruled out as the best"
    curves = curves_of(tuning)
    if len(curves) == 1 and inside > 1:
        low, high = curves[0].plateau
        gaps = ", with gaps" if curves[0].gaps else ""
        said += f", {curves[0].axis} {low:g} to {high:g}{gaps}"
    return said


def _undecided(gain: Gain, tuning: Tuning) -> str:
    unit = "queries" if tuning.cluster is None else "clusters"
    said = f"against {gain.over} the data cannot tell"
    if gain.needed is not None:
        size = number(abs(gain.difference or 0.0))
        return f"{said}: to show a difference of {size} takes about {gain.needed:,} {unit}"
    return said + (f": {gain.reason}" if gain.reason else "")


def _per_slice(sliced: SlicedChoice) -> str:
    gain = sliced.gain
    if not any(each.own for each in sliced.slices):
        return f"by {sliced.column}: no slice has the {FEWEST} queries that a choice takes"
    verdict = {
        BETTER: "is better than",
        WORSE: "is worse than",
        UNCLEAR: "is not clearly better than",
    }[gain.verdict]
    return (
        f"by {sliced.column}: one setting for each slice {verdict} one for all on held-out queries "
        f"({signed(gain.difference)}, p {chance(gain.p)})"
    )


def _snippet(engine: str, snippet: str, how: str) -> str:
    text = snippet.rstrip("\n")
    if how == "markdown":
        return f"To paste into {engine}:\n\n```\n{text}\n```\n"
    return f"to paste into {engine}:\n\n{text}\n"

"""A tuning of a retriever as people read it: what was chosen, what it is worth, what it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.spelling import counted
from findwell.loop.tuning.gains import BETTER, UNCLEAR, WORSE
from findwell.loop.tuning.space import describe_setting
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
from findwell.show.tuning import keep_current, opening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from findwell.evaluation.results.timing import Timing
    from findwell.loop.tuning.retriever_tuning import AskedSetting, RetrieverTuning

TOP = 8  # settings that are listed


def render(
    tuning: RetrieverTuning, how: str, *, color: bool = False, width: int | None = None
) -> str:
    """Return a tuning as a table, JSON, Markdown or a page, with a line break at the end."""
    if how == "json":
        return to_json(tuning.as_dict())
    if how == "html":
        return page(tuning)
    first, *more = grids(tuning)
    said = bullets(notes(tuning), how, reading_width(width))
    parts = [opening(advice(tuning), how, width)] if tuning.kept is not None else []
    parts += [render_grids([first], how, color=color, width=width)]
    parts += [f"\n{said}" if how == "markdown" else said]
    parts += [render_grids(more, how, color=color, width=width)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def page(tuning: RetrieverTuning) -> str:
    """Return a tuning as one HTML file that needs nothing else."""
    first, *more = grids(tuning)
    return document(
        "tuning.html.j2",
        f"{tuning.engine} tuned by {tuning.measure}",
        sections={"choice": "The choice", "gains": "Settings", "findings": "Findings"},
        advice=advice(tuning),
        lede=[heading(tuning)],
        first=first,
        more=more,
        sentences=notes(tuning),
        charts=[],
        snippet="",
        findings=[describe_finding(each) for each in tuning.findings],
    )


def retriever_tuning_html(tuning: RetrieverTuning) -> str:
    """Return a tuning for notebooks."""
    said = [*notes(tuning), *map(describe_finding, tuning.findings)]
    return notebook_html(grids(tuning), said, heading=advice(tuning))


def advice(tuning: RetrieverTuning) -> str:
    """Say to keep the current setting, where the choice is not better; otherwise nothing."""
    if tuning.kept is None:
        return ""
    current = describe_setting(tuning.current or {})
    return keep_current(current, str(tuning.measure), tuning.held_out, tuning.kept)


def heading(tuning: RetrieverTuning) -> str:
    """Say in a line what was tuned how."""
    return (
        f"{tuning.engine}: {len(tuning.settings)} settings · "
        f"{counted(tuning.plan.searched)} chose, {tuning.plan.final} others for the claim"
        + ("" if tuning.cluster is None else f" · clusters by {tuning.cluster}")
    )


def grids(tuning: RetrieverTuning) -> Iterator[Grid]:
    """Lay out the choice, the gain over the current setting, and the settings that came far."""
    level = f"{tuning.level:.0%} interval"
    spans = {"held out": tuning.held_out, "in sample": tuning.in_sample}
    chosen = describe_setting(tuning.chosen)
    yield Grid(
        heading(tuning),
        [str(tuning.measure), "setting", "value", level],
        [
            [name, chosen, number(span.value), interval(span.low, span.high)]
            for name, span in spans.items()
        ],
        left=2,
        best={(0, 2)},
    )
    if tuning.gains:
        verdicts = [gain.verdict for gain in tuning.gains]
        yield Grid(
            f"on held-out queries; current: {describe_setting(tuning.current or {})}",
            ["against", "verdict", "value", "gain", level, "p", "won/lost"],
            [
                [
                    gain.over,
                    gain.verdict,
                    number(gain.value),
                    signed(gain.difference),
                    limits(gain.low, gain.high),
                    chance(gain.p),
                    f"{gain.wins}/{gain.losses}",
                ]
                for gain in tuning.gains
            ],
            left=2,
            good={(row, 1) for row, verdict in enumerate(verdicts) if verdict == BETTER},
            bad={(row, 1) for row, verdict in enumerate(verdicts) if verdict == WORSE},
        )
    yield _furthest(tuning)


def _furthest(tuning: RetrieverTuning) -> Grid:
    sign = 1 if tuning.measure.higher_is_better else -1

    def place(each: AskedSetting) -> tuple[bool, int, float]:
        return bool(each.reason), -each.rung, -sign * (each.value.value or 0.0)

    shown = sorted(tuning.settings, key=place)[:TOP]
    columns: dict[str, Callable[[AskedSetting], str]] = {
        "setting": lambda each: describe_setting(each.setting),
        "rung": lambda each: str(each.rung),
        "queries": lambda each: str(each.queries),
        str(tuning.measure): lambda each: "given up" if each.reason else number(each.value.value),
        "p50": lambda each: _milliseconds(each.timing, "p50"),
        "p90": lambda each: _milliseconds(each.timing, "p90"),
    }
    if any(each.failed for each in tuning.settings):
        columns["failed"] = lambda each: str(each.failed)
    more = len(tuning.settings) - len(shown)
    title = "how far settings came; values are of the queries that chose"
    return Grid.of(f"{title} ({more} more)" if more else title, columns, shown)


def _milliseconds(timing: Timing | None, name: str) -> str:
    found = None if timing is None else getattr(timing, name)
    return "–" if found is None else f"{found:,.3g} ms"


def notes(tuning: RetrieverTuning) -> list[str]:
    """Say what the numbers mean, and what they took."""
    calls = tuning.calls
    asked = f"{counted(calls.asked, 'question', 'questions')} asked"
    asked += f", {calls.kept:,} answers kept from before" if calls.kept else ""
    asked += f", {calls.failed:,} failed" if calls.failed else ""
    whole = len(tuning.settings) * (tuning.plan.searched + tuning.plan.final)
    said = [
        "held out: on queries that only the chosen and the current setting were asked",
        f"rungs, {tuning.plan}",
        f"{asked}; every setting on every query would take {whole:,}",
    ]
    if tuning.optimism is not None:
        what = "in sample − held out, which are other queries: luck and optimism together"
        said.append(f"optimism {signed(tuning.optimism)}: {what}")
    if tuning.stability is not None:
        said.append(
            f"stability {tuning.stability:.0%}: so many bootstraps of the last rung it wins; "
            f"{len(tuning.plateau)} of {len(tuning.halving.rungs[-1])} settings there are not "
            "shown to be worse than the best"
        )
    if not tuning.gains:
        said.append("no current setting is known: below [current] in the space, or as defaults")
    for gain in tuning.gains:
        if gain.verdict != UNCLEAR:
            continue
        line = "against the current setting the data cannot tell"
        if gain.needed is not None:
            size = number(abs(gain.difference or 0.0))
            line += f": to show a difference of {size} takes about {gain.needed:,} queries"
        elif gain.reason:
            line += f": {gain.reason}"
        said.append(line)
    return said

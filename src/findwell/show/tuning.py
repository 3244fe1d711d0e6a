"""A tuning as people read it: what was chosen, what it is worth, what it gains, what to paste."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from findwell.core.spelling import counted, name_method
from findwell.core.verdict import BETTER, UNCLEAR, WORSE, verdict_row
from findwell.loop.tuning.choice import CURRENT, FEWEST_QUERIES
from findwell.loop.tuning.retriever_trials import AskedRetriever
from findwell.loop.tuning.tuning import SEVERAL_SLICES, curves_of
from findwell.show.charts.tuning import (
    NARROW,
    WIDTH,
    plateau_in_words,
    terminal_chart,
    tuning_chart,
)
from findwell.show.document import Code, Document, Headline, LetterChart, Line, Notes
from findwell.show.grid import Grid
from findwell.show.html import TUNING
from findwell.show.html import document as html_page
from findwell.show.tables import (
    chance,
    decimals,
    describe_finding,
    interval,
    limits,
    number,
    rounded,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from findwell.core.estimate import Estimate
    from findwell.loop.tuning.choice import Gain
    from findwell.loop.tuning.retriever_trials import AskedSetting
    from findwell.loop.tuning.tuning import FusedRuns, SlicedChoice, Tuning
    from findwell.show.charts import Chart
    from findwell.show.document import Part

FORMATS = ("table", "json", "markdown", "html")
PAGE_WIDTH = 1060.0  # of a chart of the page, on a screen
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
        headlines=[headline(tuning)],
        findings=tuning.findings,
        data=tuning.as_dict,
        verdicts=lambda: (_verdict_row(tuning, gain) for gain in tuning.gains),
    )


def _verdict_row(tuning: Tuning, gain: Gain) -> dict[str, Any]:
    return verdict_row(
        gain.verdict,
        gain.verdict.difference,
        system="tuned",
        baseline=gain.over,
        measure=str(tuning.measure),
        value=tuning.choice.held_out.value,
        against=gain.value,
    )


def _parts(tuning: Tuning) -> Iterator[Part]:
    first, *more = grids(tuning)
    yield first
    judged = (each for each in tuning.findings if each.kind == "judge-limits")
    yield from (Line(describe_finding(each), in_papers=True) for each in judged)
    yield Notes(tuple(notes(tuning)))
    if len(curves := curves_of(tuning)) == 1:
        queries = counted(tuning.choice.n)
        draw = partial(terminal_chart, curves[0], str(tuning.measure), tuning.level, queries)
        yield LetterChart(draw)
    yield from more
    if tuning.snippet is not None:
        yield Code(f"To paste into {tuning.engine}", tuning.snippet)


def charts(tuning: Tuning, width: float = WIDTH) -> list[Chart]:
    """Return the curves as drawings."""
    measure, queries = str(tuning.measure), counted(tuning.choice.n)
    return [tuning_chart(each, measure, tuning.level, queries, width) for each in curves_of(tuning)]


def page(tuning: Tuning) -> str:
    """Return a tuning as one HTML file that needs nothing else."""
    first, *more = grids(tuning)
    curves, snippet, said = curves_of(tuning), tuning.snippet, document(tuning)
    absent = {name for name, part in (("curve", curves), ("paste", snippet)) if not part}
    plateaus = [plateau_in_words(each, counted(tuning.choice.n)) for each in curves]
    sentences = [f"{each[:1].upper()}{each[1:]}." for each in plateaus]
    drawn = zip(charts(tuning, PAGE_WIDTH), charts(tuning, NARROW), sentences, strict=True)
    return html_page(
        "tuning.html.j2",
        f"{tuning.engine} tuned by {tuning.measure}",
        kind=TUNING,
        sections={name: title for name, title in SECTIONS.items() if name not in absent},
        headline=said.headlines[0],
        lede=[heading(tuning)],
        first=first,
        more=more,
        sentences=notes(tuning),
        charts=list(drawn),
        snippet=snippet or "",
        engine=tuning.engine,
        findings=said.findings,
    )


def headline(tuning: Tuning) -> Headline:
    """Say what to do: take the chosen setting or keep what there is, and what that rests on."""
    found, rival = tuning.held_out, _rival(tuning)
    value = figure(found)
    if rival is None:
        reach = interval(found.low, found.high).replace("…", "to")
        fact = f"{tuning.measure} {value} ({reach}) on held-out queries"
        return Headline(f"The best setting found is {tuning.chosen}", (fact,))
    verdict, current = rival.verdict, rival.over == CURRENT
    if tuning.kept is not None:
        what = f"the current setting ({tuning.current})" if current else rival.over
        why = "the search found nothing better" if current else "fusing is not better"
        sentence = f"Keep {what}: {why} on held-out queries"
    else:
        subject = "The chosen setting" if current else "Fusing"
        other = f"the current one ({tuning.current})" if current else f"{rival.over} alone"
        word = "better" if verdict.word == BETTER else "not clearly better"
        sentence = f"{subject} is {word} than {other}"
    reach = limits(verdict.difference.low, verdict.difference.high).replace("…", "to")
    reach = "" if reach == "–" else f" ({reach})"
    before = number(rival.value, digits_of(found))
    facts = [
        f"{tuning.measure} {before} → {value}{reach} on held-out queries",
        f"won {verdict.won:,}, tied {verdict.tied:,}, lost {verdict.lost:,}",
    ]
    if tuning.kept is None:
        facts.append(f"setting {tuning.chosen}")
    if rival.needed is not None:
        unit = "queries" if tuning.cluster is None else "clusters"
        facts.append(f"about {rounded(rival.needed):,} {unit} would show a difference this small")
    elif verdict.reason:
        facts.append(verdict.reason)
    return Headline(sentence, tuple(facts), verdict.word)


def digits_of(found: Estimate) -> int:
    """Return how many decimals a number deserves."""
    return decimals(found.low, found.high)


def figure(found: Estimate) -> str:
    """Write a number with as many decimals as its interval gives it."""
    return number(found.value, digits_of(found))


def _rival(tuning: Tuning) -> Gain | None:
    """Return what the choice has to beat: the best of what there is without it."""
    sign = 1 if tuning.measure.higher_is_better else -1
    known = [gain for gain in tuning.gains if gain.value is not None]
    return tuning.kept or max(known, key=lambda gain: sign * (gain.value or 0.0), default=None)


def heading(tuning: Tuning) -> str:
    """Say in a line what was tuned how."""
    clusters = "" if tuning.cluster is None else f" · clusters by {tuning.cluster}"
    source, settings = tuning.source, f"{len(tuning.grid.settings)} settings"
    if isinstance(source, AskedRetriever):
        return (
            f"{tuning.engine}: {settings} · {counted(source.plan.searched)} chose, "
            f"{source.plan.final} held out for the gain{clusters}"
        )
    fused = " + ".join(source.runs)
    if roles := source.lists.engine.roles:
        pairs = zip(roles, source.runs, strict=True)
        fused = " + ".join(f"{role} {run}" for role, run in pairs)
    how = name_method(source.dialect, [source.matched_by])
    by = tuning.engine if tuning.grid.axis != "space" else "the best setting of a space"
    return f"{fused} by {by} · {counted(tuning.choice.n)}, {settings}{how}{clusters}"


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
            [name, str(setting), figure(found), interval(found.low, found.high)]
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
        yield Grid.of(
            "other measures, with the same choices",
            {
                "measure": lambda other: other.measure,
                "held out": lambda other: figure(other.held_out),
                level: lambda other: interval(other.held_out.low, other.held_out.high),
                "in sample": lambda other: number(other.in_sample, digits_of(other.held_out)),
            },
            tuning.others,
        )
    if not isinstance(source, AskedRetriever):
        for each in source.sliced:
            yield _slices(tuning, each)


def _gains(tuning: Tuning) -> Grid:
    current = f"; current: {tuning.current}" if isinstance(tuning.source, AskedRetriever) else ""
    columns: dict[str, Callable[[Gain], str]] = {
        "against": lambda gain: gain.over,
        "verdict": lambda gain: gain.verdict.word,
        "value": lambda gain: number(gain.value, digits_of(gain.verdict.difference)),
        "gain": lambda gain: signed(
            gain.verdict.difference.value, digits_of(gain.verdict.difference)
        ),
        f"{tuning.level:.0%} interval": lambda gain: limits(
            gain.verdict.difference.low, gain.verdict.difference.high
        ),
        "p (Holm)": lambda gain: chance(gain.verdict.p),
        "won/tied/lost": lambda gain: f"{gain.verdict.won}/{gain.verdict.tied}/{gain.verdict.lost}",
    }
    words = [gain.verdict.word for gain in tuning.gains]
    return Grid.of(
        f"the chosen setting on held-out queries{current}",
        columns,
        tuning.gains,
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
                figure(choice.curve[at]),
                interval(choice.curve[at].low, choice.curve[at].high),
                f"{choice.votes[at]:.0%}",
            ]
            for at in order
        ],
    )


def _slices(tuning: Tuning, sliced: SlicedChoice) -> Grid:
    rows = [
        [each.label, tuning.grid.label(each.chosen), str(each.n)]
        + [number(value) for value in (each.held_out, each.shared, each.in_sample)]
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
    title = "the last rung of each setting, with its values on the queries that chose"
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
    rival = _rival(tuning)  # about which the headline says it
    unclear = [each for each in tuning.gains if each.verdict.word == UNCLEAR and each is not rival]
    return [*said, *(_undecided(gain, tuning) for gain in unclear), *more]


def _notes_about_folds(tuning: Tuning, source: FusedRuns) -> list[str]:
    choice, every, rule = tuning.choice, len(tuning.grid.settings), source.rule
    near = {"weights": "nearly the same weights", "k": "nearly the same k"}
    like = near.get(tuning.grid.axis, "this setting, or one like it")
    curves, queries = curves_of(tuning), counted(choice.n)
    size = f"{len(choice.plateau)} of {every} settings"
    plateau = f"{size} cannot be distinguished from the best one with {queries}"
    if len(curves) == 1:
        plateau = f"{plateau_in_words(curves[0], queries)} ({size})"
    dealt = f"({rule.folds} folds, {rule.repeats} times)"
    optimism = signed(choice.optimism, digits_of(choice.held_out))
    return [
        f"held out: each query scored by settings that the other folds chose {dealt}",
        f"optimism {optimism}: how much the tuning queries flatter this setting",
        f"stability {choice.stability:.0%}: share of folds that picked {like}",
        f"plateau: {plateau}",
    ]


def _notes_about_asking(tuning: Tuning, source: AskedRetriever) -> list[str]:
    calls, choice, plan = source.calls, tuning.choice, source.plan
    asked = f"{counted(calls.asked, 'question', 'questions')} asked"
    asked += f", {calls.kept:,} answers kept from before" if calls.kept else ""
    asked += f", {calls.failed:,} failed" if calls.failed else ""
    whole = len(source.settings) * (plan.searched + plan.final)
    said = [
        "held out: measured on queries that only the chosen and the current setting answered",
        f"rungs, {plan}",
        f"{asked}; every setting on every query would take {whole:,}",
    ]
    if choice.optimism is not None:
        what = "in sample − held out, on different queries: luck and optimism together"
        said.append(f"optimism {signed(choice.optimism)}: {what}")
    if choice.stability is not None:
        said.append(
            f"stability {choice.stability:.0%}: how often it wins a bootstrap of the last rung; "
            f"{len(choice.plateau)} of {len(source.halving.rungs[-1])} settings there cannot be "
            "ruled out as the best"
        )
    if not tuning.gains:
        said.append("no current setting: write it below [current] in the space, or as defaults")
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
        return f"by {sliced.column}: no slice has {FEWEST_QUERIES} queries, the fewest to choose by"
    verdict = {BETTER: "is better than", WORSE: "is worse than"}
    said = verdict.get(gain.verdict.word, "is not clearly better than")
    return (
        f"by {sliced.column}: one setting for each slice {said} one for all on held-out queries "
        f"({signed(gain.verdict.difference.value)}, p {chance(gain.p)})"
    )

"""Comparisons as text: tables for the terminal, Markdown and papers, rows for programs."""

from __future__ import annotations

from itertools import islice, product
from operator import itemgetter
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from findwell.core.findings import shorten
from findwell.core.frames import pl
from findwell.core.spelling import counted, name_relations
from findwell.judges.limits import NO_VERDICT
from findwell.show import escape
from findwell.show.escape import printable
from findwell.show.grid import Grid
from findwell.show.result import with_relation
from findwell.show.tables import (
    best,
    bullets,
    chance,
    decimals,
    latex_notes,
    latex_table,
    limits,
    number,
    reading_width,
    render_grids,
    signed,
    to_json,
    to_rows,
)
from findwell.show.terminal import wrap
from findwell.show.timing import timing_grid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from findwell.evaluation.comparison.compare import Comparison

CORRECTIONS = {"holm": "p (Holm)", "tukey": "p (Tukey)", "bh": "p (BH)"}
TESTS = {
    "exact": "all sign flips",
    "permutation": "random sign flips",
    "t": "Student's t test",
    "mcnemar": "McNemar's test",
    "division": "random divisions of the queries into two groups",
    "welch": "Welch's t test",
}
READ = (
    "Read it: difference is system − baseline; p is how often chance alone would "
    "make a difference this large; effect is the difference in standard deviations; "
    "won, tied and lost count queries."
)
READ_UNPAIRED = (
    "Read it: the systems were asked different queries; difference is after − "
    "before; p is how often chance alone would make a difference this large; effect "
    "is the difference in standard deviations of the queries."
)
DAGGERS = ((0.01, r"\ddagger"), (0.05, r"\dagger"))


def render(
    comparison: Comparison,
    how: str,
    *,
    moved: int = 5,
    color: bool = False,
    width: int | None = None,
) -> str:
    """Return a comparison in one of FORMATS, with a line break at the end.

    Formats with one row per line hold one table: the slices if there are any, else the comparisons.
    """
    if how == "json":
        return to_json(comparison.as_dict())
    if how == "latex":
        return latex(comparison)
    if how in ("table", "markdown"):
        return _tables(comparison, how, moved=moved, color=color, width=width)
    rows = comparison.slices if comparison.slices.height else comparison.comparisons
    return to_rows(with_relation(rows, comparison.matched_by), how)


def unmeasured(comparison: Comparison) -> list[str]:
    """Say which measures no query has for both systems of a pair, and why."""
    counts = ["n", "baseline_n"] if comparison.unpaired else ["n"]
    rows = comparison.comparisons.filter(pl.min_horizontal(counts) == 0)
    return [
        f"{row['measure']} ({row['system']} against {row['baseline']}): {row['reason']}"
        for row in rows.iter_rows(named=True)
    ]


def _tables(comparison: Comparison, how: str, *, moved: int, color: bool, width: int | None) -> str:
    first, *more = grids(comparison, moved=moved)
    head, rest = (render_grids(each, how, color=color, width=width) for each in ([first], more))
    read = READ_UNPAIRED if comparison.unpaired else READ
    if how == "markdown":
        parts = [head, f"{read}\n", bullets(notes(comparison), how), rest]
        return "\n".join(filter(None, parts))
    lines = "".join(f"{printable(note)}\n" for note in notes(comparison))
    said = wrap(read, reading_width(width))
    return f"{head}{said}\n{lines}" + (f"\n{rest}" if rest else "")


def grids(comparison: Comparison, *, moved: int = 5) -> Iterator[Grid]:
    """Lay out the comparisons, then the slices, then the queries that moved."""
    title = f"against {comparison.baseline}"
    if _several_baselines(comparison.comparisons):
        title = f"all pairs of {len(comparison.systems)} systems"
    asked = f"{counted(comparison.queries)}{', unpaired' if comparison.unpaired else ''}"
    title += f" · {asked} · dialect {comparison.dialect}"
    title += name_relations(comparison.matched_by.values())
    title += "" if comparison.cluster is None else f" · clusters by {comparison.cluster}"
    yield lay_out(comparison, comparison.comparisons, title)
    for (column,), rows in comparison.slices.partition_by(
        "column", as_dict=True, maintain_order=True
    ).items():
        yield lay_out(comparison, rows, f"by {column}", ["slice"])
    if comparison.timing:
        yield timing_grid(comparison.timing, first="system")
    if moved and comparison.moved.height:
        yield _moved(comparison, moved)


def lay_out(
    comparison: Comparison, rows: pl.DataFrame, title: str, first: Sequence[str] = ()
) -> Grid:
    """One row per measure and pair of systems, after the columns that come `first`."""
    pairs = _several_baselines(rows)
    corrections = [name for name in rows["correction"].unique() if name != "none"]
    texts = [*first, "measure", *(["baseline"] if pairs else []), "system"]
    cells = [
        [_text(row[name]) for name in texts]
        + [row["verdict"], *numbers(row), corrected(row), chance(row["p"])]
        + ([chance(row["p_adjusted"])] if corrections else [])
        + [signed(row["effect"], 2), *_counts(comparison, row)]
        for row in by_measure(comparison, rows)
    ]
    header = [*texts, "verdict", "before", "after", "difference"]
    header += [f"{100 * comparison.level:g}% interval", "p"]
    header += [CORRECTIONS[corrections[0]]] if corrections else []
    header += ["effect"]
    header += ["n before", "n after"] if comparison.unpaired else ["won/tied/lost", "n"]
    verdicts = [row[len(texts)] for row in cells]
    return Grid(
        title,
        header,
        cells,
        left=len(texts) + 1,
        named_by=len(texts),
        good={(at, len(texts)) for at, each in enumerate(verdicts) if each == "better"},
        bad={(at, len(texts)) for at, each in enumerate(verdicts) if each == "worse"},
    )


def _counts(comparison: Comparison, row: dict[str, Any]) -> list[str]:
    if comparison.unpaired:
        return [str(row["baseline_n"]), str(row["n"])]
    return [f"{row['wins']}/{row['ties']}/{row['losses']}", str(row["n"])]


def corrected(row: dict[str, Any]) -> str:
    """Write the interval that was corrected as p was, so that it and the verdict say the same."""
    return limits(row["low_adjusted"], row["high_adjusted"])


def numbers(row: dict[str, Any]) -> tuple[str, str, str]:
    """Write the two values and their difference, with the digits that the interval allows."""
    digits = decimals(row["low_adjusted"], row["high_adjusted"])
    before, after = (number(row[side], digits) for side in ("baseline_value", "system_value"))
    return before, after, signed(row["difference"], digits)


def by_measure(comparison: Comparison, rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows measure by measure; within one they keep their order."""
    place = {str(measure): at for at, measure in enumerate(comparison.measures)}
    return sorted(rows.to_dicts(), key=lambda row: place[row["measure"]])


def _moved(comparison: Comparison, count: int) -> Grid:
    """One row per query that moved, by the first measure; those that gained come first."""
    name = str(comparison.measures[0])
    mine = comparison.moved.filter(pl.col("measure") == name)
    ranked = pl.int_range(pl.len()).over("system", pl.col("difference") > 0)
    rows = mine.filter(ranked < count).to_dicts()
    columns: dict[str, Callable[[dict[str, Any]], str]] = {}
    if len(comparison.systems) > 2:
        columns["system"] = itemgetter("system")
    columns["query"] = lambda row: shorten(row["query"])
    if any((row["question"] or row["query"]) != row["query"] for row in rows):
        columns["question"] = lambda row: shorten(row["question"] or "")
    left = len(columns)
    columns["before"] = lambda row: number(row["before"], 3)
    columns["after"] = lambda row: number(row["after"], 3)
    columns["difference"] = lambda row: signed(row["difference"], 3)
    return Grid.of(f"queries that moved most in {name}", columns, rows, left=left)


def _several_baselines(rows: pl.DataFrame) -> bool:
    return rows["baseline"].n_unique() > 1


def notes(comparison: Comparison) -> list[str]:
    """Say which tests were used, and why some rows were not tested or can never show much."""
    rows = [("", row) for row in comparison.comparisons.to_dicts()]
    rows += ((f"{_text(row['slice'])}, ", row) for row in comparison.slices.to_dicts())
    return [*comparison.judges, _how_tested(comparison), *_reasons(rows)]


def _how_tested(comparison: Comparison) -> str:
    tests: dict[str, dict[str, None]] = {}
    for test, measure in comparison.comparisons.select("test", "measure").rows():
        tests.setdefault(TESTS.get(test, test), {})[measure] = None
    if len(tests) == 1:
        return f"p by {next(iter(tests))}"
    return "p by " + "; by ".join(f"{test}: {', '.join(names)}" for test, names in tests.items())


def _reasons(rows: Iterable[tuple[str, dict[str, Any]]]) -> Iterable[str]:
    """Say each reason once, with the rows that have it."""
    rows_by_reason: dict[str, list[str]] = {}
    for part, row in rows:
        if row["reason"]:
            rows_by_reason.setdefault(row["reason"], []).append(
                f"{part}{row['system']} {row['measure']}"
            )
    for reason, where in rows_by_reason.items():
        more = f" and {len(where) - 3} more" if len(where) > 3 else ""
        yield f"{', '.join(where[:3])}{more}: {reason}"


def _text(value: object) -> str:
    return "(none)" if value is None else str(value)


def latex(comparison: Comparison) -> str:
    r"""Return a table with one row per system and one column per measure, the best value bold.

    Against a baseline, † marks p < 0.05 and ‡ p < 0.01 after correction. With all pairs, a letter
    names each system, and a value carries the letters of the systems it is better than.
    """
    pairs = bool((comparison.comparisons["correction"] == "tukey").any())
    letters = _letters(len(comparison.systems)) if pairs else [""] * len(comparison.systems)
    names = [str(measure) for measure in comparison.measures]
    values = {(row["system"], row["measure"]): row["value"] for row in comparison.values.to_dicts()}
    marks = _letter_marks(comparison, letters) if pairs else _daggers(comparison)
    rows = comparison.comparisons.to_dicts()
    undecided = {row["measure"] for row in rows if NO_VERDICT in (row["reason"] or "")}
    bold = {
        (system, name)
        for name, measure in zip(names, comparison.measures, strict=True)
        if name not in undecided
        for system in best(
            {system: values[system, name] for system in comparison.systems},
            higher_is_better=measure.higher_is_better,
        )
    }
    lines = []
    for system, letter in zip(comparison.systems, letters, strict=True):
        cells = [escape.latex(system) + (f" ({letter})" if letter else "")]
        for name in names:
            shown = number(values[system, name]).replace("–", "--")
            shown = rf"\textbf{{{shown}}}" if (system, name) in bold else shown
            mark = marks.get((system, name), "")
            cells.append(shown + (f"$^{{{mark}}}$" if mark else ""))
        lines.append(" & ".join(cells) + r" \\")
    header = " & ".join(["", *map(escape.latex, names)]) + r" \\"
    caption = _caption(comparison, pairs=pairs)
    return latex_notes(comparison.judges) + latex_table(
        caption, "l" + "r" * len(names), header, lines
    )


def _caption(comparison: Comparison, *, pairs: bool) -> str:
    by = name_relations(comparison.matched_by.values(), ", by ")
    queries = counted(comparison.queries) + escape.latex(by)
    if pairs:
        return (
            f"{queries}. A letter marks the systems that a value is better than, $p < 0.05$"
            " (randomised Tukey HSD)."
        )
    several = len(comparison.systems) > 2
    return (
        rf"{queries}. Against {escape.latex(comparison.baseline)}: $\dagger$ $p < 0.05$,"
        rf" $\ddagger$ $p < 0.01${' (Holm)' if several else ''}."
    )


def _daggers(comparison: Comparison) -> dict[tuple[str, str], str]:
    found = {}
    for row in comparison.comparisons.to_dicts():
        p = 1.0 if row["p_adjusted"] is None else row["p_adjusted"]
        mark = next((mark for below, mark in DAGGERS if p < below), "")
        found[row["system"], row["measure"]] = mark
    return found


def _letter_marks(comparison: Comparison, letters: list[str]) -> dict[tuple[str, str], str]:
    letter = dict(zip(comparison.systems, letters, strict=True))
    better: dict[tuple[str, str], list[str]] = {}
    higher = {str(measure): measure.higher_is_better for measure in comparison.measures}
    for row in comparison.comparisons.to_dicts():
        if row["p_adjusted"] is None or row["p_adjusted"] >= 0.05:
            continue
        won = (row["difference"] > 0) == higher[row["measure"]]
        winner, loser = ("system", "baseline") if won else ("baseline", "system")
        better.setdefault((row[winner], row["measure"]), []).append(letter[row[loser]])
    return {key: r"\mathrm{" + ",".join(sorted(who)) + "}" for key, who in better.items()}


def _letters(count: int) -> list[str]:
    """Return a, b, …, z, aa, ab, …"""
    words = ("".join(word) for size in (1, 2, 3) for word in product(ascii_lowercase, repeat=size))
    return list(islice(words, count))

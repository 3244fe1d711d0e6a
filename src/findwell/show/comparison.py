"""Comparisons as documents: the answer first, then the differences, slices, and what moved."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import groupby, islice, product
from operator import itemgetter
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from findwell.core.findings import FindingKind, shorten
from findwell.core.spelling import counted, name_method, name_relations
from findwell.core.verdict import BETTER, SAME, UNCLEAR, UNKNOWN, WORSE, verdict_row
from findwell.show.document import Document, Headline, Line, Notes
from findwell.show.grid import Grid
from findwell.show.result import with_relation
from findwell.show.tables import best, best_first, chance, decimals, limits, number, rounded, signed
from findwell.show.timing import timing_grid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from findwell.core.verdict import Verdict
    from findwell.evaluation.comparison.compare import Comparison, Row
    from findwell.show.document import Part

CORRECTIONS = {"holm": "p (Holm)", "tukey": "p (Tukey)", "bh": "p (BH)"}
TESTS = {
    "exact": "all sign flips",
    "permutation": "random sign flips",
    "t": "Student's t test",
    "mcnemar": "McNemar's test",
    "division": "random divisions of the queries into two groups",
    "welch": "Welch's t test",
}
READING_HINTS = (
    "Read it: difference is system − baseline; p is how often chance alone would "
    "make a difference this large; won, tied and lost count queries."
)
READ_UNPAIRED = (
    "Read it: the systems were asked different queries; difference is after − "
    "before; p is how often chance alone would make a difference this large."
)
SENTENCES = {
    BETTER: "{} is better than {}",
    WORSE: "{} is worse than {}",
    SAME: "{} scores the same as {} on every query",
    UNCLEAR: "{} is not clearly different from {}",
    UNKNOWN: "this judge cannot compare {} with {}",
}
SIGNS = {BETTER: " ▲", WORSE: " ▼"}
HEADLINES = 3  # systems that have one
OTHERWISE: dict[str, str] = {  # what else than the system may cause a difference
    FindingKind.OTHER_GOLD: "but the gold labels differ for {0}",
    FindingKind.OTHER_CHOICE: "but measured with another option ({1})",
}
NAMED = 3  # slices, systems or rows in a sentence


def document(comparison: Comparison, *, moved: int = 5) -> Document:
    """Return a comparison, with this many of the queries that moved most each way.

    Formats with one row per line hold one table: the slices if there are any, else the comparisons.
    """

    def rows() -> pl.DataFrame:
        found = comparison.slices if comparison.slice_rows else comparison.comparisons
        return with_relation(found, comparison.matched_by)

    return Document(
        _parts(comparison, moved),
        headlines=headlines(comparison),
        findings=comparison.findings,
        data=comparison.as_dict,
        verdicts=lambda: _verdict_rows(comparison),
        rows=rows,
        paper=lambda: _for_papers(comparison),
        judges=comparison.judges,
    )


def _verdict_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for row in comparison.rows:
        found = comparison.verdicts[row["baseline"], row["system"], row["measure"]]
        yield verdict_row(
            found,
            found.difference,
            system=row["system"],
            baseline=row["baseline"],
            measure=row["measure"],
            value=row["system_value"],
            against=row["baseline_value"],
        )


def headlines(comparison: Comparison) -> list[Headline]:
    """Say for each system whether it is better than the baseline by the first measure, and where.

    The best systems come first; how many others there are is said in the end.
    """
    lead = str(comparison.measures[0])
    rows = [comparison[name, lead] for name in best_systems(comparison)]
    found = [_headline(comparison, row) for row in rows[:HEADLINES]]
    if more := rows[HEADLINES:]:
        words = Counter(row["verdict"] for row in more)
        worse = [row["system"] for row in reversed(more) if row["verdict"] == WORSE]
        verdicts = [
            f"{count} {word}{f' ({_some(worse)})' if word == WORSE else ''}"
            for word, count in words.items()
        ]
        found.append(Headline(f"{len(more)} more: {', '.join(verdicts)}"))
    return found


def _some(names: Sequence[str]) -> str:
    """Name the first ones, and say how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def best_systems(comparison: Comparison) -> list[str]:
    """Return the systems without the baseline, by their gain in the first measure."""
    lead = comparison.measures[0]
    sign = 1 if lead.higher_is_better else -1

    def gain(system: str) -> float:
        return sign * (comparison[system, str(lead)]["difference"] or 0.0)

    return sorted(comparison.systems[1:], key=gain, reverse=True)


def count_of_queries(found: Verdict) -> str:
    """Say on how many queries a system is better, equal and worse; empty if that is not known."""
    if found.won is None:
        return ""
    return f"won {found.won:,}, tied {found.tied:,}, lost {found.lost:,}"


def _headline(comparison: Comparison, row: Row) -> Headline:
    before, after, difference = numbers(row)
    found = comparison.verdicts[row["baseline"], row["system"], row["measure"]]
    sentence = SENTENCES[found.word]
    if row["difference"] is None:
        sentence, facts = "{} cannot be compared with {}", [row["measure"]]
    else:
        facts = [f"{row['measure']} {before} → {after}"]
        reach = corrected(row).replace("…", "to")
        facts[0] += f" ({difference})" if reach == "–" else f" ({reach})"
    if row["n"] and (counts := count_of_queries(found)):
        facts.append(counts)
    if found.word == SAME and (others := _elsewhere(comparison, row["system"])):
        facts.append(f"it differs in {', '.join(others)}")
    facts += [found.reason] if found.reason and found.word in (UNCLEAR, UNKNOWN) else []
    facts += [
        OTHERWISE[each.kind].format(counted(each.count), ", ".join(each.examples))
        for each in comparison.findings
        if each.run == row["system"] and each.kind in OTHERWISE
    ]
    needed = comparison.needed(row["system"], row["measure"])
    if needed is not None:
        facts.append(f"about {rounded(needed):,} queries would show a difference this small")
    for word in (WORSE, BETTER):
        facts += _where(comparison, row, word)
    said = sentence.format(row["system"], row["baseline"])
    return Headline(said, tuple(facts), found.word, row["system"])


def _where(comparison: Comparison, row: Row, word: str) -> Iterator[str]:
    """Name the slices in which a system is better or worse, the largest difference first."""
    mine = [
        each
        for each in comparison.slice_rows
        if each["verdict"] == word
        and all(each[key] == row[key] for key in ("baseline", "system", "measure"))
    ]
    mine.sort(key=lambda each: -abs(each["difference"]))
    named = [f"{each['column']} {slice_text(each['slice'])} ({numbers(each)[2]})" for each in mine]
    if named:
        yield f"{word} in {_some(named)}"


def _elsewhere(comparison: Comparison, system: str) -> list[str]:
    """Name the measures in which a system differs that is the same in the first one."""
    return [
        f"{row['measure']} ({numbers(row)[2]}, {row['verdict']})"
        for row in comparison.rows
        if (row["system"], row["baseline"]) == (system, comparison.baseline)
        and row["verdict"] != SAME
        and row["difference"] is not None
    ]


def unmeasured(comparison: Comparison) -> list[str]:
    """Say which measures no query has for both systems of a pair, and why."""
    counts = ["n", "baseline_n"] if comparison.unpaired else ["n"]
    return [
        f"{row['measure']} ({row['system']} against {row['baseline']}): {row['reason']}"
        for row in comparison.rows
        if not all(row[name] for name in counts)
    ]


def _parts(comparison: Comparison, moved: int) -> Iterator[Part]:
    """Yield the comparisons and how to read them, the slices, the timing, what moved."""
    title = f"against {comparison.baseline}"
    if _several_baselines(comparison.rows):
        title = f"all pairs of {len(comparison.systems)} systems"
    elif len(comparison.systems) > 2:
        yield _ladder(comparison)
    asked = f"{counted(comparison.queries)}{', unpaired' if comparison.unpaired else ''}"
    title += f" · {asked}{name_method(comparison.dialect, comparison.matched_by.values())}"
    title += "" if comparison.cluster is None else f" · clusters by {comparison.cluster}"
    yield lay_out(comparison, comparison.rows, title)
    yield Line(READ_UNPAIRED if comparison.unpaired else READING_HINTS)
    yield from (Line(judge, in_papers=True) for judge in comparison.judges)
    yield Notes(tuple(notes_on_tests(comparison)))
    for column, rows in groupby(comparison.slice_rows, key=itemgetter("column")):
        yield lay_out(comparison, list(rows), f"by {column}", ["slice"])
    if comparison.timing:
        yield timing_grid(comparison.timing, first="system")
    if moved and comparison.moved_rows:
        yield _moved(comparison, moved)


def _ladder(comparison: Comparison) -> Grid:
    """One row per system, the best by the first measure first, with the signs of the verdicts."""
    values, baseline, lead = _values(comparison), comparison.baseline, comparison.measures[0]
    words = {key[1:]: found.word for key, found in comparison.verdicts.items()}
    order = best_first(higher=lead.higher_is_better)
    systems = sorted(comparison.systems, key=lambda system: order(values[system, str(lead)]))

    def cell(name: str, system: str) -> str:
        return number(values[system, name], 3) + SIGNS.get(words.get((system, name), ""), "  ")

    columns: dict[str, Callable[[str], str]] = {
        "system": lambda system: system + " (baseline)" * (system == baseline)
    }
    columns |= {str(measure): partial(cell, str(measure)) for measure in comparison.measures}
    cells = {
        (systems.index(system), [*columns].index(name)): word
        for (system, name), word in words.items()
    }
    return Grid.of(
        f"all systems, the best by {lead} first",
        columns,
        systems,
        good={at for at, word in cells.items() if word == BETTER},
        bad={at for at, word in cells.items() if word == WORSE},
        note=f"▲ better, ▼ worse than {baseline}; no sign: unclear or the same",
    )


def _values(comparison: Comparison) -> dict[tuple[str, str], float | None]:
    return {(row["system"], row["measure"]): row["value"] for row in comparison.value_rows}


def lay_out(
    comparison: Comparison, rows: Sequence[Row], title: str, first: Sequence[str] = ()
) -> Grid:
    """One row per measure and pair of systems, after the columns that come `first`."""
    texts = [*first, "measure", *(["baseline"] if _several_baselines(rows) else []), "system"]
    shown = by_measure(comparison, rows)
    cells = [
        [slice_text(row[name]) for name in texts]
        + [row["verdict"], *numbers(row), corrected(row), chance(row["p_adjusted"])]
        + _counts(comparison, row)
        for row in shown
    ]
    header = [*texts, "verdict", "before", "after", "difference"]
    header += [f"{100 * comparison.level:g}% interval", header_of_p(rows)]
    header += ["n before", "n after"] if comparison.unpaired else ["won/tied/lost", "n"]
    at = len(texts)
    return Grid(
        title,
        header,
        cells,
        left=at + 1,
        named_by=at,
        good={(place, at) for place, row in enumerate(shown) if row["verdict"] == BETTER},
        bad={(place, at) for place, row in enumerate(shown) if row["verdict"] == WORSE},
    )


def header_of_p(rows: Sequence[Row]) -> str:
    """Name the column of p after its correction, if there is any."""
    return next((CORRECTIONS[each] for row in rows if (each := row["correction"]) != "none"), "p")


def _counts(comparison: Comparison, row: Row) -> list[str]:
    if comparison.unpaired:
        return [str(row["baseline_n"]), str(row["n"])]
    return [f"{row['wins']}/{row['ties']}/{row['losses']}", str(row["n"])]


def corrected(row: Row) -> str:
    """Write the interval that was corrected as p was, so that it and the verdict say the same."""
    return limits(row["low_adjusted"], row["high_adjusted"])


def numbers(row: Row) -> tuple[str, str, str]:
    """Write the two values and their difference, with the digits that the interval allows."""
    digits = decimals(row["low_adjusted"], row["high_adjusted"])
    before, after = (number(row[side], digits) for side in ("baseline_value", "system_value"))
    return before, after, signed(row["difference"], digits)


def by_measure(comparison: Comparison, rows: Sequence[Row]) -> list[Row]:
    """Return the rows measure by measure; within one they keep their order."""
    place = {str(measure): at for at, measure in enumerate(comparison.measures)}
    return sorted(rows, key=lambda row: place[row["measure"]])


def _moved(comparison: Comparison, count: int) -> Grid:
    """One row per query that moved, by the first measure, with the systems of the headlines."""
    name = str(comparison.measures[0])
    seen: Counter[tuple[str, bool]] = Counter()
    rows, shown = [], best_systems(comparison)[:HEADLINES]
    for row in comparison.moved_rows:
        way = row["system"], row["difference"] > 0
        if row["measure"] == name and row["system"] in shown and seen[way] < count:
            seen[way] += 1
            rows.append(row)
    columns: dict[str, Callable[[Row], str]] = {}
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


def _several_baselines(rows: Sequence[Row]) -> bool:
    return len({row["baseline"] for row in rows}) > 1


def notes_on_tests(comparison: Comparison) -> Iterator[str]:
    """Say which tests were used, and why some rows were not tested or can never show much."""
    tests: dict[str, dict[str, None]] = {}
    for test, measure in map(itemgetter("test", "measure"), comparison.rows):
        tests.setdefault(TESTS.get(test, test), {})[measure] = None
    if len(tests) == 1:
        yield f"p by {next(iter(tests))}"
    else:
        yield "p by " + "; by ".join(f"{test}: {', '.join(each)}" for test, each in tests.items())
    rows_by_reason: dict[str, list[str]] = {}
    for row in (*comparison.rows, *comparison.slice_rows):
        part = f"{slice_text(row['slice'])}, " if "slice" in row else ""
        if row["reason"]:
            where = rows_by_reason.setdefault(row["reason"], [])
            where.append(f"{part}{row['system']} {row['measure']}")
    yield from (f"{_some(where)}: {reason}" for reason, where in rows_by_reason.items())


def slice_text(value: object) -> str:
    """Write the value of a slice."""
    return "(none)" if value is None else str(value)


def _for_papers(comparison: Comparison) -> Grid:
    """Return a table with one row per system and one column per measure, the best value bold.

    Against a baseline, † marks what is better or worse, and ‡ that p < 0.01 after correction. With
    all pairs, a letter names each system, and a value carries the letters of the systems it is
    better than.
    """
    pairs = any(row["correction"] == "tukey" for row in comparison.rows)
    systems = comparison.systems
    letters = dict(zip(systems, _letters(len(systems)), strict=True)) if pairs else {}
    names = [str(measure) for measure in comparison.measures]
    values, leading = _values(comparison), set[tuple[int, int]]()
    unknown = {key[2] for key, found in comparison.verdicts.items() if found.word == UNKNOWN}
    for column, measure in enumerate(comparison.measures, start=1):
        of_systems = {at: values[name, str(measure)] for at, name in enumerate(systems)}
        if str(measure) not in unknown:
            rows = best(of_systems, higher_is_better=measure.higher_is_better)
            leading |= {(at, column) for at in rows}
    signs: dict[tuple[int, int], list[str]] = {}
    for (baseline, system, name), found in comparison.verdicts.items():
        if not found.is_clear:
            continue
        column = names.index(name) + 1
        if pairs:
            order = (system, baseline) if found.word == BETTER else (baseline, system)
            signs.setdefault((systems.index(order[0]), column), []).append(letters[order[1]])
        else:
            sign = "‡" if found.p is not None and found.p < 0.01 else "†"
            signs[systems.index(system), column] = [sign]
    alpha = f"p < {1 - comparison.level:.2g}"
    if pairs:
        meaning = f"A letter marks the systems that a value is better than, {alpha}"
        meaning += " (randomised Tukey HSD)."
    else:
        meaning = f"Against {comparison.baseline}: † {alpha}, ‡ p < 0.01"
        meaning += f"{' (Holm)' if len(systems) > 2 else ''}."
    by = name_relations(comparison.matched_by.values(), ", by ")
    return Grid(
        f"{counted(comparison.queries)}{by}. {meaning}",
        ["", *names],
        [
            [
                name + (f" ({letters[name]})" if pairs else ""),
                *(number(values[name, each]) for each in names),
            ]
            for name in systems
        ],
        best=leading,
        marks={cell: ",".join(sorted(each)) for cell, each in signs.items()},
    )


def _letters(count: int) -> list[str]:
    """Return a, b, …, z, aa, ab, …"""
    words = ("".join(word) for size in (1, 2, 3) for word in product(ascii_lowercase, repeat=size))
    return list(islice(words, count))

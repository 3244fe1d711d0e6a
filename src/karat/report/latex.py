"""Comparisons for papers: a LaTeX table with significance marks."""

from __future__ import annotations

import re
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from karat.report.comparison import count
from karat.report.layout import Grid, number, printable
from karat.spelling import name_relations

if TYPE_CHECKING:
    from karat.comparison.compare import Comparison

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))
MARKS = ((0.01, r"\ddagger"), (0.05, r"\dagger"))


def comparison_table(comparison: Comparison) -> str:
    r"""Return a table with a row a system and a column a measure, the best value bold.

    Against a baseline, † marks p < 0.05 and ‡ p < 0.01 after correction. With all pairs, a letter
    names each system, and a value carries the letters of the systems it is better than.
    """
    pairs = bool((comparison.comparisons["correction"] == "tukey").any())
    letters = _letters(len(comparison.systems)) if pairs else [""] * len(comparison.systems)
    names = [str(measure) for measure in comparison.measures]
    values = {(row["system"], row["measure"]): row["value"] for row in comparison.values.to_dicts()}
    marks = _letter_marks(comparison, letters) if pairs else _daggers(comparison)
    best = _best(comparison, values)
    lines = []
    for system, letter in zip(comparison.systems, letters, strict=True):
        cells = [escape(system) + (f" ({letter})" if letter else "")]
        for name in names:
            shown = number(values[system, name]).replace("–", "--")
            shown = rf"\textbf{{{shown}}}" if (system, name) in best else shown
            mark = marks.get((system, name), "")
            cells.append(shown + (f"$^{{{mark}}}$" if mark else ""))
        lines.append(" & ".join(cells) + r" \\")
    header = " & ".join(["", *map(escape, names)]) + r" \\"
    caption = _caption(comparison, pairs=pairs)
    return _framed(caption, "l" + "r" * len(names), header, lines)


def grid_table(grid: Grid) -> str:
    r"""Return any table for a paper; the best of a column is bold.

    >>> print(grid_table(Grid("95 queries", ["run", "AP"], [["bm25", "0.58"]], best={(0, 1)})))
    % needs \usepackage{booktabs}
    \begin{table}
    \centering
    \caption{95 queries}
    \begin{tabular}{lr}
    \toprule
    run & AP \\
    \midrule
    bm25 & \textbf{0.58} \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    lines = []
    for row, cells in enumerate(grid.rows):
        told = [escape(cell).replace("–", "--").replace("…", r"\ldots{}") for cell in cells]
        told = [
            rf"\textbf{{{cell}}}" if (row, at) in grid.best else cell
            for at, cell in enumerate(told)
        ]
        lines.append(" & ".join(told) + r" \\")
    kinds = "l" * grid.left + "r" * (len(grid.header) - grid.left)
    header = " & ".join(map(escape, grid.header)) + r" \\"
    return _framed(escape(grid.title), kinds, header, lines)


def _framed(caption: str, kinds: str, header: str, lines: list[str]) -> str:
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            header,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def escape(text: str) -> str:
    r"""Write text so that LaTeX prints it and obeys nothing in it.

    >>> print(escape(r"50% \input{x}_1"))
    50\% \textbackslash{}input\{x\}\_1
    """
    return _SPECIAL.sub(lambda found: SPECIAL[found[0]], printable(text))


def _caption(comparison: Comparison, *, pairs: bool) -> str:
    by = name_relations(comparison.matched_by.values(), ", by ")
    queries = count(comparison.queries) + escape(by)
    if pairs:
        return (
            f"{queries}. A letter marks the systems that a value is better than, $p < 0.05$"
            " (randomised Tukey HSD)."
        )
    several = len(comparison.systems) > 2
    return (
        rf"{queries}. Against {escape(comparison.baseline)}: $\dagger$ $p < 0.05$,"
        rf" $\ddagger$ $p < 0.01${' (Holm)' if several else ''}."
    )


def _daggers(comparison: Comparison) -> dict[tuple[str, str], str]:
    found = {}
    for row in comparison.comparisons.to_dicts():
        for below, mark in MARKS:
            if row["p_adjusted"] is not None and row["p_adjusted"] < below:
                found[row["system"], row["measure"]] = mark
                break
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
    found: list[str] = []
    while len(found) < count:
        before = found[len(found) // 26 - 1] if found and len(found) >= 26 else ""
        found.append(before + ascii_lowercase[len(found) % 26])
    return found


def _best(comparison: Comparison, values: dict[tuple[str, str], Any]) -> set[tuple[str, str]]:
    best: set[tuple[str, str]] = set()
    for measure in comparison.measures:
        name = str(measure)
        known = {
            system: values[system, name]
            for system in comparison.systems
            if values[system, name] is not None
        }
        if len(set(known.values())) > 1:
            top = (max if measure.higher_is_better else min)(known.values())
            best |= {(system, name) for system, value in known.items() if value == top}
    return best

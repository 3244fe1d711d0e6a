"""What labels teach the embedded judges: half of the questions teach, the other half is judged.

`python -m benchmarks.teaching DATA` prints the table of docs/judge-teach.md, on the labels of
LiveQA-Med and NovelEval (see `benchmarks.local_ablation`), both ways round. Intervals are by
question; that of the Brier score's change is of the differences of pairs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import findwell
from benchmarks.data import ROOT
from benchmarks.judge_cards import around, records
from benchmarks.local_ablation import Labels, labelled
from findwell.judges.cards.labels import LabelledSamples, load_labels
from findwell.judges.find import find_judge
from findwell.judges.taught import TaughtJudge
from findwell.statistics.intervals import interval

if TYPE_CHECKING:
    from findwell.judges.verdicts import JudgeProtocol

JUDGES, SETS = ("local:text", "local"), ("LiveQA-Med", "NovelEval")
HEADER = (
    "judge", "judged half", "pairs",
    "κ before", "Brier before", "κ after", "Brier after", "Brier, change",
)  # fmt: skip


def halves(labels: Labels) -> Iterator[tuple[str, Labels, Labels]]:
    """Return which half is judged, that half, and the one that teaches."""
    groups = sorted({row[0] for row in labels.rows})
    parts = [
        replace(labels, rows=[row for row in labels.rows if groups.index(row[0]) % 2 == at])
        for at in (0, 1)
    ]
    yield "first", parts[0], parts[1]
    yield "second", parts[1], parts[0]


def losses(judge: JudgeProtocol, labels: Labels) -> list[float]:
    """Return the squared distance of probability and label of each pair."""
    said = LabelledSamples.of(load_labels(records(labels)), labels.aspect).ask(judge)
    chances = [each.probability for each in said if each and each.probability is not None]
    return [(chance - (row[3] > 0)) ** 2 for chance, row in zip(chances, labels.rows, strict=True)]


def line(name: str, half: str, labels: Labels, others: Labels) -> str:
    taught = findwell.judges.teach(records(others), judge=name)
    judges = (find_judge(name), TaughtJudge(find_judge(name), taught))
    cells = [f"`{name}`", f"{labels.name}, {half}", f"{len(labels.rows):,}"]
    for judge in judges:
        found = findwell.judges.card(records(labels), judge=judge)
        kappa, curve = found["kappa"], found.calibration
        assert curve is not None
        cells.append(around(kappa.value, kappa.low, kappa.high))
        cells.append(f"{curve.brier:.3f} ({curve.brier_low:.3f} to {curve.brier_high:.3f})")
    plain, fitted = (np.array(losses(each, labels)) for each in judges)
    change = interval(fitted - plain, bounds=(-1.0, 1.0), clusters=[row[0] for row in labels.rows])
    figures = [f"{each:+.3f}" for each in (change.value, change.low, change.high)]
    cells.append("{} ({} to {})".format(*figures).replace("-", "−"))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, and print the table."""
    sys.path.insert(0, str(ROOT / "examples" / "maintenance"))
    script = importlib.import_module("calibrate_local_judge")
    sets = [each for each in labelled(Path(sys.argv[1]), script) if each.name in SETS]
    print(f"| {' | '.join(HEADER)} |", f"|{'---|' * len(HEADER)}", sep="\n")
    for name, labels in product(JUDGES, sets):
        for half, rows, others in halves(labels):
            print(line(name, half, rows, others), flush=True)


if __name__ == "__main__":
    main()

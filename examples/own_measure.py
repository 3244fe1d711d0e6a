"""A measure of your own: how much of the first k chunks a reader reads for nothing.

    python examples/own_measure.py

A measure is a frozen dataclass with a formula over the relation between what was retrieved and what
should be found. Once registered it has a name with parameters and a cutoff, intervals, slices,
comparisons and explanations, over ids, texts, spans or the verdicts of a judge.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import findwell

DEMO = Path(findwell.__file__).parent / "demo"


@findwell.plugins.register_measure
@dataclass(frozen=True, kw_only=True)
class WastedReading(findwell.Measure):
    """The share of the first k chunks that stand above the first relevant one."""

    rel: float = 1.0  # a parameter: the grade from which a chunk is relevant

    name: ClassVar[str] = "wasted_reading"
    higher_is_better: ClassVar[bool] = False

    def compute(self, relation: findwell.types.Relation) -> NDArray[np.float64]:
        """Return one value per query; all queries are computed at once."""
        hits = relation.units(self.rel, self.k)  # the relevant units among the first k
        shown = relation.shown(self.k)  # how many there are: k may be a budget, and lists be short
        first = shown + 1
        np.minimum.at(first, hits.query, hits.rank)
        return (first - 1) / np.maximum(shown, 1)


result = findwell.evaluate(
    {"bm25": DEMO / "bm25.trec", "minilm": DEMO / "minilm.trec"},
    DEMO / "questions.jsonl",
    ["wasted_reading@5", "wasted_reading(rel=3)@5"],
)
for row in result.summary.iter_rows(named=True):
    interval = f"{row['low']:.3f} to {row['high']:.3f}"
    print(f"{row['run']:<7} {row['measure']:<25} {row['value']:.3f}  (95% interval {interval})")

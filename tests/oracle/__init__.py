"""A second implementation of every measure: plain Python over lists, written from the definitions.

Nothing here imports the package that it checks, NumPy or polars. Each function reads one query from
top to bottom, as a person with a pencil would. It is slow, and that is fine: its only job is to be
obviously right, so that property tests can compare the fast kernels with it.

| module | measures |
|---|---|
| `lists` | what a query is: units, items, repetitions, cutoffs |
| `counting` | counts and shares: P, recall, F, success, judged, utility … |
| `ranking` | where the hits stand: RR, AP, bpref, infAP, RBP, interpolated precision … |
| `gains` | graded gains: DCG, nDCG and its relatives, ERR, alpha_nDCG, G |
| `context` | what a language model is handed: cost, position, repetition, age |
"""

from tests.oracle import context, counting, gains, ranking
from tests.oracle.lists import Formulas, Query, value

FORMULAS: Formulas = {**counting.FORMULAS, **ranking.FORMULAS, **gains.FORMULAS, **context.FORMULAS}

__all__ = ["FORMULAS", "Query", "value"]

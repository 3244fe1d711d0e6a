"""How sure a number is: intervals, paired tests, corrections, power, agreement.

The modules are pure functions over arrays with one value per query. NaN is undefined and left out;
arrays are paired by position; infinite values are refused. Results are small and frozen; what is
undefined is None with a reason. Student's t, power and Kendall's τ need the extra `findwell[stats]`
(SciPy); all else needs NumPy only. The public names are about runs and results: which measures fit,
how many queries they need, and how deep to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names

if TYPE_CHECKING:
    from findwell.evaluation.choose import choose
    from findwell.evaluation.comparison.power import PowerAnalysis, power
    from findwell.evaluation.results.cutoffs import curve, smallest_k

__all__ = ["PowerAnalysis", "choose", "curve", "power", "smallest_k"]

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)

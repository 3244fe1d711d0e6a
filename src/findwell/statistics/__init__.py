"""How sure a number is: intervals, paired tests, corrections, power, agreement.

Pure functions over arrays with one value per query. NaN is undefined and left out; arrays are
paired by position; infinite values are refused. Results are small and frozen; what is undefined is
None with a reason. Student's t, power and Kendall's τ need the extra `findwell[stats]` (SciPy); all
else needs NumPy only.
"""

"""How sure a number is: intervals, paired tests, corrections, power, agreement.

Pure functions over arrays of values, one a query. NaN is undefined and left out; arrays are paired
by position; infinite values are refused. Results are small and frozen; what is undefined is None
with a reason. Intervals, the sign-flip test, `paired`, `tukey` and κ need NumPy only; the t test,
McNemar, `adjust`, power and the agreement of orders need the extra `karat[stats]`.
"""

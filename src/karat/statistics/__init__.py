"""How sure a number is: intervals, paired tests, corrections, power, agreement.

Pure functions over arrays of values, one a query. NaN is undefined and left out; arrays are paired
by position; infinite values are refused. Results are small and frozen; what is undefined is None
with a reason. The default interval, the sign-flip test, `paired` and `tukey` need NumPy only; the
t interval and test, McNemar, `adjust`, power and agreement need the extra `karat[stats]`.
"""

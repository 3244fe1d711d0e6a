"""Do the tests see a wrong program? Random mutants of the rooms that make the numbers.

`python -m tests.mutants --count 100 --seed 1` copies the sources, changes one operator, constant or
condition at a time, runs the tests of that room until the first failure, and reports which share of
the mutants was killed. A mutant that no test kills is listed with its place, so that a test can be
written, or the line removed. It takes about a minute per survivor, so it is not part of the suite.
"""

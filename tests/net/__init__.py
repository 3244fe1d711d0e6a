"""The golden net: what the program answers today, kept so that a redesign cannot change it unseen.

Three kinds of answers are recorded in `tests/net/recorded`:

- `values/DIALECT.tsv`: the value of every measure over every relation, query by query. Rows of a
  dialect that equal those of the default one are left out.
- `commands/NAME.json`: the JSON of every command on the demo and on untidy files, explanations and
  findings included. Times, versions and folders are masked.
- `CHANGES.md`: each accepted change, with its reason.

`python -m tests.net` compares to the last bit and shows what differs; `python -m tests.net --accept
"reason"` records today's answers and notes the reason. The tests allow differences in the last two
digits, since NumPy's logarithms differ between processors.
"""

"""How large the program may be: a table of budgets that only goes down.

`python -m tests.budgets` prints today's figures beside the budgets; `--lower` writes lower figures
into `budgets.toml` and refuses to raise one. A capability that is worth its lines raises a budget
by hand, in the commit that brings it, with a reason in the commit message.
"""

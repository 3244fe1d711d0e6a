"""How many chunks should go into the prompt? Measures at growing cutoffs, and the smallest K.

    python examples/choose_k.py

More chunks find more and cost more. The curve shows what each further chunk brings; `smallest_k`
answers for a target.
"""

from pathlib import Path

import findwell

DEMO = Path(findwell.__file__).parent / "demo"
TARGET = 0.85
CUTOFFS = (1, 3, 5, 10, 20)

result = findwell.evaluate(
    {"bm25": DEMO / "bm25.trec", "minilm": DEMO / "minilm.trec"}, DEMO / "questions.jsonl"
)
curve = findwell.statistics.curve(result, ["recall", "P"], CUTOFFS)
print("run      measure  " + "".join(f"@{k:<6}" for k in CUTOFFS))
for (run, measure), rows in curve.group_by("run", "measure", maintain_order=True):
    print(f"{run:<8} {measure:<8} " + "".join(f"{value:<7.3f}" for value in rows["value"]))

print()
for run in result.runs:
    found = findwell.statistics.smallest_k(result, "recall", TARGET, run=run)
    print(f"{run}: recall >= {TARGET} " + (f"from k = {found}" if found else "at no k"))

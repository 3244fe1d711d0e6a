"""Is the new retriever better, and may it be merged? A comparison and a gate for CI.

    python examples/compare_and_gate.py; echo "exit code $?"

Compares two runs on the same questions with a paired test, says which questions moved most, and
ends with the exit code of a gate: 0 passed, 1 failed, 3 undecided. In your own pipeline replace the
two files by what your retriever returned before and after the change.
"""

import sys
from pathlib import Path

import findwell

DEMO = Path(findwell.__file__).parent / "demo"
MEASURES = ["recall@5", "nDCG@10"]
REQUIREMENTS = [
    "recall@5>=baseline-0.02",  # no worse than before, but for noise
    "nDCG@10>=baseline",
]


def main() -> int:
    """Compare, print, and return the exit code of the gate."""
    systems = {"before": DEMO / "bm25.trec", "after": DEMO / "minilm.trec"}
    comparison = findwell.compare(systems, gold=DEMO / "questions.jsonl", measures=MEASURES)
    for measure in MEASURES:
        row = comparison["after", measure]
        print(
            f"{measure}: {row['difference']:+.3f} "
            f"(95% interval {row['low']:+.3f} to {row['high']:+.3f}, p = {row['p']:.4f}), "
            f"{row['wins']} questions better, {row['losses']} worse"
        )

    print("\nquestions that moved most in recall@5:")
    for row in comparison.moved.head(3).iter_rows(named=True):
        print(f"  {row['query']}: {row['before']:.2f} -> {row['after']:.2f}  {row['question']}")

    gate = findwell.gate(comparison, REQUIREMENTS)
    print()
    for verdict in gate.verdicts:
        print(f"{verdict.outcome}: {verdict.requirement}")
    return gate.exit_code


if __name__ == "__main__":
    sys.exit(main())

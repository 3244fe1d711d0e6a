"""Evaluate two runs as in a notebook: totals, slices, single questions, a saved result, a report.

    python examples/slices_and_report.py [FOLDER]

Writes the result and `report.html` to FOLDER (default: findwell-example). Each block between
comments is one cell of a notebook; there `result` on a line of its own shows a table.
"""

import sys
from pathlib import Path

import polars as pl

import findwell

DEMO = Path(findwell.__file__).parent / "demo"
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "findwell-example")

# measure two runs; the corpus brings the texts that the report shows, keep= how many per question
result = findwell.evaluate(
    {"bm25": DEMO / "bm25.trec", "minilm": DEMO / "minilm.trec"},
    DEMO / "questions.jsonl",
    ["recall@5", "nDCG@10"],
    corpus=DEMO / "passages.jsonl",
    reading=findwell.Reading(keep=20),
)
print(result)

# where is a run weak? The columns of the questions are slices
print("\nrecall@5 by wording")
by_wording = result.by("wording").filter(pl.col("measure") == "recall@5")
for row in by_wording.iter_rows(named=True):
    print(f"  {row['slice']:<11} {row['run']:<7} {row['value']:.3f}  ({row['n']} questions)")

# every question is a row of a polars frame
of_minilm = result.per_query.filter(pl.col("run") == "minilm", pl.col("measure") == "recall@5")
missed = of_minilm.filter(pl.col("value") == 0)["query"].to_list()
print(f"\nminilm found nothing for {', '.join(missed)}")

# what findwell noticed about the files: counted, with examples
for finding in result.findings:
    print(f"note: {finding.message}")

# keep it: a folder that can be loaded, compared and scored again without the files
saved = result.save(FOLDER / "result")
again = findwell.load(saved).score(["success@1"])
print(f"\nsuccess@1 of minilm, from the saved result: {again['minilm', 'success@1']:.3f}")

# one HTML file with intervals, comparison, slices and every failing question
findwell.report(saved, output=FOLDER / "report.html")
print(f"written: {FOLDER / 'report.html'}")

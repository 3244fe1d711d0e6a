"""Progress: one count over all that is done, which names its phase and never goes back."""

from pathlib import Path

import findwell
from findwell.core.progress import Progress

DEMO = Path(findwell.__file__).parent / "demo"
RUNS = [DEMO / "bm25.trec", DEMO / "minilm.trec"]


def shares(seen: list[Progress]) -> list[float]:
    return [step.done / step.total for step in seen]


def test_runs_relations_and_a_judge_are_one_piece_of_work() -> None:
    seen: list[Progress] = []
    findwell.evaluate(
        RUNS,
        DEMO / "questions.jsonl",
        ["recall@5", "recall@5/rouge", "context_recall@5"],
        judge="local:text(entities=rules)",
        corpus=DEMO / "passages.jsonl",
        progress=seen.append,
    )
    assert shares(seen) == sorted(shares(seen))
    assert (shares(seen)[0], shares(seen)[-1]) == (0, 1)
    phases = list(dict.fromkeys(step.phase for step in seen if step.phase))
    assert phases == [
        *("bm25 by ids", "bm25 by rouge"),
        *("minilm by ids", "minilm by rouge"),
        *("judging bm25", "judging minilm"),
    ]


def test_systems_of_a_comparison_are_one_piece_of_work() -> None:
    gold = {f"q{n}": ["a"] for n in range(20)}
    questions = {query: query for query in gold}
    seen: list[Progress] = []
    findwell.compare(
        {"first": lambda _: ["a"], "second": lambda _: ["b"]},
        gold,
        measures=["recall@5"],
        queries=questions,
        progress=seen.append,
        by="ids",
    )
    assert shares(seen) == sorted(shares(seen))
    assert shares(seen)[-1] == 1
    assert any("first: asking" in step.phase for step in seen)

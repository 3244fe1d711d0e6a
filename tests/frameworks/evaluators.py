"""The evaluator of LlamaIndex next to findwell, on random lists: `python -m … llama_index`."""

from __future__ import annotations

import json
import random
import sys

NAMES = ("hit_rate", "mrr", "precision", "recall", "ap", "ndcg")
LISTS = 300


def llama_index() -> dict[str, float]:
    """Return the largest difference of each metric from findwell's measure of the same name."""
    from llama_index.core.evaluation import resolve_metrics

    import findwell

    chance, docs = random.Random(1), [f"d{number}" for number in range(12)]
    run = {f"q{n}": chance.sample(docs, chance.randint(1, 8)) for n in range(LISTS)}
    gold = {query: chance.sample(docs, chance.randint(1, 4)) for query in run}
    result = findwell.evaluate(run, gold, NAMES)
    found: dict[str, float] = {}
    for name, metric, measure in zip(
        NAMES, resolve_metrics([*NAMES]), result.measures, strict=True
    ):
        rows = result.per_query.filter(measure=str(measure))
        values = dict(rows.select("query", "value").rows())
        found[name] = max(
            abs(values[query] - metric().compute(expected_ids=gold[query], retrieved_ids=ids).score)
            for query, ids in run.items()
        )
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(llama_index()) + "\n")

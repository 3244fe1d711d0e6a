"""Runs and golds with everything that engines could get wrong, and what findwell says of them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import polars as pl

from tests.strategies import without_facts

if TYPE_CHECKING:
    import findwell
    from findwell import Measure

STRICT = ("trec_eval", "trec_eval-9")  # refuse documents that are retrieved or judged twice
EVERY: tuple[Measure, ...] = tuple(
    dict.fromkeys(
        cls(k=k).with_level(level)
        for cls in without_facts().values()
        for k, level in (((None, 1.0), (3, 2.0)) if cls.at == "k" else ((None, 1.0),))
    )
)
TEXTS = (
    "The pump is blue. It is small.",
    "The tank is full.",
    "Pumps hum at night. Nobody knows why.",
    "A hose leaks, and the tank is empty.",
    "Nothing of all this was bought in spring.",
)


def hard_case(seed: int, dialect: str = "findwell", queries: int = 60) -> tuple[Any, Any]:
    """Return rows of a run and of a gold: ties, duplicates, missing and extra queries, groups."""
    rng = random.Random(seed)
    strict = dialect in STRICT
    run: list[Any] = []
    gold: list[Any] = []
    for number in range(queries):
        query = f"q{number}"
        docs = [f"d{rng.randrange(30)}" for _ in range(rng.choice([1, 2, 5, 20]))]
        docs = list(dict.fromkeys(docs)) if strict else docs
        if number % 11 != 3 or dialect == "trec_eval":  # which refuses missing queries
            # few scores, so that many are equal; some only as 32-bit floats
            scores = [rng.choice([0.5, 1.0, 1.00000001, 2.0, -1.0]) for _ in docs]
            run += zip([query] * len(docs), docs, scores, strict=True)
        if number % 13 == 5 and dialect != "trec_eval":
            continue  # a query that the gold does not have
        judged = [f"d{rng.randrange(30)}" for _ in range(rng.choice([1, 3, 8]))]
        judged = list(dict.fromkeys(judged)) if strict or number % 2 else judged
        for doc in judged:
            group = None if strict or rng.random() < 0.5 else f"g{rng.randrange(3)}"
            gold.append((query, doc, rng.choice([-1, 0, 1, 1, 2, 3]), group))
    return (
        pl.DataFrame(run, ["query", "doc", "score"], orient="row"),
        pl.DataFrame(
            gold,
            {"query": pl.String, "doc": pl.String, "grade": pl.Int64, "group": pl.String},
            orient="row",
        ),
    )


def records(seed: int, queries: int = 40) -> list[dict[str, Any]]:
    """Return records with lists in rank order, texts, groups, questions and a topic."""
    rng = random.Random(seed)
    return [
        {
            "query": f"r{number:02}",
            "question": f"Is the pump number {number} blue?",
            "reference": "The pump is blue. The tank is full.",
            "retrieved": [
                {"doc": f"d{at}", "text": TEXTS[at % 5]}
                for at in rng.choices(range(12), k=rng.choice([0, 1, 4, 8]))
            ],
            "gold": [
                {"doc": f"d{at}", "grade": rng.choice([1, 2]), "text": TEXTS[at % 5]}
                for at in rng.sample(range(12), rng.choice([1, 2, 3]))
            ],
            "topic": rng.choice(["tea", "ink", None]),
        }
        for number in range(queries)
    ]


def expected(result: findwell.Result) -> pl.DataFrame:
    """Return the values of queries, in an order that every engine can give."""
    return result.per_query.select("query", "measure", "value", "reason").sort("query", "measure")


def assert_same(found: pl.DataFrame, result: findwell.Result) -> None:
    """Assert that values and reasons are the same, bit for bit."""
    wanted = expected(result)
    got = found.select(wanted.columns).sort("query", "measure")
    assert got.height == wanted.height
    for name in ("query", "measure", "reason"):
        assert got[name].equals(wanted[name]), name
    bits = [each["value"].to_numpy().view("int64") for each in (got, wanted)]
    null = [each["value"].is_null() for each in (got, wanted)]
    assert null[0].equals(null[1])
    wrong = (bits[0] != bits[1]) & ~null[0].to_numpy()
    assert not wrong.any(), pl.concat([got.filter(wrong), wanted.filter(wrong)])

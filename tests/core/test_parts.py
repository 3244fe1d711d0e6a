"""Gold and relation in parts are those of the whole."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.data import Gold
from findwell.io.read import format as source
from findwell.io.read import load_gold
from tests.chunk_facts import with_facts

if TYPE_CHECKING:
    from pathlib import Path


def judgements(seed: int, *, back: bool) -> list[tuple[str, str, float]]:
    """Make judgements with repeated documents; with `back` some queries come again later."""
    rng = random.Random(seed)
    queries = [f"q{number}" for number in range(30)]
    lines = [
        (query, f"d{rng.randrange(12)}", float(rng.randrange(-1, 4)))
        for query in queries
        for _ in range(rng.randint(1, 9))
    ]
    if back:
        lines += [(query, "late", 1.0) for query in rng.sample(queries, 3)]
    return lines


@pytest.mark.parametrize("back", [False, True], ids=["grouped", "back"])
@pytest.mark.parametrize("block", [1, 60, 333])
def test_a_gold_of_any_block_is_that_of_all_rows(
    back: bool, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = judgements(block, back=back)
    path = tmp_path / "qrels"
    path.write_text("".join(f"{query} 0 {doc} {grade:g}\n" for query, doc, grade in lines))
    monkeypatch.setattr(source, "BLOCK", block)
    found = load_gold(path)
    whole = Gold.build(pl.DataFrame(lines, schema=["query", "doc", "grade"], orient="row"))
    assert found.queries.equals(whole.queries)
    assert found.member_doc.to_list() == whole.member_doc.to_list()
    for name in ("item_offset", "item_grade", "member_item", "item_times"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    assert [(each.kind, each.message) for each in found.findings] == [
        (each.kind, each.message) for each in whole.findings
    ]


def test_every_measure_of_blocks_is_that_of_the_whole() -> None:
    rng = random.Random(7)
    docs = [f"d{number}" for number in range(12)]
    run = {f"q{number}": rng.sample(docs, rng.randint(0, 9)) for number in range(40)}
    gold = pl.DataFrame(judgements(7, back=False), schema=["query", "doc", "grade"], orient="row")
    result = findwell.evaluate(run, gold, "RR")
    relation = with_facts(result.relation(result.runs[0]))
    blocks = list(relation.blocks(10))
    assert len(blocks) > 5
    assert pl.concat([block.queries for block in blocks]).equals(relation.queries)
    for cls in findwell.plugins.known_measures().values():
        measure = cls()
        values = np.concatenate([measure.values(block) for block in blocks])
        np.testing.assert_array_equal(values, measure.values(relation), str(measure))


def test_queries_are_found_in_any_order() -> None:
    names = [f"q{number}" for number in range(2_000)]
    gold = Gold.build(pl.DataFrame({"query": names, "doc": names, "grade": 1.0}))
    rng = random.Random(3)
    for known in (names[500:900], names[900:1000], rng.sample(names, 2_000), names * 2):
        asked = [*known, "unknown"]
        expected = [names.index(name) if name != "unknown" else -1 for name in asked]
        assert gold.find(pl.Series(asked)).tolist() == expected

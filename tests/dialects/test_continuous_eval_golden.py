"""The dialect says what continuous-eval itself says, all its deterministic retrieval metrics."""

from __future__ import annotations

import json
import random
import sys
from math import log2
from typing import TYPE_CHECKING

import numpy as np
import pytest

import findwell
from findwell.evaluation.results.summaries import bounds
from tests.dialects import continuous_eval_peer as peer
from tests.strategies import by_measure

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dialects.continuous_eval_peer import Sample, Values

PLAIN, RANKED = ("P", "recall", "F"), ("AP", "RR", "nDCG")
MEASURES = {
    "exact": (*PLAIN, *RANKED),
    "rouge": (*PLAIN, *RANKED),
    "exact-sentence": PLAIN,
    "rouge-sentence": PLAIN,
}
SAMPLES = 4_000


def check(samples: list[Sample], told: list[Values], by: str) -> None:
    measures = MEASURES[by]
    result = findwell.evaluate(samples, measures=measures, by=by, dialect="continuous-eval")
    columns = [list(values.values()) for values in by_measure(result).values()]
    rows = list(zip(*columns, strict=True))
    for row, values, made in zip(rows, told, samples, strict=True):
        for measure, found, value in zip(measures, row, values[by], strict=True):
            wanted = None if value is None else pytest.approx(value, abs=1e-12)
            assert found == wanted, (measure, made)


@pytest.mark.parametrize("by", MEASURES)
def test_what_it_said(by: str) -> None:
    cases = json.loads(peer.GOLDEN.read_text(encoding="utf-8"))["cases"]
    told = [case.pop("values") for case in cases]
    assert sum(values[by][0] not in (0, 1) for values in told) > len(told) / 20
    check(cases, told, by)


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="continuous-eval takes no such Python")
def test_what_it_says_of_thousands_of_random_samples() -> None:
    assert peer.PEER.exists(), "make .venv/peer"
    rng = random.Random()
    samples = [peer.sample(rng) for _ in range(SAMPLES)]
    told = peer.ask(samples)["values"]
    for by in MEASURES:
        check(samples, told, by)


def test_ids_are_compared_as_exact_chunks_are() -> None:
    cases = json.loads(peer.GOLDEN.read_text(encoding="utf-8"))["cases"]
    named = {
        str(number): case
        for number, case in enumerate(cases)
        if all(map(str.strip, case["retrieved_context"] + case["ground_truth_context"]))
    }
    run = {query: case["retrieved_context"] for query, case in named.items()}
    gold = {query: case["ground_truth_context"] for query, case in named.items()}
    result = findwell.evaluate(run, gold, MEASURES["exact"], dialect="continuous-eval")
    for at, values in enumerate(by_measure(result).values()):
        wanted = {query: case["values"]["exact"][at] for query, case in named.items()}
        assert values == pytest.approx(wanted, abs=1e-12)


def test_how_often_a_gold_is_listed_is_known_on_disk_and_to_bounds(tmp_path: Path) -> None:
    run, gold = {"q": ["a", "x"], "r": ["x", "b"]}, {"q": ["a", "a"], "r": ["b"]}
    result = findwell.evaluate(run, gold, ["nDCG"], dialect="continuous-eval")
    loaded = findwell.load(result.save(tmp_path / "saved"))
    second, third = 1 / log2(3), 1 / log2(4)
    wanted = {"q": pytest.approx(1 / (1 + second)), "r": pytest.approx(second)}
    assert by_measure(result)["nDCG"] == by_measure(loaded.score(["nDCG"]))["nDCG"] == wanted
    (relation,) = result.relations.values()
    ((low, high),) = bounds(relation, result.measures)
    assert low.tolist() == pytest.approx([1 / (1 + second), second])
    assert high.tolist() == pytest.approx([(1 + second) / (1 + second + third), 1])
    alone = relation.select(np.array([True, False]))
    assert result.measures[0].values(alone).tolist() == [wanted["q"]]

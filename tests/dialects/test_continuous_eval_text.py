"""continuous-eval's metrics over texts where it has none itself: other thresholds, cutoffs, …

They are compared with their definition on the package rouge.
"""

from __future__ import annotations

import random
from functools import cache
from math import log2
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from tests.strategies import by_measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

rouge = pytest.importorskip("rouge")

Sample = dict[str, list[str]]
SAMPLES = 1_000
MEASURES = ["precision", "recall", "f1", "AP", "RR", "nDCG"]
# words that differ in case or dots only, several scripts, dots inside and alone
WORDS = [
    "a",
    "b",
    "c",
    "dog",
    "dog.",
    "Dog",
    "the",
    "fox",
    "fox.",
    "U.S.",
    "x.y",
    ".",
    "é",
    "É",
    "日本",
    "日本.",
    "東京。",
    "שלום",
    "1.5",
    "don't",
]
SPACES = (" ", " ", "  ", "\n", "\t")


def text(rng: random.Random, most: int) -> str:
    return rng.choice(SPACES).join(rng.choices(WORDS, k=rng.randrange(most)))


def sample(rng: random.Random) -> Sample:
    """Return retrieved and gold texts: blank, equal, contained, several in one, repeated."""
    gold = list(dict.fromkeys(text(rng, 6) for _ in range(rng.randrange(4))))
    retrieved = [text(rng, 14) for _ in range(rng.randrange(6))]
    if gold and rng.random() < 0.6:
        other = f"{text(rng, 4)} {rng.choice(gold)}"
        retrieved.insert(rng.randrange(len(retrieved) + 1), rng.choice([rng.choice(gold), other]))
    if len(gold) > 1 and rng.random() < 0.3:
        retrieved.insert(0, ". ".join(gold))
    if retrieved and rng.random() < 0.3:
        retrieved.append(rng.choice(retrieved))
    return {"retrieved_context": retrieved, "ground_truth_context": gold}


@cache
def rouge_l(unit: str, item: str) -> float:
    """Return the recall of the package; where it refuses a text, nothing matches."""
    try:
        return float(rouge.Rouge(["rouge-l"]).get_scores(unit, item)[0]["rouge-l"]["r"])
    except ValueError:
        return 0.0


def by_rouge(threshold: float) -> Callable[[str, str], bool]:
    return lambda unit, item: rouge_l(unit, item) >= threshold


def oracle(
    retrieved: Sequence[str], gold: Sequence[str], matches: Callable[[str, str], bool]
) -> list[float | None]:
    """Compute the metrics as SEMANTICS tells them; the ranked ones have no value without gold."""
    relevant = [any(matches(unit, item) for item in gold) for unit in retrieved]
    hit = {item for item in gold if any(matches(unit, item) for unit in retrieved)}
    precision = sum(relevant) / len(relevant) if relevant else 0.0
    recall = len(hit) / len(set(gold)) if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    if not gold:
        return [precision, recall, f1, None, None, None]
    ranks = [rank for rank, is_relevant in enumerate(relevant, start=1) if is_relevant]
    average = sum(nth / rank for nth, rank in enumerate(ranks, start=1)) / max(len(ranks), 1)
    left, credit = list(gold), 0.0
    for rank, unit in enumerate(retrieved, start=1):
        first = next((item for item in left if matches(unit, item)), None)
        if first is not None:
            left.remove(first)
            credit += 1 / log2(rank + 1)
    ideal = sum(1 / log2(rank + 1) for rank in range(1, len(gold) + 1))
    return [precision, recall, f1, average, 1 / ranks[0] if ranks else 0.0, credit / ideal]


def check(samples: list[Sample], by: str, wanted: list[list[float | None]], cut: str = "") -> None:
    measures = [name + cut for name in MEASURES]
    result = findwell.evaluate(samples, measures=measures, by=by, dialect="continuous-eval")
    columns = [list(values.values()) for values in by_measure(result).values()]
    rows = [list(row) for row in zip(*columns, strict=True)]
    assert len(rows) == len(wanted)
    for row, want, made in zip(rows, wanted, samples, strict=True):
        for found, value in zip(row, want, strict=True):
            assert found == (None if value is None else pytest.approx(value, abs=1e-12)), made


MATCHERS: dict[str, Callable[[str, str], bool]] = {
    "rouge(threshold=0.4)": by_rouge(0.4),
    "exact": str.__eq__,
}


@pytest.mark.parametrize("by", MATCHERS)
def test_thousands_of_random_samples(by: str) -> None:
    rng = random.Random(11)
    samples = [sample(rng) for _ in range(SAMPLES)]
    wanted = [
        oracle(each["retrieved_context"], each["ground_truth_context"], MATCHERS[by])
        for each in samples
    ]
    assert sum(row[0] not in (0.0, 1.0) for row in wanted) > SAMPLES / 20
    check(samples, by, wanted)


def test_a_cutoff_takes_the_first_retrieved() -> None:
    rng = random.Random(12)
    samples = [sample(rng) for _ in range(500)]
    wanted = [
        oracle(each["retrieved_context"][:2], each["ground_truth_context"], by_rouge(0.7))
        for each in samples
    ]
    check(samples, "rouge", wanted, "@2")


def test_sentences_with_the_same_splitter() -> None:
    rng = random.Random(13)
    samples = [sample(rng) for _ in range(1_000)]

    def lines(texts: list[str]) -> list[str]:
        return [line.strip() for text in texts for line in text.splitlines() if line.strip()]

    wanted = [
        oracle(
            lines(each["retrieved_context"]),
            list(dict.fromkeys(lines(each["ground_truth_context"]))),
            by_rouge(0.8),
        )
        for each in samples
    ]
    assert sum(row[0] not in (0.0, 1.0) for row in wanted) > 50
    check(samples, "rouge-sentence(splitter=lines)", wanted)


def test_the_worked_example() -> None:
    sample = {
        "question": "What is the capital of France?",
        "retrieved_context": [
            "Paris is the capital of France and also the largest city in the country.",
            "Lyon is a major city in France.",
        ],
        "ground_truth_context": ["Paris is the capital of France."],
    }
    result = findwell.evaluate([sample], measures=MEASURES, by="rouge", dialect="continuous-eval")
    assert list(result.values.values()) == pytest.approx([0.5, 1.0, 2 / 3, 1.0, 1.0, 1.0])
    assert result.provenance.settings == {
        "rouge(text=raw,form=union)": {"threshold": 0.7, "text": "raw", "form": "union"}
    }
    exact = findwell.evaluate([sample], measures="precision", by="exact", dialect="continuous-eval")
    assert exact["precision"] == 0.0


def test_a_trailing_space_makes_a_difference_there() -> None:
    sample = {"retrieved_context": ["A text. "], "ground_truth_context": ["A text."]}
    values = {
        dialect: findwell.evaluate([sample], measures="recall", by="exact", dialect=dialect)[
            "recall"
        ]
        for dialect in ("findwell", "continuous-eval")
    }
    assert values == {"findwell": 1.0, "continuous-eval": 0.0}


def test_a_measure_may_name_the_relation() -> None:
    sample = {"retrieved_context": ["a b c. d"], "ground_truth_context": ["d a b"]}
    result = findwell.evaluate([sample], measures=["recall/rouge"], dialect="continuous-eval")
    name = "recall/rouge(text=raw,form=union)"
    assert result.values == {name: 1.0}  # the order of sentences does not matter there
    assert findwell.evaluate([sample], measures=["recall/rouge"])["recall/rouge"] == 0.0


def test_what_is_kept_on_disk_is_measured_anew(tmp_path: Any) -> None:
    rng = random.Random(14)
    samples = [sample(rng) for _ in range(50)]
    result = findwell.evaluate(samples, measures=MEASURES, by="rouge", dialect="continuous-eval")
    loaded = findwell.load(result.save(tmp_path / "saved"))
    assert loaded.score(MEASURES).per_query.equals(result.per_query)

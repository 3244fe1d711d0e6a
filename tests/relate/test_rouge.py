"""ROUGE-L of many pairs: against plain tables, `rouge-score` and `rouge` 1.0.1, pruned or not."""

from __future__ import annotations

import json
import random
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import OptionError
from findwell.core.texts.words import words
from findwell.relations.match import rouge
from findwell.relations.match.rouge import rouge_l_recall, union_lcs_recall
from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from findwell.core.data import Floats, Ints

    Score = Callable[..., Floats]

SHARED = Path(__file__).parents[2] / "../shared/data/clapnq/clapnq_dev_answerable.jsonl"
LEAST = (1e-9, 0.25, 1 / 3, 0.5, 0.7, 0.8, 1.0)
WORDS = [*"abcA#ß", "a,", "é", "e\u0301", "中文", "ありがとう", "مرحبا", "😀", "don't"]
BETWEEN = [*[" "] * 8, "\n", ". ", ".", "..", ". . ", "  ", "\u3000", "\x1f", ""]
ALL_PAIRS = st.integers(0, 2**32).map(lambda seed: Texts(random.Random(seed)))


class Texts:
    """Some random texts, from one word repeated to many, blank and empty ones too."""

    def __init__(self, rng: random.Random, count: int = 12) -> None:
        words = rng.choices(WORDS, k=rng.choice([1, 2, 3, 5, 14]))
        self.units = [_text(rng, words) for _ in range(count)]
        self.items = [_text(rng, words) for _ in range(count)]
        self.pairs = every_pair(self.units, self.items)

    def __repr__(self) -> str:
        return f"units {self.units}, items {self.items}"

    def scores(self, one: Callable[[str, str], float]) -> Floats:
        """Score the pairs one by one."""
        unit, item = self.pairs
        return np.array(
            [one(self.units[u], self.items[i]) for u, i in zip(unit, item, strict=True)]
        )


def _text(rng: random.Random, words: Sequence[str]) -> str:
    length = rng.randrange(rng.choice([1, 5, 30]))
    return "".join(rng.choice(words) + rng.choice(BETWEEN) for _ in range(length))


def every_pair(units: Sequence[str], items: Sequence[str]) -> tuple[Ints, Ints]:
    unit, item = np.divmod(np.arange(len(units) * len(items)), len(items))
    return unit, item


def one(score: Score, unit: str, item: str, **options: object) -> float:
    return float(score([unit], [item], (np.array([0]), np.array([0])), **options)[0])


def common(x: Sequence[str], y: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, cell by cell."""
    row = [0] * (len(y) + 1)
    for a in x:
        corner = 0
        for j, b in enumerate(y):
            corner, row[j + 1] = row[j + 1], corner + 1 if a == b else max(row[j], row[j + 1])
    return row[-1]


@lru_cache
def remembered(text: str, policy: str) -> list[str]:
    found: list[str] = words(pl.Series([text], dtype=pl.String), policy).item().to_list()
    return found


def by_table(unit: str, item: str, policy: str = "plain") -> float:
    words = remembered(item, policy)
    return common(remembered(unit, policy), words) / len(words) if words else 0.0


def by_rouge(unit: str, item: str) -> float:
    from rouge import Rouge

    try:
        (found,) = Rouge().get_scores(unit, item, ignore_empty=True)
    except ValueError:
        return 0.0
    return float(found["rouge-l"]["r"])


def assert_same_from(least: float, pruned: Floats, exact: Floats) -> None:
    """Pruning may change a score only where it is too small either way."""
    asked = exact >= least
    assert (pruned[asked] == exact[asked]).all()
    assert (pruned[~asked] < least).all()


@pytest.mark.parametrize("policy", ["plain", "raw"])
@given(texts=ALL_PAIRS)
@examples(30)
def test_recall_is_the_table_s(policy: str, texts: Texts) -> None:
    expected = texts.scores(lambda unit, item: by_table(unit, item, policy))
    scores = rouge_l_recall(texts.units, texts.items, texts.pairs, text=policy)
    assert scores.tolist() == expected.tolist()


@given(ALL_PAIRS)
@examples(60)
def test_union_recall_is_that_of_rouge(texts: Texts) -> None:
    expected = texts.scores(by_rouge)
    scores = union_lcs_recall(texts.units, texts.items, texts.pairs)
    assert scores.tolist() == expected.tolist()


def test_union_recall_is_that_of_rouge_on_thousands_of_sentences_with_many_ways() -> None:
    """Few words in long sentences have many longest subsequences: the choice among them counts."""
    rng = random.Random(1)
    units, items = (
        [
            " ".join(rng.choices("abcdefgh", k=rng.randrange(1, 12))) + rng.choice(["", ". x y"])
            for _ in range(60)
        ]
        for _ in range(2)
    )
    pairs = every_pair(units, items)
    scores = union_lcs_recall(units, items, pairs)
    expected = [by_rouge(units[u], items[i]) for u, i in zip(*pairs, strict=True)]
    assert scores.tolist() == expected
    # were any longest subsequence as good, this one would do
    mirrored = union_lcs_recall(
        [" ".join(reversed(unit.split())) for unit in units],
        [" ".join(reversed(item.split())) for item in items],
        pairs,
    )
    assert (scores != mirrored).sum() > 100


def test_recall_is_that_of_rouge_score() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    rng = random.Random(2)
    words = ["The", "cat", "sat", "on", "a", "mat;", "7", "well-known", "UPPER", "(cat)"]
    texts = [" ".join(rng.choices(words, k=rng.randrange(40))) for _ in range(25)]
    pairs = every_pair(texts, texts)
    scorer = RougeScorer(["rougeL"])
    expected = [
        scorer.score(texts[item], texts[unit])["rougeL"].recall
        for unit, item in zip(*pairs, strict=True)
    ]
    assert rouge_l_recall(texts, texts, pairs).tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", [rouge_l_recall, union_lcs_recall])
@pytest.mark.parametrize("least", LEAST)
@given(texts=ALL_PAIRS)
@examples(15)
def test_pruning_changes_no_verdict(score: Score, least: float, texts: Texts) -> None:
    exact = score(texts.units, texts.items, texts.pairs)
    assert_same_from(least, score(texts.units, texts.items, texts.pairs, min_score=least), exact)


@pytest.mark.parametrize("score", [rouge_l_recall, union_lcs_recall])
def test_a_score_exactly_at_the_threshold_is_kept(score: Score) -> None:
    for size in (1, 2, 3, 7, 10, 30, 49):  # 1 / 49 * 49 is less than 1
        item = " ".join(f"w{number}" for number in range(size))
        for held in range(1, size + 1):
            unit = " ".join(f"w{number}" for number in range(held))
            exact = held / size
            assert one(score, unit, item, min_score=exact) == exact
            assert one(score, unit, item, min_score=np.nextafter(exact, 2)) < np.nextafter(exact, 2)


def test_long_items_are_pruned_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    words = [f"w{number}" for number in range(400)]
    units = [" ".join(rng.choices(words[: rng.choice([50, 400])], k=300)) for _ in range(30)]
    items = [*units[:10], *(" ".join(rng.choices(words, k=200)) for _ in range(20))]
    pairs = every_pair(units, items)
    exact = rouge_l_recall(units, items, pairs)
    compared: list[int] = []
    monkeypatch.setattr(rouge, "_common", _noting(compared))
    assert_same_from(0.7, rouge_l_recall(units, items, pairs, min_score=0.7), exact)
    assert sum(compared) < len(exact) / 2  # the others were never compared
    compared.clear()
    monkeypatch.setattr(rouge, "BITS", 2)  # a bound that rules nothing out
    assert_same_from(0.7, rouge_l_recall(units, items, pairs, min_score=0.7), exact)
    assert sum(compared) == len(exact)


def _noting(compared: list[int]) -> Callable[..., Ints]:
    original = rouge._common

    def common_and_note(*arguments: object) -> Ints:
        found: Ints = original(*arguments)  # type: ignore[arg-type]
        compared.append(len(found))
        return found

    return common_and_note


@pytest.mark.parametrize(("name", "value"), [("BATCH", 40), ("BATCH", 1), ("ALPHABET", 1)])
def test_neither_batches_nor_alphabet_change_a_score(
    name: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = Texts(random.Random(5))
    expected = rouge_l_recall(texts.units, texts.items, texts.pairs)
    monkeypatch.setattr(rouge, name, value)
    scores = rouge_l_recall(texts.units, texts.items, texts.pairs)
    assert scores.tolist() == expected.tolist()
    assert len(list(rouge._batches(texts.units, texts.items, texts.pairs))) > (name == "BATCH")


@pytest.mark.parametrize("score", [rouge_l_recall, union_lcs_recall])
def test_the_order_of_the_pairs_does_not_matter(score: Score) -> None:
    texts = Texts(random.Random(6))
    unit, item = texts.pairs
    order = np.random.default_rng(6).permutation(len(unit))
    shuffled = score(texts.units, texts.items, (unit[order], item[order]))
    assert shuffled.tolist() == score(texts.units, texts.items, texts.pairs)[order].tolist()


def test_more_words_than_the_first_plane_has_characters() -> None:
    """Codes must jump over the surrogates."""
    words = [f"w{number}" for number in range(0x10000)]
    item = " ".join(words)
    unit = " ".join(words[0xD000:0xF000])
    assert one(rouge_l_recall, unit, item) == 0x2000 / 0x10000


EDGES = {
    "empty unit": ("", "a b", 0.0),
    "empty item": ("a b", "", 0.0),
    "both empty": ("", "", 0.0),
    "only full stops": ("..", ".", 0.0),
    "one character": ("a", "a", 1.0),
    "one other character": ("a", "b", 0.0),
    "identical": ("One two. Three.", "One two. Three.", 1.0),
    "contained": ("zero one two three four", "one two three", 1.0),
    "right to left": ("قال مرحبا بالعالم اليوم", "مرحبا بالعالم", 1.0),
}


@pytest.mark.parametrize(("unit", "item", "expected"), EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("score", [rouge_l_recall, union_lcs_recall])
def test_edges(score: Score, unit: str, item: str, expected: float) -> None:
    assert one(score, unit, item) == expected


def test_scripts_without_spaces() -> None:
    assert one(rouge_l_recall, "我昨天在北京吃饭。", "在北京吃") == 1.0
    assert one(rouge_l_recall, "在京吃饭", "在北京吃") == 0.75
    assert one(union_lcs_recall, "我昨天在北京吃饭。", "在北京吃") == 0.0  # one long word


def test_blanks_are_words_of_the_package_rouge() -> None:
    assert one(rouge_l_recall, " ", " ") == 0.0
    assert one(union_lcs_recall, " ", " ") == by_rouge(" ", " ") == 1.0
    assert one(union_lcs_recall, "a b", "a. ") == by_rouge("a b", "a. ") == 0.5


@pytest.mark.parametrize("score", [rouge_l_recall, union_lcs_recall])
def test_no_pairs(score: Score) -> None:
    none = np.zeros(0, dtype=np.int64)
    assert score([], [], (none, none)).tolist() == []
    assert score(["a"], ["a"], (none, none)).tolist() == []


def test_the_example_of_continuous_eval() -> None:
    units = ["Paris is the capital of France and also the most populous city.", "Lyon is a city."]
    gold = "Paris is the capital of France."
    unit, item = np.array([0, 1]), np.array([0, 0])
    for score in (rouge_l_recall, union_lcs_recall):
        assert (score(units, [gold], (unit, item), min_score=0.7) >= 0.7).tolist() == [True, False]


def test_rouge_dies_of_recursion_where_findwell_goes_on() -> None:
    rng = random.Random(7)
    words = [f"w{number}" for number in range(150)]
    x, y = (" ".join(rng.choices(words, k=700)) for _ in range(2))
    with pytest.raises(RecursionError):
        by_rouge(y, x)
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(10_000)
        expected = by_rouge(y, x)
    finally:
        sys.setrecursionlimit(limit)
    assert 0 < one(union_lcs_recall, y, x) == expected < 1


def test_long_tables_are_made_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(8)
    x, y = (rng.choices("abcdefghijkl", k=500) for _ in range(2))
    whole = list(rouge._taken(x, y))
    monkeypatch.setattr(rouge, "KEPT_ROWS", 1)
    assert list(rouge._taken(x, y)) == whole
    assert len(whole) == common(x, y)


@pytest.mark.parametrize("score", [rouge_l_recall, union_lcs_recall])
def test_a_megabyte_chunk(score: Score) -> None:
    rng = random.Random(9)
    words = [f"w{number}" for number in range(30_000)]
    chunk = rng.choices(words, k=180_000)
    text = " ".join(chunk)
    assert len(text) > 1_000_000
    held = " ".join(chunk[90_000:90_040])
    foreign = " ".join(f"x{number}" for number in range(40))
    scores = score([text], [held, foreign, text], (np.zeros(3, dtype=np.int64), np.arange(3)))
    assert scores.tolist() == [1.0, 0.0, 1.0]


def test_real_passages_against_rouge() -> None:
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    records = [json.loads(line) for line in SHARED.read_text(encoding="utf-8").splitlines()[:40]]
    units = [record["passages"][0]["text"] for record in records]
    items = [record["output"][0]["answer"] for record in records]
    near = np.arange(len(units))
    pairs = np.repeat(near, 3), (np.repeat(near, 3) + np.tile([0, 1, 2], len(units))) % len(units)
    exact = union_lcs_recall(units, items, pairs)
    expected = [by_rouge(units[u], items[i]) for u, i in zip(*pairs, strict=True)]
    assert exact.tolist() == expected
    for least in (0.5, 0.7, 0.8):
        assert_same_from(least, union_lcs_recall(units, items, pairs, min_score=least), exact)


def test_rapidfuzz_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz.process", None)
    with pytest.raises(OptionError, match="rapidfuzz") as caught:
        one(rouge_l_recall, "a", "a")
    assert ".[text]" in caught.value.fix

"""Cosines of pairs of texts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findwell.judges.embeddings import cosine, embedder, find_embedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats, Ints
    from findwell.judges.embeddings import Vectors


def digest(text: str) -> list[float]:
    """Return numbers that differ for most texts, negative ones too; zeros for the text 0."""
    if text == "0":
        return [0.0, 0.0, 0.0]
    return [len(text) - 2.5, text.count("a") - 0.5, sum(map(ord, text)) % 7 - 3.0]


class Counting:
    name = "counting"

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.seen.update(texts)
        return np.array([digest(text) for text in texts], dtype=np.float32)


def pairs(*each: tuple[int, int]) -> tuple[Ints, Ints]:
    table = np.array(each, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def plain(one: str, two: str) -> float:
    a, b = np.array(digest(one)), np.array(digest(two))
    if one == two and any(map(str.isalnum, one)):
        return 1.0  # even where the model makes nothing of it
    if not (one.strip() and two.strip() and a.any() and b.any()):
        return 0.0
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


texts = st.lists(st.text("ab0 ", max_size=4), min_size=1, max_size=8)


@settings(deadline=None)
@given(texts, texts, st.data(), st.integers(1, 5))
def test_it_is_the_cosine_whatever_the_batches(
    units: list[str], items: list[str], data: st.DataObject, batch: int
) -> None:
    places = st.tuples(st.integers(0, len(units) - 1), st.integers(0, len(items) - 1))
    chosen = data.draw(st.lists(places, max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        whole = cosine(units, items, pairs(*chosen), Counting())
        patch.setattr(embedder, "EMBEDDED_TEXTS", batch)
        patch.setattr(embedder, "MULTIPLIED_NUMBERS", 3 * batch)
        counting = Counting()
        found = cosine(units, items, pairs(*chosen), counting)
    expected = [plain(units[unit], items[item]) for unit, item in chosen]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_array_equal(found, whole)
    assert found.dtype == np.float64
    assert (np.abs(found) <= 1).all()
    used = {units[u] for u, _ in chosen} | {items[i] for _, i in chosen}
    assert counting.seen == Counter(text for text in used if text.strip())


def test_equal_texts_are_exactly_one_blank_ones_zero() -> None:
    found = cosine(
        ["aa b", "", " \n", "aa b"],
        ["aa b", "", "x"],
        pairs((0, 0), (1, 1), (2, 2), (3, 1)),
        Counting(),
    )
    assert found.tolist() == [1, 0, 0, 0]


def test_nothing_to_compare() -> None:
    assert cosine([], [], pairs(), Counting()).shape == (0,)
    assert cosine(["", " "], [""], pairs((0, 0), (1, 0)), Counting()).tolist() == [0, 0]


def test_the_first_batches_may_be_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "EMBEDDED_TEXTS", 1)
    found = cosine(["", " ", "a"], ["aaa"], pairs((0, 0), (1, 0), (2, 0)), Counting())
    assert found[:2].tolist() == [0, 0]
    assert found[2] == pytest.approx(plain("a", "aaa"), abs=1e-6)


def similar(one: str, two: str) -> float:
    found: Floats = cosine([one], [two], pairs((0, 0)), find_embedder("minilm"))
    return float(found[0])


def test_the_real_model_tells_meaning() -> None:
    question = "Where is the Eiffel Tower?"
    assert similar(question, "The Eiffel Tower stands in Paris.") > 0.6
    assert similar(question, "Bread is baked from flour.") < 0.2
    assert similar(question, "") == 0
    assert similar("漢字" * 300_000, "漢字" * 300_000) == 1

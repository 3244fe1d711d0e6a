"""Embeddings draw the edges: any function serves, the default model is a real one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import findwell
from tests.relate import brute
from tests.strategies import examples


def count(texts: list[str]) -> list[list[float]]:
    """Embed texts by how often they have some letters."""
    return [[float(text.lower().count(letter)) for letter in "abcfotx日"] for text in texts]


def cosine(one: str, other: str) -> float:
    left, right = np.array(count([one, other]))
    size = np.linalg.norm(left) * np.linalg.norm(right)
    if not size or not one.strip() or not other.strip():
        return 0.0
    return float(left @ right / size)


@examples(40)
@given(brute.records(separators=" "), st.sampled_from([0.3, 0.61, 0.87]))
def test_a_cosine_at_the_threshold_is_an_edge(made: list[dict[str, Any]], threshold: float) -> None:
    by = f"semantic(threshold={threshold})"
    result = findwell.evaluate(brute.with_texts(made), measures="P", by=by, embedder=count)
    wanted = brute.expected(
        made, lambda unit, item: cosine(unit, item) >= threshold, key=lambda text: f"={text}"
    )
    doubtful = {
        (rank, item)
        for record in made
        for rank, unit in enumerate(record["retrieved"], start=1)
        for item in record["gold"]
        if abs(cosine(unit, item) - threshold) < 1e-6
    }
    found = brute.edges(result)
    assert {query: pairs - doubtful for query, pairs in found.items()} == {
        query: pairs - doubtful for query, pairs in wanted.items()
    }


def test_each_text_is_embedded_once() -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return count(texts)

    data = [
        {"query": f"q{n}", "retrieved": ["a fox", "a cat", "a fox "], "gold": ["the fox"]}
        for n in range(5)
    ]
    findwell.evaluate(data, measures="P", by="semantic", embedder=embed)
    assert sorted(asked) == sorted(set(asked))


def test_an_uncalibrated_threshold_is_a_finding() -> None:
    data = [{"query": "q", "retrieved": ["a fox"], "gold": ["the fox"]}]
    result = findwell.evaluate(data, measures="P", by="semantic(threshold=0.65)", embedder=count)
    (found,) = result.findings
    assert found.kind == "uncalibrated-threshold"
    assert found.examples == ("0.65",)
    named = "semantic(threshold=0.65,calibrated=labels-2024)"
    result = findwell.evaluate(data, measures="P", by=named, embedder=count)
    assert result.findings == ()
    assert result.provenance.settings[named]["calibrated"] == "labels-2024"
    assert result.provenance.settings[named]["threshold"] == 0.65


def test_the_default_model_tells_meanings_separate_calls(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = [
        {
            "query": "q",
            "retrieved": [
                "Recipes for apple pie with cinnamon.",
                "The battery of the bicycle must be charged before the first ride.",
            ],
            "gold": ["Charge the e-bike's battery before you ride it for the first time."],
        }
    ]
    result = findwell.evaluate(data, measures=["RR", "recall@1"], by="semantic")
    assert result.values == {"RR": 0.5, "recall@1": 0.0}
    ((scores),) = [
        [step.scores for step in told.ranking]
        for told in findwell.explain(data, measures="RR", by="semantic")
    ]
    assert scores[0][0][1] < 0.3
    assert scores[1][0][1] > 0.7


def test_a_blank_text_resembles_nothing() -> None:
    data = [{"query": "q", "retrieved": ["", " ", "a"], "gold": ["", "a"]}]
    data = brute.with_texts(data)
    result = findwell.evaluate(data, measures=["recall", "P"], by="semantic", embedder=count)
    assert result.values == {"recall": 0.5, "P": pytest.approx(1 / 3)}


UNLIKE = {
    "th": ["แบตเตอรี่ใช้เวลาชาร์จสี่ชั่วโมง", "สำนักงานใหญ่อยู่ที่กรุงเทพฯ", "แมวชอบนอน"],
    "ja": [
        "バッテリーの充電には4時間かかります。",
        "会社の本社は大阪にあります。",
        "猫は昼寝が好きです。",
    ],
    "ru": ["Зарядка аккумулятора занимает четыре часа.", "Мост был открыт в 1932 году."],
    "de": ["Das Laden der Akkus dauert vier Stunden.", "Die Katze liegt gern auf dem Sofa."],
    "en": ["Charging the battery takes four hours.", "The head office is in Leeds."],
}
KINDS = {"th": "unread-text", "ja": "unread-text", "ru": "unread-text", "de": "perhaps-unread-text"}


@pytest.mark.parametrize("language", UNLIKE)
def test_what_minilm_cannot_read_is_told(language: str) -> None:
    texts = UNLIKE[language]
    samples = [
        {"question": "?", "retrieved_contexts": [one], "reference_contexts": [other]}
        for one, other in itertools.permutations(texts, 2)
    ]
    result = findwell.evaluate(samples, measures=["recall"], by="semantic(threshold=0.95)")
    assert result["recall"] == 0
    told = [found for found in result.findings if found.kind != "uncalibrated-threshold"]
    kinds = {(found.kind, found.count, found.run != "") for found in told}
    wanted = KINDS.get(language)
    assert kinds == ({(wanted, len(texts), run) for run in (False, True)} if wanted else set())
    assert all("sentence-transformers" in found.fix for found in told)
    same = [{"question": "?", "retrieved_contexts": texts[:1], "reference_contexts": texts[:1]}]
    assert findwell.evaluate(same, measures=["recall"], by="semantic")["recall"] == 1


def test_a_model_of_the_users_own_is_believed() -> None:
    samples = [{"question": "?", "retrieved_contexts": ["fox"], "reference_contexts": ["Лиса."]}]
    result = findwell.evaluate(samples, measures=["recall"], by="semantic", embedder=count)
    assert [found.kind for found in result.findings] == ["uncalibrated-threshold"]

"""What makes a judge doubtful: a model that it shares with the system, labels that differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.judges.judge_findings import bare_model, judge_models
from findwell.judges.replay import FunctionJudge

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.core.findings import Finding
    from findwell.judges.verdicts import Sample


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))


class NamedJudge(FunctionJudge):
    """A function that says which model it asks."""

    def about(self) -> dict[str, Any]:
        return {**super().about(), "model": "gpt-4o-2024-08-06"}


def says_yes(sample: Sample) -> dict[str, Any]:
    return {"relevance": [1] * len(sample.chunks)}


def found(kind: str, samples: list[dict[str, Any]], **more: Any) -> list[Finding]:
    options: dict[str, Any] = {
        "measures": ["P@2", "P@2/relevance"],
        "judge": NamedJudge(says_yes),
    } | more
    return [each for each in findwell.evaluate(samples, **options).findings if each.kind == kind]


def test_a_record_that_is_gold_and_run_is_circular_once(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(sample(1, reranker="openai:gpt-4o", embedder="gpt-4o")))
    judged = findwell.evaluate(path, measures="context_precision", judge=NamedJudge(says_yes))
    circular = [each.message for each in judged.findings if each.kind == "circular-judge"]
    assert len(circular) == len(set(circular)) == 2


def sample(number: int, grade: int = 1, **more: Any) -> dict[str, Any]:
    retrieved = [{"doc": "a", "text": "One."}, {"doc": "b", "text": "Two."}]
    about = {"query": f"q{number}", "question": f"Why {number}?"}
    return {**about, "retrieved": retrieved, "gold": {"a": grade, "b": 0}, **more}


@pytest.mark.parametrize(
    ("column", "name", "did"),
    [
        ("synthetic", "openai:gpt-4o", "wrote the question"),
        ("reranker", "azure:GPT-4o", "reranked the list"),
        ("embedding_model", "owner/gpt-4o", "embedded the documents"),
    ],
)
def test_a_model_that_the_judge_shares_is_circular(column: str, name: str, did: str) -> None:
    (circular,) = found("circular-judge", [sample(1, 1, **{column: name}), sample(2), sample(3)])
    assert (circular.count, circular.examples) == (1, ("q1",))
    assert circular.message.endswith(f"with gpt-4o, which also {did}.")
    for other in ("openai:gpt-4o-mini", "yes", ""):
        assert not found("circular-judge", [sample(1, 1, **{column: other})])


def test_models_inside_of_panels_and_recordings_count() -> None:
    assert judge_models({"judges": [{"model": "M-1"}, {"recorded": {"model": "org/m2"}}]}) == {
        "m-1",
        "m2",
    }
    assert judge_models({"embedder": "minilm:256:b941bf19f1f1:2"}) == {
        bare_model("sentence-transformers/all-MiniLM-L6-v2")
    }
    assert judge_models({"embedder": None}) == set()
    for name in ("cohere:rerank-v3.5", "reranker:cohere:rerank-v3.5", "rerank-v3.5"):
        assert bare_model(name) == "rerank-v3.5"


def test_labels_check_a_judge_that_was_never_checked_on_them() -> None:
    labelled = [sample(number, number % 2) for number in range(8)]
    (unchecked,) = found("unchecked-judge", labelled)
    assert unchecked.count == 16
    assert "judge card" in unchecked.fix
    (rate,) = found("judge-yes-rate", labelled)
    assert rate.message.endswith("says yes to 100% of them, the labels to 25%.")
    # labels that only say yes cannot check it
    only_yes = [each | {"gold": {"a": 1}} for each in labelled]
    assert not found("unchecked-judge", only_yes)
    rows = [
        {"question": each["question"], "chunk": text, "label": int(text == "One.")}
        for each in labelled
        for text in ("One.", "Two.")
    ]
    judge = NamedJudge(lambda sample: {"relevance": [int("One" in it) for it in sample.chunks]})
    findwell.judges.card(rows, judge=judge).save()
    assert not found("unchecked-judge", labelled, judge=judge)
    assert not found("judge-yes-rate", labelled, judge=judge)


def test_verdicts_that_failed_are_not_compared() -> None:
    def fails(asked: Sample) -> dict[str, Any]:
        lost = asked.query == "q0"
        return {"relevance": [None if lost else 1] * len(asked.chunks)}

    judge = NamedJudge(fails)
    labelled = [sample(number, number % 2) for number in range(8)]
    (unchecked,) = found("unchecked-judge", labelled, judge=judge)
    assert unchecked.count == 14

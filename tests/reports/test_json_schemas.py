"""The JSON of saved results is what the published schemas say, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lazy import lazy

if TYPE_CHECKING:
    from tests.conftest import Findwell

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def closed(schema: Any) -> Any:
    """Let a schema refuse fields that it does not describe."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inside = {key: closed(each) for key, each in schema.items()}
    if "properties" in schema and "required" in schema:
        inside["additionalProperties"] = False
    return inside


def hold(name: str, shown: object) -> None:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    lazy("jsonschema").Draft202012Validator.check_schema(schema)
    lazy("jsonschema").Draft202012Validator(closed(schema)).validate(shown)


@pytest.fixture
def demo(cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    assert cli("demo", "--files", "demo").code == 0
    return ["demo/bm25.trec", "demo/minilm.trec", "--gold", "demo/questions.jsonl"]


def test_what_score_saves(cli: Findwell, demo: list[str], tmp_path: Path) -> None:
    more = ["--bounds", "--slice", "wording", "--require", "RR>=0.5"]
    assert cli("score", *demo, "-m", "RR", "-m", "P@5", *more, "--save", "r").code == 0
    for name in ("manifest", "summary"):
        hold(name, json.loads((tmp_path / "r" / f"{name}.json").read_text()))


def test_judged_scores_with_latency(cli: Findwell, tmp_path: Path) -> None:
    sample = {
        "question": "Where is Brasília?",
        "retrieved_contexts": ["Brasília is in Brazil.", ""],
        "reference": "In Brazil.",
        "latency_ms": 12.5,
    }
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(sample))
    chosen = ["-m", "context_precision", "-m", "context_recall", "--judge", "local:text"]
    assert cli("score", path, *chosen, "--save", tmp_path / "r").code == 0
    hold("manifest", json.loads((tmp_path / "r" / "manifest.json").read_text()))

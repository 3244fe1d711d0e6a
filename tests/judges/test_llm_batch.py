"""A judge that sends its calls as batches: verdicts, counts and manifest stay, the cost halves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.client.batch_server import BatchServer
from tests.client.server import serve
from tests.client.test_destination import SAMPLES
from tests.judges.judging import ALL, check_totals, judge_of, left_out, sample
from tests.judges.model import spoilt, well

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.conftest import Findwell, Save

VARYING = {"seconds", "endpoint", "batch", "cost", "stored", "repeated"}


def lasting(about: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if name not in VARYING}


def test_verdicts_and_manifest_are_those_of_single_calls() -> None:
    samples = [sample(number) for number in range(6)]
    model = BatchServer(spoilt(left_out))  # what is left out is asked again, in the next batch
    with serve(model.model) as server:
        single = judge_of(server, prices="2, 4", votes=2)
        expected = single.judge(samples, ALL)
    with serve(model) as server:
        judge = judge_of(server, batch=True, prices="2, 4", votes=2)
        found = judge.judge(samples, ALL)
        forecast = judge.dry_run([sample(99)], ALL)
        usual = single.dry_run([sample(99)], ALL)
    assert found == expected
    check_totals(judge, found)
    about = judge.about()
    assert lasting(about) == lasting(single.about())
    assert about["batch"]
    assert about["cost"] * 2 == single.about()["cost"]
    assert forecast.cost is not None
    assert usual.cost is not None
    assert (forecast.cost * 2, forecast.calls) == (usual.cost, usual.calls)
    assert len(model.batches) <= 6
    assert max(model.paid.values()) <= 2


def test_on_the_command_line(
    cli: Findwell, save: Save, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("findwell.judges.client.batches.GATHER_WAIT", 0.02)
    monkeypatch.setattr("findwell.judges.client.batches.FIRST_POLL", 0.02)
    samples = save("samples.jsonl", "\n".join(map(json.dumps, SAMPLES)))
    model = BatchServer(well, polls=0)
    with serve(model) as server:
        asked = ["score", samples, "-m", "context_recall", "--judge", "openai:m", "-J", "batch=yes"]
        asked += ["-J", f"base_url={server.url}", "-J", "prices=2,4", "--save", tmp_path / "result"]
        done = cli(*asked)
        assert done.code == 0, done
        assert "1.0000" in done.out
        assert cli(*asked).code == 0
    manifest = json.loads((tmp_path / "result" / "manifest.json").read_text())
    assert "'batch': True" in str(manifest)
    assert model.paid.total() == 1

"""The weights of the local judge: found again from public labels, with what they are worth."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from findwell.judges.local.calibration import MODELS

if TYPE_CHECKING:
    from collections.abc import Sequence


ROOT = Path(__file__).parents[2]
DATA = ROOT / "../shared/data"


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Import the script that fits the weights, with a cache of its own."""
    if not (DATA / "noveleval").is_dir():
        pytest.skip("the public labels are not here")
    before = os.environ.get("FINDWELL_CACHE_DIR")
    os.environ["FINDWELL_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    path = ROOT / "examples" / "maintenance" / "calibrate_local_judge.py"
    spec = importlib.util.spec_from_file_location("calibrate_local_judge", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibrate_local_judge"] = module
    spec.loader.exec_module(module)
    if before is None:
        del os.environ["FINDWELL_CACHE_DIR"]
    else:
        os.environ["FINDWELL_CACHE_DIR"] = before
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("text", {"NovelEval": 0.22, "ClapNQ": 0.48}),
        ("minilm", {"NovelEval": 0.30, "ClapNQ": 0.58}),
    ],
)
def test_the_weights_and_their_worth_can_be_found_again(
    calibration: ModuleType, kind: str, least: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "REPEATS", 3)
    sets = [
        calibration.Labels.of("NovelEval", calibration.noveleval()),
        calibration.Labels.of("ClapNQ", calibration.clapnq()),
    ]
    names: Sequence[str] = calibration.SIGNALS[kind]["relevance"]
    fitted = calibration.with_grades(calibration.fitted(sets, names), sets)
    shipped = MODELS[kind]["relevance"]
    assert fitted.intercept == pytest.approx(shipped.intercept, abs=0.1)
    assert dict(fitted.weights) == pytest.approx(dict(shipped.weights), abs=0.15)
    assert fitted.thresholds == pytest.approx(shipped.thresholds, abs=0.06)
    worth = calibration.cross_validate(sets, names)
    assert all(worth[name] >= value for name, value in least.items()), worth

"""Numbers for experiment trackers: names that they accept, and the helpers that log."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import findwell
from findwell.core.errors import InputError, OptionError
from findwell.evaluation.results.trackers import metric_name

ACCEPTED = re.compile(r"[\w./-]+", re.ASCII)  # what MLflow, W&B and TensorBoard all accept
RECORDS = [
    {"query": "q1", "retrieved": ["a"], "gold": ["a"], "latency_ms": 10.0, "error": None},
    {"query": "q2", "retrieved": ["x"], "gold": ["b"], "latency_ms": 30.0, "error": None},
]
FRAMEWORKS = Path(__file__).parents[2] / ".venv" / "frameworks-env" / "bin" / "python"


def test_every_number_is_there_under_a_plain_name() -> None:
    found = findwell.evaluate(RECORDS, measures=["recall@5", "nDCG(gain=exp)@10"]).metrics()
    assert found["recall_at_5"] == 0.5
    assert found["recall_at_5.low"] < 0.5 < found["recall_at_5.high"]
    assert found["nDCG_gain-exp_at_10"] == 0.5
    assert found["latency_p50_ms"] == 20.0
    assert found["error_rate"] == 0.0
    assert found["queries"] == 2.0
    assert all(isinstance(value, float) for value in found.values())


def test_runs_are_parted_and_undefined_values_left_out() -> None:
    named = {"q1": ["a"], "q2": []}
    runs = {"bm 25": {"q1": ["a"]}, "dense/e5": {"q1": ["x"]}}
    found = findwell.evaluate(runs, named, ["RR"], level=None).metrics()
    assert found["bm_25/RR"] == 1.0
    assert found["dense.e5/RR"] == 0.0
    records = [
        {"query": name, "retrieved": ["a"], "gold": gold, "part": name}
        for name, gold in (("q", ["a"]), ("r", []))
    ]
    result = findwell.evaluate(records, measures=["recall"], level=None)
    assert result.where("part", "r").metrics() == {"queries": 1.0}


def test_all_measures_have_names_that_are_accepted_and_different() -> None:
    names = list(findwell.plugins.known_measures())
    names += [f"{name}@5" for name in ("P", "recall", "nDCG(gain=exp)", "RBP(p=0.8)", "nDCG")]
    relations = [f"{name}/rouge(threshold=0.8)" for name in names]
    spelled = [metric_name(name) for name in (*names, *relations)]
    assert all(ACCEPTED.fullmatch(name) and "/" not in name for name in spelled)
    assert len(set(spelled)) == len(spelled)


class Writer:
    """Takes scalars, as a SummaryWriter does."""

    def __init__(self) -> None:
        self.scalars: dict[str, tuple[float, int | None]] = {}

    def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> None:
        self.scalars[tag] = (scalar_value, global_step)


class Tracked:
    """Takes dicts, as a run of W&B does."""

    def __init__(self) -> None:
        self.logged: dict[str, Any] = {}

    def log(self, data: dict[str, Any], step: int | None = None) -> None:
        self.logged |= {"step": step, **data}


def test_objects_that_log() -> None:
    result = findwell.evaluate(RECORDS, measures=["RR"])
    writer, run = Writer(), Tracked()
    result.log(writer, step=3)
    result.log(run, step=4)
    assert writer.scalars["RR"] == (0.5, 3)
    assert run.logged == {"step": 4, **result.metrics()}
    with pytest.raises(InputError, match="a list logs nothing"):
        result.log([])
    with pytest.raises(OptionError, match="unknown tracker 'mlfow'"):
        result.log("mlfow")


def test_a_missing_tracker_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(OptionError, match="logging to wandb needs the package wandb"):
        findwell.evaluate(RECORDS, measures=["RR"]).log("wandb")


MLFLOW = """
import sys, findwell, mlflow
mlflow.set_tracking_uri("file:" + sys.argv[1])
records = [
    {"query": "q1", "retrieved": ["a"], "gold": ["a"], "latency_ms": 10.0},
    {"query": "q2", "retrieved": ["x"], "gold": ["b"], "latency_ms": 30.0},
]
measures = ["recall@5", "recall@5/exact", "nDCG(gain=exp)@10"]
one = findwell.evaluate(records, measures=measures, corpus={"a": "one", "b": "two", "x": "three"})
both = findwell.evaluate({"a": {"q": ["d"]}, "b": {"q": ["x"]}}, {"q": ["d"]}, ["RR"])
for result in (one, both):
    with mlflow.start_run() as run:
        result.log("mlflow", step=2)
    logged = mlflow.get_run(run.info.run_id).data.metrics
    assert logged == result.metrics(), (logged, result.metrics())
    (point,) = mlflow.MlflowClient().get_metric_history(run.info.run_id, next(iter(logged)))
    assert point.step == 2
print(len(one.metrics()), len(both.metrics()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not FRAMEWORKS.exists(), reason="make .venv/frameworks installs mlflow")
def test_a_real_mlflow_with_a_file_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [FRAMEWORKS, "-c", MLFLOW, tmp_path / "store"],
        env={
            "PYTHONPATH": str(Path(findwell.__file__).parents[1]),
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "MLFLOW_ALLOW_FILE_STORE": "true",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    first, second = map(int, done.stdout.split())
    assert first >= 13
    assert second >= 4

"""Latency, throughput and errors, where records carry them."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError, OptionError
from findwell.evaluation.results.timing import timing
from tests.conftest import Findwell

RECORDS = [
    {"query": f"q{n}", "retrieved": ["a"], "gold": ["a"], "latency_ms": n * 10, "error": None}
    for n in range(1, 101)
]


def test_percentiles_throughput_and_errors() -> None:
    records = [
        {**record, "error": "timeout" if n < 5 else None} for n, record in enumerate(RECORDS)
    ]
    found = findwell.evaluate(records, measures="RR").timing["run"]
    assert (found.n, found.p50) == (100, 505.0)
    assert found.p90 == pytest.approx(901)
    assert found.p99 == pytest.approx(990.1)
    assert found.throughput == pytest.approx(100 / 50.5)  # 50.5 s, one after the other
    assert found.error_rate == 0.05
    assert found.source == "latency_ms, error"


@pytest.mark.parametrize(
    ("columns", "p50", "throughput"),
    [
        ({"latency_s": [0.1, 0.3]}, 200.0, 5.0),
        ({"seconds": [0.1, 0.3]}, 200.0, 5.0),
        ({"retrieval_latency_us": [100_000, 300_000]}, 200.0, 5.0),
        ({"duration_ns": [1e8, 3e8]}, 200.0, 5.0),
        ({"took_milliseconds": [100, 300]}, 200.0, 5.0),
        ({"total_time_ms": ["100", "300"]}, 200.0, 5.0),
        ({"start_s": [0.0, 0.1], "end_s": [0.4, 0.5]}, 400.0, 4.0),
        ({"start_ms": [0, 100], "end_ms": [400, 500]}, 400.0, 4.0),
        ({"start": [1.7e9, 1.7e9 + 0.1], "end": [1.7e9 + 0.4, 1.7e9 + 0.5]}, 400.0, 4.0),
        ({"start": [1_700_000_000_000] * 2, "end": [1_700_000_000_400] * 2}, 400.0, 5.0),
        ({"latency": [187, 188], "latency_ms": [100, 300]}, 200.0, 5.0),
        (
            {
                "start_time": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"],
                "end_time": ["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"],
            },
            1000.0,
            1.0,
        ),
    ],
)
def test_columns(columns: dict[str, list[object]], p50: float, throughput: float) -> None:
    found = timing(pl.DataFrame({"query": ["a", "b"], **columns}))
    assert found is not None
    assert found.p50 == pytest.approx(p50)
    assert found.throughput == pytest.approx(throughput)
    assert found.error_rate is None


UNCLEAR: dict[str, dict[str, list[object]]] = {
    "latency": {"latency": [187, 188]},
    "latency as text": {"retrieval_latency": ["187", "188"]},
    "start and end": {"start": [0, 100], "end": [187, 288]},
}


@pytest.mark.parametrize("case", UNCLEAR)
@pytest.mark.parametrize("role", ["samples", "run", "queries", "stream"])
def test_a_time_without_a_unit_is_refused(role: str, case: str, tmp_path: Path) -> None:
    columns = UNCLEAR[case]
    gold = {"a": ["x"], "b": ["x"]}
    said = [{name: values[n] for name, values in columns.items()} for n in (0, 1)]
    records = [{"query": "ab"[n], "retrieved": ["x"], "gold": ["x"], **said[n]} for n in (0, 1)]
    lines = tmp_path / "run.jsonl"
    lines.write_text("\n".join(map(json.dumps, records)))
    roles: dict[str, dict[str, Any]] = {
        "samples": {"run": records},
        "run": {"run": records, "gold": gold},
        "stream": {"run": lines, "gold": gold},
        "queries": {
            "run": {"a": ["x"], "b": ["x"]},
            "gold": gold,
            "queries": [{"query": "ab"[n], **said[n]} for n in (0, 1)],
        },
    }
    given = roles[role]
    with pytest.raises(
        InputError, match=r"no unit: (187|0) may be seconds or milliseconds"
    ) as stop:
        findwell.evaluate(**given, measures="RR")
    assert "--read latency_unit=ms" in stop.value.fix
    for unit, factor in (("ms", 1), ("s", 1000), ("us", 1e-3)):
        result = findwell.evaluate(
            **given, measures="RR", reading=findwell.Reading(latency_unit=unit)
        )
        (found,) = result.timing.values()
        assert found.p50 == pytest.approx(187.5 * factor)
        again = findwell.load(result.save(tmp_path / f"{unit}"))
        assert again.timing == result.timing


def test_other_names_need_a_unit_only_to_be_read() -> None:
    records = [{"query": "a", "retrieved": ["x"], "gold": ["x"], "elapsed": 3, "latency": None}]
    assert not findwell.evaluate(records, measures="RR").timing
    assert (
        findwell.evaluate(records, measures="RR", reading=findwell.Reading(latency_unit="ms"))
        .timing["run"]
        .p50
        == 3
    )
    with pytest.raises(OptionError, match="unknown unit of time 'min'"):
        findwell.evaluate(records, measures="RR", reading=findwell.Reading(latency_unit="min"))


def test_missing_and_nonsense() -> None:
    assert timing(pl.DataFrame({"query": ["a"], "topic": ["x"]})) is None
    found = timing(pl.DataFrame({"query": ["a", "b"], "latency_ms": [None, "soon"]}, strict=False))
    assert found is not None
    assert (found.n, found.p50, found.throughput) == (0, None, None)
    failed = timing(pl.DataFrame({"query": ["a", "b"], "error": [True, False]}))
    assert failed is not None
    assert failed.error_rate == 0.5


def test_command_line(tmp_path: Path, cli: Findwell) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, RECORDS)))
    assert "latency p50" in cli("score", path, "-m", "RR").out
    shown = cli("score", path, "-m", "RR", "--format", "json").answer
    assert shown["timing"][0]["p50"] == 505.0
    path.write_text(path.read_text().replace("latency_ms", "latency"))
    refused = cli("score", path, "-m", "RR")
    assert refused.code == 2
    assert "'latency' has no unit" in refused.err
    shown = cli("score", path, "-m", "RR", "--read", "latency_unit=us", "--format", "json").answer
    assert shown["timing"][0]["p50"] == 0.505


def test_every_run_tells_its_own_time(tmp_path: Path) -> None:
    gold = {"q1": ["a"], "q2": ["b"]}
    lines = {"fast": (10, 20), "slow": (1000, 3000)}
    for name, times in lines.items():
        records = [
            {"query": query, "retrieved": ["a"], "total_time_ms": time}
            for query, time in zip(gold, times, strict=True)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    paths = [tmp_path / f"{name}.jsonl" for name in lines]
    result = findwell.evaluate(paths, gold, "RR")
    assert {run: found.p50 for run, found in result.timing.items()} == {"fast": 15, "slow": 2000}
    again = findwell.load(result.save(tmp_path / "result"))
    assert again.timing == result.timing


def test_results_of_liverag_tell_their_time(tmp_path: Path) -> None:
    results, gold = tmp_path / "results.tsv", tmp_path / "gold.tsv"
    results.write_text('qid\tquestion\tdoc_ids\ttotal_time_ms\n7\tq\t["d1"]\t250\n')
    gold.write_text("qid\tquestion\tdocument_ids\n7\tq\t['d1']\n")
    result = findwell.evaluate(results, gold, "recall", dialect="liverag")
    assert result.timing["results"].p50 == 250


def test_records_without_ids_tell_the_time_of_the_queries_they_stand_for(tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    records = [{"retrieved_context_ids": ["a"], "latency_ms": 10 * n} for n in (1, 2)]
    run.write_text("\n".join(map(json.dumps, records)))
    result = findwell.evaluate(run, {"x": ["a"], "y": ["b"]}, "RR")
    assert result.about["run"].rows() == [("x", 10), ("y", 20)]

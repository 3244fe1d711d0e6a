"""Slices by time: whatever the moments are written as, and whoever knows them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError, InputError
from findwell.core.slices import slice_labels
from findwell.show.report import prepare_report
from tests.conftest import Findwell

MOMENT = datetime(2026, 5, 3, 23, 30, tzinfo=UTC)  # a Sunday


@pytest.mark.parametrize(
    "written",
    [
        "2026-05-03T23:30:00Z",
        "2026-05-04T01:30:00+02:00",
        "2026-05-03 23:30:00",
        MOMENT,
        MOMENT.timestamp(),
        int(MOMENT.timestamp() * 1e3),
        int(MOMENT.timestamp() * 1e6),
        int(MOMENT.timestamp() * 1e9),
        str(int(MOMENT.timestamp() * 1e9)),
    ],
)
@pytest.mark.parametrize("column", ["time", "timestamp", "start_time"])
def test_moments_are_read_however_they_are_written(written: object, column: str) -> None:
    queries = pl.DataFrame({"query": ["a", "b"], column: [written, None]})
    labels = {unit: slice_labels(queries, f"time:{unit}")[0] for unit in ("hour", "day", "week")}
    assert labels == {"hour": "2026-05-03 23:00", "day": "2026-05-03", "week": "2026-W18"}
    assert slice_labels(queries, f"{column}:month").to_list() == ["2026-05", None]


def test_a_column_of_that_very_name_comes_first() -> None:
    queries = pl.DataFrame({"query": ["a"], "time": [MOMENT], "time:day": ["Sunday"]})
    assert slice_labels(queries, "time:day").to_list() == ["Sunday"]


def test_mistakes() -> None:
    queries = pl.DataFrame({"query": ["a"], "time": ["in the morning"], "topic": ["tea"]})
    with pytest.raises(InputError, match="in the morning"):
        slice_labels(queries, "time:day")
    with pytest.raises(FindwellError, match="did you mean month"):
        slice_labels(queries, "time:mont")
    with pytest.raises(FindwellError, match="did you mean topic"):
        slice_labels(queries, "topc:day")


RECORDS = [
    {
        "query": f"q{number}",
        "retrieved": ["a", "b"] if number % 3 else ["b", "a"],
        "gold": ["a"],
        "time": f"2026-05-{4 + number // 6:02}T1{number % 6}:00:00Z",
    }
    for number in range(18)
]
BY_DAY = {"2026-05-04": 5 / 6, "2026-05-05": 5 / 6, "2026-05-06": 5 / 6}


def test_the_same_slices_from_samples_and_from_a_run_with_a_gold(
    tmp_path: Path, cli: Findwell
) -> None:
    run, gold, samples = (tmp_path / f"{name}.jsonl" for name in ("run", "gold", "samples"))
    run.write_text(_lines([{k: v for k, v in each.items() if k != "gold"} for each in RECORDS]))
    gold.write_text(_lines([{k: each[k] for k in ("query", "gold")} for each in RECORDS]))
    samples.write_text(_lines(RECORDS))
    found = []
    for files in ([samples], [run, "--gold", gold], [samples, samples], [run, run, "--gold", gold]):
        done = cli("score", *files, "-m", "RR", "--slice", "time:day", "--format", "json")
        assert done.code == 0, done.err
        found.append(
            {(row["run"][:3], row["slice"]): row["value"] for row in done.answer["slices"]}
        )
    values = [{day: value for (_, day), value in each.items()} for each in found]
    assert values == [pytest.approx(BY_DAY)] * 4
    saved = tmp_path / "saved"
    assert cli("score", run, "--gold", gold, "-m", "RR", "--save", saved).code == 0
    again = findwell.load(saved).by("time:day")
    assert dict(again.select("slice", "value").rows()) == pytest.approx(BY_DAY)
    assert findwell.load(saved).where("time:day", "2026-05-05")["RR"] == pytest.approx(5 / 6)


def test_differences_and_reports_are_sliced_by_time() -> None:
    other = [each | {"retrieved": ["a", "b"]} for each in RECORDS]
    compared = findwell.compare(
        *(findwell.evaluate(each, measures=["RR"]) for each in (RECORDS, other)), slices="time:day"
    )
    rows = compared.slices.select("slice", "difference").rows()
    assert dict(rows) == pytest.approx(dict.fromkeys(BY_DAY, 1 / 6))
    prepared = prepare_report([findwell.evaluate(RECORDS, measures=["RR"])], options={})
    assert prepared.panel.facets == {"time:day": sorted(BY_DAY)}


def test_a_column_that_is_called_time_but_holds_none_stays_a_slice() -> None:
    words = [each | {"time": ("noon", "night")[at % 2]} for at, each in enumerate(RECORDS)]
    result = findwell.evaluate(words, measures=["RR"])
    assert set(result.by("time")["slice"]) == {"noon", "night"}
    assert prepare_report([result], options={}).panel.facets == {"time": ["night", "noon"]}


def _lines(records: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(each) + "\n" for each in records)

"""Requirements about what retrieval cost."""

import json
from pathlib import Path
from typing import Any

import pytest

import findwell
from findwell.core.errors import MeasureError, OptionError
from findwell.evaluation.comparison.requirements import parse_requirement
from findwell.show.gate import sentence
from tests.conftest import Findwell, Save

RECORDS: list[dict[str, Any]] = [
    {"query": f"q{n}", "retrieved": ["a"], "gold": ["a"], "latency_ms": float(n), "error": None}
    for n in range(1, 201)
]


def outcomes(records: list[dict[str, Any]], *requirements: str, **options: str) -> list[str]:
    result = findwell.evaluate(records, measures="RR")
    return [each.outcome for each in findwell.gate(result, requirements, **options).verdicts]


def test_the_interval_of_a_percentile_decides() -> None:
    found = findwell.evaluate(RECORDS, measures="RR").timing["run"]
    assert found.p90 == pytest.approx(180.1)
    assert found.limits["p90"] == (171.0, 189.0)
    asked = ("p90<=300ms", "p90 <= 0.3 s", "p90<=170ms", "p90<=185ms", "P50>=50000us")
    assert outcomes(RECORDS, *asked) == ["pass", "pass", "fail", "undecided", "pass"]
    assert outcomes(RECORDS, "p90<=185ms", decide="value") == ["pass"]


def test_a_percentile_without_an_upper_limit_is_undecided() -> None:
    few = RECORDS[:20]
    assert outcomes(few, "p99<=300ms", "p50<=300ms", "p99<=10ms") == ["undecided", "pass", "fail"]


def test_errors_are_a_fact() -> None:
    records = [{**each, "error": "away" if each["query"] == "q3" else None} for each in RECORDS]
    asked = ("errors<=1%", "errors<=0.4%", "errors<=1", "errors<=0")
    assert outcomes(records, *asked) == ["pass", "fail", "pass", "fail"]
    assert outcomes(RECORDS, "errors<=0") == ["pass"]


def test_other_figures() -> None:
    about = {"cpu_ms": 4.0, "peak_memory_mb": 1500.0, "context_tokens": 900, "context_bytes": 4000}
    records = [{**each, **about} for each in RECORDS]
    asked = ("cpu<=5ms", "memory<=2GB", "memory<=1GB", "context_tokens<=1000", "context_bytes<5")
    assert outcomes(records, *asked) == ["pass", "pass", "fail", "pass", "fail"]
    assert outcomes(records, "throughput>=9/s", "throughput>=10/s") == ["pass", "fail"]


def test_what_is_not_known_is_undecided() -> None:
    plain = [{"query": "q1", "retrieved": ["a"], "gold": ["a"]}]
    result = findwell.evaluate(plain, measures="RR")
    (verdict,) = findwell.gate(result, "p90<=300ms").verdicts
    assert (verdict.outcome, verdict.value) == ("undecided", None)
    assert "nothing is known about p90" in verdict.reason
    assert outcomes(RECORDS, "memory<=1GB") == ["undecided"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p90<=300", "'300' in 'p90<=300' has no unit"),
        ("memory<=2", "has no unit"),
        ("p90<=300min", "is not a valid limit"),
        ("p90<=baseline*1.1", "p90 is not compared with a baseline"),
        ("errors<=1.5", "counts queries"),
        ("errors<=few", "is not a valid limit"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("*", ".")):
        parse_requirement(text)


def test_sentences_name_the_unit() -> None:
    result = findwell.evaluate(RECORDS, measures="RR")
    first, second = findwell.gate(result, ["p90<=300ms", "errors<=1%"]).verdicts
    assert sentence(first) == (
        "✓ pass: p90<=300ms (run): p90 is 180.1 ms, 171.0 … 189.0 ms (95%), on 200 queries"
    )
    assert sentence(second) == "✓ pass: errors<=1% (run): errors is 0.0%, on 200 queries"


def test_on_the_command_line(cli: Findwell, save: Save) -> None:
    path = save("run.jsonl", "".join(json.dumps(each) + "\n" for each in RECORDS))
    done = cli("score", path, "-m", "RR", "--require", "p90<=300ms", "--require", "p50<=20ms")
    assert done.code == 1
    assert "180.1 ms" in done.out
    assert "p50<=20ms" in done.out


def test_any_percentile_can_be_required_as_alerts_can() -> None:
    asked = ("p95<=300ms", "latency_p95<=300ms", "p75<=100ms", "p99.5<=1s", "P95<=150ms")
    assert outcomes(RECORDS, *asked) == ["pass", "pass", "fail", "undecided", "fail"]
    (found,) = findwell.gate(findwell.evaluate(RECORDS, measures="RR"), "p95<=300ms").verdicts
    assert found.measure == "p95"
    assert found.value == pytest.approx(190.05)
    assert "ms" in sentence(found)


@pytest.mark.parametrize(
    ("asked", "fix"),
    [
        ("latency<=300ms", "p95<=300ms"),
        ("retrieval_time<=300ms", "p95<=300ms"),
        ("error_rate<=1%", "did you mean errors?"),
        ("memry<=2GB", "did you mean memory?"),
    ],
)
def test_a_figure_that_is_misspelled_is_not_taken_for_a_measure(asked: str, fix: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_requirement(asked)
    assert fix in caught.value.fix
    with pytest.raises(MeasureError, match="unknown measure"):
        parse_requirement("recal@5>=0.8")


def test_a_run_without_errors_says_so(
    cli: Findwell, save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That nothing failed is written down, so that a gate can decide."""
    monkeypatch.chdir(tmp_path)
    save("steady_app.py", "def search(question):\n    return ['a']\n")
    gold = save("gold.jsonl", '{"query": "q", "question": "why?", "gold": ["a"]}\n')
    assert cli("run", "steady_app:search", "--queries", gold, "-o", "run.jsonl").code == 0
    done = cli("score", "run.jsonl", "--gold", gold, "-m", "RR", "--require", "errors<=1%")
    assert (done.code, "✓ pass" in done.out) == (0, True)

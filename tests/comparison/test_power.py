"""Plans: from results, from one result, from assumed numbers; what cannot be planned."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import findwell
from findwell.core.errors import FindwellError
from tests import values
from tests.comparison.test_comparison import NEW, OLD
from tests.lazy import lazy

power_of_others = lazy("statsmodels.stats.power")


def test_two_results_show_how_differences_vary() -> None:
    (found,) = findwell.statistics.power(
        values.result(OLD), values.result(NEW), difference=0.1
    ).plans
    sd = (NEW - OLD).std(ddof=1)
    assert found.sd == pytest.approx(sd)
    assert found.queries == 30
    assert found.needed is not None
    assert found.needed.value is not None
    exact = power_of_others.TTestPower().solve_power(0.1 / sd, power=0.8, alpha=0.05)
    assert found.needed.value == np.ceil(exact)
    assert found.seen is not None
    assert found.seen.value == pytest.approx(power_of_others.TTestPower().power(0.1 / sd, 30, 0.05))
    assert "run and run-2 on 30 queries" in found.basis
    powers = [point.power or 0.0 for point in found.curve]
    assert powers == sorted(powers)


def test_one_result_needs_a_correlation() -> None:
    (found,) = findwell.statistics.power(values.result(OLD), correlation=0.5).plans
    assert found.sd == pytest.approx(OLD.std(ddof=1))
    (closer,) = findwell.statistics.power(values.result(OLD), correlation=0.9).plans
    assert closer.sd == pytest.approx(OLD.std(ddof=1) * np.sqrt(0.2))
    assert found.needed is None
    assert found.detectable is not None
    assert found.detectable.value is not None
    assert [point.power for point in found.curve] == [None] * len(found.curve)


def test_hit_or_miss_counts_changes() -> None:
    old, new = (OLD > 0.5).astype(float), (NEW > 0.3).astype(float)
    (found,) = findwell.statistics.power(
        values.result(old), values.result(new), difference=0.05
    ).plans
    assert found.changed == pytest.approx(float((old != new).mean()))
    (alone,) = findwell.statistics.power(values.result(old), difference=0.05).plans
    assert alone.sd is not None
    assert alone.changed == pytest.approx(alone.sd**2 + 0.05**2)
    (rare,) = findwell.statistics.power(
        values.result(old), values.result([*old[:-1], 1 - old[-1]]), difference=0.5
    ).plans
    assert rare.changed == 0.5  # a difference of a half takes that many changes


def test_several_measures_and_systems() -> None:
    runs = {"a": values.run(OLD), "b": values.run(NEW), "c": values.run(OLD[::-1])}
    found = findwell.statistics.power(
        runs, gold=values.gold(30), measures=["recall", "RR"], difference=0.1
    ).plans
    assert [(each.measure, each.basis.split(" on ")[0]) for each in found] == [
        (measure, f"the differences between a and {other}")
        for measure in ("recall", "RR")
        for other in ("b", "c")
    ]


def test_assumed_numbers() -> None:
    (found,) = findwell.statistics.power(
        sd=0.3, difference=0.02, queries=100, sizes=[50, 100]
    ).plans
    assert found.needed is not None
    assert found.needed.value == 1768
    assert [point.queries for point in found.curve] == [50, 100]
    (changed,) = findwell.statistics.power(changed=0.2, difference=0.1).plans
    assert changed.sd == pytest.approx(np.sqrt(0.2 - 0.01))
    (width,) = findwell.statistics.power(sd=0.3, queries=100, alpha=0.1).plans
    assert width.width is not None
    assert width.width.value == pytest.approx(2 * 1.6604 * 0.3 / 10, rel=0.05)


def test_what_cannot_be_said_has_a_reason() -> None:
    found = findwell.statistics.power(values.result([0.5]), values.result([0.6]), difference=0.1)
    (one,) = found.plans
    assert found["recall"] is one
    assert (one.sd, one.reason) == (None, "a comparison needs two queries or more")
    (same,) = findwell.statistics.power(
        values.result(OLD), values.result(OLD), difference=0.1
    ).plans
    assert same.needed is not None
    assert "do not vary" in same.needed.reason
    assert same.curve == ()
    (none,) = findwell.statistics.power(sd=0.3, difference=0.0, queries=10).plans
    assert none.needed is not None
    assert none.needed.reason == "no number of queries shows a difference of 0"
    assert json.loads(json.dumps(found.as_dict()))["plans"][0]["reason"] == one.reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "it is not known how much the differences vary between queries"),
        ({"sd": 0.3}, "neither a difference nor a number of queries"),
        ({"sd": -1, "difference": 0.1}, "sd is -1"),
        ({"sd": 0.3, "difference": float("nan")}, "difference is nan"),
        ({"sd": 0.3, "difference": 0.1, "power": 1.0}, "power is 1.0"),
        ({"sd": 0.3, "difference": 0.1, "alpha": 0}, "error rate is 0"),
        ({"changed": 2, "difference": 0.1}, "share of changes is 2"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FindwellError, match=message):
        findwell.statistics.power(**options)


def test_refusals_with_results() -> None:
    with pytest.raises(FindwellError, match="known from the systems"):
        findwell.statistics.power(values.result(OLD), sd=0.3)
    with pytest.raises(FindwellError, match="GMAP is not a mean over queries"):
        findwell.statistics.power(values.result(OLD, "GMAP"))
    with pytest.raises(FindwellError, match="correlation is 2"):
        findwell.statistics.power(values.result(OLD), correlation=2)


def test_the_prediction_holds_on_the_demo() -> None:
    """Ask how wide the interval of a comparison will be, then make it."""
    both = findwell.evaluate(
        {"a": values.run(OLD), "b": values.run(NEW)}, values.gold(30), "recall"
    )
    row = findwell.compare(both)["recall"]
    (found,) = findwell.statistics.power(both).plans
    assert found.width is not None
    assert found.width.value == pytest.approx(row["high"] - row["low"], rel=0.1)

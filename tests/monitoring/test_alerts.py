"""The grammar of alerts and baselines: what is read, what is refused, and how it is shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import findwell
from findwell.core.errors import FindwellError, OptionError
from findwell.loop.monitoring.alerts import find_baseline, parse_alert
from findwell.loop.monitoring.signals import SIGNALS
from findwell.loop.monitoring.store import Mark

NOW = datetime(2026, 11, 12, 15, 30, tzinfo=UTC)  # a Thursday


@pytest.mark.parametrize(
    ("text", "shown", "side", "line", "quantile"),
    [
        ("p95>800ms", "p95>800ms", "above", 800.0, 0.95),
        ("latency_p95 > 0.8 s", "p95>800ms", "above", 800.0, 0.95),
        ("p90 < 2s", "p90<2000ms", "below", 2000.0, 0.9),
        ("p99.9>1s", "p99.9>1000ms", "above", 1000.0, 0.999),
        ("empty>2%", "empty>2%", "above", 0.02, None),
        ("Empty-Rate ≥ 0.02", "empty>2%", "above", 0.02, None),
        ("documents<3", "documents<3", "below", 3.0, 0.5),
        ("documents <= 3", "documents<4", "below", 4.0, 0.5),
        ("documents>=3", "documents>2", "above", 2.0, 0.5),
        ("query_length ≥ 2.5", "query_length>2", "above", 2.0, 0.5),
        ("latency>200ms", "latency>200ms", "above", 200.0, 0.5),
        ("empty drops", "empty drops", "below", None, None),
        ("empty grows", "empty rises", "above", None, None),
        ("error worsens", "error rises", "above", None, None),
        ("top_score worsens", "top_score drops", "below", None, None),
        ("top_score changes", "top_score changes", "both", None, None),
    ],
)
def test_what_is_read(
    text: str, shown: str, side: str, line: float | None, quantile: float | None
) -> None:
    found = parse_alert(text)
    assert (found.text, found.side, found.line) == (shown, side, line)
    assert found.quantile == pytest.approx(quantile)
    assert parse_alert(found.text) == found


@pytest.mark.parametrize(
    ("text", "margin", "relative", "by"),
    [
        ("duplicates rises by 0.05", 0.05, False, ()),
        ("duplicates rises by 5% by tenant", 0.05, True, ("tenant",)),
        ("latency rises by 0.05s by service, user", 50.0, False, ("service", "user")),
        ("empty>2% by prompt.version", 0.0, False, ("prompt.version",)),
        ("top_score changes by service", 0.0, False, ("service",)),
    ],
)
def test_margins_and_slices(text: str, margin: float, relative: bool, by: tuple[str, ...]) -> None:
    found = parse_alert(text)
    assert (found.margin, found.relative, found.by) == (margin, relative, by)


@pytest.mark.parametrize(
    "text",
    [
        "", "empty", "drops", "empty > ", "p95>800", "empty>2ms", "empty>200%", "nonsense drops",
        "queries drops", "empty drops by -1", "empty drop",
        "p95>800ms by a,b,c,d", "p0>1s", "documents<2%", "empty>>2%", "empty drops by 3 apples",
    ],
)  # fmt: skip
def test_what_is_refused_says_what_to_write(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_alert(text)
    assert caught.value.fix


def test_every_signal_can_be_watched_or_says_why_not() -> None:
    for name, signal in SIGNALS.items():
        if signal.per_call:
            assert parse_alert(f"{name} worsens").signal == name
        else:
            with pytest.raises(OptionError, match="single call"):
                parse_alert(f"{name} worsens")


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("yesterday", "2026-11-11T00:00", "2026-11-12T00:00"),
        ("last-week", "2026-11-02T00:00", "2026-11-09T00:00"),
        ("last-month", "2026-10-01T00:00", "2026-11-01T00:00"),
        ("last-24h", "2026-11-11T15:30", "2026-11-12T15:30"),
        ("2026-11-01/2026-11-03T12:00+02:00", "2026-11-01T00:00", "2026-11-03T10:00"),
        ("before:v2", "2026-11-08T00:00", "2026-11-10T00:00"),
        ("before:index", "2026-11-06T00:00", "2026-11-08T00:00"),  # the second, from the first
        ("before:v1", "1970-01-01T00:00", "2026-11-05T00:00"),
    ],
)
def test_windows(text: str, since: str, until: str) -> None:
    days = [("v1", 7), ("index", 6), ("v2", 2), ("index", 4)]
    midnight = NOW.replace(hour=0, minute=0)
    marks = [Mark(name, midnight - timedelta(days=ago)) for name, ago in days]
    window = find_baseline(text, NOW, marks).window
    assert window is not None
    assert [f"{each:%Y-%m-%dT%H:%M}" for each in window] == [since, until]
    assert all(each.tzinfo == UTC for each in window)


def test_numbers_results_and_what_is_no_baseline(tmp_path: Path) -> None:
    assert find_baseline("0.7", NOW).number == 0.7
    assert find_baseline("2 %", NOW).number == 0.02
    result = findwell.evaluate({"q": ["a"], "r": ["x"]}, {"q": ["a"], "r": ["b"]}, measures="RR")
    result.save(tmp_path / "saved")
    saved = find_baseline(str(tmp_path / "saved"), NOW)
    with pytest.raises(OptionError, match="no measure empty"):
        saved.values(SIGNALS["empty"])
    for text in (
        "last-weak",
        "2026-11-09/2026-11-02",
        "2026-13-01/2026-11-02",
        "before:v9",
        "nowhere",
    ):
        with pytest.raises(FindwellError) as caught:
            find_baseline(text, NOW, [Mark("v1", NOW)])
        assert caught.value.fix

"""The page of a trace store: what it shows is what the store has, and nobody else sees it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import escape, unescape
from typing import TYPE_CHECKING

import polars as pl
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import findwell
from findwell.cli import cli
from findwell.io.read.traces.schema import TRACE_SCHEMA
from findwell.loop.monitoring.alarm_report import amount
from findwell.loop.monitoring.monitor import Monitor
from findwell.loop.monitoring.overview import OverviewChoice, overview
from findwell.show.web.monitor_app import monitor_site
from findwell.show.web.server import TokenGuard
from tests.monitoring.made_calls import START, made_calls
from tests.monitoring.test_monitor import told
from tests.web.conftest import PORT, TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK = START + timedelta(hours=30)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "shop"
    with Monitor.open(folder, create=True) as monitor:
        monitor.store.add(made_calls(240))
        monitor.mark("v2 chunker", MARK)
        monitor.check(["empty>0.1%", "latency drops"], baseline="before:v2 chunker")
    return folder


@pytest.fixture
def monitor(made: Path) -> Iterator[Monitor]:
    with Monitor.open(made) as opened:
        yield opened


def asking(monitor: Monitor) -> TestClient:
    app = TokenGuard(monitor_site(monitor), TOKEN, PORT)
    client = TestClient(app, base_url=f"http://127.0.0.1:{PORT}")
    client.cookies.set(f"findwell-{PORT}", TOKEN)
    return client


def test_every_number_is_that_of_the_monitor(monitor: Monitor) -> None:
    page = asking(monitor).get("/").text
    found = overview(monitor, OverviewChoice())
    table = monitor.buckets(["latency"], every=found.look.every)
    shown = page.partition('id="signal-latency-numbers"')[2].partition("</details>")[0]
    rows = re.findall(r"<td>([^<]*)</td><td>[^<]*</td><td>([^<]*)</td>", shown)
    expected = [
        (amount(row["value"], "ms"), f"{row['n']:,}") for row in table.to_dicts() if row["n"]
    ]
    assert rows == expected[::-1]
    assert "v2 chunker" in page


def test_a_point_leads_to_its_calls_the_worst_first(monitor: Monitor) -> None:
    client = asking(monitor)
    page = client.get("/?every=6h").text
    links = re.findall(r'href="(/calls\?[^"]*signal=latency&amp;[^"]*)"', page)
    calls = client.get(unescape(links[0])).text
    since, until = (
        datetime.fromisoformat(each).replace(tzinfo=UTC)
        for each in re.search(r"latency, (\S+ \S+) to (\S+ \S+) UTC", calls).groups()  # type: ignore[union-attr]
    )
    values = monitor.signals(["latency"], since=since, until=until)
    worst = values.sort("latency", descending=True, nulls_last=True)["trace"].to_list()
    assert re.findall(r"<dt>trace</dt><dd>(\w+)</dd>", calls) == worst
    rows = monitor.store.scan(since, until).filter(trace=worst[0]).collect()
    assert rows["docs"][0].to_list() == re.findall(
        r'class="doc">([^<]+)<', calls.partition("</article>")[0]
    )


def test_slices_are_lines_and_can_be_looked_at_alone(monitor: Monitor) -> None:
    client = asking(monitor)
    page = client.get("/?by=tenant.id").text
    assert all(f'<td class="left">{each}</td>' in page for each in ("t0", "t1", "t2", "(none)"))
    alone = client.get("/?by=tenant.id&only=t1&period=all").text
    assert '<td class="left">t2</td>' not in alone
    link = re.findall(r'href="(/calls\?[^"]*)"', alone)[0]
    calls = client.get(unescape(link)).text
    assert "only tenant.id = t1" in calls
    assert {*re.findall(r"<dt>tenant.id</dt><dd>(\w+)</dd>", calls)} == {"t1"}


def test_alarms_are_shown_with_calls_to_look_at(monitor: Monitor) -> None:
    page = asking(monitor).get("/").text
    alarms = page.partition('id="alarms"')[2].partition("</section>")[0]
    assert '<span class="state bad">open</span> empty&gt;0.1%' in alarms
    assert "Nothing was retrieved." in alarms
    assert "latency drops" in alarms.partition('id="watched"')[2]


def test_news_when_calls_marks_or_alarms_change(tmp_path: Path) -> None:
    with Monitor.open(tmp_path / "store", create=True) as monitor:
        client = asking(monitor)
        states = []

        def look() -> None:
            states.append(client.get("/api/news").json()["state"])

        look()
        assert "No calls yet" in client.get("/").text
        monitor.store.add(made_calls(20))
        look()
        monitor.mark("v3")
        look()
        monitor.check(["empty>50%"])
        look()
        assert len({*states}) == 4
        assert client.get("/api/news").json()["state"] == states[-1]


@pytest.mark.parametrize(
    "address",
    [
        "/?period=1y",
        "/?every=0h",
        "/?kind=chain",
        "/calls?signal=latency",
        "/calls?signal=x&since=2026-05-04&until=2026-05-05",
        "/calls?signal=latency&since=2026-05-05&until=2026-05-04",
    ],
)
def test_what_cannot_be_shown_is_said(monitor: Monitor, address: str) -> None:
    answer = asking(monitor).get(address)
    assert answer.status_code == 404
    assert "This cannot be shown" in answer.text


def test_without_the_token_nothing_is_shown(monitor: Monitor) -> None:
    client = asking(monitor)
    client.cookies.clear()
    for path in ("/", "/calls", "/api/news"):
        assert client.get(path).status_code == 403
    assert asking(monitor).post("/").status_code == 405


def test_a_report_is_one_file_with_calls_of_every_point(made: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    done = CliRunner().invoke(cli, ["report", str(made), "-o", str(target)])
    assert done.exit_code == 0, done.output
    page = target.read_text("utf-8")
    assert page == findwell.report(made)
    points = {*re.findall(r'href="#(bucket-\d+)"', page)}
    assert points
    assert points == {*re.findall(r'<details class="card bucket" id="(bucket-\d+)"', page)}
    assert "/calls?" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "form-action 'none'" in unescape(page)
    with pytest.raises(findwell.FindwellError, match="takes no 'gold'"):
        findwell.report(made, gold={"q": ["d"]})
    refused = CliRunner().invoke(cli, ["report", str(made), str(made)])
    assert "reported alone" in str(refused.exception or refused.output)


def test_calls_that_tell_nothing_but_their_lists_have_a_report(tmp_path: Path) -> None:
    bare = (
        made_calls(40)
        .filter(
            pl.col("docs").list.len() > 0,
            pl.col("error").is_null(),
            ~pl.col("docs").list.eval(pl.element().is_duplicated().any()).list.first(),
        )
        .with_columns(pl.lit(None, pl.Float64).alias("latency_ms"), scores=None)
    )
    with Monitor.open(tmp_path / "store", create=True) as monitor:
        monitor.store.add(bare.cast(TRACE_SCHEMA))
    assert "queries" in findwell.report(tmp_path / "store")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store in which lists are full of duplicates, and slow, from a mark on."""
    folder = tmp_path_factory.mktemp("broken") / "shop"
    late = pl.col("time") >= MARK
    calls = made_calls(240).with_columns(
        docs=pl.when(late, pl.col("docs").list.len() > 1)
        .then(pl.col("docs").list.eval(pl.element().first().repeat_by(pl.len()).explode()))
        .otherwise("docs"),
        latency_ms=pl.when(late).then(pl.col("latency_ms") * 5).otherwise("latency_ms"),
    )
    with Monitor.open(folder, create=True) as monitor:
        monitor.store.add(calls)
        monitor.mark("v2 chunker", MARK)
    return folder


def test_what_changed_comes_first_and_the_rest_is_folded(broken: Path) -> None:
    with Monitor.open(broken) as monitor:
        page = asking(monitor).get("/").text
        rows = overview(monitor, OverviewChoice()).around
    assert rows is not None
    clear = {each.signal.name for each in rows.rows if each.verdict.is_clear}
    assert {"duplicates", "latency", "latency_p95"} <= clear
    answer = page.partition('class="card verdict-card worse"')[2].partition("</div>")[0]
    assert f">{len(clear)} signals changed since v2 chunker</h2>" in answer
    changed, _, still = page.partition('id="unchanged"')
    drawn = re.findall(r'<figure class="card series" id="signal-([\w-]+)"', changed)
    assert {each.replace("-", "_") for each in drawn} == clear
    assert drawn[0] == "duplicates"  # the largest change
    table = still.partition("</table>")[0]
    names = re.findall(r'<a href="#signal-[\w-]+">(\w+)</a>', table)
    assert {*names} == {each.signal.name for each in rows.rows} - clear
    assert table.count("<svg") == len(names)
    without = [each for each in rows.rows if each.verdict.difference.low is None]
    assert table.count("no interval") == len(without) > 0


def test_where_there_is_no_mark_all_signals_are_drawn(tmp_path: Path) -> None:
    with Monitor.open(tmp_path / "store", create=True) as monitor:
        monitor.store.add(made_calls(60))
        page = asking(monitor).get("/").text
    assert page.count('<figure class="card series"') == len(OverviewChoice().signals)
    assert 'class="card verdict-card' not in page


@pytest.mark.parametrize("slices", ["", " by service"])
def test_an_alarm_has_its_chart_and_its_calls(tmp_path: Path, slices: str) -> None:
    with Monitor.open(tmp_path / "store", create=True) as monitor:
        monitor.store.add(made_calls(240))
        monitor.check([f"empty>0.1%{slices}"])
        page = asking(monitor).get("/").text
    alarms = page.partition('id="alarms"')[2].partition("</section>")[0].split("alarm-card")[1:]
    assert alarms
    for each in alarms:
        assert '<svg xmlns="http://www.w3.org/2000/svg" class="chart"' in each
        assert "to look at</summary>" in each


@pytest.mark.parametrize(("alert", "place"), [("<99%", "alarms"), ("<0.1%", "unchanged")])
def test_a_judged_signal_is_drawn_as_the_check_found_it(
    tmp_path: Path, alert: str, place: str
) -> None:
    """The page asks no judge."""
    with Monitor.open(tmp_path / "store", create=True) as monitor:
        monitor.store.add(made_calls(120))
        monitor.check([f"context_precision{alert}"], judge=told)
        page = asking(monitor).get("/").text
    section = page.partition(f'<section id="{place}"')[2].partition("</section>")[0]
    assert "Average precision of the retrieved documents" in section
    assert "context_precision" in section
    assert "not checked against people" in section
    assert "<svg" in section
    table = page.partition('<details id="watched">')[2].partition("</details>")[0]
    assert (
        f'<th scope="row" role="rowheader" class="left">{escape(f"context_precision{alert}")}<'
        in table
    )
    assert "not checked against people" in table


def test_the_file_says_which_points_have_failures(made: Path) -> None:
    page = findwell.report(made)
    said = re.findall(r"<summary><strong>[^<]*</strong>(.*?)</summary>", page)
    times = re.findall(r"<summary><strong>([^<]* UTC)</strong>", page)
    assert times == sorted(times, reverse=True)  # the newest first
    with Monitor.open(made) as monitor:
        table = monitor.signals(["error", "empty"])
    for word, name in (("failed", "error"), ("returned nothing", "empty")):
        counts = [int(each) for line in said for each in re.findall(rf">(\d+) {word}<", line)]
        assert sum(counts) == table[name].sum() > 0
    assert any("failed" not in line for line in said)


def test_a_share_is_a_percentage_everywhere(made: Path) -> None:
    page = findwell.report(made).partition('id="calls"')[0]
    numbers = page.partition('id="signal-empty-numbers"')[2].partition("</table>")[0]
    cells = re.findall(r"<td>([^<]*)</td><td>[^<]*</td><td>", numbers)
    assert cells
    assert all(each.endswith("%") for each in cells)

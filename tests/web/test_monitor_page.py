"""The page of a trace store: what it shows is what the store has, and nobody else sees it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import TYPE_CHECKING

import polars as pl
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import findwell
from findwell.cli import cli
from findwell.io.read.traces.schema import TRACE_SCHEMA
from findwell.loop.monitoring.monitor import Monitor
from findwell.loop.monitoring.overview import Look, overview
from findwell.show.signals import figure
from findwell.show.web.monitor_app import monitor_site
from findwell.show.web.server import TokenGuard
from tests.monitoring.made_calls import START, made_calls
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
    found = overview(monitor, Look())
    table = monitor.buckets(["latency"], every=found.look.every)
    shown = page.partition('id="signal-latency-numbers"')[2].partition("</details>")[0]
    rows = re.findall(r"<td>([^<]*)</td><td>[^<]*</td><td>([^<]*)</td>", shown)
    expected = [(figure(row["value"]), f"{row['n']:,}") for row in table.to_dicts() if row["n"]]
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

"""The page of a trace store in a real browser: mouse, keys, a phone, hostile traces."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest
import uvicorn

from findwell.loop.monitoring.monitor import Monitor
from findwell.show.monitor_page import monitor_report
from findwell.show.web.monitor_app import monitor_site
from findwell.show.web.server import TokenGuard, listen
from tests.browsing import PHONE, accessible, expect, fits_a_phone
from tests.hostile import ATTACKS, LONG
from tests.monitoring.made_calls import START, made_calls
from tests.web.conftest import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browsing import Watched

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
MARK = START + timedelta(hours=30)


def hostile_calls() -> pl.DataFrame:
    """Return calls in which every text is an attack."""
    calls = made_calls(120)
    attacks = pl.Series([ATTACKS[at % len(ATTACKS)] for at in range(calls.height)])
    question = [LONG if at == 3 else each for at, each in enumerate(attacks)]
    named = pl.concat_list(pl.struct(key=attacks, value=attacks.reverse()))
    return calls.with_columns(
        question=pl.Series(question),
        service=attacks,
        session=attacks,
        user=attacks,
        error=pl.when(pl.col("error").is_not_null()).then(attacks),
        docs=pl.col("docs").list.eval(pl.lit(ATTACKS[1]) + pl.element()),
        texts=pl.col("texts").list.eval(pl.lit(ATTACKS[3]) + pl.element()),
        attributes=named,
    )


@pytest.fixture
def monitor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Monitor]:
    hostile = getattr(request, "param", "") == "hostile"
    name = "<b>shop" if hostile else "shop"
    with Monitor.open(tmp_path / name, create=True) as opened:
        opened.store.add(hostile_calls() if hostile else made_calls(240))
        opened.mark(ATTACKS[3] if hostile else "v2 chunker", MARK)
        opened.check(["empty>0.1% by service", "empty>0.1%"], since=START)
        yield opened


@pytest.fixture
def address(monitor: Monitor) -> Iterator[str]:
    listener = listen(0)
    port = listener.getsockname()[1]
    app = TokenGuard(monitor_site(monitor), TOKEN, port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{port}/?token={TOKEN}"
    server.should_exit = True
    thread.join()


def unfold(page: Page) -> None:
    """Open the charts of signals that did not change, if there are any."""
    box = page.locator("#still-charts:not([open]) > summary")
    if box.count():
        box.click()


def test_from_a_point_to_its_calls_and_back(watched: Watched, address: str) -> None:
    page = watched.page
    page.goto(address)
    assert "token" not in page.url
    accessible(page)
    unfold(page)
    page.locator("#signal-latency svg a").nth(3).click()
    expect(page.locator(".call").first).to_be_visible()
    accessible(page)
    page.get_by_role("link", name="Later").click()
    page.get_by_role("link", name="documents", exact=True).click()
    expect(page.locator("h2.title")).to_contain_text("documents")
    page.get_by_role("link", name="All signals").click()
    page.get_by_label("Slice by").select_option("service")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("Only")).to_be_visible()
    accessible(page)
    watched.require_quiet()


def test_by_keyboard(watched: Watched, address: str) -> None:
    page = watched.page
    page.goto(address)
    page.locator("#signal-empty-numbers summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # the table, which scrolls
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h2.title")).to_contain_text("empty")
    watched.require_quiet()


def test_new_calls_appear_and_what_is_open_stays(
    watched: Watched, address: str, monitor: Monitor
) -> None:
    page = watched.page
    page.goto(address)
    unfold(page)
    page.locator("#signal-empty-numbers summary").click()
    expect(page.locator(".lede")).to_contain_text("273 calls")
    monitor.store.add(made_calls(50, seed=5).with_columns(pl.col("trace").str.replace("^0", "a")))
    expect(page.locator(".lede")).not_to_contain_text("273 calls", timeout=30_000)
    expect(page.locator("#signal-empty-numbers")).to_have_attribute("open", "")
    expect(page.locator("#signal-empty-numbers summary")).to_be_focused()
    page.get_by_label("Auto-refresh").uncheck()
    shown = page.locator(".lede").inner_text()
    monitor.store.add(made_calls(9, seed=6).with_columns(pl.col("trace").str.replace("^0", "b")))
    page.wait_for_timeout(6_000)
    assert page.locator(".lede").inner_text() == shown
    watched.require_quiet()


def test_on_a_phone(watched: Watched, address: str, monitor: Monitor, tmp_path: Path) -> None:
    page = watched.page
    page.set_viewport_size(PHONE)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.goto(address)
        fits_a_phone(page)
        accessible(page)
    unfold(page)
    page.locator("#signal-latency svg a").nth(3).click()
    expect(page.locator(".call").first).to_be_visible()
    fits_a_phone(page)
    file = tmp_path / "report.html"
    file.write_text(monitor_report(monitor, "shop"), "utf-8")
    page.goto(file.as_uri())
    fits_a_phone(page)
    accessible(page)
    unfold(page)
    page.locator("#signal-latency svg a").nth(3).click()
    expect(page.locator(".bucket[open] .call").first).to_be_visible()
    fits_a_phone(page)
    watched.require_quiet()


@pytest.mark.parametrize("monitor", ["hostile"], indirect=True)
def test_hostile_traces_are_only_text(
    watched: Watched, address: str, monitor: Monitor, tmp_path: Path
) -> None:
    page = watched.page
    page.goto(address)
    expect(page.locator(".series").first).to_be_visible()
    for box in page.locator("#alarms details").all():
        box.locator("summary").first.click()
    assert page.locator("main img, main script, main b").count() == 0
    base = address.partition("?")[0]
    for by in ("service", ATTACKS[0]):
        page.goto(base)
        if by in page.get_by_label("Slice by").inner_text():
            page.get_by_label("Slice by").select_option(by)
            page.get_by_role("button", name="Show").click()
            expect(page.locator(".series").first).to_be_visible()
    unfold(page)
    page.locator("#signal-latency svg a").first.click()
    expect(page.locator(".call").first).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    fits_a_phone(page)
    file = tmp_path / "report.html"
    file.write_text(monitor_report(monitor, "<b>shop"), "utf-8")
    assert file.stat().st_size < 5_000_000
    page.goto(file.as_uri())
    unfold(page)
    page.locator("#signal-latency svg a").first.click()
    expect(page.locator(".bucket[open] .call").first).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    fits_a_phone(page)
    watched.require_quiet()

"""Make the pictures of `findwell report`, `findwell labels serve` and `findwell view`.

    python examples/maintenance/make_screenshots.py

Writes `docs/images/report.png`, `label.png`, `label-settle.png` and `label-phone.png`: the data of
the demo, as a report, and pooled, with some labels, in a real browser; and `monitor.png` and
`monitor-phone.png`: its questions asked for four days, with a broken index on the last. Needs
playwright, a Chromium and Pillow.
"""

import itertools
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import findwell
from findwell.io.read.traces.schema import RetrievalCall, RetrievedDocument, frame_of_calls
from findwell.show.web.labelling import label_site
from findwell.show.web.monitor_app import monitor_site
from findwell.show.web.server import Site, TokenGuard, listen

DEMO = Path(findwell.__file__).parent / "demo"
IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
TOKEN = "pictures"  # noqa: S105 - of a server that lives for some seconds
COLOURS = 224  # enough for text and its colours, and smaller than all of them
GUIDELINES = """\
3: who reads only this passage can answer.
1 or 2: it helps, but something is missing.
0: another model, another task, or only the same words."""
NOTE = "does not say it for the Fold"
ENOUGH = 60  # labels
START = datetime(2026, 5, 4, tzinfo=UTC)  # of the calls that are watched
REBUILT = START + timedelta(days=3)
QUERY = "q41"  # that is opened in the picture of a report
WIDTH, OVERVIEW, OPENED = 1200, 512, 900  # of that picture, and the heights of its two parts


def main(folder: Path = IMAGES) -> None:
    """Make the pictures."""
    with tempfile.TemporaryDirectory() as place:
        pool = Path(place) / "pool"
        label_some(pool)
        with (
            findwell.labels.Labels.open(pool) as labels,
            serving(label_site(labels, "pool")) as address,
            browsing() as browser,
        ):
            report(browser, Path(place) / "report.html", folder / "report.png")
            page = browser.new_page(viewport={"width": 1120, "height": 660})
            look(page, f"{address}/label?annotator=anna")
            page.keyboard.press("m")
            page.keyboard.press("Enter")
            page.wait_for_selector("#said:empty", state="attached")  # what was said is gone
            take(page, folder / "label.png")
            page.set_viewport_size({"width": 1120, "height": 580})
            look(page, f"{address}/adjudicate?annotator=cleo")
            take(page, folder / "label-settle.png")
            phone = browser.new_page(
                viewport={"width": 390, "height": 700}, has_touch=True, color_scheme="dark"
            )
            look(phone, f"{address}/label?annotator=bob")
            take(phone, folder / "label-phone.png")
        with findwell.monitor.Monitor.open(Path(place) / "store", create=True) as monitor:
            watch_some(monitor)
            monitor_pictures(monitor, folder)


def watch_some(monitor: findwell.monitor.Monitor) -> None:
    """Ask the demo's questions every five minutes; on the last day the index is broken."""
    choice = random.Random(1)  # noqa: S311
    lines = (DEMO / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [(each["query"], each["question"]) for each in map(json.loads, lines)]
    texts = dict(findwell.io.load_corpus(DEMO / "passages.jsonl").select("doc", "text").rows())
    run: dict[str, list[RetrievedDocument]] = {}
    for line in (DEMO / "bm25.trec").read_text("utf-8").splitlines():
        query, _, doc, _, score, _ = line.split()
        run.setdefault(query, []).append(RetrievedDocument(doc, texts[doc], float(score), None))
    calls = []
    for number in range(4 * 288):
        time = START + number * timedelta(minutes=5)
        query, question = choice.choice(asked)
        docs = run[query][:5]
        if time >= REBUILT:
            docs = choice.choices(docs, k=len(docs)) if choice.random() < 0.9 else []
        calls.append(
            RetrievalCall(
                f"{number:032x}",
                f"{number:016x}",
                round(time.timestamp() * 1e6),
                "openinference",
                latency_ms=20 + 60 * choice.random(),
                question=question,
                docs=docs,
                service=("web", "api")[number % 2],
            )
        )
    monitor.store.add(frame_of_calls(calls))
    monitor.mark("index rebuilt", REBUILT)
    monitor.check(["empty>2%", "duplicates rises"], baseline="before:index rebuilt")


def monitor_pictures(monitor: findwell.monitor.Monitor, folder: Path) -> None:
    """Make the pictures of the page about a store."""
    with serving(monitor_site(monitor)) as address, browsing() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 1030})
        page.goto(f"{address}/?token={TOKEN}")
        take(page, folder / "monitor.png")
        phone = browser.new_page(
            viewport={"width": 390, "height": 700}, has_touch=True, color_scheme="dark"
        )
        phone.goto(f"{address}/?token={TOKEN}#signals")
        phone.locator(".alarm-card").first.evaluate("(card) => card.scrollIntoView()")
        phone.wait_for_timeout(1000)
        take(phone, folder / "monitor-phone.png")


def report(browser: Browser, file: Path, picture: Path) -> None:
    """Make the picture of a report: its overview, and below it an opened query."""
    runs = [str(DEMO / "bm25.trec"), str(DEMO / "minilm.trec")]
    gold, corpus = str(DEMO / "questions.jsonl"), str(DEMO / "passages.jsonl")
    findwell.report(*runs, output=file, gold=gold, corpus=corpus)
    page = browser.new_page(viewport={"width": WIDTH, "height": OVERVIEW})
    page.goto(file.as_uri())
    take(page, picture)
    page.set_viewport_size({"width": WIDTH, "height": OPENED + 70})
    page.goto(f"{file.as_uri()}#query={QUERY}&show=all")
    page.reload()
    page.wait_for_selector("tr.detail .side")
    page.locator("tr.open").scroll_into_view_if_needed()
    top = page.locator("tr.open").bounding_box()
    assert top is not None, "the query is opened"  # noqa: S101
    page.mouse.wheel(0, top["y"] - 70)  # below the bar at the top of the page
    page.wait_for_timeout(500)
    below = picture.with_suffix(".below.png")
    take(page, below)
    with Image.open(picture) as first, Image.open(below) as second:
        whole = Image.new("RGB", (WIDTH, OVERVIEW + OPENED))
        whole.paste(first.convert("RGB"), (0, 0))
        whole.paste(second.convert("RGB").crop((0, 70, WIDTH, OPENED + 70)), (0, OVERVIEW))
    below.unlink()
    reduce_colours(whole).save(picture, optimize=True)


def label_some(pool: Path) -> None:
    """Make a pool of the demo, and let two annotators label some of it, nearly alike."""
    runs = [str(DEMO / "bm25.trec"), str(DEMO / "minilm.trec")]
    findwell.labels.pool(
        runs,
        pool,
        queries=str(DEMO / "questions.jsonl"),
        corpus=str(DEMO / "passages.jsonl"),
        depth=5,
        budget=200,
        overlap=1.0,
        guidelines=GUIDELINES,
    )
    gold = findwell.io.load_gold(DEMO / "questions.jsonl").rows()
    known = {(query, doc): grade for query, doc, grade in gold["query", "doc", "grade"].rows()}
    clock = itertools.count(time.time() - 3600, 4.0)  # asked twice a label: one every eight seconds
    with (
        findwell.labels.Labels.open(pool) as labels,
        mock.patch("findwell.loop.labels.labels.time", SimpleNamespace(time=clock.__next__)),
    ):
        for name in ("anna", "bob"):
            for number in itertools.count():
                pair = labels.next(name)
                assert pair is not None, "the demo has more pairs"  # noqa: S101
                grade = known.get((pair.query, pair.doc), 0)
                if number >= ENOUGH and grade == 3:
                    break  # this one is in the picture
                if name == "bob" and grade == 3 and number % 2:
                    labels.set(pair.query, pair.doc, 1, annotator=name, note=NOTE)
                else:
                    labels.set(pair.query, pair.doc, grade, annotator=name)


@contextmanager
def serving(site: Site) -> Iterator[str]:
    """Serve pages on this machine."""
    listener = listen(0)
    port = listener.getsockname()[1]
    app = TokenGuard(site, TOKEN, port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser."""
    with sync_playwright() as tool:
        browser = tool.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def look(page: Page, address: str) -> None:
    """Open a page and wait until a passage is shown."""
    page.goto(f"{address}&token={TOKEN}")
    page.wait_for_selector(".passage-card")


def take(page: Page, path: Path) -> None:
    """Write a picture of what is visible, with few colours."""
    page.screenshot(path=path)
    with Image.open(path) as picture:
        reduce_colours(picture.convert("RGB")).save(path, optimize=True)


def reduce_colours(picture: Image.Image) -> Image.Image:
    """Return a picture with few colours."""
    return picture.quantize(COLOURS, dither=Image.Dither.NONE)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

"""`findwell labels serve` in a real browser: by keys, mouse and touch, with a server that goes."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvicorn

import findwell
from findwell.loop.labels.labels import Labels
from findwell.show.web.labelling import label_site
from findwell.show.web.server import TokenGuard, listen
from tests import hostile
from tests.browsing import Watched, browser, expect, watched
from tests.lazy import lazy
from tests.web.conftest import TOKEN

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

    from tests.conftest import Findwell

__all__ = ["browser", "watched"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
DEMO = Path(findwell.__file__).parent / "demo"
GRADES = "2130"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pool what the two systems of the demo found; every pair is for every annotator."""
    folder = tmp_path_factory.mktemp("pool") / "pool"
    findwell.labels.pool(
        [str(DEMO / "bm25.trec"), str(DEMO / "minilm.trec")],
        folder,
        queries=str(DEMO / "questions.jsonl"),
        corpus=str(DEMO / "passages.jsonl"),
        depth=5,
        overlap=1.0,
        judge="local:text",
        guidelines="Only what answers the question counts.",
    )
    return folder


@dataclass
class Desk:
    """A pool that is served, and how to open pages of it."""

    pool: Path
    base: str
    stop: Callable[[], None]

    def page(self, path: str) -> str:
        return f"{self.base}{path}{'&' if '?' in path else '?'}token={TOKEN}"

    def label(self, annotator: str = "ann") -> str:
        return self.page(f"/label?annotator={annotator}")

    def frame(self) -> list[tuple[str, float | None, str]]:
        with Labels.open(self.pool) as labels:
            return [*labels.frame().select("annotator", "grade", "state").iter_rows()]


@dataclass
class Server:
    """A server in a thread, that can be stopped and started again at the same port."""

    pool: Path
    port: int = 0
    parts: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        listener = listen(self.port)
        self.port = listener.getsockname()[1]
        labels = Labels.open(self.pool)
        app = TokenGuard(label_site(labels, "pool"), TOKEN, self.port)
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()

        def end() -> None:
            server.should_exit = True
            thread.join()
            labels.close()
            listener.close()

        self.parts.callback(end)

    def stop(self) -> None:
        self.parts.close()


@pytest.fixture
def server(made: Path, tmp_path: Path) -> Iterator[Server]:
    served = Server(Path(shutil.copytree(made, tmp_path / "pool")))
    served.start()
    yield served
    served.stop()


@pytest.fixture
def desk(server: Server) -> Desk:
    return Desk(server.pool, f"http://127.0.0.1:{server.port}", server.stop)


def accessible(page: Page) -> None:
    found = lazy("axe_playwright_python.sync_playwright").Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def done(page: Page, count: int) -> None:
    expect(page.locator("#counts")).to_contain_text(re.compile(rf"^{count} of "))


def press(page: Page, keys: str, start: int = 0) -> int:
    """Press keys as fast as the page takes them: each waits for the answer to the one before."""
    for number, key in enumerate(keys, start + 1):
        page.keyboard.press(key)
        done(page, number)
    return start + len(keys)


def label_as_somebody_else(browser: Browser, desk: Desk) -> None:
    """Label twenty pairs in a browser of its own, blind to what others said."""
    other = browser.new_context()
    bob = other.new_page()
    bob.goto(desk.label("bob"))
    expect(bob.locator(".passage-card")).to_be_visible()
    press(bob, "2" * 20)
    assert "ann" not in bob.locator("main").inner_text().lower().split()
    other.close()


def settle_all(page: Page) -> None:
    """Decide where the two differ, and take one decision back."""
    page.get_by_role("link", name="Disagreements").click()
    expect(page.locator(".passage-card")).to_have_count(1)
    done(page, 0)
    expect(page.locator("#counts")).to_have_text("0 of 15 settled")  # five of ann's are 2, too
    expect(page.locator(".opinions")).to_contain_text("bob")
    accessible(page)
    question = page.locator("#question").inner_text() + page.locator(".text").inner_text()
    page.keyboard.press("s")
    expect(page.locator(".passage-card h3")).to_have_text("Disagreement 2 of 15")
    assert page.locator("#question").inner_text() + page.locator(".text").inner_text() != question
    page.keyboard.press("1")
    done(page, 1)
    page.keyboard.press("u")
    done(page, 0)
    press(page, "3" * 15)
    expect(page.get_by_text("No disagreements are left")).to_be_visible()


def test_label_undo_reload_adjudicate_export_and_score(
    watched: Watched, desk: Desk, cli: Findwell, browser: Browser
) -> None:
    """Twenty pairs by keyboard, two annotators, and the number that comes out in the end."""
    page = watched.page
    page.goto(desk.page("/"))
    assert "token" not in page.url
    page.get_by_label("Your name").fill("ann")
    page.keyboard.press("Enter")
    expect(page.locator(".passage-card")).to_be_visible()
    shown = [page.locator(".text").inner_text()]
    count = 0
    for at in range(20):
        count = press(page, GRADES[at % 4], count)
        shown.append(page.locator(".text").inner_text() + page.locator("#question").inner_text())
    assert len(set(shown)) == 21
    expect(page.locator("#counts")).to_contain_text("left")

    page.keyboard.press("u")  # the last was 0
    done(page, 19)
    expect(page.locator("#said")).to_have_text("Undone.")
    page.keyboard.press("3")
    done(page, 20)
    page.reload()
    done(page, 20)
    assert page.locator(".text").inner_text() in shown[-1]
    grades = [grade for _, grade, _ in desk.frame()]
    assert grades == [2, 1, 3, 0] * 4 + [2, 1, 3, 3]

    label_as_somebody_else(browser, desk)
    settle_all(page)
    watched.require_quiet()

    asked = ("score", DEMO / "bm25.trec", "-m", "P@5", "-m", "recall@5", "--format", "json")
    scored = cli(*asked, "--gold", desk.pool / "labels.db")
    assert scored.code == 0, scored.err
    qrels = desk.pool.parent / "qrels.txt"
    assert cli("labels", "export", desk.pool, qrels).code == 0
    again = cli(*asked, "--gold", qrels).answer["summary"]
    first = scored.answer["summary"]
    assert [each["value"] for each in first] == [each["value"] for each in again]
    assert first[1]["value"] > 0


def test_two_windows_of_one_annotator_lose_nothing(browser: Browser, desk: Desk) -> None:
    context = browser.new_context()
    one, two = context.new_page(), context.new_page()
    for page in (one, two):
        page.goto(desk.label())
        expect(page.locator(".passage-card")).to_be_visible()
    assert one.locator(".text").inner_text() == two.locator(".text").inner_text()
    one.keyboard.press("3")
    done(one, 1)
    two.keyboard.press("0")
    expect(two.locator("#alarm")).to_contain_text("Labelled meanwhile")
    expect(two.locator("#alarm")).to_contain_text("3 Fully answers")
    assert desk.frame() == [("ann", 3.0, "labelled")]
    two.get_by_role("button", name="Save mine instead").click()
    done(two, 1)
    assert desk.frame() == [("ann", 0.0, "labelled")]
    press(two, "1", 1)
    one.keyboard.press("2")  # the same pair, which the other window has labelled 1
    expect(one.locator("#alarm")).to_be_visible()
    one.get_by_role("button", name="Keep that one").click()
    done(one, 2)
    assert [grade for _, grade, _ in desk.frame()] == [0.0, 1.0]
    context.close()


def test_without_a_server_the_key_is_kept(watched: Watched, desk: Desk, server: Server) -> None:
    page = watched.page
    page.goto(desk.label())
    expect(page.locator(".passage-card")).to_be_visible()
    before = page.locator(".text").inner_text()
    server.stop()
    page.keyboard.press("2")
    expect(page.locator("#alarm")).to_contain_text("Not saved yet")
    expect(page.locator("#alarm")).to_contain_text("2 Relevant")
    assert page.locator(".text").inner_text() == before
    page.keyboard.press("3")  # not taken: the first is not on disk
    accessible(page)
    server.start()
    page.get_by_role("button", name="Try now").click()
    done(page, 1)
    expect(page.locator("#alarm")).to_be_hidden()
    assert desk.frame() == [("ann", 2.0, "labelled")]

    server.stop()
    page.keyboard.press("1")
    expect(page.locator("#alarm")).to_contain_text("Not saved yet")
    page.evaluate("window.onbeforeunload = null")
    page.close(run_before_unload=False)  # the window is closed before the server is back
    server.start()
    later = watched.page.context.new_page()
    later.goto(desk.label())
    done(later, 2)
    assert [grade for _, grade, _ in desk.frame()] == [2.0, 1.0]


def test_a_failure_of_the_disk_is_told_and_tried_again(watched: Watched, desk: Desk) -> None:
    page = watched.page
    page.goto(desk.label())
    expect(page.locator(".passage-card")).to_be_visible()
    answers = iter([503, 403])

    def fail(route: Route) -> None:
        status = next(answers, None)
        if status is None:
            route.continue_()
        else:
            body = json.dumps({"error": "the disk has no room for more labels"})
            route.fulfill(status=status, body=body, content_type="application/json")

    page.route("**/api/label", fail)
    page.keyboard.press("2")
    expect(page.locator("#alarm")).to_contain_text("the disk has no room for more labels")
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#alarm")).to_contain_text("started again")
    page.get_by_role("button", name="Try now").click()
    done(page, 1)
    assert desk.frame() == [("ann", 2.0, "labelled")]


def test_marks_by_mouse_and_by_keys(watched: Watched, desk: Desk) -> None:
    page = watched.page
    page.goto(desk.label())
    expect(page.locator(".passage-card")).to_be_visible()
    text = page.locator(".text").inner_text()
    words = text.split()
    page.locator(".text").evaluate(
        """(node, [start, end]) => { const range = document.createRange();
        range.setStart(node.firstChild, start); range.setEnd(node.firstChild, end);
        getSelection().removeAllRanges(); getSelection().addRange(range); }""",
        [0, len(f"{words[0]} {words[1]} ")],
    )
    page.locator(".text").dispatch_event("pointerup", {"pointerType": "mouse", "bubbles": True})
    expect(page.locator("mark.own")).to_have_text(f"{words[0]} {words[1]}")
    page.reload()  # a mark that is not saved yet is kept as a draft
    expect(page.locator("mark.own")).to_have_text(f"{words[0]} {words[1]}")
    page.get_by_role("button", name="Remove the mark").click()
    expect(page.locator("mark.own")).to_have_count(0)

    page.keyboard.press("m")
    sentence = page.locator("mark.draft").inner_text()
    assert text.startswith(sentence)
    accessible(page)
    page.keyboard.press("ArrowDown")
    expect(page.locator("mark.draft")).not_to_have_text(sentence)
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Escape")
    expect(page.locator("mark")).to_have_count(0)
    page.keyboard.press("m")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowRight")
    part = page.locator("mark.draft").inner_text()
    assert part in sentence
    assert part not in (sentence, "")
    page.keyboard.press("Enter")
    expect(page.locator("mark.own")).to_have_text(part)
    page.keyboard.press("n")
    page.keyboard.type("3 is too much")  # typed into the note, no grade
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    done(page, 1)
    with Labels.open(desk.pool) as labels:
        row = labels.frame().row(0, named=True)
        pair = labels.pair(row["query"], row["doc"], annotator="ann")
    assert pair.text[row["start"] : row["end"]] == part
    assert (row["note"], row["grade"]) == ("3 is too much", 2.0)
    watched.require_quiet()


def test_the_list_by_keys(watched: Watched, desk: Desk) -> None:
    page = watched.page
    page.goto(desk.label())
    expect(page.locator(".passage-card")).to_be_visible()
    question = page.locator("#question").inner_text()
    page.keyboard.press("l")
    cards = page.locator(".passage-card")
    expect(cards.nth(1)).to_be_visible()
    count = cards.count()
    assert page.locator("#question").inner_text() == question
    accessible(page)
    page.keyboard.press("j")
    expect(cards.nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("k")
    expect(cards.nth(0)).to_have_attribute("aria-current", "true")
    press(page, "1" * count)
    expect(page.get_by_role("button", name="Next question")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#question")).not_to_have_text(question)
    page.keyboard.press("u")
    done(page, count - 1)
    expect(page.locator("#question")).to_have_text(question)
    watched.require_quiet()


def test_the_quote_of_the_judge_is_shown_only_on_request(watched: Watched, desk: Desk) -> None:
    page = watched.page
    page.goto(desk.label())
    expect(page.locator(".passage-card")).to_be_visible()
    expect(page.locator("mark")).to_have_count(0)
    box = page.get_by_label("What the judge quoted")
    expect(box).not_to_be_checked()
    box.check()
    expect(page.locator("mark.quote").first).to_be_visible()
    accessible(page)
    page.reload()
    expect(page.locator(".passage-card")).to_be_visible()
    expect(page.locator("mark")).to_have_count(0)


def test_guidelines_are_edited_at_the_side(watched: Watched, desk: Desk) -> None:
    page = watched.page
    page.goto(desk.label())
    expect(page.locator("#guidelines-text")).to_have_text("Only what answers the question counts.")
    page.keyboard.press("g")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("2 means that it helps.\n<b>0</b> else.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#guidelines-said")).to_have_text("Saved.")
    page.reload()
    expect(page.locator("#guidelines-text")).to_have_text("2 means that it helps. <b>0</b> else.")
    assert desk.frame() == []
    watched.require_quiet()


def test_single_keys_can_be_switched_off(watched: Watched, desk: Desk) -> None:
    page = watched.page
    page.goto(desk.label())
    expect(page.locator(".passage-card")).to_be_visible()
    page.get_by_label("Single keys").uncheck()
    page.locator(".passage-card").focus()
    page.keyboard.press("2")
    page.wait_for_timeout(200)
    assert desk.frame() == []
    page.get_by_role("button", name="2 Relevant").focus()
    page.keyboard.press("Enter")
    done(page, 1)
    assert desk.frame() == [("ann", 2.0, "labelled")]
    page.get_by_label("Single keys").check()  # and the box does not swallow them
    press(page, "3", 1)
    page.evaluate(
        """document.body.dispatchEvent(new KeyboardEvent(
        "keydown", {key: "é", code: "Digit2", bubbles: true}))"""
    )  # a French keyboard
    done(page, 3)
    assert [grade for _, grade, _ in desk.frame()] == [2.0, 3.0, 2.0]


def test_the_question_mark_opens_help_and_labels_nothing(watched: Watched, desk: Desk) -> None:
    page = watched.page
    page.goto(desk.label())
    expect(page.locator(".passage-card")).to_be_visible()
    page.locator("#keys summary").click()
    assert page.locator("#keys").get_attribute("open") is None
    page.locator(".passage-card").focus()
    page.keyboard.press("?")
    expect(page.locator("#keys dl")).to_be_visible()
    page.wait_for_timeout(200)
    assert desk.frame() == []
    press(page, "i")
    assert desk.frame() == [("ann", None, "unsure")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390, 320])
def test_every_page_fits_and_is_accessible(
    width: int, scheme: str, browser: Browser, desk: Desk
) -> None:
    context: BrowserContext = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        has_touch=width < 500,
    )
    page = context.new_page()
    for path in ("/overview", "/label?annotator=ann", "/adjudicate?annotator=ann"):
        page.goto(desk.page(path))
        if "label" in path:
            expect(page.locator(".passage-card")).to_be_visible()
            for key in "2is0":
                page.keyboard.press(key)
                page.wait_for_timeout(150)
            page.get_by_role("button", name="Note").click()
            page.keyboard.type("x" * 200)
        else:
            page.wait_for_timeout(200)
        accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for button in page.locator(".grade:visible").all()[:4]:
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= 44
    context.close()


def test_a_phone_marks_by_touch(browser: Browser, desk: Desk) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(desk.label())
    expect(page.locator(".passage-card")).to_be_visible()
    page.get_by_role("button", name="Mark", exact=True).tap()
    expect(page.locator("#said")).to_contain_text("Select the words")
    page.locator(".text").evaluate(
        """(node) => { const range = document.createRange();
        range.setStart(node.firstChild, 0); range.setEnd(node.firstChild, 9);
        getSelection().removeAllRanges(); getSelection().addRange(range); }"""
    )
    page.get_by_role("button", name="Mark the selection").tap()
    expect(page.locator("mark.own")).to_be_visible()
    page.get_by_role("button", name="Relevant", exact=True).tap()
    done(page, 1)
    with Labels.open(desk.pool) as labels:
        assert labels.frame()["start"].to_list() == [0]
    context.close()


def test_nothing_hostile_runs(watched: Watched, tmp_path: Path) -> None:
    attacks = hostile.ATTACKS
    runs = [{attack: [f"d{attack}", f"e{attack}"] for attack in attacks}]
    texts = {f"{kind}{attack}": f"{attack} is text" for kind in "de" for attack in attacks}
    folder = tmp_path / "hostile"
    findwell.labels.pool(
        runs, folder, queries={attack: f"{attack}?" for attack in attacks}, corpus=texts,
        overlap=1.0, guidelines=" ".join(attacks),
    )  # fmt: skip
    with Labels.open(folder) as labels:
        for attack in attacks:
            labels.set(attack, f"d{attack}", 1, annotator=attacks[0], note=attack, start=0, end=4)
            labels.set(attack, f"d{attack}", 2, annotator=attacks[3], note=attack)
    server = Server(folder)
    server.start()
    try:
        desk = Desk(folder, f"http://127.0.0.1:{server.port}", server.stop)
        page = watched.page
        page.goto(desk.page("/overview"))
        page.get_by_role("link", name="<img src=x").click()
        expect(page.locator(".passage-card")).to_be_visible()
        count = int((page.locator("#counts").inner_text()).split()[0])
        press(page, "1" * 5, count)
        page.keyboard.press("l")
        page.wait_for_timeout(300)
        page.get_by_role("link", name="Disagreements").click()
        expect(page.locator(".opinions").first).to_contain_text("<script>")
        assert page.locator("main script, main img, main svg").count() == 0
        assert page.evaluate("({}).polluted") is None
        watched.require_quiet()
    finally:
        server.stop()


def test_yes_and_no(watched: Watched, tmp_path: Path) -> None:
    runs = [{"q": ["a", "b", "c"]}]
    texts = {name: f"Text {name}." for name in "abc"}
    findwell.labels.pool(runs, tmp_path / "pool", queries={"q": "Why?"}, corpus=texts, highest=1)
    server = Server(tmp_path / "pool")
    server.start()
    try:
        desk = Desk(tmp_path / "pool", f"http://127.0.0.1:{server.port}", server.stop)
        page = watched.page
        page.goto(desk.label())
        expect(page.locator(".grade")).to_have_count(2)
        press(page, "y")
        press(page, "n", 1)
        page.keyboard.press("N")
        page.keyboard.type("no?")
        page.keyboard.press("Escape")
        press(page, "1", 2)
        expect(page.get_by_text("All passages are labelled")).to_be_visible()
        accessible(page)
        assert [grade for _, grade, _ in desk.frame()] == [1.0, 0.0, 1.0]
        page.keyboard.press("u")
        done(page, 2)
        watched.require_quiet()
    finally:
        server.stop()


def test_the_command_serves_and_prints_where(watched: Watched, made: Path, tmp_path: Path) -> None:
    pool = shutil.copytree(made, tmp_path / "served")
    command = [sys.executable, "-m", "findwell", "labels", "serve", str(pool), "--annotator", "Zoë"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        url = run.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", url)
        page = watched.page
        page.goto(url)
        expect(page.locator(".passage-card")).to_be_visible()
        press(page, "2")
        run.send_signal(signal.SIGKILL)  # loses nothing
        run.wait(timeout=30)
    finally:
        run.kill()
        run.communicate()
    with Labels.open(pool) as labels:
        assert labels.frame().select("annotator", "grade").rows() == [("Zoë", 2.0)]


def test_the_pictures_of_the_documentation_can_be_made(tmp_path: Path) -> None:
    """In a process of its own, as playwright allows one browser at a time in a thread."""
    script = Path(__file__).parents[2] / "examples" / "maintenance" / "make_screenshots.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, timeout=300)
    shipped = script.parents[2] / "docs" / "images"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in shipped.glob("*.png")}
    for name in names:
        assert (shipped / name).stat().st_size < 100_000  # kept small

"""The pages of `findwell labels serve`: who may write, what is saved, what is refused."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

import findwell
from findwell.loop.labels.labels import Labels
from findwell.show.web.labelling import GUIDELINES_LENGTH, NOTE_LENGTH, label_site
from findwell.show.web.request_body import LARGEST_REQUEST
from findwell.show.web.server import TokenGuard, listen
from tests import hostile
from tests.web.conftest import PORT, TOKEN

ORIGIN = {"origin": f"http://127.0.0.1:{PORT}"}
QUESTIONS = {"q1": "Where is the reset button?", "q2": "How long does charging take?"}
TEXTS = {
    "a": "The reset button is at the back. 😀 Press it for three seconds.",
    "b": "Charging takes four hours.",
    "c": "Call us.\r\nWe are there for you.\x1b[31m",
    "d": "The button on the left is the lamp.",
}
RUNS = {
    "one": {"q1": ["a", "d", "c"], "q2": ["b", "c"]},
    "two": {"q1": ["d", "a", "b"], "q2": ["b", "a"]},
}
POSTS = ("/api/label", "/api/undo", "/api/adjudicate", "/api/guidelines")
GETS = (
    "/", "/overview", "/label?annotator=ann", "/adjudicate?annotator=ann",
    "/api/pair?annotator=ann", "/api/list?annotator=ann", "/api/disagreements?annotator=ann",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pool") / "pool"
    findwell.labels.pool(
        RUNS, folder, queries=QUESTIONS, corpus=TEXTS, overlap=1.0, guidelines="Be fair."
    )
    return folder


@pytest.fixture
def pool(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "pool"))


@pytest.fixture
def labels(pool: Path) -> Iterator[Labels]:
    with Labels.open(pool, timeout=0.1) as opened:
        yield opened


def asking(labels: Labels, annotator: str = "", *, known: bool = True) -> TestClient:
    app = TokenGuard(label_site(labels, "pool", annotator), TOKEN, PORT)
    client = TestClient(app, base_url=f"http://127.0.0.1:{PORT}")
    if known:
        client.cookies.set(f"findwell-{PORT}", TOKEN)
    return client


@pytest.fixture
def client(labels: Labels) -> TestClient:
    return asking(labels)


def send(client: TestClient, path: str, headers: dict[str, str] = ORIGIN, **body: Any) -> Any:
    return client.post(path, json={"annotator": "ann", **body}, headers=headers)


def label(client: TestClient, query: str, doc: str, grade: object = 2, **body: Any) -> Any:
    return send(client, "/api/label", action="set", query=query, doc=doc, grade=grade, **body)


# who may ask, and who may write


@pytest.mark.parametrize("path", GETS)
def test_without_the_token_nothing_is_shown(path: str, labels: Labels) -> None:
    for cookie in ("", "wrong"):
        stranger = asking(labels, known=False)
        stranger.cookies.set(f"findwell-{PORT}", cookie)
        answer = stranger.get(path)
        assert answer.status_code == 403
        assert "findwell labels serve" in answer.text  # where to find it
        assert "reset" not in answer.text


@pytest.mark.parametrize("path", POSTS)
def test_without_the_token_nothing_is_written(path: str, labels: Labels) -> None:
    answer = send(asking(labels, known=False), path, query="q1", doc="a", action="set", grade=1)
    assert answer.status_code == 403
    assert labels.history().is_empty()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"http://127.0.0.1.evil.example:{PORT}"},
        {**ORIGIN, "sec-fetch-site": "cross-site"},
        {**ORIGIN, "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_only_its_own_page_writes(
    headers: dict[str, str], client: TestClient, labels: Labels
) -> None:
    for path in POSTS:
        body = {"query": "q1", "doc": "a", "action": "set", "grade": 1, "text": "", "before": ""}
        assert send(client, path, headers, **body).status_code == 403
    assert labels.history().is_empty()
    assert labels.guidelines == "Be fair."


def test_other_hosts_and_methods_are_refused(client: TestClient) -> None:
    for path in POSTS:
        assert client.get(path).status_code == 405
        answer = client.post(path, json={}, headers={**ORIGIN, "host": f"evil.example:{PORT}"})
        assert answer.status_code == 421
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert client.request(method, "/api/label", headers=ORIGIN).status_code == 405
    assert client.post("/label?annotator=ann", json={}, headers=ORIGIN).status_code == 405


def test_every_answer_is_guarded(client: TestClient) -> None:
    for path in GETS:
        answer = client.get(path)
        assert answer.status_code == 200
        rules = answer.headers["content-security-policy"]
        assert "unsafe" not in rules
        assert "frame-ancestors 'none'" in rules
        assert answer.headers["cache-control"] == "no-store"
        assert TOKEN not in answer.text
        if answer.headers["content-type"].startswith("text/html"):
            assert "http" not in answer.text.split("<main")[1].split("<script")[0]
            assert f'content="{rules.partition("; frame-ancestors")[0]}' in answer.text.replace(
                "&#39;", "'"
            )


# what is asked for and saved


def test_a_label_is_on_disk_when_the_answer_comes(client: TestClient, pool: Path) -> None:
    first = client.get("/api/pair?annotator=ann").json()
    pair = first["pair"]
    assert first["progress"]["done"] == 0
    told = label(client, pair["query"], pair["doc"], 3, note="clear", start=0, end=4).json()
    with sqlite3.connect(pool / "labels.db") as other:  # as another process would read it
        assert other.execute("SELECT grade, note FROM event").fetchall() == [(3.0, "clear")]
    assert told["saved"] == {
        "state": "labelled", "grade": 3, "note": "clear", "start": 0, "end": 4,
    }  # fmt: skip
    assert (told["next"]["query"], told["next"]["doc"]) != (pair["query"], pair["doc"])
    assert told["progress"]["done"] == 1
    assert client.get("/api/pair?annotator=ann").json()["pair"] == told["next"]


def test_skip_unsure_and_undo(client: TestClient, labels: Labels) -> None:
    for action, state in (("skip", "skipped"), ("unsure", "unsure")):
        pair = client.get("/api/pair?annotator=ann").json()["pair"]
        where = {"query": pair["query"], "doc": pair["doc"]}
        told = send(client, "/api/label", action=action, **where).json()
        assert told["saved"]["state"] == state
        assert told["progress"][state] == 1
    undone = send(client, "/api/undo").json()["undone"]
    assert (undone["query"], undone["doc"], undone["label"]) == (*where.values(), None)
    send(client, "/api/undo")
    assert send(client, "/api/undo").json()["undone"] is None
    assert labels.history().height == 4


def test_nobody_sees_what_others_said(client: TestClient) -> None:
    pair = client.get("/api/pair?annotator=ann").json()["pair"]
    label(client, pair["query"], pair["doc"], 3, note="secret of ann", annotator="ann")
    for path in GETS[2:]:
        told = client.get(path.replace("ann", "bob", 2).replace("bobotator", "annotator"))
        assert "secret" not in told.text
        assert '"grade": 3' not in told.text
    shown = client.get(f"/api/list?annotator=bob&query={pair['query']}").json()
    assert [each["label"] for each in shown["pairs"]] == [None] * len(shown["pairs"])


def test_disagreements_are_settled(client: TestClient, labels: Labels) -> None:
    label(client, "q1", "a", 3, start=4, end=16)
    label(client, "q1", "a", 1, annotator="bob", note="not all")
    told = client.get("/api/disagreements?annotator=cleo").json()
    (found,) = told["pairs"]
    assert [(each["annotator"], each["grade"]) for each in found["labels"]] == [
        ("ann", 3),
        ("bob", 1),
    ]
    assert found["labels"][0]["quoted"] == "reset button"
    assert found["labels"][1]["note"] == "not all"
    assert client.get("/api/pair?annotator=ann").json()["progress"]["disagreements"] == 1
    told = send(client, "/api/adjudicate", annotator="cleo", query="q1", doc="a", grade=2).json()
    assert told["pairs"] == []
    assert (told["progress"]["done"], told["progress"]["total"]) == (1, 1)
    assert labels.gold().rows().select("doc", "grade").rows() == [("a", 2.0)]
    assert send(client, "/api/undo", annotator="cleo").json()["undone"]["doc"] == "a"
    assert len(client.get("/api/disagreements?annotator=cleo").json()["pairs"]) == 1


def test_the_list_holds_the_passages_of_a_question(client: TestClient) -> None:
    told = client.get("/api/list?annotator=ann&query=q1").json()
    assert {each["doc"] for each in told["pairs"]} == {"a", "b", "c", "d"}
    for each in told["pairs"]:
        label(client, "q1", each["doc"], 0)
    told = client.get("/api/list?annotator=ann&query=q1").json()  # nothing left there
    assert {each["query"] for each in told["pairs"]} == {"q2"}


def test_the_list_of_a_sample_holds_what_was_drawn(tmp_path: Path) -> None:
    findwell.labels.pool(
        RUNS, tmp_path / "p", queries=QUESTIONS, corpus=TEXTS, purpose="values", budget=3
    )
    with Labels.open(tmp_path / "p") as labels:
        client = asking(labels)
        docs = [
            (query, each["doc"])
            for query in QUESTIONS
            for each in client.get(f"/api/list?annotator=a&query={query}").json()["pairs"]
            if each["query"] == query
        ]
        drawn = labels.candidates().filter("sampled").select("query", "doc").rows()
    assert len(drawn) == 3
    assert sorted(docs) == sorted(drawn)


def test_offsets_are_those_of_the_text(client: TestClient, labels: Labels) -> None:
    pairs = client.get("/api/list?annotator=ann&query=q1").json()["pairs"]
    shown = {each["doc"]: each["text"] for each in pairs}
    assert {doc: len(text) for doc, text in shown.items()} == {
        doc: len(text) for doc, text in TEXTS.items()
    }
    assert "\x1b" not in shown["c"]
    start = shown["a"].index("Press")
    label(client, "q1", "a", 3, start=start, end=start + 5)
    row = labels.frame().row(0, named=True)
    assert TEXTS["a"][row["start"] : row["end"]] == "Press"


def test_the_question_mark_shows_the_keys(client: TestClient) -> None:
    """As in a report; it never labels."""
    page = client.get("/label?annotator=ann").text
    keys = dict(re.findall(r"<kbd>(.)</kbd></dt><dd>([^<]*)</dd>", page))
    assert keys["?"] == "these keys"
    assert keys["i"] == "unsure"
    assert "h" not in keys


# two windows


def test_another_window_does_not_overwrite_in_silence(client: TestClient, labels: Labels) -> None:
    assert label(client, "q1", "a", 3, seen=None).status_code == 200
    again = label(client, "q1", "a", 3, seen=None)  # the answer was lost: the same once more
    assert again.status_code == 200
    other = label(client, "q1", "a", 0, seen=None)
    assert other.status_code == 409
    assert other.json()["label"]["grade"] == 3
    assert labels.frame()["grade"].to_list() == [3.0]
    assert label(client, "q1", "a", 0, seen=other.json()["label"]).status_code == 200
    assert label(client, "q1", "a", 1, seen=None, overwrite=True).status_code == 200
    assert labels.frame()["grade"].to_list() == [1.0]
    assert labels.history().height == 4


def test_many_windows_at_once_lose_nothing(labels: Labels) -> None:
    """Every annotator labels all from a window of their own, all at the same time."""
    failed: list[object] = []

    def work(name: str) -> None:
        client = asking(labels)
        while (pair := client.get(f"/api/pair?annotator={name}").json()["pair"]) is not None:
            told = label(client, pair["query"], pair["doc"], 1, annotator=name)
            if told.status_code != 200:
                failed.append(told.text)
                return

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob", "cleo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    count = labels.candidates().height
    assert labels.frame().group_by("annotator").len()["len"].to_list() == [count] * 3


@pytest.fixture
def two_servers(pool: Path) -> Iterator[list[httpx.Client]]:
    """Serve one pool twice, each server with a database of its own and at a port of its own."""
    with ExitStack() as parts:
        clients = []
        for _ in range(2):
            listener = parts.enter_context(closing(listen(0)))
            port = listener.getsockname()[1]
            opened = parts.enter_context(Labels.open(pool))
            app = TokenGuard(label_site(opened, "pool"), TOKEN, port)
            server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            parts.callback(thread.join)
            parts.callback(setattr, server, "should_exit", True)
            base = f"http://127.0.0.1:{port}"
            client = httpx.Client(
                base_url=base,
                headers={"origin": base},
                cookies={f"findwell-{port}": TOKEN},
                trust_env=False,
            )
            clients.append(parts.enter_context(client))
        yield clients


def at_the_same_time(clients: list[httpx.Client], path: str, bodies: list[Any]) -> list[Any]:
    start = threading.Barrier(len(clients))

    def post(client: httpx.Client, body: Any) -> httpx.Response:
        start.wait()
        return client.post(path, json=body)

    with ThreadPoolExecutor(len(clients)) as threads:
        return [*threads.map(post, clients, bodies)]


def test_two_servers_of_one_pool_overwrite_nothing_in_silence(
    two_servers: list[httpx.Client], labels: Labels
) -> None:
    """Of two labels that differ one is saved; the other sender is told which, each time."""
    for number in range(20):
        pair: dict[str, Any] = {
            "annotator": f"ann{number}",
            "query": "q1",
            "doc": "a",
            "seen": None,
        }
        bodies = [pair | {"action": "set", "grade": grade} for grade in (0, 3)]
        answers = at_the_same_time(two_servers, "/api/label", bodies)
        assert sorted(each.status_code for each in answers) == [200, 409]
        saved, refused = sorted(answers, key=lambda each: each.status_code)
        assert refused.json()["label"] == saved.json()["saved"]
    assert labels.history().height == 20
    assert labels.frame().height == 20


def test_two_servers_decide_and_write_guidelines_once(
    two_servers: list[httpx.Client], labels: Labels
) -> None:
    labels.set("q1", "a", 1, annotator="ann")
    labels.set("q1", "a", 3, annotator="bob")
    bodies = [
        {"annotator": name, "query": "q1", "doc": "a", "grade": grade}
        for name, grade in (("cleo", 2), ("dora", 0))
    ]
    answers = at_the_same_time(two_servers, "/api/adjudicate", bodies)
    assert sorted(each.status_code for each in answers) == [200, 409]
    saved, refused = sorted(answers, key=lambda each: each.status_code)
    assert refused.json()["label"]["grade"] == saved.json()["saved"]["grade"]
    loser = bodies[answers.index(refused)]
    again = two_servers[0].post("/api/adjudicate", json=loser | {"overwrite": True})
    assert again.status_code == 200
    texts = [{"annotator": "ann", "before": "Be fair.", "text": text} for text in ("One", "Two")]
    answers = at_the_same_time(two_servers, "/api/guidelines", texts)
    assert sorted(each.status_code for each in answers) == [200, 409]


def test_guidelines_are_not_overwritten_in_silence(client: TestClient, labels: Labels) -> None:
    assert send(client, "/api/guidelines", text="Fair.", before="Be fair.").status_code == 200
    lost = send(client, "/api/guidelines", text="Mine.", before="Be fair.", annotator="bob")
    assert lost.status_code == 409
    assert lost.json()["text"] == "Fair."
    assert labels.guidelines == "Fair."
    assert '"guidelines":"Fair."' in client.get("/label?annotator=bob").text


# what cannot be


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"query": "q9"}, 404, "not in the pool"),
        ({"doc": "zz"}, 404, "not in the pool"),
        ({"grade": 4}, 400, "0 to 3"),
        ({"grade": -1}, 400, "0 to 3"),
        ({"grade": None}, 400, "grade"),
        ({"grade": "2"}, 400, "whole number"),
        ({"grade": 1.5}, 400, "whole number"),
        ({"grade": True}, 400, "whole number"),
        ({"start": 5, "end": 5}, 400, "characters 5 to 5"),
        ({"start": 0, "end": 10_000}, 400, "characters 0 to 10000"),
        ({"start": 0}, 400, "characters 0 to None"),
        ({"start": "0", "end": 3}, 400, "start must be a whole number"),
        ({"note": 7}, 400, "note must be a text"),
        ({"note": "x" * (NOTE_LENGTH + 1)}, 400, "note has"),
        ({"note": "\ud800"}, 400, "note must be a text"),
        ({"query": None}, 400, "query must be a text"),
        ({"action": "delete"}, 400, "action is"),
        ({"annotator": ""}, 400, "name"),
        ({"annotator": "x" * 81}, 400, "name"),
        ({"annotator": "a\u202eb"}, 400, "name"),
        ({"annotator": ["ann"]}, 400, "annotator must be a text"),
    ],
)
def test_bad_labels_are_refused(
    body: dict[str, Any], status: int, told: str, client: TestClient, labels: Labels
) -> None:
    good = {"annotator": "ann", "action": "set", "query": "q1", "doc": "a", "grade": 2}
    answer = client.post(
        "/api/label",
        content=json.dumps(good | body),
        headers=ORIGIN | {"content-type": "application/json"},
    )
    assert (answer.status_code, labels.history().height) == (status, 0)
    assert told in answer.json()["error"] + answer.json().get("fix", "")


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{}", "text/plain", 415),
        (b"annotator=ann", "application/x-www-form-urlencoded", 415),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'"' + b"x" * LARGEST_REQUEST + b'"', "application/json", 413),
    ],
)
def test_what_is_no_request_is_refused(
    content: bytes, kind: str, status: int, client: TestClient
) -> None:
    for path in POSTS:
        answer = client.post(path, content=content, headers=ORIGIN | {"content-type": kind})
        assert answer.status_code == status
        assert answer.json()["error"]


def test_long_guidelines_are_refused(client: TestClient, labels: Labels) -> None:
    told = send(client, "/api/guidelines", text="x" * (GUIDELINES_LENGTH + 1), before="Be fair.")
    assert told.status_code == 400
    assert labels.guidelines == "Be fair."


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 81])
def test_a_name_is_needed(name: str, client: TestClient) -> None:
    shown = client.get("/label", params={"annotator": name})
    assert shown.status_code == 400
    assert "Who labels?" in shown.text
    assert client.get("/api/pair", params={"annotator": name}).status_code == 400


def test_a_locked_database_is_told_and_may_be_tried_again(client: TestClient, pool: Path) -> None:
    other = sqlite3.connect(pool / "labels.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = label(client, "q1", "a", 2)
    assert answer.status_code == 503
    assert "not saved" in answer.json()["fix"]
    other.execute("ROLLBACK")
    other.close()
    assert label(client, "q1", "a", 2).status_code == 200


# pages


def test_the_start_asks_who_labels_unless_that_is_known(labels: Labels) -> None:
    assert "Who labels?" in asking(labels).get("/").text
    client = asking(labels, "Ann & Bob")
    first = client.get("/", follow_redirects=False)
    assert first.headers["location"] == "/label?annotator=Ann+%26+Bob"
    assert "Ann &amp; Bob" in client.get("/").text


def test_the_overview_says_how_far_everybody_is(client: TestClient) -> None:
    label(client, "q1", "a", 2)
    label(client, "q1", "a", 1, annotator="Bob B.")
    shown = client.get("/overview").text
    assert "2 questions" in shown
    assert re.search(r'href="/label\?annotator=Bob\+B\.">Bob B\.</a></th><td>1 of \d</td>', shown)
    assert "findwell score RUN --gold pool" in shown
    assert "1 passage labelled by two or more annotators: too few to say how far" in shown
    assert "Krippendorff" not in shown


def test_agreement_is_one_number_from_twenty_passages_on(tmp_path: Path) -> None:
    docs = [f"d{number}" for number in range(24)]
    asked = {"q": "Where is the reset button?"}
    findwell.labels.pool(
        [{"q": docs}],
        tmp_path / "pool",
        queries=asked,
        corpus={doc: f"text {doc}" for doc in docs},
        depth=len(docs),
    )
    with Labels.open(tmp_path / "pool") as labels:
        client = asking(labels)
        for number, doc in enumerate(docs):
            label(client, "q", doc, number % 4)
            label(client, "q", doc, number % 4 if number % 6 else 2, annotator="Bob")
            shown = client.get("/overview").text if number in (18, 23) else ""
            assert ("too few" in shown) == (number == 18)
        (alpha,) = labels.agreement().summary.filter(statistic="alpha (ordinal)").to_dicts()
    (told,) = re.findall(r'<p class="alpha"><strong>([\d.]+)</strong> (\w+)', shown)
    assert told == (f"{alpha['value']:.3f}", "good")
    assert "24 passages labelled by two or more annotators." in shown
    assert "Where is the reset button?" in shown
    assert shown.count("κ") == 0


def test_what_is_to_be_done_does_not_grow_by_doubt(tmp_path: Path) -> None:
    """A passage that is skipped, or left in doubt, is replaced by another one of the pool."""
    docs = {f"d{number}": f"text {number}" for number in range(12)}
    folder = tmp_path / "pool"
    findwell.labels.pool([{"q": list(docs)}], folder, queries={"q": "?"}, corpus=docs, budget=6)
    with Labels.open(folder) as labels:
        client = asking(labels)
        seen = []
        for action in ("unsure", "skip", "set", "set"):
            pair = labels.next("ann")
            assert pair is not None
            given: Any = {"query": pair.query, "doc": pair.doc, "annotator": "ann", "grade": 1}
            told = send(client, "/api/label", action=action, **given).json()["progress"]
            seen.append((told["done"], told["total"]))
    assert seen == [(0, 6), (0, 6), (1, 6), (2, 6)]


def test_the_name_is_what_is_written_first(labels: Labels) -> None:
    (field,) = re.findall(r"<input[^>]*name=\"annotator\"[^>]*>", asking(labels).get("/").text)
    assert "autofocus" in field


def test_without_overlap_there_is_no_agreement(client: TestClient) -> None:
    label(client, "q1", "a", 2)
    assert "Agreement</h2>" not in client.get("/overview").text


def test_hostile_texts_are_only_texts(tmp_path: Path) -> None:
    runs = [{attack: [f"d{attack}"] for attack in hostile.ATTACKS}]
    texts = {f"d{attack}": f"{attack} is text" for attack in hostile.ATTACKS}
    asked = {attack: f"{attack}?" for attack in hostile.ATTACKS}
    folder = tmp_path / "pool"
    findwell.labels.pool(
        runs, folder, queries=asked, corpus=texts, guidelines=" ".join(hostile.ATTACKS)
    )
    with Labels.open(folder) as labels:
        client = asking(labels)
        for number, attack in enumerate(hostile.ATTACKS):
            name = f"{number}{attack}" if attack.isprintable() else f"ann {number}"
            told = label(client, attack, f"d{attack}", 1, annotator=name, note=attack)
            assert told.status_code == 200, told.text
            shown = client.get("/label", params={"annotator": name}).text
            assert shown.count("<script") == 2  # the data and the script
            assert "<img" not in shown
            assert "<svg onload" not in shown
        shown = client.get("/overview").text
        assert shown.count("<script") == 2
        assert "<img" not in shown
        assert labels.frame().height == len(hostile.ATTACKS)

"""The list: what it tells about results, their trend, tags and notes, and what is opened first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.evaluation.results.notes import NOTE, ResultNotes, notes_file, read_notes, write_notes
from findwell.evaluation.results.store import seal
from findwell.show.web.folders import ResultFolders, SavedResult
from findwell.show.web.request_body import LARGEST_REQUEST
from findwell.show.web.trends import trends
from tests.reports.test_page import data_of
from tests.web.conftest import PORT
from tests.web.test_app import ids
from tests.web.test_server import OWN

if TYPE_CHECKING:
    from starlette.testclient import TestClient

NONE: dict[str, Any] = {"tags": [], "note": ""}
SOME: dict[str, Any] = {"tags": ["nightly"], "note": "a new chunker\nof 512 tokens"}
NAVIGATES = {"sec-fetch-mode": "navigate", "sec-fetch-site": "none"}


def dated(folder: Path, created: str, **more: Any) -> None:
    """Write another time, or whatever else, into the manifest of a result."""
    path = folder / "manifest.json"
    told = json.loads(path.read_text()) | {"created": created, **more}
    path.unlink()
    seal(folder, {name: told[name] for name in told if name not in ("sha256", "files")})


def listed(folder: Path) -> dict[str, SavedResult]:
    return {each.name: each for each in ResultFolders([folder]).results()}


def send(client: TestClient, result: str, notes: object, before: object = NONE) -> Any:
    sent = {"result": result, "notes": notes, "before": before}
    kind = {"content-type": "application/json"}
    return client.post("/api/notes", headers=OWN | kind, content=json.dumps(sent))


def test_a_row_tells_queries_data_set_measure_and_findings(results: Path) -> None:
    row = listed(results)["monday"].row()
    assert (row["queries"], row["measure"], row["systems"]) == (95, "recall@5", ["bm25", "minilm"])
    assert row["data_set"]["name"] == "questions.jsonl"
    manifest = json.loads((results / "monday" / "manifest.json").read_text())
    gold = next(each for each in manifest["inputs"] if each["role"] == "gold")
    assert row["data_set"]["key"] == gold["sha256"]
    saved = findwell.load(results / "monday")
    assert {each["run"]: each["value"] for each in row["by_run"]} == pytest.approx(
        {run: saved[run, "recall@5"] for run in ("bm25", "minilm")}
    )


def test_data_in_memory_is_told_apart_by_its_queries(tmp_path: Path) -> None:
    for name, queries in (("one", 3), ("same", 3), ("more", 4)):
        run = {f"q{number}": ["a", "b"] for number in range(queries)}
        findwell.evaluate(run, {query: ["b"] for query in run}, ["RR"]).save(tmp_path / name)
    keys = {name: each.data_set()["key"] for name, each in listed(tmp_path).items()}
    assert keys["one"] == keys["same"] != keys["more"]


def test_a_trend_joins_results_of_the_same_data_measure_and_dialect(tmp_path: Path) -> None:
    gold = tmp_path / "gold.json"
    gold.write_text('{"q1": ["a"], "q2": ["b"], "q3": ["c"]}')
    runs = {
        "first": {"q1": ["a"], "q2": ["x"], "q3": ["x"]},
        "second": {"q1": ["a"], "q2": ["b"], "q3": ["x"]},
        "third": {"q1": ["a"], "q2": ["b"], "q3": ["c"]},
    }
    for day, (name, run) in enumerate(runs.items(), 1):
        findwell.evaluate(run, gold, ["recall@5"]).save(tmp_path / name)
        dated(tmp_path / name, f"2026-11-0{day}T08:00:00+00:00")
    findwell.evaluate(runs["first"], gold, ["RR"]).save(tmp_path / "another measure")
    other = {query: ["a"] for query in ("q1", "q2")}
    findwell.evaluate(runs["first"], other, ["recall@5"]).save(tmp_path / "another gold")
    found = listed(tmp_path)
    drawn = {each.name: trends(list(found.values())).get(each.id) for each in found.values()}
    assert drawn["another measure"] is None
    assert drawn["another gold"] is None
    second = drawn["second"]
    assert second is not None
    assert (second["place"], second["of"]) == (2, 3)
    assert second["before"]["value"] == pytest.approx(1 / 3)
    assert second["svg"].count("<circle") == 3
    assert "number 2; the last are 0.3333, 0.6667, 1.0000" in second["svg"]
    third = drawn["third"]
    assert third is not None
    assert third["before"]["value"] == pytest.approx(2 / 3)


def test_the_best_systems_are_listed_and_the_trend_is_that_of_one(tmp_path: Path) -> None:
    gold = tmp_path / "gold.json"
    gold.write_text('{"q1": ["a"], "q2": ["b"], "q3": ["c"]}')
    hits = {"alpha": "", "beta": "a", "gamma": "ab", "zeta": "abc"}
    first = {
        name: {f"q{at + 1}": [doc if doc in found else "x"] for at, doc in enumerate("abc")}
        for name, found in hits.items()
    }
    second = {"zeta": first["gamma"], "beta": first["beta"]}
    for day, (name, runs) in enumerate((("first", first), ("second", second)), 1):
        findwell.evaluate(runs, gold, ["recall@5"]).save(tmp_path / name)
        dated(tmp_path / name, f"2026-11-0{day}T08:00:00+00:00")
    found = listed(tmp_path)
    row = found["first"].row()
    assert [each["run"] for each in row["by_run"]] == ["zeta", "gamma", "beta"]
    assert row["more"] == 1
    drawn = trends(list(found.values()))[found["second"].id]
    assert drawn["run"] == "zeta"
    assert drawn["before"]["value"] == 1.0  # of zeta, not of gamma, which has the value of today
    assert "recall@5 of zeta in 2 results" in drawn["svg"]


def test_the_best_run_of_a_measure_where_less_is_better_is_the_lowest(tmp_path: Path) -> None:
    runs = {"good": {"q1": ["a"]}, "bad": {"q1": ["x", "a"]}}
    gold = {"q1": {"a": 1, "x": 0}}
    findwell.evaluate(runs, gold, ["rejected_retrieved"]).save(tmp_path / "one")
    best = listed(tmp_path)["one"].headline.best
    assert best is not None
    assert best["run"] == "good"


def test_the_oldest_is_the_baseline_unless_another_is_chosen(
    results: Path, client: TestClient
) -> None:
    dated(results / "monday", "2026-11-01T08:00:00+00:00")
    dated(results / "nightly" / "tuesday", "2026-11-02T08:00:00+00:00")
    known = ids(client)
    newest_first = list(known.values())
    assert list(known) == ["nightly/tuesday", "monday"]
    for first, expected in (("", "monday"), (known["nightly/tuesday"], "tuesday")):
        data = data_of(client.get("/report", params={"r": newest_first, "first": first}).text)
        assert data["systems"][0] == f"{expected}/bm25"
    kept = data_of(client.get("/report", params={"r": newest_first}).text)
    assert kept["systems"][0] == "tuesday/bm25"  # a link keeps its order


def test_nothing_ticked_is_explained(client: TestClient) -> None:
    answer = client.get("/report", params={"first": ""})
    assert answer.status_code == 404
    assert "no result is ticked" in answer.text
    assert "tick one or more" in answer.text


def test_the_first_opening_shows_that_it_is_being_made(client: TestClient) -> None:
    number = ids(client)["monday"]
    first = client.get("/report", params={"r": number}, headers=NAVIGATES)
    assert "Opening monday" in first.text
    assert "95 queries, 2 systems" in first.text
    waiting = data_of(first.text)["live"]["opening"]
    assert f'content="0; url={waiting}"'.replace("&", "&amp;") in first.text  # without a script
    made = client.get(waiting, headers=NAVIGATES)
    assert data_of(made.text)["systems"] == ["bm25", "minilm"]
    again = client.get("/report", params={"r": number}, headers=NAVIGATES)
    assert data_of(again.text)["systems"] == ["bm25", "minilm"]


def test_notes_are_kept_beside_the_result(results: Path, client: TestClient) -> None:
    number = ids(client)["monday"]
    before = client.get("/api/news").json()["state"]
    answer = send(client, number, SOME)
    assert (answer.status_code, answer.json()) == (200, {"notes": SOME})
    assert client.get("/api/news").json()["state"] != before
    written = json.loads((results / "monday.notes.json").read_text())
    assert (written["tags"], written["note"]) == (SOME["tags"], SOME["note"])
    assert findwell.load(results / "monday").runs == ["bm25", "minilm"]  # the folder is untouched
    shown = client.get("/").text
    assert "nightly</span>" in shown
    assert "a new chunker" in shown
    assert send(client, number, NONE, SOME).status_code == 200
    assert not (results / "monday.notes.json").exists()


def test_notes_survive_a_new_result_and_say_that_it_is_another(
    results: Path, client: TestClient
) -> None:
    send(client, ids(client)["monday"], SOME)
    assert "earlier result" not in client.get("/").text
    findwell.load(results / "monday").save(results / "monday")
    shown = client.get("/").text
    assert "a new chunker" in shown
    assert "written about an earlier result of this name" in shown


def test_notes_of_somebody_else_are_not_overwritten(results: Path, client: TestClient) -> None:
    number = ids(client)["monday"]
    send(client, number, SOME)
    late = send(client, number, {"tags": [], "note": "mine"})
    assert (late.status_code, late.json()["notes"]) == (409, SOME)
    assert read_notes(results / "monday") == ResultNotes(
        ("nightly",), SOME["note"], listed(results)["monday"].number
    )
    assert send(client, number, SOME).status_code == 200  # the same again: its answer was lost
    assert send(client, number, {"tags": [], "note": "mine"}, SOME).status_code == 200


@pytest.mark.parametrize(
    ("notes", "complaint"),
    [
        (None, "notes have tags"),
        ({"tags": "nightly", "note": ""}, "tags must be a list"),
        ({"tags": [1], "note": ""}, "tag must be a text"),
        ({"tags": ["\ud800"], "note": ""}, "tag must be a text"),
        ({"tags": []}, "note must be a text"),
        ({"tags": ["x" * 41], "note": ""}, "41 characters in a tag"),
        ({"tags": [str(number) for number in range(21)], "note": ""}, "21 tags"),
        ({"tags": [], "note": "x" * (NOTE + 1)}, "4,001 characters in the note"),
    ],
)
def test_what_cannot_be_notes(
    notes: object, complaint: str, results: Path, client: TestClient
) -> None:
    answer = send(client, ids(client)["monday"], notes)
    assert answer.status_code == 400
    assert complaint in answer.json()["error"]
    assert not notes_file(results / "monday").exists()


@pytest.mark.parametrize("number", ["", "monday", "../secret", "/etc/passwd", "0" * 16])
def test_notes_are_about_results_of_the_list(
    number: str, results: Path, client: TestClient
) -> None:
    before = {path.name for path in results.parent.rglob("*")}
    assert send(client, number, SOME).status_code == 404
    assert {path.name for path in results.parent.rglob("*")} == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),  # no origin
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        (OWN | {"sec-fetch-site": "cross-site"}, 403),
        (OWN | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
        (OWN | {"host": "evil.example"}, 421),
        (OWN | {"cookie": f"findwell-{PORT}=wrong"}, 403),
        (OWN | {"content-type": "text/plain"}, 415),
    ],
)
def test_who_may_not_write_notes(
    headers: dict[str, str], status: int, results: Path, client: TestClient
) -> None:
    sent = {"result": ids(client)["monday"], "notes": SOME, "before": NONE}
    if "cookie" in headers:
        client.cookies.clear()
    kind = {"content-type": "application/json"} | headers
    answer = client.post("/api/notes", headers=kind, content=json.dumps(sent))
    assert answer.status_code == status
    assert not notes_file(results / "monday").exists()


def test_a_request_has_a_largest_size(results: Path, client: TestClient) -> None:
    answer = send(client, ids(client)["monday"], SOME | {"note": "x" * LARGEST_REQUEST})
    assert answer.status_code == 413
    assert not notes_file(results / "monday").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"findwell": "other"}', '{"note": "mine"}', "x" * 200_000]
)
def test_a_file_that_findwell_did_not_write_stays(
    content: str, results: Path, client: TestClient
) -> None:
    path = notes_file(results / "monday")
    path.write_text(content)
    assert "findwell did not write it" in client.get("/").text
    answer = send(client, ids(client)["monday"], SOME)
    assert answer.status_code == 503
    assert "findwell did not write it" in answer.json()["error"]
    assert path.read_text() == content


def test_a_link_in_the_place_of_notes_is_not_followed(results: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    write_notes(tmp_path / "secret", ResultNotes.of([], "hush-hush"))
    shutil.move(notes_file(tmp_path / "secret"), secret)
    notes_file(results / "monday").symlink_to(secret)
    assert read_notes(results / "monday") is None
    with pytest.raises(findwell.FindwellError, match="did not write it"):
        write_notes(results / "monday", ResultNotes.of(["x"], ""))
    assert "hush-hush" in secret.read_text()


def test_hostile_notes_are_text(client: TestClient) -> None:
    attack = "\"'><img src=x onerror=hacked=1></script>\u202e"
    send(client, ids(client)["monday"], {"tags": [attack[:30]], "note": attack})
    shown = client.get("/").text
    assert "<img" not in shown
    assert shown.count("</script>") == 2


def test_a_result_whose_notes_change_is_not_opened_anew(client: TestClient) -> None:
    number = ids(client)["monday"]
    client.get("/report", params={"r": number})
    send(client, number, SOME)
    opened = client.get("/report", params={"r": number}, headers=NAVIGATES).text
    assert data_of(opened)["systems"] == ["bm25", "minilm"]  # and not the page that waits

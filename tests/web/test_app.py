"""The pages: what they list, the same reports as files, single queries, and what is new."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import InputError
from findwell.show.details import QueryDetails
from findwell.show.panel import lay_side_by_side
from findwell.show.web.folders import ResultFolders, state_of
from tests.reports.test_page import data_of

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from tests.conftest import Findwell


def ids(client: TestClient) -> dict[str, str]:
    found = re.findall(r'/report\?r=(\w+)">([^<]+)</a>', client.get("/").text)
    return {name: number for number, name in found}


def test_results_are_listed_newest_first(results: Path, client: TestClient) -> None:
    manifest = results / "monday" / "manifest.json"
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(told | {"created": "2999-01-01T00:00:00+00:00"}))
    assert list(ids(client)) == ["monday", "nightly/tuesday"]
    manifest.write_text(json.dumps(told | {"created": "1999-01-01T00:00:00+00:00"}))
    assert list(ids(client)) == ["nightly/tuesday", "monday"]


def test_broken_and_foreign_folders_are_left_out(results: Path, client: TestClient) -> None:
    for name, content in (("broken", "{"), ("foreign", "[]"), ("other", '{"name": "npm"}')):
        (results / name).mkdir()
        (results / name / "manifest.json").write_text(content)
    assert set(ids(client)) == {"monday", "nightly/tuesday"}


def test_a_report_is_the_same_as_the_file_but_asks_for_queries(
    results: Path, client: TestClient
) -> None:
    number = ids(client)["monday"]
    data = data_of(client.get("/report", params={"r": number}).text)
    assert data["systems"] == ["bm25", "minilm"]
    assert (data["packed"], data["openable"]) == (None, None)
    answer = client.get(f"{data['live']['case']}&query=3").json()
    panel = lay_side_by_side([results / "monday"])
    expected = QueryDetails(panel.systems[1], ranks=50, letters=20_000).of(data["query"][3])
    assert answer["systems"][1]["list"] == expected["list"]
    assert answer["systems"][1]["steps"] == expected["steps"]


def test_every_query_opens_however_little_a_file_may_hold(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("findwell.show.prepare.LETTERS", 1)
    data = data_of(client.get("/report", params={"r": ids(client)["monday"]}).text)
    assert data["openable"] is None
    for place in range(0, len(data["query"]), 9):
        answer = client.get(f"{data['live']['case']}&query={place}").json()
        assert [bool(system["list"]) for system in answer["systems"]] == [True, True]
        assert all(gold["systems"] == [0, 1] for gold in answer["gold"])


@pytest.mark.parametrize("query", ["95", "-1", "x", ""])
def test_queries_that_are_not_there(query: str, client: TestClient) -> None:
    number = ids(client)["monday"]
    answer = client.get("/api/case", params={"r": number, "query": query})
    assert answer.status_code in (400, 404)
    assert "error" in answer.json()


def test_several_results_side_by_side_and_one_slice(client: TestClient) -> None:
    both = list(ids(client).values())
    data = data_of(client.get("/report", params={"r": both}).text)
    assert len(data["systems"]) == 4
    asked = {"r": both[:1], "slice": "wording:paraphrase", "baseline": "minilm"}
    content = client.get("/report", params=asked).text
    data = data_of(content)
    assert data["systems"] == ["minilm", "bm25"]
    assert len(data["query"]) == 44
    assert "only where wording is paraphrase" in content
    assert "slice=wording%3Aparaphrase" in data["live"]["case"]
    missing = client.get("/report", params={"r": both[:1], "slice": "wording:nothing"})
    assert missing.status_code == 404
    assert "did you mean" in missing.text or "choose one of:" in missing.text


def test_news_of_new_changed_and_removed_results(results: Path, client: TestClient) -> None:
    def state() -> Any:
        return client.get("/api/news").json()["state"]

    first = state()
    assert state() == first
    shutil.copytree(results / "monday", results / "wednesday")
    second = state()
    assert second != first
    manifest = results / "wednesday" / "manifest.json"
    os.utime(manifest, ns=(1, 1))
    third = state()
    assert third not in (first, second)
    shutil.rmtree(results / "wednesday")
    assert state() == first


def test_a_report_is_made_anew_when_its_result_changes(results: Path, client: TestClient) -> None:
    number = ids(client)["monday"]
    assert len(data_of(client.get("/report", params={"r": number}).text)["measures"]) == 6
    findwell.load(results / "monday").score(["recall@5"]).save(results / "monday")
    assert len(data_of(client.get("/report", params={"r": number}).text)["measures"]) == 1


def test_a_root_may_be_a_result_and_must_exist(results: Path, tmp_path: Path) -> None:
    (found,) = ResultFolders([results / "monday"]).results()
    assert found.name == "monday"
    assert len(ResultFolders([results, results / "monday"]).results()) == 2
    assert state_of([]) == state_of([])
    with pytest.raises(InputError, match="no such folder"):
        ResultFolders([tmp_path / "nowhere"])


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from findwell.show.web.app import view_site
    from findwell.show.web.server import TokenGuard

    asking = TestClient(
        TokenGuard(view_site(ResultFolders([tmp_path])), "token", 80),
        base_url="http://127.0.0.1:80",
    )
    answer = asking.get("/?token=token", headers={"host": "127.0.0.1:80"})
    assert "No results yet" in answer.text


def test_the_command_refuses_what_is_no_folder(cli: Findwell, tmp_path: Path) -> None:
    done = cli("view", tmp_path / "nowhere")
    assert done.code == 2
    assert "no such folder" in done.err

"""Who may ask: not other hosts, not other pages, not without the token; and no path gets out."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import findwell
from findwell.core.errors import InputError
from findwell.show.web.app import view_site
from findwell.show.web.folders import ResultFolders
from findwell.show.web.server import TokenGuard
from tests.web.conftest import PORT, TOKEN

OWN = {"origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "same-origin"}
PAGES = ("/", "/report", "/api/case?query=0", "/api/news", "/nothing")


@pytest.fixture
def stranger(results: Path) -> TestClient:
    app = TokenGuard(view_site(ResultFolders([results])), TOKEN, PORT)
    return TestClient(app, base_url=f"http://127.0.0.1:{PORT}")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("token", ["", "?token=", "?token=wrong", "?token=" + TOKEN[:-1]])
def test_without_the_token_nothing_is_shown(page: str, token: str, stranger: TestClient) -> None:
    answer = stranger.get(page + token.replace("?", "&" if "?" in page else "?"))
    assert answer.status_code == 403
    assert "monday" not in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("cookie", ["", "wrong", TOKEN + "x", "ä"])
def test_a_wrong_cookie_is_no_token(cookie: str, stranger: TestClient) -> None:
    header = {b"cookie": f"findwell-{PORT}={cookie}".encode("latin-1")}
    assert stranger.get("/", headers=header).status_code == 403


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(
    stranger: TestClient,
) -> None:
    answer = stranger.get(f"/?token={TOKEN}")
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert stranger.get("/").status_code == 200  # the client has kept the cookie


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1.evil.example:{PORT}",
        f"localhost.evil.example:{PORT}",
        "",
    ],
)
@pytest.mark.parametrize("page", PAGES)
def test_other_hosts_are_refused_even_with_the_token(
    host: str, page: str, client: TestClient
) -> None:
    """DNS rebinding: the attacker's name leads here, but it is not our name."""
    answer = client.get(page, headers={"host": host})
    assert answer.status_code == 421
    assert "monday" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_other_pages_are_refused_even_with_the_cookie(
    headers: dict[str, str], client: TestClient
) -> None:
    assert client.get("/api/news", headers=headers).status_code == 403


def test_no_answer_allows_other_pages_anything(client: TestClient) -> None:
    for page in PAGES:
        answer = client.get(page)
        names = {name.lower() for name in answer.headers}
        assert not [name for name in names if name.startswith("access-control-")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        rules = answer.headers["content-security-policy"]
        assert rules.startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in rules
        assert "unsafe" not in rules


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_shows_and_takes_notes_and_nothing_else(method: str, client: TestClient) -> None:
    assert client.request(method, "/").status_code == 405
    assert client.request(method, "/api/notes", headers=OWN).status_code == 405


@pytest.mark.parametrize("page", [page for page in PAGES if page != "/nothing"])
def test_only_notes_can_be_sent(page: str, client: TestClient) -> None:
    assert client.post(page, headers=OWN, json={}).status_code == 405


@pytest.mark.parametrize(
    "page",
    [
        "/report?r=../../secret",
        "/report?r=/etc",
        "/report?r=monday",
        "/report?r=..%2f..%2fsecret",
        "/report",
        "/../secret/manifest.json",
        "/%2e%2e/secret/manifest.json",
        "/static/../../secret/manifest.json",
        "/monday/manifest.json",
        "/api/case?r=../secret&query=0",
        "/api/case?r=..%00&query=0",
    ],
)
def test_no_path_leads_out(page: str, client: TestClient, results: Path) -> None:
    secret = results.parent / "secret"
    secret.mkdir()
    (secret / "manifest.json").write_text('{"layout": 2, "mine": "hush-hush"}')
    answer = client.get(page)
    assert answer.status_code == 404
    assert "hush-hush" not in answer.text


def test_links_out_of_the_folder_are_not_followed(results: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "manifest.json").write_text('{"layout": 2}')
    (results / "link").symlink_to(outside)
    assert {found.name for found in ResultFolders([results]).results()} == {
        "monday",
        "nightly/tuesday",
    }


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "queries.parquet"])
def test_a_file_of_a_result_is_not_read_through_a_link(
    name: str, results: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "outside"
    (results / "monday" / name).rename(theirs)
    (results / "monday" / name).symlink_to(theirs)
    shown = {found.name: found for found in ResultFolders([results]).results()}
    assert ("monday" in shown) is (name != "manifest.json")
    if name == "summary.json":
        assert shown["monday"].headline.rows == ()
    with pytest.raises(InputError, match="it is a link"):
        findwell.load(results / "monday")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_by_the_name_of_a_file_is_not_waited_for(results: Path) -> None:
    (results / "monday" / "summary.json").unlink()
    os.mkfifo(results / "monday" / "summary.json")
    assert {found.name for found in ResultFolders([results]).results()} > {"monday"}
    with pytest.raises(InputError, match="it is not a file"):
        findwell.load(results / "monday")


def test_pages_carry_no_token(client: TestClient) -> None:
    answer = client.get(f"/?token={TOKEN}")
    assert TOKEN not in answer.text
    shown = answer.text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://", shown.split("<main")[1].split("<script")[0])

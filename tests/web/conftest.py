"""Results to serve, the application, and a browser to look at it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient

from findwell.show.web.app import view_site
from findwell.show.web.folders import ResultFolders
from findwell.show.web.server import TokenGuard, listen
from tests.browsing import browser, watched
from tests.reports.conftest import demo_folder, hostile_folder

TOKEN = "a-token-of-the-tests"
PORT = 4711

__all__ = ["browser", "demo_folder", "hostile_folder", "watched"]


@pytest.fixture
def results(tmp_path: Path, demo_folder: Path) -> Path:
    """Lay two results in a folder."""
    folder = tmp_path / "results"
    shutil.copytree(demo_folder, folder / "monday")
    shutil.copytree(demo_folder, folder / "nightly" / "tuesday")
    return folder


@pytest.fixture
def client(results: Path) -> TestClient:
    """Ask the application as a browser that knows the token would."""
    app = TokenGuard(view_site(ResultFolders([results])), TOKEN, PORT)
    asking = TestClient(app, base_url=f"http://127.0.0.1:{PORT}")
    asking.cookies.set(f"findwell-{PORT}", TOKEN)
    return asking


@dataclass
class Served:
    """A running server."""

    url: str
    folder: Path


@pytest.fixture
def served(results: Path) -> Iterator[Served]:
    """Serve the results on a free port of this machine."""
    listener = listen(0)
    port = listener.getsockname()[1]
    app = TokenGuard(view_site(ResultFolders([results])), TOKEN, port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield Served(f"http://127.0.0.1:{port}/?token={TOKEN}", results)
    server.should_exit = True
    thread.join()

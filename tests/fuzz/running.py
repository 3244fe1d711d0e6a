"""Runs a case in this process, as the command line would."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.testclient import TestClient

from findwell.cli import main
from findwell.show.web.app import view_site
from findwell.show.web.folders import ResultFolders
from findwell.show.web.server import TokenGuard
from tests.conftest import Outcome

if TYPE_CHECKING:
    from tests.fuzz.cases import Case

CRASH = 70
TOKEN, PORT = "a-token", 4711


def run(case: Case, folder: Path) -> Outcome:
    """Write the files into an empty folder and run the command there.

    A warning that is shown, and what native code writes to file descriptor 2, is part of stderr.
    """
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        _descriptors() as native,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as shown,
    ):
        warnings.simplefilter("always")
        code = _call(case.command, err)
    leaked = "".join(f"warning: {each.message}\n" for each in shown)
    return Outcome(code, out.getvalue(), err.getvalue() + leaked + native())


def _call(command: tuple[str, ...], err: io.StringIO) -> int:
    try:
        if command[0] == "view":
            return look(Path(command[1]))
        main(list(command))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else CRASH
    except BaseException:  # noqa: BLE001 - polars' PanicException is one
        traceback.print_exc(file=err)
        return CRASH
    raise AssertionError("main always exits")


def look(folder: Path) -> int:
    """Open every page that `findwell view` serves."""
    folders = ResultFolders([folder])
    client = TestClient(
        TokenGuard(view_site(folders), TOKEN, PORT), base_url=f"http://127.0.0.1:{PORT}"
    )
    client.cookies.set(f"findwell-{PORT}", TOKEN)
    pages = ["/", "/api/news"]
    names = [each.id for each in folders.results()]
    for chosen in ([name] for name in names):
        query = "&".join(f"r={name}" for name in chosen)
        pages += [f"/report?{query}", *(f"/api/case?{query}&query={at}" for at in range(3))]
    for page in pages:
        answer = client.get(page)
        if answer.status_code not in (200, 404):
            raise AssertionError(f"{page}: {answer.status_code}")
    return 0


@contextlib.contextmanager
def _descriptors() -> Iterator[Callable[[], str]]:
    """Keep file descriptor 1, which `main` gives away when it fails, and record 2."""
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)

        written = ""
        try:
            yield lambda: written
        finally:
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            for each in kept:
                os.close(each)
            log.seek(0)
            written = log.read().decode("utf-8", "replace")

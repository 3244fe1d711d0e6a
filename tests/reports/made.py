"""Keeps every page that tests make: `pytest -p tests.reports.made` with FINDWELL_PAGES=FOLDER.

So that a browser can look at all of them, whatever they were made for.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from findwell.show import html


@pytest.fixture(scope="session", autouse=True)
def _pages_are_kept() -> None:
    folder, render = Path(os.environ["FINDWELL_PAGES"]), html.render

    def keep(template: str, **context: object) -> str:
        content = render(template, **context)
        if content.startswith("<!doctype html>"):
            name = hashlib.sha256(content.encode()).hexdigest()[:16]
            (folder / f"{name}.html").write_text(content, encoding="utf-8")
        return content

    html.render = keep

"""The demo ends with a report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.reports.test_page import data_of

if TYPE_CHECKING:
    from tests.conftest import Findwell


def test_the_demo_says_where_its_report_is(cli: Findwell, tmp_path: Path) -> None:
    done = cli("demo", "--report", tmp_path / "demo.html")
    assert done.code == 0
    assert done.out.rstrip().endswith(f"page: {tmp_path / 'demo.html'}")
    assert (tmp_path / "demo.html").stat().st_size < 1_000_000
    html = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert "bands are intervals" in html
    data = data_of(html)
    assert data["systems"] == ["bm25", "minilm"]
    assert len(data["cases"]) == 95
    assert any("Halden" in text for text in data["texts"])


def test_without_a_name_it_makes_a_new_folder(cli: Findwell) -> None:
    found = re.search(r"page: (\S+)$", cli("demo").out.rstrip())
    assert found is not None
    path = Path(found[1])
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    path.unlink()
    path.parent.rmdir()

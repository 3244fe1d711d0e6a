"""A notebook, executed by a real Jupyter kernel: tables, charts, explanations, a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.reports.conftest import DEMO

pytestmark = pytest.mark.slow

CELLS = {
    "load": f"import findwell\nfrom pathlib import Path\ndemo = Path({str(DEMO)!r})",
    "result": "result = findwell.evaluate([demo / 'bm25.trec', demo / 'minilm.trec'],\n"
    "    demo / 'questions.jsonl', corpus=demo / 'passages.jsonl',\n"
    "    reading=findwell.Reading(keep=20))\nresult",
    "plot": "result.plot('causes')",
    "comparison": "found = findwell.compare(result, slices='wording')\nfound",
    "forest": "found.plot()",
    "where": "found.plot('where minilm')",
    "explanations": "findwell.explain(result, system='bm25', worst=2)",
    "explanation": "findwell.explain(result, system='bm25', query='q02')[0]",
    "report": "len(findwell.report(result, output='report.html')) > 100_000",
    "png": "result.plot('forest').save('forest.png')",
    "typo": "try:\n    result.plot('forrest')\n"
    "except findwell.FindwellError as error:\n    print(error)",
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what each cell shows, by media type."""
    import nbformat
    from nbclient import NotebookClient

    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]  # type: ignore[no-untyped-call]
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    found: dict[str, dict[str, Any]] = {"folder": {"path": folder}}
    for name, cell in zip(CELLS, notebook.cells, strict=True):
        found[name] = {}
        for each in cell.outputs:
            assert each.output_type != "error"
            assert each.get("name") != "stderr", each.text
            found[name] |= each.data if "data" in each else {"text/plain": each.text}
    return found


@pytest.mark.parametrize("name", ["plot", "forest", "where"])
def test_charts_are_pictures_in_a_notebook(name: str, shown: dict[str, dict[str, Any]]) -> None:
    drawn = ET.fromstring(shown[name]["image/svg+xml"])
    text = " ".join(drawn.itertext())
    assert "queries" in text
    assert "questions.jsonl" in text
    assert shown[name]["text/plain"].startswith("<chart ")


@pytest.mark.parametrize("name", ["result", "comparison", "explanation", "explanations"])
def test_tables_are_html_in_a_notebook(name: str, shown: dict[str, dict[str, Any]]) -> None:
    html = shown[name]["text/html"]
    assert "<table>" in html
    assert "<script" not in html
    expected = {"result": "recall@5", "comparison": "better"}.get(name, "rank")
    assert expected in html


def test_reports_and_images_are_written_from_a_notebook(
    shown: dict[str, dict[str, Any]],
) -> None:
    folder: Path = shown["folder"]["path"]
    assert shown["report"]["text/plain"] == "True"
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (folder / "forest.png").read_bytes().startswith(b"\x89PNG")
    assert "did you mean forest" in shown["typo"]["text/plain"]

"""The Python of the pages for users of a framework is run, with the real framework."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.frameworks.test_answers import PYTHON, ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [ROOT / "docs" / "start" / f"{name}.md" for name in ("haystack", "langchain", "llamaindex")]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_python_of_a_page_prints_a_table(page: Path, tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip("the frameworks are not installed: make .venv/frameworks")
    code = "\n".join(
        re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [PYTHON, "-c", code],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {
        row.split()[0]: float(row.split()[1])
        for row in re.findall(r" (?:recall|nDCG)@.*", done.stdout)
    }
    assert {"recall@5", "nDCG@10"} <= found.keys()
    assert found["recall@5"] > 0.1  # ids are those of the gold

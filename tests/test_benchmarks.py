"""The benchmark suite runs, all tools agree, and the page has its tables; times are not judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TITLES = (
    "Targets",
    "Agreement",
    "The machine and the versions",
    "1. From TREC files",
    "2. From dicts",
    "3. Kernels",
    "4. Scaling",
    "5. Memory",
    "6. Start-up",
    "7. Records",
    "8. ROUGE-L",
    "9. Matching texts",
    "10. Comparing systems",
    "11. Judging",
    "12. Calls of a judge",
    "13. The embedded judge",
)


@pytest.mark.slow
def test_a_quick_run_writes_the_page_and_all_tools_agree(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "benchmarks.md"
    asked = ["--quick", "--write", str(page), "--cache", str(tmp_path / "files")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench", *asked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    text = page.read_text(encoding="utf-8")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(TITLES)
    assert all(title in done.stdout for title in TITLES)
    assert "| all tools, all sizes, all measures | agree |" in text
    for tool in ("karat", "pytrec-eval-terrier", "ir-measures", "ranx", "continuous-eval"):
        assert f"| {tool} " in text

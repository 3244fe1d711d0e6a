"""The benchmark suite runs, all tools agree, and the page has its tables; times are not judged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import reference_program
from benchmarks.report import Table, page
from benchmarks.tools import TOOLS

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
    "14. Whole commands",
    "15. The same run, written otherwise",
    "16. Growth of whole commands",
    "17. Tuning a hybrid",
    "18. Taking traces in",
    "20. Small evaluations",
)
# speaks as trec_eval does on its command line; what it computes is trec_eval's own code
STAND_IN = """#!{python}
import sys
from statistics import fmean
import pytrec_eval
if sys.argv[1] == "--version":
    sys.exit("trec_eval version 9.9")
gold, run = sys.argv[-2:]
with open(gold) as judgements, open(run) as lines:
    judged, retrieved = pytrec_eval.parse_qrel(judgements), pytrec_eval.parse_run(lines)
names = "ndcg_cut_10 map recip_rank P_10 recall_10 recall_100".split()
rows = pytrec_eval.RelevanceEvaluator(judged, set(names)).evaluate(retrieved).values()
for name in names:
    print(f"{{name:22}}\\tall\\t{{fmean(row[name] for row in rows):6.4f}}")
"""
MAKEFILE = """\
CC = no-such-compiler
CFLAGS = -g -I. -DVERSIONID=\\"9.9\\"
trec_eval: trec_eval.c Makefile
\t$(CC) $(CFLAGS) -o trec_eval trec_eval.c -lm
"""
PROGRAM = """\
#include <stdio.h>
int main(void) {
#ifdef __OPTIMIZE__
  printf("trec_eval version %s, optimised\\n", VERSIONID);
#endif
  return 0;
}
"""


@pytest.mark.skipif(not shutil.which("make") or not shutil.which("cc"), reason="needs a compiler")
def test_the_reference_program_is_built_from_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, folder = tmp_path / "sources", tmp_path / "folder"
    sources.mkdir()
    folder.mkdir()
    (sources / "Makefile").write_text(MAKEFILE)
    (sources / "trec_eval.c").write_text(PROGRAM)
    (sources / "trec_eval").write_text("built before, for another machine")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("TREC_EVAL", raising=False)
    monkeypatch.setenv("TREC_EVAL_SRC", str(sources))
    reference_program.provide(folder)
    assert reference_program.program() == str(folder / "trec_eval")
    assert TOOLS["trec_eval"].absent() == ""
    assert TOOLS["trec_eval"].version() == "9.9, optimised"
    assert {path.name for path in sources.iterdir()} == {"Makefile", "trec_eval.c", "trec_eval"}
    assert (sources / "trec_eval").read_text().startswith("built before")


def test_a_wrong_name_of_the_reference_program_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREC_EVAL", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit, match=r"TREC_EVAL=.*nowhere is no program"):
        reference_program.program()
    monkeypatch.delenv("TREC_EVAL")
    monkeypatch.setenv("TREC_EVAL_SRC", str(tmp_path))
    with pytest.raises(SystemExit, match="holds no Makefile"):
        reference_program.provide(tmp_path)


def test_what_was_not_measured_anew_stays_with_its_date() -> None:
    old = "# Benchmarks\n\n## 1. Old\n\n*Measured on a day.*\n\n| a |\n\n## 12. Late\n\nkept\n"
    new = Table("2. New", "", ("what", "ms"), [("x", "1")])
    text = page([new], quick=False, before=old)
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == ["## 1. Old", "## 2. New", "## 12. Late"]
    assert "*Measured on a day.*" in text
    assert text.count("*Measured on") == 2
    assert page([new], quick=False, before=text) == text


def test_every_section_of_the_page_says_when_it_was_measured() -> None:
    sections = (ROOT / "docs/benchmarks.md").read_text("utf-8").split("\n## ")[1:]
    assert all("\n\n*Measured on 20" in section for section in sections)


@pytest.mark.slow
def test_a_quick_run_writes_the_page_and_all_tools_agree(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "benchmarks.md"
    asked = ["--quick", "--write", str(page), "--cache", str(tmp_path / "files")]
    stand_in = tmp_path / "trec_eval"
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench", *asked],
        cwd=ROOT,
        env=os.environ | {"TREC_EVAL": str(stand_in)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    text = page.read_text(encoding="utf-8")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(TITLES)
    assert all(title in done.stdout for title in TITLES)
    assert "| all tools, all sizes, all measures | agree |" in text
    assert "| trec_eval | 9.9 |" in text
    for tool in (
        "findwell",
        "trec_eval",
        "pytrec-eval-terrier",
        "ir-measures",
        "ranx",
        "continuous-eval",
    ):
        assert f"| {tool} " in text

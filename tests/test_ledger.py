"""The ledger names every capability and promised number, and the test or benchmark that proves it.

`LEDGER.md` is a table: what is promised, the page that promises it, and what proves it. A proof is
the id of a test (`tests/ROOM/test_X.py::test_name`), a page whose examples are executed, or a
section of the benchmarks (`benchmarks: 7`).
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from tests.members import over

ROOT = Path(__file__).parents[1]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|\n ").split(" | "))
    for line in (ROOT / "LEDGER.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| promise ", "| ---"))
]
# pages that promise nothing: how the site is put together, and why things are as they are
WITHOUT_PROMISES = {"docs/decisions"}


@functools.cache
def names_of(file: str) -> set[str]:
    """Return the names of the tests in a file, those of classes too."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return set(re.findall(r"^ *(?:async )?def (test_\w+)\(", text, re.MULTILINE))


@functools.cache
def sections() -> set[str]:
    """Return the numbers of the sections of the benchmarks."""
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    return set(re.findall(r"^## (\d+)", page, re.MULTILINE))


def proves(proof: str) -> bool:
    """Tell whether a proof is there."""
    benchmark = re.fullmatch(r"benchmarks: (\d+)", proof)
    if benchmark:
        return benchmark[1] in sections()
    file, _, test = proof.partition("::")
    if not (ROOT / file).is_file():
        return False
    if file.endswith(".md"):
        return not test and bool(re.search(r"```(console|pycon)", (ROOT / file).read_text()))
    return test in names_of(file) if test else file.startswith("tests/")


@over(row=ROWS)
def test_a_line_has_a_page_and_a_proof(row: tuple[str, ...]) -> None:
    assert len(row) == 3, "a line is: promise | page | proof"
    promise, pages, proofs = row
    assert promise
    assert all((ROOT / page).is_file() for page in pages.strip("`").split("` `"))
    listed = proofs.strip("`").split("` `")
    assert not [proof for proof in listed if not proves(proof)]


def test_every_page_has_a_line() -> None:
    pages = {
        str(path.relative_to(ROOT))
        for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        if str(path.parent.relative_to(ROOT)) not in WITHOUT_PROMISES
    }
    named = {page for row in ROWS for page in row[1].strip("`").split("` `")}
    assert not pages - named


def test_no_promise_is_made_twice() -> None:
    promises = [row[0] for row in ROWS]
    assert len(promises) == len(set(promises))

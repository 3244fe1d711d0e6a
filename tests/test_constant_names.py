"""Names say what they stand for.

Constants of modules are nouns: `KEPT_ROWS = 50` says at its use what `KEPT = 50` does not. No two
classes share a name.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell
from tests.test_architecture import statements

if TYPE_CHECKING:
    from collections.abc import Iterator

SRC = Path(findwell.__file__).parent
# which say nothing without the noun that they belong to
BARE_WORDS = (
    "AGAIN ALIKE ALMOST ALONE ANY ASKED BAD BEHIND BELOW BEST CACHED CHOSEN CLOSE COLUMNS "
    "COUNTED CURRENT DEEPEST DEFAULT EARLIEST ENOUGH EQUAL EVERY FEW FEWEST FIRST FOUND FULL "
    "GOOD HIGHEST KEPT LARGEST LAST LATER LEAST LISTED LONG LONGEST LOWEST MANY MARKED MOST "
    "NARROW NEW OFTEN OLD OTHER OTHERS PART PLAIN RARE RAW ROWS SAME SAMPLED SEVERAL SHORT "
    "SHORTEST SHOWN SOON SURE TAKEN TOGETHER TRIED TYPICAL UNKNOWN WHOLE WIDE WORST WRITTEN "
    "WRONG"
)
# where some are left; a module that is cleaned up leaves this list
NOT_YET = ("io/read/", "judges/", "show/charts/", "show/page.py", "show/report.py")
CLEAN = ("io/read/traces/",)
SHARED_CLASSES = {"Terms"}  # of two classes each; no new ones


def bare_constants(source: str) -> Iterator[str]:
    """Go through the constants that are called by a bare word, unless the word is their value."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=True) if several else [(target, value)]  # type: ignore[attr-defined]
            for name, each in pairs:
                word = getattr(name, "id", "")
                names_itself = isinstance(each, ast.Constant) and each.value == word.lower()
                if word in BARE_WORDS.split() and not names_itself:
                    yield word


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("KEPT = 50", ["KEPT"]),
        ("MOST: int = 50", ["MOST"]),
        ("NEW, OLD = '.new', 'old'", ["NEW"]),
        ("KEPT_ROWS = 50", []),
        ("SAME: Final = 'same'", []),
        ("def keep():\n    KEPT = 50", []),
    ],
)
def test_a_bare_word_is_found(source: str, found: list[str]) -> None:
    assert [*bare_constants(source)] == found


def test_constants_have_a_noun() -> None:
    found = {
        f"{place}: {name}"
        for path in SRC.rglob("*.py")
        for name in bare_constants(path.read_text(encoding="utf-8"))
        if (place := path.relative_to(SRC).as_posix()).startswith(CLEAN)
        or not place.startswith(NOT_YET)
    }
    assert found == set()


def test_a_class_has_a_name_of_its_own() -> None:
    """Over all rooms: who reads `Budget` somewhere need not ask which of two it is."""
    named = Counter(
        node.name
        for path in SRC.rglob("*.py")
        for node in statements(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in named.items() if count > 1} == SHARED_CLASSES

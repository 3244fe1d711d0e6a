"""No golden case is left out."""

import importlib
import json

import pytest

from tests.dialects.golden import ASKED, FOLDER

TESTS = [
    "tests.dialects.test_autorag",
    "tests.dialects.test_autorag_extras",
    "tests.dialects.test_autorag_golden",
    "tests.dialects.test_course",
    "tests.dialects.test_course_golden",
    "tests.read.test_shapes",
]


@pytest.mark.parametrize("system", ["autorag", "course-notes"])
def test_every_case_is_tested(system: str) -> None:
    for module in TESTS:  # each asks for its cases when it is imported
        importlib.import_module(module)
    found = json.loads((FOLDER / f"{system}.json").read_text(encoding="utf-8"))
    left = [(case["id"], case["metric"]) for case in found if case["id"] not in ASKED]
    assert found
    assert not left

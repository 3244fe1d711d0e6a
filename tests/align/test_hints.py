"""Ids that do not meet: the hint says why, and what it tells to do makes them meet."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.core.errors import AlignError
from findwell.io.read import load_gold
from findwell.relations.match.ids import id_gold
from tests.sample import kinds

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

CAFE = [unicodedata.normalize(form, "café") for form in ("NFC", "NFD")]
# ids of the run, ids of the gold, a word of the hint, what to give to --read ids
FLAGS = [
    (["d2#3", "d3#2", "d9#1"], ["d2", "d3"], "chunks", "chunk-to-doc:#"),
    (["d2", "d3"], ["d2#3", "d3#2"], "chunks", "chunk-to-doc:#"),
    (["d2::c3"], ["d2"], "chunks", "chunk-to-doc:::"),
    (["d2_chunk_3"], ["d2"], "chunks", "chunk-to-doc:_chunk"),
    (["my_d2_chunk3"], ["my_d2"], "chunks", "chunk-to-doc:_chunk"),
    (["d2.3"], ["d2"], "chunks", "chunk-to-doc:."),
    (["d2 3"], ["d2"], "chunks", "chunk-to-doc: "),
    (["a-b-3"], ["a-b"], "chunks", r"regex:^(.+)\-\d+$"),
    (["d2", "d3"], ["d2.pdf", "d3.pdf"], "endings", "stem"),
    (["docs/d2.pdf"], ["d2"], "folders", "stem"),
    (["C:\\docs\\d2.pdf"], ["d2.pdf"], "folders", "stem"),
    (["docs/guide"], ["guide"], "folders", "stem"),
    (["Doc-A", "Doc-B"], ["doc-a"], "upper and lower case", "lower"),
    ([CAFE[0]], [CAFE[1]], "NFD", "nfc"),
    (["x <urn:uuid:1> y"], ["<urn:uuid:1>"], "uuid", "uuid"),
    (["doc12", "doc7"], ["12"], "before the number", r"regex:(\d+)\D*$"),
]


@pytest.mark.parametrize("case", FLAGS, ids=lambda case: case[3])
def test_the_flag_that_a_hint_gives_makes_ids_meet(
    case: tuple[list[str], list[str], str, str], cli: Findwell, save: Save
) -> None:
    ours, theirs, why, flag = case
    run, gold = {"q": ours}, {"q": theirs}
    found = next(
        each for each in findwell.io.check(run, gold, by="ids") if each.kind == "no-shared-document"
    )
    assert why in found.fix
    (told,) = re.findall(r"use --read ids=(.*) \(then \d+ would match\)", found.fix)
    assert shlex.split(told) == [flag]
    result = findwell.evaluate(run, gold, ["recall"], reading=findwell.Reading(ids=flag))
    assert result["recall"]
    assert "no-shared-document" not in kinds(result)
    files = save("run.json", json.dumps(run)), "--gold", save("gold.json", json.dumps(gold))
    for command, stream in (("score", "err"), ("check", "out")):
        assert found.fix in getattr(cli(command, *files, "--by", "ids"), stream)
        done = cli(command, *files)  # where nothing was chosen, numbers would be taken for true
        if "if equal numbers" in found.fix:
            assert done.code == 0
        else:
            assert done.code == 2
            assert "share no document id" in done.err
            assert f"--read ids={told}" in done.err


WORDS = [
    (["d1 "], ["d1"], "spaces around"),
    (["007"], ["7"], "zeros"),
    (["7.0"], ["7"], "1.0"),
]


@pytest.mark.parametrize(("ours", "theirs", "why"), WORDS)
def test_what_no_flag_undoes_is_told_in_words(ours: list[str], theirs: list[str], why: str) -> None:
    (found,) = findwell.io.check({"q": ours}, {"q": theirs}, by="ids")
    assert why in found.fix
    assert "make the ids equal" in found.fix


NONE = {
    "other documents": ({"q": ["apple"]}, {"q": ["pear"]}),
    "met elsewhere": ({"q1": ["d1"], "q2": ["d2"]}, {"q1": ["d2"], "q2": ["d1"]}),
    "the same beginning": ({"q": ["doc-1", "doc-2"]}, {"q": ["doc-8", "doc-9"]}),
    "one of the same beginning": ({"q": ["doc-1"]}, {"q": ["doc-9"]}),
    "files of the same name": (
        {"q": ["a/intro.md", "b/intro.md"]},
        {"q": ["c/intro.md", "d/intro.md"]},
    ),
    "numbers of other things": ({"q": ["a1", "b1"]}, {"q": ["c1"]}),
    "zero": ({"q": ["0"]}, {"q": ["00x"]}),
}


@pytest.mark.parametrize("case", NONE)
def test_no_hint_that_would_not_help(case: str) -> None:
    run, gold = NONE[case]
    (found,) = findwell.io.check(run, gold)
    assert found.fix == "check that run and gold name documents in the same way; see --read ids"


def test_queries_that_differ_in_their_form() -> None:
    with pytest.raises(AlignError, match="share no query") as stop:
        findwell.evaluate({CAFE[0]: ["a"]}, {CAFE[1]: ["a"]}, ["RR"])
    assert "(NFC)" in stop.value.fix
    assert "(NFD)" in stop.value.fix


@pytest.mark.parametrize(
    ("how", "given", "expected"),
    [
        (
            "stem",
            ["a/b/c.tar.gz", "c.tar", "x\\y.PDF", "3.14", ".env", "a.b c", "é.md"],
            ["c.tar", "c", "y", "3.14", ".env", "a.b c", "é"],
        ),
        ("lower", ["ÀB", "ß"], ["àb", "ß"]),
        ("nfc", [CAFE[1], CAFE[0]], [CAFE[0]]),
    ],
)
def test_normalisers(how: str, given: list[str], expected: list[str]) -> None:
    gold = id_gold(load_gold({"q": given}), how)
    assert gold.member_doc.to_list() == expected

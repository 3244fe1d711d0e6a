"""Ids that do not meet: the hint says why, and what it tells to do makes them meet."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError
from findwell.io.native import SWITCH
from findwell.io.read import load_gold
from findwell.relations.match.ids import id_gold
from tests.sample import kinds

if TYPE_CHECKING:
    from pathlib import Path

    from findwell.core.findings import Finding
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
    (["/data/docs/d2.md"], ["docs/d2.md"], "folders", "stem"),
    (["Doc-A", "Doc-B"], ["doc-a"], "upper and lower case", "lower"),
    ([CAFE[0]], [CAFE[1]], "NFD", "nfc"),
    (["d1 "], ["d1"], "spaces around", r"regex:(?s)^\s*(.*\S)"),
    (["\ufeffd1"], ["d1"], "byte order mark", r"regex:^\uFEFF(.+)"),
    (["007"], ["7"], "zeros", r"regex:^0+(\d.*)"),
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


WORDS = [(["d007"], ["d7"], "zeros"), (["7.0"], ["7"], "1.0")]


@pytest.mark.parametrize(("ours", "theirs", "why"), WORDS)
def test_what_no_flag_undoes_is_told_in_words(ours: list[str], theirs: list[str], why: str) -> None:
    (found,) = findwell.io.check({"q": ours}, {"q": theirs}, by="ids")
    assert why in found.fix
    assert "make the ids equal" in found.fix


PAIRS = {  # two spellings of one document, and whether a file of TREC can hold them
    "case": ("Setup", "setup", True),
    "accents": (CAFE[0], CAFE[1], True),
    "space before": (" d1", "d1", False),
    "space behind": ("d1 ", "d1", False),
    "mark": ("\ufeffd1", "d1", True),
    "zeros": ("007", "7", True),
    "zeros inside": ("doc-07", "doc-7", True),
    "number": ("7.0", "7", True),
}


def other_spellings(run: Any, gold: Any) -> list[Finding]:
    result = findwell.evaluate(run, gold, ["recall"])
    return [each for each in result.findings if each.kind == "other-spelling"]


@pytest.mark.parametrize(
    ("pair", "swap"),
    [
        pytest.param(pair, swap, marks=() if at % 2 == swap else pytest.mark.slow)  # in turn
        for at, pair in enumerate(PAIRS)
        for swap in (False, True)
    ],
)
def test_some_ids_in_another_spelling(
    pair: str, swap: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the run comes from, with and without the kernel: one finding, with what to type."""
    ours, theirs, plain = PAIRS[pair]
    ours, theirs = (theirs, ours) if swap else (ours, theirs)
    run, gold = {"q": ["a", ours], "p": ["b"]}, {"q": ["a", theirs], "p": ["b"]}
    roads: list[tuple[Any, Any]] = [(run, gold)]
    roads += [({name: dict.fromkeys(docs, 1.0) for name, docs in run.items()}, gold)]
    roads += [(pl.DataFrame({"query": ["q", "q", "p"], "doc": ["a", ours, "b"]}), gold)]
    lines = [json.dumps({"query": name, "retrieved": docs}) for name, docs in run.items()]
    (tmp_path / "run.jsonl").write_text("\n".join(lines), encoding="utf-8")
    roads += [(tmp_path / "run.jsonl", gold)]
    if plain:
        rows = ["q Q0 a 1 2 t", f"q Q0 {ours} 2 1 t", "p Q0 b 1 1 t"]
        (tmp_path / "run.trec").write_text("\n".join(rows), encoding="utf-8")
        (tmp_path / "gold.qrels").write_text(f"q 0 a 1\nq 0 {theirs} 1\np 0 b 1", encoding="utf-8")
        # which is read only once
        assert not other_spellings(tmp_path / "run.trec", tmp_path / "gold.qrels")
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv(SWITCH, switch)
        found += [replace(each, run="") for road in roads for each in other_spellings(*road)]
    assert len(found) == 2 * len(roads)
    assert len(set(found)) == 1
    assert found[0].count == 1
    if told := re.findall(r"use --read ids=(.*)$", found[0].fix):
        reading = findwell.Reading(ids=shlex.split(told[0])[0])
        assert findwell.evaluate(run, gold, ["recall"], reading=reading)["recall"] == 1.0
    else:
        assert found[0].fix.endswith("make the ids equal")


@pytest.mark.parametrize("pair", PAIRS)
def test_two_spellings_that_one_side_has_are_two_documents(pair: str) -> None:
    one, other, _ = PAIRS[pair]
    gold = {"q": ["a", other], "p": ["b"]}
    assert other_spellings({"q": ["a", one], "p": ["b"]}, gold)
    assert not other_spellings({"q": ["a", one], "p": ["b", other]}, gold)
    assert not other_spellings({"q": ["a", one], "p": ["b"]}, gold | {"p": ["b", one]})
    assert not other_spellings({"q": ["a"], "p": ["b", one]}, gold)  # found for another query


NONE = {
    "other documents": ({"q": ["apple"]}, {"q": ["pear"]}),
    "met elsewhere": ({"q1": ["d1"], "q2": ["d2"]}, {"q1": ["d2"], "q2": ["d1"]}),
    "the same beginning": ({"q": ["doc-1", "doc-2"]}, {"q": ["doc-8", "doc-9"]}),
    "one of the same beginning": ({"q": ["doc-1"]}, {"q": ["doc-9"]}),
    "files of the same name": (
        {"q": ["a/intro.md", "b/intro.md"]},
        {"q": ["c/intro.md", "d/intro.md"]},
    ),
    "files of the same name in one folder each": ({"q": ["a/intro.md"]}, {"q": ["c/intro.md"]}),
    "numbers of other things": ({"q": ["a1", "b1"]}, {"q": ["c1"]}),
    "zero": ({"q": ["0"]}, {"q": ["00x"]}),
}


@pytest.mark.parametrize("case", NONE)
def test_no_hint_that_would_not_help(case: str) -> None:
    run, gold = NONE[case]
    (found,) = findwell.io.check(run, gold)
    assert found.fix == "check that run and gold name documents in the same way; see --read ids"


@pytest.mark.parametrize("queries", [1, 12])
def test_the_field_that_the_gold_names_documents_by(queries: int) -> None:
    """Splits of Haystack hold the id of their document next to their own."""

    def split(number: int) -> dict[str, object]:
        return {"id": f"x{number}", "content": "text", "meta": {"source_id": f"file-{number}"}}

    run = {f"q{number}": [split(number)] for number in range(queries)}
    gold = {f"q{number}": [f"file-{number}"] for number in range(queries)}
    with pytest.raises(AlignError, match=r"as the field metadata\.source_id") as stop:
        findwell.evaluate(run, gold, ["recall"])
    assert "--read id_from=metadata.source_id" in stop.value.fix
    reading = findwell.Reading(id_from="metadata.source_id")
    assert findwell.evaluate(run, gold, ["recall"], reading=reading)["recall"] == 1.0
    assert kinds(findwell.evaluate(run, gold, ["recall"], by="ids")) == {"no-shared-document": 1}
    elsewhere = {name: ["other"] for name in gold}  # which no field holds
    assert "id_from" not in findwell.evaluate(run, elsewhere, by="ids").findings[0].fix


def test_texts_in_the_gold_and_ids_in_the_run() -> None:
    text = "The battery lasts four hours."
    run, gold = {"q": [{"id": "c1", "page_content": text, "metadata": {}}]}, {"q": [text]}
    with pytest.raises(AlignError, match="the gold lists texts, and the run ids") as stop:
        findwell.evaluate(run, gold, ["recall"])
    assert "--by exact" in stop.value.fix
    assert findwell.evaluate(run, gold, ["recall"], by="exact")["recall"] == 1.0


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        ("The battery lasts.", "their texts differ in case, spaces or punct"),
        ("d7", "the run lists texts"),
    ],
)
def test_texts_in_the_run(gold: str, why: str) -> None:
    """The end of a sentence names no chunk, and a number in it no document."""
    run = {"q": ["The battery lasts", "See page 7."]}
    with pytest.raises(AlignError, match=why) as stop:
        findwell.evaluate(run, {"q": [gold]}, ["recall"])
    assert "--by exact" in stop.value.fix
    assert "chunk-to-doc" not in stop.value.fix
    assert findwell.evaluate(run, {"q": [gold]}, ["recall"], by="ids")["recall"] == 0


def test_some_documents_are_chunked_and_others_are_whole() -> None:
    run = {"q1": ["a.md"], "q2": ["b.md#2", "x"], "q3": ["c"], "q4": ["d-3", "e-5"]}
    gold = {"q1": ["a.md"], "q2": ["b.md"], "q3": ["c_3"], "q4": ["d-7", "e-5"]}
    found = findwell.evaluate(run, gold, ["recall"])
    assert found["recall"] == 1.5 / 4
    (told,) = found.findings
    assert (told.kind, told.examples) == ("other-spelling", ("'b.md' is 'b.md#2'", "'c_3' is 'c'"))
    assert "one side names chunks of documents" in told.message
    same = findwell.Reading(ids=told.fix.partition("ids='")[2].rstrip("'"))
    assert findwell.evaluate(run, gold, ["recall"], reading=same)["recall"] == 1.0


def test_queries_that_differ_in_their_form() -> None:
    with pytest.raises(AlignError, match="share no query") as stop:
        findwell.evaluate({CAFE[0]: ["a"]}, {CAFE[1]: ["a"]}, ["RR"])
    assert "(NFC)" in stop.value.fix
    assert "(NFD)" in stop.value.fix


@pytest.mark.parametrize("pair", PAIRS)
def test_some_queries_in_another_spelling(pair: str) -> None:
    ours, theirs, _ = PAIRS[pair]
    result = findwell.evaluate({ours: ["a"], "p": ["b"]}, {theirs: ["a"], "p": ["b"]}, ["RR"])
    assert kinds(result) == {"extra-query": 1, "missing-query": 1}
    assert all(found.fix.endswith("make the ids equal") for found in result.findings)
    other = findwell.evaluate({"x": ["a"], "p": ["b"]}, {theirs: ["a"], "p": ["b"]}, ["RR"])
    assert not any("make the ids equal" in found.fix for found in other.findings)


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


FIELDS = {  # of something retrieved: where the id of its document stands, and how it is named
    "meta": ({"id": "x{}", "content": "text", "meta": {"source_id": "f{}"}}, "metadata.source_id"),
    "flat": ({"id": "x{}", "content": "text", "blob": None, "source_id": "f{}"}, "source_id"),
    "own": ({"doc": "x{}", "source_id": "f{}"}, "source_id"),
    "source": ({"doc": "x{}", "text": "text", "source": "f{}"}, "source"),
    "number": ({"id": "x{}", "text": "text", "metadata": {"doc_id": "{}"}}, "metadata.doc_id"),
}


@pytest.mark.parametrize("form", FIELDS)
def test_the_field_is_named_on_every_road(form: str, save: Save) -> None:
    """As a dict, records, their file, a frame; with gold in the same records, and by the field."""
    given, name = FIELDS[form]

    def made(value: Any, number: int) -> Any:
        if isinstance(value, dict):
            return {key: made(each, number) for key, each in value.items()}
        filled = value and value.format(number)
        return int(filled) if isinstance(filled, str) and filled.isdigit() else filled

    run = {f"q{at}": [made(given, at)] for at in (7, 8)}
    gold = {f"q{at}": [str(at) if form == "number" else f"f{at}"] for at in (7, 8)}
    alone = [{"query": query, "retrieved": run[query]} for query in run]
    both = [each | {"gold": gold[str(each["query"])]} for each in alone]
    lines = save("run.jsonl", "\n".join(map(json.dumps, alone)))
    files = (lines, gold), (save("all.jsonl", "\n".join(map(json.dumps, both))), None)
    roads: list[tuple[Any, Any]] = [(run, gold), (alone, gold), (both, None), *files]
    asked = [{"query": query, "question": query, "gold": gold[query]} for query in gold]
    roads += [(pl.DataFrame(both), None), (run.__getitem__, asked)]
    for ours, theirs in roads:
        with pytest.raises(AlignError, match=f"as the field {re.escape(name)} of the run"):
            findwell.evaluate(ours, theirs, ["recall"])
        reading = findwell.Reading(id_from=name)
        assert findwell.evaluate(ours, theirs, ["recall"], reading=reading)["recall"] == 1.0


def test_the_column_is_named(save: Save) -> None:
    rows = pl.DataFrame({"query": ["q", "p"], "doc": ["x", "y"], "lang": "en", "file": ["f", "g"]})
    gold = {"q": ["f"], "p": ["g"]}
    for run in (rows, save("run.csv", rows.write_csv())):
        with pytest.raises(AlignError, match="--read id_from=file"):
            findwell.evaluate(run, gold, ["recall"])
        reading = findwell.Reading(id_from="file")
        assert findwell.evaluate(run, gold, ["recall"], reading=reading)["recall"] == 1.0


def test_what_describes_the_gold_names_no_field_of_the_run() -> None:
    gold = [{"id": "f1", "content": "text", "meta": {"title": "f1"}}]
    both = [{"query": "q", "retrieved": [{"id": "x", "content": "text", "meta": {}}], "gold": gold}]
    assert "id_from" not in findwell.evaluate(both, None, ["recall"]).findings[0].fix


JOINED = ["a,b", "a, b", "a;b", "a|b", "a b", "a\nb", "['a' 'b']"]


# every way to join ids on one road, and one of them on every road; all of them in `make slow`
ROADS = [(cell, False) for cell in JOINED[:-1]] + [
    pytest.param(cell, True, marks=() if cell in ("a,b", JOINED[-1]) else pytest.mark.slow)
    for cell in JOINED
]


@pytest.mark.parametrize(("cell", "every_road"), ROADS)
def test_several_ids_in_one_text(cell: str, every_road: bool, save: Save) -> None:
    """On every road; with and without another query whose document is found."""
    for more in ({}, {"p": "d"}):
        gold = {"q": cell} | more
        run = {"q": ["x", "a", "b"]} | {query: [doc] for query, doc in more.items()}
        table = pl.DataFrame({"query": [*gold], "doc": [*gold.values()]})
        lists = {query: [doc] for query, doc in gold.items()}
        rows = (f"{query} Q0 {doc} 0 {-at} t" for query in run for at, doc in enumerate(run[query]))
        runs: list[Any] = [run, {name: dict.fromkeys(docs, 1.0) for name, docs in run.items()}]
        runs.append(save("run.trec", "\n".join(rows)))
        golds: list[Any] = [table, lists, save("gold.json", json.dumps(lists))]
        golds += [gold] * ("[" not in cell)
        for ours in runs if every_road else runs[:1]:
            for theirs in golds if every_road else golds[-1:]:
                with pytest.raises(AlignError, match="several ids in one text") as stop:
                    findwell.evaluate(ours, theirs, ["recall"])
                assert 'by="ids"' in stop.value.fix
                found = findwell.evaluate(ours, theirs, ["recall"], by="ids")
                assert kinds(found) in ({"joined-ids": 1}, {"no-shared-document": 1})
    apart = {"q": ["a", "b"], "p": ["d"]}
    assert findwell.evaluate({"q": ["x", "a", "b"], "p": ["d"]}, apart, ["recall"])["recall"] == 1.0


@pytest.mark.parametrize(
    ("run", "gold"),
    [
        ({"q": ["Paris"], "p": ["Austin, Texas"]}, {"q": ["Paris, Texas"], "p": ["Austin, Texas"]}),
        ({"q": ["Paris"], "p": ["d"]}, {"q": ["London, Leeds"], "p": ["d"]}),  # no part of it
        ({"q": ["x"], "p": ["d", "a"]}, {"q": ["a,b"], "p": ["d"]}),  # of another query
    ],
)
def test_a_text_that_may_be_one_id(run: dict[str, list[str]], gold: dict[str, list[str]]) -> None:
    result = findwell.evaluate(run, gold, ["recall"])
    assert result["recall"] == 0.5
    assert not result.findings

"""Files as other tools write them: deepeval, promptfoo, Anthropic's cookbook, Excel."""

from __future__ import annotations

import csv
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import polars as pl
import pytest

import findwell
from findwell import Reading
from findwell.core.errors import InputError, OptionError
from findwell.io.read import load_gold, load_run, load_samples
from tests.sample import kinds

if TYPE_CHECKING:
    from tests.conftest import Save

# what deepeval 4.3.1 writes for three goldens, the fields that hold something
DEEPEVAL: list[dict[str, Any]] = [
    {"input": "q0?", "retrieval_context": ["one", "two, too", "t0"], "context": ["t0"]},
    {"input": "q1?", "retrieval_context": ["[1] one", "two, too"], "context": ["two, too", "t9"]},
    {"input": "q2?", "retrieval_context": ["one"], "context": ["t2", "one"]},
]
PROMPTFOO = Path(__file__).parents[1] / "golden" / "promptfoo.json"
EXPECTED = {"RR": (1 / 3 + 1 / 2 + 1) / 3, "recall": (1 + 1 / 2 + 1 / 2) / 3}


def _joined(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: "|".join(value) if isinstance(value, list) else value
        for name, value in record.items()
    } | {"name": None, "additional_metadata": None}


def _csv(records: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def _test_run(records: list[dict[str, Any]]) -> dict[str, Any]:
    cases = [
        {
            "name": f"test_case_{nth}",
            "input": record["input"],
            "actualOutput": "so",
            "expectedOutput": "so",
            "context": record["context"],
            "retrievalContext": record["retrieval_context"],
            "success": True,
            "metricsData": [],
            "order": nth,
        }
        for nth, record in enumerate(records)
    ]
    return {
        "testCases": cases,
        "conversationalTestCases": [],
        "metricsScores": [],
        "runDuration": 1,
    }


FILES = {
    "d.csv": _csv([_joined(record) for record in DEEPEVAL]),
    "d.jsonl": "".join(json.dumps(_joined(record)) + "\n" for record in DEEPEVAL),
    "d.json": json.dumps(DEEPEVAL, indent=4),
    "run.json": json.dumps(_test_run(DEEPEVAL)),
    "latest.json": json.dumps({"testRunData": _test_run(DEEPEVAL)}),
}


@pytest.mark.parametrize("name", FILES)
def test_deepeval(name: str, save: Save) -> None:
    found = findwell.evaluate(save(name, FILES[name]), None, list(EXPECTED))
    assert {name: found[name] for name in EXPECTED} == pytest.approx(EXPECTED)
    joined = {"d.csv": 3, "d.jsonl": 3}.get(name, 0)
    assert kinds(found).get("cut-texts", 0) == joined


def test_texts_that_deepeval_joins_are_cut_as_it_cuts_them() -> None:
    record = {"input": "?", "retrieval_context": "a||b|", "context": "a"}
    rows = load_samples([record]).run.collect().rows
    assert rows["doc"].to_list() == [
        "a",
        "",
        "b",
        "",
    ]  # chunks without a text
    listed = {**record, "retrieval_context": '["a|b", "c"]'}
    assert load_samples([listed]).run.collect().rows["doc"].to_list() == ["a|b", "c"]
    (blank,) = [{**record, "retrieval_context": "", "context": "a"}]
    assert load_samples([blank]).run.collect().rows["doc"].to_list() == [None]


def test_a_context_of_deepeval_may_carry_its_source() -> None:
    sourced = "deepeval_source=guide.md,deepeval_context=Charge it,\nfirst."
    record = {"input": "?", "retrieval_context": [sourced, "b"], "context": ["Charge it,\nfirst."]}
    assert findwell.evaluate([record], None, "RR")["RR"] == 1
    assert findwell.evaluate([record], None, "RR", by="exact")["RR"] == 1


def _result(nth: int, provider: int = 0, **variables: object) -> dict[str, Any]:
    return {
        "promptIdx": provider,
        "testIdx": nth,
        "testCase": {"vars": variables, "assert": []},
        "promptId": "a1",
        "provider": {"id": f"echo-{provider}", "label": ""},
        "prompt": {"raw": "{{query}}", "label": "{{query}}"},
        "vars": variables,
        "response": {"output": "so", "metadata": {"chunks": [f"c{nth}", "x"]}},
        "success": True,
        "score": 1,
        "latencyMs": 12,
        "namedScores": {},
    }


def _output(results: list[dict[str, Any]]) -> str:
    summary = {"version": 3, "timestamp": "", "prompts": [], "results": results, "stats": {}}
    whole = {"evalId": "eval-1", "results": summary, "config": {}, "shareableUrl": None}
    return json.dumps(whole, indent=2)


def test_promptfoo(save: Save) -> None:
    results = [_result(nth, query=f"q{nth}?", context=["a", f"b{nth}"]) for nth in range(3)]
    path = save("out.json", _output(results))
    gold = [{"question": f"q{nth}?", "gold": [f"b{nth}"]} for nth in range(3)]
    found = findwell.evaluate(path, gold, "RR", by="ids")
    assert found["RR"] == 0.5
    own = Reading(fields={"run.response.metadata.chunks": "retrieved"})
    gold = [{"question": f"q{nth}?", "gold": [f"c{nth}"]} for nth in range(3)]
    assert findwell.evaluate(path, gold, "RR", reading=own)["RR"] == 1


def test_a_file_that_promptfoo_wrote(save: Save) -> None:
    """Written by promptfoo 0.121.20 with disableVarExpansion, and cut to what is needed."""
    found = findwell.evaluate(PROMPTFOO, measures=["RR", "recall"], by="exact")
    assert (found["RR"], found["recall"]) == (0.75, 1)
    whole = json.loads(PROMPTFOO.read_text())
    records = whole["results"]["results"]
    del records[1]["vars"]["reference_contexts"]
    with pytest.raises(InputError, match=r"no field 'vars\.reference_contexts'") as error:
        load_gold(save("out.json", json.dumps(whole)))
    assert error.value.fix.startswith("add 'vars.reference_contexts'")
    records[0]["vars"]["context"] = "Call us."  # as promptfoo writes it by default
    with pytest.raises(InputError, match=r"vars\.context is one text") as error:
        load_run(save("out.json", json.dumps(whole)))
    assert "disableVarExpansion: true" in error.value.fix


def test_a_variable_of_promptfoo_may_be_a_list_as_json_or_one_gold(save: Save) -> None:
    results = [_result(nth, query=f"q{nth}?", context='["a", "b"]', doc="b") for nth in range(2)]
    path = save("out.json", _output(results))
    assert load_run(path).collect().rows["doc"].to_list() == ["a", "b"] * 2
    gold = load_gold(path, fields={"gold.vars.doc": "gold"})
    assert gold.rows()["doc"].to_list() == ["b", "b"]


def test_one_line_with_unknown_fields_says_what_to_type(save: Save) -> None:
    path = save("one.jsonl", '{"q": "Why?", "hits": ["a", "b"], "right": ["a"]}\n')
    with pytest.raises(InputError, match="found only q, hits, right") as error:
        load_samples(path)
    assert "--map run.hits=retrieved --map gold.right=gold" in error.value.fix
    assert load_run(save("run.jsonl", '{"q1": ["a", "b"]}\n')).collect().rows.height == 2


def test_promptfoo_without_a_usual_name_says_what_to_type(save: Save) -> None:
    path = save("out.json", _output([_result(0, query="?"), _result(1, query="!")]))
    with pytest.raises(InputError) as error:
        load_run(path)
    assert "--map run.response.metadata.chunks=retrieved" in error.value.fix


def test_two_systems_in_one_file_of_promptfoo_are_not_mixed_up(save: Save) -> None:
    results = [_result(0, provider, query="?", context=["a"]) for provider in (0, 1)]
    with pytest.raises(InputError, match=r"holds 2 systems \(promptIdx 0, 1\)") as error:
        load_run(save("out.json", _output(results)))
    assert "--filter-providers" in error.value.fix


def test_sets_of_the_cookbook(save: Save) -> None:
    chunks = [{"doc_uuid": "u1", "index": at, "content": f"text {at}"} for at in (0, 3)]
    record = {
        "query": "What for?",
        "answer": "For that.",
        "golden_doc_uuids": ["u1"],
        "golden_chunk_uuids": [["u1", 0], ["u1", 3]],
        "golden_documents": [{"uuid": "u1", "content": "…", "chunks": chunks}],
        "golden_chunks": chunks,
        "meta": {"source": "codebases"},
    }
    path = save("set.jsonl", json.dumps(record) + "\n" + json.dumps(record) + "\n")
    gold = load_gold(path, texts=True)
    assert gold.rows()["doc"].unique(maintain_order=True).to_list() == ["u1_chunk_0", "u1_chunk_3"]
    assert gold.queries["query"].to_list() == ["What for?", "What for? (2)"]
    run = [{"question": "What for?", "retrieved": [{"doc": "d1", "text": "text 3"}]}]
    found = findwell.evaluate(run, path, "recall", by="exact", reading=Reading(missing="skip"))
    assert found["recall"] == 0.5
    with pytest.raises(InputError, match="not a pair"):
        load_gold([{**record, "golden_chunk_uuids": ["u1"]}])
    docs = {"id": "7", "question": "?", "correct_chunks": ["a#b"], "correct_answer": "so"}
    assert load_gold([docs]).rows().select("query", "doc").row(0) == ("7", "a#b")


def _cell(at: str, value: object) -> str:
    if isinstance(value, bool):
        return f'<c r="{at}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{at}"><v>{value}</v></c>'
    if str(value).startswith("#"):
        return f'<c r="{at}" t="e"><v>{value}</v></c>'
    return f'<c r="{at}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'


def workbook(**sheets: list[list[object]]) -> bytes:
    """Write a workbook as the standard describes it, ECMA-376."""
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    parts = {}
    listed, related, types = "", "", ""
    for nth, (name, rows) in enumerate(sheets.items(), start=1):
        lines = "".join(
            f'<row r="{at}">'
            + "".join(
                _cell(f"{chr(65 + column)}{at}", value)
                for column, value in enumerate(row)
                if value is not None
            )
            + "</row>"
            for at, row in enumerate(rows, start=1)
        )
        parts[f"xl/worksheets/sheet{nth}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
        )
        listed += f'<sheet name="{name}" sheetId="{nth}" r:id="rId{nth}"/>'
        target = f'Target="worksheets/sheet{nth}.xml"'
        related += f'<Relationship Id="rId{nth}" Type="{office}/worksheet" {target}/>'
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
        types += f'<Override PartName="/xl/worksheets/sheet{nth}.xml" ContentType="{kind}"/>'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    parts["xl/workbook.xml"] = (
        f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>'
    )
    relations = f'<Relationships xmlns="{package}/relationships">'
    parts["xl/_rels/workbook.xml.rels"] = f"{relations}{related}</Relationships>"
    book = f'<Relationship Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
    parts["_rels/.rels"] = f"{relations}{book}</Relationships>"
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    first = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        f'<Default Extension="rels" ContentType="{rels}"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}"/>{types}</Types>'
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as book_file:
        for name, text in (first | parts).items():
            book_file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return out.getvalue()


GOLD_ROWS: list[list[object]] = [
    ["query", "doc", "grade"],
    [1, "007", 1],
    [1, 7, "no"],
    [None, None, None],
    [2, "d & 9", True],
]


@pytest.mark.parametrize("name", ["gold.xlsx", "gold"])
def test_excel(name: str, save: Save) -> None:
    """Numbers are ids as they are shown, and blank rows are nothing."""
    path = save(name, workbook(labels=GOLD_ROWS, empty=[]))
    gold = load_gold(path)
    assert gold.rows().select("query", "doc", "grade").rows() == [
        ("1", "007", 1.0),
        ("1", "7", 0.0),
        ("2", "d & 9", 1.0),
    ]
    run = save("run.xlsx", workbook(run=[["key", "hits"], [1, "['x', '007']"], [2, '["d & 9"]']]))
    fields = {"run.hits": "retrieved", "run.key": "query"}
    found = findwell.evaluate(run, path, "RR", reading=Reading(fields=fields))
    assert found["RR"] == 0.75
    queries = save("about.xlsx", workbook(about=[["query", "topic"], [1, "a"], [2, "b"]]))
    sliced = findwell.evaluate({"1": ["007"]}, path, "RR", queries=queries).by("topic")
    assert sliced is not None


@pytest.mark.parametrize(
    ("sheets", "what"),
    [
        ({"a": [["query", "doc"], [1, "#N/A"]]}, "the cell B2 holds an error"),
        ({"a": [["query", "doc"], [1, "a"]], "b": [["x"], [1]]}, "2 sheets: a, b"),
        ({"a": [["query", "doc"], [1, None]]}, "the doc is missing"),
        ({"a": [["query", "doc"]]}, "no rows"),
        ({"a": []}, "no rows"),
        ({"a": [["query", "gold", "gold"], [1, "['a']", "['b']"]]}, "'gold' occurs more than once"),
        ({"a": [["query", "gold"], [1, float("nan")]]}, "not a list"),
    ],
)
def test_excel_that_cannot_be_read(
    sheets: dict[str, list[list[object]]], what: str, save: Save
) -> None:
    with pytest.raises(InputError, match=what):
        load_gold(save("gold.xlsx", workbook(**sheets)))


def test_broken_excel(save: Save) -> None:
    whole = workbook(labels=GOLD_ROWS)
    for size in (4, 100, len(whole) // 2, len(whole) - 1):
        with pytest.raises(InputError):
            load_gold(save("gold.xlsx", whole[:size]))


def test_excel_names_the_extra(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(
        OptionError, match="reading Excel files needs the package fastexcel"
    ) as error:
        load_gold(save("gold.xlsx", workbook(labels=GOLD_ROWS)))
    assert "[excel]" in error.value.fix
    assert "CSV" in error.value.fix


def test_a_field_of_findwells_name_does_not_replace_that_of_a_tool(tmp_path: Path) -> None:
    """It did where records were read one by one, and did not in frames."""
    record = {
        "user_input": "?",
        "retrieved_contexts": ["a", "b"],
        "reference_contexts": ["b"],
        "gold": ["a"],
    }
    path = tmp_path / "some.json"
    path.write_text(json.dumps([record]))
    for data in ([record], pl.DataFrame([record]), path):
        found = findwell.evaluate(data, None, "RR")
        assert found["RR"] == 0.5
        assert kinds(found)["two-names"] == 1

"""`findwell labels anchor` and `findwell labels drift`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findwell.loop.labels.anchor import anchor, drift

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

GUIDE = "Charge it first. It takes four hours.\n\nThen press the red button. Wait. Wait.\n"
CHUNKS = [("c1", "It takes four hours."), ("c2", "press the  red button"), ("c3", "Wait.")]
GOLD = [
    {"query": "q1", "question": "how long?", "gold": ["c1"]},
    {"query": "q2", "gold": [["c2", "c9"], "c3"]},
]
STATUS = ["exact", "normalised", "lost", "ambiguous"]


def lines(records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)  # type: ignore[attr-defined]


@pytest.fixture
def files(save: Save, tmp_path: Path) -> Path:
    """Write a gold, its chunks and documents, and return their folder."""
    save("docs/guide.md", GUIDE)
    save("gold.jsonl", lines(GOLD))
    save("chunks.jsonl", lines({"id": name, "text": text} for name, text in CHUNKS))
    save("new/guide.md", "Now! " + GUIDE.replace("four", "five"))
    return tmp_path


@pytest.fixture
def spans(files: Path) -> Path:
    """Write the anchored gold."""
    path = files / "spans.jsonl"
    anchor(files / "gold.jsonl", files / "docs", chunks=files / "chunks.jsonl").write(path)
    return path


def options(files: Path) -> list[object]:
    return [files / "gold.jsonl", "--chunks", files / "chunks.jsonl", "--corpus", files / "docs"]


def test_anchor_writes_the_gold_and_shows_the_labels(cli: Findwell, files: Path) -> None:
    out = files / "out.jsonl"
    done = cli("labels", "anchor", *options(files), "-o", out)
    assert done.code == 0
    written = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert written == [
        {
            "query": "q1",
            "question": "how long?",
            "gold": [
                {"doc": "guide.md", "start": 17, "end": 37, "quote": CHUNKS[0][1], "grade": 1}
            ],
        },
        {
            "query": "q2",
            "gold": [
                {
                    "doc": "guide.md",
                    "start": 44,
                    "end": 64,
                    "quote": "press the red button",
                    "grade": 1,
                }
            ],
        },
    ]
    assert done.out.startswith("labels · 4\n")
    assert "c9" in done.out
    assert "guide.md 66–71, guide.md 72–77" in done.out
    assert "It takes" not in done.out  # nothing is to be told of it
    notes = [line for line in done.err.splitlines() if not line.startswith("  fix: ")]
    assert [line[:8] for line in notes] == ["note: 1 ", "note: 1 "]


def test_the_command_is_the_function(cli: Findwell, files: Path) -> None:
    shown = cli("labels", "anchor", *options(files), "--format=json").answer
    told = anchor(files / "gold.jsonl", files / "docs", chunks=files / "chunks.jsonl")
    assert shown["labels"] == told.labels.drop("number").to_dicts()
    assert shown["summary"] == told.summary().to_dicts()
    assert shown["findings"] == [{**each.as_dict(), "command": None} for each in told.findings]


@pytest.mark.parametrize("how", ["csv", "tsv", "jsonl"])
def test_rows(cli: Findwell, files: Path, how: str) -> None:
    done = cli("labels", "anchor", *options(files), "--format", how)
    if how == "jsonl":
        rows = [json.loads(line) for line in done.out.splitlines()]
    else:
        rows = list(csv.DictReader(io.StringIO(done.out), delimiter="\t" if how == "tsv" else ","))
    assert [row["status"] for row in rows] == STATUS


def test_markdown(cli: Findwell, files: Path) -> None:
    out = cli("labels", "anchor", *options(files), "--format", "markdown").out
    assert "| status | labels |" in out
    assert "| q2 | c9 | lost |" in out


@pytest.mark.parametrize(("ambiguous", "places"), [("leave", 0), ("first", 1), ("all", 2)])
def test_ambiguous(cli: Findwell, files: Path, ambiguous: str, places: int) -> None:
    done = cli("labels", "anchor", *options(files), "--ambiguous", ambiguous, "-o", "-")
    gold = json.loads(done.out.splitlines()[1])["gold"]
    last = gold[1:]
    assert len(last[0] if isinstance(last[0], list) else last) == places if last else places == 0


def test_standard_input(cli: Findwell, files: Path) -> None:
    rest = ["--chunks", files / "chunks.jsonl", "--corpus", files / "docs", "-o", "-"]
    done = cli("labels", "anchor", "-", *rest, stdin=(files / "gold.jsonl").read_bytes())
    assert done.code == 0
    assert json.loads(done.out.splitlines()[0])["gold"][0]["start"] == 17


def test_drift(cli: Findwell, files: Path, spans: Path) -> None:
    out = files / "updated.jsonl"
    done = cli("labels", "drift", spans, "--corpus", files / "new", "-o", out)
    assert done.code == 0
    assert "edited" in done.out
    assert "guide.md 22–42" in done.out
    assert "note: 1 label has a text that was edited" in done.err
    assert out.read_text("utf-8") == drift(spans, files / "new").jsonl()
    again = cli("labels", "drift", out, "--corpus", files / "new")
    assert "kept" in again.out
    assert not again.err


def test_drift_that_lost_everything_is_no_failure(cli: Findwell, save: Save, spans: Path) -> None:
    done = cli("labels", "drift", spans, "--corpus", save("other/a.md", "Nothing of it.").parent)
    assert done.code == 0
    assert "no such document" in done.out
    assert "2 queries have no relevant label with a place" in done.err


def test_drift_with_new_chunks(cli: Findwell, save: Save, files: Path, spans: Path) -> None:
    chunks = save(
        "new.jsonl", lines([{"id": "n1", "text": "It takes"}, {"id": "n2", "text": "four hours."}])
    )
    given = ["labels", "drift", spans, "--corpus", files / "docs", "--chunks", chunks]
    done = cli(*given)
    assert "kept, split" in done.out
    assert "in n1, n2" in done.out
    assert "kept, none" in done.out
    rows = list(csv.DictReader(io.StringIO(cli(*given, "--format=csv").out)))
    assert [(row["chunks"], row["cut"]) for row in rows] == [("n1 n2", "split"), ("", "none")]


def test_drift_with_the_documents_before(cli: Findwell, save: Save, files: Path) -> None:
    gold = [{"query": "q", "gold": [{"doc": "guide.md", "start": 72, "end": 77, "quote": "Wait."}]}]
    path = save("second.jsonl", lines(gold))
    assert "ambiguous" in cli("labels", "drift", path, "--corpus", files / "new").out
    done = cli(
        "labels", "drift", path, "--corpus", files / "new", "--before", files / "docs", "-o", "-"
    )
    assert json.loads(done.out)["gold"][0]["start"] == 77
    assert not done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["labels", "anchor", "gold.jsonl"], "--corpus"),
        (["labels", "anchor", "gold.jsonl", "--corpus", "nowhere"], "no such file"),
        (
            ["labels", "anchor", "gold.jsonl", "--corpus", "docs", "--chunks", "gold.jsonl"],
            "no id; found",
        ),
        (["labels", "anchor", "gold.jsonl", "--corpus", "docs", "--min-score", "0"], "0"),
        (["labels", "anchor", "gold.jsonl", "--corpus", "docs", "--ambiguous", "x"], "x"),
        (["labels", "anchor", "nothing", "--corpus", "docs"], "no such file"),
        (["labels", "drift", "gold.jsonl", "--corpus", "docs"], "has no quote to look for"),
        (["labels", "anchor", "gold.jsonl", "--corpus", "bad"], "not UTF-8"),
    ],
)
def test_bad_input(
    *,
    cli: Findwell,
    save: Save,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    save("bad/a.md", b"\xff")
    monkeypatch.chdir(files)
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err


def test_nothing_is_left_behind_where_it_cannot_be_written(cli: Findwell, files: Path) -> None:
    done = cli("labels", "anchor", *options(files), "-o", files / "none" / "gold.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "could not be written" in done.err


def test_records_that_cannot_be_read_may_be_skipped(cli: Findwell, files: Path) -> None:
    gold = files / "gold.jsonl"
    gold.write_text(gold.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    assert cli("labels", "anchor", *options(files)).code == 2
    done = cli("labels", "anchor", *options(files), "--read", "skip_bad=yes")
    assert done.code == 0
    assert "cannot be read" in done.err or "could not be read" in done.err

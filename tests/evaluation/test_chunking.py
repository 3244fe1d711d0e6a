"""What `findwell check` says about chunks: documents left out, labels cut."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.relations.spans.place import coverage, never_reached

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

PICK = random.Random(1)
DOCS = {
    f"f{number}.txt": " ".join(f"w{PICK.randrange(500)}" for _ in range(300))
    for number in range(20)
}
SIZE = 200


def cut(*, drop_last: bool = False, places: bool = True) -> list[dict[str, Any]]:
    """Cut every document into chunks; a bad chunker drops the last one."""
    chunks = []
    for doc, text in DOCS.items():
        starts = range(0, len(text) - (SIZE if drop_last else 0), SIZE)
        for start in starts:
            end = min(start + SIZE, len(text))
            place = {"source": doc, "start": start, "end": end} if places else {}
            chunks.append({"chunk_id": f"{doc}:{start}", "text": text[start:end], **place})
    return chunks


def labels(count: int = 60) -> list[dict[str, Any]]:
    """Label whole words of documents; every tenth label is the last of them."""
    pick = random.Random(2)
    found = []
    for number in range(count):
        doc = pick.choice(list(DOCS))
        words = list(re.finditer(r"\w+", DOCS[doc]))
        first = len(words) - 5 if number % 10 == 0 else pick.randrange(len(words) - 5)
        start, end = words[first].start(), words[first + 4].end()
        found.append({"query": f"q{number}", "gold": [{"doc": doc, "start": start, "end": end}]})
    return found


def retrieved(chunks: list[dict[str, Any]], each: int = 8) -> list[dict[str, Any]]:
    pick = random.Random(3)
    records = []
    for record in labels():
        found = [{**chunk, "doc": chunk["chunk_id"]} for chunk in pick.sample(chunks, each)]
        for entry in found:
            del entry["chunk_id"]
        records.append({"query": record["query"], "retrieved": found})
    return records


def check(run: Any, **options: Any) -> dict[str, findwell.types.Finding]:
    found = findwell.io.check(run, labels(), corpus=DOCS, by="spans", **options)
    return {each.kind: each for each in found if each.kind != "duplicate-document"}


@pytest.mark.parametrize("places", [True, False])
def test_a_chunker_that_drops_the_last_chunk_of_every_file_is_found(places: bool) -> None:
    bad = cut(drop_last=True, places=places)
    found = check(retrieved(cut()), chunks=bad)
    left = found["left-out-text"]
    assert (left.count, left.run, len(left.examples)) == (len(DOCS), "chunks", 10)
    lacking = coverage(_placed(cut(drop_last=True)), _documents())
    share = sum(lacking["held"].to_list()) / sum(lacking["letters"].to_list())
    assert f"hold {share:.1%} of the letters" in left.message
    assert f"{len(DOCS):,} documents" in left.message
    last = [
        record
        for record in labels()
        if record["gold"][0]["start"] >= _end_of_bad(record["gold"][0]["doc"])
    ]
    assert last
    assert found["none-label"].count == len(last)
    assert "The gold has 60 labels." in found["none-label"].message
    assert "left-out-text" not in check(retrieved(cut()), chunks=cut(places=places))


def _end_of_bad(doc: str) -> int:
    return max(int(chunk["end"]) for chunk in cut(drop_last=True) if chunk["source"] == doc)


def _documents() -> pl.DataFrame:
    return pl.DataFrame({"doc": list(DOCS), "text": list(DOCS.values())})


def _placed(chunks: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(chunks).select("start", "end", doc="source")


def test_labels_that_a_chunking_cuts_are_counted() -> None:
    split = [
        record
        for record in labels()
        if record["gold"][0]["start"] // SIZE != (record["gold"][0]["end"] - 1) // SIZE
    ]
    found = check(retrieved(cut()), chunks=cut())
    assert found["split-label"].count == len(split) > 0
    assert set(found) == {"split-label"}


def test_retrieved_chunks_alone_show_that_ends_are_dropped() -> None:
    bad, good = (check(retrieved(cut(drop_last=drop))) for drop in (True, False))
    assert bad["no-end"].count == len(DOCS)
    assert "none with the end" in bad["no-end"].message
    assert "no-end" not in good
    assert "no-beginning" not in bad
    assert good["cut-label"].run == "run"
    few = retrieved(cut(drop_last=True))[:2]  # this may be chance
    assert "no-end" not in check(few)


def test_ends_that_few_lists_could_not_reach_are_not_suspicious() -> None:
    chunks = _placed(cut())
    one = chunks.group_by("doc").first()
    assert [each.kind for each in never_reached(one.head(3), _documents())] == []
    assert [each.kind for each in never_reached(chunks, _documents())] == []


def test_documents_that_are_retrieved_whole_and_other_corpora_say_nothing() -> None:
    whole = {record["query"]: list(DOCS)[:5] for record in labels()}
    gold = {record["query"]: [record["gold"][0]["doc"]] for record in labels()}
    assert not [
        each for each in findwell.io.check(whole, gold, corpus=DOCS) if "label" in each.kind
    ]
    chunks = {chunk["chunk_id"]: chunk["text"] for chunk in cut()}
    foreign = check(retrieved(cut()), chunks={"a": "Nothing of this is in any document at all."})
    assert foreign["lost-chunk"].count == 1
    assert "left-out-text" not in foreign
    assert (
        findwell.io.check({"q0": list(chunks)[:3]}, {"q0": list(chunks)[:1]}, corpus=chunks) == ()
    )
    with pytest.raises(OptionError, match="chunks were given without the documents"):
        findwell.io.check({"q": ["a"]}, {"q": ["a"]}, chunks=chunks)


def test_the_command(cli: Findwell, tmp_path: Path) -> None:
    def lines(name: str, records: list[dict[str, Any]]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
        return path

    (tmp_path / "docs").mkdir()
    for name, text in DOCS.items():
        (tmp_path / "docs" / name).write_text(text)
    given = (
        *("check", lines("run.jsonl", retrieved(cut()))),
        *("--gold", lines("gold.jsonl", labels()), "--corpus", tmp_path / "docs", "--by", "spans"),
    )
    bad, good = lines("bad.jsonl", cut(drop_last=True)), lines("good.jsonl", cut())
    done = cli(*given, "--chunks", bad, "--chunks", good, "--strict")
    assert done.code == 1
    assert f"left-out-text: bad: {len(DOCS)} of {len(DOCS)} documents have a part" in done.out
    assert "split-label: good: " in done.out
    assert "left-out-text: good" not in done.out
    found = cli(*given, "--chunks", bad, "--format", "json").answer["findings"]
    assert "left-out-text" in [each["kind"] for each in found]

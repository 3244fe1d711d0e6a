"""What was marked in a passage is a place in the document, good for every chunker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import findwell

DOCUMENT = (
    "Charge it first. The reset button is at the back. Press it for three seconds. Then wait."
)
MARKED = "Press it for three seconds."
CUT = 17  # where the second chunk begins
CHUNKS = [
    {"doc": "g-1", "text": DOCUMENT[: CUT - 1], "source": "guide", "start": 0, "end": CUT - 1},
    {"doc": "g-2", "text": DOCUMENT[CUT:], "source": "guide", "start": CUT, "end": len(DOCUMENT)},
]
BARE = [{"doc": each["doc"], "text": each["text"]} for each in CHUNKS]
AT = DOCUMENT.index(MARKED)


def chunk(start: int, end: int) -> dict[str, Any]:
    text = DOCUMENT[start:end]
    return {"doc": f"{start}", "source": "guide", "start": start, "end": end, "text": text}


@pytest.mark.parametrize("chunks", [CHUNKS, BARE], ids=["places known", "places not known"])
def test_a_mark_survives_the_next_chunker(chunks: list[dict[str, Any]], tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    findwell.labels.pool(
        [{"q": ["g-1", "g-2"]}], pool, queries={"q": "How do I reset it?"}, corpus=chunks
    )
    with findwell.labels.Labels.open(pool, "ann") as labels:
        labels.set("q", "g-2", 3, start=AT - CUT, end=AT - CUT + len(MARKED))
        labels.set("q", "g-1", 0)
    anchored = findwell.labels.anchor(pool, {"guide": DOCUMENT, "other": "Press it. " * 9})
    assert anchored.findings == ()
    places = anchored.labels.select("doc", "start", "end", "quote", "grade").rows()
    assert places == [
        ("guide", AT, AT + len(MARKED), MARKED, 3.0),
        ("guide", 0, CUT - 1, DOCUMENT[: CUT - 1], 0.0),
    ]
    new = [{"query": "q", "retrieved": [chunk(AT - 10, AT + 5), chunk(AT - 2, AT + 30)]}]
    found = findwell.evaluate(new, list(anchored.records()), ["recall@1/spans", "recall@2/spans"])
    assert found.values == {"recall@1/spans": 0.0, "recall@2/spans": 1.0}

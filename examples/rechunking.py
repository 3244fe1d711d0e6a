"""Two chunkers, one set of labels: what was marked in the text survives another cut.

    python examples/rechunking.py

The gold is a sentence with its place in a document. Chunks of two splitters, cut by size with an
overlap as text splitters of the usual frameworks do, carry other ids each time, so ids cannot be
compared; places (`spans`) and texts (`rouge`, `containment`) can. No framework is needed: a chunk
is a dict with `doc`, `text`, `start` and `end`.
"""

import re
from collections.abc import Iterator
from typing import Any

import findwell

DOCUMENTS = {
    "charging.md": (
        "Charge the battery indoors at room temperature. A full charge takes about four hours with "
        "the standard charger and two and a half with the fast charger. The light on the charger "
        "turns green when the battery is full. Never cover the charger while it works."
    ),
    "warranty.md": (
        "The frame is covered for ten years. The battery is covered for two years or 800 cycles, "
        "whichever comes first. Keep the receipt: without it a dealer cannot open a case. Wear of "
        "tyres, brake pads and chain is not covered."
    ),
}
LABELS = [
    ("How long does charging take?", "charging.md", "A full charge takes about four hours"),
    ("How long is the battery covered?", "warranty.md", "covered for two years or 800 cycles"),
    ("What do I need for a claim?", "warranty.md", "Keep the receipt"),
]


def split(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Cut a text into pieces of at most `size` characters that share about `overlap`."""
    start = 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            end = text.rfind(" ", start, end) + 1 or end
        yield start, end
        if end == len(text):
            return
        start = text.find(" ", max(end - overlap, start)) + 1


def search(question: str, chunks: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Rank chunks by the words they share with a question: a stand-in for your retriever."""
    asked = set(re.findall(r"\w+", question.casefold()))

    def score(chunk: dict[str, Any]) -> int:
        return len(asked.intersection(re.findall(r"\w+", chunk["text"].casefold())))

    return sorted(chunks, key=score, reverse=True)[:most]


def samples(size: int, overlap: int) -> list[dict[str, Any]]:
    """Chunk the documents, retrieve, and put the labels beside what was retrieved."""
    chunks = [
        {"doc": name, "text": text[start:end], "start": start, "end": end}
        for name, text in DOCUMENTS.items()
        for start, end in split(text, size, overlap)
    ]
    made = []
    for question, name, quote in LABELS:
        start = DOCUMENTS[name].index(quote)
        gold = {"doc": name, "text": quote, "start": start, "end": start + len(quote)}
        made.append(
            {
                "query": question,
                "retrieved": search(question, chunks, most=3),
                "gold": [gold],
            }
        )
    return made


MEASURES = ["recall@1/spans", "recall@3/spans", "recall@3/rouge", "P@3/span-words"]
for size, overlap in ((60, 0), (60, 30), (120, 30)):
    result = findwell.evaluate(samples(size, overlap), measures=MEASURES)
    told = "  ".join(f"{measure} {value:.2f}" for measure, value in result.values.items())
    print(f"chunks of {size:>3} characters, overlap {overlap:>2}:  {told}")

"""What the text relations mean, written down naively, and random texts to try them on."""

from __future__ import annotations

import random
import re
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from hypothesis import strategies as st

from tests.strategies import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    import findwell

Edges: TypeAlias = dict[str, set[tuple[int, str]]]  # query → rank and text of what is covered

MANY = max(200, examples(800).max_examples)  # queries: a quarter of them in `make test`
# few words, so that they repeat; forms that the plain policy takes for the same, and CJK
WORDS = [
    "a",
    "b",
    "c",
    "fox",
    "Fox",
    "FOX,",
    "the",
    "“the”",
    "don’t",
    "Don't",
    "日本",
    "日",
    "…",
    "-",
]


def words(text: str) -> list[str]:
    """Return the words of a text of `WORDS`: no case, no punctuation, a Han character is a word."""
    return re.findall(r"[a-z]+|[日本]", re.sub("['’]", "", text.lower()))


def plain(text: str) -> str:
    """Return what counts of a text of `WORDS`."""
    return " ".join(re.findall(r"[a-z]+|[日本]+", re.sub("['’]", "", text.lower())))


def lcs(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for x in one:
        before = 0
        for at, y in enumerate(other, start=1):
            before, row[at] = row[at], before + 1 if x == y else max(row[at], row[at - 1])
    return row[-1]


def rouge(unit: str, item: str) -> float:
    """Return ROUGE-L recall."""
    gold = words(item)
    return lcs(words(unit), gold) / len(gold) if gold else 0.0


def contains(unit: str, item: str) -> bool:
    """Tell whether the words of an item stand in a unit one after the other."""
    have, want = words(unit), words(item)
    places = range(len(have) - len(want) + 1)
    return bool(want) and any(have[at : at + len(want)] == want for at in places)


def lines(text: str) -> list[str]:
    """Cut a text as the splitter `lines` does."""
    return [line.strip() for line in text.splitlines() if line.strip()]


@st.composite
def records(draw: DrawFn, *, separators: str = "  \n") -> list[dict[str, Any]]:
    """Draw queries with retrieved and gold texts, some of them equal, blank, or cut from others."""
    text = texts(separators)
    made = []
    for number in range(draw(st.integers(1, 3))):
        gold = draw(st.lists(text, max_size=4))
        retrieved = draw(st.lists(st.one_of(text, st.sampled_from([*gold, ""])), max_size=6))
        made.append({"query": f"q{number}", "retrieved": retrieved, "gold": gold})
    # a query with a gold in which something counts, as without any there is nothing to measure
    made.append({"query": "anchor", "retrieved": ["fox"], "gold": ["the fox"]})
    return made


def texts(separators: str = "  \n") -> SearchStrategy[str]:
    """Draw texts of few words."""
    parts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(separators)), max_size=8)
    return parts.map(lambda drawn: "".join(word + space for word, space in drawn))


@cache
def many(seed: int, queries: int = MANY) -> list[dict[str, Any]]:
    """Return many such queries at once, from a seed."""
    rng = random.Random(seed)

    def text(most: int) -> str:
        return "".join(rng.choice(WORDS) + rng.choice("  \n") for _ in range(rng.randrange(most)))

    made = []
    for number in range(queries):
        gold = [text(8) for _ in range(rng.randrange(4))]
        retrieved = [text(12) for _ in range(rng.randrange(6))]
        for whole in gold:
            cut = rng.randrange(len(whole) + 1)
            parts = [whole, f"{text(3)} {whole[:cut]}", f"{whole[cut:]} {text(3)}"]
            retrieved += rng.sample(parts, rng.randrange(4))
        rng.shuffle(retrieved)
        made.append({"query": f"q{number}", "retrieved": retrieved, "gold": gold})
    return made


def with_texts(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records in which texts stand beside ids."""
    return [
        {
            "query": record["query"],
            "retrieved": [
                {"doc": f"c{at}", "text": text} for at, text in enumerate(record["retrieved"])
            ],
            "gold": [{"doc": f"g{at}", "text": text} for at, text in enumerate(record["gold"])],
        }
        for record in made
    ]


def expected(
    made: list[dict[str, Any]],
    covers: Callable[[str, str], bool],
    split: Callable[[str], list[str]] = lambda text: [text],
    key: Callable[[str], str] = plain,
) -> Edges:
    """Compare every unit with every item; items in which the same counts are one, the first."""
    found: Edges = {}
    for record in made:
        units = [part for text in record["retrieved"] for part in split(text)]
        items: dict[str, str] = {}
        for text in (part for whole in record["gold"] for part in split(whole)):
            if key(text):
                items.setdefault(key(text), text)
        found[record["query"]] = {
            (rank, item)
            for rank, unit in enumerate(units, start=1)
            for item in items.values()
            if covers(unit, item)
        }
    return found


def edges(result: findwell.Result, relation: str | None = None) -> Edges:
    """Return the edges of a result of one run."""
    (run,) = result.runs
    found = result.relations[run, relation or result.provenance.drawn_by]
    queries = found.queries.to_list()
    first: dict[int, str] = {}
    for item, doc in zip(found.member_item.tolist(), found.member_doc.to_list(), strict=True):
        first.setdefault(item, doc)
    rows: Edges = {query: set() for query in queries}
    columns = (found.edge_query, found.edge_rank, found.edge_item)
    for query, rank, item in zip(*(column.tolist() for column in columns), strict=True):
        rows[queries[query]].add((rank, first[item]))
    return rows

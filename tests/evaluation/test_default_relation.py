"""What is compared where nothing was chosen: places where the gold labels them, else ids."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError, InputError
from findwell.evaluation.inputs import default_relation
from findwell.evaluation.plan import grouped
from tests.sample import kinds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Findwell, Save

FILES = {
    "manual.md": "Charge the bike first. It takes four hours in all. Then ride it home.",
    "repairs.md": "Only a dealer may open the motor. Call one before you go there, please.",
}
HOURS = (23, 50)  # "It takes four hours in all."
DEALER = (0, 33)
SPANS = "spans(threshold=0.5)"
GOLD: list[dict[str, Any]] = [
    {
        "query": "q1",
        "question": "How many hours does it take?",
        "gold": [{"doc": "manual.md", "start": HOURS[0], "end": HOURS[1]}],
    },
    {
        "query": "q2",
        "question": "Who may open the motor?",
        "gold": [{"doc": "repairs.md", "start": DEALER[0], "end": DEALER[1]}],
    },
]


@dataclass
class Document:
    """The fields of LangChain's `Document`."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


def chunks(*, ids: bool = False, start: bool = True, folder: str = "") -> list[Document]:
    """Cut the files every 25 characters; the first chunk of each file holds no whole label."""
    return [
        Document(
            text[at : at + 25],
            {"source": folder + name} | ({"start_index": at} if start else {}),
            str(uuid.UUID(int=number)) if ids else None,
        )
        for name, text in FILES.items()
        for number, at in enumerate(range(0, len(text), 25), start=len(name))
    ]


def first_of_each(documents: list[Document]) -> Callable[[str], list[Document]]:
    """Return a retriever that finds the right file, but its first and last chunk only.

    Of q1's label 2 of 27 characters are found, of q2's 25 of 33. So the recall is 0.5 by places,
    where whole files would give 1.0 and ids 0.0.
    """

    def find(question: str) -> list[Document]:
        name = "manual.md" if "hours" in question else "repairs.md"
        mine = [each for each in documents if each.metadata["source"].endswith(name)]
        return [mine[0], mine[-1]]

    return find


def as_entries(documents: list[Document]) -> list[dict[str, Any]]:
    return [
        {
            "doc": each.id or f"c{number}",
            "source": each.metadata["source"],
            "start": each.metadata["start_index"],
            "end": each.metadata["start_index"] + len(each.page_content),
        }
        for number, each in enumerate(documents)
    ]


@pytest.mark.parametrize("ids", [False, True], ids=["no ids", "uuids"])
@pytest.mark.parametrize("options", [{}, {"id_from": "metadata.source"}], ids=["", "id_from"])
def test_places_of_a_retriever_are_compared(ids: bool, options: dict[str, Any]) -> None:
    find = first_of_each(chunks(ids=ids))
    result = findwell.evaluate(find, GOLD, ["recall@2"], **grouped(options))
    assert result["recall@2"] == 0.5
    assert result.values == findwell.evaluate(find, GOLD, "recall@2", by="spans").values
    assert result.matched_by == {"recall@2": SPANS}
    assert not result.findings


def test_every_input_is_compared_alike(save: Save, cli: Findwell) -> None:
    find = first_of_each(chunks())
    lists = {record["query"]: find(record["question"]) for record in GOLD}
    records = [{**record, "retrieved": as_entries(lists[record["query"]])} for record in GOLD]
    table = pl.DataFrame(
        [
            {"query": query, "doc": each.metadata["source"], "rank": rank}
            | {"start": (at := each.metadata["start_index"]), "end": at + len(each.page_content)}
            for query, listed in lists.items()
            for rank, each in enumerate(listed)
        ]
    )
    run = findwell.retrieve(find, {each["query"]: each["question"] for each in GOLD})
    runs: dict[str, Any] = {
        "objects": lists,
        "records": [{"query": each["query"], "retrieved": each["retrieved"]} for each in records],
        "frame": table,
        "retrieved": run,
        "iterator": iter([{"query": q, "retrieved": as_entries(d)} for q, d in lists.items()]),
        "jsonl": save("run.jsonl", "\n".join(map(json.dumps, records))),
    }
    for name, given in runs.items():
        assert findwell.evaluate(given, iter(GOLD), "recall@2")["recall@2"] == 0.5, name
    assert findwell.evaluate(records, measures="recall@2")["recall@2"] == 0.5
    path = save("run.jsonl", "\n".join(map(json.dumps, records)))
    gold = save("gold.jsonl", "\n".join(map(json.dumps, GOLD)))
    for arguments in ((path,), (path, "--gold", gold)):
        done = cli("score", *arguments, "-m", "recall@2", "--format", "csv")
        assert (done.code, ",recall@2,0.5," in done.out) == (0, True)
    (explained,) = findwell.explain(path, GOLD, "recall@2", query="q1")
    assert explained.calculations[0].value == 0
    compared = findwell.compare({"a": path, "b": lists}, gold=GOLD, measures=["recall@2"])
    assert dict(compared.matched_by) == {"recall@2": SPANS}
    many = [
        {**record, "query": f"{record['query']} {again}"}
        for again in range(5)
        for record in records
    ]
    tuned = findwell.tuning.tune({"a": many, "b": many}, None, "recall@2", engine="redis-rrf")
    assert tuned.fused.matched_by == SPANS


def test_a_run_without_places_is_refused_with_the_choice(cli: Findwell, save: Save) -> None:
    find = first_of_each(chunks(start=False))
    with pytest.raises(InputError, match="labels places in documents") as stop:
        findwell.evaluate(
            find, GOLD, "recall@2", reading=findwell.Reading(id_from="metadata.source")
        )
    for choice in ("--by ids", "--corpus", "add_start_index"):
        assert choice in stop.value.fix
    # each of the choices that it names gives the number of that choice
    documents = findwell.evaluate(
        find, GOLD, "recall@2", reading=findwell.Reading(id_from="metadata.source"), by="ids"
    )
    assert documents["recall@2"] == 1.0
    assert kinds(documents) == {
        "shared-id": 2,
        "duplicate-document": 2,
        "retriever-asked-again": 2,  # it was asked before the refusal, too
    }
    assert findwell.evaluate(find, GOLD, "recall@2", corpus=FILES)["recall@2"] == 0.5
    run = save("run.trec", "q1 Q0 manual.md 1 1 t\n")
    gold = save("gold.jsonl", "\n".join(map(json.dumps, GOLD)))
    done = cli("score", run, "--gold", gold)
    assert (done.code, done.out) == (2, "")
    assert "labels places" in done.err


def test_what_is_decided() -> None:
    places, chunked = frozenset({"places"}), frozenset({"places", "chunks"})
    none: frozenset[str] = frozenset()
    assert default_relation({"a": places}, none, None) == "ids"
    assert default_relation({"a": places, "b": places}, places, None) == "spans"
    assert default_relation({"a": none}, chunked, None) == "ids"  # its chunk ids mean something
    assert default_relation({"a": none}, places, {"d": "text"}) == "spans"
    assert default_relation({}, places, None) == "spans"  # nothing was retrieved
    with pytest.raises(InputError, match="this run has no places") as stop:
        default_relation({"a": places, "b": none}, places, None)
    assert stop.value.where == "run b"


def test_measures_that_name_their_relation_leave_nothing_to_decide() -> None:
    run = {"q1": ["manual.md"], "q2": ["manual.md"]}
    assert findwell.evaluate(run, GOLD, "recall@2/ids")["recall@2/ids"] == 0.5


def test_a_gold_that_was_read_without_its_places() -> None:
    find = first_of_each(chunks())
    with pytest.raises(InputError, match="was read without them"):
        findwell.evaluate(find, findwell.io.load_gold(GOLD), "recall@2")
    gold = findwell.io.load_gold(GOLD, texts=True)
    assert findwell.evaluate(find, gold, "recall@2")["recall@2"] == 0.5


def test_files_may_be_named_with_their_folders() -> None:
    """LangChain's loaders give the whole path as source, while labels name the file."""
    find = first_of_each(chunks(folder="/srv/docs/"))
    with pytest.raises(AlignError, match="no retrieved chunk lies in a document") as stop:
        findwell.evaluate(find, GOLD, "recall@2")
    assert "--read ids=stem" in stop.value.fix
    assert (
        findwell.evaluate(find, GOLD, "recall@2", reading=findwell.Reading(ids="stem"))["recall@2"]
        == 0.5
    )
    words = findwell.evaluate(
        find, GOLD, "recall@2/span-words", reading=findwell.Reading(ids="stem"), corpus=FILES
    )
    same = findwell.evaluate(first_of_each(chunks()), GOLD, "recall@2/span-words", corpus=FILES)
    assert words.values == same.values
    named = first_of_each(chunks(folder="x"))  # documents of other names, and no reason to see
    assert kinds(findwell.evaluate(named, GOLD, "recall@2")) == {"no-shared-document": 1}


def test_chunk_ids_that_are_one_for_a_file_are_refused_where_chunks_are_labelled() -> None:
    gold = {"q1": ["manual.md:25"], "q2": ["repairs.md:0"]}
    questions = {each["query"]: each["question"] for each in GOLD}
    find = first_of_each(chunks())
    with pytest.raises(AlignError, match="many chunks of a list have one id") as stop:
        findwell.evaluate(
            find,
            gold,
            "recall@2",
            queries=questions,
            reading=findwell.Reading(id_from="metadata.source"),
        )
    assert "chunk-to-doc" not in stop.value.fix
    # without it the chunks are named by their places, as the gold has them
    assert findwell.evaluate(find, gold, "recall@2", queries=questions)["recall@2"] == 0.5
    # and where whole files are labelled, it is right
    files = {"q1": ["manual.md"], "q2": ["repairs.md"]}
    whole = findwell.evaluate(
        find,
        files,
        "recall@2",
        queries=questions,
        reading=findwell.Reading(id_from="metadata.source"),
    )
    assert whole["recall@2"] == 1.0
    assert "shared-id" in kinds(whole)
    same = findwell.evaluate(
        find, files, "recall@2", queries=questions, reading=findwell.Reading(ids="chunk-to-doc::")
    )
    assert same["recall@2"] == 1.0


def test_hashes_on_one_side_and_uuids_on_the_other() -> None:
    texts = [Document(each.page_content) for each in chunks()]
    stored = [Document(each.page_content, id=each.id) for each in chunks(ids=True)]
    with pytest.raises(AlignError, match="hashes of texts, those of the gold are UUIDs") as stop:
        findwell.evaluate({"q1": texts}, {"q1": [stored[1]]}, "recall")
    assert "--by rouge" in stop.value.fix
    assert (
        findwell.evaluate({"q1": texts}, {"q1": [stored[1]]}, "recall", by="rouge")["recall"] == 1
    )
    with pytest.raises(AlignError, match="are UUIDs, those of the gold are hashes of texts"):
        findwell.evaluate({"q1": stored}, {"q1": [texts[1]]}, "recall")


def test_many_queries_that_share_no_id_are_no_verdict(cli: Findwell, save: Save) -> None:
    gold = {f"q{n}": [f"doc {n}"] for n in range(10)}
    run = {query: ["apple", "pear"] for query in gold}
    with pytest.raises(AlignError, match="share no document id"):
        findwell.compare({"a": run, "b": run}, gold=gold)
    assert findwell.evaluate(run, gold, "RR", by="ids")["RR"] == 0  # who insists gets the number
    few = {query: run[query] for query in list(run)[:9]}
    found = kinds(findwell.evaluate(few, gold, "RR", reading=findwell.Reading(missing="skip")))
    assert found == {"missing-query": 1, "no-shared-document": 1}
    paths = [save(f"{name}.json", json.dumps(run)) for name in "ab"]
    done = cli("compare", *paths, "--gold", save("gold.json", json.dumps(gold)))
    assert (done.code, done.out) == (2, "")


def test_init_on_a_gold_of_places(save: Save, cli: Findwell, tmp_path: Path) -> None:
    find = first_of_each(chunks())
    better = {each["query"]: chunks()[:3] if each["query"] == "q1" else find("") for each in GOLD}
    for name, lists in (("first", {e["query"]: find(e["question"]) for e in GOLD}), ("b", better)):
        records = [{"query": q, "retrieved": as_entries(docs)} for q, docs in lists.items()]
        save(f"{name}.jsonl", "\n".join(map(json.dumps, records)))
    save("gold.jsonl", "\n".join(map(json.dumps, GOLD)))
    assert cli("init", cwd=tmp_path).code == 0
    assert 'by = "spans"' in (tmp_path / "findwell.toml").read_text(encoding="utf-8")
    done = cli("compare", "-m", "recall@5", "--format", "json", cwd=tmp_path)
    assert done.code == 0
    assert f'"recall@5": "{SPANS}"' in done.out

"""Records of other tools, in every container they come in, give the numbers of findwell's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import AlignError, InputError
from findwell.io.read import load_gold, load_run, load_samples
from findwell.io.read.shapes import known_shapes, or_groups, shape_of
from tests.dialects.golden import cases
from tests.lazy import lazy
from tests.members import quick
from tests.sample import jsonl, kinds, score
from tests.strategies import by_measure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Findwell, Save

pd = lazy("pandas")

Records = list[dict[str, Any]]

# each query: its question, what was retrieved in rank order, the documents to be found
FACTS: dict[str, tuple[str, list[str], list[str]]] = {
    "7": ("how long?", ["d1", "d2", "d3"], ["d2"]),
    "8": ("how much?", ["d4", "d5"], ["d9", "d5"]),
    "9": ("says who, and why?", [], ["d1"]),
    "10": ('what is "it"?', ["d6", "d1"], ["d6", "d1"]),
}
RUN = {query: docs for query, (_, docs, _) in FACTS.items()}
GOLD = {query: docs for query, (_, _, docs) in FACTS.items()}


def _of(make: Callable[[str, str, list[str], list[str]], dict[str, Any]]) -> Records:
    return [make(query, *facts) for query, facts in FACTS.items()]


def _text(docs: list[str]) -> list[str]:
    return [f"The text of {doc}, and more." for doc in docs]


SAMPLES: dict[str, Records] = {
    "findwell": _of(
        lambda q, text, docs, gold: {"query": q, "question": text, "retrieved": docs, "gold": gold}
    ),
    "ragas": _of(
        lambda q, text, docs, gold: {
            "user_input": text,
            "retrieved_contexts": _text(docs),
            "reference_contexts": _text(gold),
            "reference": f"answer {q}",
            "response": "so",
        }
    ),
    "ragas with ids": _of(
        lambda q, text, docs, gold: {
            "user_input": text,
            "retrieved_contexts": _text(docs),
            "retrieved_context_ids": docs,
            "reference_context_ids": gold,
            "reference": f"answer {q}",
        }
    ),
    "ragas, older": _of(
        lambda q, text, docs, gold: {
            "question": text,
            "contexts": _text(docs),
            "reference_contexts": _text(gold),
            "ground_truth": f"answer {q}",
            "answer": "so",
        }
    ),
    "deepeval": _of(
        lambda q, text, docs, gold: {
            "input": text,
            "actual_output": "so",
            "expected_output": f"answer {q}",
            "retrieval_context": _text(docs),
            "context": _text(gold),
        }
    ),
    "continuous-eval": _of(
        lambda q, text, docs, gold: {
            "uid": q,
            "question": text,
            "retrieved_context": _text(docs),
            "ground_truth_context": _text(gold),
            "ground_truth_answers": [f"answer {q}"],
        }
    ),
    "autorag": _of(
        lambda q, text, docs, gold: {
            "qid": q,
            "query": text,
            "retrieval_gt": [[doc] for doc in gold],
            "generation_gt": [f"answer {q}"],
            "retrieved_ids": docs,
            "retrieved_contents": _text(docs),
            "retrieve_scores": [0.5 for _ in docs],
        }
    ),
    "liverag": _of(
        lambda q, text, docs, gold: {
            "qid": int(q),
            "question": text,
            "answer": f"answer {q}",
            "context": "some text",
            "document_ids": gold,
            "doc_ids": docs,
        }
    ),
}
BY_QUESTION = {"ragas", "ragas with ids", "ragas, older", "deepeval"}  # they have no ids
BY_TEXT = {"ragas", "ragas, older", "deepeval", "continuous-eval"}


def _expected(shape: str) -> dict[str, Any]:
    """Return the numbers of the plain dicts, under the names that the records' queries have."""
    names = {q: facts[0] if shape in BY_QUESTION else q for q, facts in FACTS.items()}
    run = {names[query]: docs for query, docs in RUN.items()}
    gold = {names[query]: docs for query, docs in GOLD.items()}
    return score(run, gold)


def _cells(records: Records, write: Callable[[Any], str]) -> list[dict[str, Any]]:
    return [
        {name: write(cell) if isinstance(cell, list) else cell for name, cell in record.items()}
        for record in records
    ]


def _table(separator: str, write: Callable[[Any], str]) -> Callable[[Records, Path], Any]:
    def save(records: Records, folder: Path) -> object:
        path = folder / "samples.txt"
        pd.DataFrame(_cells(records, write)).to_csv(path, sep=separator, index=False)
        return path

    return save


def _file(name: str, write: Callable[[Records], str]) -> Callable[[Records, Path], Any]:
    def save(records: Records, folder: Path) -> object:
        path = folder / name
        path.write_text(write(records), encoding="utf-8")
        return path

    return save


def _parquet(records: Records, folder: Path) -> object:
    path = folder / "samples.parquet"
    pl.DataFrame(records).write_parquet(path)
    return path


CONTAINERS: dict[str, Callable[[Records, Path], Any]] = {
    "list": lambda records, _: records,
    "polars": lambda records, _: pl.DataFrame(records),
    "pandas": lambda records, _: pd.DataFrame(records),
    "arrow": lambda records, _: pl.DataFrame(records).to_arrow(),
    "pandas records": lambda records, folder: pd.read_parquet(
        str(_parquet(records, folder))
    ).to_dict("records"),
    "json": _file("s.json", lambda records: json.dumps(records, indent=1)),
    "jsonl": _file("s.jsonl", jsonl),
    "jsonl of any name": _file("samples", jsonl),
    "tsv of JSON": _table("\t", json.dumps),
    "tsv of Python": _table("\t", repr),
    "csv of JSON": _table(",", json.dumps),
    "csv of Python": _table(",", repr),
    "parquet": _parquet,
}


@pytest.mark.parametrize("container", quick(CONTAINERS, "list", "pandas", "json", "parquet"))
@pytest.mark.parametrize("shape", SAMPLES)
def test_every_shape_in_every_container(shape: str, container: str, tmp_path: Path) -> None:
    data = CONTAINERS[container](SAMPLES[shape], tmp_path)
    expected = _expected(shape)
    assert score(data, None) == expected
    assert score(data, data) == expected  # run and gold apart
    result = findwell.evaluate(data, measures=["RR"])
    assert ("text-as-id" in kinds(result)) == (shape in BY_TEXT)
    questions = [text for text, _, _ in FACTS.values()]
    assert result.queries["question"].to_list() == questions
    if shape != "findwell":
        assert result.queries["reference"].to_list() == [f"answer {query}" for query in FACTS]


@pytest.mark.parametrize("shape", SAMPLES)
def test_a_shape_is_told_from_its_fields(shape: str) -> None:
    name = shape.split(" ", maxsplit=1)[0].rstrip(",")
    for role in ("run", "gold", "samples"):
        found = shape_of(SAMPLES[shape][0], role)
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize("name", ["query_id", "qid", "query", "id"])
def test_samples_of_ragas_keep_their_own_ids(name: str) -> None:
    record = {name: "x7", "user_input": "Why?", "retrieved_contexts": ["a b"], "reference": "c"}
    gold = record | {"reference_contexts": ["a b"]}
    result = findwell.evaluate([gold], measures="recall", by="exact")
    assert result.per_query["query"].to_list() == ["x7"]


def test_what_is_no_list_describes_the_query() -> None:
    result = findwell.evaluate(SAMPLES["liverag"], measures=["RR"], dialect="liverag")
    assert set(result.queries.columns) == {"query", "question", "reference", "context"}
    result = findwell.evaluate(SAMPLES["deepeval"], measures=["RR"])
    assert result.queries["actual_output"].to_list() == ["so"] * 4


def test_the_call_of_an_autorag_user() -> None:
    names = ["precision", "recall", "f1", "mrr", "map", "ndcg"]
    record = {"retrieval_gt": [["a", "b"], ["c"]], "retrieved_ids": ["a", "x"]}
    result = findwell.evaluate([record], measures=names, dialect="autorag")
    assert result["P"] == 0.5
    assert result["recall"] == 0.5
    example = {
        "retrieval_gt": [["test-1", "test-2"], ["test-3"]],
        "retrieved_ids": ["test-1", "pred-1", "test-2", "pred-3"],
    }
    worked = findwell.evaluate([example], measures=names, dialect="autorag")
    values = [row["value"] for row in worked.summary.iter_rows(named=True)]
    assert values == pytest.approx([0.5, 0.5, 0.5, 0.5, 5 / 12, 0.7039180890341347], abs=1e-12)


@pytest.mark.parametrize(
    "case", cases("autorag", "cast_qa_dataset.retrieval_gt"), ids=lambda case: case["id"]
)
def test_autorag_casts_its_ground_truth(case: Any) -> None:
    given, expected = case["inputs"]["retrieval_gt"], case["expected"]
    if expected == "ValueError":
        with pytest.raises(InputError, match="is not a ground truth"):
            or_groups(given)
    elif expected == "IndexError":
        assert or_groups(given) == []  # no gold, which findwell can say
    else:
        assert or_groups(given) == expected


def test_a_flat_ground_truth_of_autorag_is_one_group() -> None:
    records = [{"qid": "q", "retrieval_gt": ["a", "b"], "retrieved_ids": ["b"]}]
    for data in (records, pl.DataFrame(records)):
        assert findwell.evaluate(data, measures=["recall"])["recall"] == 1


@pytest.mark.parametrize("container", ["polars", "pandas", "parquet", "jsonl", "json", "list"])
def test_autorag_results_without_ids_follow_the_rows_of_qa(container: str, tmp_path: Path) -> None:
    samples = SAMPLES["autorag"]
    asked = ("qid", "query", "retrieval_gt", "generation_gt")
    qa = [{name: record[name] for name in asked} for record in samples]
    results = [{k: v for k, v in record.items() if k not in asked} for record in samples]
    for folder in ("qa", "results"):
        (tmp_path / folder).mkdir()
    gold = CONTAINERS[container](qa, tmp_path / "qa")
    run = CONTAINERS[container](results, tmp_path / "results")
    assert score(run, gold) == _expected("autorag")
    assert kinds(findwell.evaluate(run, gold, ["RR"]))["joined-by-position"] == 4
    with pytest.raises(InputError, match="carry no id, and they are 3 where the gold has 4"):
        score(results[:3], gold)
    with pytest.raises(InputError, match="more than 4 where the gold has 4"):
        score([*results, *results], gold)


def test_lists_without_ids_are_joined_by_position() -> None:
    run = [{"retrieved": ["a"]}, {"retrieved": ["x", "b"]}]
    gold = [{"gold": ["a"]}, {"gold": ["b"]}]
    result = findwell.evaluate(run, gold, ["RR"])
    assert by_measure(result)["RR"] == {"1": 1.0, "2": 0.5}
    assert kinds(result) == {}
    named = [{"query": "first", "gold": ["a"]}, {"query": "second", "gold": ["b"]}]
    assert by_measure(findwell.evaluate(run, named, ["RR"]))["RR"] == {"first": 1.0, "second": 0.5}


ASKED: Records = [
    {"question": "how long?", "retrieved": ["x", "a"], "gold": ["a"]},
    {"question": "how  much?\n", "retrieved": ["b"], "gold": ["b"]},
    {"question": "how long?", "retrieved": [], "gold": ["c"]},
    {"question": "why?", "retrieved": ["x", "y", "d"], "gold": ["d"]},
]
RANKS = {"how long?": 0.5, "how much?": 1.0, "how long? (2)": 0.0, "why?": 1 / 3}


def _side(name: str, order: list[int]) -> Records:
    return [{key: ASKED[at][key] for key in ("question", name)} for at in order]


@pytest.mark.parametrize("container", ["list", "polars", "jsonl", "json", "csv of JSON", "parquet"])
def test_records_without_ids_are_joined_by_their_questions(container: str, tmp_path: Path) -> None:
    """Whatever their order, and when one side has ids beside the questions."""
    orders = [[0, 1, 2, 3], [3, 0, 1, 2], [1, 0, 3, 2]]
    given = {
        (name, at): CONTAINERS[container](_side(name, order), _folder(tmp_path / f"{name}{at}"))
        for name in ("retrieved", "gold")
        for at, order in enumerate(orders)
    }
    for one, other in [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1)]:
        result = findwell.evaluate(given["retrieved", one], given["gold", other], ["RR"])
        assert by_measure(result)["RR"] == RANKS
    ids = dict(zip(RANKS, "abcd", strict=True))
    named = [{"query": "abcd"[at], **_side("gold", [at])[0]} for at in (3, 0, 2, 1)]
    gold = CONTAINERS[container](named, _folder(tmp_path / "named"))
    result = findwell.evaluate(given["retrieved", 1], gold, ["RR"])
    assert by_measure(result)["RR"] == {ids[asked]: value for asked, value in RANKS.items()}
    assert kinds(result)["joined-by-question"] == 4
    named = [{"query": "abcd"[at], **_side("retrieved", [at])[0]} for at in (3, 0, 2, 1)]
    run = CONTAINERS[container](named, _folder(tmp_path / "named run"))
    assert by_measure(findwell.evaluate(run, given["gold", 2], ["RR"]))["RR"] == RANKS


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_questions_join_with_ids_that_are_questions() -> None:
    gold = {each["question"].strip().replace("  ", " "): each["gold"] for each in ASKED[1:]}
    run = _side("retrieved", [3, 1, 0])
    expected = {"how much?": 1.0, "how long?": 0.0, "why?": 1 / 3}
    assert by_measure(findwell.evaluate(run, gold, ["RR"]))["RR"] == expected | {"how long?": 0.0}
    flipped = {asked: docs["retrieved"] for asked, docs in zip(gold, ASKED[1:], strict=True)}
    assert (
        by_measure(findwell.evaluate(flipped, _side("gold", [3, 1, 2]), ["RR"]))["RR"] == expected
    )


def test_different_questions_are_never_paired() -> None:
    with pytest.raises(AlignError, match="share no query"):
        findwell.evaluate(_side("retrieved", [0, 1]), _side("gold", [3]), ["RR"])
    result = findwell.evaluate(_side("retrieved", [0, 1]), _side("gold", [1, 3]), ["RR"])
    assert by_measure(result)["RR"] == {"how much?": 1.0, "why?": 0.0}
    assert kinds(result) == {"extra-query": 1, "missing-query": 1}
    with pytest.raises(AlignError, match="share no query"):
        findwell.compare({"a": ASKED[:2], "b": ASKED[3:]}, measures=["RR"])
    numbered = [{"query": "1", **each} for each in ASKED[:2]]
    with pytest.raises(AlignError, match=r"'1' is not the same question.*how long.*how  much"):
        findwell.compare({"a": numbered[:1], "b": numbered[1:]}, measures=["RR"])


@pytest.mark.parametrize("write", [json.dumps, repr], ids=["JSON", "Python"])
@pytest.mark.parametrize("container", ["list", "jsonl", "json", "tsv", "pandas"])
def test_the_script_of_liverag_on_files(
    container: str, write: Callable[[Any], str], tmp_path: Path
) -> None:
    (case,) = cases("liverag-context-recall", "scripts/evaluate.py (TSV in, TSV out)")
    given = {}
    for side in ("results", "references"):
        (tmp_path / side).mkdir()
        keep = _table("\t", write) if container == "tsv" else CONTAINERS[container]
        given[side] = keep(case["inputs"][side], tmp_path / side)
    names = ["recall", "precision", "f1", "nDCG@10"]
    result = findwell.evaluate(given["results"], given["references"], names, dialect="liverag")
    expected = case["expected"]["aggregated"]
    for name, key in (("recall", "avg_context_recall"), ("nDCG@10", "ndcg_10")):
        assert result[name] == pytest.approx(expected[key], abs=1e-9)


@pytest.mark.parametrize("container", ["list", "jsonl", "tsv of Python"])
def test_the_last_reference_of_liverag_wins(container: str, tmp_path: Path) -> None:
    references = [
        {"qid": 1, "document_ids": ["a"]},
        {"qid": 2, "document_ids": ["b"]},
        {"qid": 1, "document_ids": ["c"]},
    ]
    gold = CONTAINERS[container](references, tmp_path)
    result = findwell.evaluate({"1": ["c"], "2": ["b"]}, gold, ["recall"], dialect="liverag")
    assert result["recall"] == 1
    assert kinds(result)["replaced-gold"] == 1


def test_llama_index(save: Save) -> None:
    data = {
        "queries": {query: text for query, (text, _, _) in FACTS.items()},
        "corpus": {"d1": "text"},
        "relevant_docs": GOLD,
    }
    for gold in (
        data,
        save("a.json", json.dumps(data)),
        save("b.json", json.dumps(data, indent=1)),
    ):
        assert score(RUN, gold) == score(RUN, GOLD)
        assert load_gold(gold).queries["question"].to_list() == [t for t, _, _ in FACTS.values()]
    with pytest.raises(InputError, match="'relevant_docs' holds a list"):
        load_gold({"queries": {}, "relevant_docs": []})


@pytest.fixture
def beir(save: Save) -> Path:
    rows = [f"{query}\t{doc}\t1" for query, docs in GOLD.items() for doc in docs]
    save("data/corpus.jsonl", jsonl([{"_id": "d1", "title": "", "text": "x"}]))
    questions = [{"_id": q, "text": text, "metadata": {}} for q, (text, _, _) in FACTS.items()]
    save("data/queries.jsonl", jsonl([*questions, {"_id": "other", "text": "?"}]))
    return save("data/qrels/test.tsv", "\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")


def test_beir(beir: Path, save: Save) -> None:
    for gold in (beir, beir.parent.parent, str(beir.parent.parent) + "/"):
        assert score(RUN, gold) == score(RUN, GOLD)
        assert load_gold(gold).queries["question"].to_list() == [t for t, _, _ in FACTS.values()]
    save("data/qrels/train.tsv", "query-id\tcorpus-id\tscore\n7\td1\t1\n")
    assert kinds(findwell.evaluate(RUN, beir.parent.parent, ["RR"]))["unused-split"] == 1
    beir.rename(beir.with_name("dev.tsv"))
    with pytest.raises(InputError, match=r"several judgements: dev\.tsv, train\.tsv"):
        load_gold(beir.parent.parent)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is a directory"):
        load_gold(tmp_path)


UNKNOWN: dict[str, tuple[str, dict[str, Any], str]] = {
    "nothing known": ("run", {"vector": [1]}, "found only vector.*known shapes: findwell, ragas"),
    "half a ragas record": (
        "samples",
        {"user_input": "?", "retrieved_contexts": ["a"], "response": "so"},
        r"no field 'gold'.*ragas \(3 of its 16 fields; it needs reference_context_ids or",
    ),
    "a typo": ("run", {"query": "q", "retreived": ["a"]}, "did you mean retrieved"),
    "a gold file": ("run", {"query": "q", "reference": "r", "gold": ["a"]}, "fix: closest shapes"),
    "a near name": ("run", {"qid": "q", "retrieved_id": ["a"]}, "closest shapes: .*autorag"),
    "nothing at all": ("gold", {}, "found only nothing"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_an_unknown_shape_is_told_what_comes_close(case: str, save: Save) -> None:
    role, record, message = UNKNOWN[case]
    load = {"run": load_run, "gold": load_gold, "samples": load_samples}[role]
    for data in (
        [record],
        save("s.jsonl", jsonl([record, record])),
        save("s", json.dumps([record])),
    ):
        with pytest.raises(InputError, match=f"(?s){message}"):
            load(data)  # type: ignore[operator]


def test_a_table_of_unknown_columns_names_them(save: Save) -> None:
    path = save("s.tsv", "qid\tvector\tthing\n1\t2\t3\n")
    with pytest.raises(InputError, match="found 'qid', 'vector', 'thing'"):
        load_gold(path)
    with pytest.raises(InputError, match="found only qid, vector, thing"):
        load_samples(path)


RAGGED: dict[str, tuple[dict[str, Any], str]] = {
    "scores": (
        {"qid": "q", "retrieved_ids": ["a", "b"], "retrieve_scores": [1.0]},
        "'retrieved_ids' has 2 entries and 'retrieve_scores' has 1",
    ),
    "a number": ({"qid": "q", "retrieved_ids": 5}, "is of type int, not a list"),
    "a text": ({"qid": "q", "doc_ids": "d1, d2"}, "is of type str, not a list"),
    "half a list": ({"qid": "q", "doc_ids": "['d1', 'd2'"}, "the text in 'doc_ids' is not a list"),
    "no commas": ({"qid": "q", "doc_ids": "['d1' 'd2']"}, "has no commas"),
    "a call": ({"qid": "q", "doc_ids": "[print(1)]"}, "the text in 'doc_ids' is not a list"),
    "a float": ({"qid": "q", "doc_ids": [1.5]}, "'1.5' is not an id"),
    "no query": ({"qid": None, "doc_ids": ["a"]}, "'None' is not an id"),
}


@pytest.mark.parametrize("case", RAGGED)
def test_what_is_wrong_with_a_record_is_said_with_its_place(case: str, save: Save) -> None:
    record, message = RAGGED[case]
    good = {"qid": "0"} | {name: [1] for name in record if name != "qid"}
    path = save("run.jsonl", jsonl([good, record]))
    with pytest.raises(InputError, match=message) as error:
        load_run(path).collect()
    assert error.value.where == f"{path}, line 2"
    assert error.value.fix
    with pytest.raises(InputError, match=message) as error:
        load_run([good, record])
    assert error.value.where == "run, record 2"


@pytest.mark.parametrize("cell", ["['a'", "a, b", "None", "nan", "{'a': 1}", "a"])
def test_a_wrong_literal_in_a_cell(cell: str, cli: Findwell, save: Save) -> None:
    gold = save("gold.tsv", f"qid\tquestion\tdocument_ids\n1\t?\t['a']\n2\t?\t{cell}\n")
    with pytest.raises(InputError, match="the text in 'document_ids' is not a list") as error:
        load_gold(gold)
    assert error.value.where == f"{gold}, line 3"
    run = save("run.json", '{"1": ["a"], "2": ["a"]}')
    assert cli("score", run, "--gold", gold).code == 2
    done = cli(
        "score", run, "--gold", gold, "--read", "skip_bad=yes", "-m", "RR", "--format", "json"
    )
    assert done.code == 0
    found = {entry["kind"]: entry for entry in done.answer["findings"]}
    assert found["skipped-record"]["count"] == 1
    assert "line 3" in found["skipped-record"]["examples"][0]


PLUGIN = """
from findwell.plugins import Shape, register_shape

register_shape(Shape("mine", query=("key",), retrieved=("hits",), gold=("truth",)))
"""


@pytest.mark.parametrize("group", ["findwell.formats", "findwell.shapes"])
def test_a_plugin_adds_a_shape(group: str, tmp_path: Path) -> None:
    (tmp_path / "thirdparty.py").write_text(PLUGIN)
    info = tmp_path / "thirdparty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nmine = thirdparty\n")
    code = (
        "import findwell\n"
        'data = [{"key": "q", "hits": ["a", "b"], "truth": ["b"]}]\n'
        'print(findwell.evaluate(data, measures=["RR"])["RR"])'
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "0.5"


def test_the_shapes_have_distinct_lists() -> None:
    for side in ("retrieved", "gold"):
        # the shape of several searches has findwell's own gold
        shapes = [
            shape for shape in known_shapes().values() if not (shape.searches and side == "gold")
        ]
        names = [name for shape in shapes for name in getattr(shape, side)]
        assert len(names) == len(set(names))

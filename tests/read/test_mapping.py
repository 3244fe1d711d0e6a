"""Fields of other names: one mapping for every container, spelled alike wherever it is given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

import findwell
from findwell import Reading
from findwell.core.errors import InputError, OptionError
from findwell.io.read import load_gold, load_run, load_samples
from findwell.io.read.mapping import fields_for
from tests.lazy import lazy
from tests.strategies import by_measure

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

pd = lazy("pandas")

FACTS: dict[str, tuple[str, list[str], list[str]]] = {
    "7": ("how long?", ["d1", "d2", "d3"], ["d2"]),
    "8": ("how much?", ["d4", "d5"], ["d9", "d5"]),
    "9": ("says who?", [], ["d1"]),
}
FIELDS = {"run.hits": "retrieved", "gold.truth": "gold", "run.key": "query", "gold.key": "query"}
EXPECTED = {"RR": (1 / 2 + 1 / 2 + 0) / 3, "recall": (1 + 1 / 2 + 0) / 3}
MEASURES = list(EXPECTED)


def _samples() -> list[dict[str, Any]]:
    return [
        {"key": key, "asked": text, "hits": docs, "truth": gold, "topic": "a"}
        for key, (text, docs, gold) in FACTS.items()
    ]


def _side(*names: str) -> list[dict[str, Any]]:
    return [{name: record[name] for name in ("key", "asked", *names)} for record in _samples()]


def _values(result: findwell.Result) -> dict[str, Any]:
    return {name: result[name] for name in MEASURES}


def _json(records: list[dict[str, Any]], path: Path) -> Path:
    path.write_text(json.dumps(records))
    return path


def _lines(records: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _csv(records: list[dict[str, Any]], path: Path) -> Path:
    cells = [
        {name: str(value) if isinstance(value, list) else value for name, value in record.items()}
        for record in records
    ]
    pl.DataFrame(cells).write_csv(path)
    return path


def _parquet(records: list[dict[str, Any]], path: Path) -> Path:
    pl.DataFrame(records).write_parquet(path)
    return path


CONTAINERS: dict[str, Any] = {
    "records": lambda records, _: records,
    "polars": lambda records, _: pl.DataFrame(records),
    "pandas": lambda records, _: pd.DataFrame(records),
    "arrow": lambda records, _: pa.Table.from_pylist(records),
    "json": lambda records, folder: _json(records, folder / "some.json"),
    "jsonl": lambda records, folder: _lines(records, folder / "some.jsonl"),
    "csv": lambda records, folder: _csv(records, folder / "some.csv"),
    "parquet": lambda records, folder: _parquet(records, folder / "some.parquet"),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_takes_mapped_fields(container: str, tmp_path: Path) -> None:
    make, reading = CONTAINERS[container], Reading(fields=FIELDS)
    both = findwell.evaluate(make(_samples(), tmp_path), None, MEASURES, reading=reading)
    assert _values(both) == pytest.approx(EXPECTED)
    (tmp_path / "run").mkdir()
    run, gold = make(_side("hits"), tmp_path / "run"), make(_side("truth"), tmp_path)
    apart = findwell.evaluate(run, gold, MEASURES, reading=reading)
    assert _values(apart) == pytest.approx(EXPECTED)
    assert list(by_measure(both)["RR"]) == list(FACTS)


def test_several_runs_by_name_have_mapped_fields() -> None:
    records = [{**record, "hits": record["hits"][::-1]} for record in _side("hits")]
    runs = {"first": _side("hits"), "second": records}
    gold = {key: wanted for key, (_, _, wanted) in FACTS.items()}
    found = findwell.evaluate(runs, gold, "RR", reading=Reading(fields=FIELDS))
    assert list(found.runs) == ["first", "second"]
    assert found["first", "RR"] == pytest.approx(1 / 3)


def test_a_field_that_is_not_mapped_keeps_its_usual_meaning() -> None:
    record = {"user_input": "?", "retrieved_contexts": ["a", "b"], "best": ["b"]}
    fields = {"gold.best": "gold_texts"}
    found = findwell.evaluate([record], None, "RR", reading=Reading(fields=fields))
    assert found["RR"] == 0.5
    samples = load_samples([record], fields=fields, texts=True)
    assert samples.gold.member_facts is not None
    assert samples.run.collect().rows["text"].to_list() == ["a", "b"]


def test_rules_of_a_tool_stay_where_its_field_is_not_mapped() -> None:
    """AutoRAG's flat list is one group of documents of which any will do."""
    record = {"number": 1, "retrieval_gt": ["a", "b"], "retrieved_ids": ["a"]}
    kept = Reading(fields={"gold.number": "query", "run.number": "query"})
    mapped = Reading(fields={"gold.retrieval_gt": "gold"})
    assert findwell.evaluate([record], None, "recall", reading=kept)["recall"] == 1
    assert findwell.evaluate([record], None, "recall", reading=mapped)["recall"] == 0.5


def test_a_mapped_field_is_all_that_counts_for_its_meaning() -> None:
    """A field of the usual name is neither read instead of it nor in addition, but reported."""
    records = [
        {"query": "1", "retrieved": ["a"], "gold": ["a"], "truth": ["b"]},
        {"query": "2", "retrieved": ["a"], "gold": ["a"], "truth": None},
    ]
    fields = {"gold.truth": "gold"}
    for data in (records, pl.DataFrame(records), records[:1], pl.DataFrame(records[:1])):
        found = findwell.evaluate(data, None, "recall", reading=Reading(fields=fields))
        assert by_measure(found)["recall"]["1"] == 0
        named = [each for each in found.findings if each.kind == "two-names"]
        assert [each.examples for each in named] == [("gold",)]
    assert found["recall"] == 0


def test_fields_inside_objects_are_paths(tmp_path: Path) -> None:
    records = [
        {"vars": {"context": docs, "q": text, "want": {"ids": gold}}}
        for text, docs, gold in FACTS.values()
    ]
    fields = {
        "run.vars.context": "retrieved",
        "gold.vars.want.ids": "gold",
        "gold": {"vars": {"q": "question"}},
    }
    for name in ("records", "polars", "json", "jsonl", "parquet"):
        data = CONTAINERS[name](records, tmp_path)
        found = findwell.evaluate(data, None, MEASURES, reading=Reading(fields=fields))
        assert _values(found) == pytest.approx(EXPECTED)
        assert list(by_measure(found)["RR"]) == [text for text, _, _ in FACTS.values()]


def test_tables_with_one_row_per_document(tmp_path: Path) -> None:
    run = [
        {"frage": key, "treffer": doc, "wert": -nth}
        for key, (_, docs, _) in FACTS.items()
        for nth, doc in enumerate(docs)
    ]
    gold = [
        {"frage": key, "treffer": doc, "note": 1}
        for key, (_, _, docs) in FACTS.items()
        for doc in docs
    ]
    fields = {
        "run": {"frage": "query", "treffer": "doc", "wert": "score"},
        "gold": {"frage": "query", "treffer": "doc", "note": "grade"},
    }
    (tmp_path / "run").mkdir()
    for name in ("polars", "pandas", "csv", "parquet"):
        given = CONTAINERS[name](run[::-1], tmp_path / "run"), CONTAINERS[name](gold, tmp_path)
        found = findwell.evaluate(*given, MEASURES, reading=Reading(fields=fields))
        assert _values(found) == pytest.approx(EXPECTED)
    for name in ("records", "json", "jsonl"):
        found = findwell.evaluate(
            pl.DataFrame(run),
            CONTAINERS[name](gold, tmp_path),
            MEASURES,
            reading=Reading(fields=fields),
        )
        assert _values(found) == pytest.approx(EXPECTED)


def test_a_mapped_column_wins_over_one_of_the_usual_name() -> None:
    table = pl.DataFrame({"query_id": ["x"], "doc_id": ["y"], "mine": ["1"], "chunk": ["a"]})
    fields = {"gold.mine": "query", "gold.chunk": "doc"}
    assert load_gold(table, fields=fields).rows().select("query", "doc").row(0) == ("1", "a")


@pytest.mark.parametrize(
    ("name", "fields"), [("hits", {"run.hits": "retrieved"}), ("retrieved", None)]
)
def test_two_columns_of_one_name_are_an_error(
    name: str, fields: dict[str, str] | None, tmp_path: Path
) -> None:
    path = tmp_path / "some.csv"
    path.write_text(f"query,{name},{name}\n1,\"['a']\",\"['b']\"\n")
    with pytest.raises(InputError, match=f"'{name}' occurs more than once"):
        load_run(path, fields=fields)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_mapped_field_that_is_not_there(container: str, tmp_path: Path) -> None:
    data = CONTAINERS[container](_side("truth"), tmp_path)
    with pytest.raises(
        InputError, match=r"no field 'trut'.*mapped to 'gold'; found key, asked, tr"
    ) as error:
        load_gold(data, fields={"gold.trut": "gold"})
    assert error.value.fix == "did you mean truth?"


def test_the_error_about_unknown_fields_says_what_to_type() -> None:
    with pytest.raises(InputError, match="found only key, asked, hits, truth, topic") as error:
        findwell.evaluate(_samples())
    assert error.value.fix.startswith(
        "if hits and truth hold them: --map run.hits=retrieved --map gold.truth=gold "
        '(Reading(fields={"run.hits": "retrieved", "gold.truth": "gold"}))'
    )
    with pytest.raises(InputError) as error:
        load_gold([{"id": 1, "question": "?", "answer": "so", "best_chunks": ["a"]}])
    assert "--map gold.best_chunks=gold" in error.value.fix
    with pytest.raises(InputError) as error:
        load_run([{"vars": {"q": "?", "snippets": ["a", "b"]}}])
    assert "--map run.vars.snippets=retrieved" in error.value.fix


def test_pairs_of_a_document_and_a_number_are_no_group() -> None:
    record = {"query": "1", "chunks": [["guide", 0], ["guide", 3]]}
    with pytest.raises(InputError, match="holds a text and a number"):
        load_gold([record], fields={"gold.chunks": "gold"})
    with pytest.raises(InputError, match="holds a text and a number"):
        load_gold(
            pl.DataFrame([{"query": "1", "chunks": "[['guide', 0]]"}]),
            fields={"gold.chunks": "gold"},
        )


@pytest.mark.parametrize(
    ("fields", "what", "fix"),
    [
        ({"truth": "gold"}, "not ROLE.FIELD=MEANING", "--map gold.correct_chunks=gold"),
        ({"golden.truth": "gold"}, "unknown role of a field 'golden'", "did you mean gold?"),
        ({"gold.truth": "golds"}, "unknown meaning of a field of the gold", "did you mean gold"),
        ({"run.truth": "gold"}, "not a meaning of a field of the run", "--map gold.truth=gold"),
        ({"gold.a": "gold", "gold.b": "gold"}, "two fields", "map one of them"),
        ({"gold.a": "gold", "run.a": "retrieved"}, "two meanings", "map one of them"),
        ({"gold.a": 3}, "not ROLE.FIELD=MEANING", "--map"),
        (["gold.a=gold"], "fields is of type list", "give a dict"),
    ],
)
def test_a_mapping_that_cannot_be_meant(fields: Any, what: str, fix: str) -> None:
    with pytest.raises(OptionError, match=what) as error:
        fields_for(fields, "run", "gold")
    assert fix in error.value.fix


def test_the_command_line_and_the_file(
    cli: Findwell, save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = save("run.jsonl", "".join(json.dumps(each) + "\n" for each in _side("hits")))
    gold = save("gold.json", json.dumps(_side("truth")))
    asked = ["score", run, "--gold", gold, "-m", "RR", "--format", "csv"]
    typed = [word for name, meaning in FIELDS.items() for word in ("--map", f"{name}={meaning}")]
    wanted = cli(*asked, *typed)
    assert wanted.out.splitlines()[1].startswith("run,RR,0.3333")
    save(
        "findwell.toml",
        '[read]\nrun.hits = "retrieved"\nrun.key = "query"\n'
        '[read.gold]\nkey = "query"\ntruth = "gold"\n',
    )
    monkeypatch.chdir(tmp_path)
    assert cli(*asked).out == wanted.out


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        ("gold=gold", "write --map gold.NAME=VALUE"),
        ("hits=retrieved", "write --map run.hits=retrieved"),
        ("hits=x", "unknown setting 'hits' of --read or --map"),
        ("run.hits=retreived", "did you mean retrieved"),
        ("run.hits=gold", "--map gold.hits=gold"),
    ],
)
def test_what_is_typed_wrong_is_explained(typed: str, what: str, cli: Findwell, save: Save) -> None:
    run = save("run.jsonl", json.dumps(_side("hits")[0]) + "\n")
    said = cli("score", run, "--gold", run, "--map", typed)
    assert said.code == 2
    assert what in said.err


def test_other_commands_take_the_same_mapping(cli: Findwell, save: Save) -> None:
    run = save("run.jsonl", "".join(json.dumps(each) + "\n" for each in _side("hits")))
    gold = save("gold.json", json.dumps(_side("truth")))
    typed = [word for name, meaning in FIELDS.items() for word in ("--map", f"{name}={meaning}")]
    assert cli("check", run, "--gold", gold, *typed).code == 0
    assert cli("labels", "agree", gold, gold, *typed).code == 0
    own = ["--map", "run.hits=retrieved", "--map", "run.key=query"]  # it reads runs only
    fused = cli("fuse", run, run, "--engine", "elasticsearch-rrf", *own)
    assert fused.out.splitlines()[0].startswith("7 Q0 d1 1 ")
    on_spark = cli("score", run, "--gold", gold, "--on", "spark", *typed)
    assert "--map is not for --on spark" in on_spark.err

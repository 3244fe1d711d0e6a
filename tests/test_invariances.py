"""What must not change a value: for every measure, over every relation, in every dialect.

The data are untidy on purpose, as real ones are: chunks that overlap and share their document,
texts that come back in one list and in many, blank chunks, empty lists, graded gold with
alternatives and quotes of the same document. A measure, a relation or a dialect is tested here by
existing.
"""

from __future__ import annotations

import functools
import json
import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core import data
from findwell.core.measure import COUNTED_UNITS, Budget
from findwell.core.texts.sentences import find_splitter, split
from findwell.core.texts.words import tidy
from findwell.measures.dialects import known_dialects
from findwell.relations.match import known_matchers
from tests.members import quick

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from findwell import Measure

Records: TypeAlias = list[dict[str, Any]]
Values: TypeAlias = dict[tuple[str, str], float | None]  # query and measure → value

SENTENCES = (
    "Press the red button twice.",
    "Charging takes four hours.",
    "The battery lasts two days in Oslo.",
    "Press the green button once.",
    "Dr. Meyer wrote the manual in 2019.",
    "It is warm.",
    "The light turns green when charging ends.",
    "Never open the case.",
)
SEEDS = (1, 2, 3)
ORDER_NOISE = 1e-12  # sums in another order
BY_ID = frozenset({"ids"})
BY_PLACE = frozenset({"spans", "span-words"})
RELATIONS = tuple(known_matchers())
DIALECTS = tuple(known_dialects())
each_dialect = pytest.mark.parametrize("dialect", quick(DIALECTS, "findwell"))
# findwell's own numbers with all data, those of every other dialect with one of them in turn
SEEDED = [("findwell", seed) for seed in SEEDS] + [
    (name, SEEDS[at % len(SEEDS)])
    for at, name in enumerate(each for each in DIALECTS if each != "findwell")
]
each_dialect_and_seed = pytest.mark.parametrize(
    ("dialect", "seed"),
    [
        pytest.param(*each, marks=() if each == ("findwell", 1) else pytest.mark.slow)
        for each in SEEDED
    ],
)


def untidy(seed: int, dialect: str) -> Records:
    """Make records; dialects that refuse repetitions get none."""
    pick = random.Random(seed)
    strict = known_dialects()[dialect].policy.duplicates == "error"
    documents = {
        name: " ".join(pick.choices(SENTENCES, k=6)) for name in ("manual.md", "faq.md", "notes")
    }

    def chunk() -> dict[str, Any]:
        doc = pick.choice(sorted(documents))
        text = documents[doc]
        start = pick.randrange(0, len(text) - 30)
        start = text.rfind(" ", 0, start) + 1
        end = text.find(".", start + pick.randrange(5, 70)) + 1 or len(text)
        return {"doc": doc, "text": text[start:end], "start": start, "end": end}

    chunks = [chunk() for _ in range(9)]
    records = []
    for number in range(6):
        listed = pick.choices(chunks, k=pick.randrange(1, 8))
        golds = pick.choices(chunks, k=pick.randrange(1, 4))
        if strict:
            listed, golds = _told_separate_calls(listed), _told_separate_calls(golds)
        elif number % 3 == 1:
            listed.insert(1, {"doc": "faq.md", "text": " ", "start": 0, "end": 1})
        gold: list[Any] = [each | {"grade": pick.choice((0, 1, 2, 3))} for each in golds]
        gold[0]["grade"] = pick.choice((1, 2))
        if not strict and len(gold) > 1 and number % 2:
            gold = [gold[:2], *gold[2:]]
            gold[0][1]["grade"] = gold[0][0]["grade"]
        reference = f"{pick.choice(SENTENCES)} {pick.choice(SENTENCES)}"
        records.append(
            {
                "query": f"q{number}",
                "question": pick.choice(SENTENCES).replace(".", "?"),
                "reference": reference,
                "retrieved": [] if number == 4 else listed,
                "gold": gold,
            }
        )
    return records


def _told_separate_calls(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep one chunk of a document, and one of equal texts."""
    by_text = {tidy(pl.Series([each["text"]]), "plain")[0]: each for each in chunks}
    return list({each["doc"]: each for each in by_text.values()}.values())


def _letters(texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Embed texts by their letters."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return np.array([[1.0 + text.lower().count(letter) for letter in alphabet] for text in texts])


@functools.cache
def _applies(relation: str, dialect: str) -> bool:
    """Tell whether the data are there with which a dialect splits sentences."""
    splitter = known_dialects()[dialect].relations.get(relation, {}).get("splitter")
    if splitter is None:
        return True
    try:
        split(["One. Two."], find_splitter(splitter))
    except findwell.FindwellError:
        return False
    return True


@functools.cache
def measures(relations: tuple[str, ...] = RELATIONS) -> list[Measure]:
    # what needs the dates and marks of a corpus depends on ids
    classes = [
        cls
        for cls in findwell.plugins.known_measures().values()
        if cls().facts() <= {*COUNTED_UNITS, "copies"}
    ]
    plain = [cls() for cls in classes]
    cut = [cls(k=2) for cls in classes if cls.at == "k"]
    budgets = [Budget(20, "tokens"), Budget(120, "chars")]
    spent = [cls(k=k) for cls in classes if cls.at == "k" for k in budgets]
    return [
        replace(each, relation=name)
        for each in (*plain, *cut, *spent)
        for name in relations
        if not (isinstance(each.k, Budget) and known_matchers()[name].about_list)
    ]


OPTIONS: dict[str, Any] = {"judge": "local:text", "embedder": _letters, "level": None}


def values(
    given: Any,
    dialect: str,
    relations: Sequence[str] = RELATIONS,
    gold: Any = None,
    **options: Any,
) -> Values:
    wanted = measures(tuple(name for name in relations if _applies(name, dialect)))
    result = findwell.evaluate(given, gold, wanted, dialect=dialect, **(OPTIONS | options))
    return values_of(result, result.runs[0])


@functools.cache
def measured(seed: int, dialect: str) -> tuple[Records, Values]:
    """Return records, and the values they must have however they come."""
    records = untidy(seed, dialect)
    return records, values(records, dialect)


def values_of(result: findwell.Result, run: str) -> Values:
    one_of = {measure.relation: measure for measure in result.measures}
    queries = {
        name: result.relation(run, measure).queries.to_list() for name, measure in one_of.items()
    }
    found = {}
    for measure in result.measures:
        name = str(measure)
        given = result.arrays[run, measure].tolist()
        for query, value in zip(queries[measure.relation], given, strict=True):
            found[query, name] = None if math.isnan(value) else value
    return found


def same(found: Values, expected: Values) -> None:
    assert found.keys() == expected.keys()
    wrong = {
        key: (value, expected[key])
        for key, value in found.items()
        if (value is None) != (expected[key] is None)
        or (value is not None and abs(value - (expected[key] or 0.0)) > ORDER_NOISE)
    }
    assert not wrong


def renamed(records: Records, name: Callable[[str, int], str]) -> Records:
    """Give every entry another document id: of its old one and of its number."""
    number = iter(range(10**6))

    def entry(given: Any) -> Any:
        if isinstance(given, list):
            return [entry(each) for each in given]
        return given | {"doc": name(given["doc"], next(number))}

    return [
        record | {side: [entry(each) for each in record[side]] for side in ("retrieved", "gold")}
        for record in records
    ]


@each_dialect_and_seed
def test_names_of_documents(dialect: str, seed: int) -> None:
    records, expected = measured(seed, dialect)
    other = renamed(records, lambda doc, _: f"<{doc[::-1]}>")
    same(values(other, dialect), expected)
    by_text = [name for name in RELATIONS if name not in BY_ID | BY_PLACE]
    apart = values(renamed(records, lambda _, at: f"chunk {at}"), dialect, by_text)
    together = values(renamed(records, lambda *_: "one"), dialect, by_text)
    wanted = {key: expected[key] for key in apart}
    if known_dialects()[dialect].policy.duplicates != "error":
        same(together, wanted)
    same(apart, wanted)


@each_dialect_and_seed
def test_order_of_queries_and_of_gold(dialect: str, seed: int) -> None:
    records, expected = measured(seed, dialect)
    same(values(records[::-1], dialect), expected)
    same(values(random.Random(seed).sample(records, len(records)), dialect), expected)
    if dialect == "continuous-eval":  # whose nDCG gives a chunk the first gold that is free
        return
    turned = [record | {"gold": record["gold"][::-1]} for record in records]
    same(values(turned, dialect), expected)


@each_dialect_and_seed
def test_alone_or_in_company(dialect: str, seed: int) -> None:
    records, expected = measured(seed, dialect)
    for record in records[1::2]:
        mine = {key: value for key, value in expected.items() if key[0] == record["query"]}
        assert values([record], dialect) == mine  # to the last bit


@each_dialect
def test_other_measures_and_other_runs(dialect: str) -> None:
    records, expected = measured(1, dialect)
    for name in (each for each in RELATIONS if _applies(each, dialect)):
        mine = values(records, dialect, [name])
        same(mine, {key: expected[key] for key in mine})
    run = [{key: record[key] for key in ("query", "retrieved")} for record in records]
    other = [{"query": record["query"], "retrieved": []} for record in records]
    about = ("query", "question", "reference", "gold")
    gold = [{key: record[key] for key in about} for record in records]
    wanted = measures(tuple(name for name in RELATIONS if _applies(name, dialect)))
    runs = {"other": other, "mine": run}
    result = findwell.evaluate(runs, gold, wanted, dialect=dialect, **OPTIONS)
    same(values_of(result, "mine"), expected)


@pytest.mark.parametrize("rows", quick([1, 2, 3, 7, 1000], 3))
def test_size_of_batches(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    records, expected = measured(4, "findwell")
    monkeypatch.setattr(data, "CACHED_ROWS", rows)
    same(values(records, "findwell"), expected)


FORMATS: dict[str, Callable[[Records, Path], object]] = {
    "list": lambda records, _: records,
    "polars": lambda records, _: pl.DataFrame(records, infer_schema_length=None),
    "jsonl": lambda records, folder: _written(folder / "a.jsonl", map(json.dumps, records), "\n"),
    "json": lambda records, folder: _written(folder / "a.json", [json.dumps(records)], ""),
    "csv": lambda records, folder: _csv(records, folder / "a.csv"),
    "parquet": lambda records, folder: _parquet(records, folder / "a.parquet"),
}


def _written(path: Path, lines: Any, end: str) -> Path:
    path.write_text("".join(f"{line}{end}" for line in lines), encoding="utf-8")
    return path


def _csv(records: Records, path: Path) -> Path:
    cells = [
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in each.items()}
        for each in records
    ]
    pl.DataFrame(cells).write_csv(path)
    return path


def _parquet(records: Records, path: Path) -> Path:
    pl.DataFrame(records, infer_schema_length=None).write_parquet(path)
    return path


@functools.cache
def _expected_of(seed: int) -> Values:
    """Return the values of records without alternatives, which a frame cannot mix with entries."""
    return values(untidy(seed, "trec_eval"), "findwell")


QUICK_FORMATS = {("jsonl", False), ("polars", True)}


@pytest.mark.parametrize(
    ("form", "apart"),
    [
        pytest.param(
            *(form, apart),
            marks=() if (form, apart) in QUICK_FORMATS else pytest.mark.slow,
            id=f"{'run and gold' if apart else 'in one'}-{form}",
        )
        for form in FORMATS
        for apart in (False, True)
    ],
)
def test_formats(form: str, apart: bool, tmp_path: Path) -> None:
    records = untidy(5, "trec_eval")
    expected = _expected_of(5)
    if not apart:
        same(values(FORMATS[form](records, tmp_path), "findwell"), expected)
        return
    sides = {
        side: [{key: record[key] for key in names} for record in records]
        for side, names in {
            "run": ("query", "retrieved"),
            "gold": ("query", "question", "reference", "gold"),
        }.items()
    }
    for side in sides:
        (tmp_path / side).mkdir()
    run, gold = (FORMATS[form](sides[side], tmp_path / side) for side in ("run", "gold"))
    same(values(run, "findwell", gold=gold), expected)


def test_every_place_where_a_file_can_be_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = untidy(6, "findwell")[:4]
    path = _written(tmp_path / "a.jsonl", map(json.dumps, records), "\n")
    chosen = ["ids", "exact", "rouge-sentence", "spans"]
    expected = values(path, "findwell", chosen)
    size = path.stat().st_size
    for at in [*range(1, size, size // 6), size, size + 1]:
        monkeypatch.setattr("findwell.io.read.format.BLOCK", at)
        same(values(path, "findwell", chosen), expected)


@each_dialect
def test_saved_and_loaded(dialect: str, tmp_path: Path) -> None:
    wanted = measures(tuple(name for name in RELATIONS if _applies(name, dialect)))
    result = findwell.evaluate(untidy(7, dialect), None, wanted, dialect=dialect, **OPTIONS)
    result.save(tmp_path / "saved")
    again = findwell.load(tmp_path / "saved")
    same(values_of(again, again.runs[0]), values_of(result, result.runs[0]))


def supported(seed: int) -> tuple[Records, dict[str, str]]:
    """Make records whose gold tells how far documents support items, and the texts of documents."""
    pick = random.Random(seed)
    texts = {f"d{at}": " ".join(pick.choices(SENTENCES, k=2)) + f" It is {at}." for at in range(9)}
    records = []
    for number in range(7):
        gold: list[Any] = []
        for _ in range(pick.randrange(1, 5)):
            docs = pick.sample(sorted(texts), pick.randrange(1, 4))
            support = {doc: pick.choice((0, 0.1, 0.3, 0.7, 1)) for doc in docs}
            plain = docs if len(docs) > 1 else docs[0]
            gold.append(pick.choice(({"docs": support, "grade": pick.choice((1, 2))}, plain)))
        listed = pick.choices(sorted(texts), k=pick.randrange(1, 8))
        about = {"question": "Why?", "reference": pick.choice(SENTENCES)}
        records.append({"query": f"q{number}", **about, "retrieved": listed, "gold": gold})
    return records, texts


def _renamed_support(record: dict[str, Any]) -> dict[str, Any]:
    def entry(given: Any) -> Any:
        if isinstance(given, list):
            return [entry(each) for each in given]
        if isinstance(given, dict):
            return given | {"docs": {f"<{doc}": each for doc, each in given["docs"].items()}}
        return f"<{given}"

    return record | {side: [entry(each) for each in record[side]] for side in ("retrieved", "gold")}


COMPARING = [name for name, each in known_matchers().items() if not each.judged]


@each_dialect_and_seed
def test_support_alone_in_company_in_any_order_and_under_other_names(
    dialect: str, seed: int
) -> None:
    if known_dialects()[dialect].policy.duplicates == "error":
        pytest.skip("it refuses repetitions")
    records, texts = supported(seed)
    expected = values(records, dialect, COMPARING, corpus=texts)
    assert any(value not in (None, 0, 1) for value in expected.values())
    for record in records[1::2] if seed == SEEDS[0] else records:
        mine = {key: value for key, value in expected.items() if key[0] == record["query"]}
        assert values([record], dialect, COMPARING, corpus=texts) == mine  # to the last bit
    assert values(records[::-1], dialect, COMPARING, corpus=texts) == expected
    named = {f"<{doc}": text for doc, text in texts.items()}
    same(values(list(map(_renamed_support, records)), dialect, COMPARING, corpus=named), expected)

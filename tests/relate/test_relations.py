"""The relations over texts: what matches, how they are spelled, and every measure over each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import findwell
from findwell.core.errors import OptionError
from findwell.measures.dialects import resolve_measures
from findwell.relations.match import find_matcher
from tests.relate import brute
from tests.strategies import by_measure, examples, without_facts

if TYPE_CHECKING:
    from pathlib import Path

RELATIONS = (
    "exact",
    "exact(text=raw)",
    "exact-sentence(splitter=lines)",
    "rouge",
    "rouge(threshold=0.3)",
    "rouge(form=union)",
    "rouge-sentence(splitter=lines)",
    "containment",
    "containment(across=no)",
    "words",
    "semantic(model=letters)",
)
MEASURES = tuple(
    measure
    for cls in without_facts().values()
    for measure in ([cls(k=k) for k in (None, 1, 2, 9)] if cls.at == "k" else [cls()])
)
CHUNKS = ["The cat sat. It slept.", "A dog barked at the cat.", "Nothing here.", "the CAT sat"]
RECORDS: list[dict[str, Any]] = [
    {"query": "q1", "retrieved": CHUNKS, "gold": ["The cat sat!", "A bird sang."], "topic": "cats"},
    {"query": "q2", "retrieved": CHUNKS[::-1], "gold": ["A dog barked."], "topic": "dogs"},
    {"query": "q3", "retrieved": [], "gold": ["It slept."], "topic": "cats"},
]


def letters(texts: list[str]) -> list[list[float]]:
    """Embed texts by how often they have some letters."""
    return [[text.lower().count(letter) + 0.01 for letter in "abcfotx日"] for text in texts]


def evaluate(data: Any, measures: Any, by: str, **options: Any) -> findwell.Result:
    embedder = letters if by.startswith("semantic") else None
    by = by.replace("model=letters", "threshold=0.9")
    return findwell.evaluate(data, measures=measures, by=by, embedder=embedder, **options)


@examples(40)
@given(brute.records())
@example(brute.many(1))
def test_exact_is_equality_of_what_counts(made: list[dict[str, Any]]) -> None:
    result = findwell.evaluate(brute.with_texts(made), measures="P", by="exact")
    wanted = brute.expected(made, lambda unit, item: brute.plain(unit) == brute.plain(item))
    assert brute.edges(result) == wanted


@examples(40)
@given(brute.records())
@example(brute.many(1))
def test_raw_exact_is_equality_of_strings(made: list[dict[str, Any]]) -> None:
    result = findwell.evaluate(brute.with_texts(made), measures="P", by="exact(text=raw)")
    # under `raw` even the empty text counts: the key of a text is something, whatever it is
    wanted = brute.expected(made, lambda unit, item: unit == item, key=lambda text: f"={text}")
    assert brute.edges(result) == wanted


@examples(40)
@given(brute.records(), st.sampled_from([0.25, 0.5, 0.7, 1.0]))
@example(brute.many(2), 0.5)
def test_rouge_is_the_share_of_the_gold_in_order(
    made: list[dict[str, Any]], threshold: float
) -> None:
    result = findwell.evaluate(
        brute.with_texts(made), measures="P", by=f"rouge(threshold={threshold})"
    )
    wanted = brute.expected(made, lambda unit, item: brute.rouge(unit, item) >= threshold)
    assert brute.edges(result) == wanted


@examples(40)
@given(brute.records(), st.sampled_from(RELATIONS))
def test_every_measure_stays_in_its_range_over_every_relation(
    made: list[dict[str, Any]], by: str
) -> None:
    result = evaluate(brute.with_texts(made), MEASURES, by)
    for name, values in by_measure(result).items():
        measure = findwell.plugins.parse_measure(name)
        for value in values.values():
            assert value is None or np.isfinite(value)
            assert value is None or value >= 0 or name == "utility"  # what noise costs
            assert value is None or not measure.unit_interval or value <= 1 + 1e-12, name


@examples(25)
@given(brute.records(), st.sampled_from(RELATIONS))
def test_bounds_hold_the_value(made: list[dict[str, Any]], by: str) -> None:
    result = evaluate(brute.with_texts(made), ["P@2", "recall@2", "nDCG@3", "AP"], by, bounds=True)
    for row in result.per_query.drop_nulls("value").iter_rows(named=True):
        assert row["lower"] - 1e-12 <= row["value"] <= row["upper"] + 1e-12


def test_the_relation_may_stand_in_the_measure() -> None:
    result = findwell.evaluate(RECORDS, measures=["recall@5/rouge", "P@5/rouge(threshold=0.80)"])
    assert list(result.values) == ["recall@5/rouge", "P@5/rouge(threshold=0.8)"]
    by_default = findwell.evaluate(RECORDS, measures=["recall@5"], by="rouge")
    assert result["recall@5/rouge"] == by_default["recall@5"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert result["P@5/rouge(threshold=0.8)"] == pytest.approx((2 / 5 + 1 / 5 + 0) / 3)


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ("ROUGE", "rouge"),
        ("rouge(threshold=0.70)", "rouge"),
        ("rouge( threshold = .8 )", "rouge(threshold=0.8)"),
        ("Rouge-Sentence(splitter=lines,text=raw)", "rouge-sentence(text=raw,splitter=lines)"),
        ("exact(text=raw)", "exact(text=raw)"),
        ("containment(across=yes)", "containment"),
        ("spans(threshold=1)", "spans(threshold=1)"),
    ],
)
def test_names_are_canonical_and_read_back(spelled: str, canonical: str) -> None:
    matcher = find_matcher(spelled)
    assert str(matcher) == canonical
    assert find_matcher(str(matcher)) == matcher
    (measure,) = resolve_measures(f"P@5/{spelled}", "findwell")
    assert str(measure) == f"P@5/{canonical}"
    assert findwell.plugins.parse_measure(str(measure)) == measure


@pytest.mark.parametrize(
    ("spelled", "what", "fix"),
    [
        ("roge", "unknown relation 'roge'", "did you mean rouge"),
        ("rouge(treshold=0.8)", "rouge has no parameter 'treshold'", "did you mean threshold"),
        ("rouge(threshold=1.5)", "threshold=1.5 of rouge is out of range", "above 0, at most 1"),
        ("rouge(threshold=0)", "threshold=0.0 of rouge is out of range", "above 0, at most 1"),
        ("rouge(threshold=high)", "threshold=high of rouge is not a number", "use a number"),
        ("rouge(text=plane)", "text=plane of rouge is out of range", "plain, raw"),
        ("rouge(form=both)", "form=both of rouge is out of range", "lcs or union"),
        ("rouge(threshold)", "'threshold' in 'rouge(threshold)'", "name=value"),
        ("exact-sentence(splitter=sentencx)", "unknown sentence splitter", "sentencex"),
        ("containment(across=maybe)", "across=maybe of containment", "yes or no"),
        ("semantic(threshold=-1)", "threshold=-1.0 of semantic", "above 0"),
        ("semantic(model=minilmm)", "unknown embedder 'minilmm'", "did you mean minilm"),
        ("spans(threshold=2)", "threshold=2.0 of spans", "at most 1"),
        ("rouge(threshold=0.8", "is not the name of a relation", "rouge(threshold=0.8)"),
        ("", "is not the name of a relation", "rouge(threshold=0.8)"),
    ],
)
def test_a_wrong_name_is_refused_with_a_hint(spelled: str, what: str, fix: str) -> None:
    with pytest.raises(OptionError) as error:
        findwell.evaluate(RECORDS, measures="P", by=spelled)
    assert what in error.value.what
    assert fix in error.value.fix


def test_an_unknown_relation_of_a_measure_is_refused() -> None:
    with pytest.raises(OptionError, match="did you mean rouge"):
        findwell.evaluate(RECORDS, measures="recall@5/roug")


def test_several_relations_in_one_call_and_again_from_disk(tmp_path: Path) -> None:
    lines = "rouge-sentence(splitter=lines)"
    measures = ["recall@1", "P@2/rouge", f"P@2/{lines}", f"nDCG@2/{lines}", "recall/words", "F"]
    result = findwell.evaluate(RECORDS, measures=measures, by="containment", bounds=True)
    assert [name for _, name in result.relations] == ["containment", "rouge", lines, "words"]
    for name in measures:
        spec, _, relation = name.partition("/")
        alone = findwell.evaluate(RECORDS, measures=spec, by=relation or "containment", bounds=True)
        rows = result.per_query.filter(measure=name)
        assert rows["value"].to_list() == alone.per_query["value"].to_list()
        assert rows["upper"].to_list() == alone.per_query["upper"].to_list()
    loaded = findwell.load(result.save(tmp_path / "saved"))
    assert loaded.per_query.equals(result.per_query)
    assert loaded.summary.equals(result.summary)
    assert loaded.by("topic").equals(result.by("topic"))
    assert loaded.provenance.settings == result.provenance.settings
    assert loaded.provenance.settings[lines]["splitter"] == "lines"
    more = [f"recall@1/{lines}", f"P@1,2/{lines}", "AP/rouge", "AP"]
    assert loaded.score(more).per_query.equals(findwell.evaluate(
        RECORDS, measures=more, by="containment", bounds=True
    ).per_query)  # fmt: skip
    with pytest.raises(findwell.FindwellError, match="the result has no relation 'exact'"):
        loaded.score("P/exact").summary  # noqa: B018


def test_slices_of_a_text_relation() -> None:
    result = findwell.evaluate(RECORDS, measures="recall", by="rouge")
    rows = result.by("topic").select("slice", "value", "n").rows()
    assert rows == [("cats", 0.25, 2), ("dogs", 1.0, 1)]


def test_settings_say_how_the_relation_was_drawn() -> None:
    result = findwell.evaluate(RECORDS, measures="P", by="rouge(threshold=0.9)")
    said = result.as_dict()
    assert said["relation"] == "rouge(threshold=0.9)"
    assert said["relations"] == {
        "rouge(threshold=0.9)": {"threshold": 0.9, "text": "plain", "form": "lcs"}
    }


def test_repeated_chunks_are_noise_and_equal_gold_counts_once() -> None:
    data = [{"query": "q", "retrieved": ["The fox.", "the FOX"], "gold": ["the fox", "The fox!"]}]
    result = findwell.evaluate(data, measures=["P", "recall", "num_rel", "nDCG"], by="rouge")
    assert list(result.values.values()) == [0.5, 1.0, 1.0, 1.0]
    kinds = {found.kind: found.count for found in result.findings}
    assert kinds == {"equal-gold": 1, "duplicate-document": 1}


def test_a_matcher_takes_parameters_that_no_name_can_spell() -> None:
    by = findwell.plugins.find_matcher("rouge-sentence", splitter=lambda text: text.split("|"))
    run, gold = {"q": ["a b|c d"]}, {"q": ["c d|e f"]}
    assert findwell.evaluate(run, gold, "recall", by=by)["recall"] == 0.5
    with pytest.raises(
        findwell.FindwellError, match="unknown parameter of rouge-sentence 'spliter'"
    ):
        findwell.plugins.find_matcher("rouge-sentence", spliter="lines")

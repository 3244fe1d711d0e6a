"""Budgets instead of ranks: what is cut, for every measure, over every relation that rules draw."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import FindwellError, MeasureError
from findwell.core.measure import Budget, read_budget
from findwell.core.relation import Ties, reordered
from findwell.evaluation.plan import grouped
from findwell.relations.match import known_matchers
from tests.members import quick
from tests.test_invariances import OPTIONS, untidy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

BY_RULE = [name for name, matcher in known_matchers().items() if not matcher.judged]
TEXTS = {"a": "Press twice.", "x": "It is warm today.", "b": "Call us.", "c": "Rest"}  # 3 5 3 1
RUN = {"q1": ["a", "x", "b"], "q2": ["x", "c"]}
GOLD = {"q1": ["a", "b"], "q2": ["c"]}


def evaluate(*measures: str, **options: Any) -> dict[str, float | None]:
    return findwell.evaluate(RUN, GOLD, measures, corpus=TEXTS, **grouped(options)).values


def saved(save: Save) -> tuple[str, ...]:
    """Write the inputs, and return how a command names them."""
    run, gold, corpus = (
        str(save(f"{name}.json", json.dumps(data)))
        for name, data in {"run": RUN, "gold": GOLD, "corpus": TEXTS}.items()
    )
    return run, "--gold", gold, "--corpus", corpus


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("recall@2tokens", 0.0),  # the first chunk crosses the budget: nothing is shown
        ("recall@3tokens", 0.25),  # exactly spent: the chunk that fills it is in
        ("recall@8tokens", 0.75),
        ("recall@10tokens", 0.75),  # b would end at 11: left out
        ("recall@11tokens", 1.0),
        ("P@8tokens", (1 / 2 + 1 / 2) / 2),
        ("P@2tokens", 0.0),
        ("success@5tokens", 0.5),  # c is small enough, but stands behind what crosses the budget
        ("recall@12chars", 0.25),
        ("recall@29chars", 0.75),
        ("nDCG@8tokens", (1 / (1 + 1 / math.log2(3)) + 1 / math.log2(3)) / 2),
    ],
)
def test_worked_examples(measure: str, value: float) -> None:
    assert evaluate(measure)[measure] == pytest.approx(value)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("recall@2000tokens", "recall@2000tokens"),
        ("R@2000 Tokens", "recall@2000tokens"),
        ("P@1_token", "P@1tokens"),
        ("nDCG(gain=exp)@4000characters/rouge", "nDCG(gain=exp)@4000chars/rouge"),
        ("recall@hop2", "recall@2hops"),
        ("recall@2calls/exact", "recall@2hops/exact"),
        ("recall@100tokens/claims", "context_recall@100tokens"),
    ],
)
def test_names(spelling: str, name: str) -> None:
    measure = findwell.plugins.parse_measure(spelling)
    assert str(measure) == name
    assert findwell.plugins.parse_measure(name) == measure


def test_mistakes_in_names() -> None:
    with pytest.raises(MeasureError, match="use a rank such as recall@10, or a budget such as"):
        findwell.plugins.parse_measure("recall@5pages")
    with pytest.raises(MeasureError, match="is not a whole number from 1"):
        Budget(0, "tokens")
    with pytest.raises(FindwellError, match="did you mean tokens"):
        Budget(5, "token")
    assert read_budget("²tokens") is None
    with pytest.raises(FindwellError, match="cut it at a rank, for example recall@5/sufficiency"):
        findwell.evaluate(RUN, GOLD, "recall@50tokens/sufficiency")


def truncated(records: list[dict[str, Any]], chars: int) -> list[dict[str, Any]]:
    """Cut lists by hand, where their characters would cross a budget."""
    found = []
    for record in records:
        spent = np.cumsum([len(each["text"]) for each in record["retrieved"]])
        kept = record["retrieved"][: int((spent <= chars).sum())]
        found.append(record | {"retrieved": kept})
    return found


@pytest.mark.parametrize("relation", BY_RULE)
@pytest.mark.parametrize("seed", quick([1, 2], 1))
def test_a_budget_measures_the_list_that_it_cuts(relation: str, seed: int) -> None:
    records = untidy(seed, "findwell")
    classes = [cls for cls in findwell.plugins.known_measures().values() if cls.at == "k"]
    # what a judge, a corpus or several searches are needed for is tested elsewhere
    plain = [cls(relation=relation) for cls in classes if cls().facts() <= {"tokens", "chars"}]
    differing = []
    for chars in (40, 90, 150):
        cut = [replace(each, k=Budget(chars, "chars")) for each in plain]
        found = findwell.evaluate(records, None, cut, **OPTIONS)
        whole = findwell.evaluate(truncated(records, chars), None, plain, **OPTIONS)
        (run,) = found.runs
        differing += [
            (str(one), query, value, other)
            for one, all_ in zip(cut, plain, strict=True)
            for query, value, other in zip(
                found.relation(run, one).queries,
                found.arrays[run, one],
                whole.arrays[run, all_],
                strict=True,
            )
            if not np.isclose(value, other, rtol=0, atol=1e-12, equal_nan=True)
        ]
    assert not differing


def test_batches_and_blocks_give_the_same() -> None:
    pick = np.random.default_rng(7)
    docs = [f"d{number}" for number in range(30)]
    texts = {doc: "word " * int(pick.integers(1, 9)) for doc in docs}
    run = {f"q{number}": list(pick.permutation(docs)[:12]) for number in range(40)}
    gold = {query: list(pick.permutation(docs)[:3]) for query in run}
    measures = ["recall@20tokens", "P@30tokens", "tokens@4", "cost_to(unit=tokens,recall=0.3)"]
    result = findwell.evaluate(run, gold, measures, corpus=texts)
    (name,) = result.runs
    relation = result.relation(name)
    for measure in result.measures:
        whole = measure.values(relation)
        parts = [measure.values(part) for part in relation.blocks(10)]
        assert len(parts) > 1
        assert np.array_equal(np.concatenate(parts), whole, equal_nan=True)
        some = np.arange(relation.n) % 3 == 1
        assert np.array_equal(measure.values(relation.select(some)), whole[some], equal_nan=True)


def test_texts_that_are_missing() -> None:
    with pytest.raises(FindwellError, match="no document has a text") as found:
        findwell.evaluate(RUN, GOLD, "recall@5tokens")
    assert "--corpus, corpus=" in str(found.value)
    with pytest.raises(
        FindwellError, match="1 retrieved document has no text in the corpus"
    ) as found:
        findwell.evaluate(RUN, GOLD, "recall@5tokens", corpus={"a": "A", "x": "X", "b": "B"})
    assert "'c'" in str(found.value)
    with pytest.raises(MeasureError, match="does not know the tokens"):
        _ = findwell.evaluate(RUN, GOLD, "recall@5").score("recall@5tokens").values


def test_texts_that_are_ids() -> None:
    record = {"contexts": ["Press the red button.", "Yes"], "reference_contexts": ["Yes"]}
    assert findwell.evaluate([record], measures=["recall@5tokens", "recall@6tokens"]).values == {
        "recall@5tokens": 0.0,
        "recall@6tokens": 1.0,
    }


def test_a_chunk_that_is_a_place_costs_its_characters() -> None:
    corpus = {"doc": "Charging takes four hours. Never open the case."}
    gold = [{"query": "q", "gold": [{"doc": "doc", "start": 0, "end": 26}]}]
    listed = [{"doc": "doc", "start": 27, "end": 47}, {"doc": "doc", "start": 0, "end": 26}]
    run = [{"query": "q", "retrieved": listed}]
    found = findwell.evaluate(
        run, gold, ["recall@45chars/spans", "recall@46chars/spans"], corpus=corpus
    )
    assert list(found.values.values()) == [0.0, 1.0]


def test_a_relation_without_budgets_knows_no_costs() -> None:
    result = findwell.evaluate(RUN, GOLD, ["recall@5", "recall@5tokens/exact"], corpus=TEXTS)
    assert result.relations["run", "ids"].chunk_facts is None
    assert set(result.relations["run", "exact"].chunk_facts or ()) == {"tokens"}


def test_saved_and_loaded(tmp_path: Path) -> None:
    result = findwell.evaluate(
        RUN, GOLD, ["recall@8tokens"], corpus=TEXTS, reading=findwell.Reading(tokenizer=str.split)
    )
    result.save(tmp_path / "saved")
    again = findwell.load(tmp_path / "saved")
    assert again.values == result.values
    assert again.provenance.tokenizer == "str.split"
    assert again.score("recall@2tokens").values == evaluate("recall@2tokens", tokenizer=str.split)
    manifest = json.loads((tmp_path / "saved" / "manifest.json").read_text())
    assert manifest["tokenizer"] == "str.split"


def test_costs_move_with_tied_units() -> None:
    run = {"q": {"a": 2.0, "x": 1.0, "b": 1.0, "c": 1.0}}
    result = findwell.evaluate(run, {"q": ["a", "b"]}, ["recall@6tokens"], corpus=TEXTS)
    relation = result.relation("run")
    ties = Ties(np.array([0]), np.array([2]), np.array([4]))
    assert relation.fact("tokens").tolist() == [3, 5, 1, 3]  # ids of ties descend: x, c, b
    best = reordered(relation, ties, first=True)
    assert best.fact("tokens").tolist() == [3, 3, 5, 1]
    assert reordered(relation, ties).fact("tokens").tolist() == [3, 5, 1, 3]
    (finding,) = (each for each in result.findings if each.kind == "tied-scores")
    assert "move recall@6tokens by at most 0.5" in finding.message


def test_bounds() -> None:
    result = findwell.evaluate(
        RUN, {"q1": ["b"], "q2": ["c"]}, "P@8tokens", corpus=TEXTS, bounds=True
    )
    row = result.summary.row(0, named=True)
    assert (row["lower"], row["value"], row["upper"]) == (0.25, 0.25, 1.0)


def test_curves(cli: Findwell, save: Save) -> None:
    result = findwell.evaluate(RUN, GOLD, ["recall@1tokens"], corpus=TEXTS)
    table = findwell.statistics.curve(result, "recall", [3, 8, 11], over="tokens")
    assert table["value"].to_list() == [0.25, 0.75, 1.0]
    assert findwell.statistics.smallest_k(result, "recall", 0.75, over="tokens") == 6
    assert findwell.statistics.smallest_k(result, "P", 0.75, over="tokens") == 6
    assert findwell.statistics.smallest_k(result, "P", 0.9, over="tokens") is None
    with pytest.raises(FindwellError, match="did you mean tokens"):
        findwell.statistics.curve(result, "recall", over="token")
    done = cli(
        "curve", *saved(save), "--over", "chars", "--at", "12,40",
        "-m", "recall", "--reach", "recall>=0.7",
    )  # fmt: skip
    assert "at each budget of chars" in done.out
    assert "recall >= 0.7 is reached at 21 chars" in done.out


def test_gates_and_reports(cli: Findwell, save: Save) -> None:
    inputs = saved(save)
    done = cli("score", *inputs, "--require", "recall@11tokens>=0.9", "--decide", "value")
    assert "✓ pass" in done.out
    done = cli("score", *inputs, "-m", "recall@11tokens", "--read", "tokenizer=nonsense")
    assert done.code == 2
    assert "'nonsense' is not a tokenizer" in done.err
    done = cli("explain", *inputs, "-m", "P@8tokens", "--query", "q1")
    assert "÷ 2 units retrieved = 0.5000" in done.out


def test_what_a_budget_costs_at_most() -> None:
    """The relation holds one number per chunk and unit, whatever the number of measures."""
    result = findwell.evaluate(RUN, GOLD, ["recall@1,5,9tokens", "P@7tokens"], corpus=TEXTS)
    facts = result.relation("run").chunk_facts or {}
    assert {name: len(values) for name, values in facts.items()} == {"tokens": 5}


def test_frames_with_texts() -> None:
    frame = pl.DataFrame({"query": ["q", "q"], "doc": ["a", "b"], "text": ["one two", "three"]})
    found = findwell.evaluate(frame, {"q": ["b"]}, ["recall@2tokens", "recall@3tokens"])
    assert list(found.values.values()) == [0.0, 1.0]


def test_lists_that_end_before_the_budget_are_a_finding() -> None:
    gold = {"q1": ["a", "b", "z"], "q2": ["c"], "q3": ["c"]}
    run = {**RUN, "q3": ["c"], "q4": []}
    result = findwell.evaluate(run, gold, ["recall@100tokens", "all_found@100tokens"], corpus=TEXTS)
    (found,) = [each for each in result.findings if each.kind == "short-list"]
    assert (found.count, found.examples, found.run) == (1, ("q1: 11 tokens",), "run")
    assert (
        "the budget of 100 tokens is spent: recall@100tokens, all_found@100tokens are a lower"
        in (found.message)
    )
    values = {}
    for longer in (run, {**run, "q1": ["a", "x", "b", "z"]}):
        values[len(longer["q1"])] = findwell.evaluate(
            longer, gold, "recall@100tokens", corpus={**TEXTS, "z": "Last."}
        )["recall@100tokens"]
    assert (values[3] or 0.0) < (values[4] or 0.0)


def test_what_kind_of_bound_a_short_list_gives() -> None:
    def kinds(*measures: str) -> list[str]:
        found = findwell.evaluate(RUN, {"q1": ["a", "z"]}, measures, corpus=TEXTS).findings
        return [each.message for each in found if each.kind == "short-list"]

    (said,) = kinds("P@99tokens")
    assert "with longer lists P@99tokens would differ" in said
    assert len(kinds("P@99chars", "recall@99chars", "recall@88chars")) == 3
    assert kinds("recall@8tokens", "P@11tokens", "recall@2") == []  # the budget cuts, or is spent


def test_judged_lists_and_two_runs() -> None:
    runs = {"short": {"q1": ["x"]}, "long": {"q1": ["x", "a", "b", "c"]}}
    found = findwell.evaluate(runs, {"q1": ["a", "b"]}, "recall@9tokens", corpus=TEXTS).findings
    assert [each.run for each in found if each.kind == "short-list"] == ["short"]
    samples = [{"question": "How?", "contexts": ["Press twice."], "reference": "Press."}]
    judged = findwell.evaluate(
        samples, measures="P@90tokens/relevance", judge="local:text"
    ).findings
    assert "short-list" in [each.kind for each in judged]

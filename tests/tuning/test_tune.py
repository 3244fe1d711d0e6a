"""Tuning as a whole: what is chosen and claimed, what does not matter to it, what it refuses."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
import pytest

import findwell
from findwell.loop.tuning.engines import ENGINES, find_engine
from findwell.loop.tuning.fusion import fuse
from findwell.loop.tuning.fusion_settings import grid_of, setting_of, weight_shares

Scores = dict[str, dict[str, float]]


def hybrid(queries: int = 40, seed: int = 0) -> tuple[list[Scores], dict[str, list[str]]]:
    """Make two noisy retrievers, the second better, and a gold of two documents a query."""
    pick = random.Random(seed)
    docs = [f"d{number}" for number in range(30)]
    gold = {f"q{number}": pick.sample(docs, 2) for number in range(queries)}

    def run(strength: float) -> Scores:
        found = {}
        for query, wanted in gold.items():
            scored = {doc: pick.random() + strength * (doc in wanted) for doc in docs}
            best = sorted(scored, key=lambda doc: -scored[doc])[:10]
            found[query] = {doc: scored[doc] for doc in best}
        return found

    return [run(0.35), run(0.55)], gold


def tuned(runs: Any, gold: Any, **options: Any) -> findwell.tuning.Tuning:
    chosen: dict[str, Any] = {"engine": "elasticsearch-linear", "measures": "nDCG@5"}
    found: findwell.tuning.Tuning = findwell.tuning.tune(
        runs, gold, **{**chosen, "permutations": 2_000, **options}
    )
    return found


def numbers(found: findwell.tuning.Tuning) -> dict[str, Any]:
    """Return everything that was found out, without the names of runs and queries."""
    said = found.as_dict()
    for name in ("runs", "keep", "snippet", "findings"):
        said.pop(name)
    for gain in said["gains"]:
        gain.pop("over")
    return said


def flat(said: Any) -> Any:
    """Round what differs by the order in which it was added up."""
    if isinstance(said, dict):
        return {name: flat(value) for name, value in said.items()}
    if isinstance(said, list):
        return [flat(value) for value in said]
    return round(said, 10) if isinstance(said, float) else said


def test_what_is_claimed_can_be_computed_by_hand() -> None:
    runs, gold = hybrid()
    found = tuned(runs, gold, current=0.5, measures=["nDCG@5", "recall@3"])
    choice = found.choice
    fused = fuse(runs, "elasticsearch-linear", weights=found.chosen.weights)
    evaluated = findwell.evaluate(fused, gold, ["nDCG@5", "recall@3"])
    assert choice.in_sample.value == evaluated["nDCG@5"]
    assert found.others[0].in_sample == evaluated["recall@3"]
    assert found.run.rows.equals(fused.rows)
    held = np.zeros(40)
    for repeat, picks in enumerate(choice.picks):
        for fold, number in enumerate(picks.tolist()):
            weights = found.grid.settings[number].weights
            result = findwell.evaluate(
                fuse(runs, "elasticsearch-linear", weights=weights), gold, "nDCG@5"
            )
            inside = choice.fold[repeat] == fold
            held[inside] += result.per_query["value"].to_numpy()[inside] / 10
    assert np.allclose(held, choice.values)
    assert choice.held_out.value == pytest.approx(held.mean())
    assert choice.optimism == pytest.approx(evaluated["nDCG@5"] - held.mean())
    others: list[Any] = [fuse(runs, "elasticsearch-linear"), *runs]
    for gain, other in zip(found.gains, others, strict=True):
        alone = findwell.evaluate(other, gold, "nDCG@5")["nDCG@5"]
        assert gain.value == pytest.approx(alone)
        assert gain.verdict.difference.value == pytest.approx(held.mean() - alone)


def test_the_gains_are_those_of_a_comparison() -> None:
    runs, gold = hybrid()
    found = tuned(runs, gold, permutations=10_000)
    for gain in found.gains:
        moved = (found.fused.values["held_out"] - found.fused.values[gain.over]).to_numpy()
        assert gain.verdict.won == (moved > 1e-9).sum()
        assert gain.verdict.lost == (moved < -1e-9).sum()
        difference = gain.verdict.difference
        assert difference.low is not None
        assert difference.high is not None
        decided = difference.low > 0 or difference.high < 0
        assert (gain.verdict.word != "unclear") == decided or abs((gain.p or 0) - 0.05) < 0.04


def test_names_and_order_of_queries_do_not_matter() -> None:
    runs, gold = hybrid()
    labels = {query: f"s{int(query[1:]) % 2}" for query in gold}
    about = [{"query": query, "kind": kind} for query, kind in labels.items()]
    expected = numbers(tuned(runs, gold, queries=about, slices="kind", current="0.4,0.6"))
    order = random.Random(5).sample(sorted(gold), len(gold))
    new = {query: f"renamed {random.Random(query).random()}" for query in gold}
    again = tuned(
        [{new[query]: run[query] for query in order} for run in runs],
        {new[query]: gold[query] for query in reversed(order)},
        queries=[{"query": new[each["query"]], "kind": each["kind"]} for each in about],
        slices="kind",
        current="0.4,0.6",
    )
    assert flat(numbers(again)) == flat(expected)


def test_clusters_do_not_depend_on_their_names() -> None:
    runs, gold = hybrid()
    about = [{"query": query, "page": int(query[1:]) // 2} for query in gold]
    other = [{"query": query, "page": f"p{99 - int(query[1:]) // 2}"} for query in reversed(gold)]
    plain, again = (
        tuned(runs, gold, queries=table, cluster="page").as_dict() for table in (about, other)
    )
    assert flat(plain) == flat(again)
    assert plain["cluster"] == "page"
    assert plain != tuned(runs, gold).as_dict() | {"cluster": "page"}


def test_a_run_that_cannot_help_changes_nothing_of_the_others() -> None:
    runs, gold = hybrid()
    two = tuned(runs, gold, step=0.1, engine="langchain-ensemble", window=10)
    junk: Scores = {query: {f"x{number}": 1.0 for number in range(9)} for query in gold}
    how: Any = {"engine": "langchain-ensemble", "window": 10, "disjoint": True}
    three = tuned([*runs, junk], gold, step=0.1, **how)
    alone = {
        each.setting["weights"][0] / sum(each.setting["weights"][:2]): each.value
        for each in _curve(three)
        if not each.setting["weights"][2]
    }
    assert alone == {each.setting["weights"][0]: each.value for each in _curve(two)}


class _Point:
    def __init__(self, point: dict[str, Any]) -> None:
        self.setting, self.value = point["setting"], point["value"]


def _curve(found: findwell.tuning.Tuning) -> list[_Point]:
    return [_Point(point) for point in found.as_dict()["curve"]]


def test_lower_is_better_is_tuned_downwards() -> None:
    runs, gold = hybrid()
    found = tuned(runs, gold, measures="position")
    values = [each.value or 0.0 for each in found.choice.curve]
    assert values[found.choice.best] == pytest.approx(min(values))
    assert found.choice.optimism == pytest.approx(
        (found.choice.held_out.value or 0) - (found.choice.in_sample.value or 0)
    )
    assert {gain.verdict.word for gain in found.gains} <= {"better", "unclear"}
    assert (found.gains[0].verdict.difference.value or 0) < 0


def test_queries_with_a_value_under_some_settings_only_are_named() -> None:
    runs, gold = hybrid()
    for number, (query, wanted) in enumerate(gold.items()):
        for run in runs:
            run[query] = {"x": 1.0} | dict.fromkeys(wanted, 0.9)
        if number < 5:
            runs[0][query] = {"x": 1.0}  # nothing with a weight of 1 for this run alone
    texts = {**{f"d{number}": "some words" for number in range(30)}, "x": "y"}
    found = tuned(runs, gold, measures="cost_to", corpus=texts, engine="chroma-rrf")
    kinds = {finding.kind: finding.count for finding in found.findings}
    assert found.choice.left_out == kinds["left-out-query"]
    assert found.choice.n + found.choice.left_out == 40


def test_few_queries_are_refused_or_named() -> None:
    runs, gold = hybrid(9)
    with pytest.raises(findwell.FindwellError, match="9 queries with a value"):
        tuned(runs, gold)
    kinds = [finding.kind for finding in tuned(*hybrid(12)).findings]
    assert kinds == ["few-queries"]
    assert "few-queries" not in [finding.kind for finding in tuned(*hybrid(40)).findings]


def test_the_sign_of_luck() -> None:
    """Runs without any skill: the choice looks good in sample, and gains nothing held out."""
    pick = random.Random(1)
    docs = [f"d{number}" for number in range(12)]
    gold = {f"q{number}": [pick.choice(docs)] for number in range(30)}
    runs = [{query: {doc: pick.random() for doc in docs} for query in gold} for _ in range(2)]
    found = tuned(runs, gold, measures="RR")
    assert (found.choice.optimism or 0) > 0
    assert {gain.verdict.word for gain in found.gains} == {"unclear"}
    assert all(gain.needed is None or gain.needed > 30 for gain in found.gains)
    assert len(found.choice.plateau) == 101


@pytest.mark.parametrize("engine", [*ENGINES])
def test_every_engine_is_tuned_or_says_why_not(engine: str) -> None:
    runs, gold = hybrid(15)
    formula = find_engine(engine)
    if formula.weights is None and formula.k is None:
        with pytest.raises(
            findwell.FindwellError, match=f"{engine} has no weights and no constant"
        ):
            tuned(runs, gold, engine=engine)
        return
    found = tuned(runs, gold, engine=engine, permutations=50)
    assert len(found.grid.settings) >= 15
    assert found.engine in found.as_dict()["engine"]
    knob = "weights" if formula.weights is not None else "k"
    chosen = {knob: getattr(found.chosen, knob)}
    run = fuse(runs, engine, **chosen)
    assert found.choice.in_sample.value == findwell.evaluate(run, gold, "nDCG@5")["nDCG@5"]
    assert (found.snippet is None) == (found.keep is not None)


def test_no_combination_of_weights_is_lost_to_rounding() -> None:
    for runs, step, expected in ((2, 0.01, 101), (3, 0.1, 66), (4, 0.1, 286), (5, 0.2, 126)):
        shares = list(weight_shares(runs, step))
        assert len(set(shares)) == expected
        assert all(abs(sum(each) - 1) < 1e-12 for each in shares)


@pytest.mark.parametrize(
    ("engine", "given", "expected"),
    [
        ("elasticsearch-rrf", 0.25, (0.5, 1.5)),
        ("elasticsearch-rrf", "3,1", (3.0, 1.0)),
        ("weaviate-relative", 0.25, (0.25, 0.75)),
        ("elasticsearch-rrf", {"weights": (1, 2), "k": 10}, (1.0, 2.0)),
    ],
)
def test_the_current_setting_in_short(engine: str, given: Any, expected: Any) -> None:
    assert setting_of(find_engine(engine), 2, given, {}).weights == expected


def test_the_current_setting_is_found_in_the_grid_by_its_shares() -> None:
    engine = find_engine("elasticsearch-rrf")
    grid = grid_of(engine, 2, None, {})
    assert grid.find(engine.setting(2, weights=(3, 1))) == 75
    assert grid.find(engine.setting(2, weights=(3, 1), k=10)) is None
    assert grid.find(engine.setting(2, weights=(2, 1))) is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"engine": "nothing"}, "unknown engine"),
        ({"current": 1.5}, "not a current setting"),
        ({"current": "a"}, "not a setting"),
        ({"current": "1,2,3"}, "3 weights for 2 runs"),
        ({"step": 0.3}, "do not add up to 1"),
        ({"k": 60}, "has no k to set"),
        ({"measures": "recall@5/sufficiency", "judge": "local"}, "list as a whole"),
        ({"slices": "topic"}, "topic"),
        ({"folds": 41}, "41 folds"),
        ({"engine": "course-rrf", "step": 0.1}, "no effect"),
    ],
)
def test_what_cannot_be_tuned_is_refused(options: dict[str, Any], says: str) -> None:
    runs, gold = hybrid()
    with pytest.raises(findwell.FindwellError, match=says):
        tuned(runs, gold, **options)


def test_runs_that_do_not_go_together_are_refused() -> None:
    runs, gold = hybrid()
    other = {f"x{query}": docs for query, docs in runs[1].items()}
    with pytest.raises(findwell.FindwellError, match="shares no query with run 1"):
        tuned([runs[0], other], gold)
    with pytest.raises(findwell.FindwellError, match="you gave 1"):
        tuned(runs[:1], gold)
    with pytest.raises(findwell.FindwellError, match="you gave 6"):
        tuned(runs * 3, gold)
    unscored = {query: list(docs) for query, docs in runs[1].items()}
    with pytest.raises(findwell.FindwellError, match="carries no scores"):
        tuned([runs[0], unscored], gold)
    half = {query: docs for query, docs in runs[1].items() if int(query[1:]) % 2}
    kinds = [finding.kind for finding in tuned([runs[0], half], gold).findings]
    assert "unshared-query" in kinds


def test_one_setting_for_each_slice() -> None:
    """Queries of two kinds that need opposite weights: settings of their own pay."""
    first, gold = hybrid(30, seed=1)
    good, bad = {}, {}
    for number, query in enumerate(gold):
        strong, weak = first[1][query], first[0][query]
        good[query], bad[query] = (strong, weak) if number % 2 else (weak, strong)
    about = [{"query": query, "kind": "ab"[number % 2]} for number, query in enumerate(gold)]
    found = tuned([good, bad], gold, queries=about, slices="kind")
    (sliced,) = found.fused.sliced
    a, b = sliced.slices
    assert (a.label, a.n, b.label, b.n) == ("a", 15, "b", 15)
    places = found.grid.places
    assert places is not None
    assert places[a.chosen] < places[b.chosen]
    held = [(each.held_out or 0) * each.n for each in sliced.slices]
    shared = [(each.shared or 0) * each.n for each in sliced.slices]
    assert sliced.gain.verdict.difference.value == pytest.approx((sum(held) - sum(shared)) / 30)
    assert sum(shared) / 30 == pytest.approx(found.choice.held_out.value)


def test_texts_beside_the_ids_of_the_runs_are_enough() -> None:
    runs, gold = hybrid(12)
    texts = {f"d{number}": f"The answer to number {number} is this one." for number in range(30)}
    records = [
        [
            {
                "query": query,
                "retrieved": [
                    {"doc": f"run-{doc}", "text": texts[doc], "score": score}
                    for doc, score in docs.items()
                ],
            }
            for query, docs in run.items()
        ]
        for run in runs
    ]
    wanted = [
        {"query": query, "gold": [{"doc": f"gold-{doc}", "text": texts[doc]} for doc in docs]}
        for query, docs in gold.items()
    ]
    engine, by = "elasticsearch-linear", "exact"
    found = findwell.tuning.tune(records, wanted, "nDCG@5", engine=engine, by=by, permutations=50)
    fused = fuse(records, engine, weights=found.chosen.weights)
    expected = findwell.evaluate(fused, wanted, "nDCG@5", by=by)
    assert found.choice.in_sample.value == expected["nDCG@5"]
    assert expected["nDCG@5"]
    assert found.fused.matched_by.startswith("exact")


def test_without_scipy_only_the_number_of_queries_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs, gold = hybrid()
    known = tuned(runs, gold)
    assert known.gains[-1].needed is not None
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    found = tuned(runs, gold)
    for mine, theirs in zip(found.gains, known.gains, strict=True):
        assert mine.needed is None
        assert (mine.verdict.difference, mine.p, mine.verdict.word) == (
            theirs.verdict.difference,
            theirs.p,
            theirs.verdict.word,
        )
    assert "needs the package scipy" in found.gains[-1].verdict.reason
    assert "needs the package scipy" in repr(found)


def test_the_order_of_runs_changes_no_value() -> None:
    rng = random.Random(7)
    docs = [f"d{number}" for number in range(20)]
    gold = {f"q{number}": dict.fromkeys(rng.sample(docs, 4), 1) for number in range(24)}

    def run() -> dict[str, dict[str, float]]:
        lists = ((query, rng.sample(docs, 8)) for query in gold)
        return {query: {doc: rng.random() for doc in found} for query, found in lists}

    one, two = run(), run()
    how: Any = {"engine": "opensearch-min_max-arithmetic", "step": 0.1}
    first = findwell.tuning.tune({"one": one, "two": two}, gold, "nDCG@5", **how)
    second = findwell.tuning.tune({"two": two, "one": one}, gold, "nDCG@5", **how)
    assert first.chosen.weights == pytest.approx(second.chosen.weights[::-1])
    assert first.choice.in_sample.value == pytest.approx(second.choice.in_sample.value, abs=1e-12)
    assert first.choice.held_out.value == pytest.approx(second.choice.held_out.value, abs=1e-12)

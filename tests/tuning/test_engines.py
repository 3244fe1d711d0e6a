"""What holds for every engine, and the traps of some."""

from __future__ import annotations

import ast
import json
import math
import random
import re
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest

import findwell
from findwell.core.errors import AlignError, InputError, OptionError, PluginError
from findwell.loop.tuning import (
    ENGINES,
    Pool,
    Setting,
    convex_combination,
    find_engine,
    fuse,
    reciprocal_rank_fusion,
    register_engine,
)
from tests.members import over

Scored: TypeAlias = dict[str, dict[str, float]]

DOCS = [f"d{number}" for number in range(12)]
QUERIES = [f"q{number}" for number in range(30)]


def random_runs(seed: int) -> list[Scored]:
    """Return two runs: coarse scores with ties, lists of equal scores, of one document, below 0."""
    chance = random.Random(seed)
    runs: list[Scored] = []
    for _ in range(2):
        lists = {}
        for query in QUERIES:
            docs = chance.sample(DOCS, chance.choice([1, 2, 6, 11]))
            low = chance.choice([-9, 0, 3])
            wide = chance.choice([0, 4, 40])
            lists[query] = {doc: chance.randint(low, low + wide) / 4 for doc in docs}
        runs.append(lists)
    return runs


RUNS = random_runs(16)
POOL = Pool.of(RUNS)
WEIGHTS = [None, (0.25, 0.75), (0.875, 0.125)]
MET = [name for name, engine in ENGINES.known().items() if not engine.ties(POOL)]
every_engine = over(name=[*ENGINES])


def fused(runs: Any, name: str, **choices: Any) -> dict[str, dict[str, float]]:
    """Fuse, and return the scores by query and document, in order."""
    found: dict[str, dict[str, float]] = {}
    for query, doc, score in fuse(runs, name, **choices).rows.rows():
        found.setdefault(query, {})
        if doc is not None:
            found[query][doc] = score
    return found


def choices_of(name: str, weights: Any = None) -> dict[str, Any]:
    """Return what an engine can be told, with the whole lists as its window."""
    knobs = {"weights": weights, "window": 100}
    return {knob: value for knob, value in knobs.items() if knob in ENGINES[name].knobs}


def same(found: Any, expected: Any) -> None:
    """Compare the scores of every query."""
    assert found.keys() == expected.keys()
    for query, docs in expected.items():
        assert found[query] == pytest.approx(docs, rel=1e-6, abs=1e-9)


ALONE = {query: Pool.of([{query: run[query]} for run in RUNS]) for query in QUERIES[::6]}
SHUFFLED = Pool.of([{query: run[query] for query in sorted(QUERIES)[::-1]} for run in RUNS])
RENAMED = Pool.of(
    [
        {query: {f"x{doc}": score for doc, score in docs.items()} for query, docs in run.items()}
        for run in RUNS
    ]
)
TURNED = Pool.of(RUNS[::-1])


@every_engine
@pytest.mark.parametrize("weights", WEIGHTS[1:])
def test_a_query_alone_is_fused_as_in_company(name: str, weights: Any) -> None:
    together = fused(POOL, name, **choices_of(name, weights))
    for query, pool in ALONE.items():
        alone = fused(pool, name, **choices_of(name, weights))
        assert list(alone[query].items()) == list(together[query].items())


@every_engine
def test_the_order_of_queries_changes_nothing(name: str) -> None:
    before, after = (fused(pool, name, **choices_of(name)) for pool in (POOL, SHUFFLED))
    for query in QUERIES:
        assert list(before[query].items()) == list(after[query].items())


@every_engine
def test_new_names_of_documents_change_nothing(name: str) -> None:
    # in the same order, as ties may go by id
    before, after = (fused(pool, name, **choices_of(name)) for pool in (POOL, RENAMED))
    for query, docs in before.items():
        assert [(f"x{doc}", score) for doc, score in docs.items()] == list(after[query].items())


@pytest.mark.parametrize("name", [n for n, engine in ENGINES.known().items() if not engine.roles])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_order_of_runs_with_their_weights_changes_nothing(name: str, weights: Any) -> None:
    if name == "azure-rrf" and weights:
        return  # all weights are divided by that of the text query, which is the first
    back = None if weights is None else weights[::-1]
    before = fused(POOL, name, **choices_of(name, weights))
    after = fused(TURNED, name, **choices_of(name, back))
    same(after, before)
    if name not in MET:
        for query, docs in before.items():
            assert list(after[query]) == list(docs)


@every_engine
def test_scores_fall_and_documents_are_of_the_runs(name: str) -> None:
    for query, docs in fused(POOL, name).items():
        assert list(docs.values()) == sorted(docs.values(), reverse=True)
        assert docs.keys() <= RUNS[0][query].keys() | RUNS[1][query].keys()
        assert all(math.isfinite(score) for score in docs.values())


@every_engine
def test_prepared_once_for_many_weights(name: str) -> None:
    engine = ENGINES[name]
    runs = [{"q": {"a": 3.0, "b": 2.0, "c": 0.5}}, {"q": {"c": 0.9, "d": 0.4, "a": 0.1}}]
    pool = engine.arranged(Pool.of(runs))
    for weights in ((0.25, 0.75), (0.625, 0.375)):
        setting = engine.setting(2, **choices_of(name, weights))
        prepared = engine.prepare(pool, engine.setting(2, **choices_of(name)))
        scores = engine.combine(prepared, setting)
        np.testing.assert_array_equal(scores, engine.scores(pool, setting))
        run = pool.as_run(pool.order(scores, setting.window if engine.cut else None), scores)
        assert run.rows.equals(fuse(runs, name, **choices_of(name, weights)).rows)
        assert pool.best_first(scores).rows.equals(run.rows)


@every_engine
def test_a_window_cuts_each_list_and_says_so(name: str) -> None:
    runs = [{"q": {"a": 3.0, "b": 2.0, "c": 0.5}}, {"q": {"c": 0.9, "a": 0.4, "e": 0.1}}]
    cut = [{"q": dict(list(run["q"].items())[:2])} for run in runs]
    found = fuse(runs, name, window=2)
    finding = next(each for each in found.findings if each.kind == "below-window")
    assert finding.count == 2
    if name not in ("autorag-rrf", "pgvector-rrf"):  # rank before they cut
        assert found.rows.equals(fuse(cut, name, window=2).rows)
    assert "below-window" not in {each.kind for each in fuse(cut, name, window=2).findings}


@every_engine
def test_a_query_of_one_run_is_fused_from_it(name: str) -> None:
    runs = [{"q": {"a": 3.0, "b": 2.0}, "r": {"x": 2.0, "y": 1.0}}, {"q": {"b": 0.5, "a": 0.25}}]
    found = fuse(runs, name)
    assert [each.kind for each in found.findings if each.kind == "unshared-query"]
    if name == "chroma-rrf":
        assert fused(runs, name)["r"] == {}  # as not every list has it
    else:
        assert list(fused(runs, name)["r"]) == ["x", "y"]


@every_engine
def test_the_entry_is_complete(name: str) -> None:
    engine = ENGINES[name]
    assert engine.name == name
    assert engine.formula
    assert engine.source
    setting = engine.setting(2)
    assert set(setting.as_dict()) <= set(engine.knobs)
    assert hash(setting) == hash(engine.setting(2))
    json.dumps(setting.as_dict())
    assert str(setting).count("=") == len(setting.as_dict())


@every_engine
@pytest.mark.parametrize("weights", [(0.3, 0.7), (0.625, 0.375)])
def test_a_snippet_has_the_numbers_of_the_setting(name: str, weights: Any) -> None:
    engine = ENGINES[name]
    setting = engine.setting(2, **choices_of(name, weights) | ({"k": 37} if engine.k else {}))
    text = engine.snippet(setting, ["bm25", "dense run"])
    first = text.splitlines()[0]
    assert re.match(r"(#|//|--) (lists|weights): bm25", first)
    body = text.split("\n", 1)[1]
    if engine.k:
        assert "37" in body
    if engine.weights and name != "azure-rrf":
        expected = f"{weights[1]:g}"  # where one number tells both
        assert expected in body or f"{weights[0]:g}" in body
    if "{\n" in body and "rank-profile" not in body:
        json.loads(body[body.index("{") :])
    elif "import" in body:
        ast.parse(body)


def test_weights_of_azure_are_relative_to_the_text_query() -> None:
    engine = find_engine("azure-rrf")
    text = engine.snippet(engine.setting(2, weights=(0.5, 0.25)), ["bm25", "dense"])
    assert json.loads(text[text.index("{") :])["vectorQueries"][0]["weight"] == 0.5
    runs = [{"q": ["a"]}, {"q": ["b"]}]
    half = fused(runs, "azure-rrf", weights=(0.5, 0.25))["q"]
    assert half == pytest.approx({"a": 1 / 61, "b": 0.5 / 61}, abs=1e-9)


def test_sql_divides_by_fractions() -> None:
    engine = find_engine("pgvector-rrf")
    assert "1.0 / (60 + bm25.rank)" in engine.snippet(engine.setting(2), ["bm25", "dense"])


# the traps


def test_the_weight_of_qdrant_divides_the_rank() -> None:
    runs = [{"q": ["1", "2"]}, {"q": ["2", "1"]}]
    found = fused(runs, "qdrant-rrf", weights=(3.0, 1.0))["q"]
    # test_rrf_scoring_weighted of Qdrant: the second of the heavy list wins
    assert list(found) == ["2", "1"]
    assert found == pytest.approx({"1": 1 / (1 / 3 + 1) + 1 / 3, "2": 1 / (2 / 3 + 1) + 1 / 2})
    assert list(fused(runs, "elasticsearch-rrf", weights=(3.0, 1.0))["q"]) == ["1", "2"]


def test_the_ratio_of_weights_of_qdrant_is_that_of_results() -> None:
    runs = [{"q": [f"{ten}{unit}" for unit in range(1, 9)]} for ten in (1, 2)]
    found = list(fused(runs, "qdrant-rrf", weights=(3.0, 1.0), k=60)["q"])[:10]
    heavy = sum(doc.startswith("1") for doc in found)  # test_rrf_scoring_weighted_ratio
    assert heavy >= 2 * (10 - heavy)


def test_the_deviation_of_qdrant_is_of_the_sample() -> None:
    runs = [{"q": {"a": 3.0, "b": 1.0}}, {"q": {"a": 1.0}}]
    ours = fused(runs, "qdrant-dbsf")["q"]
    sample = math.sqrt(2.0)
    assert ours["b"] == pytest.approx((1 - (2 - 3 * sample)) / (6 * sample), abs=1e-6)
    assert ours["a"] == pytest.approx((3 - (2 - 3 * sample)) / (6 * sample) + 0.5, abs=1e-6)
    llama = fused(runs, "llamaindex-dist")["q"]
    assert llama["b"] == pytest.approx(0.5 * (1 - (2 - 3)) / 6)


def test_opensearch_never_gives_0() -> None:
    runs = [{"q": {"a": 3.0, "b": 1.0}}, {"q": {"c": 1.0}}]
    found = fused(runs, "opensearch-min_max-arithmetic")["q"]
    assert found["b"] == pytest.approx(0.0005)
    # a missing document lowers an arithmetic mean, but not the others
    assert found["a"] == 0.5
    assert fused(runs, "opensearch-min_max-geometric")["q"]["a"] == 1
    assert fused(runs, "opensearch-min_max-harmonic")["q"]["a"] == 1


def test_opensearch_keeps_10_digits() -> None:
    # 1 ÷ 9998 and 1 ÷ 9999 differ in the ninth digit, 1 ÷ 30001 and 1 ÷ 30002 in the tenth
    ranks = np.array([[20_001, 20_002]])
    pool = Pool.of([{"q": ["a", "b"]}])
    deep = replace(pool, rank=ranks)
    engine = find_engine("opensearch-rrf")
    values = engine.prepare(deep, engine.setting(1, k=10_000)).values[0].astype(np.float32)
    assert values.tolist() == [float(np.float32(3.33322e-05)), float(np.float32(3.33311e-05))]


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [
        # max begins at Float.MIN_VALUE, so the best of -1, -2, -3 is taken for 0
        ("elasticsearch-linear", {"normaliser": "minmax"}, {"a": 2 / 3, "b": 1 / 3, "c": 0.0}),
        ("opensearch-min_max-harmonic", {}, {"a": 2 / 3, "b": 1 / 3, "c": 0.001}),
        ("weaviate-relative", {"weights": (1.0, 0.0)}, {"a": 1.0, "b": 0.5, "c": 0.0}),
    ],
)
def test_negative_scores(name: str, choices: Any, expected: dict[str, float]) -> None:
    runs = [{"q": {"a": -1.0, "b": -2.0, "c": -3.0}}, {"q": {"z": 1.0}}]
    found = fuse(runs, name, **choices)
    scores = dict(zip(found.rows["doc"], found.rows["score"], strict=True))
    assert {doc: scores[doc] for doc in expected} == pytest.approx(expected, abs=1e-6)
    warned = "negative-scores" in {each.kind for each in found.findings}
    assert warned == (name != "weaviate-relative")


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [
        ("elasticsearch-linear", {"normaliser": "minmax"}, 1.0),
        ("opensearch-min_max-harmonic", {}, 1.0),
        ("opensearch-z_score-arithmetic", {}, 3.5),  # the raw highest score, in a mean of two
        ("weaviate-relative", {"weights": (1.0, 0.0)}, 1.0),
        ("qdrant-dbsf", {}, 0.5),
        ("vespa-linear", {}, 1.0),  # the other documents have 0
        ("lancedb-linear", {}, 0.0),
        ("llamaindex-relative", {}, 0.5),
        ("llamaindex-dist", {}, 0.5),
        ("haystack-dbsf", {}, 7.0),
        ("autorag-cc", {}, 0.0),
    ],
)
def test_equal_scores(name: str, choices: Any, expected: float) -> None:
    runs = [{"q": {"a": 7.0, "b": 7.0}}, {"q": {"z": 2.0, "y": 1.0}}]
    found = fuse(runs, name, **choices)
    scores = dict(zip(found.rows["doc"], found.rows["score"], strict=True))
    assert scores["a"] == scores["b"] == pytest.approx(expected)
    warned = {each.kind for each in found.findings} & {"equal-scores"}
    assert bool(warned) == bool(ENGINES[name].normalisers)


def test_chroma_drops_what_is_not_in_every_list() -> None:
    runs = [{"q": ["a", "b"]}, {"q": ["b", "c"]}]
    found = fuse(runs, "chroma-rrf")
    assert found.rows["doc"].to_list() == ["b"]
    (finding,) = found.findings
    assert (finding.kind, finding.count, finding.examples) == (
        "dropped-document",
        2,
        ("q / a", "q / c"),
    )
    filled = fused(runs, "chroma-rrf", fill=1000)["q"]
    assert filled == pytest.approx(
        {"b": 1 / 61 + 1 / 60, "a": 1 / 60 + 1 / 1060, "c": 1 / 61 + 1 / 1060}
    )


def test_lancedb_keeps_a_list_that_is_alone() -> None:
    runs = [{"q": {"a": 9.0, "b": 3.0}, "r": {"x": 5.0, "y": 2.0}}, {"q": {"b": 0.9, "c": 0.4}}]
    assert list(fused(runs, "lancedb-linear")["q"]) == ["b", "a", "c"]
    assert fused(runs, "lancedb-linear")["r"] == {"x": 1.0, "y": 0.0}  # not times 0.3
    raw = fused(runs, "lancedb-linear", normaliser="none", fill=0.5)["q"]
    assert raw == pytest.approx({"a": 0.3 * 9 + 0.7 * 0.5, "b": 0.9 + 0.63, "c": 0.15 + 0.28})


def test_haystack_takes_the_larger_not_the_sum() -> None:
    runs = [{"q": {"a": 3.0, "b": 1.0}}, {"q": {"b": 9.0, "a": 1.0}}]
    found = fused(runs, "haystack-dbsf")["q"]
    assert found == pytest.approx({"a": 4 / 6, "b": 4 / 6})


def test_weaviate_counts_ranks_from_0() -> None:
    runs = [{"q": ["a"]}, {"q": ["a"]}]
    assert fused(runs, "weaviate-ranked")["q"]["a"] == pytest.approx(1 / 60)


def test_ties_of_weaviate_go_by_the_original_score() -> None:
    runs = [{"q": {"a": 4.0, "b": 2.0}}, {"q": {"c": 0.9, "d": 0.1}}]
    found = fused(runs, "weaviate-relative", weights=(0.5, 0.5))["q"]
    assert list(found.items()) == [("a", 0.5), ("c", 0.5), ("b", 0.0), ("d", 0.0)]
    turned = fused(runs[::-1], "weaviate-relative", weights=(0.5, 0.5))["q"]
    assert list(turned) == ["a", "c", "b", "d"]


def test_ties_by_id_take_numbers_as_numbers() -> None:
    runs = [{"q": ["10", "b"]}, {"q": ["9", "a"]}]
    assert list(fused(runs, "milvus-rrf")["q"]) == ["9", "10", "a", "b"]


def test_distances_of_milvus() -> None:
    near = [{"query": "q", "retrieved": [{"doc": "a", "score": 0.5}, {"doc": "b", "score": 2.0}]}]
    text = {"q": {"b": 1.0}}
    listed = fused([near, text], "milvus-weighted", normaliser=("l2", "bm25"))
    minus = fused(
        [{"q": {"a": -0.5, "b": -2.0}}, text], "milvus-weighted", normaliser=["l2", "bm25"]
    )
    assert listed == minus
    assert listed["q"]["a"] == pytest.approx(1 - 2 * math.atan(0.5) / math.pi, abs=1e-6)
    with pytest.raises(InputError, match=r"run 1 \(run\): its distances fall with the rank"):
        fuse([{"q": {"a": 0.5, "b": 2.0}}, text], "milvus-weighted", normaliser=("l2", "bm25"))


def test_a_distance_among_similarities_of_milvus_is_turned_without_norm_score() -> None:
    engine = find_engine("milvus-weighted")
    mixed = engine.setting(2, normaliser=("none", "l2"))
    assert "norm_score=False" in engine.snippet(mixed, ["bm25", "dense"])
    named = engine.setting(2, normaliser=("bm25", "l2"))
    assert "norm_score=True" in engine.snippet(named, ["bm25", "dense"])
    runs = [{"q": {"a": 3.0}}, {"q": {"a": -1.0}}]
    assert fused(runs, "milvus-weighted", normaliser=("none", "l2"))["q"] == {"a": 3.5}


def test_vespa_ranks_what_a_list_lacks() -> None:
    runs = [{"q": {"a": 2.0, "b": 1.0}}, {"q": {"c": 1.0}}]
    found = fused(runs, "vespa-rrf")["q"]
    assert found == pytest.approx(
        {"a": 1 / 61 + 1 / 62, "c": 1 / 63 + 1 / 61, "b": 1 / 62 + 1 / 63}
    )


def test_single_precision_decides_ties_as_the_engine_does() -> None:
    # of three lists: (1/61 + 1/62) + 1/63 is not (1/63 + 1/62) + 1/61 in 32 bits
    runs = [{"q": ["a", "b", "c"]}, {"q": ["b", "a", "c"]}, {"q": ["c", "a", "b"]}]
    found = fused(runs, "elasticsearch-rrf")["q"]
    for doc, ranks in {"a": (1, 2, 2), "b": (2, 1, 3), "c": (3, 3, 1)}.items():
        total = np.float32(0)
        for rank in ranks:
            total += np.float32(1) * (np.float32(1) / np.float32(60 + rank))
        assert found[doc] == float(total)


@pytest.mark.parametrize("how", ["mm", "tmm", "z", "dbsf"])
@pytest.mark.parametrize("weight", [0.25, 1.0])
def test_two_ways_to_the_fusion_of_autorag(how: str, weight: float) -> None:
    runs = [
        {query: {doc: abs(score) for doc, score in docs.items()} for query, docs in run.items()}
        for run in RUNS
    ]
    weights = (weight, 1 - weight)
    ours = fuse(runs, "autorag-cc", weights=weights, normaliser=how)
    assert ours.rows.equals(convex_combination(runs, weights, normaliser=how, lowest=(-1, 0)).rows)


def test_two_ways_to_rank_fusion() -> None:
    by_score = reciprocal_rank_fusion(POOL, 7, by="score", k=3)
    assert fuse(POOL, "autorag-rrf", k=7, depth=3).rows.equals(by_score.rows)
    assert fuse(POOL, "course-rrf").rows.equals(reciprocal_rank_fusion(POOL).rows)


# what is refused

TWO: list[Any] = [{"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 3.0, "c": 1.0}}]


@pytest.mark.parametrize(
    ("name", "choices", "message", "fix"),
    [
        ("qdrant", {}, "unknown engine 'qdrant'", "qdrant-rrf"),
        ("opensearch-z_score-harmonic", {}, "only by arithmetic_mean", "z_score-arithmetic"),
        ("elasticsearch-rrf", {"weights": (1,)}, "1 weights for 2 runs", "one for each run"),
        ("elasticsearch-rrf", {"weights": (1, -1)}, "does not take the weights 1, -1", "from 0"),
        ("elasticsearch-rrf", {"weights": (1, math.nan)}, "does not take the weights", "from 0"),
        ("elasticsearch-rrf", {"weights": (1, math.inf)}, "does not take the weights", "from 0"),
        ("elasticsearch-rrf", {"weights": (0, 0)}, "all weights are 0", "one run a weight"),
        ("opensearch-rrf", {"weights": (0.5, 0.6)}, "the weights 0.5, 0.6", "add up to 1"),
        ("opensearch-l2-arithmetic", {"weights": (2, -1)}, "the weights 2, -1", "from 0 to 1"),
        ("milvus-weighted", {"weights": (0.5, 1.5)}, "the weights 0.5, 1.5", "from 0 to 1"),
        ("weaviate-relative", {"weights": (0.5, 0.6)}, "weights 0.5, 0.6", "add up to 1"),
        ("lancedb-linear", {"weights": (1, 1)}, "weights 1, 1", "add up to 1"),
        ("autorag-cc", {"weights": (0.5, 0.6)}, "weights 0.5, 0.6", "add up to 1"),
        ("azure-rrf", {"weights": (0, 1)}, "weights 0, 1", "above 0"),
        ("milvus-rrf", {"weights": (1, 1)}, "milvus-rrf has no weights to set", "k, window"),
        ("qdrant-dbsf", {"k": 60}, "qdrant-dbsf has no k to set", "it has window"),
        ("azure-rrf", {"k": 10}, "azure-rrf has no k to set", "weights, window"),
        ("course-rrf", {"normaliser": "mm"}, "course-rrf has no normaliser", "k, window"),
        ("course-rrf", {"fill": 1}, "course-rrf has no fill", "k, window"),
        ("opensearch-rrf", {"k": 0}, "k=0 is not a whole number from 1 to 10000", "has 60"),
        ("opensearch-rrf", {"k": 10001}, "k=10001 is not", "has 60"),
        ("elasticsearch-rrf", {"k": 1.5}, "k=1.5 is not a whole number from 1", "has 60"),
        ("course-rrf", {"k": math.nan}, "k=nan is not a number from 0", "has 60"),
        ("course-rrf", {"window": 0}, "window=0 is not a whole number from 1", "100"),
        ("course-rrf", {"window": 2.0}, "window=2.0 is not a whole number from 1", "100"),
        ("course-rrf", {"depth": 0}, "depth=0 is not a whole number from 1", "10"),
        ("chroma-rrf", {"fill": -1}, "fill=-1 is not a number from 0", "--list"),
        ("elasticsearch-linear", {"normaliser": "mm"}, "unknown normaliser of elas", "minmax"),
        ("elasticsearch-linear", {"normaliser": ["none"]}, "1 normalisers for 2 runs", "for each"),
        ("autorag-cc", {"normaliser": ("mm", "z")}, "the normalisers mm, z together", "--list"),
        ("lancedb-linear", {"normaliser": ["none", "score"]}, "none, score together", "--list"),
        ("milvus-weighted", {"normaliser": ["none", "ip"]}, "none, ip together", "--list"),
    ],
)
def test_wrong_choices(name: str, choices: Any, message: str, fix: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)) as caught:
        fuse(TWO, name, **choices)
    assert fix in caught.value.fix


@pytest.mark.parametrize("name", [n for n, engine in ENGINES.known().items() if engine.roles])
def test_engines_of_two_lists(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} fuses 2 runs, not 3") as caught:
        fuse([*TWO, TWO[0]], name)
    assert ", ".join(ENGINES[name].roles) in caught.value.fix


@every_engine
def test_one_run_cannot_be_fused(name: str) -> None:
    with pytest.raises(OptionError, match="there is one run"):
        fuse(TWO[:1], name)


@every_engine
def test_runs_that_share_no_query(name: str) -> None:
    with pytest.raises(AlignError, match="the runs share no query"):
        fuse([{"q": {"a": 1.0}}, {"r": {"a": 1.0}}], name)


@every_engine
def test_scores_are_asked_for_where_they_are_needed(name: str) -> None:
    lists: list[Any] = [{"q": ["a", "b"]}, {"q": ["b"]}]
    if ENGINES[name].needs_scores:
        with pytest.raises(InputError, match=r"run 1 \(run\): it carries no scores"):
            fuse(lists, name)
    else:
        assert fuse(lists, name).rows["doc"][0] == "b"


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, None])
@pytest.mark.parametrize("name", ["elasticsearch-linear", "qdrant-dbsf", "vespa-rrf"])
def test_a_score_that_is_missing_is_an_error(name: str, score: float | None) -> None:
    retrieved = [{"doc": "a", "score": 1.0}, {"doc": "b", "score": score}]
    with pytest.raises(InputError, match=r"1 documents have no finite score, the first is q / b"):
        fuse([[{"query": "q", "retrieved": retrieved}], TWO[1]], name)


def test_the_public_name_is_the_same() -> None:
    assert findwell.tuning.fuse is fuse
    assert Setting(weights=(0.7, 0.3), k=60) == Setting(weights=(0.7, 0.3), k=60.0)


def test_an_engine_of_ones_own() -> None:
    own = replace(find_engine("course-rrf"), name="my-rrf", constant=1, k=None)
    runs = [{"q": ["a", "b"]}, {"q": ["b"]}]
    assert register_engine(own) is own
    try:
        assert fused(runs, "my-rrf")["q"] == pytest.approx({"b": 1 / 3 + 1 / 2, "a": 1 / 2})
        with pytest.raises(PluginError, match="the name 'my-rrf' of a fusion engine is taken"):
            register_engine(replace(own, constant=2))
    finally:
        ENGINES.registered.pop("my-rrf")


def test_many_queries_are_fused_in_bulk() -> None:
    chance = random.Random(5)
    runs = [
        {
            f"q{query}": {f"d{chance.randrange(500)}": chance.random() for _ in range(50)}
            for query in range(200)
        }
        for _ in range(3)
    ]
    found = fuse(runs, "opensearch-min_max-harmonic", weights=(0.2, 0.3, 0.5), depth=10)
    assert found.rows.height == 2000
    one = fuse([{"q7": run["q7"]} for run in runs], "opensearch-min_max-harmonic", depth=10)
    default = fuse(runs, "opensearch-min_max-harmonic", depth=10)
    assert default.rows.filter(query="q7").equals(one.rows)

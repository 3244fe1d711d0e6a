"""Numbers of the engines themselves: of their test suites, their documentation, their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from findwell.loop.tuning import ENGINES, Setting, find_engine, fuse
from findwell.loop.tuning.engines import Prepared
from tests.dialects.golden import cases


@dataclass(frozen=True)
class Case:
    """Lists by document, what is set, and the fused scores in their order."""

    engine: str
    source: str
    lists: list[Any]
    scores: dict[str, float]
    choices: dict[str, Any] = field(default_factory=dict)
    within: float = 1e-6

    def __str__(self) -> str:
        return f"{self.engine} {self.source}"


def single(number: float) -> float:
    """Return the number in 32 bits, as the engine has it."""
    return float(np.float32(number))


WEAVIATE = "usecases/traverser/hybrid/fusion_test.go"
# weights, scores of the documents 0, 1, 2, … in each list, fused scores, fused order
RELATIVE: list[tuple[Any, Any, Any, str]] = [
    ((0.5, 0.5), ([1, 2, 3], [0, 1, 2]), [1, 0.5, 0], "210"),
    ((0.5, 0.5), ([0, 2, 0.1], [0, 0.2, 2]), [0.55, 0.525, 0], "120"),
    ((0.75, 0.25), ([0.5, 0.5, 0], [0, 0.01, 0.001]), [1, 0.75, 0.025], "102"),
    ((0.75, 0.25), ([1], []), [0.75], "0"),
    ((0.75, 0.25), ([], [1]), [0.25], "0"),
    ((0.75, 0.25), ([1, 2], []), [0.75, 0], "10"),
    ((0.75, 0.25), ([], [1, 2]), [0.25, 0], "10"),
    ((0.75, 0.25), ([1, 1], [1, 2]), [1, 0.75], "10"),
    ((0.75, 0.25), ([1, 2, 3, 4], [1, 2, 3]), [0.75, 0.75, 0.375, 0], "3210"),
]
QDRANT = "lib/segment/src/common/reciprocal_rank_fusion.rs"
NEURAL = "neural-search src/test/java/org/opensearch/neuralsearch/processor/normalization"
MINMAX = f"{NEURAL}/MinMaxScoreNormalizationTechniqueTests.java"
L2 = f"{NEURAL}/L2ScoreNormalizationTechniqueTests.java"
Z = f"{NEURAL}/ZScoreNormalizationTechniqueTests.java"
MERGE = "milvus internal/util/function/chain/operator_merge_test.go"
VESPA = "container-search/src/test/java/com/yahoo/search/ranking/NormalizerTestCase.java"
LINEAR = "x-pack/plugin/rank-rrf/src/yamlRestTest/…/linear/10_linear_retriever.yml"
ELASTIC_L2 = "x-pack/plugin/rank-rrf/src/test/…/linear/L2ScoreNormalizerTests.java"
PEERS = "run by tests/frameworks/test_fusions.py"

CASES = [
    *(
        Case(
            "weaviate-relative",
            f"{WEAVIATE} TestFusionRelativeScore {number}",
            [{str(doc): float(score) for doc, score in enumerate(each)} for each in lists],
            dict(zip(order, scores, strict=True)),
            {"weights": weights},
            within=1e-4,
        )
        for number, (weights, lists, scores, order) in enumerate(RELATIVE)
    ),
    Case(
        "weaviate-ranked",
        "usecases/traverser/hybrid/hybrid_fusion.go: float32(weight ÷ (i + 60)), i from 0",
        [["a", "b"], ["b"]],
        {"b": 0.25 / 61 + 0.75 / 60, "a": 0.25 / 60},
        within=1e-9,
    ),
    Case(
        "qdrant-rrf",
        f"{QDRANT} test_rrf_scoring",
        [["2", "1"], ["1", "2", "3"], ["5", "3", "1"]],
        {"1": single(1.0833334), "2": single(0.8333334), "3": single(0.5833334), "5": 0.5},
        within=0,
    ),
    Case(
        "qdrant-rrf",
        f"{QDRANT} test_rrf_scoring_zero_weight",
        [["1"], ["2"]],
        {"1": 0.5, "2": 0.0},
        {"weights": (1.0, 0.0)},
    ),
    Case(
        "qdrant-dbsf",
        f"{PEERS}: qdrant-client 1.20.0, distribution_based_score_fusion",
        [{"a": 3.0, "b": 2.0, "c": 1.0}, {"c": 5.0}],
        {"c": 0.8333333, "a": 0.6666667, "b": 0.5},
    ),
    Case(
        "elasticsearch-rrf",
        "x-pack/plugin/rank-rrf/src/yamlRestTest/…/rrf/320_rrf_weighted_retriever.yml",
        [["1"], ["2"]],
        {"2": 0.01475, "1": 0.00164},
        {"weights": (0.1, 0.9)},
        within=1e-4,
    ),
    Case(
        "elasticsearch-linear",
        f"{LINEAR}: basic linear weighted combination",
        [{"1": 10.0}, {"4": 1.0}],
        {"1": 5.0, "4": 2.0},
        {"weights": (0.5, 2.0)},
    ),
    Case(
        "elasticsearch-linear",
        f"{LINEAR}: interleaved results",
        [{"1": 10.0, "2": 5.0}, {"3": 5.0, "4": 4.0}],
        {"1": 20.0, "3": 15.0, "4": 12.0, "2": 10.0},
        {"weights": (2.0, 3.0)},
    ),
    Case(
        "elasticsearch-linear",
        f"{LINEAR}: should normalize initial scores",
        [{"1": 10.0, "2": 9.0, "3": 5.0}, {"4": 1.0}],
        {"1": 10.0, "2": 8.0, "4": 2.0, "3": 0.0},
        {"weights": (10.0, 2.0), "normaliser": ("minmax", "none")},
    ),
    Case(
        "elasticsearch-linear",
        f"{ELASTIC_L2} testNormalizeTypicalVector, testSingleElement",
        [{"2": 4.0, "1": 3.0}, {"3": 42.0}],
        {"3": 1.0, "2": 0.8, "1": 0.6},
        {"normaliser": "l2_norm"},
    ),
    Case(
        "elasticsearch-linear",
        f"{ELASTIC_L2} testAllZeros",
        [{"1": 0.0, "2": 0.0}, {"3": 1.0}],
        {"3": 1.0, "1": 0.0, "2": 0.0},
        {"normaliser": "l2_norm"},
    ),
    Case(
        "opensearch-min_max-arithmetic",
        f"{MINMAX} whenResultFromOneShardMultipleSubQueries: 1, .001 and 1, .75, .001",
        [{"2": 0.5, "4": 0.2}, {"3": 0.9, "4": 0.7, "2": 0.1}],
        {"2": (1 + 0.001) / 2, "3": 1 / 2, "4": (0.001 + 0.75) / 2},
    ),
    Case(
        "opensearch-min_max-geometric",
        f"{MINMAX} testNormalizedScoresAreSetAtCorrectIndices: 1 and 0.001; 0.001 and 1",
        [{"1": 0.8, "2": 0.6}, {"2": 0.9, "1": 0.7}],
        {"1": 0.001**0.5, "2": 0.001**0.5},
    ),
    Case(
        "opensearch-min_max-harmonic",
        f"{MINMAX} testNormalizedScoresAreSetAtCorrectIndices: 1 and 0.001; 1 alone",
        [{"1": 0.8, "2": 0.6}, {"1": 0.5}],
        {"1": 1.0, "2": 0.001},
    ),
    Case(
        "opensearch-l2-arithmetic",
        f"{L2} testNormalizedScoresAreSetAtCorrectIndices: .5547, .8321 and .7809, .6247",
        [{"2": 3.0, "1": 2.0}, {"1": 5.0, "2": 4.0}],
        {"2": (0.8321 + 0.6247) / 2, "1": (0.5547 + 0.7809) / 2},
        within=1e-4,
    ),
    Case(
        "opensearch-l2-geometric",
        f"{L2} testNormalizedScoresAreSetAtCorrectIndices: .5547, .8321 and 1",
        [{"2": 3.0, "1": 2.0}, {"1": 1.0}],
        {"2": 0.8321, "1": 0.5547**0.5},
        within=1e-4,
    ),
    Case(
        "opensearch-l2-harmonic",
        f"{L2} testNormalizedScoresAreSetAtCorrectIndices: .5547, .8321 and 1",
        [{"2": 3.0, "1": 2.0}, {"1": 1.0}],
        {"2": 0.8321, "1": 2 / (1 / 0.5547 + 1)},
        within=1e-4,
    ),
    Case(
        "opensearch-z_score-arithmetic",
        f"{Z} testNormalizedScoresAreSetAtCorrectIndices",
        [{"3": 8.0, "2": 7.0, "1": 2.0}, {"3": 10.0, "1": 5.0, "2": 4.0}, {"1": 1.0}],
        {
            "3": (0.72586626 + 1.1406468) / 3,
            "1": (0.001 + 0.001 + 1.0) / 3,
            "2": (0.41478074 + 0.001) / 3,
        },
    ),
    Case(
        "opensearch-rrf",
        f"{NEURAL}/RRFNormalizationTechniqueTests.java: 1 ÷ 61 = 0.0163934426 in 10 digits",
        [["a", "b"], ["b"]],
        {"b": single(single(0.0161290323) + single(0.0163934426)), "a": single(0.0163934426)},
        within=0,
    ),
    Case(
        "milvus-rrf",
        f"{MERGE} TestMergeStrategyRRF…: 1 in both lists, ties by id ascending",
        [["1", "2"], ["3", "1"]],
        {"1": 1 / 61 + 1 / 62, "3": 1 / 61, "2": 1 / 62},
    ),
    Case(
        "milvus-weighted",
        f"{MERGE} TestGetNormalizeFuncCosine: .5 → .75, 1 → 1, 0 → .5, -1 → 0",
        [{"a": 1.0, "b": 0.5, "c": 0.0, "d": -1.0}, {"e": 0.5}],
        {"a": 1.0, "b": 0.75, "e": 0.75, "c": 0.5, "d": 0.0},
        {"normaliser": "cosine"},
    ),
    Case(
        "milvus-weighted",
        f"{MERGE} TestGetNormalizeFuncIP: 0 → .5; …BM25: 0 → 0",
        [{"a": 0.0}, {"b": 0.0}],
        {"a": 0.5, "b": 0.0},
        {"normaliser": ("ip", "bm25")},
    ),
    Case(
        "milvus-weighted",
        f"{MERGE} TestGetNormalizeFuncL2: 0 → 1, 1 → .5",
        [{"a": -0.0, "b": -1.0}, {"c": 0.0}],
        {"a": 1.0, "b": 0.5, "c": 0.0},
        {"normaliser": ("l2", "bm25")},
    ),
    Case(
        "vespa-rrf",
        f"{VESPA} requireReciprocalNormalizingWithK, k 4.2, of both features",
        [{"1": 11.0, "3": -3.0, "0": -4.1, "2": -50.0}] * 2,
        {"1": 2 / 5.2, "3": 2 / 6.2, "0": 2 / 7.2, "2": 2 / 8.2},
        {"k": 4.2},
    ),
    Case(
        "vespa-linear",
        f"{VESPA} requireLinearNormalizing, of both features",
        [{"1": -1.0, "3": -3.0, "0": -4.0, "2": -5.0}] * 2,
        {"1": 2.0, "3": 1.0, "0": 0.5, "2": 0.0},
    ),
    Case(
        "azure-rrf",
        "learn.microsoft.com/azure/search/hybrid-search-how-to-query: first in both, @search.score",
        [["49"], ["49"]],
        {"49": 0.032786883413791656},
        within=0,
    ),
    Case(
        "mongodb-rrf",
        "mongodb.com/docs …/vector-search/hybrid-search scoreDetails: ranks 1, 1 and 3, 4",
        [["casper", "x", "ghostbusters"], ["casper", "y", "z", "ghostbusters"]],
        {
            "casper": 0.01639344262295082,
            "ghostbusters": 0.015749007936507936,
            "x": 0.5 / 62,
            "y": 0.5 / 62,
            "z": 0.5 / 63,
        },
        {"weights": (0.5, 0.5)},
        within=1e-17,
    ),
    Case(
        "redis-rrf",
        "quarkus extensions/redis-client …: reply of FT.HYBRID of Redis 8.4",
        [["product:1"], ["product:1", "product:2"]],
        {"product:1": 0.0327868852459, "product:2": 0.0161290322581},
        within=1e-12,
    ),
    Case(
        "redis-linear",
        "redis.io/commands/ft.hybrid: 0.3 · text + 0.7 · vector",
        [{"a": 2.0, "b": 1.0}, {"a": 0.5}],
        {"a": 0.95, "b": 0.3},
    ),
    Case(
        "pgvector-rrf",
        "pgvector-python examples/hybrid_search/rrf.py: RANK() shares ranks",
        [{"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1}, {"d": 1.0}],
        {"d": 1 / 64 + 1 / 61, "a": 1 / 61, "b": 1 / 62, "c": 1 / 62},
    ),
    Case(
        "lancedb-rrf",
        f"{PEERS}: lancedb 0.40.0, RRFReranker; ties go to the vector search",
        [["a", "b"], ["c", "b"]],
        {"b": 2 / 62, "c": 1 / 61, "a": 1 / 61},
    ),
    Case(
        "lancedb-linear",
        f"{PEERS}: lancedb 0.40.0, LinearCombinationReranker in a hybrid query",
        [{"a": 9.0, "b": 3.0}, {"b": 0.9, "c": 0.4}],
        {"b": 0.7, "a": 0.3, "c": 0.0},
    ),
    Case(
        "lancedb-mrr",
        f"{PEERS}: lancedb 0.40.0, MRRReranker",
        [["a", "b"], ["b", "c", "d"]],
        {"b": 0.75, "a": 0.5, "c": 0.25, "d": 0.5 / 3},
    ),
    Case(
        "chroma-rrf",
        f"{PEERS}: chromadb 1.5.9, Rrf: minus its score, ranks from 0",
        [["a", "b"], ["b", "a", "c"]],
        {"a": 1 / 60 + 1 / 61, "b": 1 / 60 + 1 / 61},
    ),
    Case(
        "langchain-ensemble",
        f"{PEERS}: langchain-classic 1.0.8, EnsembleRetriever",
        [["a", "b"], ["c", "b"]],
        {"b": 1 / 62, "a": 0.5 / 61, "c": 0.5 / 61},
    ),
    Case(
        "llamaindex-rrf",
        f"{PEERS}: llama-index-core 0.14.25, FUSION_MODES.RECIPROCAL_RANK",
        [["a", "b"], ["c", "b"]],
        {"b": 2 / 61, "a": 1 / 60, "c": 1 / 60},
    ),
    Case(
        "llamaindex-relative",
        f"{PEERS}: llama-index-core 0.14.25, FUSION_MODES.RELATIVE_SCORE",
        [{"a": 3.0, "b": 2.0, "c": 1.0}, {"c": 4.0, "d": 4.0}],
        {"a": 0.5, "c": 0.5, "d": 0.5, "b": 0.25},
    ),
    Case(
        "llamaindex-dist",
        f"{PEERS}: llama-index-core 0.14.25, FUSION_MODES.DIST_BASED_SCORE",
        [{"a": 3.0, "b": 1.0}, {"b": -2.0}],
        {"a": 0.5 * 4 / 6, "b": 0.5 * 2 / 6},
    ),
    Case(
        "haystack-rrf",
        f"{PEERS}: haystack-ai 3.4.0, DocumentJoiner; first in both is 1",
        [["a", "b"], ["a", "c"]],
        {"a": 1.0, "b": 61 / 62 / 2, "c": 61 / 62 / 2},
    ),
    Case(
        "haystack-dbsf",
        f"{PEERS}: haystack-ai 3.4.0, DocumentJoiner; the larger of 4/6 and 0.9",
        [{"a": 3.0, "b": 1.0}, {"a": 0.9}],
        {"a": 0.9, "b": 2 / 6},
    ),
    Case(
        "autorag-cc",
        "tests/golden/autorag.json, too",
        [{"a": 0.9, "b": 0.7, "c": 0.5}, {"c": 8.0, "d": 2.0}],
        {"a": 0.6, "c": 0.4, "b": 0.3, "d": 0.0},
        {"weights": (0.6, 0.4)},
    ),
    Case(
        "autorag-rrf",
        "tests/golden/autorag.json, too",
        [{"a": 2.0, "b": 2.0}, {"b": 1.0}],
        {"b": 2 / 61, "a": 1 / 61},
    ),
    Case(
        "course-rrf",
        "tests/golden/course-notes.json, too",
        [["a", "b"], ["b"]],
        {"b": 1 / 62 + 1 / 61, "a": 1 / 61},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden(case: Case) -> None:
    runs = [{"q": each} for each in case.lists]
    fused = fuse([*runs], case.engine, **case.choices) if _shared(runs) else _alone(case)
    found = {doc: score for _, doc, score in fused.rows.rows() if doc is not None}
    assert found == pytest.approx(case.scores, rel=0, abs=case.within)
    assert list(found) == list(case.scores)


def _shared(runs: list[dict[str, Any]]) -> bool:
    return all(run["q"] for run in runs)


def _alone(case: Case) -> Any:
    """Fuse a query that one list lacks, in company of one that both have."""
    runs = [{"q": each, "r": {"z": 1.0}} for each in case.lists]
    fused = fuse(runs, case.engine, **case.choices)
    return type(fused)("fused", fused.rows.filter(query="q"))


def test_every_engine_has_a_golden_case() -> None:
    assert {case.engine for case in CASES} == set(ENGINES)
    assert all(case.source for case in CASES)


COMBINED = "neural-search …/processor/combination/*MeanScoreCombinationTechniqueTests.java"


@pytest.mark.parametrize(
    ("engine", "values", "expected"),
    [
        ("opensearch-l2-geometric", (1.0, 0.5, 0.3), 0.5567),
        ("opensearch-l2-geometric", (1.0, 0.0, 0.6), 0.7863),
        ("opensearch-l2-harmonic", (1.0, 0.5, 0.3), 0.48),
        ("opensearch-l2-harmonic", (1.0, 0.0, 0.6), 0.7611),
        ("opensearch-rrf", (1.0, 0.0, 0.6), 0.69),
        ("opensearch-l2-arithmetic", (1.0, 0.0, 0.6), 0.69),
    ],
)
def test_combinations_of_opensearch(
    engine: str, values: tuple[float, ...], expected: float
) -> None:
    weights = (0.45, 0.15, 0.4)
    found = find_engine(engine)
    rows: Any = np.array(values, np.float32)[:, None]
    prepared = Prepared(rows, np.array([True]), np.array([0], np.int64))
    fused = found.combine(prepared, Setting(weights=weights))
    assert fused.tolist() == pytest.approx([expected], abs=1e-4), COMBINED


@pytest.mark.parametrize("case", cases("autorag", "hybrid_rrf"), ids=lambda case: case["id"])
def test_rank_fusion_of_autorag(case: Any) -> None:
    given, (ids, scores) = case["inputs"], case["expected"]
    runs = [
        [{"query": "q", "retrieved": [{"doc": d, "score": s} for d, s in zip(*pair, strict=True)]}]
        for pair in zip(given["ids"], given["scores"], strict=True)
    ]
    fused = fuse(runs, "autorag-rrf", k=given["rrf_k"], depth=given["top_k"])
    assert fused.rows["doc"].to_list() == ids
    assert fused.rows["score"].to_list() == scores


@pytest.mark.parametrize(
    "case", cases("course-notes", "reciprocal_rank_fusion"), ids=lambda case: case["id"]
)
def test_rank_fusion_of_the_course(case: Any) -> None:
    runs = [{"q": case["inputs"][name]} for name in ("list1", "list2")]
    fused = fuse(runs, "course-rrf", k=case["params"]["K"], depth=case["params"]["top_k"])
    assert fused.rows["doc"].to_list() == [str(doc) for doc in case["expected"]]

"""Settings measured through one relation: the values are those of `evaluate` over `fuse`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findwell
from findwell.evaluation.plan import grouped
from findwell.loop.tuning.engines import find_engine
from findwell.loop.tuning.fused_values import RecordedRuns
from findwell.loop.tuning.fusion import fuse
from findwell.measures.dialects import known_dialects
from findwell.relations.match import known_matchers
from tests.test_invariances import OPTIONS, SENTENCES, measures

if TYPE_CHECKING:
    from findwell.judges.verdicts import Sample

RELATIONS = tuple(name for name, each in known_matchers().items() if not each.about_list)
QUICK = ("ids", "rouge-sentence", "spans", "relevance")  # one of each kind
SHARES = ((0.0, 1.0), (0.3, 0.7), (0.5, 0.5), (1.0, 0.0))


def untidy(seed: int, queries: int = 12) -> dict[str, Any]:
    """Make a corpus with equal texts and chunks of shared documents, two runs, and a gold."""
    pick = random.Random(seed)
    sources = {name: " ".join(pick.choices(SENTENCES, k=8)) for name in ("manual", "faq")}
    corpus = []
    for number in range(14):
        source = pick.choice(sorted(sources))
        start = sources[source].rfind(" ", 0, pick.randrange(0, 120)) + 1
        end = sources[source].find(".", start + pick.randrange(5, 60)) + 1
        end = end or len(sources[source])
        chunk = {"doc": f"{source}-{number}", "source": source, "start": start, "end": end}
        corpus.append(chunk | {"text": sources[source][start:end]})
    corpus.append(corpus[3] | {"doc": "copy-of-3"})
    corpus += [{"doc": name, "text": text, "start": None} for name, text in sources.items()]
    names = [str(chunk["doc"]) for chunk in corpus[:15]]

    def run(scale: float) -> dict[str, dict[str, float]]:
        return {
            f"q{number}": {
                doc: pick.choice((1, 2, 3, 4.5)) * scale for doc in pick.sample(names, 7)
            }
            for number in range(queries)
            if number != 4
        }

    gold = [
        {
            "query": f"q{number}",
            "question": pick.choice(SENTENCES).replace(".", "?"),
            "reference": f"{pick.choice(SENTENCES)} {pick.choice(SENTENCES)}",
            "gold": [
                {"doc": doc, "grade": pick.choice((0, 1, 2, 3))} for doc in pick.sample(names, 4)
            ],
        }
        for number in range(queries)
    ]
    return {"runs": {"dense": run(1.0), "sparse": run(7.0)}, "gold": gold, "corpus": corpus}


def assert_same_values(
    data: dict[str, Any], engine: str, wanted: list[Any], fixed: dict[str, Any], **options: Any
) -> None:
    """Compare the values of some settings with those of `evaluate`, bit for bit."""
    formula, runs = find_engine(engine), list(data["runs"].values())
    knobs = [{**fixed, "weights": weights} for weights in SHARES]
    if formula.weights is None:
        knobs = [{**fixed, "k": k} for k in (1, 60)]
    settings = [formula.setting(2, **each) for each in knobs]
    chosen: dict[str, Any] = {"judge": "local:text", "embedder": OPTIONS["embedder"], **options}
    chosen |= {"corpus": data["corpus"], "queries": None, "rel": None}
    chosen.setdefault("dialect", "findwell")
    source = RecordedRuns(data["runs"], data["gold"], wanted, chosen, formula)
    values = source.values(settings)
    fused = {str(number): fuse(runs, engine, **each) for number, each in enumerate(knobs)}
    fused |= data["runs"]
    evaluated = {**chosen, "level": None}
    for number, run in enumerate(fused.values()):
        result = findwell.evaluate(run, data["gold"], wanted, **grouped(evaluated))
        (name,) = result.runs
        for measure in result.measures:
            at = values.measures.index(measure)
            ours, theirs = values.table[number, at], result.arrays[name, measure]
            assert np.array_equal(ours, theirs, equal_nan=True), (str(measure), number)


@pytest.mark.parametrize(
    "relation",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in RELATIONS],
)
@pytest.mark.parametrize(
    ("engine", "fixed"),
    [
        ("elasticsearch-rrf", {"window": 4}),
        pytest.param("autorag-cc", {}, marks=pytest.mark.slow),
    ],
)
def test_every_measure_over_every_relation(relation: str, engine: str, fixed: Any) -> None:
    assert_same_values(untidy(1), engine, measures((relation,)), fixed)


@pytest.mark.parametrize(
    ("dialect", "engine"),
    [
        pytest.param(dialect, engine, marks=() if at % 2 == to else pytest.mark.slow)  # in turn
        for at, dialect in enumerate(known_dialects())
        for to, engine in enumerate(("course-rrf", "elasticsearch-rrf"))
    ],
)
def test_every_dialect(dialect: str, engine: str) -> None:
    wanted = ["nDCG@3", "recall@5", "AP", "RR", "P@5"]
    refuses = known_dialects()[dialect].policy.missing == "error"
    options = {"missing": "zero"} if refuses else {}
    assert_same_values(untidy(2), engine, wanted, {}, dialect=dialect, **options)


@pytest.mark.parametrize("ids", ["identity", "chunk-to-doc"])
@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_chunks_of_one_document_repeat_it(ids: str, missing: str) -> None:
    data = untidy(3)
    for name, run in data["runs"].items():
        data["runs"][name] = {
            query: {doc.replace("-", "#"): score for doc, score in docs.items()}
            for query, docs in run.items()
        }
    for record in data["gold"]:
        for item in record["gold"]:
            item["doc"] = item["doc"].replace("-", "#")
    data["corpus"] = None
    wanted = ["nDCG@3", "recall@5", "P@5", "AP", "redundancy@5", "bpref", "judged@5"]
    assert_same_values(data, "qdrant-rrf", wanted, {}, ids=ids, missing=missing)


def test_one_query_alone_and_many_edges_give_the_same_values() -> None:
    data = untidy(4)
    for record in data["gold"]:  # everything is judged: ranks are sorted instead of counted
        record["gold"] = [{"doc": chunk["doc"], "grade": 1} for chunk in data["corpus"]]
    assert_same_values(data, "qdrant-rrf", ["nDCG@5", "AP", "R"], {})


@pytest.mark.parametrize("aspect", ["relevance", "claims", "statements"])
def test_a_judge_looks_at_each_document_once(aspect: str) -> None:
    data = untidy(5)
    asked: list[tuple[str, str]] = []

    def judge(sample: Sample) -> dict[str, Any]:
        asked.extend((sample.query, chunk) for chunk in sample.chunks)
        yes = [len(chunk) % 2 for chunk in sample.chunks]
        parts = sample.parts["statements"]
        return {
            "relevance": [len(chunk) % 4 for chunk in sample.chunks],
            "claims": [yes for _ in sample.items["claims"]],
            "statements": [[len(part) % 2 for part in row] for row in parts],
        }

    formula = find_engine("qdrant-rrf")
    settings = [formula.setting(2, weights=weights) for weights in SHARES]
    options = {"corpus": data["corpus"], "queries": None, "rel": None, "dialect": "findwell"}
    wanted = [f"P@3/{aspect}"]
    options["judge"] = judge
    RecordedRuns(data["runs"], data["gold"], wanted, options, formula).values(settings)
    assert asked
    assert len(asked) == len(set(asked))
    everything = {
        (query, chunk["text"])
        for run in data["runs"].values()
        for query, docs in run.items()
        for chunk in data["corpus"]
        if chunk["doc"] in docs
    }
    assert len(asked) < len(everything)  # what no setting brings up is not judged
    assert_same_values(data, "qdrant-rrf", wanted, {}, judge=judge)


def test_a_verdict_about_the_whole_list_is_refused() -> None:
    data = untidy(6)
    with pytest.raises(findwell.FindwellError, match="list as a whole"):
        assert_same_values(data, "qdrant-rrf", ["recall@5/sufficiency"], {})

"""Retrievers that are asked: real ones, that fail, that are killed, and whose claim is checked."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import findwell
from findwell.core.errors import InputError, OptionError, RetrieverError, SaveError
from findwell.loop.tuning.halving import HalvingPlan
from findwell.loop.tuning.tune import tune as tune_any
from tests.tuning.asked_bm25 import DEMO, GOLD, make_flaky, make_noted, make_retriever
from tests.tuning.judging import by_words

CORPUS = DEMO / "passages.jsonl"
SPACE = {"knobs": {"k1": [0.5, 1.0, 1.5, 2.0], "b": [0.25, 0.75, 1.0]}}
SMALL = {"knobs": {"k1": [0.5, 1.5], "b": [0.25, 0.75]}}


def tune(make: Any = make_retriever, gold: Any = GOLD, **options: Any) -> findwell.tuning.Tuning:
    chosen = {"measures": "nDCG@10", "space": SPACE, "retrieval": {"k": 10}, **options}
    found: findwell.tuning.Tuning = tune_any(make, gold, **chosen)
    return found


@functools.cache
def tuned(*, small: bool = False) -> findwell.tuning.Tuning:
    """Return a tuning that several tests look at, of all settings or of few."""
    return tune(space=SMALL) if small else tune()


def test_the_values_are_those_of_evaluate_on_the_same_queries() -> None:
    found = tuned()
    halving, names = found.asked.halving, np.array(found.asked.queries)
    for setting, knobs in enumerate(found.asked.settings):
        run = findwell.retrieve(make_retriever(**knobs.setting), str(GOLD), k=10)
        result = findwell.evaluate(run, GOLD, "nDCG@10")
        (values,) = result.arrays.values()
        by_query = dict(zip(result.queries["query"], values, strict=True))
        asked = ~np.isnan(halving.values[setting])
        whole = np.array([by_query[name] for name in names])
        assert asked.any()
        assert (halving.values[setting][asked] == whole[asked]).all()
    final = names[halving.final]
    both = {
        "current": make_retriever(),
        "chosen": make_retriever(**found.chosen),
    }
    gold = [row for row in map(json.loads, GOLD.read_text().splitlines()) if row["query"] in final]
    row = findwell.compare(
        {name: findwell.retrievers.Retriever(each, k=10) for name, each in both.items()},
        gold,
        measures="nDCG@10",
    )["chosen", "nDCG@10"]
    (gain,) = found.gains
    assert gain.verdict.difference.value == pytest.approx(row["difference"], abs=1e-12)
    difference = gain.verdict.difference
    assert (difference.low, difference.high) == pytest.approx((row["low"], row["high"]), abs=1e-9)
    assert gain.verdict.difference.n == row["n"] == len(final)
    assert found.held_out.value == pytest.approx(row["system_value"], abs=1e-12)


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        ("recall@5/rouge", {"corpus": CORPUS}),
        ("context_precision", {"judge": by_words, "corpus": CORPUS}),
        ("nDCG@10", {"dialect": "trec_eval"}),
        ("AP", {"rel": 2}),
        ("unjudged@5", {}),  # less is better
    ],
)
def test_any_measure_over_any_relation_chooses(measure: str, options: dict[str, Any]) -> None:
    found = tune(space=SMALL, measures=measure, **options)
    means = {}
    for setting, knobs in enumerate(found.asked.settings):
        retriever = findwell.retrievers.Retriever(make_retriever(**knobs.setting), k=10)
        result = findwell.evaluate(retriever, GOLD, measure, **options)
        (values,) = result.arrays.values()
        by_query = dict(zip(result.queries["query"], values, strict=True))
        whole = np.array([by_query[name] for name in found.asked.queries])
        asked = ~np.isnan(found.asked.halving.values[setting])
        assert (found.asked.halving.values[setting][asked] == whole[asked]).all()
        if setting in found.asked.halving.rungs[-1]:
            means[setting] = round(float(np.nanmean(whole[found.asked.halving.search])), 12)
    best = (max if found.measure.higher_is_better else min)(means.values())
    assert means[found.asked.halving.chosen] == best


def test_the_first_measure_chooses_and_the_others_are_reported() -> None:
    one, found = tuned(), tune(measures=["nDCG@10", "recall@5", "GMAP"])
    assert (found.chosen, found.held_out, found.gains) == (one.chosen, one.held_out, one.gains)
    assert not one.others
    halving = found.asked.halving
    run = findwell.retrieve(make_retriever(**found.chosen), str(GOLD), k=10)
    rows = [json.loads(line) for line in GOLD.read_text().splitlines()]
    for side, read in (("in_sample", halving.search), ("held_out", halving.final)):
        names = {found.asked.queries[at] for at in read}
        gold = [row for row in rows if row["query"] in names]
        result = findwell.evaluate(run, gold, ["recall@5", "GMAP"])
        for other in found.others:
            value = getattr(other, side)
            value = value.value if side == "held_out" else value
            assert value == pytest.approx(result[other.measure], abs=1e-12)
    told = [each["measure"] for each in found.as_dict()["measures"]]
    assert told == ["recall@5", "GMAP"]
    assert "other measures, with the same choices" in repr(found)


def test_queries_of_a_cluster_stay_on_one_side() -> None:
    found = tune(space=SMALL, cluster="topic")
    topics = {row["query"]: row["topic"] for row in map(json.loads, GOLD.read_text().splitlines())}
    sides = [
        {topics[found.asked.queries[at]] for at in side}
        for side in (found.asked.halving.search, found.asked.halving.final)
    ]
    assert not sides[0] & sides[1]
    assert found.held_out.clusters == len(sides[1])
    assert found.as_dict()["cluster"] == "topic"
    assert "clusters by topic" in repr(found)


def test_what_is_told_before_is_what_was_asked() -> None:
    told: list[tuple[str, int]] = []
    steps: list[Any] = []

    def announce(plan: HalvingPlan, calls: int) -> None:
        told.append((str(plan), calls))

    found = tune(announce=announce, progress=steps.append)
    ((plan, calls),) = told
    assert plan == str(found.asked.plan)
    assert found.asked.plan.rungs[0].settings == 12  # the defaults of the function are in the space
    assert found.current == {"k1": 1.5, "b": 0.75}
    same = found.chosen == found.current
    assert (
        calls
        == found.asked.calls.planned
        == found.asked.calls.asked + same * found.asked.plan.final
    )
    assert found.asked.calls.kept == found.asked.calls.failed == 0
    assert max(step.done for step in steps) == found.asked.calls.asked
    assert {step.total for step in steps} == {calls}


def test_latency_stands_beside_quality() -> None:
    found = tuned(small=True)
    for each in found.asked.settings:
        assert each.timing is not None
        assert each.timing.p50 is not None
        asked = each.queries
        asked += found.asked.plan.final * (each.setting in (found.chosen, found.current))
        assert each.timing.n == asked
        assert 0 < each.timing.p50 <= (each.timing.p90 or 0)


def test_queries_on_which_nothing_can_be_found_are_not_asked() -> None:
    found = tuned(small=True)
    gold = findwell.io.load_gold(GOLD)
    unanswerable = set(gold.queries["query"].filter(np.diff(gold.item_offset) == 0))
    assert unanswerable
    assert not unanswerable & set(found.asked.queries)
    (finding,) = [each for each in found.findings if each.kind == "undefined-query"]
    assert finding.count == len(unanswerable)


def test_the_order_of_the_gold_and_the_names_of_queries_do_not_matter() -> None:
    rows = [json.loads(line) for line in GOLD.read_text().splitlines()]
    order = np.random.default_rng(3).permutation(len(rows))
    shuffled = [rows[at] | {"query": f"other {at}"} for at in order]
    one, other = tuned(), tune(gold=shuffled)
    assert (one.chosen, one.in_sample, one.held_out) == (
        other.chosen,
        other.in_sample,
        other.held_out,
    )
    assert one.gains == other.gains


def test_every_tenth_question_fails_and_is_counted() -> None:
    found = tune(make_flaky, space=SMALL)
    assert found.asked.calls.failed == sum(each.failed for each in found.asked.settings) > 5
    assert found.asked.calls.asked == found.asked.calls.planned - (
        found.chosen == found.current
    ) * (found.asked.plan.final)
    (finding,) = [each for each in found.findings if each.kind == "failed-query"]
    assert finding.count == found.asked.calls.failed
    assert "the index is away" in finding.examples[0]
    # a failure counts as nothing retrieved: 0, not left out
    assert found.held_out.n == found.asked.plan.final


def test_a_setting_that_cannot_be_made_or_never_answers_is_given_up() -> None:
    def make(k1: float = 1.5, b: float = 0.75) -> Any:
        if b == 0.25:
            raise ValueError("no index with this b")
        return make_retriever(k1, b) if k1 > 1 else lambda _: 1 / 0

    found = tune(make)
    reasons = {
        (each.setting["k1"], each.setting["b"]): each.reason for each in found.asked.settings
    }
    assert reasons[2.0, 0.25] == "it cannot be made: ValueError: no index with this b"
    assert "ZeroDivisionError" in reasons[0.5, 0.75]
    assert {key for key, reason in reasons.items() if not reason} == {
        (k1, b) for k1 in (1.5, 2.0) for b in (0.75, 1.0)
    }
    assert found.chosen["k1"] > 1
    (finding,) = [each for each in found.findings if each.kind == "failed-setting"]
    assert finding.count == 8
    with pytest.raises(RetrieverError, match=r"every setting failed .*ZeroDivisionError"):
        tune(lambda k1, b: lambda _: k1 / 0 * b)


def test_threads_and_tasks_find_the_same() -> None:
    async def later(question: str, k: int, search: Any) -> Any:
        return search(question, k)

    def make_async(k1: float = 1.5, b: float = 0.75) -> Any:
        search = make_retriever(k1, b)

        async def ask(question: str, k: int = 10) -> Any:
            return await later(question, k, search)

        return ask

    one = tuned(small=True)
    for make in (make_retriever, make_async):
        other = tune(make, space=SMALL, retrieval={"k": 10, "concurrency": 4})
        assert (other.chosen, other.gains, other.asked.calls) == (
            one.chosen,
            one.gains,
            one.asked.calls,
        )


def test_what_a_function_returns_may_be_a_retriever_with_options() -> None:
    def make(k1: float = 1.5, b: float = 0.75) -> findwell.retrievers.Retriever:
        return findwell.retrievers.Retriever(make_retriever(k1, b), k=3)

    ten, three = tuned(small=True), tune(make, space=SMALL, retrieval={})
    assert tune(make, space=SMALL).held_out == ten.held_out  # what is asked for here comes first
    assert three.held_out != ten.held_out
    assert three.held_out == tune(space=SMALL, retrieval={"k": 3}).held_out


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"space": {"knobs": {"k2": [1, 2]}}}, OptionError, "did you mean k1"),
    ({"space": {"knobs": {"b": [0.5]}}, "make": lambda b, c: b * c}, OptionError, "knobs of the"),
    ({"space": None}, OptionError, "there is no space"),
    ({"gold": None}, OptionError, "there is no gold"),
    ({"engine": "qdrant-rrf"}, OptionError, "engine has no effect with a retriever"),
    ({"space": {"knobs": {"b": [0.75]}}}, OptionError, "one setting leaves nothing to choose"),
    ({"space": {"knobs": {"b": {"step": 0.1}}}}, OptionError, "a step alone is for the weights"),
    ({"space": SMALL | {"search": {"how": "optuna"}}}, OptionError, "Optuna is for recorded runs"),
    ({"space": SMALL | {"search": {"first": 70}}}, OptionError, "there are 91"),
    ({"measures": ["GMAP"]}, OptionError, "GMAP is not a mean over queries"),
    ({"gold": {"q1": ["a"]}}, InputError, "there are no questions"),
    ({"retrieval": {"concurrency": 0}}, OptionError, "concurrency is 0"),
    ({"level": 1.0}, OptionError, "the level is 1.0"),
    ({"cluster": "author"}, OptionError, "unknown column of the queries 'author'"),
    ({"current": {"k3": 1}}, OptionError, "unknown knob 'k3'"),
    ({"answers": "/dev/null/answers"}, SaveError, "answers cannot be kept here"),
]


@pytest.mark.parametrize(("given", "error", "message"), BAD, ids=[each[2] for each in BAD])
def test_mistakes_are_found_before_anything_is_asked(
    given: dict[str, Any], error: type[Exception], message: str
) -> None:
    asked: list[str] = []

    def make(k1: float = 1.5, b: float = 0.75) -> Any:
        del k1, b

        def search(question: str) -> list[str]:
            asked.append(question)
            return []

        return search

    with pytest.raises(error, match=message):
        tune(**{"make": make, **given})
    assert not asked


def test_an_async_function_that_makes_retrievers_is_refused() -> None:
    async def make(k1: float = 1.5, b: float = 0.75) -> Any:
        return make_retriever(k1, b)

    with pytest.raises(OptionError, match="something to be awaited"):
        tune(make)


def test_answers_are_kept_by_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes, folder = tmp_path / "notes", tmp_path / "answers"
    monkeypatch.setenv("NOTES", str(notes))
    first = tune(make_noted, space=SMALL, answers=folder)
    asked = notes.read_text().splitlines()
    assert len(asked) == len(set(asked)) == first.asked.calls.asked
    again = tune(make_noted, space=SMALL, answers=folder)
    assert again.asked.calls.asked == 0
    assert again.asked.calls.kept == first.asked.calls.asked
    assert len(notes.read_text().splitlines()) == len(asked)
    assert again.gains == first.gains
    assert "resumed-answer" in {each.kind for each in again.findings}
    # another k is another answer
    assert tune(make_noted, space=SMALL, answers=folder, retrieval={"k": 5}).asked.calls.kept == 0


SCRIPT = """
import json, sys
from tests.tuning.asked_bm25 import GOLD, make_noted
from findwell.loop.tuning.tune import tune
space = {"knobs": {"k1": [0.5, 1.0, 1.5, 2.0], "b": [0.25, 0.75, 1.0]}}
found = tune(make_noted, GOLD, "nDCG@10", space=space, answers=sys.argv[1],
                       retrieval={"k": 10, "concurrency": 2})
told = found.as_dict()
print(json.dumps({key: told[key] for key in ("chosen", "in_sample", "held_out", "gains", "calls")}))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_after_kill_9_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    notes, folder = tmp_path / "notes", tmp_path / "answers"
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(Path(findwell.__file__).parents[1]), str(root)])
    env = os.environ | {"NOTES": str(notes), "PYTHONPATH": paths}
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        # 240 questions are the first rung: it is killed in the second
        while not (notes.exists() and len(notes.read_text().splitlines()) > 250):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    asked = Counter(notes.read_text().splitlines())
    # what was being asked when it was killed had no answer: two questions at most
    assert sum(asked.values()) - len(asked) <= 2
    assert told["calls"]["kept"] >= 250 - 2
    whole = tuned().as_dict()
    for key in ("chosen", "in_sample", "held_out", "gains"):
        assert told[key] == whole[key]

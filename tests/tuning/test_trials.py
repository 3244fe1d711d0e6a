"""Fusions of a space: what is tried, that values are those of evaluate, and an honest search."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import findwell
from findwell.core.errors import OptionError
from findwell.core.values import Values
from findwell.loop.tuning.choice import ChoiceRule, choose_setting
from findwell.loop.tuning.engines import ENGINES, Setting
from findwell.loop.tuning.fusion_settings import (
    fit_to_runs,
    fusion_settings,
    places_of,
    search_by_optuna,
)
from findwell.loop.tuning.pool import Pool
from findwell.loop.tuning.space import Space
from findwell.loop.tuning.tune import tune
from findwell.loop.tuning.tuning import Tuning
from findwell.measures import parse_measure
from tests.tuning.judging import by_words

DEMO = Path(findwell.__file__).parent / "demo"
RUNS = [DEMO / "bm25.trec", DEMO / "minilm.trec"]
GOLD = DEMO / "questions.jsonl"
SPACE: dict[str, Any] = {
    "knobs": {
        "engine": ["elasticsearch-linear", "qdrant-rrf", "milvus-rrf"],
        "weights": {"step": 0.25},
        "k": [2, 60],
        "window": [5, 20],
        "normaliser": ["minmax", "l2_norm"],
    }
}

Floats = NDArray[np.float64]


def space(how: str = "grid", trials: int = 40, **knobs: Any) -> dict[str, Any]:
    return {"knobs": knobs or SPACE["knobs"], "search": {"how": how, "trials": trials}}


def fuse(given: dict[str, Any], **options: Any) -> Tuning:
    found: Tuning = tune(RUNS, GOLD, options.pop("measures", "nDCG@10"), space=given, **options)
    return found


def fused(setting: Setting) -> findwell.Run:
    engine = ENGINES[setting.engine]
    pool = engine.arranged(Pool.of(RUNS))
    scores = engine.scores(pool, setting)
    return pool.as_run(pool.order(scores, setting.window if engine.cut else None), scores)


def test_engines_are_tried_with_the_knobs_that_they_have() -> None:
    trials = fusion_settings(fit_to_runs(Space.of(SPACE), 2), 2)
    count = {name: sum(each.engine == name for each in trials) for name in ENGINES}
    assert count["elasticsearch-linear"] == 5 * 2 * 2
    assert count["qdrant-rrf"] == 5 * 2 * 2
    assert count["milvus-rrf"] == 2 * 2  # it has no weights
    assert sum(count.values()) == len(set(trials)) == len(trials)


def test_every_value_is_that_of_evaluate_on_the_fused_run() -> None:
    found = fuse(SPACE, measures=["nDCG@10", "RR"])
    for number, setting in enumerate(found.grid.settings):
        value = findwell.evaluate(fused(setting), GOLD, "nDCG@10")["nDCG@10"]
        assert found.choice.curve[number].value == pytest.approx(value, abs=1e-12), str(setting)
    assert findwell.evaluate(found.run, GOLD, "nDCG@10")["nDCG@10"] == pytest.approx(
        found.choice.in_sample.value, abs=1e-12
    )
    told = found.as_dict()
    assert told["chosen"]["engine"] == told["engine"] == found.engine
    assert all("engine" in each for each in told["plateau"])
    assert told["search"] == "grid"


def test_a_space_of_weights_chooses_as_tune_does_without_a_space() -> None:
    one = tune(RUNS, GOLD, engine="weaviate-relative", step=0.1)
    other = fuse(space(weights={"step": 0.1}), engine="weaviate-relative")
    assert isinstance(one, Tuning)
    assert other.chosen.weights == pytest.approx(one.chosen.weights)
    assert other.choice.held_out == one.choice.held_out
    assert [gain.verdict.difference for gain in other.gains] == [
        gain.verdict.difference for gain in one.gains
    ]


@pytest.mark.parametrize("current", ["in the space", "as a dict"])
def test_the_current_setting_may_lie_beside_the_grid(current: str) -> None:
    now = {"engine": "qdrant-rrf", "weights": 0.45, "k": 7, "window": 20, "normaliser": "minmax"}
    given = SPACE | {"current": now} if current == "in the space" else SPACE
    found = fuse(given, **({} if current == "in the space" else {"current": now}))
    assert found.current is not None
    assert str(found.current) == "qdrant-rrf w=0.9,1.1 k=7 window=20"
    value = findwell.evaluate(fused(found.current), GOLD, "nDCG@10")["nDCG@10"]
    assert found.gains[0].over == "current"
    assert found.gains[0].value == pytest.approx(value, abs=1e-12)
    assert found.current not in found.grid.settings


@pytest.mark.parametrize("how", ["random", "optuna"])
def test_a_sampler_is_seeded_and_the_order_of_runs_and_queries_does_not_matter(
    how: str, tmp_path: Path
) -> None:
    given = space(how, 15, weights={"low": 0.0, "high": 1.0}, k={"low": 1, "high": 100})
    one = fuse(given, engine="qdrant-rrf")
    lines = GOLD.read_text().splitlines(keepends=True)
    shuffled = tmp_path / "gold.jsonl"
    shuffled.write_text(
        "".join(lines[at] for at in np.random.default_rng(1).permutation(len(lines)))
    )
    again = tune(RUNS, shuffled, space=given, engine="qdrant-rrf")
    assert isinstance(again, Tuning)
    assert again.grid.settings == one.grid.settings
    # sums of the same values in another order differ in the last digit
    assert again.choice.held_out.value == pytest.approx(one.choice.held_out.value, abs=1e-12)
    assert (again.choice.picks == one.choice.picks).all()
    assert again.chosen == one.chosen
    other = given | {"search": given["search"] | {"seed": 5}}
    if how == "random":
        assert fuse(other, engine="qdrant-rrf").grid.settings != one.grid.settings
        assert len(one.grid.settings) == 15


def test_texts_are_matched_and_judged_for_every_engine_of_a_space() -> None:
    given = space(engine=["qdrant-rrf", "milvus-rrf"], k=[2, 60])
    corpus = DEMO / "passages.jsonl"
    found = fuse(given, measures="RR@2/relevance", judge=by_words, corpus=corpus)
    for number, setting in enumerate(found.grid.settings):
        run = fused(setting)
        result = findwell.evaluate(run, GOLD, "RR@2/relevance", judge=by_words, corpus=corpus)
        value = result["RR@2/relevance"]
        assert found.choice.curve[number].value == pytest.approx(value, abs=1e-12)


BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (space(b=[1, 2]), {"engine": "qdrant-rrf"}, "unknown knob 'b'"),
    (space(k=[1, 2]), {}, "the space names no engine"),
    (space(engine=["qdrant-rf"]), {}, "did you mean qdrant-rrf"),
    (space(normaliser=["minmax", "l2_norm"]), {"engine": "qdrant-rrf"}, "has no normaliser"),
    (space(k=[-1, 2]), {"engine": "milvus-rrf"}, "k=-1"),
    (space(window=[0, 2]), {"engine": "milvus-rrf"}, "window=0"),
    (space(weights=[0.2, 1.2]), {"engine": "qdrant-rrf"}, "the share of the first run is 1.2"),
    (space(weights={"step": 0.3}), {"engine": "qdrant-rrf"}, "do not add up to 1"),
    (space(weights=[[1, 2, 3]]), {"engine": "qdrant-rrf"}, "3 weights for 2 runs"),
    (space(k=[60]), {"engine": "milvus-rrf"}, "one setting leaves nothing to choose"),
    (space(k=[2, 60]), {"engine": "milvus-rrf", "k": 3}, "k has no effect with a space"),
    (space(k=[2, 60]), {"engine": "milvus-rrf", "step": 0.1}, "step has no effect"),
    (space(k=[2, 60]), {"engine": "milvus-rrf", "answers": "x"}, "answers has no effect"),
    (SPACE, {"current": 0.5}, "is a setting of one of them"),
    (SPACE | {"retrieval": {"k": 3}}, {}, "and recorded runs were given"),
    (space("optuna"), {"slices": "topic"}, "slices have no effect"),
]


@pytest.mark.parametrize(("given", "options", "message"), BAD, ids=[each[2] for each in BAD])
def test_what_is_wrong_is_named(
    given: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        fuse(given, **options)
    assert caught.value.fix


def test_settings_that_are_alike_lie_near_each_other() -> None:
    trials = fusion_settings(fit_to_runs(Space.of(SPACE), 2), 2)
    places = places_of(trials)
    same = np.abs(places[:, None] - places[None]).max(axis=2) <= 0.05
    for one, other in zip(*np.nonzero(same), strict=True):
        assert trials[one].engine == trials[other].engine
        assert trials[one].normaliser == trials[other].normaliser
    assert same.sum() == len(trials)  # steps of 0.25 are far apart


def noise(seed: int, queries: int) -> Callable[[Sequence[Setting]], Values]:
    """Return values without any real difference: every query prefers settings of its own."""
    random = np.random.default_rng(seed)
    size, speed = random.normal(size=(queries, 6)), random.normal(size=(queries, 6, 2)) * 3
    shift = random.uniform(0, 2 * np.pi, (queries, 6))

    def value(setting: Setting) -> Floats:
        place = np.array([setting.weights[0] / 2, np.log(setting.k or 1) / np.log(100)])
        waves = (size * np.sin(speed @ place + shift)).sum(axis=1)
        found: Floats = np.clip(0.5 + 0.12 * waves, 0, 1)
        return found

    def values(settings: Sequence[Setting]) -> Values:
        names = pl.DataFrame({"query": [f"q{number}" for number in range(queries)]})
        table = np.array([[value(each)] for each in settings])
        return Values(names, tuple(map(str, settings)), (parse_measure("nDCG@10"),), table)

    return values


@pytest.mark.slow
def test_a_sampler_that_learns_has_not_seen_the_queries_held_out() -> None:
    """Without real differences the value is 0.5, whatever is chosen.

    The values of all that the sampler tried are not honest if it was told about every query: what
    it tried is better than it should be on the queries that are held out.
    """
    knobs = {"weights": {"low": 0.0, "high": 1.0}, "k": {"low": 1, "high": 100, "log": True}}
    given = Space.of({"knobs": knobs, "search": {"how": "optuna", "trials": 50}})
    given = fit_to_runs(given, 2, "qdrant-rrf")
    honest, told = [], []
    for seed in range(24):
        values = noise(seed, 30)
        tried, choice = search_by_optuna(given, 2, values, ChoiceRule(seed=seed, draws=50))
        honest.append((choice.in_sample.value, choice.held_out.value))
        main = tried[:50]  # what the search over all queries tried, and one more
        table = values(main).table[:, 0]
        told.append(
            choose_setting(
                table, ChoiceRule(repeats=2, draws=50), places=places_of(main)
            ).held_out.value
        )
    in_sample, held_out = np.array(honest, dtype=float).T
    error = held_out.std(ddof=1) / np.sqrt(len(held_out))
    assert abs(held_out.mean() - 0.5) < 3 * error
    assert in_sample.mean() - held_out.mean() > 0.03
    assert np.mean(np.array(told, dtype=float) - held_out) > 0.005  # the leak that is avoided

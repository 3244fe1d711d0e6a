"""Search spaces: what can be written, what is tried, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from findwell.core.errors import FindwellError, InputError, OptionError
from findwell.loop.tuning.space import Knobs, Space, as_shares, identify

FILE = """
[knobs]
k1 = { low = 0.8, high = 2.0, step = 0.4 }
b = [0.5, 0.75]
depth = { low = 10, high = 1000, steps = 3, log = true }
stemmer = "english"

[current]
k1 = 1.2
b = 0.75
depth = 100

[search]
how = "random"
trials = 7
seed = 3
"""


def knobs(**given: Any) -> Space:
    return Space.of({"knobs": given})


def values(given: Any) -> tuple[Any, ...]:
    return knobs(x=given).knobs[0].values


def test_a_file_says_what_a_dict_says(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(FILE)
    space = Space.of(path)
    assert [knob.values for knob in space.knobs] == [
        (0.8, 1.2, 1.6, 2.0),
        (0.5, 0.75),
        (10, 100, 1000),
        ("english",),
    ]
    assert space.size == 24
    assert space.current == {"k1": 1.2, "b": 0.75, "depth": 100, "stemmer": "english"}
    import tomllib

    table = tomllib.loads(FILE)
    (tmp_path / "space.json").write_text(json.dumps(table))
    for same in (Space.of(table), Space.of(tmp_path / "space.json"), Space.of(space)):
        assert (same.knobs, same.current, same.search) == (space.knobs, space.current, space.search)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"low": 1, "high": 4}, (1, 2, 3, 4)),
        ({"low": 1, "high": 10, "step": 4}, (1, 5, 9)),
        ({"low": 0, "high": 1, "step": 0.1}, tuple(n / 10 for n in range(11))),
        ({"low": 0.0, "high": 1.0, "steps": 3}, (0.0, 0.5, 1.0)),
        ({"low": 1, "high": 100, "steps": 3, "log": True}, (1, 10, 100)),
        ({"low": 1, "high": 3, "steps": 50}, (1, 2, 3)),  # whole numbers, each once
        ([True, 1, "1"], (True, 1, "1")),
        ([[0.7, 0.3], [1, 0]], ((0.7, 0.3), (1, 0))),
        (5, (5,)),
    ],
)
def test_the_values_of_a_knob(given: Any, expected: tuple[Any, ...]) -> None:
    found = values(given)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_a_grid_has_every_combination_once() -> None:
    settings = knobs(a=[1, 2, 3], b=["x", "y"], c=True).settings()
    assert len(settings) == len({identify(each) for each in settings}) == 6
    assert settings[0] == {"a": 1, "b": "x", "c": True}


@pytest.mark.parametrize("trials", [5, 500])
def test_settings_at_random_are_different_seeded_and_inside(trials: int) -> None:
    def drawn(seed: int) -> list[Knobs]:
        search = {"how": "random", "trials": trials, "seed": seed}
        ranges = {"x": {"low": -1.0, "high": 2.0}, "n": {"low": 2, "high": 9, "log": True}}
        return Space.of({"knobs": ranges, "search": search}).settings()

    found = drawn(1)
    assert found == drawn(1) != drawn(2)
    assert len({identify(each) for each in found}) == len(found) == trials
    assert all(-1 <= each["x"] <= 2 and each["n"] in range(2, 10) for each in found)
    assert all(type(each["n"]) is int for each in found)


def test_a_small_space_drawn_at_random_is_exhausted() -> None:
    search = {"how": "random", "trials": 50}
    assert len(Space.of({"knobs": {"x": [1, 2, 3]}, "search": search}).settings()) == 3


BAD: list[tuple[Any, str]] = [
    ({}, "the space has no knobs"),
    ({"knobs": {}}, "the space has no knobs"),
    ({"knobs": []}, "knobs is not a table"),
    ({"knob": {"b": [1]}}, "unknown part of a search space 'knob'"),
    ({"b": [1, 2]}, "a knob stands below"),
    ({"knobs": {"b": []}}, "b: it has no value to try"),
    ({"knobs": {"b": [0.5, 0.75, 0.5]}}, "0.5 is there twice"),
    ({"knobs": {"b": [float("nan")]}}, "nan is not a value of a knob"),
    ({"knobs": {"b": [10**400]}}, "is not a value of a knob"),
    ({"knobs": {"b": [{"x": 1}]}}, "is not a value of a knob"),
    ({"knobs": {"b": [[]]}}, "is not a value of a knob"),
    ({"knobs": {"two words": [1]}}, "cannot be the name of a knob"),
    ({"knobs": {"b": {"lo": 1, "high": 2}}}, "unknown key of a range 'lo'"),
    ({"knobs": {"b": {"high": 2}}}, "a range needs low"),
    ({"knobs": {"b": {"low": 2, "high": 2}}}, "the range goes from 2 to 2"),
    ({"knobs": {"b": {"low": "1", "high": 2}}}, "low is '1'"),
    ({"knobs": {"b": {"low": True, "high": 2}}}, "low is True"),
    ({"knobs": {"b": {"low": 0.0, "high": float("inf")}}}, "high is inf"),
    ({"knobs": {"b": {"low": 0, "high": 2, "step": 0}}}, "step is 0"),
    ({"knobs": {"b": {"low": 0, "high": 2, "step": -1}}}, "step is -1"),
    ({"knobs": {"b": {"low": 0, "high": 2, "steps": 1}}}, "steps is 1"),
    ({"knobs": {"b": {"low": 0, "high": 2, "steps": 2.5}}}, "steps is 2.5"),
    ({"knobs": {"b": {"low": 0, "high": 2, "step": 1, "steps": 3}}}, "both step and steps"),
    ({"knobs": {"b": {"low": 1, "high": 2, "step": 1, "log": True}}}, "both step and log"),
    ({"knobs": {"b": {"low": 0, "high": 2, "steps": 3, "log": True}}}, "cannot begin at 0"),
    ({"knobs": {"b": {"low": 1, "high": 2, "log": "yes"}}}, "log is 'yes'"),
    ({"knobs": {"b": {"low": 0.0, "high": 1.0}}}, "a grid needs to know which numbers"),
    ({"knobs": {"b": {"low": 0.0, "high": 1.0, "step": 1e-9}}}, "has 1,000,000,001 settings"),
    ({"knobs": {"b": [1, 2]}, "current": {"c": 1}}, "current: unknown knob 'c'"),
    ({"knobs": {"b": [1, 2], "c": [1, 2]}, "current": {"b": 1}}, "has no c"),
    ({"knobs": {"b": [1, 2]}, "search": {"way": "grid"}}, "unknown key of search 'way'"),
    ({"knobs": {"b": [1, 2]}, "search": {"how": "greed"}}, "did you mean grid"),
    ({"knobs": {"b": [1, 2]}, "search": {"trials": 0}}, "trials is 0"),
    ({"knobs": {"b": [1, 2]}, "search": {"trials": 2.0}}, "trials is 2.0"),
    ({"knobs": {"b": [1, 2]}, "search": {"eta": 1}}, "eta is 1"),
    ({"knobs": {"b": [1, 2]}, "search": {"first": True}}, "first is True"),
    ({"knobs": {"b": [1, 2]}, "search": {"final": 1}}, "final is 1"),
    ({"knobs": {"b": [1, 2]}, "search": {"final": "half"}}, "final is 'half'"),
    (3, "a int is not a search space"),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_wrong_is_named_with_what_to_do(given: Any, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        Space.of(given)
    assert message in str(caught.value)
    assert caught.value.fix
    assert caught.value.where.startswith("space")


def test_a_grid_that_is_too_large_is_refused_before_it_is_written_out() -> None:
    with pytest.raises(OptionError, match=r"1,000,000 settings; at most 20,000"):
        knobs(a={"low": 1, "high": 1000}, b={"low": 1, "high": 1000}).settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [("[knobs", "not valid TOML"), ("[knobs]\nb = [1]\nb = [2]\n", "not valid TOML"), (None, "")],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "space.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message or "cannot be read") as caught:
        Space.of(path)
    assert caught.value.where == str(path)
    with pytest.raises(FindwellError, match="cannot be read"):
        Space.of(tmp_path)


def test_weights_in_proportion_are_multiples_of_the_step() -> None:
    assert as_shares([2, 3, 5], 0.25) == (0.25, 0.25, 0.5)
    assert as_shares([0, 0]) == (0.5, 0.5)

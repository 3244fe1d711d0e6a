"""`findwell measures`: the list, and what one means."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from findwell.measures import known_measures

if TYPE_CHECKING:
    from tests.conftest import Findwell


def test_the_list_names_every_measure(cli: Findwell) -> None:
    done = cli("measures")
    assert (done.code, done.err) == (0, "")
    assert all(name in done.out for name in known_measures())


def test_the_list_as_json(cli: Findwell) -> None:
    shown = cli("measures", "--format=json", "-o", "-").answer["measures"]
    assert [entry["name"] for entry in shown] == list(known_measures())
    for entry in shown:
        assert entry["definition"]
        assert entry["aggregation"]


@pytest.mark.parametrize(
    "name", [*known_measures(), "map", "mrr", "ndcg_cut_10", "P@5", "hit_rate"]
)
def test_every_measure_explains_itself(name: str, cli: Findwell) -> None:
    done = cli("measures", name)
    assert (done.code, done.err) == (0, "")
    assert ">>>" not in done.out
    assert "Aggregated by" in done.out
    assert "\nWhen to use: " in done.out
    lines = done.out.partition("Aggregated by")[0].splitlines()
    assert max(map(len, lines)) <= 80
    for line, after in pairwise(lines):  # no line ends before it must
        head = re.match(r"[\w`(−-][^\s]*", after)
        assert not head or not line or line.endswith(":") or len(f"{line} {head[0]}") > 80, line


@pytest.mark.parametrize(("typo", "meant"), [("ndgc", "nDCG"), ("recal@5", "recall")])
def test_a_typo_gets_a_suggestion(typo: str, meant: str, cli: Findwell) -> None:
    done = cli("measures", typo)
    assert (done.code, done.out) == (2, "")
    assert f"did you mean {meant}" in done.err

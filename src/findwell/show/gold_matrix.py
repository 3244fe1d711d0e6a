"""The gold of a query under several systems: which item was met by which of them, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def gold_matrix(by_system: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return one table per relation: an item per row, and the rank at which each system met it.

    What is given is the gold as `QueryDetails` tells it, by system. Systems whose gold is not the
    same, such as claims that two judges listed differently, have tables of their own.

    >>> item = {"number": 1, "docs": ["a"], "grade": 1.0}
    >>> told = {"relation": "ids", "counts": "", "cutoff": 5, "relevant": 1, "other": 0}
    >>> first = told | {"met": 1, "items": [item | {"rank": 3}]}
    >>> second = told | {"met": 0, "items": [item | {"rank": None}]}
    >>> [found] = gold_matrix([[first], [second]])
    >>> found["items"][0]["ranks"], found["counted"]
    ([3, None], [{'counts': '', 'relevant': 1, 'met': [1, 0]}])
    """
    found: dict[object, dict[str, Any]] = {}
    for system, golds in enumerate(by_system):
        relations = dict.fromkeys(gold["relation"] for gold in golds)
        for relation in relations:
            mine = [gold for gold in golds if gold["relation"] == relation]
            whole = max(mine, key=lambda gold: gold["relevant"])  # the others are its beginning
            key = (
                relation,
                tuple((tuple(item["docs"]), item["grade"]) for item in whole["items"]),
                tuple((gold["counts"], gold["relevant"]) for gold in mine),
            )
            _add(found.setdefault(key, _table(whole, mine)), system, whole, mine)
    return list(found.values())


def _table(whole: dict[str, Any], mine: Sequence[dict[str, Any]]) -> dict[str, Any]:
    cutoffs = [gold["cutoff"] for gold in mine]
    return {
        "relation": whole["relation"],
        "cutoff": None if None in cutoffs else max(cutoffs),
        "systems": [],
        "counted": [
            {"counts": gold["counts"], "relevant": gold["relevant"], "met": []} for gold in mine
        ],
        "items": [
            {name: value for name, value in item.items() if name != "rank"} | {"ranks": []}
            for item in whole["items"]
        ],
        "more": whole["relevant"] - len(whole["items"]),
    }


def _add(
    table: dict[str, Any], system: int, whole: dict[str, Any], mine: Sequence[dict[str, Any]]
) -> None:
    table["systems"].append(system)
    for counted, gold in zip(table["counted"], mine, strict=True):
        counted["met"].append(gold["met"])
    for row, item in zip(table["items"], whole["items"], strict=True):
        row["ranks"].append(item["rank"])

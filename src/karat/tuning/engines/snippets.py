"""The configuration of each engine, ready to paste."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.tuning.engines.engine import Setting


def elasticsearch_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return the body of a search request."""
    retrievers = [
        _without_1({"retriever": {"standard": {"query": f"… {name} …"}}, "weight": weight})
        for name, weight in zip(runs, setting.weights, strict=True)
    ]
    return _json(
        {
            "retriever": {
                "rrf": {
                    "retrievers": retrievers,
                    "rank_constant": _plain(setting.k),
                    "rank_window_size": setting.window,
                }
            }
        }
    )


def qdrant_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return the body of a query request."""
    rrf: dict[str, Any] = {"k": _plain(setting.k)}
    if set(setting.weights) != {1.0}:
        rrf["weights"] = list(setting.weights)
    prefetch = [{"query": f"… {name} …", "limit": setting.window or 100} for name in runs]
    return _json({"prefetch": prefetch, "query": {"rrf": rrf}})


def autorag_cc(setting: Setting, runs: Sequence[str]) -> str:
    """Return the module of a node."""
    del runs
    return (
        "modules:\n"
        "  - module_type: hybrid_cc\n"
        f"    normalize_method: [ {setting.normaliser[0]} ]\n"
        f"    weight_range: ({setting.weights[0]:g}, {setting.weights[0]:g})\n"
        "    test_weight_size: 1\n"
    )


def autorag_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return the module of a node."""
    del runs
    k = _plain(setting.k)
    return f"modules:\n  - module_type: hybrid_rrf\n    weight_range: ({k}, {k})\n"


def course_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return the call."""
    return f"reciprocal_rank_fusion([{', '.join(runs)}], K={_plain(setting.k)})\n"


def _json(value: Any) -> str:  # noqa: ANN401
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _plain(number: float | None) -> float | int | None:
    return int(number) if number is not None and float(number).is_integer() else number


def _without_1(retriever: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in retriever.items() if (name, value) != ("weight", 1.0)}

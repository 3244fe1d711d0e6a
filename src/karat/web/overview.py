"""What the first page of `karat label` tells: who labels, how far they are, how far they agree."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from karat.web.passages import progress_json

if TYPE_CHECKING:
    from karat.labels.labels import Labels

DESIGNS = {
    "sample": "a probability sample, for absolute values",
    "mm-ns": "in the order of MM-NS, to tell systems apart",
    "mtf": "in the order of move-to-front, to tell systems apart",
    "depth": "by depth, to tell systems apart",
}


def overview(labels: Labels, pool: str) -> dict[str, Any]:
    """Return what the template shows."""
    queries = labels.queries()
    pairs = int(queries["pairs"].sum())
    design, budget = labels.settings.get("design", ""), labels.settings.get("budget")
    parts = [
        f"{queries.height:,} questions",
        f"{pairs:,} passages",
        DESIGNS.get(design, design),
        f"{budget:,} to label" if budget and budget < pairs else "",
    ]
    return {
        "pool": pool,
        "about": " · ".join(filter(None, parts)),
        "annotators": [_annotator(labels, name) for name in labels.annotators()],
        "agreement": None,
        "commands": _commands(pool, design),
    }


def _annotator(labels: Labels, name: str) -> dict[str, Any]:
    return {"name": name, **progress_json(labels.progress(name), 0)}


def _commands(pool: str, design: str) -> list[tuple[str, str]]:
    where = shlex.quote(pool)
    score = f"karat score RUN --gold {where}"
    found = [(score, "the labels are the gold")]
    if design == "sample":
        score = f"karat score RUN -m P@10 --labels {where}"
        found.insert(0, (score, "estimates with intervals, from the sample"))
    return found

"""The first page of `findwell labels serve`: who labels, how far they are, how far they agree."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from findwell.core.frames import pl
from findwell.core.spelling import counted
from findwell.show.web.passages import progress_json

if TYPE_CHECKING:
    from findwell.loop.labels.labels import Labels

SAMPLES = 500  # of the bootstrap: the page does not wait long
LISTED_QUESTIONS = 5  # questions with the least agreement
FEWEST_SHARED = 20  # passages with two labels that agreement is told of
ALPHA = "alpha (ordinal)"
# from here on agreement is called so; after Krippendorff (2004), who draws lines at 0.667 and 0.8
STRENGTHS = {0.8: "good", 0.667: "tolerable", -1.0: "low"}
DESIGNS = {
    "sample": "a probability sample, for absolute values",
    "mm-ns": "in the order of MM-NS, to rank systems",
    "mtf": "in the order of move-to-front, to rank systems",
    "depth": "by depth, to rank systems",
}


def overview(labels: Labels, pool: str) -> dict[str, Any]:
    """Return what the template shows."""
    queries = labels.queries()
    pairs = int(queries["pairs"].sum())
    design, budget = labels.settings.get("design", ""), labels.settings.get("budget")
    parts = [
        counted(queries.height, "question", "questions"),
        counted(pairs, "passage", "passages"),
        DESIGNS.get(design, design),
        f"{budget:,} to label" if budget and budget < pairs else "",
    ]
    return {
        "pool": pool,
        "about": " · ".join(filter(None, parts)),
        "annotators": [_annotator(labels, name) for name in labels.annotators()],
        "agreement": _agreement(labels),
        "commands": _commands(pool, design),
    }


def _annotator(labels: Labels, name: str) -> dict[str, Any]:
    return {"name": name, **progress_json(labels.progress(name), 0)}


def _agreement(labels: Labels) -> dict[str, Any] | None:
    """Return how far annotators agree, and where least; None where nothing was labelled twice."""
    found = labels.agreement(samples=SAMPLES)
    shared = int(found.details.filter(of="query")["shared"].sum())
    if not shared:
        return None
    passages = counted(shared, "passage", "passages")
    about = f"{passages} labelled by two or more annotators"
    if shared < FEWEST_SHARED:
        return {
            "about": f"{about}: too few to say how far they agree. It takes {FEWEST_SHARED}.",
            "alpha": None,
            "strength": "",
            "queries": [],
        }
    asked = dict(labels.queries().select("query", "question").iter_rows())
    least = found.details.filter(pl.col("of") == "query", pl.col("agreement") < 1).head(
        LISTED_QUESTIONS
    )
    (alpha,) = found.summary.filter(statistic=ALPHA).to_dicts()
    known = alpha["value"]
    words = (word for line, word in STRENGTHS.items() if known is not None and known >= line)
    return {
        "about": f"{about}.",
        "alpha": None if known is None else alpha,
        "strength": next(words, ""),
        "queries": [
            {
                "question": asked.get(row["name"]) or row["name"],
                "about": f"same grade: {row['agreement']:.0%}, passages: {row['shared']}",
            }
            for row in least.to_dicts()
        ],
    }


def _commands(pool: str, design: str) -> list[tuple[str, str]]:
    where = shlex.quote(pool)
    score = f"findwell score RUN --gold {where}"
    found = [
        (score, "the labels are the gold"),
        (f"findwell labels agree {where} --details", "how far annotators agree, one by one"),
        (f"findwell labels export {where} qrels.txt", "the labels for other tools"),
    ]
    if design == "sample":
        score = f"findwell score RUN -m P@10 --labels {where}"
        found.insert(0, (score, "estimates with intervals, from the sample"))
    return found

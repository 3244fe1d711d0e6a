"""What makes the verdicts of a judge doubtful: a model that it shares, labels that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.findings import Finding, finding_about
from findwell.core.frames import pl
from findwell.judges.client.providers import split_spec
from findwell.statistics.intervals import interval

if TYPE_CHECKING:
    from findwell.core.data import Bools, Ints
    from findwell.core.relation import Relation
    from findwell.judges.cards.card import JudgeCard

# columns of queries or of a run that name a model, and what that model did
MODEL_COLUMNS = {
    "synthetic": "wrote the question",
    "question_writer": "wrote the question",
    "embedder": "embedded the documents",
    "embedding_model": "embedded the documents",
    "reranker": "reranked the list",
    "reranker_model": "reranked the list",
}
NO_MODELS = frozenset({"", "true", "yes", "1", "false", "no", "0"})  # not the name of a model
RERANK_SERVICE = re.compile(r"^(?:reranker:)?(?:(?:tei|vllm(?:-score)?|infinity|cohere|jina):)?")
EMBEDDED_NAME = re.compile(r"^(?:all-minilm-l6(?:-v2)?|minilm:.*)$")  # the model of `local`
RELEASE = re.compile(r"[-@:](?:\d{4}-?\d{2}-?\d{2}|latest)$")
CIRCULAR = (
    "ask a judge of another family, or check this one with labels of people: findwell judge card"
)
YES_RATE = (
    "teach it with these labels: findwell judge teach --labels POOL --judge JUDGE -o judge.json"
)
OWN_CARD = "measure how far it agrees with them: findwell judge card LABELS --judge JUDGE"


def bare_model(name: str) -> str:
    """Return the name of a model without provider, owner and release, in lower case.

    >>> bare_model("openai:gpt-4o-2024-08-06"), bare_model("BAAI/bge-reranker-base")
    ('gpt-4o', 'bge-reranker-base')
    """
    spec = split_spec(name)
    model = RERANK_SERVICE.sub("", name.strip()) if spec is None else spec[1]
    bare = RELEASE.sub("", model.rstrip("/").rpartition("/")[2].casefold())
    return EMBEDDED_NAME.sub("minilm", bare)


def judge_models(judge: Mapping[str, Any]) -> set[str]:
    """Return the bare names of the models that a judge asks, by what it says about itself."""
    named = {str(judge[key]) for key in ("model", "embedder") if judge.get(key)}
    inner = [*judge.get("judges", ()), judge.get("recorded"), judge.get("taught")]
    found = {bare_model(each) for each in named}
    return found.union(*(judge_models(each) for each in inner if isinstance(each, Mapping)))


def circular_findings(
    judge: Mapping[str, Any], queries: pl.DataFrame, run: str = ""
) -> list[Finding]:
    """Find queries whose question, documents or order are the work of the judge's own model.

    `queries` is a table about them: of the gold, or of a run. Its columns name models.

    >>> table = pl.DataFrame({"query": ["q1", "q2"], "reranker": ["BAAI/bge-reranker-base"] * 2})
    >>> found = circular_findings({"model": "models/bge-reranker-base"}, table)
    >>> [each.message for each in found]
    ['2 queries are judged with bge-reranker-base, which also reranked the list.']
    """
    own = judge_models(judge)
    found: list[Finding] = []
    for column, did in MODEL_COLUMNS.items():
        if column not in queries.columns or not queries[column].dtype.is_(pl.String):
            continue
        for name in queries[column].drop_nulls().unique(maintain_order=True).to_list():
            if name.strip().casefold() in NO_MODELS or bare_model(name) not in own:
                continue
            found += finding_about(
                "circular-judge",
                queries["query"].filter(queries[column].eq(name).fill_null(value=False)),
                f"# query|queries is|are judged with {bare_model(name)}, which also {did}.",
                CIRCULAR,
                run,
            )
    return found


def card_findings(card: JudgeCard) -> list[Finding]:
    """Report a judge that says yes more or less often than people, by its card."""
    bias = card["bias"]
    if bias.value is None or bias.low is None or bias.high is None or bias.low <= 0 <= bias.high:
        return []
    more = "more" if bias.value > 0 else "less"
    message = (
        f"# label|labels of its card: it says yes {abs(bias.value) * 100:.0f} points {more} often "
        f"than people ({bias.low * 100:+.0f} to {bias.high * 100:+.0f})."
    )
    return list(finding_about("judge-yes-rate", [card.labels] * card.pairs, message, YES_RATE))


def label_findings(
    judged: Relation, labelled: Relation, rel: float, *, level: float
) -> Iterator[Finding]:
    """Compare a judge with labels of the same documents, where a run has both.

    Only labels that say both yes and no can check a judge.
    """
    said, labels, queries = _both(judged, labelled, rel)
    if not labels.any() or labels.all():
        return
    names = labelled.queries.gather(queries).to_list()
    yield from finding_about(
        "unchecked-judge", names, "# label|labels was|were never used to check the judge.", OWN_CARD
    )
    apart = interval(
        said.astype(np.float64) - labels, level=level, bounds=(-1.0, 1.0), clusters=names
    )
    if apart.low is not None and apart.high is not None and not apart.low <= 0 <= apart.high:
        message = (
            f"# document|documents has|have a label. The judge says yes to {said.mean():.0%} of "
            f"them, the labels to {labels.mean():.0%}."
        )
        yield from finding_about("judge-yes-rate", names, message, YES_RATE)


def _both(judged: Relation, labelled: Relation, rel: float) -> tuple[Bools, Bools, Ints]:
    """Return verdicts and labels of the documents that have both, and their queries."""
    deepest = 1 + max(int(each.unit_rank.max(initial=0)) for each in (judged, labelled))

    def keys(query: Any, rank: Any) -> Ints:  # noqa: ANN401
        return np.asarray(query, dtype=np.int64) * deepest + np.asarray(rank, dtype=np.int64)

    def yes(drawn: Relation, least: float, at: Ints) -> Bools:
        hits = drawn.item_grade[drawn.edge_item] >= least
        return np.isin(at, keys(drawn.edge_query[hits], drawn.edge_rank[hits]))

    units = [
        keys(each.unit_query[each.unit_judged], each.unit_rank[each.unit_judged])
        for each in (judged, labelled)
    ]
    both: Ints = np.intersect1d(units[0], units[1])
    both = both[~judged.failed[both // deepest]]
    return yes(judged, 1.0, both), yes(labelled, rel, both), both // deepest

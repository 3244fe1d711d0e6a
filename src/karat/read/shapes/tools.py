"""The shapes of records that other tools write, beside karat's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from karat.errors import InputError
from karat.read.shapes.shape import Shape, register_shape


def or_groups(gold: Any) -> list[Any]:  # noqa: ANN401
    """Return AutoRAG's ground truth as groups, as its `cast_qa_dataset` does.

    A text is one group of one, a flat list is one group, a list of lists are the groups. AutoRAG
    stops at an empty list; here it means that there is no gold.

    >>> or_groups("a"), or_groups(["a", "b"]), or_groups([["a", "b"], ["c"]]), or_groups([])
    ([['a']], [['a', 'b']], [['a', 'b'], ['c']], [])
    """
    if isinstance(gold, str):
        return [[gold]]
    if isinstance(gold, Iterable) and not isinstance(gold, Mapping | bytes):
        groups = list(gold)
        if not groups or all(_is_list(group) for group in groups):
            return groups
        if all(isinstance(doc, str) for doc in groups):
            return [groups]
    raise InputError(
        f"{str(gold)[:60]!r} is not a ground truth",
        fix='write groups of ids, such as [["a", "b"], ["c"]]: one of each group is needed',
    )


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


NATIVE = register_shape(
    Shape(
        "karat",
        query=("query",),
        question=("question",),
        retrieved=("retrieved",),
        gold=("gold",),
        reference=("reference",),
    )
)
RAGAS = register_shape(
    Shape(
        "ragas",
        query=("query_id", "qid", "query", "id"),
        question=("user_input", "question"),
        retrieved=("retrieved_context_ids", "retrieved_contexts", "contexts"),
        gold=("reference_context_ids", "reference_contexts"),
        reference=("reference", "ground_truth", "ground_truths"),
        texts=frozenset({"retrieved_contexts", "contexts", "reference_contexts"}),
        others=("response", "answer"),
    )
)
DEEPEVAL = register_shape(
    Shape(
        "deepeval",
        query=("query_id", "qid", "query", "id"),
        question=("input",),
        retrieved=("retrieval_context",),
        gold=("context",),
        reference=("expected_output",),
        texts=frozenset({"retrieval_context", "context"}),
        others=("actual_output",),
        needs=frozenset({"input"}),
    )
)
CONTINUOUS_EVAL = register_shape(
    Shape(
        "continuous-eval",
        query=("uid", "query", "id"),
        question=("question",),
        retrieved=("retrieved_context",),
        gold=("ground_truth_context",),
        reference=("ground_truth_answers",),
        texts=frozenset({"retrieved_context", "ground_truth_context"}),
    )
)
AUTORAG = register_shape(
    Shape(
        "autorag",
        query=("qid",),
        question=("query",),
        retrieved=("retrieved_ids", "retrieved_contents"),
        gold=("retrieval_gt",),
        reference=("generation_gt",),
        scores=("retrieve_scores",),
        texts=frozenset({"retrieved_contents"}),
        items=or_groups,
    )
)
LIVERAG = register_shape(
    Shape(
        "liverag",
        query=("qid",),
        question=("question",),
        retrieved=("doc_ids",),
        gold=("document_ids",),
        reference=("answer",),
        others=("context", "total_time_ms"),
        last_wins=True,
    )
)

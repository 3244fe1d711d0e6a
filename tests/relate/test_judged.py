"""From verdicts to numbers: worked examples, failures and their bounds, odd samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import InputError
from findwell.judges.client.protocol import Reason
from findwell.judges.verdicts import Judged, JudgeFailure, Judgement, Sample
from tests.judges.building import judged_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FOUR = ["context_precision", "context_recall", "context_entities_recall", "context_relevancy"]


def verdicts(*values: int | None) -> tuple[Judgement, ...]:
    return tuple(Judgement(value, "" if value is not None else "cut off") for value in values)


@dataclass
class Scripted:
    """A judge whose verdicts are a function of the sample."""

    answer: Callable[[Sample], Judged]
    name: str = "scripted"
    seen: list[Sample] = field(default_factory=list)
    aspects: frozenset[str] = frozenset()

    def judge(
        self, samples: Sequence[Sample], aspects: frozenset[str], progress: Any = None
    ) -> list[Judged]:
        del progress
        self.seen, self.aspects = list(samples), aspects
        return [self.answer(sample) for sample in samples]

    def about(self) -> dict[str, Any]:
        return {"calls": len(self.seen)}


def record(**fields: Any) -> dict[str, Any]:
    return {"question": "Why?", "retrieved_contexts": ["One. Two.", "Three."], **fields}


def values(answer: Judged, measures: list[str], **fields: Any) -> dict[str, float | None]:
    judge = Scripted(lambda _: answer)
    sample = record(reference="A. B. C. D.", **fields)
    return findwell.evaluate([sample], measures=measures, judge=judge).values


def test_relevance_of_three_chunks() -> None:
    found = values(
        judged_of(relevance=verdicts(1, 0, 0)),
        ["context_precision", "context_precision@1", "P@3/relevance", "RR/relevance"],
        retrieved_contexts=["a", "b", "c"],
    )
    assert list(found.values()) == [1.0, 1.0, pytest.approx(1 / 3), 1.0]


def test_a_cutoff_counts_chunks_even_where_they_hold_nothing() -> None:
    answer = judged_of(statement_texts=(("One.",),), statements=(verdicts(1),))
    measures = ["context_relevancy@1", "context_relevancy@2", "DCG@1/statements"]
    found = values(answer, measures, retrieved_contexts=["", "One."])
    assert list(found.values()) == [0.0, 1.0, 0.0]


def test_graded_relevance() -> None:
    found = values(
        judged_of(relevance=verdicts(0, 3, 1)),
        ["context_precision", "AP(rel=2,over=retrieved)/relevance", "nDCG/relevance"],
        retrieved_contexts=["a", "b", "c"],
    )
    assert list(found.values())[:2] == [pytest.approx((1 / 2 + 2 / 3) / 2), 0.5]
    assert list(found.values())[2] == pytest.approx(
        (3 / 1.584962500721156 + 1 / 2) / (3 + 1 / 1.584962500721156)
    )


def test_claims_and_cutoffs() -> None:
    answer = judged_of(
        claim_texts=("A.", "B.", "C.", "D."),
        claims=(verdicts(1, 0), verdicts(0, 1), verdicts(1, 1), verdicts(0, 0)),
    )
    assert (
        values(answer, ["context_recall", "context_recall@1", "nDCG/claims"])["context_recall"]
        == 0.75
    )
    assert values(answer, ["context_recall@1"])["context_recall@1"] == 0.5


def test_entities() -> None:
    answer = judged_of(
        entity_texts=("Brazil", "Brasília", "April 21, 1960"),
        entities=(verdicts(1, 0), verdicts(0, 1), verdicts(0, 0)),
    )
    assert values(answer, ["context_entities_recall"])["context_entities_recall"] == pytest.approx(
        2 / 3
    )


def test_statements_are_units_and_k_counts_chunks() -> None:
    answer = judged_of(
        statement_texts=(("One.", "Two."), ("Three.",)), statements=(verdicts(1, 0), verdicts(1))
    )
    found = values(answer, ["context_relevancy", "context_relevancy@1"])
    assert list(found.values()) == [pytest.approx(2 / 3), 0.5]


def test_nothing_relevant_is_0_and_not_undefined() -> None:
    answer = judged_of(
        relevance=verdicts(0, 0),
        statement_texts=(("One.", "Two."), ("Three.",)),
        statements=(verdicts(0, 0), verdicts(0)),
    )
    wanted = ["context_precision", "nDCG/relevance", "recall/relevance", "context_relevancy"]
    assert set(values(answer, wanted).values()) == {0.0}


def test_one_judgement_serves_every_measure_and_later_ones(tmp_path: Path) -> None:
    def answer(sample: Sample) -> Judged:
        chunks = len(sample.chunks)
        return judged_of(
            relevance=verdicts(*range(chunks)),
            claim_texts=sample.items["claims"],
            claims=tuple(verdicts(*[1] * chunks) for _ in sample.items["claims"]),
            entity_texts=("E",),
            entities=(verdicts(*[0] * chunks),),
            statement_texts=sample.parts["statements"],
            statements=tuple(verdicts(*[1] * len(row)) for row in sample.parts["statements"]),
        )

    judge = Scripted(answer)
    sample = record(reference="Cats purr. Dogs bark.")
    result = findwell.evaluate([sample], measures=FOUR, judge=judge)
    assert judge.aspects == {"relevance", "claims", "entities", "statements"}
    (shown,) = judge.seen
    assert shown.items["claims"] == ("Cats purr.", "Dogs bark.")
    assert shown.parts["statements"] == (("One.", "Two."), ("Three.",))
    assert result.judge == {"name": "scripted", "calls": 1}
    again = findwell.load(result.save(tmp_path / "r"))
    assert again.values == result.values
    assert again.judge["name"] == "scripted"
    later = again.score(["recall@1/claims", "P@1/statements", "nDCG@2/relevance"])
    assert later["context_recall@1"] == 1.0
    with pytest.raises(findwell.FindwellError, match="no relation 'ids'"):
        _ = again.score("recall")["recall"]


def test_failures_are_counted_and_bounded_never_scored(tmp_path: Path) -> None:
    def answer(sample: Sample) -> Judged:
        failed = sample.query == "b"
        return judged_of(
            relevance=verdicts(1, None if failed else 0),
            claim_texts=("A.", "B."),
            claims=(verdicts(1, 0), verdicts(0, None if failed else 1)),
        )

    records = [record(reference="A. B.", query_id=query) for query in "ab"]
    measures = ["P@2/relevance", "context_recall"]
    result = findwell.evaluate(records, measures=measures, judge=Scripted(answer))
    rows = result.summary.to_dicts()
    assert [(row["value"], row["n"], row["undefined"], row["failed"]) for row in rows] == [
        (0.5, 1, 0, 1),
        (1.0, 1, 0, 1),
    ]
    assert [(row["lower"], row["upper"]) for row in rows] == [(0.5, 0.75), (0.75, 1.0)]
    lost = result.per_query.filter(query="b").to_dicts()
    assert [row["value"] for row in lost] == [None, None]
    assert lost[0]["reason"] == "failed: 1 of 2 verdicts: no verdict: cut off"
    assert [finding.kind for finding in result.findings if finding.kind == "judge-failed"]
    loaded = findwell.load(result.save(tmp_path / "r"))
    assert loaded.summary.equals(result.summary)


def test_an_aspect_that_fails_as_a_whole() -> None:
    answer = judged_of(failures={"entities": JudgeFailure(Reason.CUT_OFF, "the list")})
    result = findwell.evaluate(
        [record(reference="A.")],
        measures=["context_entities_recall"],
        judge=Scripted(lambda _: answer),
    )
    (row,) = result.summary.to_dicts()
    assert (row["value"], row["failed"], row["lower"], row["upper"]) == (None, 1, 0.0, 1.0)


def test_the_lower_bound_is_never_above_the_upper() -> None:
    def answer(sample: Sample) -> dict[str, Any]:  # of q1 all yes is less, of q2 it is more
        return {"relevance": [1, None] if sample.query == "q1" else [None, 0]}

    found = findwell.evaluate(
        [record(query_id="q1"), record(query_id="q2")],
        measures=["recall@1/relevance"],
        judge=answer,
    )
    (row,) = found.summary.to_dicts()
    assert (row["lower"], row["upper"]) == (0.25, 1.0)


def test_a_list_that_fails_as_a_whole_is_bounded_as_if_each_verdict_had_failed() -> None:
    def measured(relevance: Any, statements: Any) -> list[tuple[float, float]]:
        def answer(sample: Sample) -> dict[str, Any]:
            if sample.query == "good":
                return {"relevance": [1, 0], "statements": [[1, 0], [0]]}
            lost = {"relevance": "lost", "statements": "lost"} if relevance is None else {}
            return {"relevance": relevance, "statements": statements, "failures": lost}

        found = findwell.evaluate(
            [record(query_id="good"), record(query_id="bad")],
            measures=["P@2/relevance", "nDCG@2/relevance", "context_relevancy"],
            judge=answer,
        )
        return [(row["lower"], row["upper"]) for row in found.summary.to_dicts()]

    whole = measured(None, None)
    assert whole == [(0.25, 0.75), (0.5, 1.0), (pytest.approx(1 / 6), pytest.approx(2 / 3))]
    assert whole == measured([None, None], [[None, None], [None]])


def test_repeated_and_blank_chunks_are_not_judged_again() -> None:
    judge = Scripted(lambda sample: judged_of(relevance=verdicts(*[1] * len(sample.chunks))))
    chunks = ["x y", "  ", "X, y!", "z"]
    result = findwell.evaluate(
        [record(retrieved_contexts=chunks)], measures=["P@4/relevance"], judge=judge
    )
    assert judge.seen[0].chunks == ("x y", "z")
    assert result["P@4/relevance"] == 0.5  # the repetition and the blank are noise


def test_unproven_verdicts_are_told() -> None:
    answer = judged_of(relevance=(Judgement(2, unproven=True), Judgement(0)))
    result = findwell.evaluate([record()], measures="P/relevance", judge=Scripted(lambda _: answer))
    assert [finding.kind for finding in result.findings] == ["unproven-verdict"]


def test_beside_rules() -> None:
    answer = judged_of(relevance=verdicts(1, 0))
    sample = record(reference_contexts=["Three."])
    result = findwell.evaluate(
        [sample], measures=["recall@1/exact", "P@1/relevance"], judge=Scripted(lambda _: answer)
    )
    assert result.values == {"recall@1/exact": 0.0, "P@1/relevance": 1.0}


@pytest.mark.parametrize(
    ("measure", "missing"), [("context_recall", "reference"), ("context_precision", "question")]
)
def test_what_a_judge_needs(measure: str, missing: str) -> None:
    sample = {"retrieved_contexts": ["a"], "user_input": "q", "reference": "r"}
    sample["user_input" if missing == "question" else "reference"] = " "
    with pytest.raises(InputError, match=f"no query has a {missing}"):
        findwell.evaluate([sample], measures=measure, judge=Scripted(lambda _: Judged()))


def test_a_query_without_reference_is_undefined_and_one_without_chunks_0() -> None:
    def answer(sample: Sample) -> Judged:
        return judged_of(
            claim_texts=sample.items["claims"],
            claims=tuple(verdicts(*[1] * len(sample.chunks)) for _ in sample.items["claims"]),
        )

    records = [
        record(reference="A.", query_id="whole"),
        record(reference="", query_id="no reference"),
        record(reference="A.", query_id="no chunks", retrieved_contexts=[]),
    ]
    result = findwell.evaluate(records, measures="context_recall", judge=Scripted(answer))
    found = dict(result.per_query.select("query", "value").rows())
    assert found == {"whole": 1.0, "no reference": None, "no chunks": 0.0}


def test_a_run_with_a_corpus_and_questions_beside_the_gold() -> None:
    judge = Scripted(lambda sample: judged_of(relevance=verdicts(*[1] * len(sample.chunks))))
    gold = [{"query": "q", "question": "Why?", "gold": ["d"]}]
    result = findwell.evaluate(
        {"q": ["d", "e"]},
        gold,
        ["recall", "P@2/relevance"],
        judge=judge,
        corpus={"d": "text d", "e": "text e"},
    )
    assert result.values == {"recall": 1.0, "P@2/relevance": 1.0}
    assert judge.seen[0].chunks == ("text d", "text e")


def test_bare_ids_are_not_shown_to_a_judge() -> None:
    judge = Scripted(lambda sample: judged_of(relevance=verdicts(*[1] * len(sample.chunks))))
    gold = [{"query": "q", "question": "Why?", "gold": ["d1"]}]
    with pytest.raises(InputError, match="no document has a text, only ids such as 'd1'"):
        findwell.evaluate({"q": ["d1", "d2"]}, gold, "P@2/relevance", judge=judge)
    assert judge.seen == []


def test_relations_of_one_aspect_with_other_splitters_are_judged_apart() -> None:
    reference = "Tea is hot. It is a plant: it grows."
    sample = {"question": "What is tea?", "contexts": ["Tea is hot."], "reference": reference}

    def judge(sample: Sample) -> dict[str, Any]:
        return {"claims": [[int("hot" in claim)] for claim in sample.items["claims"]]}

    result = findwell.evaluate(
        [sample], measures=["recall/claims", "recall/claims(splitter=lines)"], judge=judge
    )
    assert result.values == {"context_recall": 0.5, "recall/claims(splitter=lines)": 1.0}

"""Samples, what the well-behaved model says about them, and what holds for any judgement."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from findwell.judges.llm.judge import LLMJudge
from findwell.judges.local.entities import plain_form
from findwell.judges.quotes import distinct
from findwell.judges.settings import Judge
from findwell.judges.verdicts import Judged, Judgement, Sample
from tests.client.asking import HASTE, KEY
from tests.judges.building import FOUR, judged_of
from tests.judges.model import grade, mentions, supports, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.client.server import Call, Server

ALL = FOUR
TEXTS = [
    "The capital of Brazil is Brasília. It was founded in 1960.",
    "Rio was the capital of Brazil until 1960. It has beaches.",
    "Ferries are boats. They carry cars.",
    "Der Akku hält sechs Stunden. Im Winter weniger.",
    "電池は6時間もつ。冬は短い。",
]
REFERENCE = "The capital of Brazil is Brasília. Rio was the capital until 1960."


def sentences(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"(?<=[.。])\s*", text) if part)


def sample(number: int = 0, chunks: Iterable[str] = TEXTS, reference: str = REFERENCE) -> Sample:
    texts = tuple(chunks)
    return Sample(
        f"q{number}",
        f"What is the capital of Brazil, number {number}?",
        texts,
        reference,
        {"claims": sentences(reference)},
        {"statements": tuple(map(sentences, texts))},
    )


def judge_of(server: Server, **more: Any) -> LLMJudge:
    options: dict[str, Any] = {"cache": "off", "retry": HASTE, "base_url": server.url, "key": KEY}
    return LLMJudge(Judge("openai:some-model", **options | more))


def verdicts(judged: Judged) -> Iterator[Judgement]:
    for given in judged.verdicts.values():
        for row in given.rows:
            yield from row


def expect(one: Sample) -> Judged:
    """Return what the well-behaved model says about a sample."""
    entities = distinct(re.findall(r"\b[A-ZÄÖÜ]\w+|\d{4}", one.reference), plain_form)
    question = words(one.question)

    def yes(quote: str) -> Judgement:
        return Judgement(int(bool(quote)), quote=quote)

    return judged_of(
        relevance=tuple(
            Judgement(found, quote=" ".join(text.split()[:4]) if found else "")
            for text in one.chunks
            for found in [grade(one.question, text)]
        ),
        claim_texts=one.items["claims"],
        claims=tuple(
            tuple(yes(supports(each)(text)) for text in one.chunks) for each in one.items["claims"]
        ),
        entity_texts=tuple(entities),
        entities=tuple(
            tuple(yes(mentions(each)(text)) for text in one.chunks) for each in entities
        ),
        statement_texts=one.parts["statements"],
        statements=tuple(
            tuple(yes(each if question & words(each) else "") for each in row)
            for row in one.parts["statements"]
        ),
    )


def check_shape(one: Sample, judged: Judged) -> None:
    """See that every cell is there, with a value or a reason."""
    failed = judged.failures
    assert len(judged["relevance"].row) == (0 if "relevance" in failed else len(one.chunks))
    for texts, matrix in [
        (judged["claims"].items, judged["claims"].rows),
        (judged["entities"].items, judged["entities"].rows),
    ]:
        assert [len(row) for row in matrix] == [len(one.chunks)] * len(texts)
    assert [len(row) for row in judged["statements"].rows] == [
        len(row) for row in judged["statements"].parts
    ]
    for verdict in verdicts(judged):
        assert (verdict.failure is None) == (verdict.value is not None)
        assert not verdict.unproven or verdict.value


def check_totals(judge: LLMJudge, judged: Iterable[Judged]) -> None:
    """See that what is counted is what came out."""
    all_judged = list(judged)
    given = [verdict for each in all_judged for verdict in verdicts(each)]
    about = judge.about()
    lost = sum(verdict.value is None for verdict in given)
    lost += sum(len(each.failures) for each in all_judged)
    assert sum(about["verdicts"].values()) == len(given)
    assert sum(about["failed_verdicts"].values()) == lost
    assert sum(about["unproven"].values()) == sum(verdict.unproven for verdict in given)
    assert about["requests"] == about["answered"] + about["stored"] + about["repeated"] + sum(
        about["failed"].values()
    )
    json.dumps(about)
    assert KEY not in json.dumps(about)


def first(call: Call) -> bool:
    """Tell whether a call asks for the first time."""
    return "attempt" not in call.prompt


def left_out(call: Call, said: dict[str, Any]) -> dict[str, Any]:
    """Answer only the first id of each kind, at first."""
    return {name: part[:1] for name, part in said.items()} if first(call) else said

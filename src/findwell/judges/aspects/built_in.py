"""The aspects of findwell's own, one table: what a verdict is about, and what it needs."""

from __future__ import annotations

from findwell.judges.aspects.aspect import Aspect, Listing, VerdictShape


def same_entity(text: str) -> str:
    """Return the form that spellings of one entity share: without case, accents, articles, …"""
    from findwell.judges.local.entities import plain_form  # noqa: PLC0415 - few evaluations need it

    return plain_form(text) or text


# how useful each chunk is for answering the question
RELEVANCE = Aspect(
    name="relevance",
    about="judged: how much a chunk helps to answer the question, 0 to 3",
    shape=VerdictShape.CHUNKS,
    needs="question",
    unit="chunk",
    value="grade",
    grades={  # from 1 on a chunk is relevant, unless a measure says otherwise with rel
        0: "of no use for answering, even if it is on the topic",
        1: "of some use: a minor part of the answer, or what points to it",
        2: "of much use: a main part of the answer",
        3: "all that is needed for the answer",
    },
)
CLAIMS = Aspect(
    name="claims",
    about="judged: a chunk covers the claims of the reference that it supports",
    shape=VerdictShape.ITEMS,
    needs="reference",
    unit="claim",
    prefix="k",
    answer_tokens=45,
    listing=Listing(with_question=True),
)
# listed from the reference alone, so that they are the same whatever was retrieved; an entity that
# is not in the reference was invented
ENTITIES = Aspect(
    name="entities",
    about="judged: a chunk covers the entities of the reference that it mentions",
    shape=VerdictShape.ITEMS,
    needs="reference",
    unit="entity",
    prefix="e",
    answer_tokens=30,
    listing=Listing(always=True, copied=True, same=same_entity),
)
STATEMENTS = Aspect(
    name="statements",
    about="judged: which statements of a chunk help to answer the question",
    shape=VerdictShape.PARTS,
    needs="question",
    unit="statement",
    prefix="s",
    value="relevant",
    answer_tokens=16,
    listing=Listing(),
)
# needs no reference; a verdict about five chunks says nothing about the first three of them, so
# every cutoff is judged separately
SUFFICIENCY = Aspect(
    name="sufficiency",
    about="judged: whether the list as a whole suffices to answer the question",
    shape=VerdictShape.LIST,
    needs="question",
    unit="list",
    value="sufficient",
    answer_tokens=120,
)
BUILT_IN = {
    aspect.name: aspect for aspect in (RELEVANCE, CLAIMS, ENTITIES, STATEMENTS, SUFFICIENCY)
}

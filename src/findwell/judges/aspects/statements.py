"""Statements: which statements of a chunk help to answer the question."""

from findwell.judges.aspects.aspect import Aspect, Listing, VerdictShape

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

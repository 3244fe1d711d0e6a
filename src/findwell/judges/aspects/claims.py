"""Claims: which chunks support which claim of the reference answer."""

from findwell.judges.aspects.aspect import Aspect, Listing, VerdictShape

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

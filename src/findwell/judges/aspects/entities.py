"""Entities: which chunks mention which entity of the reference answer.

They are listed from the reference alone, so they are the same whatever was retrieved. An entity
that is not in the reference was invented.
"""

from findwell.judges.aspects.aspect import Aspect, Listing, VerdictShape


def same_entity(text: str) -> str:
    """Return the form that spellings of one entity share: without case, accents, articles, …"""
    from findwell.judges.local.entities import plain_form  # noqa: PLC0415 - few evaluations need it

    return plain_form(text) or text


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

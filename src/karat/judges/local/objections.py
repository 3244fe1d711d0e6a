"""What speaks against a claim although its words stand in a chunk: other facts, or a negation.

Likeness is blind for both: a claim with another year, another name or a `not` is as like as before.
Facts are found by rules, negations by the words of the claim's language. German writes every noun
like a name, so that there only numbers, dates and names of several words are facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from karat.judges.local.entities import Holdings, entities_by_rules
from karat.languages import ENGLISH, known

if TYPE_CHECKING:
    from karat.judges.local.signals import Signals

NOT = re.compile(r"\b(?:not|never|cannot|neither)\b|n['’]t\b", re.IGNORECASE)
COMPOUND = re.compile(r"\d|\w \w|\w[A-ZÄÖÜ]")  # numbers, several words, acronyms
NEGATIVE = re.compile(
    r"\b(?:not|never|cannot|neither|no|none|nor|nothing|nobody|without|unable|fail(?:s|ed)?|"
    r"lack(?:s|ed)?|refus\w+|prevent\w*|except|unlike|hardly|barely|rarely)\b|n['’]t\b",
    re.IGNORECASE,
)


def objections(
    pairs: Sequence[tuple[str, str]],
    signals: Signals,
    asked: Sequence[bool],
    holdings: Callable[[str], Holdings],
) -> list[str]:
    """Return what speaks against each pair of a claim and a chunk, where that is asked."""
    facts = cache(_facts)
    found = []
    for pair, (claim, chunk) in enumerate(pairs):
        reason = ""
        if asked[pair]:
            language = signals.overlap.language[pair]
            missing = holdings(chunk).lacks(facts(claim, language), language)
            reason = f"the chunk lacks {', '.join(missing)}" if missing else ""
            reason = reason or negation(claim, signals.around(pair), language)
        found.append(reason)
    return found


def _facts(claim: str, language: str) -> list[str]:
    """Return the names, numbers and dates of a claim."""
    found = entities_by_rules(claim)
    if language != "de":
        return found
    empty = known(language).words
    return [
        fact
        for fact in found
        if COMPOUND.search(fact) and empty.isdisjoint(fact.casefold().split())
    ]


def negation(claim: str, pieces: tuple[str, str, str], language: str = ENGLISH) -> str:
    """Say whether only one side denies something; the pieces are the best and its neighbours.

    >>> negation("Tea is not taxed.", ("", "Tea is taxed.", "So is coffee."))
    'the claim denies what the chunk does not'
    >>> negation("Tea is taxed.", ("", "Tea isn’t taxed.", ""))
    'the chunk denies what the claim does not'
    >>> negation("Tea is never taxed.", ("", "There is no tax on tea.", ""))
    ''
    >>> negation("Tee wird nicht besteuert.", ("", "Tee wird besteuert.", ""), "de")
    'the claim denies what the chunk does not'
    """
    own = known(language).negations
    denies, negative = (own, own) if own else (NOT, NEGATIVE)
    if denies.search(claim) and not any(map(negative.search, pieces)):
        return "the claim denies what the chunk does not"
    if denies.search(pieces[1]) and not negative.search(claim):
        return "the chunk denies what the claim does not"
    return ""

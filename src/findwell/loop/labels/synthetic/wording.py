"""How questions are worded: words that are copied, and questions that are nearly the same."""

from __future__ import annotations

from itertools import chain

from findwell.core.texts.languages import languages_of
from findwell.judges.local.terms import content_terms
from findwell.judges.quotes import folded

NEAR = 0.8  # the share of all their words that near-duplicates have in common


def copied_share(question: str, quoted: str) -> float:
    """Return the share of the words of a question that a text has, too; whatever their endings.

    >>> copied_share("How long do the batteries last?", "The battery lasts for six hours.") > 0.5
    True
    >>> copied_share("When is the accumulator empty?", "The battery lasts for six hours.")
    0.0
    """
    [language] = languages_of([quoted])
    mine, theirs = content_terms([question, quoted], language)
    return len(mine & theirs) / len(mine) if mine else 0.0


class SeenQuestions:
    """Tells whether a question is nearly one that was there before.

    >>> seen = SeenQuestions()
    >>> asked = ["Who charges the ferry?", "The ferry: who is charging it?", "Who sails the ferry?"]
    >>> [seen.add(question) for question in asked]
    [True, False, True]
    """

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._sizes: list[int] = []
        self._holding: dict[str, list[int]] = {}  # the questions that hold a term

    def add(self, question: str) -> bool:
        """Remember a question and return True; False for one that is nearly there already."""
        [language] = languages_of([question])
        [terms] = content_terms([question], language)
        text = folded(question)
        shared: dict[int, int] = {}
        for number in chain.from_iterable(self._holding.get(term, ()) for term in terms):
            shared[number] = shared.get(number, 0) + 1
        if text in self._texts or any(
            count >= NEAR * (len(terms) + self._sizes[number] - count)
            for number, count in shared.items()
        ):
            return False
        self._texts.add(text)
        for term in terms:
            self._holding.setdefault(term, []).append(len(self._sizes))
        self._sizes.append(len(terms))
        return True

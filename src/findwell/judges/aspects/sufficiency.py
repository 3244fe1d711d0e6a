"""Sufficiency: can the question be answered from the list as a whole, without a reference?

A verdict about five chunks says nothing about the first three of them, so every cutoff is judged
separately.
"""

from findwell.judges.aspects.aspect import Aspect, VerdictShape

SUFFICIENCY = Aspect(
    name="sufficiency",
    about="judged: whether the list as a whole suffices to answer the question",
    shape=VerdictShape.LIST,
    needs="question",
    unit="list",
    value="sufficient",
    answer_tokens=120,
)

"""AutoRAG's token metrics: how much of the gold passages' words is in the retrieved ones."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Token precision, recall and F1, each the mean over the retrieved passages."""

    precision: float
    recall: float
    f1: float


def token_scores(retrieved: Sequence[str], gold: Sequence[str]) -> TokenScores | None:
    """Compare passages word by word; None if there is nothing to compare.

    Texts are normalised as for SQuAD (lower case, no punctuation, no articles). For each retrieved
    passage the best value over the gold passages counts, for each of the three by itself.

    >>> token_scores(["The battery lasts 6 hours."], ["battery lasts six hours"])
    TokenScores(precision=0.75, recall=0.75, f1=0.75)
    """
    if not retrieved or not gold:
        return None
    best = [_best(_words(passage), [_words(text) for text in gold]) for passage in retrieved]
    precision, recall, f1 = (sum(column) / len(best) for column in zip(*best, strict=True))
    return TokenScores(precision, recall, f1)


def _best(words: list[str], golds: list[list[str]]) -> tuple[float, ...]:
    return tuple(map(max, zip(*(_overlap(words, gold) for gold in golds), strict=True)))


def _overlap(words: list[str], gold: list[str]) -> tuple[float, float, float]:
    common = sum((Counter(words) & Counter(gold)).values())
    if not common:
        return 0.0, 0.0, 0.0
    precision, recall = common / len(words), common / len(gold)
    return precision, recall, 2 * precision * recall / (precision + recall)


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()

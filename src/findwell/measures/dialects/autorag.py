"""AutoRAG's retrieval metrics (Python 0.3.x).

The ground truth is a list of groups: all groups are needed, any document of a group is enough.
Quirks that the dialect keeps:

- a group that is listed twice counts twice, also one of a single document;
- a query scores None if its ground truth or what was retrieved is empty, or holds an empty group
  or a blank id;
- precision divides by the length of the list, repetitions included, and counts distinct documents;
- MRR is the mean over the groups of 1 ÷ the rank of the group's first hit;
- MAP is the mean over the groups of an average precision in which only the group's own hits count,
  divided by how many of them were retrieved;
- nDCG credits every document of any group, again when it is repeated, so that it can pass 1; its
  ideal list is as long as all groups together, though one document of each would do.

Where the original compares ids of different types (the text "1" and the number 1) they differ;
findwell reads all ids as text. A cutoff takes the first k of the list; AutoRAG has none. One thing
is not kept: in AutoRAG a document that one group lists twice makes the ideal list of nDCG longer.

In addition to the metrics: how AutoRAG chooses the best of several modules (`select_best`), and its
token metrics (`token_scores`).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from findwell.core.errors import OptionError, choose
from findwell.core.measure import ANY_GAIN, Divisor, Ideal, Limit, Terms
from findwell.core.policy import Policy
from findwell.measures.alpha_ndcg import times_before
from findwell.measures.average_precision import AveragePrecision
from findwell.measures.dcg import NDCG
from findwell.measures.dialects.dialect import Dialect, register_dialect
from findwell.measures.fscore import FScore
from findwell.measures.precision import Precision
from findwell.measures.recall import Recall
from findwell.measures.reciprocal_rank import ReciprocalRank
from findwell.relations.align import positions

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints, Numbers
    from findwell.core.relation import Relation

Values: TypeAlias = Sequence[float | None]
STRATEGIES = ("mean", "rank", "normalize_mean")
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


class ListPrecision(Precision):
    """Distinct relevant units ÷ the length of the list."""

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the length of the list, cut at k."""
        return Divisor("units retrieved", np.maximum(relation.shown(self.k), 1))


class GroupRecall(Recall):
    """Groups with a hit ÷ groups, each as often as it is listed."""

    adds: ClassVar[str] = "Count the groups with a hit"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        if relation.edge_weight is not None:  # of support by degrees AutoRAG knows nothing
            return super().terms(relation)
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank, times_of(relation, hits.item))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the groups."""
        return _per_group(relation, self.rel)


class ListF(FScore):
    """The harmonic mean with precision over the length of the list."""

    precision: ClassVar[type[Precision]] = ListPrecision
    recall: ClassVar[type[Recall]] = GroupRecall


class GroupReciprocalRank(ReciprocalRank):
    """The mean over the groups of 1 ÷ the rank of the group's first hit."""

    adds: ClassVar[str] = "Add up 1 ÷ rank of the first hit of each group"
    counts_items: ClassVar[bool] = True  # every group

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank, times_of(relation, hits.item) / hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the groups."""
        return _per_group(relation, self.rel)


class GroupAveragePrecision(AveragePrecision):
    """The mean over the groups of their own average precision over what was retrieved of them."""

    adds: ClassVar[str] = (
        "Add up, hit by hit, the precision of its group ÷ the group's hits retrieved"
    )

    def depth(self, *, listed: bool) -> int | None:
        """Return the depth; all groups count."""
        return None if listed else self.last_rank

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.covers(self.rel, self.k, repeats=True)
        nth = times_before(hits.item) + 1
        _, group, size = np.unique(hits.item, return_inverse=True, return_counts=True)
        times = times_of(relation, hits.item)
        return Terms(hits.query, hits.rank, times * nth / hits.rank / size[group])

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the groups."""
        return _per_group(relation, self.rel)


class FlatNDCG(NDCG):
    """nDCG over the documents of all groups together, repetitions credited again."""

    limit: ClassVar[Limit | None] = None  # repetitions may lift it over 1
    adds: ClassVar[str] = "Gain 1 for every unit of any group, discounted"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(ANY_GAIN, self.k, repeats=True)
        return Terms(hits.query, hits.rank, 1 / relation.discount.take(hits.rank))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the gain of a list of all documents of all groups, as long as the list."""
        item = relation.member_item[relation.item_grade[relation.member_item] > 0]
        docs = relation.total(relation.item_query[item], times_of(relation, item)).astype(np.int64)
        ideal = ones_first(np.minimum(docs, relation.shown(self.k)))
        return Divisor.discounted("ideal DCG of all documents of all groups", relation, ideal)


def times_of(relation: Relation, item: Numbers) -> Floats:
    """Return how often the gold lists each of these items."""
    times = relation.item_times
    return np.ones(len(item)) if times is None else times[item].astype(np.float64)


def _per_group(relation: Relation, rel: float) -> Divisor:
    """Divide by the groups, each as often as it is listed."""
    item = np.flatnonzero(relation.item_grade >= rel)
    return Divisor("groups", relation.total(relation.item_query[item], times_of(relation, item)))


def ones_first(count: Ints) -> Ideal:
    """Return the lists that gain 1 at each of the first `count` ranks of each query."""
    query = np.repeat(np.arange(len(count)), count)
    return Ideal(query, positions(query), np.ones(len(query)))


AUTORAG = register_dialect(
    Dialect(
        "autorag",
        "AutoRAG 0.3",
        Policy(nothing="undefined", blank="undefined", missing="skip"),
        {
            "P": ListPrecision,
            "recall": GroupRecall,
            "F": ListF,
            "RR": GroupReciprocalRank,
            "AP": GroupAveragePrecision,
            "nDCG": FlatNDCG,
        },
    )
)


def select_best(
    results: Mapping[str, Mapping[str, Values]],
    strategy: str = "mean",
    *,
    columns: Sequence[str] | None = None,
    seconds: Mapping[str, float] | None = None,
    speed_threshold: float | None = None,
) -> str:
    """Return the name of the best module; ties go to the first.

    `results` has for each module the values of each metric, None for queries that have none: they
    are left out of the mean, so that a module which failed on the hard queries can win. `mean`
    adds up the means of the columns, `rank` adds up 1 ÷ the rank of each mean, `normalize_mean`
    scales each column to 0…1 first. A module slower than the threshold is out, unless all are.

    >>> results = {"a": {"f1": [0.9], "recall": [0.1]}, "b": {"f1": [0.5], "recall": [0.6]}}
    >>> select_best(results, "mean")
    'b'
    """
    choose("strategy", strategy, STRATEGIES)
    if not results:
        raise OptionError("there is no module to choose from")
    fast = list(results)
    if speed_threshold is not None:
        fast = [each for each in fast if (seconds or {}).get(each, 0.0) <= speed_threshold] or fast
    names = columns or list(next(iter(results.values())))
    means = {module: [_mean(results[module][column]) for column in names] for module in fast}
    if strategy == "rank":
        scores = {module: sum(_rank_scores(means, module)) for module in fast}
    elif strategy == "normalize_mean":
        scores = {module: sum(_normalised(means, module)) for module in fast}
    else:
        scores = {module: sum(means[module]) / len(names) for module in fast}
    return max(fast, key=lambda module: scores[module])


def _mean(values: Values) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


def _rank_scores(means: dict[str, list[float]], module: str) -> list[float]:
    """Return 1 ÷ rank in each column; equal means share the average of their ranks."""
    columns = zip(*means.values(), strict=True)
    return [
        1 / (sum(other > mine for other in column) + (column.count(mine) + 1) / 2)
        for column, mine in zip(columns, means[module], strict=True)
    ]


def _normalised(means: dict[str, list[float]], module: str) -> list[float]:
    """Return the means scaled to 0…1 in each column; a column of equal means is 0."""
    scaled = []
    for column, mine in zip(zip(*means.values(), strict=True), means[module], strict=True):
        low, high = min(column), max(column)
        scaled.append((mine - low) / (high - low) if high > low else 0.0)
    return scaled


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
    golds = [_words(text) for text in gold]
    overlaps = ([_overlap(_words(passage), words) for words in golds] for passage in retrieved)
    best = [[max(column) for column in zip(*each, strict=True)] for each in overlaps]
    precision, recall, f1 = (sum(column) / len(best) for column in zip(*best, strict=True))
    return TokenScores(precision, recall, f1)


def _overlap(words: list[str], gold: list[str]) -> tuple[float, float, float]:
    common = sum((Counter(words) & Counter(gold)).values())
    if not common:
        return 0.0, 0.0, 0.0
    precision, recall = common / len(words), common / len(gold)
    return precision, recall, 2 * precision * recall / (precision + recall)


def _words(text: str) -> list[str]:
    return ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split()

"""What could change values: unjudged units, the order of ties, lists that end too early."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.core.cutoff import COUNTED, Budget
from findwell.core.findings import finding_about
from findwell.core.frames import changed, pl
from findwell.core.keys import sort_rows
from findwell.statistics.values import aggregate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats, Ints
    from findwell.core.findings import Finding
    from findwell.core.relation import Relation
    from findwell.measures import Measure
    from findwell.relations.align import Ties


UNITS = 4_000_000  # retrieved units handled at once, so that memory stays bounded


def bounds(relation: Relation, measures: Sequence[Measure]) -> list[tuple[Floats, Floats]]:
    """Return the lower and upper bound of every value, a pair of arrays for each measure.

    The measure is taken three times: as it is, with every unjudged unit judged not relevant, and
    with every unjudged unit as relevant as the best item of the gold. The bounds are the least
    and the greatest of the three.
    """
    top = max(relation.item_grade.max(initial=1.0), 1.0)
    block_of = np.cumsum(relation.depth) // UNITS
    found = []
    for number in np.unique(block_of):
        block = relation.select(block_of == number)
        scenarios = (block, with_unjudged(block, 0.0), with_unjudged(block, top))
        found.append([[measure.values(each) for each in scenarios] for measure in measures])
    return [
        (
            np.concatenate([_where_defined(block[at], np.fmin) for block in found]),
            np.concatenate([_where_defined(block[at], np.fmax) for block in found]),
        )
        for at in range(len(measures))
    ]


def _where_defined(scenarios: list[Floats], choose: np.ufunc) -> Floats:
    """Choose among the scenarios; what has no value has no bounds."""
    return np.where(np.isnan(scenarios[0]), np.nan, choose.reduce(scenarios))


def with_unjudged(relation: Relation, grade: float) -> Relation:
    """Return the relation in which every unjudged unit satisfies an item of this grade.

    With grade 0 they are all judged not relevant, with a high grade all relevant. Repetitions
    stay noise.
    """
    every = np.repeat(np.arange(relation.n), relation.depth)
    start = np.cumsum(relation.depth) - relation.depth
    every_rank = np.arange(len(every)) - start[every] + 1
    repeat = np.zeros(len(every), dtype=np.int64)
    listed = start[relation.unit_query] + relation.unit_rank - 1
    repeat[listed] = relation.unit_repeat
    unjudged = repeat == 0
    unjudged[listed[relation.unit_judged]] = False
    query, rank = every[unjudged], every_rank[unjudged]

    old, new = len(relation.item_grade), len(query)
    item_query = np.concatenate((relation.item_query, query))
    item_grade = np.concatenate((relation.item_grade, np.full(new, grade)))
    order = np.lexsort((-item_grade, item_query))
    place = np.empty(old + new, dtype=np.int64)
    place[order] = np.arange(old + new)
    edges = (
        np.concatenate((relation.edge_query, query)),
        np.concatenate((relation.edge_rank, rank)),
        place[np.concatenate((relation.edge_item, np.arange(old, old + new)))],
    )
    weight = relation.edge_weight
    if weight is not None:
        weight = sort_rows((*edges, np.concatenate((weight, np.ones(new)))), 3)[3]
    edge_query, edge_rank, edge_item = sort_rows(edges, 3)
    times = relation.item_times
    if times is not None:
        times = np.concatenate((times, np.ones(new, dtype=np.int64)))[order]
    member_item = np.concatenate((place[relation.member_item], place[old:]))
    member_order = np.argsort(member_item, kind="stable")
    names = pl.Series(np.char.add("\0unjudged ", rank.astype(str)), dtype=pl.String)
    return changed(
        relation,
        item_offset=np.concatenate(([0], np.cumsum(relation.count(item_query)))),
        item_grade=item_grade[order],
        edge_query=edge_query,
        edge_rank=edge_rank,
        edge_item=edge_item,
        edge_weight=weight,
        unit_query=every,
        unit_rank=every_rank,
        unit_judged=np.ones(len(every), dtype=bool),
        unit_repeat=repeat,
        member_item=member_item[member_order],
        member_doc=pl.concat([relation.member_doc, names]).gather(member_order),
        item_times=times,
    )


def tie_bounds(
    relation: Relation, ties: Ties, measures: Sequence[Measure]
) -> list[tuple[Floats, Floats]]:
    """Return the least and the greatest value of every query, for each measure, over its ties.

    Units with equal scores could be in any order. Two orders are looked at: within every tie
    the best grades first, and the best grades last. Repetitions are taken for noise.
    """
    scenarios = (relation, reordered(relation, ties, first=True), reordered(relation, ties))
    every = [[measure.values(each) for each in scenarios] for measure in measures]
    return [(_where_defined(each, np.fmin), _where_defined(each, np.fmax)) for each in every]


def reordered(relation: Relation, ties: Ties, *, first: bool = False) -> Relation:
    """Return the relation in which the best units of every tie come first in it, or last."""
    edge = relation.unit_key(relation.edge_query, relation.edge_rank)
    unit = relation.unit_key(relation.unit_query, relation.unit_rank)
    key = np.union1d(edge, unit)
    query, rank = relation.unit_of(key)
    of_edge, of_unit = np.searchsorted(key, edge), np.searchsorted(key, unit)
    grade = np.full(len(key), -np.inf)
    np.maximum.at(grade, of_edge, relation.item_grade[relation.edge_item])
    grade[of_unit[relation.unit_repeat > 0]] = -np.inf
    tie = ties.around(query, rank)
    units = np.flatnonzero(tie >= 0)
    order = units[np.lexsort((rank[units], -grade[units], tie[units]))]
    nth = np.arange(len(order)) - np.searchsorted(tie[order], tie[order])
    moved = rank.copy()
    moved[order] = ties.first[tie[order]] + nth if first else ties.last[tie[order]] - nth
    edges = (relation.edge_query, moved[of_edge], relation.edge_item)
    weight = relation.edge_weight
    weight = None if weight is None else sort_rows((*edges, weight), 3)[3]
    edges = sort_rows(edges, 3)
    unit_query, unit_rank, judged, repeat = sort_rows(
        (relation.unit_query, moved[of_unit], relation.unit_judged, relation.unit_repeat), 2
    )
    return changed(
        relation,
        edge_query=edges[0],
        edge_rank=edges[1],
        edge_item=edges[2],
        edge_weight=weight,
        unit_query=unit_query,
        unit_rank=unit_rank,
        unit_judged=judged,
        unit_repeat=repeat,
        chunk_facts=None
        if relation.chunk_facts is None
        else _moved_facts(relation, ties, key, moved),
    )


def _moved_facts(relation: Relation, ties: Ties, key: Ints, moved: Ints) -> dict[str, Floats]:
    """Return the facts about chunks where some units of ties moved.

    The other units of a tie take the places that are left, in their order. Units of ties are whole
    chunks: see `findwell.relations.pipeline.ties_that_matter`.
    """
    query, rank = relation.unit_of(key)
    sizes = ties.last - ties.first + 1
    of_tie = np.repeat(np.arange(len(sizes)), sizes)
    nth = np.arange(len(of_tie)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = relation.chunks[:-1]
    places = first[ties.query[of_tie]] + ties.first[of_tie] + nth - 1
    old, new = first[query] + rank - 1, first[query] + moved - 1
    source = np.arange(relation.chunks[-1])
    source[new] = old
    source[np.setdiff1d(places, new)] = np.setdiff1d(places, old)
    return {name: values[source] for name, values in (relation.chunk_facts or {}).items()}


LEAST = 5e-5  # a change that four digits show
SHOWN = 4  # measures whose range the finding names


def tied_scores(
    relation: Relation, ties: Ties, measures: Sequence[Measure], run: str
) -> list[Finding]:
    """Return the finding that ties decide the values of measures, with how far they could go.

    Only queries with a tie are measured again, in the best and in the worst order.
    """
    keep = np.isin(np.arange(relation.n), ties.query)
    number = np.cumsum(keep) - 1
    tied = type(ties)(number[ties.query], ties.first, ties.last)
    changed = np.zeros(relation.n, dtype=bool)
    ranges = []
    for measure, (low, high) in zip(
        measures, tie_bounds(relation.select(keep), tied, measures), strict=True
    ):
        differ = high - low > LEAST
        if not differ.any():
            continue
        changed[np.flatnonzero(keep)[differ]] = True
        values = measure.values(relation)
        ends = []
        for bound in (low, high):
            values[keep] = bound
            ends.append(aggregate(measure, values).value)
        ranges.append(f"{measure} from {ends[0]:.4f} to {ends[1]:.4f}")
    more = len(ranges) - SHOWN
    shown = ", ".join(ranges[:SHOWN]) + (f" and {more} more measures" if more > 0 else "")
    return finding_about(
        "tied-scores",
        relation.names_at(changed),
        "query whose values depend on the order of documents with equal scores, which is by id "
        f"(descending); in another order: {shown}",
        "let the retriever give scores that differ, or give a list in rank order",
        run,
    )


def short_lists(relation: Relation, measures: Sequence[Measure], run: str) -> list[Finding]:
    """Return the findings that lists end before a budget of tokens or characters is spent.

    What a longer list would hold in the rest of the budget is not known. A query on which the
    measures cannot rise any more is not counted.
    """
    groups: dict[tuple[Budget, bool], list[Measure]] = {}
    for measure in measures:
        if isinstance(measure.k, Budget) and measure.k.unit in COUNTED:
            groups.setdefault((measure.k, measure.only_grows), []).append(measure)
    found: list[Finding] = []
    for (budget, only_grows), alike in groups.items():
        spent = relation.paid(budget.unit)
        short = (np.diff(relation.chunks) > 0) & (spent < budget.amount)
        if only_grows:
            short &= np.any([each.values(relation) < each.bounds[1] for each in alike], axis=0)
        names, are = ", ".join(map(str, alike)), "is" if len(alike) == 1 else "are"
        meaning = (
            f"{names} {are} a lower bound of what longer lists would give"
            if only_grows
            else f"with longer lists {names} would differ"
        )
        found += finding_about(
            "short-list",
            [
                f"{name}: {spent[at]:,.0f} {budget.unit}"
                for at, name in zip(np.flatnonzero(short), relation.names_at(short), strict=True)
            ],
            f"query whose list ends before the budget of {budget.amount:,} {budget.unit} is spent: "
            f"{meaning}",
            "retrieve more documents for each query, so that the budget cuts every list",
            run,
        )
    return found

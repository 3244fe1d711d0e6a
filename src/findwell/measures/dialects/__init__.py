"""How other tools compute it: a dialect is a named set of policies and formulas, one file per tool.

A dialect never changes what the measures are called, only the choices that tools make silently:
policies, and formulas over the same relation. The result says which dialect made its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from findwell.core.errors import MeasureError
from findwell.measures import Measure, expand, parse_measure
from findwell.measures.dialects.dialect import DIALECTS, Dialect
from findwell.relations.match import find_matcher


def dialect(name: str | Dialect) -> Dialect:
    """Return the dialect of this name."""
    return name if isinstance(name, Dialect) else DIALECTS.find(name)


def known_dialects() -> dict[str, Dialect]:
    """Return all dialects by name, findwell's own first."""
    known = DIALECTS.known()
    return dict(sorted(known.items(), key=lambda entry: (entry[0] != "findwell", entry[0])))


def resolve_measures(
    measures: Iterable[str | Measure] | str | Measure, name: str | Dialect, rel: float | None = None
) -> tuple[Measure, ...]:
    """Parse measures, each once, at a relevance level, with the formulas of a dialect.

    >>> [str(measure) for measure in resolve_measures(["recall@1,5", "map"], "autorag")]
    ['recall@1', 'recall@5', 'AP']
    """
    given = _several(measures)
    listed = [
        name for each in given for name in (expand(each) if isinstance(each, str) else [each])
    ]
    chosen = dialect(name)
    parsed = dict.fromkeys(_in_dialect(each, chosen, rel) for each in listed)
    if not parsed:
        raise MeasureError("no measure was asked for", fix='for example measures=["nDCG@10"]')
    return tuple(parsed)


def select_measures(name: str, measures: Iterable[Measure], chosen: str) -> list[Measure]:
    """Return those of the measures that a name stands for: itself, or at another relevance level.

    >>> measures = resolve_measures(["recall@5", "P@5"], "findwell", 2)
    >>> [str(each) for each in select_measures("recall@5", measures, "findwell")]
    ['recall(rel=2)@5']
    """
    (wanted,) = resolve_measures(name, chosen)
    known = list(measures)
    if wanted in known:
        return [wanted]
    return [each for each in known if each == wanted.with_level(getattr(each, "rel", None))]


def expand_measures(
    measures: Iterable[str | Measure] | str | Measure, name: str | Dialect, rel: float | None = None
) -> tuple[Measure, ...]:
    """Parse measures as `resolve_measures` does, where a dialect has names for lists of them.

    trec_eval's `success` stands for three measures where a user asks for it, and for one measure
    in a result.

    >>> [str(measure) for measure in expand_measures("success", "trec_eval")]
    ['success@1', 'success@5', 'success@10']
    >>> [str(measure) for measure in expand_measures("success", "findwell")]
    ['success']
    """
    given = _several(measures)
    chosen = dialect(name)
    lists = (
        [each] if isinstance(each, Measure) else chosen.lists.get(each, [each]) for each in given
    )
    return resolve_measures([one for several in lists for one in several], chosen, rel)


def _several(measures: object) -> list[str | Measure]:
    if isinstance(measures, str | Measure):
        return [measures]
    if not isinstance(measures, Iterable):
        fix = 'name one, such as "nDCG@10", or give a list of them'
        raise MeasureError(f"measures of type {type(measures).__name__}", fix=fix)
    return list(measures)


def _in_dialect(measure: str | Measure, chosen: Dialect, rel: float | None) -> Measure:
    """Return a measure as it is defined, and its relation as it is drawn, in a dialect."""
    if isinstance(measure, str):
        measure = parse_measure(measure, chosen.formulas).with_level(rel)
    else:
        measure = chosen.formula(measure.with_level(rel))
    if measure.relation is None:
        return measure
    from findwell.relations.match.judged import at_depth  # noqa: PLC0415 - few measures name a relation

    measure, matcher = at_depth(measure, find_matcher(measure.relation, chosen.relations))
    return replace(measure, relation=str(matcher))


__all__ = [
    "Dialect",
    "dialect",
    "expand_measures",
    "known_dialects",
    "resolve_measures",
    "select_measures",
]

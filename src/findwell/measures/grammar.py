"""From the name of a measure to the measure: `NAME[(param=value,…)][@K][/RELATION]`.

K is a rank (`recall@10`) or a budget (`recall@2000tokens`).
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.core.errors import MeasureError, nearest
from findwell.core.measure import MEASURES, UNITS, Measure, read_budget
from findwell.core.spelling import read_number, read_parameters, split_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    Found: TypeAlias = tuple[type[Measure], dict[str, str]]  # a measure, and what its name implies
    Classes: TypeAlias = tuple[type[Measure], ...]
    Pattern: TypeAlias = tuple[re.Pattern[str], type[Measure], dict[str, str]]

# measures of every day, whose names need no other module than their own
MODULES = {
    "AP": "average_precision",
    "nDCG": "dcg",
    "P": "precision",
    "recall": "recall",
    "RR": "reciprocal_rank",
    "success": "success",
}
_FOLDED = {name.casefold(): name for name in MODULES}

_SPEC = re.compile(
    r"""(?P<name>[^@/()]+?)
        (?:\((?P<params>[^()]*)\))?
        (?:@(?P<at>[^@/()]*?))?
        (?:-l(?P<level>\d+))?
        (?:/(?P<relation>[a-z][\w-]*(?:\([^()]*\))?))?""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = r"-?(?:\d++(?:\.\d++)?|\.\d++)"
_LIST = re.compile(
    rf"""(?P<before>.*@) (?P<numbers>[^@()/]*,[^@()/]*) (?P<after>/.*)?  # recall@1,5
       | (?P<name>[^@()/,]*?[._]) (?P<dotted>{_NUMBER}(?:,{_NUMBER})+)   # P.1,5
    """,
    re.VERBOSE,
)


def expand(spec: str) -> list[str]:
    """Return one name for each cutoff of a list of them.

    >>> expand("recall@1,5,10"), expand("ndcg_cut.5,10")
    (['recall@1', 'recall@5', 'recall@10'], ['ndcg_cut.5', 'ndcg_cut.10'])
    >>> expand("P@500,2000tokens")
    ['P@500tokens', 'P@2000tokens']
    >>> expand("F(rel=2,beta=2)@5")
    ['F(rel=2,beta=2)@5']
    """
    found = _LIST.fullmatch(spec)
    if found is None or _lookup(spec):  # utility.1,-1,0,0 is one measure
        return [spec]
    before, after = found["before"] or found["name"], found["after"] or ""
    numbers = [number.strip() for number in (found["numbers"] or found["dotted"]).split(",")]
    last = read_budget(numbers[-1])
    if last is not None:  # one unit for all
        numbers = [each + last.unit if each.isdigit() else each for each in numbers]
    return [f"{before}{number}{after}" for number in numbers]


def parse_measure(
    spec: str | Measure, formulas: Mapping[str, type[Measure]] | None = None
) -> Measure:
    """Return the measure that a name spells; case and the field's aliases are understood.

    `formulas` are the classes that a dialect has instead of findwell's, by the name of the measure.

    >>> parse_measure("ndcg_cut_10"), str(parse_measure("MAP"))
    (NDCG(k=10, relation=None, gain='linear'), 'AP')
    >>> parse_measure("hitrate_at_5") == parse_measure("HitRate@5") == parse_measure("success_5")
    True
    >>> parse_measure("recal@5")
    Traceback (most recent call last):
    findwell.core.errors.MeasureError: unknown measure 'recal'
      fix: did you mean recall, StRecall or set_recall? `findwell measures` lists them all
    """
    if isinstance(spec, Measure):
        return spec
    parts = _SPEC.fullmatch(spec.strip())
    if parts is None:
        raise MeasureError(
            f"{spec!r} is not the name of a measure",
            fix="write NAME(param=value)@K/relation, for example nDCG@10 or AP(over=retrieved)",
        )
    name, at = parts["name"].strip(), parts["at"]
    whole = None if at is None else f"{name}@{at}"
    found = _of_every_day(name) or _lookup(whole, name)
    if found is None:  # built-in names cannot be taken, so that plugins are only asked now
        MEASURES.load_plugins()
        found = _lookup(whole, name) or _unknown(name)
    cls, implied = found
    if whole is not None and cls.at is not None and cls.at not in implied:
        implied = {**implied, cls.at: at}
    elif whole is not None and _lookup(whole) is None:
        raise MeasureError(f"{cls.name} takes no cutoff", fix=f"write {cls.name} without @{at}")
    relation = parts["relation"] or implied.get("relation")
    implied = {name: value for name, value in implied.items() if name != "relation"}
    given = {}
    if parts["params"]:
        given = dict(split_parameters(parts["params"], spec, MeasureError))
    if parts["level"]:
        given["rel"] = parts["level"]
    cls = (formulas or {}).get(cls.name, cls)
    return _build(cls, cls.respell({**implied, **given}), relation)


def _build(cls: type[Measure], texts: Mapping[str, str], relation: str | None) -> Measure:
    cutoff: dict[str, Any] = {}
    texts = dict(texts)
    if cls.at == "k" and "k" in texts:
        text = texts.pop("k")
        cutoff["k"] = read_budget(text)
        try:
            what = f"the cutoff of {cls.name}@{text}"
            cutoff["k"] = cutoff["k"] or read_number(text, int, what, MeasureError)
        except MeasureError as error:
            fix = f"use a rank such as {cls.name}@10, or a budget such as {cls.name}@2000tokens"
            raise MeasureError(error.what, fix=f"{fix} ({', '.join(UNITS)})") from None
    values = read_parameters(cls.name, texts, cls.parameters(), MeasureError)
    return cls(**cutoff, **values, relation=relation)


# measures of other tools that are not the same here: what differs, and what to type
EDIT = "compares texts by edit distance with a threshold of 0.5; findwell compares their words"
RESPONSE = "judges chunks by the generated answer; findwell judges them by the question"
ANSWER = "is about the generated answer; findwell measures what was retrieved"
DIFFERENT = {
    "non_llm_context_recall": (EDIT, "-m recall/rouge"),
    "non_llm_context_precision_with_reference": (EDIT, "-m 'AP(over=retrieved)/rouge'"),
    "llm_context_precision_without_reference": (RESPONSE, "-m context_precision"),
    "context_utilization": (RESPONSE, "-m context_precision"),
    "nv_context_relevance": (
        "rates all chunks together from 0 to 2; findwell judges their statements one by one",
        "-m context_relevancy",
    ),
    "noise_sensitivity": (ANSWER, "-m P@5 or -m context_relevancy for noise among the chunks"),
} | dict.fromkeys(
    [
        "faithfulness",
        "faithfulness_with_hhem",
        "answer_relevancy",
        "response_relevancy",
        "answer_correctness",
        "answer_similarity",
        "semantic_similarity",
        "factual_correctness",
        "response_groundedness",
        "nv_response_groundedness",
        "answer_accuracy",
        "nv_accuracy",
        "hallucination",
    ],
    (ANSWER, "-m context_recall: whether the chunks support the reference answer"),
)


def _unknown(name: str) -> Found:
    different = {_fold(word): told for word, told in DIFFERENT.items()}.get(_fold(name))
    if different is not None:
        raise MeasureError(f"{name} {different[0]}", fix=f"type {different[1]}")
    classes = MEASURES.known()
    known = [*classes, *(alias for cls in classes.values() for alias in cls.aliases)]
    suggestion = nearest(name, (word for word in known if "{" not in word))
    fix = f"{suggestion} `findwell measures` lists them all".strip()
    raise MeasureError(f"unknown measure {name[:60]!r}", fix=fix)


def _of_every_day(name: str) -> Found | None:
    """Find a measure by its own name in its own module, without importing the others."""
    own = _FOLDED.get(name.casefold())
    if own is None:
        return None
    importlib.import_module(f"findwell.measures.{MODULES[own]}")
    return MEASURES.registered[own], {}


def _lookup(*names: str | None) -> Found | None:
    """Find a measure by the first of these that is a name, an alias, or one with its cutoff."""
    MEASURES.load_built_in()
    classes = tuple(MEASURES.registered.values())
    found = (_find(_fold(name), classes) for name in names if name is not None)
    return next(filter(None, found), None)


@functools.lru_cache(1024)
def _find(folded: str, classes: Classes) -> Found | None:
    names = (folded, folded.removeprefix("retrieval"))  # as AutoRAG and torchmetrics say
    found = (find(name, classes) for find in (_spelled, _cut) for name in names)
    return next(filter(None, found), None)


def _cut(folded: str, classes: Classes) -> Found | None:
    """Find a measure by a name that ends with its cutoff: P_5, map.10, hit_rate_at_3."""
    before = folded.rstrip("0123456789")
    found = _spelled(before.removesuffix("_").removesuffix(".").removesuffix("at"), classes)
    if before == folded or found is None or found[0].at != "k" or "k" in found[1]:
        return None
    return found[0], {**found[1], "k": folded[len(before) :]}


def _spelled(folded: str, classes: Classes) -> Found | None:
    plain, patterns = _spellings(classes)
    cls, implied = plain.get(folded, (None, {}))
    if cls is not None:
        return cls, implied
    for pattern, cls, implied in patterns:
        found = pattern.fullmatch(folded)
        if found:
            return cls, {**implied, **found.groupdict()}
    return None


@functools.cache
def _spellings(classes: Classes) -> tuple[dict[str, Found], list[Pattern]]:
    """List every name and alias; names come first, so none can be shadowed.

    Those with a parameter are patterns, which no plain one matches (tested).
    """
    nothing: dict[str, str] = {}
    names = [(cls.name, cls, nothing) for cls in classes]
    aliases = [(alias, cls, implied) for cls in classes for alias, implied in cls.aliases.items()]
    plain: dict[str, Found] = {}
    patterns: list[Pattern] = []
    for spelling, cls, implied in names + aliases:
        if "{" in spelling:
            patterns.append((_pattern(spelling), cls, dict(implied)))
        else:
            plain.setdefault(_fold(spelling), (cls, dict(implied)))
    return plain, patterns


def _pattern(alias: str) -> re.Pattern[str]:
    """Compile an alias: `{p}` stands for a number, and a _ before it may also be a dot."""
    parts = re.split(r"\{(\w+)\}", alias)
    text = re.escape(_fold(parts[0]))
    for before, parameter, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        dot = r"\.?" if before.endswith("_") else ""
        text += rf"{dot}(?P<{parameter}>{_NUMBER})" + re.escape(_fold(after))
    return re.compile(text)


def _fold(name: str) -> str:
    """Write a name without case, spaces, - and _; they stay only between digits.

    >>> _fold("Hit-Rate"), _fold("F1_5"), _fold("utility_2,-1,0,0")
    ('hitrate', 'f1_5', 'utility2,-1,0,0')
    """
    name = re.sub(r"(?<=\d)[-\s](?=\d)", "_", name.casefold().replace("α", "alpha"))
    # what is left of - is the sign of a number in a list
    return re.sub(r"(?<!\d)_|_(?!\d)|\s|(?<![,._])-|-(?![\d.])", "", name)

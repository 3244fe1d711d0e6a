"""From the name of a measure to the measure: `NAME[(param=value,…)][@K][/RELATION]`."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from karat.errors import MeasureError, nearest
from karat.measures.measure import REGISTRY, Measure
from karat.spelling import read_number, read_parameters, split_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPEC = re.compile(
    r"""(?P<name>[^@/()]+?)
        (?:\((?P<params>[^()]*)\))?
        (?:@(?P<at>[^@/()]*?))?
        (?:-l(?P<level>\d+))?
        (?:/(?P<relation>[a-z][\w-]*(?:\([^()]*\))?))?""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = r"\d*\.?\d+"


def expand(spec: str) -> list[str]:
    """Return one name for each cutoff of a list of them.

    >>> expand("recall@1,5,10")
    ['recall@1', 'recall@5', 'recall@10']
    >>> expand("F(rel=2,beta=2)@5")
    ['F(rel=2,beta=2)@5']
    """
    found = re.fullmatch(r"(.*@)([^@()/]*,[^@()/]*)(/.*)?", spec)
    if found is None:
        return [spec]
    before, cutoffs, after = found[1], found[2], found[3] or ""
    return [f"{before}{cutoff.strip()}{after}" for cutoff in cutoffs.split(",")]


def parse(spec: str | Measure) -> Measure:
    """Return the measure that a name spells; case and the field's aliases are understood.

    >>> from karat.measures import parse
    >>> parse("ndcg_cut_10"), str(parse("MAP"))
    (NDCG(k=10, relation=None, gain='linear'), 'AP')
    >>> parse("recal@5")
    Traceback (most recent call last):
    karat.errors.MeasureError: unknown measure 'recal'
      fix: did you mean recall or StRecall or set_recall? `karat measures` lists them all
    """
    return spec if isinstance(spec, Measure) else _parse(spec, tuple(REGISTRY.values()))


@functools.lru_cache(1024)
def _parse(spec: str, classes: tuple[type[Measure], ...]) -> Measure:
    """Return the measure among these that a name spells."""
    parts = _SPEC.fullmatch(spec.strip())
    if parts is None:
        raise MeasureError(
            f"{spec!r} is not the name of a measure",
            fix="write NAME(param=value)@K/relation, for example nDCG@10 or AP(over=retrieved)",
        )
    name, at = parts["name"].strip(), parts["at"]
    whole = None if at is None else f"{name}@{at}"
    cls, implied = _lookup(whole, classes) or _lookup(name, classes) or _unknown(name)
    if whole is not None and cls.at is not None and cls.at not in implied:
        implied = {**implied, cls.at: at}
    elif whole is not None and _lookup(whole, classes) is None:
        raise MeasureError(f"{cls.name} takes no cutoff", fix=f"write {cls.name} without @{at}")
    relation = parts["relation"] or implied.get("relation")
    implied = {name: value for name, value in implied.items() if name != "relation"}
    given = dict(split_parameters(parts["params"] or "", spec, MeasureError))
    if parts["level"]:
        given["rel"] = parts["level"]
    return _build(cls, cls.respell({**implied, **given}), relation)


def _build(cls: type[Measure], texts: Mapping[str, str], relation: str | None) -> Measure:
    cutoff: dict[str, Any] = {}
    if cls.at == "k" and "k" in texts:
        what = f"the cutoff of {cls.name}@{texts['k']}"
        cutoff = {"k": read_number(texts["k"], int, what, MeasureError)}
        texts = {name: text for name, text in texts.items() if name != "k"}
    values = read_parameters(cls.name, texts, cls.parameters(), MeasureError)
    return cls(**cutoff, **values, relation=relation)


def _unknown(name: str) -> tuple[type[Measure], dict[str, str]]:
    known = [*REGISTRY, *(alias for cls in REGISTRY.values() for alias in cls.aliases)]
    suggestion = nearest(name, (word for word in known if "{" not in word))
    raise MeasureError(
        f"unknown measure {name!r}", fix=f"{suggestion} `karat measures` lists them all".strip()
    )


def _lookup(
    name: str | None, classes: tuple[type[Measure], ...]
) -> tuple[type[Measure], dict[str, str]] | None:
    """Find a measure by name or alias, in any case, with - and _ alike."""
    if name is None:
        return None
    folded = _fold(name)
    for pattern, cls, implied in _spellings(classes):
        found = pattern.fullmatch(folded)
        if found:
            return cls, {**implied, **found.groupdict()}
    return None


@functools.cache
def _spellings(
    classes: tuple[type[Measure], ...],
) -> list[tuple[re.Pattern[str], type[Measure], Mapping[str, str]]]:
    """List the patterns of every name and alias; names come first, so none can be shadowed."""
    nothing: Mapping[str, str] = {}
    names = [(cls.name, cls, nothing) for cls in classes]
    aliases = [(alias, cls, implied) for cls in classes for alias, implied in cls.aliases.items()]
    return [(_pattern(spelling), cls, implied) for spelling, cls, implied in names + aliases]


def _pattern(alias: str) -> re.Pattern[str]:
    """Compile an alias: `{p}` stands for a number, and a _ before it may also be a dot."""
    parts = re.split(r"\{(\w+)\}", alias)
    text = _fold(parts[0])
    for parameter, after in zip(parts[1::2], parts[2::2], strict=True):
        text = re.sub("_$", "[._]", text) + rf"(?P<{parameter}>{_NUMBER})" + _fold(after)
    return re.compile(text)


def _fold(name: str) -> str:
    return re.sub(r"[-\s]", "_", name).casefold().replace("α", "alpha")

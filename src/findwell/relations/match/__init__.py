"""Rule-drawn relations: which unit covers which item, by ids, texts, spans or embeddings.

One file per family of relations; each registers its matchers itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from findwell.core.errors import OptionError, choose
from findwell.core.spelling import read_parameters, split_parameters
from findwell.relations.match.matcher import MATCHERS, Matcher


def find_matcher(
    spec: str | Matcher,
    choices: Mapping[str, Mapping[str, Any]] | None = None,
    **parameters: Any,  # noqa: ANN401
) -> Matcher:
    """Return the matcher of this name, for `by=`.

    Parameters are given in the name or beside it; `choices` are those of a dialect, by relation.

    >>> str(find_matcher("rouge(threshold=0.80)")), str(find_matcher("exact", text="raw"))
    ('rouge(threshold=0.8)', 'exact(text=raw)')
    >>> find_matcher("rouge(treshold=0.8)")
    Traceback (most recent call last):
    findwell.core.errors.OptionError: rouge has no parameter 'treshold'
      fix: did you mean threshold? (it takes: threshold, text, form)
    """
    if isinstance(spec, Matcher):
        return spec
    parts = re.fullmatch(r"\s*([^()\s]+)\s*(?:\(([^()]*)\))?\s*", spec)
    if parts is None:
        raise OptionError(
            f"{spec!r} is not the name of a relation", fix="for example rouge(threshold=0.8)"
        )
    name = parts[1].lower()
    cls = MATCHERS.built_in(name)  # others need not be imported for it
    if cls is None:
        known = known_matchers()
        cls = known[choose("relation", name, known)]
    texts = dict(split_parameters(parts[2] or "", spec, OptionError))
    given = read_parameters(name, texts, cls.parameters(), OptionError)
    for parameter in parameters:
        choose(f"parameter of {name}", parameter, cls.parameters())
    return cls(**{**(choices or {}).get(name, {}), **given, **parameters})


def known_matchers() -> dict[str, type[Matcher]]:
    """Return all matchers by name, ids first."""
    from findwell.relations.match.judged import judged_matchers  # noqa: PLC0415 - it imports from here

    known = {**MATCHERS.known(), **judged_matchers()}
    return dict(sorted(known.items(), key=lambda entry: (entry[0] != "ids", entry[0])))


__all__ = ["Matcher", "find_matcher", "known_matchers"]

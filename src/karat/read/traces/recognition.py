"""Which convention a span follows, and whether it is a retrieval call.

Some programs write the attributes of several conventions to one span, so the order matters: the
first that names a kind decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# the attribute that tells the kind of a span, and the kinds that are retrieval calls
MARKERS = {
    "openinference.span.kind": frozenset({"retriever", "reranker"}),
}


def is_retrieval(
    attributes: Mapping[str, Any], value_of: Callable[[Any], Any], name: object
) -> bool:
    """Tell whether a span with these attributes is a retrieval call, before it is read whole."""
    del name
    for marker, kinds in MARKERS.items():
        if marker in attributes:
            return str(value_of(attributes[marker])).lower() in kinds
    return False

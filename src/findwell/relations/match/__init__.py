"""Rule-drawn relations: which unit covers which item, by ids, texts, spans or embeddings.

One file per family of relations; each registers its matchers itself.
"""

from __future__ import annotations

from findwell.relations.match.matcher import Matcher, find_matcher, known_matchers

__all__ = ["Matcher", "find_matcher", "known_matchers"]

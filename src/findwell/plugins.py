"""What findwell can be extended by, and what it knows already: see RECIPES.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names

if TYPE_CHECKING:
    from findwell.io.read.format import register_format
    from findwell.io.read.objects import register_source
    from findwell.io.read.shapes import Shape, register_shape
    from findwell.loop.monitoring.detectors import register_detector
    from findwell.loop.monitoring.signals import register_signal
    from findwell.loop.tuning import register_engine
    from findwell.measures import known_measures, parse_measure, register_measure
    from findwell.measures.dialects import known_dialects
    from findwell.measures.dialects.dialect import register_dialect
    from findwell.relations.match import find_matcher
    from findwell.relations.match.judged import register_aspect
    from findwell.relations.match.matcher import register_matcher

__all__ = [
    "Shape", "find_matcher", "known_dialects", "known_measures", "parse_measure",
    "register_aspect", "register_detector", "register_dialect", "register_engine",
    "register_format", "register_matcher", "register_measure", "register_shape",
    "register_signal", "register_source",
]  # fmt: skip

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)

"""Labels of people: what to label, what was labelled, and what few labels say about all."""

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names
from findwell.evaluation.results.estimates import Estimates
from findwell.loop.labels.agree import Agreement, agree
from findwell.loop.labels.anchor import anchor, drift
from findwell.loop.labels.estimates import ppi
from findwell.loop.labels.label_pool import LabelPool
from findwell.loop.labels.labels import Labels
from findwell.loop.labels.pool import pool
from findwell.loop.labels.synthetic.questions import questions

__all__ = [
    "Agreement", "Estimates", "LabelPool", "Labels", "agree", "anchor", "drift", "pool", "ppi",
    "questions",
]  # fmt: skip

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)

"""Labels of people: what to label, what was labelled, and what few labels say about all."""

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

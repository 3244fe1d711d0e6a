"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

from karat.report.html.page import page
from karat.report.html.prepared import Prepared, prepare

__all__ = ["Prepared", "page", "prepare"]

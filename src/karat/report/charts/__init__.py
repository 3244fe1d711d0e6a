"""Charts as SVG, made by hand: small, offline, readable by machines, in the colours of the page."""

from __future__ import annotations

from karat.report.charts.figure import Figure, png, standalone, write_image

__all__ = ["Figure", "png", "standalone", "write_image"]

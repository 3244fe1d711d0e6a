"""Single queries as reports show them: the list, the gold met and missed, how the numbers come."""

from __future__ import annotations

from karat.report.cases.case import Cases, gold_texts, tell_all

__all__ = ["Cases", "gold_texts", "tell_all"]

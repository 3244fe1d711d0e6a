"""Production: the calls in a trace store, their signals, and alarms about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names

if TYPE_CHECKING:
    from findwell.loop.monitoring.monitor import Monitor

__all__ = ["Monitor"]

__getattr__, __dir__ = lazy_names(__name__)

"""Production: the calls in a trace store, their signals, and alarms about them."""

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names
from findwell.loop.monitoring.monitor import Monitor

__all__ = ["Monitor"]

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)

"""Production: the calls in a trace store, their signals, and alarms about them."""

from findwell.loop.monitoring.monitor import Monitor

__all__ = ["Monitor"]

"""Traces of production: spans of many conventions, live or in files → one row per retrieval call.

`decode` reads what an exporter of OpenTelemetry sends, `read_traces` files and folders. Nothing in
them is an error: what cannot be read is left out and counted.
"""

from __future__ import annotations

from findwell.io.read.traces.decoding import decode, read_traces
from findwell.io.read.traces.schema import TRACE_SCHEMA, Decoded, number_hops, outermost

__all__ = ["TRACE_SCHEMA", "Decoded", "decode", "number_hops", "outermost", "read_traces"]

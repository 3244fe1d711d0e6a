"""Retrieval in production: what is seen in its traces, without labels."""
